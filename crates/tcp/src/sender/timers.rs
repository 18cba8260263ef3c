//! The sender's timers, of which one runs at a time: retransmission timeout (RFC 6298 §5), tail loss probe (RFC 8985
//! §7), reordering timer (RFC 8985 §6.3), probe of a closed window (RFC 9293 §3.8.6.1). Also the effect of idle time on
//! the congestion window (RFC 5681 §4.1, RFC 7661).

use sojourn_units::{Duration, Time, cold_path};

use super::alarm::{Alarm, Arm};
use super::due::Due;
use super::recovery::{Facts, State};
use super::transmission::Fill;
use super::{Sender, Sending};
use crate::config::Recovery;
use crate::receiver::Estimates;
use crate::rtt::smoothed;
use crate::segment::{Flags, Segment};
use crate::seq::Seq;

/// Added to the time of a tail loss probe and of the reordering timer (Linux's TCP_TIMEOUT_MIN_US; the first releases
/// of 6.1 added two ticks).
const TIMEOUT_MARGIN: Duration = Duration::from_millis(2);
/// RFC 8985 §7.2: added instead if one segment is outstanding, because its acknowledgement may be delayed (in Linux the
/// minimum RTO).
const PROBE_ALLOWANCE: Duration = Duration::from_millis(200);

/// The running timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) alarm: Alarm,
    /// When it expires; not before, if that is not computed yet.
    due: Time,
    /// How and when it was set, if it is a probe whose time is not computed yet: most are set anew long before they expire.
    /// What the time depends on does not change meanwhile.
    put_off: Option<(Arm, Time)>,
}

impl Timer {
    const fn at(alarm: Alarm, due: Time) -> Self {
        Self {
            alarm,
            due,
            put_off: None,
        }
    }
}

/// A tail loss probe under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// SND.NXT when it was sent.
    end: Seq,
    /// The probe retransmitted old data.
    pub(super) resent: bool,
}

impl Estimates for Sender {
    #[inline(always)]
    fn timeout(&self) -> Duration {
        Self::timeout(self)
    }
    #[inline(always)]
    fn smoothed_rtt(&self) -> Option<Duration> {
        Self::smoothed_rtt(self)
    }
}

impl Sender {
    /// When [`Sender::on_timer`] is due, or sooner; [`Time::MAX`]: never.
    #[inline(always)]
    pub fn due(&self) -> Time {
        self.or_release(self.alarm.map_or(Time::MAX, |timer| timer.due))
    }

    /// When [`Sender::on_timer`] is due; [`Time::MAX`]: never.
    pub fn find_due(&self) -> Time {
        self.or_release(self.alarm.map_or(Time::MAX, |timer| self.time_of(timer)))
    }

    /// This time of the alarm, or that at which held data may leave, if that is earlier.
    #[inline(always)]
    fn or_release(&self, alarm: Time) -> Time {
        if self.held {
            cold_path();
            return alarm.min(self.pacer.release());
        }
        alarm
    }

    /// When a timer expires.
    fn time_of(&self, timer: Timer) -> Time {
        match timer.put_off {
            Some((arm, at)) => {
                let left = match arm {
                    Arm::Acknowledged => self.timeout(),
                    _ => self.until_retransmit(at),
                };
                self.clock.expiry(at, self.probe_span().min(left))
            }
            None => timer.due,
        }
    }

    /// Computes the time of the alarm, if that was put off. To be called before what it depends on changes, unless the alarm
    /// is then set anew.
    #[inline(always)]
    pub(crate) fn find_alarm(&mut self) {
        self.forget_deferral();
        let is_wanted = |timer: &Timer| timer.put_off.is_some() && self.arm == Arm::Leave;
        if let Some(timer) = self.alarm.filter(is_wanted) {
            cold_path();
            self.alarm = Some(Timer::at(timer.alarm, self.time_of(timer)));
        }
    }

