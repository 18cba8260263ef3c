//! A direction of a video call: frames in packets, reports of the receiver, a rate that follows them.

use std::collections::VecDeque;

use sojourn_aqm::Ecn;
use sojourn_experiment::derived::UDP_HEADERS;
use sojourn_experiment::model::{Call as Config, Kind};
use sojourn_measure::meter::Meter;
use sojourn_traffic::gcc::{Gcc, Report};
use sojourn_traffic::{CALL_PACKET, Jitter, Side};
use sojourn_units::{Duration, Rate, Time};

use super::Identity;
use crate::network::{self, Network};
use crate::packet::{self, SimPacket};

/// Time between reports, and the bytes of a report without those per packet, and per packet (RFC 8888, section 3.1).
const REPORT_EVERY: Duration = Duration::from_millis(100);
const REPORT_BYTES: (u32, u32) = (24, 2);
/// The packets of a frame leave at so many times the media rate, as WebRTC's pacer sends them.
const PACING: f64 = 2.5;
/// A freeze is a frame that is later than this after the one before, and than three intervals (W3C webrtc-stats, freezeCount).
const FREEZE: Duration = Duration::from_millis(150);

/// A packet that was sent, by its number from `first` on.
struct Sent {
    at: Time,
    bytes: u32,
    frame: u32,
    /// When its frame was taken.
    taken: Time,
    arrived: Option<Time>,
    /// It is the last of its frame, of so many.
    ends: Option<u32>,
}

/// Both ends of a direction of a call.
pub struct Call {
    identity: Identity,
    config: Config,
    gcc: Gcc,
    meter: Box<Meter>,
    jitter: Jitter,
    // The sender.
    frames: u32,
    /// When the next frame is taken, and when it is sent.
    due: Time,
    frame_at: Time,
    /// The packets of frames that wait to be paced, by their sizes, each with its frame, when that was taken, and its index at
    /// the end.
    waiting: VecDeque<(u32, u32, Time, Option<u32>)>,
    next_packet: Time,
    sent: VecDeque<Sent>,
    first: u32,
    // The receiver.
    report_at: Time,
    /// Reports on their way, by number.
    reports: VecDeque<(u32, Vec<Report>)>,
    report: u32,
    highest: u32,
    /// Packets of the frame that is arriving.
    arriving: (u32, u32),
    shown: Option<Time>,
    rtt: Duration,
}

impl Call {
    /// A new flow; `None` if the kind is another.
    pub fn new(identity: Identity, kind: &Kind, seed: u64) -> Option<Self> {
        let Kind::Call(config) = kind else {
            return None;
        };
        let bps = |rate: Rate| rate.as_bps() as f64;
        let mut jitter = Jitter::new(identity.jitter, identity.flow, seed);
        Some(Self {
            gcc: Gcc::new(
                bps(config.first_rate),
                (bps(config.rates.0), bps(config.rates.1)),
            ),
            config: *config,
            meter: Box::new(Meter::new(&identity.measures)),
            frames: 0,
            due: identity.start,
            frame_at: jitter.late(identity.start),
            jitter,
            waiting: VecDeque::new(),
            next_packet: Time::MAX,
            sent: VecDeque::new(),
            first: 0,
            report_at: Time::MAX,
            reports: VecDeque::new(),
            report: 0,
            highest: 0,
            arriving: (0, 0),
            shown: None,
            rtt: Duration::from_millis(100),
            identity,
        })
    }

    /// When its hosts need a call.
    pub fn next_timers(&self) -> [Time; 2] {
        let frame = match self.frame_at < self.identity.stop {
            true => self.frame_at,
            false => Time::MAX,
        };
        [frame.min(self.next_packet), self.report_at]
    }

    /// Takes a frame, sends the packets that are due, or a report.
    pub fn on_timer(&mut self, side: Side, now: Time, network: &mut Network) {
        if side == Side::Receiving {
            return self.send_report(now, network);
        }
        if self.frame_at <= now && self.frame_at < self.identity.stop {
            self.take_frame(now);
        }
        while self.next_packet <= now {
            self.send_packet(now, network);
        }
    }

    fn take_frame(&mut self, now: Time) {
        let frame = self.frames;
        self.frames += 1;
        let bytes = self.gcc.rate() / 8.0 / f64::from(self.config.frames);
        let bytes = (bytes as u32).max(1);
        let packets = bytes.div_ceil(CALL_PACKET);
        for number in 0..packets {
            let share = bytes / packets + u32::from(number < bytes % packets);
            let ends = (number + 1 == packets).then_some(packets);
            self.waiting.push_back((share, frame, now, ends));
        }
        self.due += self.config.frame();
        self.frame_at = self.jitter.late(self.due);
        if self.next_packet == Time::MAX {
            self.next_packet = now;
        }
    }

