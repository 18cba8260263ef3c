//! The receiving half: reassembly, SACK blocks (RFC 2018, D-SACK RFC 2883), times of acknowledgements (RFC 5681 §4.2;
//! delays and quick acknowledgements as in Linux), receive window, ECN echo (RFC 3168 §6.1.3).

mod blocks;
mod memory;
mod out_of_order;
#[cfg(test)]
mod tests;
mod window;

use sojourn_units::{Duration, Time, cold_path};

use crate::config::{Clock, Config, JIFFY, Kernel};
use crate::ecn::{self, Arrival, Feedback};
use crate::segment::{Flags, MAX_SACK_BLOCKS, SackBlock, Segment};
use crate::seq::Seq;
use blocks::Blocks;
use memory::Unread;
use out_of_order::OutOfOrder;
use window::ReceiveWindow;

pub use window::SYN_WINDOW;

/// The shortest delay of an acknowledgement (Linux's TCP_ATO_MIN and TCP_DELACK_MIN).
const DELAY_MIN: Duration = Duration::from_millis(40);
/// Arrivals within this time are at most half of the least delay apart by any clock.
const CLOSE: Duration = Duration::from_nanos(DELAY_MIN.as_nanos() / 2 - JIFFY);
/// The longest delay of an acknowledgement (Linux's TCP_DELACK_MAX).
const DELAY_MAX: Duration = Duration::from_millis(200);
/// Acknowledgements sent at once when a connection begins (Linux's TCP_MAX_QUICKACKS).
const MAX_QUICK: u32 = 16;
/// Acknowledgements of out-of-order data that are never delayed (Linux's TCP_FASTRETRANS_THRESH).
const DUPLICATES_AT_ONCE: u32 = 3;
/// Longest delay of further ones (Linux's tcp_comp_sack_delay_ns).
const COMPRESS_DELAY: Duration = Duration::from_millis(1);
/// The kernel runs this timer later by so much, unless another timer is due before (Linux's tcp_comp_sack_slack_ns).
const COMPRESS_SLACK: Duration = Duration::from_micros(100);
/// The same in Linux 7.3.
const COMPRESS_SLACK_7_3: Duration = Duration::from_micros(10);
/// Longest delay of further ones in percent of an RTT, a constant before Linux 7.3.
const COMPRESS_PERCENT: u64 = 5;
/// The same in Linux 7.3 (tcp_comp_sack_rtt_percent).
const COMPRESS_PERCENT_7_3: u64 = 33;
/// Most acknowledgements that are delayed together (Linux's tcp_comp_sack_nr).
const COMPRESS_MAX: u32 = 44;
/// Most marked segments covered by one acknowledgement (RFC 9768 §3.2.2.5.1: two or three).
const MARKS_PER_ACK: u32 = 2;
/// Blocks for which a delayed acknowledgement waits at most, as a report with timestamps has room for three (Linux's
/// TCP_SACK_BLOCKS_EXPECTED).
const BLOCKS_EXPECTED: usize = 2;

