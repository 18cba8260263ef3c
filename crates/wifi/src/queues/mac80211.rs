//! Linux's mac80211 since 4.10: a queue per station and user priority (TID), each with flow queueing and CoDel (`fq`); turns or airtime
//! fairness between stations (`schedule`); and a limit of the airtime handed to the device (`aql`).
//!
//! Source: the documentation and commit messages of the kernel, and decisions that a Linux 7.3 took (`kernel`). Departures:
//! there is no broadcast; and Linux 5.14 to 5.19 has the order of 5.13, where the kernel ordered stations by virtual time.

mod aql;
mod fq;
#[cfg(test)]
mod kernel;
mod schedule;

use alloc::boxed::Box;
use alloc::vec::Vec;

use sojourn_aqm::Environment;
use sojourn_path::link::BoxedQdisc;
use sojourn_units::{Duration, Time};

use crate::access::Access;
use crate::packet::Packet;
use crate::phy::Mode;
use crate::queues::{Frame, MakeQdisc, PRIORITIES, Peer, peer_of, priorities_of, queue_of};
use aql::Aql;
use fq::Fq;
use schedule::{Rules, Schedule};

pub use aql::AqlLimits;
pub use fq::{Amsdu, FqSettings};

/// What differs between kernels and drivers. [`Settings::of_kernel`] sets it by the version.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// Flow queueing and CoDel.
    pub fq: FqSettings,
    /// The quantum of airtime that a station gets per round. `None`: stations take turns, one transmission each.
    pub airtime_quantum: Option<Duration>,
    /// How long after it last had a turn or became active a station is charged airtime, and kept in the order without
    /// packets while it owes airtime; `None`: charged always, kept never.
    pub active_for: Option<Duration>,
    /// Whether frames received from a station are charged to its airtime.
    pub charge_received: bool,
    /// The airtime that the device may hold; `None`: without AQL.
    pub aql: Option<AqlLimits>,
    /// A station has [`FqSettings::slow_codel`] if its expected rate is below this one times the number of stations.
    pub slow_below_bps: Option<u64>,
    /// Transmissions that the device holds, per category; at least 1. ath9k holds two: one on the air and one ready.
    pub ready: usize,
}

impl Settings {
    /// The settings of this kernel version, with ath9k below it.
    ///
    /// | since | what |
    /// | --- | --- |
    /// | 4.10 | FQ-CoDel in mac80211; stations take turns |
    /// | 4.11 | airtime fairness in ath9k, 300 µs per round (`ATH_AIRTIME_QUANTUM` in ath9k.h of 4.14) |
    /// | 4.12 | 50 ms and 300 ms for stations expected below 6 Mbit/s times the number of stations, until 6.16, and until a release of 6.12 before 6.12.117 |
    /// | 5.1 | airtime fairness in mac80211, 256 µs per round |
    /// | 5.5 | AQL: 5 ms and 12 ms per queue, 24 ms per radio |
    /// | 6.0 | AQL's airtime counts as used, and has a limit per category; stations stay in the order for 100 ms |
    /// | 7.3 | fractions of microseconds count in AQL's estimate |
    pub fn of_kernel(major: u32, minor: u32) -> Self {
        let version = (major, minor);
        Self {
            fq: FqSettings::LINUX,
            airtime_quantum: (version >= (4, 11)).then_some(if version >= (5, 1) {
                Duration::from_micros(256)
            } else {
                Duration::from_micros(300)
            }),
            active_for: (version >= (6, 0)).then_some(Duration::from_millis(100)),
            charge_received: true,
            aql: (version >= (5, 5)).then_some(if version >= (7, 3) {
                AqlLimits::LINUX_7_3
            } else if version >= (6, 0) {
                AqlLimits::LINUX
            } else {
                AqlLimits::LINUX_5_5
            }),
            slow_below_bps: ((4, 12)..(6, 16)).contains(&version).then_some(6_000_000),
            ready: 2,
        }
    }
}

/// The queues that hold the packets.
enum Store<P> {
    /// mac80211's own flow queues.
    Fq(Box<Fq<P>>),
    /// A discipline per station and user priority.
    Own(Vec<BoxedQdisc<P>>),
}

pub(crate) struct Mac80211<P> {
    settings: Settings,
    store: Store<P>,
    schedule: Schedule,
    aql: Option<Aql>,
    /// A frame that was dequeued and did not fit into the transmission, by queue. It is sent first.
    put_back: Vec<Option<Frame<P>>>,
    stations: usize,
    packets_put_back: u64,
    timer: Time,
}

