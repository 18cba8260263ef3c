//! CAKE: a shaper, tins by DiffServ, flow queueing with host fairness, COBALT and an ACK filter in one discipline
//! (Høiland-Jørgensen, Täht and Morton 2018; tc-cake(8)).
//!
//! | module | what is there |
//! | --- | --- |
//! | [`diffserv`] | maps code points to tins, and the tins' shares |
//! | [`hosts`] | the isolation modes; fairness among hosts |
//! | [`framing`] | overhead, minimum packet size, ATM and PTM cells |
//! | [`ack_filter`] | drops redundant acknowledgements |
//! | `tin` | the queues of one tin |
//! | `shaper` | the virtual clock |
//! | `hardware_queues` | several CAKEs with one rate |
//!
//! Features of Linux's `sch_cake` not modelled: `ingress`, `autorate-ingress`, `nat`, `wash`, `fwmark` and negative
//! overhead. There are no super-packets, so nothing is split. Departure: transmission times are whole nanoseconds, not
//! scaled fractions.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use sojourn_units::{Duration, Rate, Time};

use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::fq::PACKET_MEMORY;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::pool::Pool;
use crate::qdisc::{InnerSettings, Qdisc};
use crate::settings::Settings;
use crate::{cobalt, parameters};

pub mod ack_filter;
pub mod diffserv;
pub mod framing;
mod hardware_queues;
pub mod hosts;
mod shaper;
mod tin;

pub use hardware_queues::HardwareQueues;

use ack_filter::AckFilter;
use diffserv::DiffServ;
use framing::{Cells, Framing};
use hosts::Isolation;
use shaper::Shaper;
use tin::{Served, Tin};

/// The length of an IP packet that fills a frame; the rest of the frame is its link header.
const IP_MTU: u32 = 1500;
/// The most hardware queues.
const MOST_QUEUES: u64 = 256;
/// The default limit, in full frames.
const PACKETS: u64 = 10_240;

parameters! {
    /// The parameters of CAKE. [`Config::new`] holds the defaults.
    pub struct Config {
        /// shaping rate; without it CAKE does not shape
        pub bandwidth: Option<Rate> = "unlimited",
        /// typical round-trip time: the AQM's interval, and 20 times its target
        pub rtt: Duration,
        /// mapping of DiffServ code points to tins
        pub diffserv: DiffServ,
        /// what gets a queue of its own, and which hosts share equally
        pub isolation: Isolation,
        /// whether to drop acknowledgements that later ones make redundant
        pub ack_filter: AckFilter,
        /// bytes that the link adds to an IP packet
        pub overhead: Option<u64> as Bytes = "the link header",
        /// minimum size of a packet on the link
        pub mpu: u64 as Bytes,
        /// cells into which the link splits packets
        pub framing: Cells,
        /// memory for queued packets, counting 576 B per packet besides its bytes
        pub memlimit: Option<u64> as Bytes = "4 × bandwidth × rtt, 4 MiB to 10240 frames",
        /// hardware queues of the device, 1 to 256: each has a CAKE of its own, and they share the bandwidth (cake_mq)
        pub queues: u64,
        /// how often a hardware queue counts the active ones, to send at an equal share
        pub sync_time: Option<Duration> = "200 us",
        /// whether COBALT's first signal comes after an interval, or at once as in Linux
        pub variant: cobalt::Variant,
    }
    besides {
        /// An additional limit, if given.
        pub limit: Option<Limit>,
        /// A full frame, in bytes.
        pub mtu: u32,
        /// Mark ECN-capable packets; Linux always does.
        pub ecn: bool,
    }
}

impl Default for Config {
    /// [`Config::new`] for the frames of Ethernet, 1514 bytes.
    fn default() -> Self {
        Self::new(1514)
    }
}

impl Config {
    /// The defaults for frames of `mtu` bytes.
    pub const fn new(mtu: u32) -> Self {
        Self {
            bandwidth: None,
            rtt: Duration::from_millis(100),
            diffserv: DiffServ::DiffServ3,
            isolation: Isolation::TripleIsolate,
            ack_filter: AckFilter::Off,
            overhead: None,
            mpu: 0,
            framing: Cells::None,
            memlimit: None,
            queues: 1,
            sync_time: None,
            variant: cobalt::Variant::Published,
            limit: None,
            mtu,
            ecn: true,
        }
    }