/// The local sender's estimates. The receiving half takes them for the peer's.
pub trait Estimates {
    /// The retransmission timeout, backed off.
    fn timeout(&self) -> Duration;
    /// The smoothed RTT; `None` before the first sample.
    fn smoothed_rtt(&self) -> Option<Duration>;
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Receiver {
    clock: Clock,
    sack: bool,
    /// RCV.NXT.
    next: Seq,
    received: u64,
    out_of_order: OutOfOrder,
    /// The blocks last reported, the most recent first.
    recent: Blocks,
    duplicate: Option<SackBlock>,
    window: ReceiveWindow,
    /// RCV.NXT as last acknowledged.
    acknowledged: Seq,
    mss: u32,
    ack_now: bool,
    /// When the delay of an acknowledgement ends; [`Time::MAX`]: none is delayed.
    deadline: Time,
    /// When the timer of delayed acknowledgements expires. Linux leaves it running when the acknowledgement has gone with
    /// another; then it only ends the delay of a selective acknowledgement.
    running_until: Time,
    /// Quick acknowledgements left.
    quick: u32,
    /// Quick acknowledgements are enabled.
    quickack: bool,
    /// This end answers the data that it receives, and its answers carry the acknowledgements (Linux's pingpong mode).
    interactive: bool,
    /// The end of a write is not acknowledged yet (Linux's ICSK_ACK_PUSHED).
    pushed: bool,
    /// The local application has closed.
    closed: bool,
    /// In-order bytes up to which an acknowledgement is delayed.
    held_back: u32,
    delay: Duration,
    /// When data last arrived in order.
    last_arrival: Option<Time>,
    /// Acknowledgements sent at once since `duplicates_at`, the RCV.NXT that they carry.
    duplicates_sent: u32,
    duplicates_at: Seq,
    /// Acknowledgements of out-of-order data that are delayed now.
    compressed: u32,
    /// When a segment last arrived, while an acknowledgement of out-of-order data is delayed.
    arrived: Time,
    /// When that timer last expired.
    expired: Time,
    /// When an acknowledgement goes, unless one goes before: at the end of that delay, or at this instant, after all that
    /// arrives, when the application reads. [`Time::MAX`]: there is no such instant.
    ack_by: Time,
    /// What a delayed acknowledgement reports that goes before the new segment is reported: the blocks and what waited.
    before_block: Option<Box<(Blocks, Unread)>>,
    /// Since the last segment with data was sent, nothing has come but timestamps: another says the same.
    repeats: bool,
    ts_recent: u32,
    feedback: Feedback,
    /// Packets that arrived marked (r.cep of RFC 9768 §3.2.1), and those since the last acknowledgement.
    marks: u32,
    unacknowledged_marks: u32,
    /// The AccECN option, if the peer sends it too.
    option: Option<Box<ecn::Told>>,
    /// RCV.NXT and ECE to acknowledge the data received before the marking changed.
    before_change: Option<(Seq, bool)>,
    /// The host's congestion control is DCTCP.
    is_dctcp: bool,
    echo: bool,
    ect_seen: bool,
    /// The sequence number after the peer's FIN, once one has arrived.
    fin_end: Option<Seq>,
    finished: bool,
}

impl Receiver {
    /// A receiver that expects `next`; `sack` and `feedback` are as negotiated.
    pub fn new(config: &Config, next: Seq, sack: bool, feedback: Feedback) -> Self {
        Self {
            clock: config.clock,
            sack,
            next,
            received: 0,
            out_of_order: OutOfOrder::default(),
            recent: Blocks::NONE,
            duplicate: None,
            window: ReceiveWindow::new(config, next),
            acknowledged: next,
            mss: u32::from(config.mss),
            ack_now: false,
            deadline: Time::MAX,
            running_until: Time::ZERO,
            quick: 0,
            quickack: config.quickack,
            interactive: false,
            pushed: false,
            closed: false,
            held_back: (config.ack_every - 1) * u32::from(config.mss),
            delay: Duration::ZERO,
            last_arrival: None,
            duplicates_sent: 0,
            duplicates_at: next,
            compressed: 0,
            arrived: Time::ZERO,
            expired: Time::MAX,
            ack_by: Time::MAX,
            before_block: None,
            repeats: false,
            ts_recent: 0,
            feedback,
            marks: ecn::FIRST_COUNT,
            unacknowledged_marks: 0,
            option: None,
            before_change: None,
            is_dctcp: false,
            echo: false,
            ect_seen: false,
            fin_end: None,
            finished: false,
        }
    }

    /// Payload bytes of a full segment.
    pub const fn mss(&self) -> u32 {
        self.mss
    }
    /// Payload bytes delivered in order.
    pub const fn received(&self) -> u64 {
        self.received
    }
    /// Acknowledges every change of the marking, as the receiving half of DCTCP does with AccECN too.
    pub(crate) const fn of_dctcp(mut self) -> Self {
        self.is_dctcp = true;
        self
    }

    /// The peer sends the AccECN option, which makes its segments shorter. From now on it is answered.
    pub(crate) fn answer_option(&mut self) {
        self.option = Some(Box::default());
        let shorter = self.mss - u32::from(ecn::OPTION_BYTES);
        self.held_back = self.held_back / self.mss * shorter;
        self.mss = shorter;
    }

    /// True if the peer sends the AccECN option.
    pub(crate) const fn answers_option(&self) -> bool {
        self.option.is_some()
    }

