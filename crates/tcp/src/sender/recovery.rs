//! Loss recovery and the response to ECN, as in Linux: the sender's states, proportional rate reduction (RFC 6937),
//! loss detection (RACK, RFC 8985; NewReno without SACK, RFC 6582), and undoing spurious reductions (Eifel, RFC 4015;
//! D-SACK; F-RTO, RFC 5682).

use sojourn_units::{Duration, Time};

use super::Sender;
use super::due::Due;
use crate::cc::{Signal, Window};
use crate::config::Recovery;
use crate::scoreboard::Acked;
use crate::segment::SackBlock;
use crate::seq::Seq;

/// Duplicate acknowledgements that indicate a loss (RFC 5681 §3.2).
pub(super) const DUP_THRESH: u32 = 3;

/// The state of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// No loss, reordering or ECN signal pending.
    Open,
    /// A segment was reported out of order, or is suspected lost.
    Disorder,
    /// The window is being reduced after an ECN echo.
    Cwr,
    /// The window is being reduced, and lost segments are retransmitted.
    Recovery,
    /// The retransmission timer has expired.
    Loss,
}

impl State {
    /// True if proportional rate reduction sets the window in this state.
    pub(super) const fn reduces(self) -> bool {
        matches!(self, Self::Cwr | Self::Recovery)
    }
    /// True if lost segments are retransmitted in this state.
    pub(super) const fn resends(self) -> bool {
        matches!(self, Self::Recovery | Self::Loss)
    }
}

/// The information in one acknowledgement that recovery needs.
pub(super) struct Facts<'a> {
    /// It moved SND.UNA.
    pub advanced: bool,
    /// It echoed congestion.
    pub echo: bool,
    /// It is a duplicate acknowledgement.
    pub duplicate: bool,
    /// It carried a D-SACK.
    pub dsack: bool,
    /// The D-SACK is a tail loss probe's.
    pub dsack_of_probe: bool,
    /// The timestamp that it echoes.
    pub ts_ecr: u32,
    /// The segments that it delivered.
    pub acked: &'a Acked,
}

/// Proportional rate reduction (RFC 6937, with Linux's slow start reduction bound).
#[derive(Debug, Default)]
pub(super) struct Reduction {
    prior_cwnd: u32,
    delivered: u32,
    pub(super) sent: u32,
}

impl Reduction {
    fn start(&mut self, cwnd: u32) {
        *self = Self {
            prior_cwnd: cwnd,
            delivered: 0,
            sent: 0,
        };
    }

    /// Sets the window so that sending follows delivery in the ratio ssthresh / prior window (RFC 6937 §3).
    pub(super) fn apply(
        &mut self,
        window: &mut Window,
        in_flight: u32,
        facts: &Facts<'_>,
        lost: u32,
    ) {
        let newly = facts.acked.delivered;
        if newly == 0 || self.prior_cwnd == 0 {
            return;
        }
        self.set_window(window, in_flight, newly, facts.advanced && lost == 0);
    }

    /// Sets the window after `newly` segments were delivered. `progress`: SND.UNA moved and no further loss was found.
    pub(super) fn set_window(
        &mut self,
        window: &mut Window,
        in_flight: u32,
        newly: u32,
        progress: bool,
    ) {
        self.delivered += newly;
        let allowed = if in_flight > window.ssthresh {
            let proportion = (u64::from(window.ssthresh) * u64::from(self.delivered))
                .div_ceil(u64::from(self.prior_cwnd.max(1)));
            (proportion as u32).saturating_sub(self.sent)
        } else {
            let allowance =
                self.delivered.saturating_sub(self.sent).max(newly) + u32::from(progress);
            allowance.min(window.ssthresh - in_flight)
        };
        // The first retransmission of a recovery is always sent.
        let allowed = allowed.max(u32::from(self.sent == 0));
        window.cwnd = in_flight + allowed;
    }
}

