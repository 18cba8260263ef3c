//! Propagation: packets leave in the order in which they came, each after the same time.

use alloc::collections::VecDeque;

use sojourn_units::{Duration, Time};

/// A stretch of a route with a fixed delay, shared by all flows that have it.
#[derive(Debug)]
pub struct DelayLine<P> {
    delay: Duration,
    packets: VecDeque<(Time, P)>,
}

impl<P> DelayLine<P> {
    /// An empty line with this delay.
    pub const fn new(delay: Duration) -> Self {
        Self {
            delay,
            packets: VecDeque::new(),
        }
    }

    /// Puts a packet in; true if it is now the first.
    #[inline(always)]
    pub fn push(&mut self, packet: P, now: Time) -> bool {
        self.packets.push_back((now + self.delay, packet));
        self.packets.len() == 1
    }

    /// When the first packet comes out; [`Time::MAX`] if there is none.
    #[inline(always)]
    pub fn next(&self) -> Time {
        self.packets.front().map_or(Time::MAX, |(due, _)| *due)
    }

    /// Takes the first packet out, if it is due.
    #[inline(always)]
    pub fn pop_due(&mut self, now: Time) -> Option<P> {
        if self.next() > now {
            return None;
        }
        self.packets.pop_front().map(|(_, packet)| packet)
    }

    /// Packets in it.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// True if no packet is in it.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}