    /// True once all data up to the peer's FIN has arrived.
    pub const fn is_finished(&self) -> bool {
        self.finished
    }
    /// True if an acknowledgement should go out now.
    pub const fn wants_ack(&self) -> bool {
        self.ack_now
    }
    /// Records the timestamp of a segment that begins at or before the last acknowledged byte.
    pub fn note_timestamp(&mut self, segment: &Segment) {
        if !segment.seq.after(self.acknowledged) {
            self.ts_recent = segment.ts_val;
        }
    }
    /// True if another segment sent at this instant would tell and change the same as the one before it.
    #[inline(always)]
    pub const fn tells_the_same(&self) -> bool {
        self.quick == 0 && self.before_block.is_none() && self.before_change.is_none()
    }
    /// Notes that this end has sent a segment at `now`. Data sent soon after an arrival counts as an answer, and the
    /// next answers are expected to carry the acknowledgements (Linux's tcp_event_data_sent; from 5.1 to 5.19 only
    /// after the third answer).
    #[inline(always)]
    pub fn note_sent(&mut self, segment: &Segment, now: Time) {
        if let Some(last) = self.last_arrival {
            self.interactive |= segment.len > 0 && self.clock.between(last, now) < self.delay;
        }
    }
    /// Notes that the peer does not support ECN.
    pub const fn disable_ecn(&mut self) {
        self.feedback = Feedback::None;
    }
    /// Notes that the local application has closed and will send no answer.
    pub const fn note_closed(&mut self) {
        self.closed = true;
    }
    /// Takes over that the local application closed before the connection was established.
    pub const fn take_over(&mut self, waiting: &Self) {
        self.closed = waiting.closed;
    }
    /// True if a reset with this sequence number is to be obeyed: it is RCV.NXT (RFC 5961 §3.2) or, as in Linux, the end of the
    /// last data behind a hole.
    pub fn expects_reset(&self, seq: Seq) -> bool {
        seq == self.next
            || (self.sack && !self.out_of_order.is_empty() && seq == self.out_of_order.end())
    }
    /// True if the sequence number is within the window.
    pub fn is_in_window(&self, seq: Seq) -> bool {
        !seq.before(self.next) && !seq.after(self.window.edge())
    }
    /// Gives up all acknowledgements that are due or delayed.
    pub fn owe_nothing(&mut self) {
        self.ack_now = false;
        self.before_block = None;
        self.before_change = None;
        self.deadline = Time::MAX;
        self.ack_by = Time::MAX;
    }
    /// Requests an immediate acknowledgement.
    pub fn acknowledge_now(&mut self) {
        self.ack_now = true;
    }

    /// True if an acknowledgement waits for what else arrives at `now`. The timer is due at this instant.
    #[inline(always)]
    pub fn waits_at(&self, now: Time) -> bool {
        self.ack_by == now
    }

    /// When a delayed acknowledgement is due; [`Time::MAX`]: none is delayed.
    pub fn due(&self) -> Time {
        self.deadline.min(self.ack_by)
    }

    /// Handles an expired timer.
    pub fn on_timer(&mut self, now: Time) {
        // The application reads before an acknowledgement that a timer sends. If a call of it ends within what arrives now, Linux
        // acknowledges more than a segment before the next call.
        let is_much = self.next.since(self.acknowledged) > self.held_back;
        let arrives_now = self.last_arrival == Some(now);
        if !(is_much && arrives_now && self.window.keeps_a_rest(self.received, now)) {
            self.window.note_read();
        }
        if self.ack_by <= now {
            // Before 6.18 the timer of that delay reads no clock: its acknowledgement has the timestamp of the last arrival.
            // The timer of delayed acknowledgements, which expires in its place, reads it.
            let has_old_stamps = self.window.kernel < Kernel::V6_18;
            if has_old_stamps && self.compressed > 0 && self.ack_by != self.running_until {
                self.expired = now;
            }
            self.ack_by = Time::MAX;
            self.ack_now = true;
        }
        if self.deadline <= now {
            self.deadline = Time::MAX;
            self.ack_now = true;
            self.delay = if std::mem::take(&mut self.interactive) {
                DELAY_MIN // no answer came
            } else {
                // The delay was too short for the next segment to arrive.
                (self.delay * 2).min(DELAY_MAX)
            };
        }
    }

