//! The bottleneck in one direction: a discipline, and a shaper that lets packets go at the link's rate.
//!
//! When a packet may go is for the [`Shaper`] to say; a burst of zero is a serial line. A packet's sojourn ends when it
//! leaves the discipline; the time on the wire is part of the base RTT.
//!
//! A serial line that has become free asks its discipline for a packet even if there is none, as a network device
//! does; a shaper does not, as Linux's HTB does not ask an inactive class. Disciplines that note idle times
//! when they are asked in vain (Linux's RED) thus see them on a line and not below a shaper.

use std::collections::VecDeque;

use sojourn_aqm::{Environment, Packet, Qdisc};
use sojourn_experiment::model::Capacity;
use sojourn_units::{Duration, Time};

use crate::packet::SimPacket;
use crate::probe::LinkProbe;
use crate::shaper::Shaper;

/// A discipline that the simulator can own.
pub type BoxedQdisc = Box<dyn Qdisc<SimPacket> + Send>;

/// What a link is built from.
pub struct Config {
    /// What it can carry.
    pub capacity: Capacity,
    /// Bytes it may send ahead of its rate after an idle time.
    pub burst: u64,
    /// Bytes that a packet takes beyond its IP length.
    pub overhead: u32,
    /// Packets in the unmanaged FIFO below the discipline.
    pub device_queue: u64,
    /// From when to when [`Link::utilization`] counts.
    pub steady: (Duration, Duration),
    /// Seed of the discipline's random stream.
    pub seed: u64,
}

/// One direction of the bottleneck.
pub struct Link {
    qdisc: BoxedQdisc,
    environment: Environment<SimPacket>,
    shaper: Shaper,
    device: VecDeque<SimPacket>,
    device_limit: usize,
    /// A packet that left when it came, on its way out.
    departed: Option<SimPacket>,
    /// Packets given up, to be used again.
    lost: Vec<SimPacket>,
    wake: Time,
    /// When the discipline wants to act, as it last said.
    timer: Time,
    /// What is measured here.
    pub probe: LinkProbe,
}

impl Link {
    /// An idle link.
    pub fn new(qdisc: BoxedQdisc, config: Config, mut probe: LinkProbe) -> Self {
        probe.tell_apart(qdisc.inner_queues());
        Self {
            qdisc,
            environment: Environment::new(config.seed),
            shaper: Shaper::new(
                &config.capacity,
                config.burst,
                config.overhead,
                config.steady,
            ),
            device: VecDeque::new(),
            device_limit: config.device_queue as usize,
            departed: None,
            lost: Vec::new(),
            wake: Time::MAX,
            timer: Time::MAX,
            probe,
        }
    }

    /// When [`Link::serve`] is to be called; [`Time::MAX`]: not before another packet arrives.
    pub const fn wake(&self) -> Time {
        self.wake
    }

    /// When [`Link::serve`] or [`Link::on_timer`] is due.
    pub fn due(&self) -> Time {
        self.wake.min(self.timer)
    }

    /// Asks the discipline for its timer, and returns [`Link::due`].
    pub fn note_timer(&mut self) -> Time {
        self.timer = self.qdisc.next_timer().unwrap_or(Time::MAX);
        self.due()
    }

    /// Lets the discipline act.
    pub fn on_timer(&mut self, now: Time) {
        self.qdisc.on_timer(now, &mut self.environment);
        self.note_drops(now);
    }

    /// The discipline, for its backlog and state.
    pub fn qdisc(&self) -> &dyn Qdisc<SimPacket> {
        &*self.qdisc
    }

    /// The share of the steady time's capacity that was used, 0 to 1.
    pub fn utilization(&self) -> f64 {
        self.shaper.utilization()
    }

    /// Marks made so far.
    pub const fn marked(&self) -> u64 {
        self.environment.marked()
    }

    /// A packet arrives.
    pub fn enqueue(&mut self, packet: SimPacket, now: Time) {
        self.probe.on_arrival(&packet);
        self.qdisc.enqueue(packet, now, &mut self.environment);
        self.note_drops(now);
        if self.wake == Time::MAX {
            self.leave_at_once(now);
        } else if self.device_limit > 0 {
            self.fill_device(now);
        }
    }

    /// The link was idle: what has come may go.
    #[cold]
    #[inline(never)]
    fn leave_at_once(&mut self, now: Time) {
        self.departed = self.advance(now);
        if self.departed.is_some() {
            self.wake = now;
        }
    }

    /// The next packet that leaves at `now`. To be called until `None` once [`Link::wake`] is reached.
    pub fn serve(&mut self, now: Time) -> Option<SimPacket> {
        while self.wake <= now {
            if self.departed.is_some() {
                self.wake = self.next_wake(now);
                return self.departed.take();
            }
            if let Some(packet) = self.advance(now) {
                return Some(packet);
            } // else it has set another wake-up
        }
        None
    }