    fn send_packet(&mut self, now: Time, network: &mut Network) {
        let Some((bytes, frame, taken, ends)) = self.waiting.pop_front() else {
            self.next_packet = Time::MAX;
            return;
        };
        let number = self.first + self.sent.len() as u32;
        self.sent.push_back(Sent {
            at: now,
            bytes,
            frame,
            taken,
            arrived: None,
            ends,
        });
        self.meter.sent += u64::from(bytes);
        self.meter.record_departure();
        self.transmit(number, bytes, false, now, network);
        self.next_packet = match self.waiting.is_empty() {
            true => Time::MAX,
            false => {
                now + Duration::from_secs_f64(f64::from(bytes) * 8.0 / (PACING * self.gcc.rate()))
            }
        };
    }

    fn transmit(
        &self,
        number: u32,
        payload: u32,
        returning: bool,
        now: Time,
        network: &mut Network,
    ) {
        let bytes = payload + UDP_HEADERS + self.identity.overhead;
        let of = self.identity.membership(0, returning);
        let mut packet = network.observer.packets.take();
        packet.address(of, packet::Kind::Datagram, bytes, Ecn::NotEct, now);
        packet.number = number;
        packet.sent_at = now;
        let route = self.identity.routes[usize::from(returning)];
        network::send(network, packet, route, now);
    }

    /// Handles a packet of media or a report.
    pub fn on_packet(&mut self, packet: &SimPacket, now: Time) {
        if packet.is_copy() {
            return;
        }
        if packet.returning {
            self.on_report(packet.number, now);
        } else {
            self.on_media(packet, now);
        }
    }

    fn on_media(&mut self, packet: &SimPacket, now: Time) {
        let number = packet.number;
        if self.report_at == Time::MAX {
            self.report_at = now + REPORT_EVERY;
        }
        let Some(sent) = number
            .checked_sub(self.first)
            .and_then(|index| self.sent.get_mut(index as usize))
        else {
            return; // reported as lost already
        };
        sent.arrived = Some(now);
        self.highest = self.highest.max(number + 1);
        self.meter.received += u64::from(sent.bytes);
        self.meter.record_datagram(number, now - sent.at, now);
        let (frame, taken, ends) = (sent.frame, sent.taken, sent.ends);
        if frame != self.arriving.0 {
            self.arriving = (frame, 0);
        }
        self.arriving.1 += 1;
        if ends == Some(self.arriving.1) {
            self.meter.frame_arrived(now - taken, now);
            self.show(now);
        }
    }

    /// A frame is complete. One that has lost a packet is not shown.
    fn show(&mut self, now: Time) {
        let usual = self.config.frame();
        let waited = self.shown.map_or(usual, |last| now - last);
        let is_freeze = waited > usual.saturating_mul(3).max(usual + FREEZE);
        if self.shown.replace(now).is_none() {
            self.meter.playing_began(now - self.identity.start);
        }
        let frozen = match is_freeze {
            true => waited.saturating_sub(usual),
            false => Duration::ZERO,
        };
        if let Some(rate) = Rate::from_bps(self.gcc.rate() as u64) {
            self.meter.segment(rate, frozen);
        }
    }

    fn send_report(&mut self, now: Time, network: &mut Network) {
        self.report_at = now + REPORT_EVERY;
        let (from, to) = (self.first, self.highest);
        if from >= to {
            return;
        }
        let of = |number: u32| {
            let sent = &self.sent[(number - self.first) as usize];
            Report {
                sent: sent.at,
                arrived: sent.arrived,
                bytes: sent.bytes,
            }
        };
        let reports: Vec<Report> = (from..to).map(of).collect();
        let payload = REPORT_BYTES.0 + REPORT_BYTES.1 * reports.len() as u32;
        self.sent.drain(..(to - self.first) as usize);
        self.first = to;
        let number = self.report;
        self.report += 1;
        self.reports.push_back((number, reports));
        self.transmit(number, payload, true, now, network);
    }

    fn on_report(&mut self, number: u32, now: Time) {
        // Reports before this one are lost.
        while let Some((this, reports)) = self.reports.pop_front() {
            if this < number {
                continue;
            }
            if let Some(last) = reports.iter().rev().find(|report| report.arrived.is_some()) {
                self.rtt = now - last.sent;
            }
            return self.gcc.on_feedback(&reports, self.rtt, now);
        }
    }

    /// The flow's meter, alone.
    pub fn into_meter(self) -> Box<Meter> {
        self.meter
    }

    /// The flow's meter.
    pub const fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }
}