    /// Counts the mark of the peer's SYN-ACK (RFC 9768 §3.2.2.1).
    pub fn count_setup(&mut self, arrived: Arrival) {
        self.marks += u32::from(arrived == Arrival::Ce);
    }

    /// Processes a segment without payload or FIN. A segment from before the window is a probe and is acknowledged (RFC
    /// 9293 §3.10.7.4). With AccECN a mark is counted but triggers no acknowledgement; otherwise pure acknowledgements
    /// could trigger each other without end (RFC 9768 §3.2.2.5.1).
    pub fn on_empty(&mut self, segment: &Segment, ecn: Arrival, now: Time) {
        if self.compressed > 0 {
            cold_path();
            self.arrived = now;
        }
        if self.feedback == Feedback::Accurate && ecn == Arrival::Ce {
            cold_path();
            self.marks = self.marks.wrapping_add(1);
        }
        self.ack_now |= segment.seq.before(self.acknowledged);
    }

    /// True if no ECN signal is exchanged, nothing waits behind a hole and no FIN has arrived.
    pub fn is_plain(&self) -> bool {
        self.out_of_order.is_empty() && self.is_plain_behind_hole()
    }

    /// As [`Receiver::is_plain`], also if something waits behind a hole.
    fn is_plain_behind_hole(&self) -> bool {
        self.feedback == Feedback::None && self.before_block.is_none() && self.fin_end.is_none()
    }

    /// True if there is no ECN signal to exchange, and the segment is data behind a hole, within the window, that says nothing
    /// else.
    #[inline(always)]
    pub fn expects_behind_hole(&self, segment: &Segment) -> bool {
        segment.seq.after(self.next)
            && !segment.seq.after(self.window.edge())
            && is_only_data(segment)
            && self.is_plain_behind_hole()
    }

    /// True if the segment is the next data, within the window, and says nothing else.
    #[inline(always)]
    pub fn expects(&self, segment: &Segment) -> bool {
        segment.seq == self.next && is_only_data(segment) && !segment.seq.after(self.window.edge())
    }

    /// The short way of [`Receiver::on_data`], if [`Receiver::is_plain`] and [`Receiver::expects`] hold.
    #[inline(always)]
    pub fn on_expected(&mut self, segment: &Segment, now: Time, local: &impl Estimates) {
        self.repeats = false;
        self.adapt_delay(segment, now, || local.timeout());
        self.take_offer(segment, true, now);
        let before = self.next;
        self.next = before + u32::from(segment.len);
        self.received += u64::from(segment.len);
        self.window.delivered(before, self.next, now);
        let read_ends = self.may_end_write(segment) && self.on_end_of_write(segment);
        self.schedule_ack(read_ends, now, local);
    }

    /// Processes a segment with payload or FIN that arrived with the codepoint `ecn`.
    #[inline(always)]
    pub fn on_data(&mut self, segment: &Segment, ecn: Arrival, now: Time, local: &impl Estimates) {
        self.repeats = false;
        if self.feedback != Feedback::None {
            cold_path();
            self.take_mark(segment, ecn);
        }
        let (seq, end) = (segment.seq, segment.end());
        if !end.after(self.next) {
            self.on_duplicate(SackBlock { start: seq, end });
            return;
        }
        if seq.after(self.window.edge()) {
            cold_path();
            self.ack_now = true;
            return;
        }
        if !seq.after(self.next) {
            self.adapt_delay(segment, now, || local.timeout());
        }
        self.on_arrival(segment, ecn, now);
        if segment.flags.contains(Flags::FIN) {
            cold_path();
            self.fin_end = Some(end);
            if self.received == 0 && segment.len == 0 {
                self.delay = Duration::ZERO; // there was no earlier arrival from which to estimate the delay
            }
        }
        let mut read_ends = false;
        if seq.after(self.next) {
            cold_path();
            self.take_out_of_order(segment);
            if self.before_block.is_some() {
                return; // as in Linux, the acknowledgement that goes now counts for this segment
            }
        } else {
            self.take_in_order(segment, now);
            read_ends = self.may_end_write(segment) && self.on_end_of_write(segment);
        }
        self.schedule_ack(read_ends, now, local);
    }

