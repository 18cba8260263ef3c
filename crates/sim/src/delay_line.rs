//! Propagation: packets leave in the order in which they came, each after the same time.

use std::collections::VecDeque;

use sojourn_units::{Duration, Time};

use crate::packet::SimPacket;

/// Where a delay line ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// At the host the packet is for.
    Host,
    /// At the bottleneck in that direction (index of the link).
    Link(usize),
}

/// A stretch of path with a fixed delay, shared by all flows that have it.
#[derive(Debug)]
pub struct DelayLine {
    /// The delay of every packet.
    pub delay: Duration,
    /// Where it ends.
    pub exit: Exit,
    packets: VecDeque<(Time, SimPacket)>,
}

impl DelayLine {
    /// An empty line.
    pub const fn new(delay: Duration, exit: Exit) -> Self {
        Self {
            delay,
            exit,
            packets: VecDeque::new(),
        }
    }

    /// Puts a packet in; true if it is now the first.
    pub fn push(&mut self, packet: SimPacket, now: Time) -> bool {
        self.packets.push_back((now + self.delay, packet));
        self.packets.len() == 1
    }

    /// When the first packet comes out; [`Time::MAX`] if there is none.
    pub fn next(&self) -> Time {
        self.packets.front().map_or(Time::MAX, |(due, _)| *due)
    }

    /// Takes the first packet out, if it is due.
    pub fn pop_due(&mut self, now: Time) -> Option<SimPacket> {
        if self.next() > now {
            return None;
        }
        self.packets.pop_front().map(|(_, packet)| packet)
    }
}
