//! The time series: the state of queues and flows at the end of every bin.

use serde::{Deserialize, Serialize};
use sojourn_units::{Duration, Hop, Time};

use crate::meter::Sample;
use crate::probe::Recent;
use crate::table::{Column, Table};

/// The samples at the ends of bins, in order of time.
pub struct Series {
    /// Width of the bins.
    pub width: Duration,
    /// The queues.
    pub queues: Vec<QueueSample>,
    /// The flows.
    pub flows: Vec<FlowSample>,
}

/// A queue at the end of a bin.
pub struct QueueSample {
    /// End of the bin.
    pub time: Time,
    /// Number of the queue.
    pub queue: usize,
    /// Sojourn times within the bin.
    pub recent: Recent,
    /// Packets queued at its end.
    pub backlog_packets: u64,
    /// Bytes queued at its end.
    pub backlog_bytes: u64,
    /// Drops for any reason since the run began.
    pub dropped: u64,
    /// Marks since the run began.
    pub marked: u64,
    /// The algorithm's state, with the names of its defining document.
    pub state: Vec<(&'static str, f64)>,
}

/// The congestion state of a sender, or of several together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SenderState {
    /// The congestion window in segments.
    pub cwnd: u32,
    /// The slow start threshold in segments, if there is one.
    pub ssthresh: Option<u32>,
    /// The pacing rate in bits of payload per second, if it paces.
    pub pacing_bps: Option<u64>,
    /// The state of loss recovery as in [`FlowSample::state`], if it is known.
    pub state: Option<u8>,
}

impl SenderState {
    /// Of this and another sender together.
    pub fn and(self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one + other),
            _ => one.or(other),
        };
        let segments = |of: Option<u32>| of.map(u64::from);
        let ssthresh = sum(segments(self.ssthresh), segments(other.ssthresh));
        Self {
            cwnd: self.cwnd + other.cwnd,
            ssthresh: ssthresh.map(|sum| u32::try_from(sum).unwrap_or(u32::MAX)),
            pacing_bps: sum(self.pacing_bps, other.pacing_bps),
            state: self.state.max(other.state),
        }
    }
}

/// A flow at the end of a bin.
pub struct FlowSample {
    /// End of the bin.
    pub time: Time,
    /// The number of the flow over all groups.
    pub flow: u32,
    /// Payload bits per second received within the bin.
    pub goodput_bps: f64,
    /// Congestion window in segments, the sum over the flow's connections; NaN for flows without connections.
    pub cwnd: f64,
    /// Slow start threshold in segments, the sum over the connections that have left their first slow start; NaN if none has.
    pub ssthresh: f64,
    /// Pacing rate in bits of payload per second, the sum over the connections; NaN if none is paced.
    pub pacing_bps: f64,
    /// The state of loss recovery, the highest of the connections: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss, as Linux
    /// numbers them; NaN for flows without connections.
    pub state: f64,
    /// Mean of the round-trip times measured within the bin, in milliseconds; NaN if there were none.
    pub rtt_ms: f64,
}

impl FlowSample {
    /// The sample of a bin of width `span` that ends at `time`. `sender`: of the flow's connections, if it has any.
    pub fn new(
        time: Time,
        flow: u32,
        span: Duration,
        sample: Sample,
        sender: Option<SenderState>,
    ) -> Self {
        let of = |value: fn(SenderState) -> Option<f64>| sender.and_then(value).unwrap_or(f64::NAN);
        let bits = sample.received as f64 * 8.0;
        Self {
            time,
            flow,
            goodput_bps: bits / span.as_secs_f64(),
            cwnd: of(|sender| Some(sender.cwnd.into())),
            ssthresh: of(|sender| sender.ssthresh.map(f64::from)),
            pacing_bps: of(|sender| sender.pacing_bps.map(|rate| rate as f64)),
            state: of(|sender| sender.state.map(f64::from)),
            rtt_ms: sample.rtt_ms(),
        }
    }
}

impl Series {
    /// A series with bins of this width.
    pub const fn new(width: Duration) -> Self {
        Self {
            width,
            queues: Vec::new(),
            flows: Vec::new(),
        }
    }

    fn begin(&self, end: Time) -> f64 {
        end.saturating_sub(self.width).as_secs_f64()
    }

    /// The recorded table `queue_series` of these queues.
    pub fn queue_table(&self, queues: &[Hop]) -> Table {
        let rows = &self.queues;
        let floats = |of: &dyn Fn(&QueueSample) -> f64| Column::F64(rows.iter().map(of).collect());
        let counts = |of: fn(&QueueSample) -> u64| Column::U64(rows.iter().map(of).collect());
        let column = |of: fn(Hop) -> u8| {
            let hops = rows.iter().map(|row| queues[row.queue]);
            Column::U8(hops.map(of).collect())
        };
        let mut columns = vec![
            ("time_s", floats(&|row| self.begin(row.time))),
            ("link", column(|hop| hop.link as u8)),
            ("direction", column(|hop| hop.way as u8)),
            ("packets", counts(|row| row.recent.packets)),
            (
                "sojourn_mean_ms",
                floats(&|row| row.recent.sum as f64 / row.recent.packets as f64 / 1e6),
            ),
            (
                "sojourn_max_ms",
                floats(&|row| row.recent.longest as f64 / 1e6),
            ),
            ("backlog_packets", counts(|row| row.backlog_packets)),
            ("backlog_bytes", counts(|row| row.backlog_bytes)),
            ("dropped", counts(|row| row.dropped)),
            ("marked", counts(|row| row.marked)),
        ];
        let mut names: Vec<&'static str> = Vec::new();
        for (name, _) in rows.iter().flat_map(|row| &row.state) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        for name in names {
            let value = |row: &QueueSample| {
                let found = row.state.iter().find(|(known, _)| *known == name);
                found.map_or(f64::NAN, |(_, value)| *value)
            };
            columns.push((name, floats(&value)));
        }
        Table { columns }
    }

    /// The recorded table `flow_series`.
    pub fn flow_table(&self) -> Table {
        let rows = &self.flows;
        let floats = |of: &dyn Fn(&FlowSample) -> f64| Column::F64(rows.iter().map(of).collect());
        Table {
            columns: vec![
                ("time_s", floats(&|row| self.begin(row.time))),
                (
                    "flow",
                    Column::U32(rows.iter().map(|row| row.flow).collect()),
                ),
                ("goodput_bps", floats(&|row| row.goodput_bps)),
                ("cwnd_segments", floats(&|row| row.cwnd)),
                ("ssthresh_segments", floats(&|row| row.ssthresh)),
                ("pacing_bps", floats(&|row| row.pacing_bps)),
                ("state", floats(&|row| row.state)),
                ("rtt_ms", floats(&|row| row.rtt_ms)),
            ],
        }
    }
}