    /// Processes the ECN codepoint of a segment.
    #[inline(never)]
    fn take_mark(&mut self, segment: &Segment, ecn: Arrival) {
        match self.feedback {
            Feedback::None => {}
            Feedback::Classic => {
                if segment.flags.contains(Flags::CWR) {
                    self.echo = false;
                    self.ack_now = true;
                }
            }
            Feedback::Exact => {
                self.note_change(ecn == Arrival::Ce);
                // As Linux: CWR triggers an immediate acknowledgement, because the sender's window may be very small.
                self.ack_now |= segment.flags.contains(Flags::CWR);
            }
            Feedback::Accurate => {
                if let Some(told) = &mut self.option {
                    told.count(ecn, u32::from(segment.len));
                }
                self.count_mark(ecn == Arrival::Ce);
            }
        }
    }

    /// Adapts the delay to the times between in-order arrivals, in ticks, as Linux's tcp_event_data_recv. After a time longer
    /// than the retransmission timeout the sender's window may be one segment, so acknowledgements are quick again.
    #[inline(always)]
    fn adapt_delay(&mut self, segment: &Segment, now: Time, timeout: impl Fn() -> Duration) {
        match self.last_arrival {
            None => {
                self.raise_quick(MAX_QUICK);
                self.delay = DELAY_MIN;
            }
            Some(last) if now - last <= CLOSE => {
                if last == now {
                    self.window.note_together(u32::from(segment.len), now);
                }
                self.shorten_delay();
            }
            Some(last) => {
                let gap = self.clock.between(last, now);
                if gap <= DELAY_MIN / 2 {
                    self.shorten_delay();
                } else if gap < self.delay {
                    self.delay = (self.clock.half(self.delay) + gap).min(DELAY_MAX);
                } else if gap > timeout() {
                    self.raise_quick(MAX_QUICK);
                }
            }
        }
        self.last_arrival = Some(now);
    }

    /// Adapts the delay to an arrival at most half of the least delay after the last, which leaves the least delay as it is.
    #[inline(always)]
    fn shorten_delay(&mut self) {
        if self.delay != DELAY_MIN {
            self.delay = self.clock.half(self.delay) + DELAY_MIN / 2;
        }
    }

    /// Switches to quick acknowledgements if the ECN field or the growth of the window requires it.
    #[inline(always)]
    fn on_arrival(&mut self, segment: &Segment, ecn: Arrival, now: Time) {
        if self.feedback == Feedback::Classic {
            cold_path();
            match ecn {
                Arrival::Ce if !self.echo => {
                    self.acknowledge_quickly(2);
                    self.echo = true;
                }
                Arrival::NotEct if self.ect_seen => self.acknowledge_quickly(2), // probably a retransmission
                _ => {}
            }
            self.ect_seen |= ecn != Arrival::NotEct;
        }
        self.take_offer(segment, !segment.seq.after(self.next), now);
    }

    /// Takes the round trip that an arriving segment tells, and lets the window grow.
    #[inline(always)]
    fn take_offer(&mut self, segment: &Segment, is_in_order: bool, now: Time) {
        self.window.measure(segment, now);
        // Without SACK the window does not grow for data behind a hole: a raised window would be no duplicate (tcp_data_queue_ofo).
        let may_grow = is_in_order || self.sack;
        let waiting = &self.out_of_order;
        let cannot_grow = if is_in_order {
            self.window.is_settled()
        } else {
            !may_grow || self.window.is_full_with(waiting.waiting())
        };
        if cannot_grow {
            return;
        }
        cold_path();
        if self.window.grow(segment, is_in_order, waiting, now) && self.quickack {
            // As Linux, set the lowest bit: while the window grows, the count hardly falls.
            self.quick |= 1;
        }
    }

    /// True if the segment may be the end of a write or of a GSO burst.
    fn may_end_write(&self, segment: &Segment) -> bool {
        u32::from(segment.len) < self.mss || segment.flags.contains(Flags::PSH)
    }

