//! Distributions as results show them: quantiles, a short form, a histogram.
//!
//! A quantile is the value of the nearest rank: the smallest value that at least this share of all values does not exceed.
//! It is taken from the finest data that is kept, every value or a histogram's bucket, and nothing is interpolated. Of a
//! bucket its upper edge counts.

use serde::Serialize;

use sojourn_units::Hop;

use crate::result::{Column, Table, place_columns};

/// Quantiles of a distribution; `None` (null) where there was nothing to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[expect(
    missing_docs,
    reason = "the names say it: p99_9 is the 99.9th percentile"
)]
pub struct Quantiles {
    pub n: u64,
    pub mean: Option<f64>,
    pub min: Option<f64>,
    pub p1: Option<f64>,
    pub p5: Option<f64>,
    pub p10: Option<f64>,
    pub p25: Option<f64>,
    pub p50: Option<f64>,
    pub p75: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p99_9: Option<f64>,
    pub max: Option<f64>,
}

impl Quantiles {
    /// Of `n` values: `at` gives the quantile of a share, from 0 (the least) to 1 (the greatest). Neither it nor the mean
    /// is used if there are none.
    pub fn of(n: u64, mean: f64, at: impl Fn(f64) -> f64) -> Self {
        if n == 0 {
            return Self::default();
        }
        let at = |share| Some(at(share));
        Self {
            n,
            mean: Some(mean),
            min: at(0.0),
            p1: at(0.01),
            p5: at(0.05),
            p10: at(0.1),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            max: at(1.0),
        }
    }
}

/// A distribution in short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Spread {
    pub n: u64,
    pub mean: Option<f64>,
    pub min: Option<f64>,
    pub p5: Option<f64>,
    pub p25: Option<f64>,
    pub p50: Option<f64>,
    pub p75: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

impl Spread {
    /// As [`Quantiles::of`].
    pub fn of(n: u64, mean: f64, at: impl Fn(f64) -> f64) -> Self {
        if n == 0 {
            return Self::default();
        }
        let at = |share| Some(at(share));
        Self {
            n,
            mean: Some(mean),
            min: at(0.0),
            p5: at(0.05),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

/// The smallest of the sorted values that at least the share `q` of them does not exceed.
pub fn nearest_rank<T: Copy>(sorted: &[T], q: f64) -> Option<T> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Buckets of a histogram table are an octave's 128th wide, 0.4 to 0.8 % of the value,
const BUCKETS_PER_OCTAVE_LOG2: u32 = 7;
/// but at least 1024 ns. Packets that did not wait at all have a bucket of their own.
const LEAST_WIDTH_LOG2: u32 = 10;

/// The greatest value, in nanoseconds, of the bucket that a value falls into.
const fn upper_edge(nanos: u64) -> u64 {
    if nanos == 0 {
        return 0;
    }
    let of_octave = nanos.ilog2().saturating_sub(BUCKETS_PER_OCTAVE_LOG2);
    let width = if of_octave > LEAST_WIDTH_LOG2 {
        of_octave
    } else {
        LEAST_WIDTH_LOG2
    };
    nanos | ((1 << width) - 1)
}

/// The recorded table `histogram` of one queue: a row per bucket that is not empty, with the bucket's upper edge
/// (of the last one the greatest value) and its packets. `ascending` has sojourn times in nanoseconds, each with so many
/// packets.
pub fn histogram(queue: Hop, ascending: impl Iterator<Item = (u64, u64)>, greatest: u64) -> Table {
    let (mut edges, mut packets): (Vec<u64>, Vec<u64>) = Default::default();
    for (nanos, count) in ascending {
        let edge = upper_edge(nanos).min(greatest);
        match packets.last_mut() {
            Some(last) if edges.last() == Some(&edge) => *last += count,
            _ => {
                edges.push(edge);
                packets.push(count);
            }
        }
    }
    let milliseconds = |edge: &u64| *edge as f64 / 1e6;
    let mut columns = place_columns(queue, edges.len());
    let edges = edges.iter().map(milliseconds).collect();
    columns.push(("sojourn_ms", Column::F64(edges)));
    columns.push(("packets", Column::U64(packets)));
    Table { columns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::Way;

    /// Of 1 to 10 the 5th is the smallest that half do not exceed, the 1st that a tenth, the 10th that 95 % do not.
    #[test]
    fn a_quantile_is_the_smallest_value_that_the_share_does_not_exceed() {
        let values: Vec<u64> = (1..=10).collect();
        let at = |q| nearest_rank(&values, q);
        assert_eq!(
            [at(0.0), at(0.1), at(0.5), at(0.95), at(1.0)],
            [Some(1), Some(1), Some(5), Some(10), Some(10)]
        );
        assert_eq!(nearest_rank::<u64>(&[], 0.5), None);
    }

    #[test]
    fn of_nothing_there_is_no_quantile() {
        let unused = |_| unreachable!("there are no values");
        assert_eq!(Quantiles::of(0, f64::NAN, unused), Quantiles::default());
        assert_eq!(Spread::of(0, f64::NAN, unused), Spread::default());
    }

    /// 20 ms lie between 2^24 and 2^25 ns: buckets of 2^17 ns, 0.131 ms or 0.66 %.
    #[test]
    fn a_bucket_is_less_than_a_hundredth_wide_and_packets_that_did_not_wait_have_their_own() {
        assert_eq!([0, 1, 1023, 1024].map(upper_edge), [0, 1023, 1023, 2047]);
        assert_eq!(
            upper_edge(20_000_000),
            (20_000_000 / 131_072 + 1) * 131_072 - 1
        );
        for nanos in (200_000..2_000_000_000_u64).step_by(777_777) {
            let edge = upper_edge(nanos);
            assert!(
                edge >= nanos && (edge - nanos) * 100 < nanos,
                "{nanos}: {edge}"
            );
            assert_eq!(upper_edge(edge), edge);
        }
    }

    /// The last bucket ends at the greatest value.
    #[test]
    fn a_histogram_counts_every_packet_once() {
        let values = [(0, 5), (20_000_000, 2), (20_000_100, 3), (30_000_000, 1)];
        let queue = Hop {
            link: 2,
            way: Way::Up,
        };
        let table = histogram(queue, values.into_iter(), 30_000_000);
        let [
            (_, Column::U8(link)),
            (_, Column::U8(direction)),
            (_, Column::F64(edges)),
            (_, Column::U64(packets)),
        ] = &table.columns[..]
        else {
            panic!("{table:?}");
        };
        assert_eq!((link, direction), (&vec![2; 3], &vec![1; 3]));
        assert_eq!(packets, &[5, 5, 1]);
        assert_eq!((edges[0], edges[2]), (0.0, 30.0));
        assert!(edges[1] >= 20.0001 && edges[1] < 20.2);
    }
}