    /// Handles a timer that has expired.
    #[inline(never)]
    pub fn on_timer(&mut self, now: Time) {
        self.forget_deferral();
        self.held = self.held && self.pacer.holds(now);
        self.find_alarm();
        let has_expired = |timer: &Timer| timer.due <= now && timer.put_off.is_none();
        let Some(Timer { alarm, .. }) = self.alarm.filter(has_expired) else {
            return;
        };
        self.alarm = None;
        if alarm == Alarm::Persist {
            self.due.add(Due::WINDOW_PROBE);
            self.backoff += 1;
            return;
        }
        if self.scoreboard.is_empty() {
            return;
        }
        match alarm {
            Alarm::Persist => {}
            Alarm::Retransmit => {
                self.enter_loss(now);
                self.timeouts += 1;
                self.backoff += 1;
                let rto = self.rtt.backed_off_rto(self.backoff);
                self.alarm = Some(Timer::at(Alarm::Retransmit, self.clock.expiry(now, rto)));
            }
            Alarm::Probe => {
                if self.probe.is_none() {
                    self.due.add(Due::PROBE);
                }
                self.arm_retransmit(now);
            }
            Alarm::Reordering => {
                let losses = self.scoreboard.detect_losses(now, self.reordering_window());
                self.lost = self.lost.wrapping_add(losses.segments);
                if losses.segments > 0 && self.state != State::Recovery {
                    self.enter_recovery(false);
                    if !self.capabilities.governs_window {
                        self.reduction.set_window(
                            &mut self.window,
                            self.scoreboard.in_flight(),
                            1,
                            false,
                        );
                    }
                }
                self.tell_losses(now);
                self.arm_retransmit(now);
            }
        }
    }

    /// Sends what is due even if the window is full; `None` if there is nothing to send.
    #[cold]
    #[inline(never)]
    pub(super) fn send_due(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        if self.due.take(Due::LOST) {
            if let Some(sending) = self.send_lost(segment, now) {
                return Some(sending);
            }
        }
        if self.due.take(Due::PROBE) {
            if let Some(sending) = self.send_probe(segment, now) {
                return Some(sending);
            }
        }
        if self.due.take(Due::WINDOW_PROBE) {
            return Some(self.probe_window(segment, now));
        }
        self.send_last(segment, now)
    }

    /// Sends the FIN with the remaining data, if that is at most one segment and the window is full.
    fn send_last(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        let is_full = self.in_flight() >= self.window.cwnd;
        if !self.due.has(Due::LAST) || !is_full || self.pacer.holds(now) {
            return None;
        }
        let (_, fin) = self.next_new(Fill::Full)?;
        fin.then(|| self.send_next(segment, now, Fill::Full))?
    }

    /// Sends a tail loss probe (RFC 8985 §7.3): new data if there is any, otherwise a retransmission of the newest
    /// segment.
    fn send_probe(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        let start = self.next;
        let sending = match self.send_next(segment, now, Fill::Full) {
            Some(sending) => {
                self.burst_start = start;
                sending
            }
            None => {
                let stamp = self.stamp(now);
                let (seq, len) = self.scoreboard.resend_newest(now, stamp)?;
                self.resend(segment, seq, len, now)
            }
        };
        self.probe = Some(Probe {
            end: self.next,
            resent: sending == Sending::Retransmission,
        });
        self.arm = Arm::Probed;
        Some(sending)
    }

    /// True if the first SACK block may be a D-SACK for the tail loss probe (RFC 8985 §7.4.2).
    pub(super) fn is_dsack_of_probe(&self, segment: &Segment) -> bool {
        self.probe
            .is_some_and(|probe| probe.resent && probe.end == segment.sack[0].end)
    }

    /// Finds out whether the probe repaired a loss (RFC 8985 §7.4).
    #[inline(always)]
    pub(super) fn on_probe_answered(&mut self, facts: &Facts<'_>) {
        let Some(probe) = self.probe else { return };
        if self.una.before(probe.end) {
            return;
        }
        if !probe.resent || facts.dsack {
            self.probe = None; // the probe was new data, or a D-SACK shows that the original arrived as well
        } else if self.una.after(probe.end) {
            self.probe = None;
            if matches!(self.state, State::Open | State::Disorder) {
                self.reduce_for_repaired_loss();
            }
        } else if !facts.advanced && facts.acked.sacked == 0 {
            self.probe = None; // a duplicate of the acknowledgement: both copies arrived
        }
    }

    /// True if this alarm is set.
    #[inline(always)]
    pub(super) fn runs(&self, alarm: Alarm) -> bool {
        self.alarm.is_some_and(|timer| timer.alarm == alarm)
    }

