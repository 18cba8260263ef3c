//! Segments sent and not yet cumulatively acknowledged, and the state of each: the scoreboard of RFC 6675 §3, with the
//! send times that RACK (RFC 8985 §5) uses.
//!
//! Segments are stored in a ring in sequence order. Without loss every operation takes constant time. A SACK block
//! takes constant time per segment that it reports for the first time, whatever the window.

mod losses;

use std::collections::VecDeque;

use sojourn_units::{Duration, Time, cold_path, prefetch};

use crate::segment::{MAX_SACK_BLOCKS, SackBlock};
use crate::seq::Seq;
pub use losses::{LossCause, Lost};
use losses::{RackPoint, is_sent_after};

/// Room for this many segments is made on the first send, then for twice as many.
const FIRST_RING: usize = 16;

/// The state recorded for a segment at each transmission, if rate samples are taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// When it was sent.
    pub sent_at: Time,
    /// The connection's count of delivered segments at that time, for rate samples, modulo 2^32.
    pub delivered: u32,
    /// The connection's count of lost segments at that time, modulo 2^32.
    pub lost: u32,
    /// Segments in flight at that time, without this one.
    pub in_flight: u32,
    /// When the count of delivered segments reached that value.
    pub delivered_at: Time,
    /// When the first segment of that flight was sent.
    pub first_sent_at: Time,
    /// The sender had nothing more to send at that time.
    pub app_limited: bool,
}

/// A segment in flight: what every acknowledgement reads, apart from its stamp.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    seq: Seq,
    /// Sequence space that it occupies, FIN included.
    len: u32,
    sent_at: Time,
    sacked: bool,
    lost: bool,
    /// A retransmission of it is in flight.
    resent: bool,
    ever_resent: bool,
    /// It ends a write: every transmission carries PSH.
    pushed: bool,
}

/// A ring of twice the size or more, with the entries of these indices.
fn spread<T: Copy + Default>(
    ring: &[T],
    indices: impl Iterator<Item = u32>,
    size: usize,
) -> Vec<T> {
    let mut larger = vec![T::default(); size];
    for index in indices {
        larger[index as usize & (size - 1)] = ring[index as usize & (ring.len() - 1)];
    }
    larger
}

impl Sent {
    fn end(&self) -> Seq {
        self.seq + self.len
    }
}

/// One acknowledgement: by what it is judged, and its result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acked {
    /// When it arrived.
    pub now: Time,
    /// A retransmission that seems to be delivered sooner was not: its original was.
    pub min_rtt: Duration,
    /// Only segments before this count as originals for F-RTO.
    pub recovery_point: Seq,
    /// Segments delivered by it that were not known to be delivered before.
    pub delivered: u32,
    /// Segments newly reported by SACK.
    pub sacked: u32,
    /// Segments that left the ring.
    pub cumulative: u32,
    /// Send times of the first and last segments cumulatively acknowledged that were never resent.
    pub ack_times: Option<(Time, Time)>,
    /// The same for segments reported by SACK.
    pub sack_times: Option<(Time, Time)>,
    /// A retransmitted segment was cumulatively acknowledged: no RTT sample (Karn).
    pub resent_acked: bool,
    /// A segment that was never retransmitted and was sent before the recovery point was delivered (F-RTO).
    pub original_delivered: bool,
    /// The largest distance, in segments, by which a segment that was never retransmitted was delivered out of order.
    pub reordering: u32,
    /// The delivered segment that was sent last, for rate samples.
    pub latest: Option<Delivered>,
}

/// Segments acknowledged while [`Scoreboard::is_clean`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InOrder {
    /// How many.
    pub segments: u32,
    /// When the first of them was sent.
    pub first_sent_at: Time,
    /// When the last of them was sent.
    pub last_sent_at: Time,
}

/// A delivered segment, by its index in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// When it was last sent.
    pub sent_at: Time,
    index: u32,
}

/// The highest segment reported by SACK, by its index in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Highest(u32);

