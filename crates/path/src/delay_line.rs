//! Propagation: packets leave in the order in which they came, each after the same time.

use alloc::collections::VecDeque;

use sojourn_units::{Duration, Time};

/// A stretch of a route with a fixed delay, shared by all flows that have it.
#[derive(Debug)]
pub struct DelayLine<P> {
    delay: Duration,
    /// When the first packet comes out; [`Time::MAX`] if there is none.
    next: Time,
    /// The first packet. It stands apart because many lines hold one at a time.
    first: Option<P>,
    rest: VecDeque<(Time, P)>,
}

impl<P> DelayLine<P> {
    /// An empty line with this delay.
    pub const fn new(delay: Duration) -> Self {
        Self {
            delay,
            next: Time::MAX,
            first: None,
            rest: VecDeque::new(),
        }
    }

    /// Puts a packet in; true if it is now the first.
    #[inline(always)]
    pub fn push(&mut self, packet: P, now: Time) -> bool {
        let due = now + self.delay;
        let is_first = self.first.is_none();
        if is_first {
            (self.next, self.first) = (due, Some(packet));
        } else {
            self.rest.push_back((due, packet));
        }
        is_first
    }

    /// When the first packet comes out; [`Time::MAX`] if there is none.
    #[inline(always)]
    pub const fn next(&self) -> Time {
        self.next
    }

    /// Takes the first packet out. Returns it, and when the next comes out; [`Time::MAX`] if there is none.
    #[inline(always)]
    pub fn pop(&mut self) -> (Option<P>, Time) {
        let packet = self.first.take();
        self.next = Time::MAX;
        if let Some((due, next)) = self.rest.pop_front() {
            (self.next, self.first) = (due, Some(next));
        }
        (packet, self.next)
    }

    /// Packets in it.
    pub fn packets(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }
}
