//! TCP flows: bulk transfers, and files one after another, each on a connection of its own.

use sojourn_aqm::Ecn;
use sojourn_experiment::model;
use sojourn_experiment::streams::Stream;
use sojourn_tcp::cc::Algorithm;
use sojourn_tcp::sender::UNLIMITED;
use sojourn_tcp::seq::Seq;
use sojourn_tcp::{Arrival, Config, Endpoint};
use sojourn_units::{Duration, Time};

use super::{Identity, Meter, Side};
use crate::packet::SimPacket;
use crate::simulation::Network;

/// What a connection carries.
enum Work {
    /// Data without end.
    Bulk,
    /// Files.
    Files(Files),
}

/// The files of a flow.
struct Files {
    sizes: Vec<u64>,
    left: Option<u64>,
    think: Duration,
    draws: Stream,
    /// Size of the file under way and when it began.
    current: Option<(u64, Time)>,
}

/// A TCP flow: both ends of its present connection.
pub struct TcpFlow {
    identity: Identity,
    config: Config,
    algorithm: &'static Algorithm,
    work: Work,
    iss: Stream,
    sender: Endpoint,
    receiver: Endpoint,
    generation: u16,
    /// When the next connection is to be opened; `None`: one is open, or there are no more.
    open_at: Option<Time>,
    stopped: bool,
    /// Bytes and retransmissions of connections that are over.
    past_sent: u64,
    past_received: u64,
    past_retransmits: u64,
    meter: Meter,
}

impl TcpFlow {
    /// A bulk transfer that has not started.
    pub fn bulk(
        identity: Identity,
        tcp: &model::Tcp,
        algorithm: &'static Algorithm,
        seed: u64,
    ) -> Self {
        Self::new(
            identity,
            tcp,
            algorithm,
            seed,
            Work::Bulk,
            Meter::new(identity.warmup),
        )
    }

    /// A flow of files that has not started.
    pub fn files(
        identity: Identity,
        files: &model::Files,
        algorithm: &'static Algorithm,
        seed: u64,
    ) -> Self {
        let work = Work::Files(Files {
            sizes: files.sizes.clone(),
            left: files.count,
            think: files.think,
            draws: Stream::new(seed, &format!("flow/{}/files", identity.flow)),
            current: None,
        });
        Self::new(
            identity,
            &files.tcp,
            algorithm,
            seed,
            work,
            Meter::of_files(identity.warmup),
        )
    }

    fn new(
        identity: Identity,
        tcp: &model::Tcp,
        algorithm: &'static Algorithm,
        seed: u64,
        work: Work,
        meter: Meter,
    ) -> Self {
        let window = tcp
            .window
            .map_or(1 << 30, |bytes| bytes.min(1 << 30) as u32);
        let config = Config {
            mss: tcp.mss as u16,
            initial_window: tcp.initial_window,
            ecn: tcp.ecn,
            abe: tcp.abe,
            sack: tcp.sack,
            max_window: window,
            ..Config::default()
        };
        Self {
            sender: Endpoint::listen(config.clone(), algorithm, Seq(0)),
            receiver: Endpoint::listen(config.clone(), algorithm, Seq(0)),
            iss: Stream::new(seed, &format!("flow/{}/iss", identity.flow)),
            generation: 0,
            open_at: Some(identity.start),
            stopped: false,
            past_sent: 0,
            past_received: 0,
            past_retransmits: 0,
            meter,
            identity,
            config,
            algorithm,
            work,
        }
    }

    /// A segment arrives at one of the hosts.
    pub fn on_packet(&mut self, packet: &SimPacket, now: Time, network: &mut Network) {
        let Some(handle) = packet.handle() else {
            return;
        };
        // Segments of a connection that is over find nobody.
        if packet.generation == self.generation {
            let ecn = match packet.ecn {
                Ecn::NotEct => Arrival::NotEct,
                Ecn::Ect0 | Ecn::Ect1 => Arrival::Ect,
                Ecn::Ce => Arrival::Ce,
            };
            let segment = network.segments.at(handle);
            if packet.returning {
                self.sender.on_segment(segment, ecn, now);
            } else {
                self.receiver.on_segment(segment, ecn, now);
            }
        }
        network.segments.release(handle);
        if packet.returning {
            if let Some(rtt) = self.sender.take_rtt_sample()
                && self.meter.is_steady(now)
            {
                self.meter.round_trips.record(rtt);
            }
            self.transmit(Side::Sending, now, network);
            self.meter.sent = self.past_sent + self.sender.sender().sent();
            self.meter.retransmits = self.past_retransmits + self.sender.sender().retransmits();
        } else {
            self.meter.received = self.past_received + self.receiver.received();
            if self.receiver.peer_has_closed() {
                self.receiver.close();
            }
            self.transmit(Side::Receiving, now, network);
            self.finish_file(now);
        }
        if self.sender.is_closed() {
            self.open_next(now);
        }
    }