    /// Sets the alarm as an acknowledgement or a transmission requires it.
    #[inline(always)]
    pub(super) fn set_alarm(&mut self, now: Time) {
        let arm = std::mem::replace(&mut self.arm, Arm::Leave);
        if self.scoreboard.is_empty() {
            if arm != Arm::Leave {
                self.alarm = None;
            }
            self.arm_persist(now);
            return;
        }
        let is_probed = matches!(arm, Arm::Acknowledged | Arm::NewData) && self.arm_probe(arm, now);
        if !is_probed && arm != Arm::Leave {
            self.arm_otherwise(arm, now);
        }
    }

    /// Sets the alarm where no probe may be sent.
    #[inline(never)]
    fn arm_otherwise(&mut self, arm: Arm, now: Time) {
        match arm {
            Arm::Leave => {}
            Arm::Acknowledged => {
                let rto = self.timeout();
                match self.alarm.map(|timer| timer.alarm) {
                    // The timeout counts from the last transmission of the oldest segment, as if the timer had been
                    // running all the time (Linux's tcp_rearm_rto).
                    Some(Alarm::Probe | Alarm::Reordering) => self.arm_retransmit(now),
                    _ => {
                        self.alarm = Some(Timer::at(Alarm::Retransmit, self.clock.expiry(now, rto)))
                    }
                }
            }
            Arm::Retransmit if self.runs(Alarm::Reordering) => {}
            Arm::NewData | Arm::Retransmit => self.arm_retransmit(now),
            Arm::Probed => {
                let rto = self.rtt.backed_off_rto(self.backoff);
                self.alarm = Some(Timer::at(Alarm::Retransmit, self.clock.expiry(now, rto)));
            }
        }
    }

    /// Arms the timer for a probe of the closed receive window if data waits for the window. Nothing must be in flight.
    #[cold]
    #[inline(never)]
    fn arm_persist(&mut self, now: Time) {
        let held_back = self.unsent > 0 || self.owes_fin();
        if held_back && self.alarm.is_none() && self.next_new(Fill::Full).is_none() {
            let rto = self.rtt.backed_off_rto(self.backoff);
            self.alarm = Some(Timer::at(Alarm::Persist, self.clock.expiry(now, rto)));
        }
    }

    /// Handles an acknowledgement while the window is probed: it has opened, or it is probed again later.
    pub(super) fn on_window_probe_answered(&mut self) {
        if self.runs(Alarm::Persist) {
            self.alarm = None;
            if self.next_new(Fill::Full).is_some() {
                self.backoff = 0;
            }
        }
    }

    /// Probes the window (RFC 9293 §3.8.6.1): sends as much as the window allows (§3.8.6.2.1's override timeout). If
    /// the window is closed, sends an empty segment with a sequence number before the window, as Linux does. The peer
    /// must acknowledge it.
    fn probe_window(&mut self, segment: &mut Segment, now: Time) -> Sending {
        segment.seq = self.una + u32::MAX;
        segment.len = 0;
        segment.flags = Flags::default();
        self.send_next(segment, now, Fill::Partial)
            .unwrap_or(Sending::Retransmission)
    }

    /// Arms the retransmission timer for the oldest segment outstanding.
    pub(super) fn arm_retransmit(&mut self, now: Time) {
        let left = self.until_retransmit(now);
        self.alarm = Some(Timer::at(Alarm::Retransmit, self.clock.expiry(now, left)));
    }

    /// The time left until the retransmission timeout of the oldest segment outstanding.
    fn until_retransmit(&self, now: Time) -> Duration {
        let rto = self.rtt.backed_off_rto(self.backoff);
        let due = self.scoreboard.oldest_sent_at().unwrap_or(now) + rto;
        due.saturating_since(now).max(Duration::from_micros(1))
    }

    /// True if a tail loss probe may be sent for what is outstanding: nothing is thought lost.
    #[inline(always)]
    pub(super) fn may_probe(&self) -> bool {
        let no_doubt =
            matches!(self.state, State::Open | State::Cwr) && self.scoreboard.sacked() == 0;
        no_doubt && self.sack && self.recovery == Recovery::Rack
    }

    /// Arms a tail loss probe after two smoothed RTTs (RFC 8985 §7.2), or at the retransmission timeout if that is earlier.
    /// Returns false if this state allows no probe.
    #[inline(always)]
    fn arm_probe(&mut self, arm: Arm, now: Time) -> bool {
        if !self.may_probe() || self.scoreboard.is_empty() {
            return false;
        }
        // The timeout counts from the last transmission of the oldest segment, or from now.
        let timeout = self.scoreboard.oldest_sent_at().unwrap_or(now) + self.rtt.rto();
        let least = timeout.min(now + self.least_probe_span()).max(now);
        let known = match self.alarm {
            Some(timer) if timer.alarm == Alarm::Probe => timer.due,
            _ => Time::MAX,
        };
        self.alarm = Some(Timer {
            alarm: Alarm::Probe,
            due: known.min(least),
            put_off: Some((arm, now)),
        });
        true
    }

