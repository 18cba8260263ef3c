//! What has been sent and not yet cumulatively acknowledged, and what is known of each segment: the scoreboard
//! of RFC 6675 §3, with the send times that RACK (RFC 8985 §5) works on.
//!
//! Segments lie in a ring in sequence order. Every operation of the loss-free path takes constant time, and so
//! does a SACK block per segment that it reports for the first time, whatever the window.

use std::collections::VecDeque;

use sojourn_units::{Duration, Time};

use crate::segment::{MAX_SACK_BLOCKS, SackBlock};
use crate::seq::Seq;

/// What is noted of a segment each time that it is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// When it was sent.
    pub sent_at: Time,
    /// The connection's count of delivered segments then, for rate samples, modulo 2^32.
    pub delivered: u32,
    /// The same of lost ones.
    pub lost: u32,
    /// Segments in flight then, this one not counted.
    pub in_flight: u32,
    /// When that count was reached.
    pub delivered_at: Time,
    /// When the first segment of that flight was sent.
    pub first_sent_at: Time,
    /// The sender had nothing more to send then.
    pub app_limited: bool,
}

/// A segment in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    seq: Seq,
    /// Sequence space it takes, FIN included.
    len: u32,
    stamp: Stamp,
    sacked: bool,
    lost: bool,
    /// A retransmission of it is in flight.
    resent: bool,
    ever_resent: bool,
}

impl Sent {
    fn end(&self) -> Seq {
        self.seq + self.len
    }
}

/// What one acknowledgement told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acked {
    /// Segments delivered that were not known to be before.
    pub delivered: u32,
    /// Segments newly reported by SACK.
    pub sacked: u32,
    /// Segments that left the ring.
    pub cumulative: u32,
    /// Send times of the first and last segments cumulatively acknowledged that were never resent.
    pub ack_times: Option<(Time, Time)>,
    /// The same for segments reported by SACK.
    pub sack_times: Option<(Time, Time)>,
    /// Something retransmitted was cumulatively acknowledged: no RTT sample (Karn).
    pub resent_acked: bool,
    /// Something never retransmitted, sent before the recovery point, was delivered (F-RTO).
    pub original_delivered: bool,
    /// Segments delivered out of order without having been resent: how far back the farthest was.
    pub reordering: u32,
    /// The segment sent last among those delivered, for rate samples.
    pub latest: Option<Delivered>,
}

/// A delivered segment, by its place in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// When it was last sent.
    pub sent_at: Time,
    index: u32,
}

/// RACK's view of the most recently sent segment known to be delivered (RFC 8985 §5.2).
#[derive(Clone, Copy, Debug, Default)]
struct RackPoint {
    sent_at: Time,
    end: Seq,
    rtt: Duration,
}

/// Segments found lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// How many.
    pub segments: u32,
    /// A retransmission was among them.
    pub resent: bool,
    /// When those that are still in doubt are to be judged.
    pub judge_in: Option<Duration>,
}

/// The scoreboard of one connection.
#[derive(Debug)]
pub struct Scoreboard {
    ring: Vec<Sent>,
    /// Counters that wrap; a segment's place in the ring is its counter modulo the ring's size.
    first: u32,
    end: u32,
    mss: u32,
    sacked: u32,
    lost: u32,
    resent: u32,
    /// Lost and not resent.
    waiting: u32,
    highest_sacked: Option<u32>,
    /// Blocks of the last acknowledgement, so that only what is new in a block is walked over.
    known: [SackBlock; MAX_SACK_BLOCKS],
    rack: RackPoint,
    rack_advanced: bool,
    /// Originals before this one are delivered or judged lost.
    judged: u32,
    /// Retransmissions in the order in which they were sent.
    resends: VecDeque<(u32, Time)>,
    /// No segment before this one waits to be resent.
    resend_from: u32,
}