    /// A timer of one of the hosts may have come due.
    pub fn on_timer(&mut self, side: Side, now: Time, network: &mut Network) {
        if side == Side::Sending {
            if self.open_at.is_some_and(|due| due <= now) {
                self.open_at = None;
                self.open(now);
            }
            if !self.stopped && now >= self.identity.stop {
                self.stopped = true;
                self.open_at = None;
                self.sender.close();
            }
            self.sender.on_timer(now);
        } else {
            self.receiver.on_timer(now);
        }
        self.transmit(side, now, network);
    }

    /// When a host wants to be asked next.
    pub fn next_timer(&self, side: Side) -> Option<Time> {
        if side == Side::Receiving {
            return self.receiver.next_timer();
        }
        let stop = if self.stopped {
            Time::MAX
        } else {
            self.identity.stop
        };
        let open = self.open_at.unwrap_or(Time::MAX);
        let connection = self.sender.next_timer().unwrap_or(Time::MAX);
        let due = connection.min(open).min(stop);
        (due < Time::MAX).then_some(due)
    }

    fn open(&mut self, now: Time) {
        let mut draw = || Seq(self.iss.word() as u32);
        self.sender = Endpoint::connect(self.config.clone(), self.algorithm, draw());
        self.receiver = Endpoint::listen(self.config.clone(), self.algorithm, draw());
        match &mut self.work {
            Work::Bulk => self.sender.write(UNLIMITED),
            Work::Files(files) => {
                let size = files.sizes[files.draws.below(files.sizes.len() as u64) as usize];
                files.current = Some((size, now));
                files.left = files.left.map(|left| left - 1);
                self.sender.write(size);
                self.sender.close();
            }
        }
    }

    /// Notes the completion of a file: its last byte has arrived.
    fn finish_file(&mut self, now: Time) {
        let Work::Files(files) = &mut self.work else {
            return;
        };
        let Some((size, began)) = files.current else {
            return;
        };
        if self.receiver.received() >= size {
            files.current = None;
            if self.meter.is_steady(now)
                && let Some(completions) = &mut self.meter.completions
            {
                completions.record(now - began);
            }
        }
    }

    /// The connection is over: the next file follows after a pause.
    fn open_next(&mut self, now: Time) {
        let Work::Files(files) = &mut self.work else {
            return;
        };
        if self.stopped
            || self.open_at.is_some()
            || files.left == Some(0)
            || files.current.is_some()
        {
            return;
        }
        let pause = Duration::from_secs_f64(files.think.as_secs_f64() * files.draws.exponential());
        self.past_sent += self.sender.sender().sent();
        self.past_received += self.receiver.received();
        self.past_retransmits += self.sender.sender().retransmits();
        self.generation = self.generation.wrapping_add(1);
        self.sender = Endpoint::listen(self.config.clone(), self.algorithm, Seq(0));
        self.receiver = Endpoint::listen(self.config.clone(), self.algorithm, Seq(0));
        self.open_at = Some(now + pause);
    }

    fn transmit(&mut self, side: Side, now: Time, network: &mut Network) {
        let returning = side == Side::Receiving;
        let endpoint = if returning {
            &mut self.receiver
        } else {
            &mut self.sender
        };
        let of = self.identity.membership(self.generation, returning);
        let mut handle = network.segments.reserve();
        while let Some(ecn_capable) = endpoint.poll_into(network.segments.at_mut(handle), now) {
            let segment = network.segments.at(handle);
            let bytes = segment.header_bytes() + u32::from(segment.len) + self.identity.overhead;
            let mut packet = SimPacket::segment(of, handle, segment, bytes);
            if ecn_capable {
                packet.ecn = if endpoint.sends_ect1() {
                    Ecn::Ect1
                } else {
                    Ecn::Ect0
                };
            }
            network.send(&packet, now);
            handle = network.segments.reserve();
        }
        network.segments.release(handle);
    }

    /// The congestion window in segments.
    pub const fn cwnd(&self) -> u32 {
        self.sender.sender().cwnd()
    }
    /// What was measured.
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }
    /// What was measured, to be told of instants.
    pub const fn meter_mut(&mut self) -> &mut Meter {
        &mut self.meter
    }
}
