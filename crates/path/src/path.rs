//! A path between two ends: a link with a queue under test, its propagation, and the way back.

mod builder;
mod given;
mod verdict;

use alloc::collections::VecDeque;
use core::fmt;

use sojourn_aqm::{Datagram, Ecn, FlowKey};
use sojourn_units::{Duration, Rate, Time, Way};

pub use builder::{Part, PathBuilder};
pub use given::{Given, PathError};
pub use verdict::{Counts, Event, Verdict};

use crate::link::Link;
use crate::network::{Hosts, Network, Route};
use verdict::Watch;

/// A path between two ends, without a clock and without threads: the caller says what time it is.
///
/// Packets that go [`Way::Down`] cross the link under test, then propagation of half the RTT. Packets that go [`Way::Up`] cross
/// a link of their own if [`PathBuilder::up`] has given them one, then the other half. [`PathBuilder::impair`] makes the
/// propagation of a direction worse: loss, jitter and others.
///
/// ```
/// use core::time::Duration;
///
/// use sojourn_path::{Datagram, Path, Verdict, Way};
///
/// let mut path = Path::new("8 Mbit/s", "20 ms")?.aqm("codel", [("target", "5 ms")])?.build();
/// for number in 0..3 {
///     path.send(Duration::ZERO, Way::Down, Datagram::new(number, 1000));
/// }
/// let mut arrived = Vec::new();
/// while let Some(now) = path.next_event() {
///     while let Some(out) = path.poll(now) {
///         arrived.push((out.payload, out.at, out.sojourn));
///     }
/// }
/// // The link lets 1600 bytes go ahead of its rate, so that two leave at once, and the third when 400 bytes are paid.
/// let us = Duration::from_micros;
/// assert_eq!(arrived, [(0, us(10_000), us(0)), (1, us(10_000), us(0)), (2, us(10_400), us(400))]);
/// let left = path.verdicts().filter(|event| matches!(event.verdict, Verdict::Left { .. })).count();
/// assert_eq!(left, 3);
/// # Ok::<(), sojourn_path::PathError>(())
/// ```
///
/// Instants are spans since the path's beginning. They may not go back from one call to the next, whatever the call; what is
/// due by then happens first, so that a packet can be sent without a call of [`Path::poll`] before. The same calls have the
/// same result, always.
pub struct Path<T> {
    network: Network<Carried<T>, Watch>,
    /// The routes down and up.
    routes: [Route; 2],
    delivered: Delivered<T>,
    /// The instant of the last call.
    now: Time,
    /// Packets sent.
    sent: u64,
}

/// The type of the packets that a [`Path`]'s disciplines see; see [`PathBuilder::discipline`].
pub type Carried<T> = Datagram<Transit<T>>;

/// What a packet carries while it is in a [`Path`].
#[derive(Clone, Debug)]
pub struct Transit<T> {
    payload: T,
    number: u64,
    way: Way,
    sent: Time,
    /// The ECN field as it was sent.
    ecn: Ecn,
    /// The time in the link's queue.
    sojourn: Duration,
}

impl<T> Transit<T> {
    /// The payload.
    pub const fn payload(&self) -> &T {
        &self.payload
    }
}

/// A packet that has arrived. Instants are spans since the path's beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Delivery<T> {
    /// When it arrived.
    pub at: core::time::Duration,
    /// When it was sent.
    pub sent: core::time::Duration,
    /// Its direction.
    pub way: Way,
    /// What [`Path::send`] returned for it.
    pub number: u64,
    /// The time that it spent in the link's queue.
    pub sojourn: core::time::Duration,
    /// The ECN field as it arrived: [`Ecn::Ce`] if it was marked.
    pub ecn: Ecn,
    /// True if it was damaged; only with [`crate::Impair::deliver_damaged`].
    pub damaged: bool,
    /// Bytes on the link.
    pub bytes: u32,
    /// The DiffServ code point.
    pub dscp: u8,
    /// Its flow.
    pub flow: FlowKey,
    /// What it carries.
    pub payload: T,
}

/// The packets that have arrived and were not taken yet.
struct Delivered<T>(VecDeque<Delivery<T>>);

impl<T> Hosts<Carried<T>, Watch> for Delivered<T> {
    fn deliver(&mut self, packet: Carried<T>, now: Time, network: &mut Network<Carried<T>, Watch>) {
        let carried = packet.payload;
        network.observer.on_delivery(carried.way);
        self.0.push_back(Delivery {
            at: now.into(),
            sent: carried.sent.into(),
            way: carried.way,
            number: carried.number,
            sojourn: carried.sojourn.into(),
            ecn: packet.ecn,
            damaged: packet.damaged.is_some(),
            bytes: packet.bytes,
            dscp: packet.dscp,
            flow: packet.flow,
            payload: carried.payload,
        });
    }
}

impl<T: Send + 'static> Path<T> {
    /// Begins a path: a link of this rate, and propagation there and back of `rtt` in total. Its queue is drop-tail, 1000
    /// packets long, until [`PathBuilder::aqm`] chooses another. A packet's payload may be of any type.
    ///
    /// # Errors
    /// A text is no rate or no time.
    #[expect(clippy::new_ret_no_self, reason = "a path begins with its builder")]
    pub fn new(
        rate: impl Given<Rate>,
        rtt: impl Given<Duration>,
    ) -> Result<PathBuilder<T>, PathError> {
        Ok(PathBuilder::new(rate.value("rate")?, rtt.value("rtt")?))
    }
}

