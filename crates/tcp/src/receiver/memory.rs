//! The memory that received data takes until the application reads it, as Linux counts it. It bounds the receive window.

use core::ops::{Add, Sub};

use crate::config::Kernel;

/// Memory that a buffer takes beside its payload in Linux 6.1: its structures (256 and 320 bytes) and a head of 704, to
/// which routers copy the headers. It was observed with INET_DIAG_SKMEMINFO, behind holes of 60 to 400 segments.
const OVERHEAD_6_1: u32 = 256 + 320 + 704;
/// The same in Linux 7.3: the structures and a small head (256 and 640 bytes).
pub const OVERHEAD_7_3: u32 = 256 + 640;
/// Parts of pages that fit in one buffer (Linux's MAX_SKB_FRAGS). Waiting segments are merged into one buffer, and so is
/// a segment that fills a hole with those behind it, if there is room.
const FRAGMENTS: u32 = 17;
/// The sender's data is in pages of so many bytes (SKB_FRAG_PAGE_ORDER). A segment across their boundary has two parts.
const PAGE: u64 = 32 << 10;

/// Memory that a buffer takes beside its payload.
pub const fn overhead(kernel: Kernel) -> u32 {
    match kernel {
        Kernel::V6_1 => OVERHEAD_6_1,
        Kernel::V7_3 => OVERHEAD_7_3,
    }
}

/// Received data that is not read: behind holes, or until the end of the instant in which it has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Unread {
    bytes: u32,
    /// Buffers into which the segments are merged.
    buffers: u32,
}

impl Unread {
    /// A segment in a buffer of its own.
    pub const fn segment(bytes: u32) -> Self {
        Self { bytes, buffers: 1 }
    }

    /// Data without a hole, `offset` bytes behind the beginning of the connection, in segments of `mss` bytes.
    pub fn stretch(offset: u64, bytes: u32, mss: u32) -> Self {
        let buffers = buffers(offset, bytes, mss).0;
        Self { bytes, buffers }
    }

    pub const fn is_none(self) -> bool {
        self.buffers == 0
    }

    /// The memory of all of it.
    pub const fn memory(self, kernel: Kernel) -> u32 {
        self.bytes + self.buffers * overhead(kernel)
    }
}

impl Add for Unread {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            buffers: self.buffers + other.buffers,
        }
    }
}

impl Sub for Unread {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            bytes: self.bytes - other.bytes,
            buffers: self.buffers - other.buffers,
        }
    }
}

/// True if the last buffer of such a stretch has room for a segment.
pub fn has_room_behind(offset: u64, bytes: u32, mss: u32) -> bool {
    buffers(offset, bytes, mss).1
}

/// True if data of so many bytes may take more than one buffer.
pub const fn is_more_than_a_buffer(bytes: u32, mss: u32) -> bool {
    bytes > FRAGMENTS * mss
}

/// The number of buffers of a stretch, and whether the last has room for a segment.
fn buffers(offset: u64, bytes: u32, mss: u32) -> (u32, bool) {
    let (mut at, end, mss) = (offset, offset + u64::from(bytes), u64::from(mss.max(1)));
    let mut count = 0;
    while at < end {
        count += 1;
        at += segments_in_a_buffer(at, mss) * mss;
    }
    (count, at > end)
}

/// How many segments, the first of which begins at `at`, fit in a buffer.
fn segments_in_a_buffer(at: u64, mss: u64) -> u64 {
    let most = u64::from(FRAGMENTS);
    let to_boundary = PAGE - at % PAGE;
    if to_boundary >= most * mss {
        return most;
    }
    let mut parts = 0;
    let fits = |segment: &u64| {
        let first = at + segment * mss;
        parts += 1 + (first + mss - 1) / PAGE - first / PAGE;
        parts <= most
    };
    // A segment larger than that is not merged with others.
    ((0..most).take_while(fits).count() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    /// A buffer holds 17 segments. The eighteenth begins another.
    #[test]
    fn a_full_buffer_takes_no_more_segments() {
        assert!(has_room_behind(0, 16 * MSS, MSS));
        assert!(!has_room_behind(0, 17 * MSS, MSS));
        assert_eq!(Unread::stretch(0, 17 * MSS, MSS).buffers, 1);
        assert_eq!(Unread::stretch(0, 18 * MSS, MSS).buffers, 2);
    }

    /// Segment 22 begins at 31856 and ends behind the boundary at 32768: it takes two of 17 parts.
    #[test]
    fn a_segment_across_a_boundary_of_pages_takes_two_parts() {
        let offset = u64::from(17 * MSS);
        assert!(has_room_behind(offset, 15 * MSS, MSS));
        assert!(!has_room_behind(offset, 16 * MSS, MSS));
        // As the seventeenth it does not fit.
        let offset = u64::from(6 * MSS);
        assert!(!has_room_behind(offset, 16 * MSS, MSS));
        // 1024 divides the length of pages.
        assert!(!has_room_behind(31 << 10, 17 << 10, 1024));
        assert!(has_room_behind(31 << 10, 16 << 10, 1024));
    }

    /// Observed on kernels 6.1.192 and 7.3: 136 segments behind the first hole of a flow, at 713864, took 11520 and 8064
    /// bytes beside their payload; 319 and then 63 segments took 30720.
    #[test]
    fn what_waits_takes_the_memory_that_was_observed() {
        let waits = Unread::stretch(713_864 + 1448, 136 * MSS, MSS);
        assert_eq!(waits.memory(Kernel::V6_1), 136 * MSS + 11_520);
        assert_eq!(waits.memory(Kernel::V7_3), 136 * MSS + 8064);
        let waits = Unread::stretch(713_864 + 1448, 319 * MSS, MSS)
            + Unread::stretch(1_178_672, 63 * MSS, MSS);
        assert_eq!(waits.memory(Kernel::V6_1), 382 * MSS + 30_720);
    }

    #[test]
    fn a_segment_longer_than_a_buffer_has_one_of_its_own() {
        assert_eq!(Unread::stretch(5, 3 << 20, 1 << 20).buffers, 3);
    }
}
