//! What a run gives: figures for the summary, and tables for what was recorded.

use std::collections::BTreeMap;

use serde::Serialize;

/// One run: one arm of the comparison, one seed. Serialises to an element of the summary's `runs`.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// The discipline.
    pub queue: String,
    /// The arm's label.
    pub label: String,
    /// The seed.
    pub seed: u64,
    /// Figures per direction of the bottleneck: `down`, and `up` where that has a queue.
    pub bottleneck: BTreeMap<&'static str, Bottleneck>,
    /// Figures per flow, in the order of the file.
    pub flows: Vec<Flow>,
    /// Jain's index over the goodput of the TCP flows; `None` without such flows or goodput.
    pub jain_goodput: Option<f64>,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Wall-clock seconds that the run took.
    pub wall_s: f64,
    /// Events handled.
    pub events: u64,
    /// A row per packet that met a queue: `direction`, `time_ns`, `sojourn_ns`, `flow`, `bytes`, `returning`,
    /// `fate` (0 delivered, 1 delivered marked, 2 dropped by the algorithm, 3 dropped for want of room).
    #[serde(skip)]
    pub packets: Option<Table>,
    /// The column `pcapng`: the bytes of a capture of the bottleneck.
    #[serde(skip)]
    pub capture: Option<Table>,
    /// A row per direction and bin of the series.
    #[serde(skip)]
    pub queue_series: Option<Table>,
    /// A row per flow and bin of the series.
    #[serde(skip)]
    pub flow_series: Option<Table>,
}

/// The figures of one direction of the bottleneck.
#[derive(Clone, Debug, Serialize)]
pub struct Bottleneck {
    /// Sojourn times of the packets that left after the warm-up, in milliseconds.
    pub sojourn_ms: Quantiles,
    /// The longest sojourn before the warm-up ended, in milliseconds.
    pub startup_peak_ms: f64,
    /// Share of the link's capacity that was used after the warm-up.
    pub utilization: f64,
    /// Packets that left, whole run.
    pub delivered_packets: u64,
    /// Their bytes on the link.
    pub delivered_bytes: u64,
    /// Packets that the algorithm dropped, whole run.
    pub dropped_aqm: u64,
    /// Packets dropped for want of room, whole run.
    pub dropped_overflow: u64,
    /// Packets marked, whole run.
    pub marked: u64,
}

/// Quantiles of a distribution; `None` (null) where there was nothing to measure.
#[derive(Clone, Copy, Debug, Default, Serialize)]
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

/// The figures of one flow.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// Number of the traffic group in the file, from 0.
    pub traffic: usize,
    /// Number of the flow within the group, from 0.
    pub flow: u32,
    /// The kind of traffic.
    pub kind: &'static str,
    /// Which way its data goes.
    pub direction: &'static str,
    /// Payload bits per second received between the warm-up and the end, while the flow was on.
    pub goodput_bps: f64,
    /// Payload bytes sent, without retransmissions; whole run.
    pub sent_bytes: u64,
    /// Payload bytes received in order; whole run.
    pub received_bytes: u64,
    /// Segments retransmitted; whole run.
    pub retransmits: u64,
    /// Round-trip times after the warm-up, in milliseconds: TCP's samples, or the echoes of a ping.
    pub rtt_ms: Spread,
    /// One-way delays of datagrams after the warm-up, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_ms: Option<Spread>,
    /// Datagrams or echo requests that never arrived or were not answered, of those sent in time to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<u64>,
    /// Completion times of files that were finished after the warm-up, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_ms: Option<Spread>,
}

/// A distribution in short.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Spread {
    pub n: u64,
    pub mean: Option<f64>,
    pub p5: Option<f64>,
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub max: Option<f64>,
}

/// A recorded table: named columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The columns in order.
    pub columns: Vec<(&'static str, Column)>,
}

/// A column of numbers.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Column {
    U8(Vec<u8>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F64(Vec<f64>),
}

impl Table {
    /// This table with another of the same columns below it.
    pub fn stacked(mut self, other: Self) -> Self {
        for ((_, column), (_, more)) in self.columns.iter_mut().zip(other.columns) {
            match (column, more) {
                (Column::U8(column), Column::U8(more)) => column.extend(more),
                (Column::U32(column), Column::U32(more)) => column.extend(more),
                (Column::U64(column), Column::U64(more)) => column.extend(more),
                (Column::F64(column), Column::F64(more)) => column.extend(more),
                _ => unreachable!("tables of one kind have columns of the same types"),
            }
        }
        self
    }
}

/// Jain's fairness index (Jain, Chiu, Hawe 1984): (Σx)² / (n·Σx²); `None` if nothing is above zero.
pub fn jain(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = values.clone().count() as f64;
    let sum: f64 = values.clone().sum();
    let squares: f64 = values.map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jain index of (1, 1, 1, 0): 3² / (4·3) = 0.75.
    #[test]
    fn one_starved_flow_of_four_gives_three_quarters() {
        assert_eq!(jain([1.0, 1.0, 1.0, 0.0].into_iter()), Some(0.75));
        assert_eq!(jain([5.0; 3].into_iter()), Some(1.0));
        assert_eq!(jain([0.0; 3].into_iter()), None);
    }
}