    fn framing(&self) -> Framing {
        Framing {
            overhead: self.overhead.map(|bytes| bytes as u32),
            header: self.mtu.saturating_sub(IP_MTU),
            mpu: self.mpu as u32,
            cells: self.framing,
        }
    }

    /// The memory limit; by default four bandwidth-delay products, at least 4 MiB, at most 10240 frames.
    fn memory_limit(&self) -> u64 {
        const LEAST: u64 = 4 << 20;
        self.memlimit.unwrap_or_else(|| {
            let wanted = self.bandwidth.map_or(u64::MAX, |rate| {
                rate.bytes_in(self.rtt.saturating_mul(4)).max(LEAST)
            });
            wanted.min(PACKETS * u64::from(self.mtu))
        })
    }
}

/// A tin's share of a rate.
fn part(bandwidth: Rate, share: diffserv::Share) -> Rate {
    let part = u128::from(bandwidth.as_bps()) * u128::from(share.of);
    Rate::from_bps(((part / u128::from(share.out_of)) as u64).max(1)).unwrap_or(bandwidth)
}

/// CAKE.
pub struct Cake<P> {
    config: Config,
    framing: Framing,
    memory_limit: u64,
    pool: Pool<P>,
    tins: Vec<Tin>,
    /// The tin served last.
    tin: usize,
    shaper: Option<Shaper>,
}

impl<P: Packet> Cake<P> {
    /// An empty CAKE.
    pub fn new(config: Config) -> Self {
        let tins = (0..config.diffserv.tins()).map(|number| {
            let share = config.diffserv.share(number);
            let rate = config.bandwidth.map(|bandwidth| part(bandwidth, share));
            let Config { mtu, rtt, ecn, .. } = config;
            Tin::new(tin::Config {
                rate,
                quantum: share.quantum,
                cobalt: tin::cobalt_config(rate, mtu, rtt, ecn, config.variant),
                isolation: config.isolation,
                ack_filter: config.ack_filter,
                framing: config.framing(),
            })
        });
        Self {
            config,
            framing: config.framing(),
            memory_limit: config.memory_limit(),
            pool: Pool::new(),
            tins: tins.collect(),
            tin: 0,
            shaper: config.bandwidth.map(Shaper::new),
        }
    }

    /// Shapes to another rate from now on. As in Linux the targets of the tins stay those of the rate at the beginning.
    fn set_bandwidth(&mut self, bandwidth: Rate) {
        if let Some(shaper) = &mut self.shaper {
            shaper.set_rate(bandwidth);
        }
        for (number, tin) in self.tins.iter_mut().enumerate() {
            tin.set_rate(part(bandwidth, self.config.diffserv.share(number)));
        }
    }

    fn is_over_limit(&self) -> bool {
        let memory = self.pool.bytes() + self.pool.packets() * PACKET_MEMORY;
        let over = match self.config.limit {
            Some(Limit::Packets(limit)) => self.pool.packets() > limit,
            Some(Limit::Bytes(limit)) => self.pool.bytes() > limit,
            None => false,
        };
        over || memory > self.memory_limit
    }

    /// Drops the packet at the head of the queue with the most bytes, in any tin.
    fn make_room(&mut self, now: Time, env: &mut Environment<P>) {
        let fattest = self
            .tins
            .iter()
            .enumerate()
            .filter_map(|(tin, state)| state.fattest().map(|(queue, bytes)| (bytes, tin, queue)))
            .max_by_key(|&(bytes, ..)| bytes);
        if let Some((_, tin, queue)) = fattest {
            self.tins[tin].drop_head(queue, &mut self.pool, now, env);
        }
    }

    /// The tin to serve. With a shaper: the highest tin within its share, otherwise the one that will be within its
    /// share first. Without one: by deficit round robin. At least one packet must be queued.
    fn choose_tin(&mut self, now: Time) -> usize {
        if self.shaper.is_none() {
            while self.tins[self.tin].is_overdrawn() || !self.tins[self.tin].is_active() {
                self.tins[self.tin].give_credit();
                self.tin = (self.tin + 1) % self.tins.len();
            }
            return self.tin;
        }
        let mut best = (0, Time::MAX);
        for (number, tin) in self.tins.iter().enumerate() {
            if tin.is_active() && (tin.next() <= now || tin.next() <= best.1) {
                best = (number, tin.next());
            }
        }
        best.0
    }

    /// True if the shaper does not allow a packet to leave yet.
    fn is_held(&self, now: Time) -> bool {
        self.shaper.is_some_and(|shaper| shaper.ready_at() > now)
    }