impl Scoreboard {
    /// An empty scoreboard for segments of mostly `mss` bytes.
    pub fn new(mss: u16) -> Self {
        Self {
            ring: vec![Sent::default(); 64],
            first: 0,
            end: 0,
            mss: u32::from(mss),
            sacked: 0,
            lost: 0,
            resent: 0,
            waiting: 0,
            highest_sacked: None,
            known: [SackBlock::NONE; MAX_SACK_BLOCKS],
            rack: RackPoint::default(),
            rack_advanced: false,
            judged: 0,
            resends: VecDeque::new(),
            resend_from: 0,
        }
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
        self.outstanding() + self.resent - self.sacked - self.lost
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
    /// True if something lost waits to be sent again.
    pub const fn has_waiting(&self) -> bool {
        self.waiting > 0
    }
    /// When the oldest outstanding segment was last sent.
    pub fn oldest_sent_at(&self) -> Option<Time> {
        (!self.is_empty()).then(|| self.at(self.first).stamp.sent_at)
    }

    fn at(&self, index: u32) -> &Sent {
        &self.ring[index as usize & (self.ring.len() - 1)]
    }

    fn at_mut(&mut self, index: u32) -> &mut Sent {
        let mask = self.ring.len() - 1;
        &mut self.ring[index as usize & mask]
    }

    /// Notes a segment sent for the first time: `len` sequence numbers from `seq`, which follow the last one's.
    pub fn push(&mut self, seq: Seq, len: u32, stamp: Stamp) {
        if self.outstanding() as usize == self.ring.len() {
            self.grow();
        }
        let index = self.end;
        *self.at_mut(index) = Sent {
            seq,
            len,
            stamp,
            ..Sent::default()
        };
        self.end = self.end.wrapping_add(1);
    }

    fn grow(&mut self) {
        let mut ring = vec![Sent::default(); self.ring.len() * 2];
        let mask = ring.len() - 1;
        for offset in 0..self.outstanding() {
            let index = self.first.wrapping_add(offset);
            ring[index as usize & mask] = *self.at(index);
        }
        self.ring = ring;
    }

    /// Takes the cumulative acknowledgement of everything before `ack`. `recovery_point` bounds what counts as
    /// an original for F-RTO.
    pub fn acknowledge(
        &mut self,
        ack: Seq,
        recovery_point: Seq,
        now: Time,
        min_rtt: Duration,
        acked: &mut Acked,
    ) {
        while !self.is_empty() {
            let index = self.first;
            let segment = *self.at(index);
            if segment.end().after(ack) {
                if segment.seq.before(ack) {
                    let part = ack.since(segment.seq);
                    let front = self.at_mut(index);
                    front.seq = ack;
                    front.len -= part;
                }
                break;
            }
            self.first = index.wrapping_add(1);
            acked.cumulative += 1;
            if segment.lost || segment.ever_resent {
                self.uncount(segment);
                acked.resent_acked |= segment.ever_resent;
            }
            if segment.sacked {
                self.sacked -= 1;
                continue;
            }
            acked.delivered += 1;
            if !segment.ever_resent {
                let first = acked
                    .ack_times
                    .map_or(segment.stamp.sent_at, |(first, _)| first);
                acked.ack_times = Some((first, segment.stamp.sent_at));
                acked.original_delivered |= !segment.end().after(recovery_point);
                self.note_order(index, acked);
            }
            self.deliver(index, &segment, now, min_rtt, acked);
        }
        for index in [&mut self.judged, &mut self.resend_from] {
            if is_before(*index, self.first) {
                *index = self.first;
            }
        }
        if self
            .highest_sacked
            .is_some_and(|highest| is_before(highest, self.first))
        {
            self.highest_sacked = None;
        }
    }

    /// Takes a segment out of the counts of what is lost or resent.
    fn uncount(&mut self, segment: Sent) {
        self.lost -= u32::from(segment.lost);
        self.resent -= u32::from(segment.resent);
        self.waiting -= u32::from(segment.lost && !segment.resent);
    }

    /// Takes SACK blocks, all above what is acknowledged, and goes through them in sequence order.
    pub fn sack(
        &mut self,
        blocks: &[SackBlock],
        recovery_point: Seq,
        now: Time,
        min_rtt: Duration,
        acked: &mut Acked,
    ) {
        let mut sorted = [SackBlock::NONE; MAX_SACK_BLOCKS];
        let sorted = &mut sorted[..blocks.len()];
        sorted.copy_from_slice(blocks);
        sorted.sort_unstable_by(|a, b| (a.start.since(b.start) as i32).cmp(&0));
        for &block in &*sorted {
            let mut start = block.start;
            // What the last acknowledgement already reported needs no second walk: typically all but the end.
            let covering = self.known.iter().find(|known| {
                !known.is_none() && !known.start.after(start) && known.end.after(start)
            });
            if let Some(known) = covering {
                start = known.end;
            }
            let known_within = self
                .known
                .iter()
                .find(|known| {
                    !known.is_none() && known.start.after(start) && !known.end.after(block.end)
                })
                .copied();
            match known_within {
                Some(known) => {
                    self.sack_range(start, known.start, recovery_point, now, min_rtt, acked);
                    self.sack_range(known.end, block.end, recovery_point, now, min_rtt, acked);
                }
                None => self.sack_range(start, block.end, recovery_point, now, min_rtt, acked),
            }
        }
        self.known = [SackBlock::NONE; MAX_SACK_BLOCKS];
        self.known[..blocks.len()].copy_from_slice(blocks);
    }

    fn sack_range(
        &mut self,
        start: Seq,
        end: Seq,
        recovery_point: Seq,
        now: Time,
        min_rtt: Duration,
        acked: &mut Acked,
    ) {
        if !start.before(end) {
            return;
        }
        let mut index = self.find(start);
        while is_before(index, self.end) && !self.at(index).end().after(end) {
            let segment = *self.at(index);
            if !segment.sacked {
                self.sacked += 1;
                self.uncount(segment);
                let marked = self.at_mut(index);
                marked.sacked = true;
                marked.lost = false;
                marked.resent = false;
                acked.sacked += 1;
                acked.delivered += 1;
                if !segment.ever_resent {
                    let first = acked
                        .sack_times
                        .map_or(segment.stamp.sent_at, |(first, _)| first);
                    acked.sack_times = Some((first, segment.stamp.sent_at));
                    acked.original_delivered |= !segment.end().after(recovery_point);
                    self.note_order(index, acked);
                }
                self.deliver(index, &segment, now, min_rtt, acked);
                if self
                    .highest_sacked
                    .is_none_or(|highest| is_before(highest, index))
                {
                    self.highest_sacked = Some(index);
                }
            }
            index = index.wrapping_add(1);
        }
    }

    /// The first segment that does not begin before `seq`.
    fn find(&self, seq: Seq) -> u32 {
        if self.is_empty() || !self.at(self.first).seq.before(seq) {
            return self.first;
        }
        // Nearly always all segments are full: then this is the one, and no search is needed.
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

    /// A segment delivered below the highest one sacked, without having been resent, was overtaken.
    fn note_order(&self, index: u32, acked: &mut Acked) {
        if let Some(highest) = self
            .highest_sacked
            .filter(|highest| is_before(index, *highest))
        {
            acked.reordering = acked.reordering.max(highest.wrapping_sub(index));
        }
    }

    /// RFC 8985 §6.2 step 2 (RACK_update), and the choice of the rate sample's segment.
    fn deliver(
        &mut self,
        index: u32,
        segment: &Sent,
        now: Time,
        min_rtt: Duration,
        acked: &mut Acked,
    ) {
        let sent_at = segment.stamp.sent_at;
        if acked.latest.is_none_or(|latest| sent_at >= latest.sent_at) {
            acked.latest = Some(Delivered { sent_at, index });
        }
        let rtt = now - segment.stamp.sent_at;
        if segment.ever_resent && rtt < min_rtt {
            return; // most likely the original, not the retransmission
        }
        self.rack_advanced = true;
        self.rack.rtt = rtt;
        if is_sent_after(
            segment.stamp.sent_at,
            segment.end(),
            self.rack.sent_at,
            self.rack.end,
        ) {
            self.rack.sent_at = segment.stamp.sent_at;
            self.rack.end = segment.end();
        }
    }

    /// RFC 8985 §6.2 step 5 (RACK_detect_loss): judges lost what was sent before the segment delivered last, if
    /// it is overdue by the reordering window.
    pub fn detect_losses(&mut self, now: Time, reordering_window: Duration) -> Losses {
        let mut losses = Losses::default();
        let patience = self.rack.rtt + reordering_window;
        let mut contiguous = true;
        let mut index = self.judged;
        while is_before(index, self.end) {
            let segment = *self.at(index);
            if !segment.ever_resent {
                if !is_sent_after(
                    self.rack.sent_at,
                    self.rack.end,
                    segment.stamp.sent_at,
                    segment.end(),
                ) {
                    break;
                }
                if !segment.sacked && !segment.lost {
                    if segment.stamp.sent_at + patience <= now {
                        self.mark_lost(index, &mut losses);
                    } else {
                        contiguous = false;
                        losses.wait(segment.stamp.sent_at + patience - now);
                    }
                }
            }
            index = index.wrapping_add(1);
            if contiguous {
                self.judged = index;
            }
        }
        while let Some(&(index, sent_at)) = self.resends.front() {
            let in_ring = !is_before(index, self.first) && is_before(index, self.end);
            let segment = *self.at(index);
            let pending = !segment.sacked && (segment.resent || !segment.lost);
            if in_ring && pending && segment.stamp.sent_at == sent_at {
                if !is_sent_after(self.rack.sent_at, self.rack.end, sent_at, segment.end()) {
                    break;
                }
                if sent_at + patience > now {
                    losses.wait(sent_at + patience - now);
                    break;
                }
                self.mark_lost(index, &mut losses);
            }
            self.resends.pop_front();
        }
        losses
    }

    /// As [`Scoreboard::detect_losses`], if an acknowledgement has told anything new since the last time.
    pub fn detect_losses_if_advanced(&mut self, now: Time, reordering_window: Duration) -> Losses {
        if std::mem::replace(&mut self.rack_advanced, false) {
            self.detect_losses(now, reordering_window)
        } else {
            Losses::default()
        }
    }

    /// Without SACK: the oldest segment is lost (RFC 6582 §3.2).
    pub fn mark_first_lost(&mut self) -> Losses {
        let mut losses = Losses::default();
        if !self.is_empty() && !self.at(self.first).lost {
            self.mark_lost(self.first, &mut losses);
        }
        losses
    }

    fn mark_lost(&mut self, index: u32, losses: &mut Losses) {
        let segment = *self.at(index);
        losses.segments += 1;
        losses.resent |= segment.resent;
        self.uncount(segment);
        self.lost += 1;
        self.waiting += 1;
        let marked = self.at_mut(index);
        marked.lost = true;
        marked.resent = false;
        if is_before(index, self.resend_from) {
            self.resend_from = index;
        }
    }

    /// A retransmission timeout: everything outstanding is lost (RFC 6298 §5.4, RFC 8985 §6.3), except what
    /// was sent within the last RTT. `forget_sacks` when the receiver has gone back on its word.
    pub fn mark_all_lost(&mut self, now: Time, forget_sacks: bool) {
        let recent = self.rack.rtt;
        let mut losses = Losses::default();
        for offset in 0..self.outstanding() {
            let index = self.first.wrapping_add(offset);
            if forget_sacks && self.at(index).sacked {
                self.at_mut(index).sacked = false;
                self.sacked -= 1;
            }
            let segment = self.at(index);
            if !segment.sacked && (offset == 0 || segment.stamp.sent_at + recent <= now) {
                self.mark_lost(index, &mut losses);
            }
        }
        if forget_sacks {
            self.highest_sacked = None;
        }
        self.known = [SackBlock::NONE; MAX_SACK_BLOCKS];
        self.resend_from = self.first;
    }

    /// True if the receiver has reported the oldest outstanding segment by SACK without acknowledging it.
    pub fn is_reneged(&self) -> bool {
        !self.is_empty() && self.at(self.first).sacked
    }

    /// Takes back all judgements of loss: they were mistaken.
    pub fn undo_losses(&mut self) {
        for offset in 0..self.outstanding() {
            let segment = self.at_mut(self.first.wrapping_add(offset));
            segment.lost = false;
        }
        self.lost = 0;
        self.waiting = 0;
    }

    /// The first lost segment that waits to be resent, if any: its sequence number and length.
    pub fn next_lost(&mut self) -> Option<(Seq, u32)> {
        if self.waiting == 0 {
            return None;
        }
        while is_before(self.resend_from, self.end) {
            let segment = self.at(self.resend_from);
            if segment.lost && !segment.resent {
                return Some((segment.seq, segment.len));
            }
            self.resend_from = self.resend_from.wrapping_add(1);
        }
        None
    }

    /// Notes that the segment which [`Scoreboard::next_lost`] named was sent again.
    pub fn mark_resent(&mut self, stamp: Stamp) {
        let index = self.resend_from;
        self.stamp_resent(index, stamp);
        self.resend_from = index.wrapping_add(1);
    }

    /// Notes that a tail loss probe sends the newest segment again that is not known to have arrived. Returns its
    /// sequence number and length. Unless the segment was lost, it counts in flight once, as in Linux.
    pub fn resend_newest(&mut self, stamp: Stamp) -> Option<(Seq, u32)> {
        let index = (1..=self.outstanding())
            .map(|back| self.end.wrapping_sub(back))
            .find(|index| !self.at(*index).sacked)?;
        self.stamp_resent(index, stamp);
        let newest = self.at(index);
        Some((newest.seq, newest.len))
    }

    fn stamp_resent(&mut self, index: u32, stamp: Stamp) {
        let segment = self.at_mut(index);
        let repairs = segment.lost && !segment.resent;
        segment.resent |= repairs;
        segment.ever_resent = true;
        segment.stamp = stamp;
        self.resent += u32::from(repairs);
        self.waiting -= u32::from(repairs);
        self.resends.push_back((index, stamp.sent_at));
    }

    /// What was noted of a segment just delivered when it was last sent. To be asked before anything else is sent.
    pub fn stamp_of(&self, delivered: Delivered) -> &Stamp {
        &self.at(delivered.index).stamp
    }

    /// The RTT of the delivery that RACK last went by.
    pub const fn rack_rtt(&self) -> Duration {
        self.rack.rtt
    }
}

impl Losses {
    fn wait(&mut self, span: Duration) {
        self.judge_in = Some(self.judge_in.map_or(span, |longest| longest.max(span)));
    }
}

/// Order of ring counters, which wrap.
const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// RFC 8985 §6.2 (RACK_sent_after): later, or at the same instant and higher in sequence.
fn is_sent_after(at: Time, end: Seq, other_at: Time, other_end: Seq) -> bool {
    at > other_at || (at == other_at && end.after(other_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;
    const RTT: Duration = Duration::from_millis(100);

    fn sent_at(at: Time) -> Stamp {
        Stamp {
            sent_at: at,
            ..Stamp::default()
        }
    }

    /// `count` segments sent a millisecond apart from `first` on.
    fn board(count: u32) -> Scoreboard {
        let mut board = Scoreboard::new(MSS as u16);
        for n in 0..count {
            board.push(Seq(n * MSS), MSS, sent_at(Time::from_millis(u64::from(n))));
        }
        board
    }

    fn block(from: u32, to: u32) -> SackBlock {
        SackBlock {
            start: Seq(from * MSS),
            end: Seq(to * MSS),
        }
    }

    fn sack(board: &mut Scoreboard, blocks: &[SackBlock], now_ms: u64) -> Acked {
        let mut acked = Acked::default();
        board.sack(
            blocks,
            Seq(0),
            Time::from_millis(now_ms),
            Duration::ZERO,
            &mut acked,
        );
        acked
    }

    fn acknowledge(board: &mut Scoreboard, upto: u32, now_ms: u64) -> Acked {
        let mut acked = Acked::default();
        board.acknowledge(
            Seq(upto * MSS),
            Seq(0),
            Time::from_millis(now_ms),
            Duration::ZERO,
            &mut acked,
        );
        acked
    }

    #[test]
    fn in_flight_leaves_out_what_was_sacked_or_lost_and_counts_resends() {
        // RFC 6675 §4, SetPipe, in segments.
        let mut board = board(10);
        assert_eq!(board.in_flight(), 10);
        sack(&mut board, &[block(3, 6)], 103);
        assert_eq!(board.in_flight(), 7);
        let losses = board.detect_losses(Time::from_millis(110), Duration::ZERO);
        assert_eq!(losses.segments, 3); // 0, 1, 2 were sent before 5
        assert_eq!(board.in_flight(), 4);
        assert_eq!(board.next_lost(), Some((Seq(0), MSS)));
        board.mark_resent(sent_at(Time::from_millis(110)));
        assert_eq!(board.in_flight(), 5);
        assert_eq!(board.next_lost(), Some((Seq(MSS), MSS)));
    }

    #[test]
    fn a_block_seen_before_is_not_counted_twice() {
        let mut board = board(10);
        assert_eq!(sack(&mut board, &[block(3, 6)], 103).sacked, 3);
        assert_eq!(sack(&mut board, &[block(3, 7)], 104).sacked, 1);
        assert_eq!(
            sack(&mut board, &[block(2, 8), block(9, 10)], 105).sacked,
            3
        );
        assert_eq!(board.sacked(), 7);
    }

    #[test]
    fn what_is_within_the_reordering_window_waits() {
        // RFC 8985 §6.2: lost if sent before the delivered one and RACK.rtt + reo_wnd has passed.
        let mut board = board(4);
        sack(&mut board, &[block(3, 4)], 103); // sent at 3 ms: RTT 100 ms
        let losses = board.detect_losses(Time::from_millis(103), Duration::from_millis(2));
        assert_eq!(losses.segments, 2); // overdue since 102 (segment 0) and 103 ms (segment 1)
        assert_eq!(losses.judge_in, Some(Duration::from_millis(1)));
    }

    #[test]
    fn a_retransmission_that_is_overdue_is_lost_again() {
        let mut board = board(6);
        sack(&mut board, &[block(1, 2)], 101);
        assert_eq!(
            board
                .detect_losses(Time::from_millis(101), Duration::ZERO)
                .segments,
            1
        );
        board.next_lost().expect("segment 0 is lost");
        board.mark_resent(sent_at(Time::from_millis(101)));
        // A segment sent after the retransmission is delivered 100 ms later.
        board.push(Seq(6 * MSS), MSS, sent_at(Time::from_millis(102)));
        sack(&mut board, &[block(6, 7), block(1, 6)], 202);
        let losses = board.detect_losses(Time::from_millis(202), Duration::ZERO);
        assert_eq!((losses.segments, losses.resent), (1, true));
        assert_eq!(board.next_lost(), Some((Seq(0), MSS)));
    }

    #[test]
    fn an_ack_gives_the_first_and_last_send_times_of_originals() {
        let mut board = board(5);
        let acked = acknowledge(&mut board, 3, 103);
        assert_eq!((acked.delivered, acked.cumulative), (3, 3));
        assert_eq!(acked.ack_times, Some((Time::ZERO, Time::from_millis(2))));
        assert!(!acked.resent_acked);
    }

    #[test]
    fn an_ack_within_a_segment_trims_it() {
        let mut board = board(2);
        let mut acked = Acked::default();
        board.acknowledge(Seq(400), Seq(0), Time::from_millis(100), RTT, &mut acked);
        assert_eq!(acked.cumulative, 0);
        assert_eq!(board.outstanding(), 2);
        let mut acked = Acked::default();
        board.acknowledge(Seq(1000), Seq(0), Time::from_millis(101), RTT, &mut acked);
        assert_eq!(acked.cumulative, 1);
    }

    #[test]
    fn a_timeout_marks_everything_but_the_sacked_lost() {
        let mut board = board(5);
        sack(&mut board, &[block(2, 3)], 102);
        board.mark_all_lost(Time::from_secs(1), false);
        assert_eq!((board.lost(), board.sacked(), board.in_flight()), (4, 1, 0));
        let mut resent = Vec::new();
        while let Some((seq, _)) = board.next_lost() {
            resent.push(seq.0 / MSS);
            board.mark_resent(sent_at(Time::from_secs(1)));
        }
        assert_eq!(resent, [0, 1, 3, 4]);
    }

    #[test]
    fn the_ring_grows_without_losing_anything() {
        let mut board = board(1000);
        sack(&mut board, &[block(500, 1000)], 1100);
        assert_eq!(board.sacked(), 500);
        assert_eq!(acknowledge(&mut board, 1000, 1200).cumulative, 1000);
        assert!(board.is_empty());
        assert_eq!((board.in_flight(), board.sacked(), board.lost()), (0, 0, 0));
    }

    #[test]
    fn what_was_overtaken_shows_as_reordering() {
        let mut board = board(10);
        sack(&mut board, &[block(5, 6)], 105);
        assert_eq!(acknowledge(&mut board, 2, 106).reordering, 5);
    }
}
