//! Data that arrived out of order, and the buffers that it takes.

use std::collections::VecDeque;

use super::memory::{Unread, segments_in_a_buffer};
use crate::segment::SackBlock;
use crate::seq::Seq;

/// Data that arrived out of order: disjoint ranges, ascending.
#[derive(Default, Debug)]
pub struct OutOfOrder {
    ranges: VecDeque<Range>,
    /// What they take together.
    waiting: Unread,
}

/// Data without a hole.
#[derive(Clone, Copy, Debug)]
struct Range {
    block: SackBlock,
    takes: Unread,
    /// Its last buffer has room for segments that begin before this.
    room: Seq,
}

impl OutOfOrder {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// What is behind holes.
    pub const fn waiting(&self) -> Unread {
        self.waiting
    }

    /// Where the last of it ends; 0 if there is none.
    pub fn end(&self) -> Seq {
        self.ranges.back().map_or(Seq(0), |last| last.block.end)
    }

    /// True if a segment from `seq` on is put into the buffer of the data before it.
    #[inline(never)]
    pub fn joins_a_buffer(&self, seq: Seq) -> bool {
        self.before(seq).is_some_and(|range| range.has_room(seq))
    }

    /// The range that ends at `seq` or before.
    fn before(&self, seq: Seq) -> Option<&Range> {
        self.ranges
            .iter()
            .rfind(|range| !range.block.end.after(seq))
    }

    /// Adds a segment, which begins `offset` bytes behind the beginning of the connection. Returns false if all of it was
    /// there.
    pub fn insert(&mut self, segment: SackBlock, offset: u64, mss: u32) -> bool {
        if let Some(last) = self.ranges.back_mut().filter(|last| last.ends_at(segment)) {
            self.waiting = self.waiting + last.extend(segment, offset, mss);
            return true; // the usual case
        }
        self.insert_elsewhere(segment, offset, mss)
    }

    /// The same of a segment that is not behind the last.
    #[cold]
    #[inline(never)]
    fn insert_elsewhere(&mut self, segment: SackBlock, offset: u64, mss: u32) -> bool {
        let from = match self.ranges.back() {
            Some(last) if last.block.end.after(segment.start) => self
                .ranges
                .partition_point(|range| range.block.end.before(segment.start)),
            _ => self.ranges.len(),
        };
        let takes = match self.ranges.get_mut(from) {
            Some(range) if range.block.covers(segment) => return false,
            Some(range) if range.ends_at(segment) => range.extend(segment, offset, mss),
            _ => {
                let range = Range::begin(segment, offset, mss);
                self.ranges.insert(from, range);
                range.takes
            }
        };
        self.waiting = self.waiting + takes;
        self.merge_from(from);
        true
    }

    /// Merges a range with those that follow it without a hole.
    fn merge_from(&mut self, at: usize) {
        while let Some(next) = self.ranges.get(at + 1) {
            let range = self.ranges[at];
            if !range.block.touches(next.block) {
                return;
            }
            let whole = range.with(*next);
            self.waiting = self.waiting + whole.takes - range.takes - next.takes;
            self.ranges[at] = whole;
            self.ranges.remove(at + 1);
        }
    }

    /// Removes what is in order once `next` has arrived. Returns how far that is, and what it took.
    pub fn take_in_order(&mut self, mut next: Seq) -> (Seq, Unread) {
        let waited = self.waiting;
        while let Some(range) = self.ranges.front() {
            if range.block.start.after(next) {
                break;
            }
            next = next.max(range.block.end);
            self.waiting = self.waiting - range.takes;
            self.ranges.pop_front();
        }
        (next, waited - self.waiting)
    }
}

impl Range {
    /// A range that begins with a segment.
    fn begin(segment: SackBlock, offset: u64, mss: u32) -> Self {
        Self {
            block: segment,
            takes: Unread::segment(segment.bytes()),
            room: room_behind(segment, offset, mss),
        }
    }

    /// True if it ends where a segment begins.
    fn ends_at(&self, segment: SackBlock) -> bool {
        self.block.end == segment.start
    }

    /// Goes on with a segment. Returns what that takes.
    fn extend(&mut self, segment: SackBlock, offset: u64, mss: u32) -> Unread {
        let takes = if self.has_room(segment.start) {
            Unread::joined(segment.bytes())
        } else {
            self.room = room_behind(segment, offset, mss);
            Unread::segment(segment.bytes())
        };
        self.block.end = segment.end;
        self.takes = self.takes + takes;
        takes
    }

    fn has_room(&self, seq: Seq) -> bool {
        self.block.end == seq && seq.before(self.room)
    }

    /// This range with one that it touches. Buffers of both are kept: Linux puts a segment into the buffer before it, but
    /// merges no others.
    fn with(&self, other: Self) -> Self {
        let last = if other.block.end.after(self.block.end) {
            &other
        } else {
            self
        };
        let block = self.block.with(other.block);
        Self {
            block,
            takes: (self.takes + other.takes).of(block.bytes()),
            room: last.room,
        }
    }
}