/// The scoreboard of one connection.
#[derive(Debug)]
pub struct Scoreboard {
    ring: Vec<Sent>,
    /// The stamps of the same segments, if they are kept; else empty.
    stamps: Vec<Stamp>,
    keeps_stamps: bool,
    /// Counters that wrap; a segment's index in the ring is its counter modulo the ring's size.
    first: u32,
    end: u32,
    mss: u32,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// SACKed or lost, less those resent: outstanding, but not in flight.
    absent: u32,
    /// Lost and not resent.
    waiting: u32,
    /// Segments in the ring that were ever retransmitted.
    repeated: u32,
    highest_sacked: Option<u32>,
    /// Blocks of the last acknowledgement: only the new part of a block is walked.
    known: [SackBlock; MAX_SACK_BLOCKS],
    rack: RackPoint,
    rack_advanced: bool,
    /// Original transmissions before this one are delivered or judged lost.
    judged: u32,
    /// Retransmissions in the order in which they were sent.
    resends: VecDeque<(u32, Time)>,
    /// No segment before this one waits to be resent.
    resend_from: u32,
    /// The segments judged lost, if they are noted.
    noted: Option<Vec<Lost>>,
    /// The stamps of segments judged lost that the congestion control was not told of yet, if it asks for them.
    untold: Option<Vec<Stamp>>,
}

impl Scoreboard {
    /// An empty scoreboard for segments of mostly `mss` bytes. `keeps_stamps`: rate samples are taken of what it delivers.
    pub fn new(mss: u16, keeps_stamps: bool) -> Self {
        Self {
            ring: Vec::new(), // many ends never send
            stamps: Vec::new(),
            keeps_stamps,
            first: 0,
            end: 0,
            mss: u32::from(mss),
            sacked: 0,
            lost: 0,
            resent: 0,
            absent: 0,
            waiting: 0,
            repeated: 0,
            highest_sacked: None,
            known: [SackBlock::NONE; MAX_SACK_BLOCKS],
            rack: RackPoint::default(),
            rack_advanced: false,
            judged: 0,
            resends: VecDeque::new(),
            resend_from: 0,
            noted: None,
            untold: None,
        }
    }

    /// This, for segments of mostly `mss` bytes. Nothing is in it.
    pub fn of_segments(mut self, mss: u32) -> Self {
        self.mss = mss;
        self
    }

    /// This, noting every segment that is judged lost if `notes`.
    pub fn note_losses(mut self, notes: bool) -> Self {
        self.noted = notes.then(Vec::new);
        self
    }

    /// Takes the segments judged lost since the last call, if they are noted.
    pub fn take_losses(&mut self) -> Vec<Lost> {
        self.noted.as_mut().map_or(Vec::new(), std::mem::take)
    }

    /// This, keeping the stamps of segments that are judged lost for [`Scoreboard::take_untold`] if `tells`.
    pub fn tell_losses(mut self, tells: bool) -> Self {
        self.untold = tells.then(Vec::new);
        self
    }

    /// Takes the stamps of the segments judged lost since the last call, in the order in which they were judged.
    pub fn take_untold(&mut self) -> Vec<Stamp> {
        self.untold.as_mut().map_or(Vec::new(), std::mem::take)
    }

    /// Segments sent and not cumulatively acknowledged.
    pub const fn outstanding(&self) -> u32 {
        self.end.wrapping_sub(self.first)
    }
    /// True if everything sent has been acknowledged.
    pub const fn is_empty(&self) -> bool {
        self.end == self.first
    }
    /// Segments believed to be in the network (RFC 6675's pipe, in segments).
    pub const fn in_flight(&self) -> u32 {
        self.outstanding().wrapping_sub(self.absent)
    }
    /// Segments reported by SACK.
    pub const fn sacked(&self) -> u32 {
        self.sacked
    }
    /// Segments judged lost and not yet delivered.
    pub const fn lost(&self) -> u32 {
        self.lost
    }
    /// Retransmissions in flight.
    pub const fn resent(&self) -> u32 {
        self.resent
    }
    /// True if the oldest outstanding segment has been sent again.
    pub fn is_first_resent(&self) -> bool {
        !self.is_empty() && self.at(self.first).ever_resent
    }
    /// True if every segment was sent once, and none is known to have arrived or to be lost.
    pub const fn is_clean(&self) -> bool {
        self.sacked | self.lost | self.repeated == 0
    }
    /// True if a lost segment waits to be retransmitted.
    pub const fn has_waiting(&self) -> bool {
        self.waiting > 0
    }
    /// When the oldest outstanding segment was last sent.
    pub fn oldest_sent_at(&self) -> Option<Time> {
        (!self.is_empty()).then(|| self.at(self.first).sent_at)
    }