/// State needed to undo a spurious cwnd reduction.
#[derive(Debug)]
pub(super) struct Undo {
    /// Reductions may be undone.
    enabled: bool,
    /// SND.UNA when the reduction began; `None`: nothing to undo.
    marker: Option<Seq>,
    prior_cwnd: u32,
    /// `None` if an ECN echo was among the causes: such a reduction is never undone.
    prior_ssthresh: Option<u32>,
    /// Retransmissions of the episode that D-SACK has not reported as duplicates; `None` before the first one.
    unconfirmed: Option<u32>,
    /// One of the retransmissions is a tail loss probe.
    counts_probe: bool,
    /// Timestamp of the first retransmission of the episode.
    first_resend_ms: Option<u32>,
}

impl Undo {
    pub(super) fn new(recovery: Recovery) -> Self {
        Self {
            enabled: recovery == Recovery::Rack,
            marker: None,
            prior_cwnd: 0,
            prior_ssthresh: None,
            unconfirmed: None,
            counts_probe: false,
            first_resend_ms: None,
        }
    }

    pub(super) fn on_resend(&mut self, now: Time) {
        if self.first_resend_ms.is_none() {
            self.first_resend_ms = Some(crate::timestamp(now));
        }
        if self.marker.is_some() {
            self.unconfirmed = Some(self.unconfirmed.unwrap_or(0) + 1);
        }
    }

    pub(super) fn on_dsack(&mut self, block: SackBlock, of_probe: bool, mss: u32) {
        if of_probe && !self.counts_probe {
            return; // `unconfirmed` does not count this retransmission
        }
        if self.marker.is_some_and(|marker| block.end.after(marker)) {
            let segments = block.end.since(block.start).div_ceil(mss.max(1));
            self.unconfirmed = self.unconfirmed.map(|count| count.saturating_sub(segments));
        }
    }

    /// Starts an episode with `resent` retransmissions in flight. With `with_probe`, one of them is a tail loss probe.
    fn start(&mut self, una: Seq, resent: u32, with_probe: bool) {
        self.marker = Some(una);
        self.unconfirmed = (resent > 0).then_some(resent);
        self.counts_probe = with_probe;
    }

    /// True if the reduction was spurious: every retransmission was reported as a duplicate (RFC 3708), or the
    /// acknowledgement echoes a timestamp from before the first retransmission (RFC 4015 §3.2).
    fn is_spurious(&self, ts_ecr: u32) -> bool {
        self.all_were_duplicates() || (self.marker.is_some() && self.answers_original(ts_ecr))
    }

    /// True if every retransmission was reported as a duplicate (RFC 3708).
    fn all_were_duplicates(&self) -> bool {
        self.enabled && self.marker.is_some() && self.unconfirmed == Some(0)
    }

    /// True if the echoed timestamp is older than the first retransmission, so that an original arrived late.
    fn answers_original(&self, ts_ecr: u32) -> bool {
        self.enabled
            && ts_ecr != 0
            && self
                .first_resend_ms
                .is_some_and(|first| (ts_ecr.wrapping_sub(first) as i32) < 0)
    }
}

/// The reordering that the path has shown, and the time that RACK allows for it (RFC 8985 §6.2 step 4).
#[derive(Debug)]
pub(super) struct Reordering {
    seen: bool,
    /// Reordering spanned more than three segments, so duplicates alone do not indicate a loss (Linux's
    /// tcp_reordering).
    far: bool,
    /// The reordering window in quarters of the minimum RTT.
    steps: u32,
    /// SND.NXT at the last D-SACK, until that is acknowledged. The window grows by at most one step per round trip.
    round_end: Option<Seq>,
    /// Recoveries until the steps are reset.
    persist: u32,
}

impl Default for Reordering {
    fn default() -> Self {
        Self {
            seen: false,
            far: false,
            steps: 1,
            round_end: None,
            persist: 0,
        }
    }
}

impl Reordering {
    pub(super) const fn is_far(&self) -> bool {
        self.far
    }

