//! Token-bucket policers (Linux's "long-term bandwidth"): if a fifth of the packets is lost in two successive
//! stretches of rounds at about the same throughput, that throughput is used as the bandwidth for some time.
//! draft-cardwell-iccrg-bbr-congestion-control-00 does not have this; the values are Linux's.

use sojourn_units::{Duration, Time};

use super::{Bandwidth, bandwidth};
use crate::cc::{RateSample, Sample};

/// The minimum length of a stretch in rounds. A stretch of four times this without an end indicates no policer.
const STRETCH_ROUNDS: u32 = 4;
/// Losses per delivered segment in a stretch, in 256ths: 20 %.
const LOSS_RATIO: u64 = 50;
/// Two stretches agree within an eighth, or within 4 kbit/s.
const CLOSE_RATIO: u64 = 8;
const CLOSE_BPS: u64 = 4_000;
/// Rounds for which the bandwidth is used.
const BELIEVED_ROUNDS: u32 = 48;

/// The search for a policer.
#[derive(Debug)]
pub(super) struct Policer {
    sampling: bool,
    /// The bandwidth of the last stretch, and whether it is in use.
    bandwidth: Bandwidth,
    in_force: bool,
    rounds: u32,
    /// Delivered segments, lost segments and time at the beginning of the stretch; all lost segments.
    from_delivered: u64,
    from_lost: u64,
    from: Time,
    lost: u64,
}

impl Policer {
    pub(super) const fn new() -> Self {
        Self {
            sampling: false,
            bandwidth: 0,
            in_force: false,
            rounds: 0,
            from_delivered: 0,
            from_lost: 0,
            from: Time::ZERO,
            lost: 0,
        }
    }

    /// The bandwidth of the policer, while it is in use.
    pub(super) const fn bandwidth(&self) -> Option<Bandwidth> {
        if self.in_force {
            Some(self.bandwidth)
        } else {
            None
        }
    }

    fn begin_stretch(&mut self, now: Time, delivered: u64) {
        self.from = now;
        self.from_delivered = delivered;
        self.from_lost = self.lost;
        self.rounds = 0;
    }

    fn reset(&mut self, now: Time, delivered: u64) {
        *self = Self {
            lost: self.lost,
            ..Self::new()
        };
        self.begin_stretch(now, delivered);
    }

    /// Counts a timeout as a loss, which may begin a search.
    pub(super) const fn on_timeout(&mut self, now: Time) {
        self.lost += 1;
        if !self.sampling {
            self.from = now;
        }
    }

    /// Takes a sample. Returns true when a bandwidth has been in use for its full time. `cycling`: in PROBE_BW.
    pub(super) fn on_sample(
        &mut self,
        rate: &RateSample,
        round_start: bool,
        cycling: bool,
        now: Time,
        sample: &Sample,
    ) -> bool {
        self.lost += u64::from(sample.lost);
        let delivered = sample.total_delivered;
        if self.in_force {
            self.rounds += u32::from(round_start && cycling);
            if self.rounds >= BELIEVED_ROUNDS {
                self.reset(now, delivered);
                return true;
            }
            return false;
        }
        if !self.sampling {
            if sample.lost == 0 {
                return false;
            }
            self.begin_stretch(now, delivered);
            self.sampling = true;
        }
        if rate.app_limited {
            self.reset(now, delivered);
            return false;
        }
        self.rounds += u32::from(round_start);
        if self.rounds > 4 * STRETCH_ROUNDS {
            self.reset(now, delivered);
        } else if self.rounds >= STRETCH_ROUNDS && sample.lost > 0 {
            self.judge_stretch(now, sample);
        }
        false
    }

    fn judge_stretch(&mut self, now: Time, sample: &Sample) {
        let delivered = sample.total_delivered - self.from_delivered;
        let lost = self.lost - self.from_lost;
        let span = now.saturating_since(self.from);
        if delivered == 0 || lost * 256 < LOSS_RATIO * delivered || span < Duration::from_millis(1)
        {
            return;
        }
        let found = bandwidth(delivered, span);
        if self.bandwidth > 0 {
            let difference = found.abs_diff(self.bandwidth);
            let close =
                bandwidth(CLOSE_BPS, Duration::from_secs(1)) / (8 * u64::from(sample.mss.max(1)));
            if difference * CLOSE_RATIO <= self.bandwidth || difference <= close {
                self.bandwidth = u64::midpoint(found, self.bandwidth);
                self.in_force = true;
                self.rounds = 0;
                return;
            }
        }
        self.bandwidth = found;
        self.begin_stretch(now, sample.total_delivered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 100 ms with `delivered` segments each, and `lost` more that were lost.
    fn rounds(policer: &mut Policer, first: u64, count: u64, delivered: u64, lost: u32) -> bool {
        let mut ended = false;
        for round in first..first + count {
            let sample = Sample {
                total_delivered: round * delivered,
                lost,
                mss: 1000,
                ..Sample::default()
            };
            let now = Time::from_millis(100 * round);
            ended |= policer.on_sample(&RateSample::default(), true, true, now, &sample);
        }
        ended
    }

    /// 100 segments in 100 ms, 25 more lost (a quarter): the second stretch of four rounds agrees with the first.
    #[test]
    fn two_lossy_stretches_of_the_same_rate_are_a_policer() {
        let mut policer = Policer::new();
        rounds(&mut policer, 1, 8, 100, 25);
        assert_eq!(
            policer.bandwidth(),
            Some(bandwidth(100, Duration::from_millis(100)))
        );
        assert!(
            rounds(&mut policer, 9, 48, 100, 0),
            "believed for 48 rounds"
        );
        assert_eq!(policer.bandwidth(), None);
    }

    /// 10 % are less than 50/256.
    #[test]
    fn moderate_losses_are_not_a_policer() {
        let mut policer = Policer::new();
        rounds(&mut policer, 1, 40, 100, 10);
        assert_eq!(policer.bandwidth(), None);
    }
}