    /// As [`crate::Endpoint::prefetch`], of the oldest segment.
    pub fn prefetch(&self) {
        if !self.is_empty() {
            prefetch(self.at(self.first));
        }
    }

    fn at(&self, index: u32) -> &Sent {
        &self.ring[index as usize & (self.ring.len() - 1)]
    }

    fn at_mut(&mut self, index: u32) -> &mut Sent {
        let mask = self.ring.len() - 1;
        &mut self.ring[index as usize & mask]
    }

    /// Adds a segment sent for the first time: `len` sequence numbers from `seq`, directly after the last segment.
    #[inline(always)]
    pub fn push(&mut self, seq: Seq, len: u32, sent_at: Time, stamp: Option<Stamp>) {
        if self.outstanding() as usize == self.ring.len() {
            self.grow();
        }
        let index = self.end;
        *self.at_mut(index) = Sent {
            seq,
            len,
            sent_at,
            ..Sent::default()
        };
        self.keep(index, stamp);
        self.lengthen(1);
    }

    /// So many segments have been added. Once in a turn of the ring, before counters wrap, no index is left far behind.
    #[inline(always)]
    fn lengthen(&mut self, segments: u32) {
        let end = self.end.wrapping_add(segments);
        if (end ^ self.end) as usize >= self.ring.len() {
            cold_path();
            self.forget_acknowledged();
        }
        self.end = end;
    }

    /// The last segment ends a write: every transmission carries PSH.
    #[inline(always)]
    pub fn push_ends(&mut self) {
        self.at_mut(self.end.wrapping_sub(1)).pushed = true;
    }

    /// Adds so many segments of `len` from `seq` on, without stamps.
    #[inline(always)]
    pub fn push_alike(&mut self, seq: Seq, len: u32, segments: u32, sent_at: Time) {
        let mut sent = Sent {
            seq,
            len,
            sent_at,
            ..Sent::default()
        };
        while self.outstanding() as usize + segments as usize > self.ring.len() {
            self.grow();
        }
        // As a usize the index needs no comparison with the ring's length.
        let mut index = self.end as usize;
        let ring = self.ring.as_mut_slice();
        for _ in 0..segments {
            ring[index & (ring.len() - 1)] = sent;
            sent.seq += len;
            index = index.wrapping_add(1);
        }
        self.lengthen(segments);
    }

    /// Keeps the stamp of a segment, if there is one.
    #[inline(always)]
    fn keep(&mut self, index: u32, stamp: Option<Stamp>) {
        if let Some(stamp) = stamp {
            let mask = self.stamps.len() - 1;
            self.stamps[index as usize & mask] = stamp;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.ring.len()).max(FIRST_RING);
        let in_use = (0..self.outstanding()).map(|offset| self.first.wrapping_add(offset));
        self.ring = spread(&self.ring, in_use.clone(), size);
        if self.keeps_stamps {
            self.stamps = spread(&self.stamps, in_use, size);
        }
    }

    /// The highest segment reported by SACK.
    pub const fn highest_sacked(&self) -> Option<Highest> {
        match self.highest_sacked {
            Some(index) => Some(Highest(index)),
            None => None,
        }
    }

