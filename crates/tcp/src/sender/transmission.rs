//! Transmission: which segment leaves next, the rest of a burst at once, and whether the window was used (RFC 7661).

use sojourn_units::{Time, cold_path};

use super::alarm::{Alarm, Arm};
use super::due::Due;
use super::gso::Burst;
use super::{Fin, Sender, UNLIMITED};
use crate::ecn::Feedback;
use crate::segment::{Flags, Segment};
use crate::seq::Seq;

/// Whether a segment carries new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// Data sent for the first time.
    New,
    /// A retransmission.
    Retransmission,
}

/// The segments that follow another in its burst and differ from it in their places only.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    /// How many.
    pub segments: u32,
    /// The last one ends the burst.
    end_burst: bool,
}

impl Alike {
    /// None follows.
    pub const NONE: Self = Self {
        segments: 0,
        end_burst: false,
    };

    /// Goes on from the segment that these follow to the next.
    #[inline(always)]
    pub fn advance(&mut self, segment: &mut Segment) {
        segment.seq += u32::from(segment.len);
        self.segments -= 1;
        if self.segments == 0 && self.end_burst {
            segment.flags = segment.flags.with(Flags::PSH);
        }
    }

    /// Goes on by `count` segments, of more, and returns what followed the first within those.
    #[inline(always)]
    pub fn split(&mut self, segment: &mut Segment, count: u32) -> Self {
        for _ in 0..count {
            self.advance(segment);
        }
        Self {
            segments: count - 1,
            end_burst: false,
        }
    }
}

/// Which segments of new data may be sent (RFC 9293 §3.8.6.2.1, the sender's silly window avoidance).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fill {
    /// Full segments, and the last one.
    Full,
    /// Any segment for which the receive window has room.
    Partial,
}

impl Sender {
    /// Writes the next segment to send at `now`: sequence number, length, FIN, PSH and CWR. The receiving half writes
    /// the rest. Returns `None` if nothing may be sent. Call it until `None` after every other call.
    pub fn poll(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        self.forget_deferral();
        // Of the limits, only the congestion window applies to the rest of a burst.
        if self.burst > 0 && self.in_flight() < self.window.cwnd {
            if let Some(sending) = self.continue_burst(segment, now) {
                return Some(sending);
            }
        }
        if self.due.any() {
            if let Some(sending) = self.send_due(segment, now) {
                return Some(sending);
            }
        }
        self.held = self.pacer.holds(now);
        let free = self.window.cwnd.saturating_sub(self.in_flight());
        if free > 0 && !self.held {
            if self.state.resends() && !self.new_data_first && !self.throttles(1, 1) {
                if let Some(sending) = self.send_lost(segment, now) {
                    return Some(sending);
                }
            }
            if let Some(sending) = self.begin_burst(segment, free, now) {
                return Some(sending);
            }
        }
        self.new_data_first = false;
        self.burst = 0;
        if self.fin == Fin::Closing {
            cold_path();
            self.fin = Fin::Wanted;
            return self.poll(segment, now);
        }
        self.settle(free == 0, now);
        None
    }

    /// Ends a round of sending as [`Sender::poll`] does if nothing leaves because data waits to fill a burst, as it did at the end
    /// of the last round. False: nothing has happened.
    #[inline(never)]
    pub(crate) fn defer_again(&mut self, now: Time) -> bool {
        let free = self.window.cwnd.saturating_sub(self.in_flight());
        let defers = free > 0
            && !self.state.resends()
            && self.defers_burst(free, now)
            && !self.due.any()
            && !self.pacer.holds(now)
            && self.fin != Fin::Closing
            && self.burst == 0;
        debug_assert!(self.has_deferred, "so it was");
        if defers {
            self.held = false;
            self.new_data_first = false;
            self.set_alarm(now); // there is data, so that the application does not limit the flow
            self.sent_since_judged = 0;
            self.judge_usage(true, now);
            self.bound_deferral(now);
        }
        defers
    }

    /// True if the last round of sending ended so.
    #[inline(always)]
    pub(crate) const fn has_deferred(&self) -> bool {
        self.has_deferred
    }

    /// Sends the first segment of the next burst of new data; without GSO, a single segment. The window has room for `free`
    /// segments.
    fn begin_burst(&mut self, segment: &mut Segment, free: u32, now: Time) -> Option<Sending> {
        if self.gso && self.unsent > 0 {
            match self.next_burst(free, now) {
                Burst::Deferred => {
                    self.defers = true;
                    return None;
                }
                Burst::Segments(segments) => self.burst = segments - 1,
            }
        }
        if self.queued.is_some() {
            return self.begin_if_queue_is_short(segment, now);
        }
        self.send_new(segment, now, Fill::Full)
    }

