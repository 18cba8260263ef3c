//! Reads a qlog with the `qlog` crate of quiche, and prints as JSON what it found: the schemas, how many events of each
//! name it knows, and the values of every `recovery_metrics_updated`.

use std::collections::BTreeMap;

use qlog::events::EventData;
use qlog::reader::{Event, QlogSeqReader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("a file is missing")?;
    let reader = QlogSeqReader::with_file(path)?;
    let trace = reader.qlog.trace.clone();
    let mut known: BTreeMap<String, u64> = BTreeMap::new();
    let (mut unknown, mut metrics) = (0, Vec::new());
    for event in reader {
        let Event::Qlog(event) = event else {
            unknown += 1;
            continue;
        };
        let name = serde_json::to_value(&event)?["name"].clone();
        *known
            .entry(name.as_str().unwrap_or_default().to_owned())
            .or_default() += 1;
        if let EventData::QuicMetricsUpdated(updated) = event.data {
            metrics.push(serde_json::json!([
                event.time,
                updated.congestion_window,
                updated.smoothed_rtt
            ]));
        }
    }
    let found = serde_json::json!({
        "schemas": trace.event_schemas,
        "known": known,
        "unknown": unknown,
        "metrics": metrics,
    });
    println!("{found}");
    Ok(())
}
