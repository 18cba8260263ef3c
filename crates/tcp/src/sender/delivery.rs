//! Delivery-rate estimation (draft-cheng-iccrg-delivery-rate-estimation): stamps segments when they are sent, and
//! samples the rate when they are acknowledged. Used only by congestion controls that request samples.

use sojourn_units::Time;

use super::Sender;
use super::recovery::{Facts, State};
use crate::cc::{LostSegment, RateSample, RecoveryPhase, Sample};
use crate::ecn::Feedback;
use crate::scoreboard::Stamp;
use crate::segment::Segment;

impl Sender {
    /// The state that a rate sample needs, if samples are taken, when a segment is sent.
    pub(super) fn stamp(&mut self, now: Time) -> Option<Stamp> {
        if !self.capabilities.samples {
            return None;
        }
        if self.scoreboard.is_empty() {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Some(Stamp {
            sent_at: now,
            delivered: self.delivered as u32,
            lost: self.lost,
            in_flight: self.scoreboard.in_flight(),
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until > self.delivered,
        })
    }

    /// Detects an application-limited sender (draft-cheng-iccrg-delivery-rate-estimation §3.4): the window has room,
    /// but there is nothing to send.
    #[inline(never)]
    pub(super) fn judge_application(&mut self) {
        let in_flight = self.in_flight();
        if self.unsent == 0 && in_flight < self.window.cwnd && !self.scoreboard.has_waiting() {
            self.mark_limited();
        }
    }

    /// What is in flight, and what is sent until it is delivered, counts as limited by the application
    /// (draft-ietf-ccwg-bbr, MarkConnectionAppLimited).
    pub(super) fn mark_limited(&mut self) {
        self.app_limited_until = (self.delivered + u64::from(self.in_flight())).max(1);
    }

    /// Tells the congestion control of each segment judged lost, if it asks for them. `self.lost` counts them already.
    #[inline(always)]
    pub(super) fn tell_losses(&mut self, now: Time) {
        if self.capabilities.losses {
            self.tell_each(now);
        }
    }

    #[inline(never)]
    fn tell_each(&mut self, now: Time) {
        let untold = self.scoreboard.take_untold();
        for (later, stamp) in (0..untold.len() as u32).rev().zip(untold) {
            let segment = LostSegment {
                now,
                una: self.una,
                delivered: self.delivered,
                in_flight_at_send: stamp.in_flight + 1,
                lost: self.lost.wrapping_sub(later).wrapping_sub(stamp.lost),
                app_limited: stamp.app_limited,
            };
            self.control.on_lost(&segment, &self.window);
        }
    }

    /// The sample of an acknowledgement, for a congestion control that requests samples.
    pub(super) fn sample(
        &self,
        segment: &Segment,
        facts: &Facts,
        lost: u32,
        prior_in_flight: u32,
        now: Time,
    ) -> Sample {
        let one_way_ms = (segment.ts_ecr != 0)
            .then(|| segment.ts_val.wrapping_sub(segment.ts_ecr) & 0x7fff_ffff);
        Sample {
            rate: facts
                .acked
                .latest
                .and_then(|latest| self.rate_sample(self.scoreboard.stamp_of(latest), now)),
            total_delivered: self.delivered,
            lost,
            prior_in_flight,
            in_flight: self.in_flight(),
            accurate: self.feedback == Feedback::Accurate,
            phase: match self.state {
                State::Open | State::Disorder | State::Cwr => RecoveryPhase::None,
                State::Recovery => RecoveryPhase::Recovery,
                State::Loss => RecoveryPhase::Timeout,
            },
            smoothed_rtt: self.rtt.smoothed(),
            one_way_ms,
            release: self.pacer.release(),
            mss: self.mss,
        }
    }

    /// The delivery rate since `latest`, the newest segment delivered, was sent
    /// (draft-cheng-iccrg-delivery-rate-estimation §3.3, GenerateRateSample). An interval below the minimum RTT is not
    /// credible.
    fn rate_sample(&self, latest: &Stamp, now: Time) -> Option<RateSample> {
        let sending = latest.sent_at.saturating_since(latest.first_sent_at);
        let interval = sending.max(now - latest.delivered_at);
        let delivered = u64::from((self.delivered as u32).wrapping_sub(latest.delivered));
        (Some(interval) >= self.rtt.min()).then_some(RateSample {
            delivered,
            interval,
            prior_delivered: self.delivered - delivered,
            in_flight_at_send: latest.in_flight + 1,
            lost: self.lost.wrapping_sub(latest.lost),
            app_limited: latest.app_limited,
        })
    }
}
