//! The memory that received data takes until the application reads it, as Linux counts it. It bounds the receive window.

use core::ops::{Add, Sub};

use crate::config::Kernel;

/// Memory that a buffer takes beside its payload in Linux 6.1: its structures (256 and 320 bytes) and a head of 704, to
/// which routers copy the headers. It was observed with INET_DIAG_SKMEMINFO, behind holes of 60 to 400 segments.
const OVERHEAD_6_1: u32 = 256 + 320 + 704;
/// The same since Linux 6.3: the structures and a small head (256 and 640 bytes).
pub const OVERHEAD_6_3: u32 = 256 + 640;
/// Parts of pages that fit in one buffer (Linux's MAX_SKB_FRAGS). Waiting segments are merged into one buffer, and so is
/// a segment that fills a hole with those behind it, if there is room.
const FRAGMENTS: u32 = 17;
/// The sender's data is in pages of so many bytes (SKB_FRAG_PAGE_ORDER). A segment across their boundary has two parts.
const PAGE: u64 = 32 << 10;

/// Memory that a buffer takes beside its payload.
pub const fn overhead(kernel: Kernel) -> u32 {
    match kernel {
        Kernel::V6_1 => OVERHEAD_6_1,
        _ => OVERHEAD_6_3,
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

    /// A segment in a buffer that is there.
    pub const fn joined(bytes: u32) -> Self {
        Self { bytes, buffers: 0 }
    }

    pub const fn bytes(self) -> u64 {
        self.bytes as u64
    }

    /// The same buffers with so many bytes.
    pub const fn of(self, bytes: u32) -> Self {
        Self { bytes, ..self }
    }

    /// With what comes in order after it. A buffer is merged into the last of these if it has room (Linux's tcp_try_coalesce);
    /// the first of several is full.
    pub fn followed_by(self, others: Self, mss: u32) -> Self {
        let both = self + others;
        let is_merged = others.buffers == 1 && both.bytes <= self.buffers * FRAGMENTS * mss;
        Self {
            buffers: both.buffers - u32::from(is_merged),
            ..both
        }
    }

    pub const fn is_none(self) -> bool {
        self.buffers == 0
    }

    /// The memory of all of it.
    pub const fn memory(self, kernel: Kernel) -> u32 {
        self.bytes
            .saturating_add(self.buffers.saturating_mul(overhead(kernel)))
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

/// True if data of so many bytes may take more than one buffer.
pub const fn is_more_than_a_buffer(bytes: u32, mss: u32) -> bool {
    bytes > FRAGMENTS * mss
}

/// How many segments of `mss` bytes, the first of which begins `offset` bytes behind the beginning of the connection, fit
/// in a buffer.
pub fn segments_in_a_buffer(offset: u64, mss: u32) -> u32 {
    let mss = u64::from(mss);
    let to_boundary = PAGE - offset % PAGE;
    if to_boundary >= u64::from(FRAGMENTS) * mss {
        return FRAGMENTS;
    }
    let mut parts = 0;
    let fits = |segment: &u32| {
        let first = offset + u64::from(*segment) * mss;
        parts += 1 + (first + mss - 1) / PAGE - first / PAGE;
        parts <= u64::from(FRAGMENTS)
    };
    // A segment larger than that is not merged with others.
    ((0..FRAGMENTS).take_while(fits).count() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    /// Segment 22 begins at 31856 and ends behind the boundary at 32768: it takes two of 17 parts.
    #[test]
    fn a_segment_across_a_boundary_of_pages_takes_two_parts() {
        let behind = |segments| segments_in_a_buffer(u64::from(segments * MSS), MSS);
        assert_eq!([behind(0), behind(5)], [17, 17]);
        assert_eq!([behind(6), behind(17), behind(22)], [16, 16, 16]);
        assert_eq!(behind(23), 17);
    }

    /// Observed on 6.12.117: of segments that arrive together, and of 43 that fill a hole with the 42 behind it.
    #[test]
    fn what_follows_is_merged_if_there_is_room() {
        let memory = |unread: Unread| unread.memory(Kernel::V6_12);
        let one = Unread::segment(MSS);
        let two = one.followed_by(one, MSS);
        assert_eq!(memory(two), 2 * MSS + 896);
        let full = (2..FRAGMENTS).fold(two, |unread, _| unread.followed_by(one, MSS));
        assert_eq!(memory(full), 17 * MSS + 896);
        assert_eq!(memory(full.followed_by(one, MSS)), 18 * MSS + 2 * 896);
        let waited = Unread {
            bytes: 42 * MSS,
            buffers: 3,
        };
        let filled = one.followed_by(waited, MSS);
        assert_eq!(memory(filled), 43 * MSS + 4 * 896);
    }

    #[test]
    fn a_boundary_between_segments_does_not_matter() {
        assert_eq!(segments_in_a_buffer(31 << 10, 1024), 17);
    }

    #[test]
    fn a_segment_longer_than_a_buffer_has_one_of_its_own() {
        assert_eq!(segments_in_a_buffer(5, 1 << 20), 1);
    }
}
