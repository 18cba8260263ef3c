//! Who sees packets on their way.

use sojourn_aqm::DropReason;
use sojourn_units::{Duration, Time};

/// Sees packets on their way. `link` is the number that [`crate::Builder::add_link`] returned.
pub trait Observer<P> {
    /// A packet comes to a link's queue.
    fn on_arrival(&mut self, _link: usize, _packet: &P, _now: Time) {}

    /// True if it does not have to hear of each packet of a burst that arrives apart.
    fn takes_bursts(&self, _link: usize) -> bool {
        false
    }

    /// So many packets come to a link's queue that differ from this one in nothing that [`Observer::on_arrival`] looks at. Some
    /// of them may be dropped.
    fn on_arrivals(&mut self, _link: usize, _packet: &P, _count: u32, _now: Time) {
        unreachable!("it takes no bursts")
    }

    /// A packet leaves a link's discipline: its sojourn ends. The observer may note it on the packet.
    fn on_dequeue(&mut self, _link: usize, _packet: &mut P, _now: Time) {}

    /// As [`Observer::on_dequeue`], of a packet that leaves at the instant at which it came.
    fn on_pass(&mut self, link: usize, packet: &mut P, now: Time) {
        self.on_dequeue(link, packet, now);
    }

    /// A packet leaves a link, after the device queue if that has one.
    fn on_departure(&mut self, _link: usize, _packet: &P, _now: Time) {}

    /// A link drops a packet and hands it to the observer. `queued`: the packet's time in the queue; for a packet that
    /// was refused on arrival, the time that the backlog takes to leave.
    fn on_drop(
        &mut self,
        _link: usize,
        _packet: P,
        _reason: DropReason,
        _queued: Duration,
        _now: Time,
    ) {
    }

    /// A packet is lost on a wire or, if it was damaged there, at its receiver, and is handed to the observer. `impairment` is the
    /// number that [`crate::Builder::add_impairment`] returned.
    fn on_loss(&mut self, _impairment: usize, _packet: P, _now: Time) {}

    /// A wire has made this copy of a packet.
    fn on_duplicate(&mut self, _impairment: usize, _copy: &P, _now: Time) {}

    /// Splits the first `count` packets off a burst, which has more, as an object of their own.
    fn split(&mut self, _burst: &mut P, _count: u32) -> P {
        unreachable!("there are no bursts")
    }
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl<P> Observer<P> for NoObserver {}
