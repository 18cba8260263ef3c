//! Distributions in results: which percentiles a result has, and the recorded table of a histogram.
//!
//! `crate::percentile` computes the percentiles.

use serde::{Deserialize, Serialize};

use sojourn_units::Hop;

use crate::table::{Column, Table, place_columns};

/// Declares a distribution by its quantiles, each with its share from 0 (the minimum) to 1 (the maximum), in increasing
/// order.
macro_rules! distribution {
    ($(#[$doc:meta])* $name:ident { $($quantile:ident: $share:literal),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "p99_9 is the 99.9th percentile")]
        pub struct $name {
            pub n: u64,
            pub mean: Option<f64>,
            $(pub $quantile: Option<f64>),+
        }

        impl $name {
            /// The distribution of `n` values, with `at` for the quantile of a share. The shares increase from call to
            /// call. Without values, neither `at` nor `mean` is used.
            pub fn of(n: u64, mean: f64, mut at: impl FnMut(f64) -> f64) -> Self {
                if n == 0 {
                    return Self::default();
                }
                Self { n, mean: Some(mean), $($quantile: Some(at($share))),+ }
            }
        }
    };
}

distribution! {
    /// Quantiles of a distribution; `None` if there was nothing to measure.
    Quantiles {
        min: 0.0, p1: 0.01, p5: 0.05, p10: 0.1, p25: 0.25, p50: 0.5, p75: 0.75, p90: 0.9, p95: 0.95, p99: 0.99,
        p99_9: 0.999, max: 1.0
    }
}

distribution! {
    /// The main quantiles of a distribution; `None` if there was nothing to measure.
    Spread { min: 0.0, p5: 0.05, p25: 0.25, p50: 0.5, p75: 0.75, p95: 0.95, p99: 0.99, max: 1.0 }
}

/// Buckets per octave of a histogram table, as a power of two: each is 0.4 to 0.8 % of the value wide.
const BUCKETS_PER_OCTAVE_LOG2: u32 = 7;
/// The least width of such a bucket, as a power of two in nanoseconds. Packets that did not wait have a bucket of their
/// own.
const LEAST_WIDTH_LOG2: u32 = 10;

/// The largest value of the bucket that contains `nanos`, in nanoseconds.
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

/// The recorded table `histogram` of one queue: a row per non-empty bucket, with its upper edge (in the last bucket the
/// largest value) and its packets. `ascending` yields increasing sojourn times in nanoseconds, each with its number of
/// packets.
pub fn histogram_table(
    queue: Hop,
    ascending: impl Iterator<Item = (u64, u64)>,
    greatest: u64,
) -> Table {
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

    #[test]
    fn an_empty_distribution_has_no_quantiles() {
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

    /// The last bucket ends at the largest value.
    #[test]
    fn a_histogram_counts_every_packet_once() {
        let values = [(0, 5), (20_000_000, 2), (20_000_100, 3), (30_000_000, 1)];
        let queue = Hop {
            link: 2,
            way: Way::Up,
        };
        let table = histogram_table(queue, values.into_iter(), 30_000_000);
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