impl<T> Path<T> {
    /// A path of these parts: the direction of [`Way::Down`], then that of [`Way::Up`].
    pub fn from_parts(parts: [Part<T>; 2]) -> Self {
        builder::joined(parts, builder::KEEP)
    }

    /// Sends a packet. Returns its number, counted from 0, by which events and deliveries name it.
    ///
    /// # Panics
    /// `now` is before that of an earlier call.
    pub fn send(&mut self, now: core::time::Duration, way: Way, packet: Datagram<T>) -> u64 {
        let (now, number) = (self.advance(now), self.sent);
        self.sent += 1;
        let ecn = packet.ecn;
        let packet = packet.map(|payload| Transit {
            payload,
            number,
            way,
            sent: now,
            ecn,
            sojourn: Duration::ZERO,
        });
        self.network.observer.on_send(way);
        self.network.send(packet, self.routes[way as usize], now);
        number
    }

    /// When to call [`Path::poll`] next, never before the instant of the last call; `None`: only after a packet was sent.
    pub fn next_event(&self) -> Option<core::time::Duration> {
        if !self.delivered.0.is_empty() {
            return Some(self.now.into());
        }
        if self.packets() == 0 {
            // A discipline's timer alone delivers nothing; it is caught up when time goes on.
            return None;
        }
        let (source, at) = self.network.next_before(Time::MAX);
        source.map(|_| at.max(self.now).into())
    }

    /// Handles what is due by `now`, and returns a packet that has arrived; packets arrive in the order of their instants. Call
    /// it until it returns `None`.
    ///
    /// # Panics
    /// `now` is before that of an earlier call.
    pub fn poll(&mut self, now: core::time::Duration) -> Option<Delivery<T>> {
        self.advance(now);
        self.delivered.0.pop_front()
    }

    /// What happened to packets since the last call, oldest first. The newest 65,536 are kept, or as many as
    /// [`PathBuilder::keep`] says.
    pub fn verdicts(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.network.observer.events.drain(..)
    }

    /// Packets of a direction: what is sent or duplicated is delivered, dropped, lost or under way.
    pub fn counts(&self, way: Way) -> Counts {
        self.network.observer.counts[way as usize]
    }

    /// Packets that are under way: in queues and in propagation.
    pub fn packets(&self) -> u64 {
        self.network.packets()
    }

    /// The link of a direction, for its queue's length, its discipline's state and its utilization; `None` if packets of this
    /// direction cross no link.
    pub fn link(&self, way: Way) -> Option<&Link<Carried<T>>> {
        self.network.links().get(way as usize)
    }

    /// Sets the rate of a direction's link from the last call's instant on. A packet in transmission keeps its old rate.
    ///
    /// # Errors
    /// The text is no rate, or packets of this direction cross no link.
    pub fn set_rate(&mut self, way: Way, rate: impl Given<Rate>) -> Result<(), PathError> {
        let rate = rate.value("rate")?;
        if self.link(way).is_none() {
            return Err(PathError::new("rate", "this direction has no link; see up"));
        }
        self.handle_due();
        self.network.set_rate(way as usize, rate, self.now);
        Ok(())
    }

    /// Sets the propagation there and back for packets that enter it after the last call. Packets stay in order: one that would
    /// overtake arrives with the last before it.
    ///
    /// # Errors
    /// The text is no time.
    pub fn set_delay(&mut self, rtt: impl Given<Duration>) -> Result<(), PathError> {
        self.handle_due();
        for (wire, delay) in halves(rtt.value("rtt")?).into_iter().enumerate() {
            self.network.set_delay(wire, delay);
        }
        Ok(())
    }

    /// The instant of the last call.
    pub fn now(&self) -> core::time::Duration {
        self.now.into()
    }

    /// It is `now`, and nothing is due before.
    pub(crate) fn rest_until(&mut self, now: core::time::Duration) {
        self.now = now.into();
    }

    /// It is `now`: handles what is due.
    fn advance(&mut self, now: core::time::Duration) -> Time {
        let now = Time::from(now);
        assert!(
            now >= self.now,
            "time went back: from {:?} to {now:?}",
            self.now
        );
        self.now = now;
        self.handle_due();
        now
    }

    /// Handles what is due by the last call's instant.
    fn handle_due(&mut self) {
        loop {
            match self.network.next_before(Time::MAX) {
                (Some(source), at) if at <= self.now => {
                    self.network.act(source, at, &mut self.delivered);
                }
                _ => return,
            }
        }
    }
}

/// The propagation down and up.
fn halves(rtt: Duration) -> [Duration; 2] {
    [rtt / 2, rtt - rtt / 2]
}

impl<T> fmt::Debug for Path<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Path")
            .field("now", &self.now)
            .field("sent", &self.sent)
            .field("packets", &self.packets())
            .finish_non_exhaustive()
    }
}
