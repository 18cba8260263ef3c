//! What happened to packets on a path.

use alloc::collections::VecDeque;

use sojourn_aqm::{DropReason, Ecn, FlowKey};
use sojourn_units::{Duration, Time, Way};

use super::Carried;
use crate::observer::Observer;

/// What happened to a packet, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Event {
    /// When, since the path's beginning.
    pub at: core::time::Duration,
    /// The packet's direction.
    pub way: Way,
    /// What [`crate::Path::send`] returned for the packet.
    pub number: u64,
    /// The packet's flow.
    pub flow: FlowKey,
    /// What happened.
    pub verdict: Verdict,
}

/// What happened to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// It came to the link's queue.
    Arrived,
    /// It leaves the queue with a mark that it came without. [`Verdict::Left`] follows.
    Marked,
    /// The discipline dropped it.
    Dropped {
        /// Why.
        reason: DropReason,
    },
    /// It left the queue.
    Left {
        /// The time that it spent there.
        sojourn: core::time::Duration,
    },
    /// It was lost in propagation; if it was damaged there, at its receiver.
    Lost,
    /// A copy of it was made in propagation.
    Duplicated,
}

/// Packets of a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Sent.
    pub sent: u64,
    /// Delivered, whether or not [`crate::Path::poll`] has returned them.
    pub delivered: u64,
    /// Dropped by the link's discipline.
    pub dropped: u64,
    /// Marked by it.
    pub marked: u64,
    /// Lost in propagation, damaged ones included.
    pub lost: u64,
    /// Copies made in propagation.
    pub duplicated: u64,
}

/// Counts packets, and keeps what happened to them.
pub(super) struct Watch {
    pub counts: [Counts; 2],
    pub events: VecDeque<Event>,
    /// The most events that it keeps.
    pub keep: usize,
}

impl Watch {
    pub const fn new(keep: usize) -> Self {
        Self {
            counts: [Counts {
                sent: 0,
                delivered: 0,
                dropped: 0,
                marked: 0,
                lost: 0,
                duplicated: 0,
            }; 2],
            events: VecDeque::new(),
            keep,
        }
    }

    pub fn on_send(&mut self, way: Way) {
        self.counts[way as usize].sent += 1;
    }

    pub fn on_delivery(&mut self, way: Way) {
        self.counts[way as usize].delivered += 1;
    }

    fn tell<T>(&mut self, packet: &Carried<T>, now: Time, verdict: Verdict) {
        if self.events.len() >= self.keep {
            self.events.pop_front();
        }
        if self.keep > 0 {
            self.events.push_back(Event {
                at: now.into(),
                way: packet.payload.way,
                number: packet.payload.number,
                flow: packet.flow,
                verdict,
            });
        }
    }
}

impl<T> Observer<Carried<T>> for Watch {
    fn on_arrival(&mut self, _: usize, packet: &Carried<T>, now: Time) {
        self.tell(packet, now, Verdict::Arrived);
    }

    fn on_dequeue(&mut self, _: usize, packet: &mut Carried<T>, now: Time) {
        if packet.ecn == Ecn::Ce && packet.payload.ecn != Ecn::Ce {
            self.counts[packet.payload.way as usize].marked += 1;
            self.tell(packet, now, Verdict::Marked);
        }
        packet.payload.sojourn = now - packet.enqueued;
        let sojourn = packet.payload.sojourn.into();
        self.tell(packet, now, Verdict::Left { sojourn });
    }

    fn on_drop(
        &mut self,
        _: usize,
        packet: Carried<T>,
        reason: DropReason,
        _: Duration,
        now: Time,
    ) {
        self.counts[packet.payload.way as usize].dropped += 1;
        self.tell(&packet, now, Verdict::Dropped { reason });
    }

    fn on_loss(&mut self, _: usize, packet: Carried<T>, now: Time) {
        self.counts[packet.payload.way as usize].lost += 1;
        self.tell(&packet, now, Verdict::Lost);
    }

    fn on_duplicate(&mut self, _: usize, copy: &Carried<T>, now: Time) {
        self.counts[copy.payload.way as usize].duplicated += 1;
        self.tell(copy, now, Verdict::Duplicated);
    }
}
