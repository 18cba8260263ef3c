//! Propagation: packets leave in the order in which they came, each after the same time.

use alloc::collections::VecDeque;

use sojourn_units::{Duration, Time};

/// A stretch of a route with a fixed delay, shared by all flows that have it.
#[derive(Debug)]
pub struct DelayLine<P> {
    delay: Duration,
    /// The first packet, with the instant at which it comes out. It stands apart because many lines hold one at a time.
    first: Option<(Time, P)>,
    rest: VecDeque<(Time, P)>,
}

impl<P> DelayLine<P> {
    /// An empty line with this delay.
    pub const fn new(delay: Duration) -> Self {
        Self {
            delay,
            first: None,
            rest: VecDeque::new(),
        }
    }

    /// Puts a packet in; true if it is now the first.
    #[inline(always)]
    pub fn push(&mut self, packet: P, now: Time) -> bool {
        let packet = (now + self.delay, packet);
        let is_first = self.first.is_none();
        if is_first {
            self.first = Some(packet);
        } else {
            self.rest.push_back(packet);
        }
        is_first
    }

    /// When the first packet comes out; [`Time::MAX`] if there is none.
    #[inline(always)]
    pub fn next(&self) -> Time {
        self.first.as_ref().map_or(Time::MAX, |(due, _)| *due)
    }

    /// Takes the first packet out, if it is due.
    #[inline(always)]
    pub fn pop_due(&mut self, now: Time) -> Option<P> {
        if self.next() > now {
            return None;
        }
        let next = self.rest.pop_front();
        core::mem::replace(&mut self.first, next).map(|(_, packet)| packet)
    }

    /// Packets in it.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }
}