impl<P: Packet> Mac80211<P> {
    pub(crate) fn new(settings: Settings, make: Option<MakeQdisc<P>>, stations: usize) -> Self {
        let queues = stations * PRIORITIES;
        let mut new = Self {
            settings,
            store: match make {
                None => Store::Fq(Box::new(Fq::new(settings.fq, queues))),
                Some(mut make) => Store::Own((0..queues).map(|_| make()).collect()),
            },
            schedule: Schedule::new(
                Rules {
                    quantum: settings.airtime_quantum.or(settings
                        .aql
                        .is_some_and(|aql| aql.orders)
                        .then_some(Duration::from_micros(256))),
                    is_fair: settings.airtime_quantum.is_some(),
                    active: settings.active_for,
                },
                queues,
            ),
            aql: settings.aql.map(|limits| Aql::new(limits, queues)),
            put_back: (0..queues).map(|_| None).collect(),
            stations,
            packets_put_back: 0,
            timer: Time::MAX,
        };
        new.find_timer();
        new
    }

    /// Sets the hashes of flows by their source.
    #[cfg(test)]
    fn hash_as(&mut self, hashes: alloc::collections::BTreeMap<u32, u32>) {
        if let Store::Fq(fq) = &mut self.store {
            fq.hashes = hashes;
        }
    }

    /// Queued frames.
    #[cfg(test)]
    fn frames(&self) -> u64 {
        match &self.store {
            Store::Fq(fq) => fq.frames(),
            Store::Own(_) => self.packets(),
        }
    }

    /// Sets what limits the A-MSDUs of a queue.
    #[cfg(test)]
    fn limit_amsdu_of(&mut self, at: usize, limits: Amsdu) {
        if let Store::Fq(fq) = &mut self.store {
            fq.limit_amsdu(at, limits);
        }
    }

    /// Queues a packet. False if it has joined a frame that waits already, of which the kernel does not tell the driver.
    pub(crate) fn enqueue(
        &mut self,
        packet: P,
        peer: Peer,
        now: Time,
        env: &mut Environment<P>,
    ) -> bool {
        let at = queue_of(peer);
        match &mut self.store {
            Store::Fq(fq) => {
                if !fq.enqueue(at, packet, now, env) {
                    return false;
                }
            }
            Store::Own(qdiscs) => qdiscs[at].enqueue(packet, now, env),
        }
        self.note_timer(at);
        if self.has_packets(at) {
            self.schedule.activate(at, now);
        }
        true
    }

    pub(crate) fn next_peer(
        &mut self,
        access: Access,
        can_send: impl Fn(Peer) -> bool,
        has_retransmission: impl Fn(Peer) -> bool,
    ) -> Option<Peer> {
        let aql = self.aql.as_ref();
        let listed = self.schedule.listed(access);
        let is_full = aql.is_some_and(|aql| !aql.allows_category(access, listed));
        let any_retransmission = || {
            let peers = |station| priorities_of(access).map(|priority| (station, priority));
            (0..self.stations).flat_map(peers).any(&has_retransmission)
        };
        if is_full && !any_retransmission() {
            self.schedule.skip_round(access);
            return None;
        }
        let within = |at: usize| {
            (!is_full && aql.is_none_or(|aql| aql.allows(at))) || has_retransmission(peer_of(at))
        };
        let allowed = |at: usize| can_send(peer_of(at)) && within(at);
        let pending = |at: usize| aql.map_or(Duration::ZERO, |aql| aql.charged(at));
        let next = self.schedule.next(access, allowed, pending);
        let is_idle = aql.is_some_and(|aql| aql.is_empty(access));
        let next = if is_idle && self.schedule.has_lost_round() {
            // No end of a transmission would ask again.
            self.schedule.next(access, allowed, pending)
        } else {
            next
        };
        next.map(peer_of)
    }