    fn on_ack(&mut self, facts: &Facts<'_>, una: Seq, next: Seq) {
        self.seen |= facts.acked.reordering > 0;
        self.far |= facts.acked.reordering > DUP_THRESH;
        self.on_progress(una);
        // A D-SACK means that the window was too small. As Linux, ignore the D-SACKs of probes, and all D-SACKs until
        // the path has been seen to reorder.
        let is_too_small = facts.dsack && !facts.dsack_of_probe && self.seen;
        if is_too_small && self.round_end.is_none() {
            self.round_end = Some(next);
            self.persist = 16;
            self.steps = (self.steps + 1).min(255);
        }
    }

    /// Ends the round of a D-SACK once everything before it is acknowledged.
    pub(super) fn on_progress(&mut self, una: Seq) {
        if self.round_end.is_some_and(|end| !una.before(end)) {
            self.round_end = None;
        }
    }

    fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }
}

impl Sender {
    /// Changes the state according to an acknowledgement. Returns the number of segments newly judged lost.
    pub(super) fn recover(&mut self, facts: &Facts<'_>, now: Time) -> u32 {
        self.reordering.on_ack(facts, self.una, self.next);
        if facts.echo {
            self.undo.prior_ssthresh = None;
        }
        let dubious = self.state != State::Open
            || facts.echo
            || facts.acked.sacked > 0
            || facts.dsack
            || (!self.sack && facts.duplicate);
        if !dubious {
            return 0;
        }
        if self.state == State::Open {
            self.undo.first_resend_ms = None;
        }
        if self.scoreboard.is_reneged() && facts.advanced {
            let recent = self.spared_by_timeout();
            self.scoreboard.mark_all_lost(now, recent, true); // RFC 2018 §8
        }
        if !self.sack && self.state.resends() && self.una == self.recovery_point {
            // RFC 6582 §3.2, "Avoiding multiple fast retransmits": wait until data beyond the recovery point is
            // acknowledged.
            return 0;
        }
        self.leave_if_past_recovery_point(facts);
        match self.state {
            State::Recovery => self.in_recovery(facts, now),
            State::Loss => self.in_loss(facts, now),
            State::Open | State::Disorder | State::Cwr => self.outside_recovery(facts, now),
        }
    }

    /// Ends an episode once all of its segments have been acknowledged.
    fn leave_if_past_recovery_point(&mut self, facts: &Facts<'_>) {
        if self.una.before(self.recovery_point) {
            return;
        }
        match self.state {
            State::Cwr if self.una != self.recovery_point => {
                self.end_reduction();
                self.state = State::Open;
            }
            State::Recovery => {
                let undone = self.undo.is_spurious(facts.ts_ecr);
                if undone {
                    self.undo_reduction(false);
                } else {
                    self.reordering.on_recovery_end();
                    self.end_reduction();
                }
                if !self.sack {
                    self.duplicates = 0;
                }
                self.state = State::Open;
            }
            _ => {}
        }
    }

    /// Without SACK, each duplicate indicates that one more segment has left the network (RFC 6582 §3.2). Segments
    /// beyond the hole that are acknowledged later were already counted by their duplicates. As Linux, duplicates do not count
    /// at the recovery point, until data beyond it is acknowledged, nor after a timeout until new data is sent.
    pub(super) fn count_duplicates(&mut self, repeats: bool, acked: &mut Acked) {
        if repeats {
            let counts = match self.state {
                State::Recovery => self.una != self.recovery_point,
                State::Loss => {
                    self.una != self.recovery_point && self.next.after(self.recovery_point)
                }
                State::Open | State::Disorder | State::Cwr => true,
            };
            if counts && self.duplicates + 1 < self.scoreboard.outstanding() {
                self.duplicates += 1;
                acked.delivered += 1;
            }
        } else if acked.cumulative > 0 {
            acked.delivered = acked.delivered.saturating_sub(self.duplicates).max(1);
            let beyond_hole = acked.cumulative - 1;
            self.duplicates = match self.state {
                State::Recovery if self.una.before(self.recovery_point) => {
                    self.duplicates.saturating_sub(beyond_hole)
                }
                _ => 0,
            };
        }
    }

