//! How late packets were delivered: the time from the instant at which a packet should have arrived to that at which it was
//! handed to its host.

use sojourn_measure::delays::{Delays, Precision};
use sojourn_units::Duration;

/// The most that the 99th percentile may be: the tolerance within which medians of sojourn times agree between backends.
pub const MOST_P99: Duration = Duration::from_millis(1);
/// The most that the 99.9th percentile may be: as the agent's own wake-ups on Linux.
pub const MOST_P99_9: Duration = Duration::from_millis(5);

/// The lateness of all deliveries of a run.
pub struct Lateness(Delays);

/// Its distribution, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Figures {
    /// Deliveries.
    pub n: u64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p99_9: f64,
    /// The longest.
    pub max: f64,
}

impl Lateness {
    /// Nothing delivered yet.
    pub fn new() -> Self {
        Self(Delays::new(Precision::Queue))
    }

    /// Notes that a packet was delivered so late.
    pub fn note(&mut self, late: Duration) {
        self.0.record(late);
    }

    /// The distribution.
    pub fn figures(&self) -> Figures {
        let quantiles = self.0.quantiles();
        Figures {
            n: quantiles.n,
            p50: quantiles.p50.unwrap_or(0.0),
            p99: quantiles.p99.unwrap_or(0.0),
            p99_9: quantiles.p99_9.unwrap_or(0.0),
            max: quantiles.max.unwrap_or(0.0),
        }
    }
}

impl Figures {
    /// Why a run with this lateness is invalid.
    pub fn fault(&self) -> Option<String> {
        let bounds = [("99", self.p99, MOST_P99), ("99.9", self.p99_9, MOST_P99_9)];
        let broken = bounds
            .into_iter()
            .find(|(_, late, most)| *late > most.as_millis_f64());
        broken.map(|(share, late, most)| {
            format!(
                "the {share}th percentile of the lateness of packets is {late:.2} ms, beyond {most}: work was waiting for a \
                 processor, or for the answers of a discipline in Python"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(late: impl Iterator<Item = u64>) -> Figures {
        let mut all = Lateness::new();
        late.for_each(|micros| all.note(Duration::from_micros(micros)));
        all.figures()
    }

    /// Of 1000 packets 20 are 2 ms late: the 99th percentile is above 1 ms. Of 2000 packets 10 are 8 ms late: 0.5 %.
    #[test]
    fn a_run_is_invalid_beyond_either_bound() {
        let good = of((0..1000).map(|n| if n < 5 { 4000 } else { 15 }));
        assert_eq!((good.n, good.fault()), (1000, None));
        assert!((good.max - 4.0).abs() < 0.1 && good.p50 < 0.02);
        let often = of((0..1000).map(|n| if n < 20 { 2000 } else { 15 }));
        assert!(
            often
                .fault()
                .expect("invalid")
                .starts_with("the 99th percentile")
        );
        let long = of((0..2000).map(|n| if n < 10 { 8000 } else { 15 }));
        assert!(
            long.fault()
                .expect("invalid")
                .starts_with("the 99.9th percentile")
        );
    }

    #[test]
    fn a_run_without_packets_is_valid() {
        assert_eq!(of(std::iter::empty()).fault(), None);
    }
}