    pub(crate) fn dequeue(
        &mut self,
        peer: Peer,
        mode: Mode,
        fits: impl Fn(u32) -> bool,
        now: Time,
        env: &mut Environment<P>,
        mut left: impl FnMut(&P),
    ) -> Option<Frame<P>> {
        let at = queue_of(peer);
        if self.aql.as_ref().is_some_and(|aql| !aql.allows(at)) {
            return None;
        }
        let mut frame = if let Some(frame) = self.put_back[at].take() {
            self.packets_put_back -= frame.packets();
            frame
        } else {
            let frame = match &mut self.store {
                Store::Fq(fq) => fq.dequeue(at, now, env),
                Store::Own(qdiscs) => qdiscs[at].dequeue(now, env).map(Frame::of),
            };
            self.note_timer(at);
            let frame = frame?;
            left(&frame.packet);
            frame.more.iter().for_each(left);
            frame
        };
        if !fits(frame.bytes) {
            self.packets_put_back += frame.packets();
            self.put_back[at] = Some(frame);
            return None;
        }
        if let Some(aql) = &mut self.aql {
            frame.estimate = aql.take(at, self.settings.fq.frame(frame.bytes), mode);
        }
        Some(frame)
    }

    pub(crate) fn activate(&mut self, peer: Peer, now: Time) {
        self.schedule.activate(queue_of(peer), now);
    }

    pub(crate) fn end_turn(&mut self, peer: Peer, more: bool, now: Time) {
        let at = queue_of(peer);
        let more = more || self.has_packets(at);
        let pending = self.aql.as_ref().map(|aql| aql.charged(at));
        self.schedule
            .end_turn(at, more, pending.unwrap_or(Duration::ZERO), now);
    }

    pub(crate) fn release(&mut self, peer: Peer, estimate: u32) {
        if let Some(aql) = &mut self.aql {
            aql.release(queue_of(peer), estimate);
        }
    }

    pub(crate) fn charge(&mut self, peer: Peer, airtime: Duration, received: bool, now: Time) {
        if !received || self.settings.charge_received {
            self.schedule.charge(queue_of(peer), airtime, now);
        }
    }

    pub(crate) fn note_rate(&mut self, peer: usize, expected_bps: u64) {
        let (Some(each), Store::Fq(fq)) = (self.settings.slow_below_bps, &mut self.store) else {
            return;
        };
        let slow = expected_bps > 0 && expected_bps < each * self.stations as u64;
        for at in peer * PRIORITIES..(peer + 1) * PRIORITIES {
            fq.set_slow(at, slow);
        }
    }

    pub(crate) fn limit_amsdu(&mut self, peer: usize, most_bytes: u32) {
        let (Some(limits), Store::Fq(fq)) = (self.settings.fq.amsdu, &mut self.store) else {
            return;
        };
        let bytes = limits.bytes.min(most_bytes);
        for at in peer * PRIORITIES..(peer + 1) * PRIORITIES {
            fq.limit_amsdu(at, Amsdu { bytes, ..limits });
        }
    }

    /// Whether A-MSDUs form as packets enter.
    pub(crate) const fn forms_amsdus(&self) -> bool {
        self.settings.fq.amsdu.is_some() && matches!(self.store, Store::Fq(_))
    }

    pub(crate) fn ready_ahead(&self) -> usize {
        self.settings.ready.max(1)
    }

    fn has_packets(&self, at: usize) -> bool {
        let stored = match &self.store {
            Store::Fq(fq) => fq.packets_of(at),
            Store::Own(qdiscs) => qdiscs[at].packets(),
        };
        stored > 0 || self.put_back[at].is_some()
    }

    pub(crate) fn packets(&self) -> u64 {
        let stored = match &self.store {
            Store::Fq(fq) => fq.packets(),
            Store::Own(qdiscs) => qdiscs.iter().map(|qdisc| qdisc.packets()).sum(),
        };
        stored + self.packets_put_back
    }

    fn note_timer(&mut self, at: usize) {
        if let Store::Own(qdiscs) = &self.store {
            self.timer = self.timer.min(qdiscs[at].next_timer().unwrap_or(Time::MAX));
        }
    }

    fn find_timer(&mut self) {
        if let Store::Own(qdiscs) = &self.store {
            let timers = qdiscs.iter().filter_map(|qdisc| qdisc.next_timer());
            self.timer = timers.min().unwrap_or(Time::MAX);
        }
    }

    pub(crate) const fn next_timer(&self) -> Time {
        self.timer
    }

    pub(crate) fn on_timer(&mut self, now: Time, env: &mut Environment<P>) {
        if let Store::Own(qdiscs) = &mut self.store {
            for qdisc in qdiscs {
                if qdisc.next_timer().is_some_and(|timer| timer <= now) {
                    qdisc.on_timer(now, env);
                }
            }
        }
        self.find_timer();
    }
}