    fn charge(&mut self, tin: usize, packet: &P, now: Time) {
        let bytes = self.framing.bytes_on_link(packet.bytes());
        self.tins[tin].charge(bytes, now);
        if let Some(shaper) = &mut self.shaper {
            shaper.charge(bytes);
        }
    }
}

impl<P: Packet> Qdisc<P> for Cake<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        if let Some(shaper) = self.shaper.as_mut().filter(|_| self.pool.packets() == 0) {
            shaper.wake(now);
        }
        let tin = self.config.diffserv.tin_of(packet.dscp());
        packet.set_inner_queue(tin as u8);
        self.tins[tin].enqueue(packet, &mut self.pool, now, env);
        while self.is_over_limit() && self.pool.packets() > 0 {
            self.make_room(now, env);
        }
    }

    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        // Per call, only one queue is visited just to let its COBALT decay.
        let mut decaying_first = true;
        while self.pool.packets() > 0 && !self.is_held(now) {
            let tin = self.choose_tin(now);
            let served = self.tins[tin].serve(decaying_first, &mut self.pool, now, env);
            if let Served::Packet(packet) = served {
                self.charge(tin, &packet, now);
                return Some(packet);
            }
            decaying_first = false;
        }
        None
    }

    fn packets(&self) -> u64 {
        self.pool.packets()
    }

    fn bytes(&self) -> u64 {
        self.pool.bytes()
    }

    fn ready_at(&self) -> Option<Time> {
        let shaper = self.shaper.filter(|_| self.pool.packets() > 0);
        shaper.map(|shaper| shaper.ready_at())
    }

    fn inner_queues(&self) -> &'static [&'static str] {
        self.config.diffserv.names()
    }

    fn inner_settings(&self, index: usize) -> Option<InnerSettings> {
        self.tins.get(index).map(Tin::settings)
    }

    /// Reports the numbers of bulk and of sparse flows in all tins.
    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let bulk: u32 = self.tins.iter().map(Tin::bulk_flows).sum();
        let sparse: u32 = self.tins.iter().map(Tin::sparse_flows).sum();
        visit("bulk_flows", f64::from(bulk));
        visit("sparse_flows", f64::from(sparse));
    }
}

fn config(settings: &Settings) -> Result<Config, SettingError> {
    let config = Config::new(settings.mtu).given(settings)?;
    cobalt::require_span("rtt", config.rtt)?;
    for (key, bytes) in [
        ("overhead", config.overhead.unwrap_or(0)),
        ("mpu", config.mpu),
    ] {
        if bytes > 256 {
            let message = format!("got \"{bytes} B\"; must be 0 B to 256 B");
            return Err(SettingError::new(key, message));
        }
    }
    if !(1..=MOST_QUEUES).contains(&config.queues) {
        let message = format!(
            "got {}; must be a whole number from 1 to {MOST_QUEUES}",
            config.queues
        );
        return Err(SettingError::new("queues", message));
    }
    let least = u64::from(settings.mtu) + PACKET_MEMORY;
    if let Some(bytes) = config.memlimit.filter(|bytes| *bytes < least) {
        let message =
            format!("got \"{bytes} B\"; must be \"{least} B\" or more, which a frame takes");
        return Err(SettingError::new("memlimit", message));
    }
    if config.sync_time.is_some() && config.queues == 1 {
        let message = "has no effect with one queue";
        return Err(SettingError::new("sync_time", message));
    }
    let sync_time = config.sync_time.unwrap_or(hardware_queues::SYNC_TIME);
    let config = Config {
        sync_time: (config.queues > 1).then_some(sync_time),
        memlimit: Some(config.memory_limit()),
        limit: settings.limit.map(|limit| settings.limit_or(limit)),
        ecn: settings.ecn_or(config.ecn)?,
        ..config
    };
    config.note(settings);
    Ok(config)
}

/// `cake`.
pub fn cake<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "cake",
        summary: "shaper, tins, flow and host fairness, COBALT and ACK filter in one",
        source: "Høiland-Jørgensen, Täht and Morton 2018; tc-cake(8)",
        keys: Box::new(|| Config::new(0).keys()),
        make: Box::new(|settings| {
            let config = config(settings)?;
            Ok(match config.sync_time {
                Some(sync_time) => Box::new(HardwareQueues::new(config, config.queues, sync_time)),
                None => Box::new(Cake::new(config)),
            })
        }),
    }
}

#[cfg(test)]
mod tests;