    /// Processes the end of a write or of a GSO burst, which is acknowledged when it is read, because the sender may have
    /// no more data. An interactive application gets time to answer, except after a second short segment (Linux's
    /// tcp_measure_rcv_mss and tcp_cleanup_rbuf). Returns true if the acknowledgement may wait for what else arrives at
    /// this instant: after a short segment it goes before an answer.
    #[inline(always)]
    fn on_end_of_write(&mut self, segment: &Segment) -> bool {
        let is_full = u32::from(segment.len) >= self.mss;
        let again = std::mem::replace(&mut self.pushed, true) && !is_full;
        let acknowledges = self.quickack && (again || !self.interactive);
        self.ack_now |= acknowledges && !is_full;
        acknowledges
    }

    /// Makes the next acknowledgements quick, at most `most` of them, and ends the interactive mode (Linux's
    /// tcp_enter_quickack_mode).
    fn acknowledge_quickly(&mut self, most: u32) {
        self.raise_quick(most);
        self.interactive = false;
        self.delay = DELAY_MIN;
    }

    fn raise_quick(&mut self, most: u32) {
        if !self.quickack {
            return;
        }
        let affordable = (self.window.offered() / (2 * self.mss)).max(2);
        self.quick = self.quick.max(affordable.min(most));
    }

    #[inline(always)]
    fn take_in_order(&mut self, segment: &Segment, now: Time) {
        let before = self.next;
        self.next = segment.end();
        if !self.out_of_order.is_empty() {
            cold_path();
            let (next, filled) = self.out_of_order.take_in_order(self.next);
            self.next = next;
            if !filled.is_none() {
                self.window.note_filled(u32::from(segment.len), filled, now);
            }
            self.recent.forget_before(next);
            // RFC 5681 §4.2: acknowledge at once when a gap is filled.
            self.ack_now |= self.out_of_order.is_empty();
        }
        self.received += u64::from(self.next.since(before));
        if self.fin_end == Some(self.next) && !self.finished {
            cold_path();
            self.finished = true;
            self.received -= 1;
            // As Linux's tcp_fin: the application will probably close as well, and its FIN carries the
            // acknowledgement.
            self.interactive |= !self.closed;
            self.ack_now |= self.closed;
        }
        self.window.delivered(before, self.next, now);
    }

    #[inline(never)]
    fn take_out_of_order(&mut self, segment: &Segment) {
        let block = SackBlock {
            start: segment.seq,
            end: segment.end(),
        };
        self.end_delay_before(block);
        let offset = self.received + u64::from(block.start.since(self.next));
        let is_new = self.out_of_order.insert(block, offset, self.mss);
        self.window.make_room(self.next, &self.out_of_order);
        self.recent.report(block);
        if !is_new {
            self.on_duplicate(block);
        }
    }

    /// Sends a delayed acknowledgement before `block` is reported, if that begins a third block or extends the third or a
    /// later one: a report has room for three at most, so that each is in two reports at least (Linux's
    /// tcp_sack_new_ofo_skb).
    fn end_delay_before(&mut self, block: SackBlock) {
        if self.compressed == 0 {
            return;
        }
        if self.recent.number_before(block) >= BLOCKS_EXPECTED {
            self.before_block = Some(Box::new((self.recent, self.out_of_order.waiting())));
            self.ack_now = true;
            self.compressed = 0;
            self.ack_by = Time::MAX;
        }
    }

    /// Acknowledges data that has arrived before, at once and with a D-SACK (RFC 2883 §4).
    #[cold]
    #[inline(never)]
    fn on_duplicate(&mut self, block: SackBlock) {
        if (self.option.as_ref()).is_some_and(|told| told.has_reported(block)) {
            // The acknowledgement with the option did not arrive: from now on it is left out, as in Linux.
            self.option = None;
        }
        if self.sack && !block.is_none() {
            self.duplicate = Some(block);
        }
        self.acknowledge_quickly(MAX_QUICK);
        self.ack_now = true;
    }

