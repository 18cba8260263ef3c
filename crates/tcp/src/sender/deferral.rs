//! Data that waits to fill a burst goes on waiting while what that depends on stays within bounds. They are found when it
//! begins to wait, so that an acknowledgement that lets nothing leave needs few comparisons.

use sojourn_units::{Duration, Time};

use super::Sender;
use super::gso::{AVOIDANCE_PERCENT, LEAST, RATE_UNIT, RECENT, SOON, WINDOW_DIVISOR};
use super::pacing::MAX_BURST_BYTES;
use super::recovery::State;
use crate::rtt::smoothed;

/// The bounds. They hold until something else happens to the sender than acknowledgements of new data in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deferral {
    /// The window has room for fewer segments; 0: no bounds are known.
    below: u32,
    /// The window is no less.
    cwnd: u32,
    /// Eight times the smoothed RTT, at least and at most.
    srtt_8: (i64, i64),
    /// It is no later.
    until: Time,
    /// The next acknowledgement is expected within this time.
    soon: Duration,
}

impl Deferral {
    pub(super) const NONE: Self = Self {
        below: 0,
        cwnd: 0,
        srtt_8: (0, 0),
        until: Time::ZERO,
        soon: Duration::ZERO,
    };
}

impl Sender {
    /// Finds the bounds, at the end of a round of sending that has deferred data.
    #[inline(never)]
    pub(super) fn bound_deferral(&mut self, now: Time) {
        self.deferral = Deferral::NONE;
        let is_plain = self.has_fast_path
            && !self.capabilities.paces
            && self.state == State::Open
            && self.scoreboard.is_clean()
            && self.probe.is_none();
        let Some(srtt_8) = self.rtt.range().filter(|_| is_plain) else {
            return;
        };
        if !self.keeps_alarm(srtt_8.0, now) {
            return;
        }
        let (least, most) = (smoothed(srtt_8.0), smoothed(srtt_8.1));
        // What burst_exceeds and may_defer ask, solved for the room.
        let of_rate = u64::from(self.window.cwnd) * AVOIDANCE_PERCENT * RATE_UNIT
            / (most.as_nanos() << self.pacer.shift());
        let whole = of_rate.min(MAX_BURST_BYTES / u64::from(self.mss)) as u32;
        self.deferral = Deferral {
            below: (whole.max(LEAST))
                .min(self.buffer)
                .min(self.waiting().min(self.room()).div_ceil(self.mss))
                .min(self.window.cwnd.div_ceil(WINDOW_DIVISOR)),
            cwnd: self.window.cwnd,
            srtt_8,
            until: self.last_sent + RECENT,
            soon: SOON.min(least / 2),
        };
    }

    /// Nothing is known any more of how long data goes on waiting.
    #[inline(always)]
    pub(super) const fn forget_deferral(&mut self) {
        self.deferral.below = 0;
    }

    /// After [`Sender::take_progress`]: ends a round of sending as [`Sender::defer_again`] does, if the bounds tell that data goes
    /// on waiting.
    #[inline(always)]
    pub(crate) fn keeps_deferring(&mut self, now: Time) -> bool {
        let (bounds, cwnd) = (self.deferral, self.window.cwnd);
        let outstanding = self.scoreboard.outstanding();
        let keeps = outstanding < cwnd
            && cwnd - outstanding < bounds.below
            && cwnd >= bounds.cwnd
            && now <= bounds.until
            && (self.rtt.smoothed_within(bounds.srtt_8))
                .zip(self.scoreboard.oldest_sent_at())
                .is_some_and(|(smoothed, sent)| sent + smoothed <= now + bounds.soon);
        if keeps {
            self.put_off_alarm(now);
            self.window.peak_in_flight = outstanding;
            self.filled_at = now;
        } else {
            self.forget_deferral();
        }
        keeps
    }
}