    /// Sends the first segment of a burst unless too much waits in the host's own queue.
    #[cold]
    #[inline(never)]
    fn begin_if_queue_is_short(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        if self.throttles(self.burst + 1, 0) {
            return None;
        }
        let start = self.next;
        let sending = self.send_next(segment, now, Fill::Full)?;
        self.burst_start = start;
        Some(sending)
    }

    /// Sends the next segment of the current burst. The last one carries PSH, as if the device had split the burst.
    fn continue_burst(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        self.burst -= 1;
        let sending = self.send_next(segment, now, Fill::Full)?;
        segment.flags = segment.flags.with_if(Flags::PSH, self.burst == 0);
        Some(sending)
    }

    /// True if segments of the current burst are left.
    #[inline(always)]
    pub(crate) const fn is_in_burst(&self) -> bool {
        self.burst > 0
    }

    /// True while the window is reduced.
    #[inline(always)]
    pub(crate) const fn is_reducing(&self) -> bool {
        self.state.reduces()
    }

    /// Payload bytes of the segment last sent and of those left in its burst, at most.
    pub const fn burst_bytes(&self) -> u64 {
        (self.burst as u64 + 1) * self.mss as u64
    }

    /// Sends the segments that continue the burst of `last`, the last one sent, alike, as [`Sender::poll`] would at the same
    /// instant.
    #[inline(always)]
    pub(crate) fn continue_alike(&mut self, last: &Segment) -> Alike {
        let segments = self.count_alike(last);
        if segments == 0 {
            return Alike::NONE;
        }
        let len = u32::from(last.len);
        let bytes = segments * len;
        let at = self.last_sent;
        self.scoreboard.push_alike(self.next, len, segments, at);
        if self.unsent != UNLIMITED {
            self.unsent -= u64::from(bytes);
        }
        self.burst -= segments;
        self.buffer -= segments;
        if self.ends_write() {
            self.scoreboard.push_ends();
        }
        self.next += bytes;
        self.sent += u64::from(bytes);
        self.sent_since_judged += segments;
        if self.state.reduces() {
            self.reduction.sent += segments;
        }
        Alike {
            segments,
            end_burst: self.burst == 0,
        }
    }

    /// How many full segments follow the last one within the burst, if nothing is noted or told with them that was not with
    /// the last.
    #[inline(always)]
    fn count_alike(&self, last: &Segment) -> u32 {
        let len = u32::from(last.len);
        if len != self.offers.full
            || self.notes_each
            || self.tells_of_reduction(last)
            || !last.sack[0].is_none()
        {
            return 0;
        }
        let free = self.window.cwnd.saturating_sub(self.in_flight());
        let segments = self.burst.min(self.buffer).min(free);
        // The last segment of all is another case.
        let rest = self.unsent.saturating_sub(u64::from(len + 1));
        let most = u64::from(self.room()).min(rest);
        if u64::from(segments * len) <= most {
            segments
        } else {
            cold_path();
            (most / u64::from(len)) as u32
        }
    }

    /// True if the last segment told of a reduction or the next one does: CWR goes with one segment, while with AccECN the bit
    /// belongs to a count.
    #[inline(always)]
    fn tells_of_reduction(&self, last: &Segment) -> bool {
        self.feedback != Feedback::None
            && (self.confirm_reduction
                || (self.feedback != Feedback::Accurate && last.flags.contains(Flags::CWR)))
    }

    /// Retransmits the first lost segment.
    #[cold]
    #[inline(never)]
    pub(super) fn send_lost(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        let (seq, len) = self.scoreboard.next_lost()?;
        let stamp = self.stamp(now);
        self.scoreboard.mark_resent(now, stamp);
        self.undo.on_resend(now);
        if seq == self.una {
            self.arm = Arm::Retransmit;
        }
        Some(self.resend(segment, seq, len, now))
    }

    /// Bytes for which the receive window has room.
    pub(super) fn room(&self) -> u32 {
        if self.next.before(self.offers.edge) {
            self.offers.edge.since(self.next)
        } else {
            0
        }
    }

    /// The next new data that the receive window allows: payload bytes, and whether the FIN goes with them.
    pub(super) fn next_new(&self, fill: Fill) -> Option<(u32, bool)> {
        let room = self.room();
        let len = self.unsent.min(u64::from(self.offers.full.min(room))) as u32;
        let fin = match self.fin {
            Fin::Open | Fin::Sent => false,
            Fin::Closing => self.unsent == 0,
            Fin::Wanted => u64::from(len) == self.unsent,
        } && len < room;
        let silly = len < self.offers.full && u64::from(len) < self.unsent;
        ((len > 0 || fin) && (fill == Fill::Partial || !silly)).then_some((len, fin))
    }

