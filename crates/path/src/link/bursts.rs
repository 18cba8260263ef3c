//! Packets of a burst at a link: as far as its discipline takes them, they are one object, which stays at the link until the last
//! of them leaves. Each leaves, and is decided about, at its own time.

use sojourn_aqm::{DropReason, Packet};
use sojourn_units::Time;

use super::Link;
use crate::observer::Observer;

impl<P: Packet> Link<P> {
    /// True if it is plain, and its discipline takes bursts.
    pub(crate) const fn takes_bursts(&self) -> bool {
        self.takes_bursts
    }

    /// True if [`Link::enqueue_burst`] may be called with this burst, provided that the observer allows it.
    #[inline(always)]
    pub(crate) fn takes(&mut self, burst: &P, now: Time) -> bool {
        self.takes_bursts && !self.may_send(now) && !burst.ecn().is_capable()
    }

    /// True if a packet that arrives now may leave at once. If others of this instant wait to be served, only the shaper decides.
    #[inline(always)]
    fn may_send(&mut self, now: Time) -> bool {
        self.is_idle() && (self.departed.is_empty() || self.shaper.is_free(now))
    }

    /// The packets of a burst arrive, in their order.
    #[inline(always)]
    pub(crate) fn enqueue_burst(
        &mut self,
        mut burst: P,
        now: Time,
        number: usize,
        observer: &mut impl Observer<P>,
    ) {
        let count = 1 + burst.followers();
        observer.on_arrivals(number, &burst, count, now);
        self.queued += u64::from(count);
        burst.set_enqueued(now);
        let mut offered = Some(burst);
        while let Some(burst) = offered {
            let dropped = self.qdisc.enqueue_burst(burst, now, &mut self.environment);
            offered = dropped.and_then(|dropped| self.note_dropped(dropped, now, number, observer));
        }
    }

    /// A packet of a burst was dropped when it came. Returns those behind it.
    #[cold]
    fn note_dropped(
        &mut self,
        (mut burst, admitted, reason): (P, u32, DropReason),
        now: Time,
        number: usize,
        observer: &mut impl Observer<P>,
    ) -> Option<P> {
        if admitted > 0 {
            let queued = observer.split(&mut burst, admitted);
            self.qdisc.queue_burst(queued);
        }
        let rest = self.drop_first(burst, reason, observer);
        self.note_drops(now, number, observer);
        rest
    }

    /// Takes back the rest of a burst, without the packet that has left.
    #[inline(always)]
    pub(crate) fn put_back(&mut self, rest: P) {
        let before = self.burst.replace(rest);
        debug_assert!(before.is_none(), "it was taken out");
        core::mem::forget(before); // which costs more to find out for each packet
    }

    /// The burst whose first packet leaves next, or another packet if the discipline drops all that is left of it.
    #[inline(always)]
    pub(super) fn next_of_burst(
        &mut self,
        mut burst: P,
        observer: &mut impl Observer<P>,
        now: Time,
    ) -> Option<P> {
        loop {
            let dropped = (self.qdisc).release_next(&burst, now, &mut self.environment);
            let Some(reason) = dropped else {
                return Some(burst);
            };
            match self.drop_first(burst, reason, observer) {
                Some(rest) => burst = rest,
                None => return self.qdisc.dequeue(now, &mut self.environment),
            }
        }
    }

    /// The discipline has dropped packets and let none go. If the last is of a burst, that goes on with the next.
    #[cold]
    pub(super) fn after_dropped(
        &mut self,
        observer: &mut impl Observer<P>,
        now: Time,
    ) -> Option<P> {
        while let Some((burst, reason)) = self.environment.take_burst() {
            let next = match self.drop_first(burst, reason, observer) {
                Some(rest) => self.next_of_burst(rest, observer, now),
                None => self.qdisc.dequeue(now, &mut self.environment),
            };
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// Drops the first packet of what may be a burst, and returns the rest.
    #[cold]
    fn drop_first(
        &mut self,
        mut burst: P,
        reason: DropReason,
        observer: &mut impl Observer<P>,
    ) -> Option<P> {
        if burst.followers() == 0 {
            self.environment.drop(burst, reason);
            return None;
        }
        let first = observer.split(&mut burst, 1);
        self.environment.drop(first, reason);
        Some(burst)
    }
}
