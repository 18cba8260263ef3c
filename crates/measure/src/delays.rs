//! Distributions of delays, kept as histograms.

use crate::distribution::{Quantiles, Spread, histogram_table};
use sojourn_units::{Duration, Hop};

use crate::percentile::Histogram;
use crate::table::Table;

/// The resolution of delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// 0.1 %, and 1 ns below 2 us: for queues, of which there are few.
    Queue,
    /// 0.1 %, and 1 us below 2 ms: for flows.
    Flow,
}

impl Precision {
    /// An empty histogram of this unit. Delays at a queue may spread over many octaves, those of a flow take little memory.
    const fn histogram(self) -> Histogram {
        match self {
            Self::Queue => Histogram::doubling(0),
            Self::Flow => Histogram::new(10),
        }
    }
}

/// A distribution of delays. Minimum, maximum and mean are exact; quantiles have the resolution of [`Precision`].
/// Memory does not depend on the number of delays, but on the ratio of the maximum to the minimum.
#[derive(Clone, Debug)]
pub struct Delays {
    histogram: Histogram,
    sum: u128,
    least: Duration,
    most: Duration,
}

impl Delays {
    /// An empty distribution.
    pub const fn new(precision: Precision) -> Self {
        Self {
            histogram: precision.histogram(),
            sum: 0,
            least: Duration::MAX,
            most: Duration::ZERO,
        }
    }

    /// Adds a delay.
    #[inline(always)]
    pub fn record(&mut self, delay: Duration) {
        self.sum += u128::from(delay.as_nanos());
        if delay < self.least {
            self.least = delay;
        }
        if delay > self.most {
            self.most = delay;
        }
        self.histogram.record(delay.as_nanos());
    }

    /// Adds a delay `n` times.
    pub fn record_many(&mut self, delay: Duration, n: u64) {
        if n > 0 {
            self.sum += u128::from(delay.as_nanos()) * u128::from(n);
            self.least = self.least.min(delay);
            self.most = self.most.max(delay);
            self.histogram.record_many(delay.as_nanos(), n);
        }
    }

    /// Adds all delays of another distribution.
    pub fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram);
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    /// The number of delays.
    pub const fn n(&self) -> u64 {
        self.histogram.n()
    }

    /// The mean; `None` if there are no delays.
    pub fn mean(&self) -> Option<Duration> {
        let n = u128::from(self.n());
        (n > 0).then(|| Duration::from_nanos((self.sum / n) as u64))
    }

    fn mean_ms(&self) -> f64 {
        self.sum as f64 / self.n() as f64 / 1e6
    }

    /// Its quantiles in milliseconds, to be asked for in increasing order of their shares: the upper edges of buckets; in
    /// the first and the last bucket the exact minimum and maximum.
    fn at_ms(&self) -> impl FnMut(f64) -> f64 {
        let mut percentiles = self.histogram.percentiles();
        let first = self.least.min(self.most); // without delays the least is not one
        let first_edge = self.histogram.upper_edge(first.as_nanos());
        move |share| {
            let upper_edge = percentiles.at(share);
            if upper_edge <= first_edge {
                return self.least.as_millis_f64();
            }
            let upper_edge = Duration::from_nanos(upper_edge);
            upper_edge.min(self.most).as_millis_f64()
        }
    }

    /// Its quantiles in milliseconds.
    pub fn quantiles(&self) -> Quantiles {
        Quantiles::of(self.n(), self.mean_ms(), self.at_ms())
    }

    /// Its main quantiles in milliseconds.
    pub fn spread(&self) -> Spread {
        Spread::of(self.n(), self.mean_ms(), self.at_ms())
    }

    /// The distribution of the differences from the smallest delay (RFC 5481 §4.2), in milliseconds.
    pub fn variation(&self) -> Spread {
        let least = self.least.as_millis_f64();
        let mut at_ms = self.at_ms();
        Spread::of(self.n(), self.mean_ms() - least, |share| {
            at_ms(share) - least
        })
    }

    /// The recorded table `histogram` of one queue.
    pub fn table(&self, queue: Hop) -> Table {
        let buckets = self.histogram.buckets();
        let buckets = buckets.map(|(edge, count)| (edge.min(self.most.as_nanos()), count));
        histogram_table(queue, buckets, self.most.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;
    use sojourn_units::Way;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn of(precision: Precision, delays: impl IntoIterator<Item = Duration>) -> Delays {
        let mut all = Delays::new(precision);
        for delay in delays {
            all.record(delay);
        }
        all
    }

    /// Delays of 20, 30, 60 ms: 0, 10, 40 ms above the smallest.
    #[test]
    fn delay_variation_counts_from_the_smallest_delay() {
        let variation = of(Precision::Flow, [30, 20, 60].map(MS)).variation();
        assert_eq!(variation.n, 3);
        assert!((variation.mean.unwrap() - 50.0 / 3.0).abs() < 1e-9);
        assert!(
            (variation.p50.unwrap() - 10.0).abs() < 0.03,
            "{variation:?}"
        );
        assert_eq!((variation.p5, variation.max), (Some(0.0), Some(40.0)));
    }

    /// At 300 ms one per mille is 0.3 ms: 300.0 and 300.6 ms are two values, and so are their variations.
    #[test]
    fn delays_of_a_flow_have_a_resolution_of_one_per_mille() {
        let delays = (0..1000).map(|n| Duration::from_micros(300_000 + 600 * (n % 2)));
        let delays = of(Precision::Flow, delays);
        let spread = delays.spread();
        assert_eq!((spread.p25, spread.p75), (Some(300.0), Some(300.6)));
        assert_eq!((spread.min, spread.p99), (Some(300.0), Some(300.6)));
        let variation = delays.variation();
        assert_eq!(variation.p25, Some(0.0));
        assert!((variation.p75.unwrap() - 0.6).abs() < 1e-9);
    }

    #[test]
    fn a_delay_recorded_many_times_counts_as_often() {
        let mut many = of(Precision::Queue, [MS(3), MS(7)]);
        let mut singly = many.clone();
        for (delay, n) in [(MS(0), 5), (MS(9), 2), (MS(11), 0)] {
            many.record_many(delay, n);
            (0..n).for_each(|_| singly.record(delay));
        }
        assert_eq!(many.quantiles(), singly.quantiles());
        assert_eq!(
            (many.n(), many.mean()),
            (9, Some(Duration::from_nanos(3_111_111)))
        );
    }

    #[test]
    fn combined_delays_are_those_of_both() {
        let mut together = of(Precision::Flow, (1..=50).map(MS));
        together.add(&of(Precision::Flow, (51..=100).map(MS)));
        together.add(&Delays::new(Precision::Flow));
        let both = of(Precision::Flow, (1..=100).map(MS));
        assert_eq!(together.spread(), both.spread());
        assert_eq!(together.quantiles(), both.quantiles());
        assert_eq!(together.mean(), Some(Duration::from_micros(50_500)));
    }

    #[test]
    fn a_queue_distinguishes_no_wait_from_a_short_one() {
        let delays = [0, 0, 0, 700, 20_000_000].map(Duration::from_nanos);
        let delays = of(Precision::Queue, delays);
        assert_eq!(delays.quantiles().p50, Some(0.0));
        let queue = Hop {
            link: 0,
            way: Way::Up,
        };
        let table = delays.table(queue);
        let (_, Column::U64(packets)) = &table.columns[3] else {
            panic!("{table:?}");
        };
        assert_eq!(packets, &[3, 1, 1]);
    }
}