/// The buffer that begins with a segment has room for those that begin before this.
fn room_behind(segment: SackBlock, offset: u64, mss: u32) -> Seq {
    segment.start + segments_in_a_buffer(offset, mss) * mss
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::Kernel;

    const MSS: u32 = 1448;

    /// Segments `from` to `to` of a connection, inserted one after the other.
    fn insert(data: &mut OutOfOrder, from: u32, to: u32) {
        for n in from..to {
            let segment = SackBlock {
                start: Seq(n * MSS),
                end: Seq((n + 1) * MSS),
            };
            assert!(data.insert(segment, u64::from(n * MSS), MSS));
            assert!(!data.insert(segment, u64::from(n * MSS), MSS), "twice");
        }
    }

    /// Segments and buffers that wait.
    fn waiting(data: &OutOfOrder) -> (u32, u32) {
        let of = |kernel| data.waiting().memory(kernel);
        let buffers = (of(Kernel::V6_1) - of(Kernel::V7_3)) / (1280 - 896);
        ((of(Kernel::V6_1) - 1280 * buffers) / MSS, buffers)
    }

    /// Observed on kernels 6.1.192 and 7.3: 136 segments behind the first hole of a flow, at segment 493, took 9 buffers;
    /// 319 and then 63 took 24.
    #[test]
    fn what_waits_takes_the_buffers_that_were_observed() {
        let mut data = OutOfOrder::default();
        insert(&mut data, 494, 494 + 136);
        assert_eq!(waiting(&data), (136, 9));
        insert(&mut data, 494 + 136, 494 + 319);
        insert(&mut data, 814, 814 + 63);
        assert_eq!(waiting(&data), (319 + 63, 24));
    }

    /// The segment between two ranges joins the buffer before it, and both ranges keep their buffers.
    #[test]
    fn a_segment_that_joins_two_ranges_takes_no_further_buffer() {
        let mut data = OutOfOrder::default();
        insert(&mut data, 1, 4);
        insert(&mut data, 5, 8);
        assert_eq!(waiting(&data), (6, 2));
        assert!(data.joins_a_buffer(Seq(4 * MSS)));
        insert(&mut data, 4, 5);
        assert_eq!(waiting(&data), (7, 2));
        let (next, took) = data.take_in_order(Seq(MSS));
        assert_eq!((next, data.is_empty()), (Seq(8 * MSS), true));
        assert_eq!(took.memory(Kernel::V6_1), 7 * MSS + 2 * 1280);
        assert!(data.waiting().is_none());
    }

    #[test]
    fn a_full_buffer_takes_no_more_segments() {
        let mut data = OutOfOrder::default();
        insert(&mut data, 1, 17);
        assert!(data.joins_a_buffer(Seq(17 * MSS)));
        insert(&mut data, 17, 18);
        assert!(!data.joins_a_buffer(Seq(18 * MSS)));
    }

    #[test]
    fn a_segment_that_overlaps_counts_once() {
        let mut data = OutOfOrder::default();
        insert(&mut data, 2, 4);
        let across = SackBlock {
            start: Seq(3 * MSS + 100),
            end: Seq(5 * MSS + 100),
        };
        assert!(data.insert(across, u64::from(3 * MSS + 100), MSS));
        let (next, took) = data.take_in_order(Seq(2 * MSS));
        assert_eq!(next, Seq(5 * MSS + 100));
        assert_eq!(took.memory(Kernel::V6_1), 3 * MSS + 100 + 2 * 1280);
    }

    proptest! {
        /// Whatever arrives in whatever order, the bytes that wait are those that have arrived, and what is in order leaves
        /// nothing behind.
        #[test]
        fn bytes_that_wait_are_those_that_arrived(
            segments in prop::collection::vec((1_u32..200, 1_u32..20), 1..60),
            first in 0_u32..220,
        ) {
            let mut data = OutOfOrder::default();
            let mut there = std::collections::BTreeSet::new();
            for (start, bytes) in segments {
                let end = start + bytes;
                let is_new = (start..end).any(|byte| !there.contains(&byte));
                there.extend(start..end);
                let segment = SackBlock { start: Seq(start), end: Seq(end) };
                prop_assert_eq!(data.insert(segment, u64::from(start), 4), is_new);
            }
            let bytes = |takes: Unread| {
                let of = |kernel| takes.memory(kernel);
                let buffers = (of(Kernel::V6_1) - of(Kernel::V7_3)) / (1280 - 896);
                of(Kernel::V6_1) - 1280 * buffers
            };
            prop_assert_eq!(bytes(data.waiting()), there.len() as u32);
            let (next, took) = data.take_in_order(Seq(first));
            let in_order = (first..).find(|byte| !there.contains(byte)).unwrap();
            prop_assert_eq!(next, Seq(in_order.max(first)));
            let gone = there.range(..in_order).count() as u32;
            // A range that begins before `first` leaves as a whole.
            prop_assert_eq!(bytes(took), gone);
            prop_assert_eq!(bytes(data.waiting()), there.len() as u32 - gone);
        }
    }
}