    /// Processes the cumulative acknowledgement of everything before `ack`. A segment below `sacked_before`, the highest segment sacked before this
    /// acknowledgement, was reordered; the acknowledgement's own blocks are no evidence, since they report segments
    /// beyond `ack`.
    pub fn acknowledge(&mut self, ack: Seq, sacked_before: Option<Highest>, acked: &mut Acked) {
        while !self.is_empty() {
            let index = self.first;
            let segment = *self.at(index);
            if segment.end().after(ack) {
                self.trim(ack);
                break;
            }
            self.first = index.wrapping_add(1);
            acked.cumulative += 1;
            if segment.lost || segment.ever_resent {
                self.uncount(segment);
                self.repeated -= u32::from(segment.ever_resent);
                acked.resent_acked |= segment.ever_resent;
            }
            if segment.sacked {
                self.sacked -= 1;
                self.absent = self.absent.wrapping_sub(1);
                continue;
            }
            acked.delivered += 1;
            if !segment.ever_resent {
                let first = acked.ack_times.map_or(segment.sent_at, |(first, _)| first);
                acked.ack_times = Some((first, segment.sent_at));
                acked.original_delivered |= !segment.end().after(acked.recovery_point);
                if sacked_before.is_some_and(|highest| is_before(index, highest.0)) {
                    self.note_order(index, acked);
                }
            }
            self.deliver(index, &segment, acked);
        }
        self.forget_acknowledged();
        if self
            .highest_sacked
            .is_some_and(|highest| is_before(highest, self.first))
        {
            self.highest_sacked = None;
        }
    }

    /// The fast path of [`Scoreboard::acknowledge`], valid while [`Scoreboard::is_clean`]. Returns `None` and changes
    /// nothing if less than one segment is acknowledged.
    #[inline(always)]
    pub fn acknowledge_clean(&mut self, ack: Seq, now: Time) -> Option<InOrder> {
        let ring = self.ring.as_slice();
        let mut index = self.first as usize;
        let mut last = &ring[index & (ring.len() - 1)];
        if last.end().after(ack) {
            return None;
        }
        let first_sent_at = last.sent_at;
        let (mut segments, outstanding) = (1, self.outstanding());
        while segments != outstanding {
            index = index.wrapping_add(1);
            let segment = &ring[index & (ring.len() - 1)];
            if segment.end().after(ack) {
                break;
            }
            last = segment;
            segments += 1;
        }
        let (last_sent_at, last_end) = (last.sent_at, last.end());
        self.first = self.first.wrapping_add(segments);
        if last_end != ack {
            self.trim(ack);
        }
        self.note_delivery(last_sent_at, last_end, now);
        Some(InOrder {
            segments,
            first_sent_at,
            last_sent_at,
        })
    }

    /// Removes the acknowledged bytes before `ack` from the oldest segment.
    #[inline(always)]
    fn trim(&mut self, ack: Seq) {
        let front = self.at_mut(self.first);
        if front.seq.before(ack) {
            front.len -= ack.since(front.seq);
            front.seq = ack;
        }
    }

    /// Skips acknowledged segments when judging losses, and when resending. To be called before either.
    fn forget_acknowledged(&mut self) {
        for index in [&mut self.judged, &mut self.resend_from] {
            if is_before(*index, self.first) {
                *index = self.first;
            }
        }
    }

    /// Removes a segment from the counts of lost and retransmitted segments.
    fn uncount(&mut self, segment: Sent) {
        self.lost -= u32::from(segment.lost);
        self.resent -= u32::from(segment.resent);
        let absent = u32::from(segment.lost).wrapping_sub(u32::from(segment.resent));
        self.absent = self.absent.wrapping_sub(absent);
        self.waiting -= u32::from(segment.lost && !segment.resent);
    }

    /// Processes SACK blocks, all above the cumulative acknowledgement: the first `count` of `blocks`.
    pub fn sack(
        &mut self,
        mut blocks: [SackBlock; MAX_SACK_BLOCKS],
        count: usize,
        acked: &mut Acked,
    ) {
        let blocks_used = &mut blocks[..count];
        blocks_used.sort_unstable_by(|a, b| (a.start.since(b.start) as i32).cmp(&0));
        for block in &*blocks_used {
            let mut start = block.start;
            // Skip what the last acknowledgement already reported: typically all but the end.
            for known in self.known {
                if known.is_none() {
                    break;
                }
                if known.end.after(start) && block.end.after(known.start) {
                    self.sack_range(start, known.start, acked);
                    start = known.end;
                }
            }
            self.sack_range(start, block.end, acked);
        }
        self.known = blocks;
    }