    /// Packets given up since the last call.
    pub fn take_lost(&mut self) -> std::vec::Drain<'_, SimPacket> {
        self.lost.drain(..)
    }

    /// True if [`Link::take_lost`] would return some.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Lets one packet go if the shaper allows, and sets the next wake-up.
    #[inline(always)]
    fn advance(&mut self, now: Time) -> Option<SimPacket> {
        if now < self.shaper.free_at(now) {
            self.wake = self.next_wake(now);
            return None;
        }
        let packet = if self.shaper.is_line() || self.has_packets() {
            self.take(now)
        } else {
            None
        };
        let Some(packet) = packet else {
            self.wake = if self.has_packets() {
                self.next_wake(now)
            } else {
                Time::MAX
            };
            return None;
        };
        self.shaper.charge(packet.bytes, now);
        self.wake = self.next_wake(now);
        Some(packet)
    }

    fn has_packets(&self) -> bool {
        self.qdisc.packets() > 0 || !self.device.is_empty()
    }

    /// When there is something to do next.
    #[inline(always)]
    fn next_wake(&mut self, now: Time) -> Time {
        if !self.shaper.is_line() && !self.has_packets() {
            return Time::MAX;
        }
        let free = self.shaper.free_at(now);
        match self.qdisc.ready_at() {
            Some(ready) if self.device.is_empty() => free.max(ready),
            _ => free,
        }
    }

    /// The packet that goes onto the wire next.
    #[inline(always)]
    fn take(&mut self, now: Time) -> Option<SimPacket> {
        if self.device_limit == 0 {
            return self.dequeue(now);
        }
        self.fill_device(now);
        let packet = self.device.pop_front();
        self.fill_device(now);
        packet
    }

    #[cold]
    #[inline(never)]
    fn fill_device(&mut self, now: Time) {
        while self.device.len() < self.device_limit {
            let Some(packet) = self.dequeue(now) else {
                break;
            };
            self.device.push_back(packet);
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time) -> Option<SimPacket> {
        let packet = self.qdisc.dequeue(now, &mut self.environment);
        self.note_drops(now);
        if let Some(packet) = &packet {
            self.probe.on_departure(packet, now);
        }
        packet
    }

    #[inline]
    fn note_drops(&mut self, now: Time) {
        if self.environment.has_dropped() {
            self.take_drops(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn take_drops(&mut self, now: Time) {
        let backlog = self.shaper.rate().tx_time(self.qdisc.bytes());
        for (packet, reason) in self.environment.take_dropped() {
            let sojourn = now - packet.enqueued();
            let queued = if sojourn.is_zero() { backlog } else { sojourn };
            self.probe.on_drop(&packet, reason, queued, now);
            self.lost.push(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Membership;
    use sojourn_aqm::fifo::DropTail;
    use sojourn_aqm::{Limit, Single};
    use sojourn_experiment::loss_events::Population;
    use sojourn_units::Rate;

    fn packet(flow: u32) -> SimPacket {
        let of = Membership {
            flow,
            group: 0,
            connection: 0,
            dscp: 0,
            returning: false,
        };
        SimPacket::datagram(of, 1250) // 1 ms at 10 Mbit/s
    }

    fn link(burst: u64, device_queue: u64, rate: Vec<(Duration, Rate)>) -> Link {
        let qdisc = Box::new(Single::new(DropTail, Limit::Packets(100)));
        let config = Config {
            capacity: Capacity::Steps(rate),
            burst,
            overhead: 14,
            device_queue,
            steady: (Duration::ZERO, Duration::MAX),
            seed: 1,
        };
        let probe = LinkProbe::new(Time::ZERO, false, Population::of(10));
        Link::new(qdisc, config, probe)
    }

    /// The instants, in ms, at which ten packets that arrive together at 100 ms leave.
    fn departures(mut link: Link) -> Vec<u64> {
        for n in 0..10 {
            link.enqueue(packet(n), Time::from_millis(100));
        }
        let mut left = Vec::new();
        while link.wake() < Time::MAX {
            let now = link.wake();
            while let Some(packet) = link.serve(now) {
                assert_eq!(packet.flow as usize, left.len(), "first in, first out");
                left.push(now.as_nanos() / 1_000_000);
            }
        }
        left
    }

    fn ten_megabit() -> Vec<(Duration, Rate)> {
        vec![(Duration::ZERO, Rate::from_mbps(10))]
    }

    #[test]
    fn a_serial_line_sends_a_packet_per_transmission_time() {
        assert_eq!(
            departures(link(0, 0, ten_megabit())),
            (100..110).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_burst_of_one_packet_lets_two_go_at_once() {
        let expected = [100, 100, 101, 102, 103, 104, 105, 106, 107, 108];
        assert_eq!(departures(link(1250, 0, ten_megabit())), expected);
    }

    #[test]
    fn a_device_queue_does_not_change_when_packets_leave_the_link() {
        assert_eq!(
            departures(link(0, 3, ten_megabit())),
            (100..110).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_new_rate_holds_from_its_instant() {
        let rate = vec![
            (Duration::ZERO, Rate::from_mbps(10)),
            (Duration::from_millis(105), Rate::from_mbps(5)),
        ];
        assert_eq!(
            departures(link(0, 0, rate)),
            [100, 101, 102, 103, 104, 105, 107, 109, 111, 113]
        );
    }
}
