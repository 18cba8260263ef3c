//! Quality of Outcome: how near to optimal the network is for an application (draft-ietf-ippm-qoo, "Calculating QoO").

use sojourn_units::{Duration, Rate};

/// What an application needs of the network. Of a pair the first is optimal (ROP), the second unacceptable (CPUP).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Requirements {
    /// The 99th percentile of the latency.
    pub p99: (Duration, Duration),
    /// The 99.9th percentile.
    pub p99_9: (Duration, Duration),
    /// The share of packets lost.
    pub loss: (f64, f64),
    /// The least throughput, if there is one.
    pub rate: Option<Rate>,
}

/// The draft's example of a specification, without its throughput of 4 Mbit/s, which most applications never need.
impl Default for Requirements {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            p99: (ms(100), ms(200)),
            p99_9: (ms(200), ms(300)),
            loss: (0.001, 0.02),
            rate: None,
        }
    }
}

/// What was measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// The 99th percentile of the latency, in milliseconds.
    pub p99_ms: f64,
    /// The 99.9th percentile.
    pub p99_9_ms: f64,
    /// The share of packets lost; `None` if it is not known.
    pub loss: Option<f64>,
    /// The throughput in bit/s.
    pub rate_bps: f64,
}

impl Requirements {
    /// The score, from 0 to 100: the least of those for each percentile of the latency, for loss and for throughput.
    pub fn score(&self, measured: &Conditions) -> f64 {
        let of_latency = |at_ms: f64, (optimal, unacceptable): (Duration, Duration)| {
            between(at_ms, optimal.as_millis_f64(), unacceptable.as_millis_f64())
        };
        let latency =
            of_latency(measured.p99_ms, self.p99).min(of_latency(measured.p99_9_ms, self.p99_9));
        let loss = measured
            .loss
            .map_or(1.0, |loss| between(loss, self.loss.0, self.loss.1));
        let suffices = self
            .rate
            .is_none_or(|least| measured.rate_bps >= least.as_bps() as f64);
        if suffices {
            100.0 * latency.min(loss)
        } else {
            0.0
        }
    }
}

/// 1 up to `optimal`, 0 from `unacceptable` on.
fn between(value: f64, optimal: f64, unacceptable: f64) -> f64 {
    (1.0 - (value - optimal) / (unacceptable - optimal)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The draft's worked example: 50 for latency, 75 for loss, 100 for throughput.
    #[test]
    fn the_worked_example_scores_fifty() {
        let requirements = Requirements {
            p99: (MS(200), MS(500)),
            p99_9: (MS(300), MS(600)),
            loss: (0.01, 0.05),
            rate: Some(Rate::from_mbps(4)),
        };
        let measured = Conditions {
            p99_ms: 350.0,
            p99_9_ms: 375.0,
            loss: Some(0.02),
            rate_bps: 28e6,
        };
        let score = |measured| requirements.score(&measured);
        assert!((score(measured) - 50.0).abs() < 1e-9);
        let quick = Conditions {
            p99_ms: 20.0,
            p99_9_ms: 20.0,
            ..measured
        };
        assert!((score(quick) - 75.0).abs() < 1e-9);
        let unknown = Conditions {
            loss: None,
            ..quick
        };
        assert!((score(unknown) - 100.0).abs() < 1e-9);
        let slow = Conditions {
            rate_bps: 3.9e6,
            ..unknown
        };
        assert!(score(slow).abs() < 1e-9, "too little throughput");
        let late = Conditions {
            p99_9_ms: 600.0,
            ..unknown
        };
        assert!(score(late).abs() < 1e-9, "each percentile counts");
    }
}
