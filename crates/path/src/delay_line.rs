//! Propagation: packets leave in the order in which they came, each after the same time.

use alloc::collections::VecDeque;

use sojourn_units::{Duration, Time};

/// A stretch of a route with a fixed delay, shared by all flows that have it.
#[derive(Debug)]
pub struct DelayLine<P> {
    delay: Duration,
    /// The first packet. It stands apart because many lines hold one at a time.
    first: Option<P>,
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

    /// Puts a packet in. Returns when it comes out if it is now the first.
    #[inline(always)]
    pub fn push(&mut self, packet: P, now: Time) -> Option<Time> {
        let due = self.due(now);
        if self.first.is_some() {
            self.rest.push_back((due, packet));
            return None;
        }
        self.first = Some(packet);
        Some(due)
    }

    /// Takes the first packet out. Returns it, and when the next comes out; [`Time::MAX`] if there is none.
    #[inline(always)]
    pub fn pop(&mut self) -> (Option<P>, Time) {
        let packet = self.first.take();
        let Some((due, next)) = self.rest.pop_front() else {
            return (packet, Time::MAX);
        };
        self.first = Some(next);
        (packet, due)
    }

    /// The packet that comes out next.
    #[inline(always)]
    pub const fn first(&self) -> Option<&P> {
        self.first.as_ref()
    }

    /// When a packet that enters now comes out.
    pub(crate) fn due(&self, now: Time) -> Time {
        now + self.delay
    }

    /// True if there is no packet in it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Packets in it.
    pub fn packets(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }
}