    /// Acknowledges now, or sets the delay. More than `held_back` bytes (RFC 5681 §4.2: at least every second full
    /// segment) and quick mode allow no delay. Without quick mode an acknowledgement waits until the application reads,
    /// after all that arrives now, if it would offer less before, or if the end of a write makes it due (`read_ends`).
    #[inline(always)]
    fn schedule_ack(&mut self, read_ends: bool, now: Time, local: &impl Estimates) {
        let quick = self.quick > 0 && !self.interactive;
        let is_much = self.next.since(self.acknowledged) > self.held_back;
        if self.ack_now || quick || (is_much && self.keeps_window(now)) {
            self.ack_now = true;
        } else if self.out_of_order.is_empty() {
            if is_much || read_ends {
                cold_path();
                self.ack_by = now;
            }
            let delay = if self.delay > DELAY_MIN {
                // Linux's tcp_send_delayed_ack: the round trip is that of what this end sent, not that of its window.
                let round_trip = local.smoothed_rtt().unwrap_or(DELAY_MAX);
                self.delay.min(round_trip.max(DELAY_MIN))
            } else {
                self.delay
            };
            let due = self.clock.expiry(now, delay.min(self.window.delay_max()));
            let due = self.deadline.min(due);
            self.deadline = due;
            self.running_until = due;
        } else {
            self.compress(now, local);
        }
    }

    /// True unless the next acknowledgement would offer less, since what is not read takes memory, too. Then Linux does
    /// not hurry to send it (__tcp_ack_snd_check).
    #[inline(always)]
    fn keeps_window(&self, now: Time) -> bool {
        (self.out_of_order.is_empty() && !self.window.is_short(now))
            || self.window.is_kept_with(self.out_of_order.waiting(), now)
    }

    /// Delays acknowledgements of out-of-order data by at most a millisecond, except the first three, as Linux.
    fn compress(&mut self, now: Time, local: &impl Estimates) {
        if self.duplicates_at != self.next {
            self.duplicates_at = self.next;
            self.duplicates_sent = 0;
        }
        if !self.sack
            || self.compressed >= COMPRESS_MAX
            || self.duplicates_sent < DUPLICATES_AT_ONCE
        {
            self.duplicates_sent += 1;
            self.ack_now = true;
            return;
        }
        self.compressed += 1;
        self.arrived = now;
        if self.ack_by == Time::MAX {
            let round_trip = self.window.round_trip();
            let round_trip = local
                .smoothed_rtt()
                .map_or(round_trip, |sent| sent.min(round_trip));
            let (percent, slack) = if self.window.kernel >= Kernel::V7_3 {
                (COMPRESS_PERCENT_7_3, COMPRESS_SLACK_7_3)
            } else {
                (COMPRESS_PERCENT, COMPRESS_SLACK)
            };
            let due = now + COMPRESS_DELAY.min(round_trip * percent / 100) + slack;
            self.ack_by = if self.running_until > now {
                due.min(self.running_until)
            } else {
                due
            };
        }
    }

    /// RFC 8257 §3.2: when the marking changes, earlier data is acknowledged at once with the old echo.
    #[inline(never)]
    fn note_change(&mut self, marked: bool) {
        if marked == self.echo {
            return;
        }
        if self.deadline != Time::MAX {
            self.before_change = Some((self.next, self.echo));
        }
        self.echo = marked;
        self.ack_now = true;
    }

    /// Counts a mark. Acknowledges at once when marking begins, and for every second mark (RFC 9768 §3.2.2.5.1). As Linux's
    /// dctcp_ece_ack_update, DCTCP acknowledges every change as without AccECN; both counts include this segment.
    #[inline(never)]
    fn count_mark(&mut self, marked: bool) {
        let began = marked && !self.echo;
        if self.is_dctcp {
            self.note_change(marked);
        }
        self.echo = marked;
        if marked {
            self.marks = self.marks.wrapping_add(1);
            self.unacknowledged_marks += 1;
            self.ack_now |= began || self.unacknowledged_marks >= MARKS_PER_ACK;
        }
    }

    /// As [`Receiver::stamp`], for a segment with data. An end that only sends says the same with each.
    #[inline(always)]
    pub fn stamp_data(&mut self, segment: &mut Segment, now: Time) {
        if self.repeats && !self.ack_now && self.quick == 0 {
            segment.flags = segment.flags.with(Flags::ACK);
            segment.ack = self.next;
            segment.ts_ecr = self.ts_recent;
            segment.window = self.window.advertised;
            segment.sack = [SackBlock::NONE; MAX_SACK_BLOCKS];
            return;
        }
        self.stamp_first(segment, now);
    }