    fn in_recovery(&mut self, facts: &Facts<'_>, now: Time) -> u32 {
        if facts.advanced && self.undo.marker.is_some() && self.undo.answers_original(facts.ts_ecr)
        {
            // A late original filled a hole.
            self.reordering.seen = true;
            if self.scoreboard.resent() > 0 {
                return 0;
            }
            self.forget_first_resend();
            self.undo_reduction(true);
            self.open_or_disorder();
        }
        if facts.dsack && self.undo.all_were_duplicates() {
            self.undo_reduction(false);
            self.open_or_disorder();
        }
        if self.state != State::Recovery {
            return self.outside_recovery(facts, now); // what is lost nevertheless begins another recovery
        }
        if !self.sack {
            // A partial acknowledgement: the next segment is lost as well (RFC 6582 §3.2 step 3).
            return if facts.advanced {
                self.resend_at_once();
                self.scoreboard.mark_first_lost().segments
            } else {
                0
            };
        }
        self.find_losses(now)
    }

    /// After a timeout. An episode that ends may be followed by recovery at once, and so is the loss of a retransmission:
    /// it is congestion after the timeout (tcp_fastretrans_alert of Linux).
    fn in_loss(&mut self, facts: &Facts<'_>, now: Time) -> u32 {
        self.judge_timeout(facts);
        if self.state != State::Loss {
            return self.outside_recovery(facts, now);
        }
        if !self.sack {
            return if facts.advanced {
                self.scoreboard.mark_first_lost().segments
            } else {
                0
            };
        }
        if self.recovery == Recovery::Rfc6675 {
            return 0; // RFC 6675 §5.1: wait until all data outstanding at the timeout is acknowledged
        }
        let resent = self.scoreboard.resent();
        let newly_lost = self.find_losses(now);
        if self.scoreboard.resent() < resent {
            self.new_data_first = false;
            self.enter_recovery(facts.echo);
        }
        newly_lost
    }

    /// Ends the episode of a timeout that was spurious, or whose data has been acknowledged.
    fn judge_timeout(&mut self, facts: &Facts<'_>) {
        if facts.advanced && self.undo.is_spurious(facts.ts_ecr) {
            self.undo_reduction(true);
            self.leave_loss();
            return;
        }
        if self.frto {
            if facts.acked.original_delivered {
                // RFC 5682 §3.1 step 3b: data sent before the timeout arrives, so the timeout was spurious.
                self.undo_reduction(true);
                self.leave_loss();
                return;
            }
            if self.next.after(self.recovery_point) {
                if facts.acked.sacked > 0 || facts.duplicate {
                    self.frto = false; // step 3a: the loss was real
                }
            } else if facts.advanced && self.una.before(self.recovery_point) {
                self.recovery_point = self.next;
                self.new_data_first = self.has_new_data(); // step 2b
                self.frto = self.new_data_first;
            }
        }
        if !self.una.before(self.recovery_point) {
            if self.undo.is_spurious(facts.ts_ecr) {
                self.undo_reduction(false);
            } else {
                self.reordering.on_recovery_end();
            }
            self.leave_loss();
        }
    }

    fn leave_loss(&mut self) {
        self.frto = false;
        self.state = State::Open;
    }

    fn outside_recovery(&mut self, facts: &Facts<'_>, now: Time) -> u32 {
        if facts.dsack && self.state != State::Cwr && self.undo.all_were_duplicates() {
            self.undo_reduction(false); // the last duplicate was reported after recovery had ended
        }
        let newly_lost = if self.sack {
            self.find_losses(now)
        } else if self.duplicates >= DUP_THRESH {
            self.scoreboard.mark_first_lost().segments
        } else {
            0
        };
        if self.scoreboard.lost() > 0 {
            self.enter_recovery(facts.echo);
            return newly_lost;
        }
        self.forget_first_resend();
        if facts.echo {
            self.enter_cwr();
        }
        if self.state != State::Cwr {
            self.open_or_disorder();
        }
        0
    }