    #[inline(always)]
    fn sack_range(&mut self, start: Seq, end: Seq, acked: &mut Acked) {
        if !start.before(end) {
            return;
        }
        let mut index = self.find(start);
        if end.since(start) > self.mss {
            index = self.sack_originals(index, end, acked);
        }
        while is_before(index, self.end) && !self.at(index).end().after(end) {
            if !self.at(index).sacked {
                self.note_sacked(index, acked);
            }
            index = index.wrapping_add(1);
        }
    }

    /// As [`Scoreboard::note_sacked`] of each segment from `first` on that ends by `end`, as far as they were sent once and are
    /// not judged lost: what is noted of all is what the first and the last of them leave. Returns the index behind them.
    fn sack_originals(&mut self, first: u32, end: Seq, acked: &mut Acked) -> u32 {
        let mut index = first;
        while is_before(index, self.end) {
            let segment = self.at_mut(index);
            let is_original =
                !(segment.sacked | segment.lost | segment.resent | segment.ever_resent);
            if !is_original || segment.end().after(end) {
                break;
            }
            segment.sacked = true;
            index = index.wrapping_add(1);
        }
        let count = index.wrapping_sub(first);
        if count == 0 {
            return first;
        }
        let last = index.wrapping_sub(1);
        let (oldest, newest) = (*self.at(first), *self.at(last));
        self.sacked += count;
        self.absent = self.absent.wrapping_add(count);
        acked.sacked += count;
        acked.delivered += count;
        let begin = acked.sack_times.map_or(oldest.sent_at, |(begin, _)| begin);
        acked.sack_times = Some((begin, newest.sent_at));
        acked.original_delivered |= !oldest.end().after(acked.recovery_point);
        self.note_order(first, acked);
        self.deliver(last, &newest, acked);
        self.raise_highest(last);
        index
    }

    /// Notes that SACK reports a segment for the first time.
    #[inline(never)]
    fn note_sacked(&mut self, index: u32, acked: &mut Acked) {
        let segment = *self.at(index);
        self.sacked += 1;
        self.absent = self.absent.wrapping_add(1);
        self.uncount(segment);
        let marked = self.at_mut(index);
        marked.sacked = true;
        marked.lost = false;
        marked.resent = false;
        acked.sacked += 1;
        acked.delivered += 1;
        if !segment.ever_resent {
            let first = acked.sack_times.map_or(segment.sent_at, |(first, _)| first);
            acked.sack_times = Some((first, segment.sent_at));
            acked.original_delivered |= !segment.end().after(acked.recovery_point);
            self.note_order(index, acked);
        }
        self.deliver(index, &segment, acked);
        self.raise_highest(index);
    }

    fn raise_highest(&mut self, index: u32) {
        let is_higher = |highest| is_before(highest, index);
        if self.highest_sacked.is_none_or(is_higher) {
            self.highest_sacked = Some(index);
        }
    }

