//! A connection's bytes in its own host, which TCP small queues keep few (Linux's tcp_small_queue_check).

use std::collections::VecDeque;

use sojourn_units::Time;

/// The data of a connection that has not left its host.
pub enum LocalQueue {
    /// The host has a link of its own, whose queue holds the data.
    Link(LinkQueue),
    /// The host is a station of a Wi-Fi cell, which holds the data and tells what has left.
    Station(StationQueue),
    /// A host without a link of its own sends at once, but what it sends leaves only after all that arrives at the same
    /// instant has been handled: a kernel handles arrivals in batches.
    Instant {
        /// The instant of the last transmission.
        at: Time,
        /// Payload sent at that instant.
        bytes: u64,
    },
}

/// A connection's segments in the queue of its host's link.
#[derive(Default)]
pub struct LinkQueue {
    /// When each leaves, and its payload.
    segments: VecDeque<(Time, u32)>,
    bytes: u64,
}

/// A connection's segments in the queue of a station.
#[derive(Default)]
pub struct StationQueue {
    /// Memory of each.
    segments: VecDeque<u32>,
    memory: u32,
}

/// Where a host's packets wait before they leave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waits {
    /// Nowhere.
    Nowhere,
    /// At a link of its own.
    AtLink,
    /// In the queue of a cell: it is a station.
    AtStation,
}

impl LocalQueue {
    /// An empty queue.
    pub fn new(waits: Waits) -> Self {
        match waits {
            Waits::AtLink => Self::Link(LinkQueue::default()),
            Waits::AtStation => Self::Station(StationQueue::default()),
            Waits::Nowhere => Self::Instant {
                at: Time::ZERO,
                bytes: 0,
            },
        }
    }

    /// Adds segments of `payload` bytes each that are sent at `now` and leave at `leaves`, after those before them.
    #[inline(always)]
    pub fn push(&mut self, payload: u32, segments: u32, now: Time, leaves: Time) {
        let one = payload;
        let payload = payload * segments;
        match self {
            Self::Link(link) => link.push(payload, leaves),
            Self::Station(station) => station.push(one, segments),
            Self::Instant { at, bytes } => {
                *bytes = u64::from(payload) + if *at == now { *bytes } else { 0 };
                *at = now;
            }
        }
    }

    /// True if nothing in it keeps the host from sending at `now`.
    #[inline(always)]
    pub fn is_quiet(&self, now: Time) -> bool {
        matches!(self, Self::Instant { at, .. } if *at != now)
    }

    /// Payload that waits at `now` for the end of this instant.
    #[inline(always)]
    pub fn waiting(&self, now: Time) -> u64 {
        match self {
            Self::Instant { at, bytes } if *at == now => *bytes,
            Self::Instant { .. } | Self::Link(_) | Self::Station(_) => 0,
        }
    }
}

impl LinkQueue {
    #[cold]
    fn push(&mut self, payload: u32, leaves: Time) {
        if payload == 0 {
            return;
        }
        self.segments.push_back((leaves, payload));
        self.bytes += u64::from(payload);
    }

    /// When at most `limit` bytes are left in the queue; `now` if that holds already.
    pub fn short_at(&mut self, limit: u64, now: Time) -> Time {
        while let Some((_, payload)) = self.segments.front().filter(|(leaves, _)| *leaves <= now) {
            self.bytes -= u64::from(*payload);
            self.segments.pop_front();
        }
        let (mut at, mut bytes) = (now, self.bytes);
        for (leaves, payload) in &self.segments {
            if bytes <= limit {
                break;
            }
            (at, bytes) = (*leaves, bytes - u64::from(*payload));
        }
        at
    }
}

impl StationQueue {
    #[cold]
    fn push(&mut self, payload: u32, segments: u32) {
        if payload == 0 {
            return;
        }
        for _ in 0..segments {
            self.segments.push_back(memory(payload));
            self.memory += memory(payload);
        }
    }

    /// Its oldest segment has left.
    pub fn leave(&mut self) {
        self.memory -= self.segments.pop_front().unwrap_or(0);
    }

    /// The memory of its segments, as Linux counts it (sk_wmem_alloc).
    pub const fn memory(&self) -> u32 {
        self.memory
    }
}

/// The memory of a segment that Linux has cut from a burst for a device without scatter-gather: a block for headers and
/// payload, of a power of two, and the packet itself (skb->truesize).
const fn memory(payload: u32) -> u32 {
    (payload + 640).next_power_of_two() + 256
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the log of Linux 7.2.13 ([docs](../../../../../../docs/results/wifi-kernel.md#tcp)): 4352 bytes.
    #[test]
    fn a_station_holds_the_memory_of_its_segments() {
        let mut queue = StationQueue::default();
        queue.push(1448, 3);
        queue.push(0, 1);
        assert_eq!(queue.memory(), 3 * 4352);
        queue.leave();
        assert_eq!(queue.memory(), 2 * 4352);
    }

    /// Five segments of 1000 bytes leave at 1 to 5 ms. At most 2000 bytes wait once three have left.
    #[test]
    fn a_queue_is_short_when_enough_has_left() {
        let ms = Time::from_millis;
        let mut queue = LinkQueue::default();
        for leaves in 1..=5 {
            queue.push(1000, ms(leaves));
        }
        assert_eq!(queue.short_at(2000, ms(0)), ms(3));
        assert_eq!(queue.short_at(2000, ms(2)), ms(3));
        assert_eq!(queue.short_at(3000, ms(2)), ms(2));
        assert_eq!(queue.short_at(0, ms(4)), ms(5));
        assert_eq!(queue.short_at(0, ms(9)), ms(9));
    }

    #[test]
    fn without_a_link_data_waits_until_the_instant_is_over() {
        let ms = Time::from_millis;
        let mut queue = LocalQueue::new(Waits::Nowhere);
        queue.push(500, 2, ms(1), ms(1));
        queue.push(500, 1, ms(1), ms(1));
        assert_eq!((queue.waiting(ms(1)), queue.waiting(ms(2))), (1500, 0));
        queue.push(700, 1, ms(2), ms(2));
        assert_eq!(queue.waiting(ms(2)), 700);
    }
}