    /// True if acknowledgements of new data in order leave the time before which the alarm does not expire as it is, while eight
    /// times the smoothed RTT is at least `srtt_8`.
    pub(super) fn keeps_alarm(&self, srtt_8: i64, now: Time) -> bool {
        let oldest = self.scoreboard.oldest_sent_at().unwrap_or(now);
        let timeout = oldest + self.rtt.least_rto(srtt_8);
        let least = timeout.min(now + smoothed(srtt_8) * 2);
        self.alarm.is_some_and(|timer| {
            timer.alarm == Alarm::Probe && timer.put_off.is_some() && timer.due <= least
        })
    }

    /// Sets the alarm after an acknowledgement that leaves that time as it is.
    #[inline(always)]
    pub(super) const fn put_off_alarm(&mut self, now: Time) {
        self.arm = Arm::Leave;
        if let Some(timer) = &mut self.alarm {
            timer.put_off = Some((Arm::Acknowledged, now));
        }
    }

    /// After how long a tail loss probe is sent, unless the retransmission timeout is earlier.
    fn probe_span(&self) -> Duration {
        let allowance = if self.scoreboard.outstanding() == 1 {
            PROBE_ALLOWANCE
        } else {
            TIMEOUT_MARGIN
        };
        match self.rtt.smoothed() {
            Some(smoothed) => smoothed * 2 + allowance,
            None => crate::rtt::INITIAL_RTO,
        }
    }

    /// That span is at least this.
    #[inline(always)]
    fn least_probe_span(&self) -> Duration {
        match self.rtt.smoothed() {
            Some(smoothed) => smoothed * 2,
            None => crate::rtt::INITIAL_RTO,
        }
    }

    pub(super) fn arm_reordering_timer(&mut self, span: Duration, now: Time) {
        // The reordering timer expires before the retransmission timer, which this acknowledgement would otherwise
        // restart.
        self.arm = Arm::Leave;
        self.alarm = Some(Timer::at(
            Alarm::Reordering,
            self.clock.expiry(now, span + TIMEOUT_MARGIN),
        ));
    }

    /// Reduces the window before the first transmission after an idle time with nothing in flight. The window is halved
    /// for each RTO of idle time, down to the initial window (RFC 5681 §4.1, RFC 2861 as implemented in Linux).
    #[cold]
    #[inline(never)]
    pub(super) fn restart(&mut self, now: Time) {
        let idle = self.clock.between(self.last_sent, now);
        if self.delivered == 0 || self.last_sent == Time::ZERO {
            return;
        }
        self.control.on_restart(idle, now);
        let rto = self.rtt.rto();
        if idle <= rto || self.capabilities.governs_window {
            return;
        }
        let floor = self.initial_window.min(self.window.cwnd);
        self.window.ssthresh = self.current_ssthresh();
        let mut left = idle;
        while left > rto && self.window.cwnd > floor {
            left = left - rto;
            self.window.cwnd >>= 1;
        }
        self.window.cwnd = self.window.cwnd.max(floor);
        self.filled_at = now;
        self.peak_unfilled = 0;
    }

    /// Reduces a window that was not filled for an RTO half way to the part used (RFC 7661 §4.4.3 as in Linux).
    pub(super) fn shrink_unused(&mut self, now: Time) {
        if self.clock.between(self.filled_at, now) < self.rtt.rto()
            || self.state != State::Open
            || self.capabilities.governs_window
            || self.capabilities.keeps_unused
        {
            return;
        }
        // An application whose writes wait for room in the send buffer does not limit the flow (SOCK_NOSPACE in Linux's
        // tcp_cwnd_application_limited).
        let waits_for_room = self.is_unlimited();
        let used = self.peak_unfilled.max(self.initial_window);
        if used < self.window.cwnd && !waits_for_room {
            self.window.ssthresh = self.current_ssthresh();
            self.window.cwnd = u32::midpoint(self.window.cwnd, used);
        }
        self.peak_unfilled = 0;
        self.filled_at = now;
    }
}