    /// The first segment that does not begin before `seq`.
    fn find(&self, seq: Seq) -> u32 {
        if self.is_empty() || !self.at(self.first).seq.before(seq) {
            return self.first;
        }
        // Usually all segments are full; then this guess is right and no search is needed.
        let guess = self
            .first
            .wrapping_add(seq.since(self.at(self.first).seq) / self.mss);
        if is_before(guess, self.end) && self.at(guess).seq == seq {
            return guess;
        }
        let (mut low, mut high) = (0, self.outstanding());
        while low < high {
            let middle = low.midpoint(high);
            if self.at(self.first.wrapping_add(middle)).seq.before(seq) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.first.wrapping_add(low)
    }

    /// Notes reordering: a segment below the highest sacked one is delivered without having been retransmitted.
    fn note_order(&self, index: u32, acked: &mut Acked) {
        if let Some(highest) = self
            .highest_sacked
            .filter(|highest| is_before(index, *highest))
        {
            acked.reordering = acked.reordering.max(highest.wrapping_sub(index));
        }
    }

    /// Marks a segment as delivered (RFC 8985 §6.2 step 2, RACK_update), and selects the segment of the rate sample.
    fn deliver(&mut self, index: u32, segment: &Sent, acked: &mut Acked) {
        let sent_at = segment.sent_at;
        if acked.latest.is_none_or(|latest| sent_at >= latest.sent_at) {
            acked.latest = Some(Delivered { sent_at, index });
        }
        let rtt = acked.now - segment.sent_at;
        if segment.ever_resent && rtt < acked.min_rtt {
            return; // probably the original was delivered, not the retransmission
        }
        self.note_delivery(sent_at, segment.end(), acked.now);
    }

    /// RFC 8985 §6.2 step 2: RACK uses the delivered segment that was sent last.
    fn note_delivery(&mut self, sent_at: Time, end: Seq, now: Time) {
        self.rack_advanced = true;
        self.rack.rtt = now - sent_at;
        if is_sent_after(sent_at, end, self.rack.sent_at, self.rack.end) {
            self.rack.sent_at = sent_at;
            self.rack.end = end;
        }
    }

    /// True if the receiver reported the oldest outstanding segment by SACK but did not acknowledge it.
    pub fn is_reneged(&self) -> bool {
        !self.is_empty() && self.at(self.first).sacked
    }

    /// Sequence number and length of the first lost segment that waits to be retransmitted.
    pub fn next_lost(&mut self) -> Option<(Seq, u32)> {
        if self.waiting == 0 {
            return None;
        }
        self.forget_acknowledged();
        while is_before(self.resend_from, self.end) {
            let segment = self.at(self.resend_from);
            if segment.lost && !segment.resent {
                return Some((segment.seq, segment.len));
            }
            self.resend_from = self.resend_from.wrapping_add(1);
        }
        None
    }

    /// Notes that the segment returned by [`Scoreboard::next_lost`] was retransmitted.
    pub fn mark_resent(&mut self, sent_at: Time, stamp: Option<Stamp>) {
        let index = self.resend_from;
        self.stamp_resent(index, sent_at, stamp);
        self.resend_from = index.wrapping_add(1);
    }

    /// Notes that a tail loss probe retransmits the newest segment that is not known to have arrived. Returns its
    /// sequence number and length. Unless the segment was lost, it counts as in flight once, as in Linux.
    pub fn resend_newest(&mut self, sent_at: Time, stamp: Option<Stamp>) -> Option<(Seq, u32)> {
        let index = (1..=self.outstanding())
            .map(|back| self.end.wrapping_sub(back))
            .find(|index| !self.at(*index).sacked)?;
        self.stamp_resent(index, sent_at, stamp);
        let newest = self.at(index);
        Some((newest.seq, newest.len))
    }

    /// True if the segment retransmitted last ends a write.
    pub fn resent_pushed(&self) -> bool {
        (self.resends.back()).is_some_and(|(index, _)| self.at(*index).pushed)
    }

    fn stamp_resent(&mut self, index: u32, sent_at: Time, stamp: Option<Stamp>) {
        let segment = self.at_mut(index);
        let repairs = segment.lost && !segment.resent;
        segment.resent |= repairs;
        let is_first = !std::mem::replace(&mut segment.ever_resent, true);
        segment.sent_at = sent_at;
        self.keep(index, stamp);
        self.repeated += u32::from(is_first);
        self.resent += u32::from(repairs);
        self.absent = self.absent.wrapping_sub(u32::from(repairs));
        self.waiting -= u32::from(repairs);
        self.resends.push_back((index, sent_at));
    }

    /// The stamp of a segment just delivered; stamps must be kept. Call it before anything else is sent.
    pub fn stamp_of(&self, delivered: Delivered) -> &Stamp {
        &self.stamps[delivered.index as usize & (self.stamps.len() - 1)]
    }
}

/// Compares ring counters, which wrap.
const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests;
