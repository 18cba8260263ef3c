//! RED's rule as published: Floyd and Jacobson 1993, Figure 2, with the gentle slope.

use sojourn_units::{Duration, Time};

use super::{Config, Decision, slot};

/// The state of the published rule, with the paper's names.
pub struct Floyd {
    min: f64,
    max: f64,
    max_p: f64,
    weight: f64,
    gentle: bool,
    wait: bool,
    mean_packet: Option<f64>,
    slot: Duration,
    avg: f64,
    /// Packets since the last drop or mark; -1 while the average is below `min`.
    count: i64,
    q_time: Option<Time>,
}

impl Floyd {
    /// The rule before its first packet, with an average of zero.
    pub fn new(config: Config) -> Self {
        Self {
            min: config.min as f64,
            max: config.max as f64,
            max_p: config.max_p,
            weight: config.weight,
            gentle: config.gentle,
            wait: config.wait,
            mean_packet: config.bytemode.then_some(f64::from(config.avpkt)),
            slot: slot(&config),
            avg: 0.0,
            count: -1,
            q_time: None,
        }
    }

    /// The average queue length.
    pub const fn average(&self) -> f64 {
        self.avg
    }

    /// The probability at the upper threshold.
    pub const fn max_p(&self) -> f64 {
        self.max_p
    }

    /// Sets the probability at the upper threshold.
    pub const fn set_max_p(&mut self, max_p: f64) {
        self.max_p = max_p;
    }

    /// The average at `now` without an arrival: decayed by the idle time so far.
    pub fn average_at(&self, now: Time) -> f64 {
        match self.q_time {
            Some(since) => {
                let slot = self.slot.as_nanos().max(1) as f64;
                let packets = now.saturating_since(since).as_nanos() as f64 / slot;
                self.avg * libm::pow(1.0 - self.weight, packets)
            }
            None => self.avg,
        }
    }

    pub(crate) fn observe(&mut self, queue: u64, now: Time) {
        self.avg = self.average_at(now);
        self.q_time = None;
        self.avg += self.weight * (queue as f64 - self.avg);
    }

    pub(crate) fn decide(&mut self, bytes: u32, uniform: &mut dyn FnMut() -> f64) -> Decision {
        let Some(p_b) = self.base_probability() else {
            self.count = -1;
            return if self.avg < self.min {
                Decision::Pass
            } else {
                Decision::Forced
            };
        };
        self.count += 1;
        let p_b = match self.mean_packet {
            Some(mean) => (p_b * f64::from(bytes) / mean).min(1.0),
            None => p_b,
        };
        if uniform() < self.spaced(p_b) {
            self.count = 0;
            Decision::Early
        } else {
            Decision::Pass
        }
    }

    /// Handles the loss of a packet for lack of room: spacing restarts.
    pub(crate) const fn on_loss(&mut self) {
        self.count = 0;
    }

    pub(crate) fn on_empty(&mut self, now: Time) {
        self.q_time.get_or_insert(now);
    }

    /// p_b; `None` where the decision is not random.
    fn base_probability(&self) -> Option<f64> {
        if self.avg < self.min {
            None
        } else if self.avg < self.max {
            Some(self.max_p * (self.avg - self.min) / (self.max - self.min))
        } else if self.gentle && self.avg < 2.0 * self.max {
            Some(self.max_p + (1.0 - self.max_p) * (self.avg - self.max) / self.max)
        } else {
            None
        }
    }

    /// p_a: p_b raised by the count, so that the gaps between drops are uniform (§7, "method 2").
    fn spaced(&self, p_b: f64) -> f64 {
        let expected = self.count as f64 * p_b;
        if self.wait {
            if expected < 1.0 {
                0.0
            } else if expected < 2.0 {
                p_b / (2.0 - expected)
            } else {
                1.0
            }
        } else if expected < 1.0 {
            p_b / (1.0 - expected)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Unit, Variant};
    use super::*;
    use sojourn_units::Rate;

    fn rule(gentle: bool) -> Floyd {
        Floyd::new(Config {
            unit: Unit::Packets,
            min: 10,
            max: 30,
            max_p: 0.1,
            weight: 1.0,
            gentle,
            wait: false,
            bytemode: false,
            avpkt: 1000,
            bandwidth: Rate::from_mbps(8),
            ecn: false,
            harddrop: false,
            ce_exclude: false,
            variant: Variant::Floyd,
        })
    }

    #[test]
    fn the_base_probability_rises_in_two_slopes() {
        // Middle: max_p/2. Gentle at 1.5 x max: (1 + max_p)/2.
        for (gentle, average, p_b) in [
            (false, 9.0, None),
            (false, 10.0, Some(0.0)),
            (false, 20.0, Some(0.05)),
            (false, 30.0, None),
            (true, 30.0, Some(0.1)),
            (true, 45.0, Some(0.55)),
            (true, 60.0, None),
        ] {
            let mut rule = rule(gentle);
            rule.avg = average;
            match (rule.base_probability(), p_b) {
                (Some(ours), Some(expected)) => assert!((ours - expected).abs() < 1e-12),
                (ours, expected) => assert_eq!(ours, expected, "average {average}"),
            }
        }
    }

    #[test]
    fn the_probability_is_raised_with_the_count() {
        // Method 2 of the paper, p_b = 0.2: 0.2, 0.25, 0.333, 0.5, 1.
        let mut rule = rule(false);
        for (count, p_a) in [
            (0, 0.2),
            (1, 0.25),
            (2, 1.0 / 3.0),
            (3, 0.5),
            (4, 1.0),
            (9, 1.0),
        ] {
            rule.count = count;
            assert!((rule.spaced(0.2) - p_a).abs() < 1e-12, "count {count}");
        }
        // ns-2's wait: nothing before 1/p, then p/(2 - count p).
        rule.wait = true;
        for (count, p_a) in [(4, 0.0), (5, 0.2), (8, 0.5), (9, 1.0), (10, 1.0)] {
            rule.count = count;
            assert!((rule.spaced(0.2) - p_a).abs() < 1e-12, "count {count}");
        }
    }
}