    /// Forgets when the last episode's first retransmission was sent, unless a retransmission may still be
    /// acknowledged. The echo of its timestamp would be mistaken for that of a late original (Linux's
    /// tcp_any_retrans_done).
    fn forget_first_resend(&mut self) {
        if self.scoreboard.resent() == 0 && !self.scoreboard.is_first_resent() {
            self.undo.first_resend_ms = None;
        }
    }

    /// A timeout does not mark segments as lost if they were sent within this time. Linux keeps RACK's RTT with SACK only
    /// (tcp_clean_rtx_queue): without, an acknowledgement may deliver what was sent long ago.
    fn spared_by_timeout(&self) -> Duration {
        match self.recovery {
            Recovery::Rack if self.sack => self.scoreboard.rack_rtt(),
            Recovery::Rack | Recovery::Rfc6675 => Duration::ZERO,
        }
    }

    /// Finds losses by RFC 6675 §4, or by RACK (RFC 8985 §6.2). RACK arms the reordering timer for segments in doubt.
    pub(super) fn find_losses(&mut self, now: Time) -> u32 {
        if self.recovery == Recovery::Rfc6675 {
            return self.scoreboard.detect_losses_by_sacks(DUP_THRESH).segments;
        }
        let losses = self
            .scoreboard
            .detect_losses_if_advanced(now, self.reordering_window());
        if let Some(span) = losses.judge_in {
            self.arm_reordering_timer(span, now);
        }
        losses.segments
    }

    /// The reordering window (RFC 8985 §6.2 step 4, RACK_update_reo_wnd). As in Linux, it is zero in recovery or once
    /// three segments are sacked, unless the path has been seen to reorder.
    pub(super) fn reordering_window(&self) -> Duration {
        let certain = self.state.resends() || self.scoreboard.sacked() >= DUP_THRESH;
        if !self.reordering.seen && certain {
            return Duration::ZERO;
        }
        let quarter = self.rtt.min().unwrap_or(Duration::ZERO) / 4;
        let half_smoothed = self.rtt.smoothed().unwrap_or(Duration::ZERO);
        (quarter * u64::from(self.reordering.steps)).min(half_smoothed)
    }

    pub(super) fn enter_recovery(&mut self, echo: bool) {
        self.start_undo();
        self.forget_first_resend();
        let reduces = self.state.reduces();
        if !reduces {
            self.undo.prior_ssthresh = (!echo).then(|| self.current_ssthresh());
            self.start_reduction(Signal::Loss);
        }
        // A window that ECN has reduced is not reduced again for a loss in it. As in Linux (tcp_init_cwnd_reduction) the recovery
        // then ends with the reduction, and a loss of what was sent since reduces anew. RFC 6675 §5 (4.1) begins a new window.
        if !reduces || self.recovery == Recovery::Rfc6675 {
            self.recovery_point = self.next;
        }
        self.state = State::Recovery;
        self.resend_at_once();
    }

    /// RFC 6675 retransmits the first lost segment even if the window is full. With Linux's recovery, proportional rate
    /// reduction ensures this.
    fn resend_at_once(&mut self) {
        if self.recovery == Recovery::Rfc6675 {
            self.due.add(Due::LOST);
        }
    }

    /// Starts an episode that may be undone. It counts the retransmissions in flight, including a tail loss probe,
    /// because each may still be reported as a duplicate (Linux's tcp_init_undo).
    fn start_undo(&mut self) {
        let with_probe = self.probe.is_some_and(|probe| probe.resent);
        let resent = self.scoreboard.resent() + u32::from(with_probe);
        self.undo.start(self.una, resent, with_probe);
    }

    fn enter_cwr(&mut self) {
        if self.state == State::Cwr {
            return;
        }
        self.undo.prior_ssthresh = None;
        self.undo.marker = None;
        self.start_reduction(Signal::EcnEcho);
        self.recovery_point = self.next;
        self.state = State::Cwr;
    }

    /// Reduces the window once for a loss that a tail loss probe repaired (RFC 8985 §7.4.2).
    pub(super) fn reduce_for_repaired_loss(&mut self) {
        self.undo.prior_ssthresh = None;
        self.undo.marker = None;
        self.start_reduction(Signal::Loss);
        self.recovery_point = self.next;
        self.state = State::Cwr;
        self.end_reduction();
        self.open_or_disorder();
    }