    /// As [`Sender::send_new`], where it is not called for nearly every burst.
    #[inline(never)]
    pub(super) fn send_next(
        &mut self,
        segment: &mut Segment,
        now: Time,
        fill: Fill,
    ) -> Option<Sending> {
        self.send_new(segment, now, fill)
    }

    /// Sends the next segment of new data, or the FIN, if there is one and the receive window has room.
    #[inline(always)]
    fn send_new(&mut self, segment: &mut Segment, now: Time, fill: Fill) -> Option<Sending> {
        let (len, fin) = self.next_new(fill)?;
        if self.unsent != UNLIMITED {
            self.unsent -= u64::from(len);
        }
        if fin {
            self.fin = Fin::Sent;
            self.due.take(Due::LAST);
        }
        let is_first = self.scoreboard.is_empty();
        if is_first {
            self.restart(now);
        }
        self.use_buffer();
        let seq = self.next;
        let space = len + u32::from(fin);
        self.next += space;
        self.sent += u64::from(len);
        if is_first || self.alarm.is_none() || self.runs(Alarm::Probe) || self.may_probe() {
            self.arm = Arm::NewData;
        }
        let stamp = self.stamp(now);
        self.scoreboard.push(seq, space, now, stamp);
        let burst = self.gso.then_some(self.burst + 1);
        self.after_sending(len, burst, now);
        let pushed = len > 0 && (self.unsent == 0 || self.ends_write());
        if pushed {
            self.scoreboard.push_ends();
        }
        let mut flags = Flags::default()
            .with_if(Flags::FIN, fin)
            .with_if(Flags::PSH, pushed);
        // RFC 3168 §6.1.2: CWR goes with the first new data after a reduction.
        if len > 0 && std::mem::take(&mut self.confirm_reduction) {
            flags = flags.with(Flags::CWR);
        }
        segment.seq = seq;
        segment.len = len as u16;
        segment.flags = flags;
        Some(Sending::New)
    }

    /// True if the last segment sent is the last of a write of the application.
    #[inline(always)]
    fn ends_write(&self) -> bool {
        self.buffer == 0 && self.burst == 0 && self.gso && self.buffers.ends_write()
    }

    /// PSH that ended a write is sent again, unlike that of a burst (Linux 6.1 and 6.12: TCP_SKB_CB's flags are kept,
    /// those of the copy that leaves are not).
    pub(super) fn resend(
        &mut self,
        segment: &mut Segment,
        seq: Seq,
        space: u32,
        now: Time,
    ) -> Sending {
        self.retransmits += 1;
        self.after_sending(space, Some(1), now);
        let fin = self.fin == Fin::Sent && seq + space == self.next;
        segment.seq = seq;
        segment.len = (space - u32::from(fin)) as u16;
        segment.flags = Flags::default()
            .with_if(Flags::FIN, fin)
            .with_if(Flags::PSH, self.scoreboard.resent_pushed());
        Sending::Retransmission
    }

    fn after_sending(&mut self, payload: u32, burst: Option<u32>, now: Time) {
        self.pacer.on_send(payload, self.mss, burst, now);
        self.last_sent = now;
        self.sent_since_judged += 1;
        self.reduction.sent += u32::from(self.state.reduces());
    }

    /// Ends a round of sending: sets the alarm and judges whether the window was used. `is_full`: it has no room.
    #[inline(always)]
    fn settle(&mut self, is_full: bool, now: Time) {
        self.set_alarm(now);
        if self.capabilities.samples {
            self.judge_application();
        }
        let defers = std::mem::take(&mut self.defers);
        self.has_deferred = defers;
        if std::mem::take(&mut self.sent_since_judged) > 0 || defers {
            self.judge_usage(is_full || defers, now);
        }
    }

    /// Congestion window validation (RFC 7661, as Linux's tcp_cwnd_validate): judges whether the window limits the
    /// sender (`limiting`). A window with room limits it too if data is deferred to fill a burst.
    #[inline(always)]
    fn judge_usage(&mut self, limiting: bool, now: Time) {
        let outstanding = self.scoreboard.outstanding();
        let round_over = !self.una.before(self.usage_point);
        if round_over
            || limiting
            || (!self.window.limiting && outstanding > self.window.peak_in_flight)
        {
            self.window.limiting = limiting;
            self.window.peak_in_flight = outstanding;
            self.usage_point = self.next;
        }
        if self.window.is_used() {
            self.peak_unfilled = 0;
            self.filled_at = now;
        } else {
            self.peak_unfilled = self.peak_unfilled.max(outstanding);
            self.shrink_unused(now);
        }
    }
}