    #[inline(never)]
    fn stamp_first(&mut self, segment: &mut Segment, now: Time) {
        self.stamp(segment, now);
        self.repeats = self.is_plain() && !self.echo && !self.window.is_short(now);
    }

    /// Writes acknowledgement, window, SACK blocks and ECN echo into a segment that is about to be sent.
    #[inline(always)]
    pub fn stamp(&mut self, segment: &mut Segment, now: Time) {
        if self.before_block.is_some() {
            self.stamp_before_block(segment, now);
        } else {
            self.fill(segment, self.out_of_order.waiting(), now);
        }
    }

    /// As [`Receiver::stamp`], if [`Receiver::is_plain`] holds.
    #[inline(always)]
    pub fn stamp_plain(&mut self, segment: &mut Segment, now: Time) {
        if self.duplicate.is_some() {
            cold_path();
            return self.stamp(segment, now);
        }
        segment.flags = segment.flags.with(Flags::ACK);
        self.tell(segment, self.next, Unread::default(), now);
        self.ack_now = false;
        self.end_delay();
    }

    /// Writes the acknowledgement that goes before the segment that has arrived is reported.
    #[cold]
    #[inline(never)]
    fn stamp_before_block(&mut self, segment: &mut Segment, now: Time) {
        if let Some(before) = self.before_block.take() {
            let (blocks, waiting) = *before;
            let recent = std::mem::replace(&mut self.recent, blocks);
            self.fill(segment, waiting, now);
            self.recent = recent;
        }
    }

    #[inline(always)]
    fn fill(&mut self, segment: &mut Segment, waiting: Unread, now: Time) {
        let (mut next, mut echo) = (self.next, self.echo);
        let reports_past = self.before_change.is_some();
        if let Some(before) = self.before_change {
            cold_path();
            self.before_change = None;
            (next, echo) = before;
        }
        segment.flags = segment.flags.with(Flags::ACK);
        segment.flags = match self.feedback {
            Feedback::Accurate => segment.flags.with_ace(self.marks),
            _ => segment.flags.with_if(Flags::ECE, echo),
        };
        self.unacknowledged_marks = 0;
        self.tell(segment, next, waiting, now);
        if self.sack && (self.duplicate.is_some() || !self.out_of_order.is_empty()) {
            self.write_blocks(&mut segment.sack);
            // Linux before 6.14 (tcp_compressed_ack_kick).
            if self.expired == now {
                segment.ts_val = crate::timestamp(self.arrived);
            }
        }
        if let Some(told) = &mut self.option {
            cold_path();
            told.write(segment);
        }
        self.ack_now = reports_past;
        if !reports_past {
            self.end_delay(); // else, as in Linux, it resets no timer and does not count as a quick one
        }
    }

    /// Writes an acknowledgement of all before `next`, and the window, while data is `waiting` behind a hole.
    #[inline(always)]
    fn tell(&mut self, segment: &mut Segment, next: Seq, waiting: Unread, now: Time) {
        segment.ack = next;
        segment.ts_ecr = self.ts_recent;
        segment.window = self.window.offer(self.next, waiting, now);
        segment.sack = [SackBlock::NONE; MAX_SACK_BLOCKS];
        self.acknowledged = next;
    }

    /// An acknowledgement has left: none is delayed any more.
    #[inline(always)]
    fn end_delay(&mut self) {
        self.deadline = Time::MAX;
        self.pushed = false;
        self.compressed = 0;
        self.ack_by = Time::MAX;
        if self.quick > 0 {
            cold_path();
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = DELAY_MIN;
            }
        }
    }

    /// Writes the D-SACK and then the blocks last reported (RFC 2018 §4, RFC 2883 §4).
    #[cold]
    #[inline(never)]
    fn write_blocks(&mut self, entries: &mut [SackBlock; MAX_SACK_BLOCKS]) {
        let blocks = self.duplicate.take().into_iter().chain(self.recent.iter());
        for (entry, block) in entries
            .iter_mut()
            .zip(blocks.filter(|block| !block.is_none()))
        {
            *entry = block;
        }
    }
}

/// True if a segment carries data and no flag that says something else.
#[inline(always)]
fn is_only_data(segment: &Segment) -> bool {
    segment.len > 0 && segment.flags.with(Flags::PSH) == Flags::ACK.with(Flags::PSH)
}
