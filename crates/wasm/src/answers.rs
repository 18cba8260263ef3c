//! The parts of replies.

use serde_json::{Map, Value as Json, json};
use sojourn_experiment::ReadError;
use sojourn_sim::result::{Column, Table};
use sojourn_sim::{FlowSample, QueueSample};

/// A mistake in a file, with its place.
pub fn mistake(error: &ReadError) -> Json {
    let place = error.place();
    json!({ "error": {
        "message": error.to_string(),
        "line": place.map(|at| at.line),
        "column": place.map(|at| at.column),
    }})
}

/// Any other mistake.
pub fn refused(message: &str) -> Json {
    json!({ "error": { "message": message, "line": null, "column": null } })
}

/// A queue at one instant.
pub fn queue(sample: &QueueSample) -> Json {
    let recent = &sample.recent;
    let mean = (recent.packets > 0).then(|| recent.sum as f64 / recent.packets as f64 / 1e6);
    let state = sample.state.iter();
    json!({
        "packets": recent.packets,
        "sojourn_mean_ms": mean,
        "sojourn_max_ms": recent.longest as f64 / 1e6,
        "backlog_packets": sample.backlog_packets,
        "backlog_bytes": sample.backlog_bytes,
        "dropped": sample.dropped,
        "marked": sample.marked,
        "state": state.map(|(name, value)| (*name, *value)).collect::<Vec<_>>(),
    })
}

/// A flow at one instant.
pub fn flow(sample: &FlowSample) -> Json {
    json!({
        "goodput_bps": finite(sample.goodput_bps),
        "cwnd_segments": finite(sample.cwnd),
        "rtt_ms": finite(sample.rtt_ms),
    })
}

/// JSON has no number that is none.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// A recorded table, as columns.
pub fn table(table: Table) -> Json {
    let column = |column: Column| match column {
        Column::U8(values) => json!(values),
        Column::U32(values) => json!(values),
        Column::U64(values) => json!(values),
        Column::F64(values) => values.into_iter().map(finite).collect(),
    };
    let columns = table.columns.into_iter();
    let named: Map<String, Json> = columns
        .map(|(name, values)| (name.to_owned(), column(values)))
        .collect();
    named.into()
}