    fn start_reduction(&mut self, signal: Signal) {
        self.probe = None;
        self.window.clear_credit();
        self.undo.prior_cwnd = self.window.cwnd;
        self.reduction.start(self.window.cwnd);
        self.window.flight_size = self.scoreboard.outstanding();
        self.window.ssthresh = self.control.on_congestion(signal, &self.window);
        self.confirm_reduction = self.confirms_reductions();
        if self.recovery == Recovery::Rfc6675 && !self.capabilities.governs_window {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    fn end_reduction(&mut self) {
        if !self.capabilities.governs_window
            && self.window.ssthresh < Window::INFINITE
            && (self.state == State::Cwr || self.undo.marker.is_some())
        {
            self.window.cwnd = self.window.ssthresh;
        }
        self.control.on_recovered(&mut self.window);
    }

    /// Handles expiry of the retransmission timer (RFC 6298 §5.4 to §5.7, RFC 5681 §3.1).
    pub(super) fn enter_loss(&mut self, now: Time) {
        let fresh = matches!(self.state, State::Open | State::Disorder)
            || !self.recovery_point.after(self.una)
            || (self.state == State::Loss && self.backoff == 0);
        let new_recovery = !self.state.resends();
        let reneged = self.scoreboard.is_reneged();
        if !self.sack {
            self.duplicates = 0;
        }
        let lost = self.scoreboard.lost();
        let recent = self.spared_by_timeout();
        self.scoreboard.mark_all_lost(now, recent, reneged);
        self.lost = self.lost.wrapping_add(self.scoreboard.lost() - lost);
        if fresh {
            let prior = self.current_ssthresh();
            self.undo.prior_ssthresh = Some(prior);
            self.undo.prior_cwnd = self.window.cwnd;
            self.window.flight_size = self.scoreboard.outstanding();
            self.window.ssthresh = self.control.on_congestion(Signal::Timeout, &self.window);
            self.start_undo();
            self.undo.first_resend_ms = None;
        }
        self.control.on_timeout(now, self.next);
        self.tell_losses(now);
        self.probe = None; // the timeout now repairs the loss that the probe was sent for
        self.window.cwnd = self.scoreboard.in_flight() + 1;
        self.window.clear_credit();
        self.recovery_point = self.next;
        self.confirm_reduction = self.confirms_reductions();
        self.state = State::Loss;
        self.due.take(Due::LOST);
        self.frto =
            self.sack && self.recovery == Recovery::Rack && (new_recovery || self.backoff > 0);
    }

    /// Undoes a spurious reduction (RFC 4015 §3.2 step 6), and with `unmark` the loss marks.
    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            self.scoreboard.undo_losses();
        }
        if let Some(prior) = self.undo.prior_ssthresh {
            self.window.cwnd = self.control.on_undo(&self.window, self.undo.prior_cwnd);
            if prior > self.window.ssthresh {
                self.window.ssthresh = prior;
                self.confirm_reduction = false;
            }
        }
        self.undo.marker = None;
    }

    /// Enters Open, or Disorder if a segment is SACKed, lost or retransmitted.
    fn open_or_disorder(&mut self) {
        let doubtful = self.scoreboard.sacked() + self.scoreboard.lost() + self.duplicates > 0
            || self.scoreboard.resent() > 0;
        let state = if doubtful {
            State::Disorder
        } else {
            State::Open
        };
        if state != self.state {
            self.state = state;
            self.recovery_point = self.next;
        }
    }

    /// The threshold that a later undo restores: at least three quarters of the window, except during a reduction.
    pub(super) fn current_ssthresh(&self) -> u32 {
        if self.state.reduces() {
            self.window.ssthresh
        } else {
            self.window
                .ssthresh
                .max((self.window.cwnd >> 1) + (self.window.cwnd >> 2))
        }
    }

    fn has_new_data(&self) -> bool {
        (self.unsent > 0 || self.owes_fin()) && self.next.before(self.offers.edge)
    }
}
