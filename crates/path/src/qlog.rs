//! What happened to packets on a path, as a qlog, beside those that the endpoints write of themselves.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use sojourn_aqm::DropReason;

use crate::path::{Event, Verdict};

/// Begins a record of JSON text sequences (RFC 7464).
const SEPARATOR: char = '\u{1e}';
const HEAD: &str = concat!(
    r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","#,
    r#""trace":{"title":"path","common_fields":{"time_format":"relative_to_epoch","#,
    r#""reference_time":{"clock_type":"monotonic","epoch":"unknown"}},"vantage_point":{"type":"network"},"#,
    r#""event_schemas":["https://sojourn-lab.github.io/sojourn/path"]}}"#
);

/// A qlog (draft-ietf-quic-qlog-main-schema, sequential) of the events of [`crate::Path::verdicts`].
///
/// An event's name is `sojourn:` with `arrived`, `marked`, `dropped`, `left`, `lost` or `duplicated`; its data are the direction, the
/// packet's number and, where there is one, the reason or the sojourn time in milliseconds. Times are milliseconds since the
/// path's beginning, as in the qlogs of endpoints that [`crate::Path::drive`] lets talk.
///
/// ```
/// use core::time::Duration;
///
/// use sojourn_path::{Datagram, Path, Qlog, Way};
///
/// let mut path = Path::new("8 Mbit/s", "20 ms")?.build();
/// path.send(Duration::ZERO, Way::Down, Datagram::new((), 1000));
/// let mut qlog = Qlog::new();
/// path.verdicts().for_each(|event| qlog.add(&event));
/// let file: Vec<u8> = qlog.into_bytes(); // std::fs::write("path.sqlog", file)
/// assert!(String::from_utf8(file)?.contains("sojourn:left"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Qlog(String);

impl Qlog {
    /// A qlog without events.
    pub fn new() -> Self {
        Self(format!("{SEPARATOR}{HEAD}\n"))
    }

    /// Adds an event.
    pub fn add(&mut self, event: &Event) {
        let (name, more) = match event.verdict {
            Verdict::Arrived => ("arrived", String::new()),
            Verdict::Marked => ("marked", String::new()),
            Verdict::Dropped { reason } => {
                let reason = match reason {
                    DropReason::Overflow => "overflow",
                    _ => "aqm",
                };
                ("dropped", format!(r#","reason":"{reason}""#))
            }
            Verdict::Left { sojourn } => {
                ("left", format!(r#","sojourn":{}"#, milliseconds(sojourn)))
            }
            Verdict::Lost => ("lost", String::new()),
            Verdict::Duplicated => ("duplicated", String::new()),
        };
        let (time, way, number) = (milliseconds(event.at), event.way.name(), event.number);
        // Writing to a string does not fail.
        let _ = writeln!(
            self.0,
            r#"{SEPARATOR}{{"time":{time},"name":"sojourn:{name}","data":{{"direction":"{way}","number":{number}{more}}}}}"#
        );
    }

    /// The file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

impl Default for Qlog {
    fn default() -> Self {
        Self::new()
    }
}

/// A span in milliseconds, to the nanosecond.
fn milliseconds(span: core::time::Duration) -> String {
    let nanos = span.as_nanos();
    format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use sojourn_aqm::Datagram;
    use sojourn_units::Way;

    use super::*;
    use crate::Path;

    #[test]
    fn each_event_is_a_record() {
        let mut path = Path::new("8 Mbit/s", "20 ms")
            .unwrap()
            .aqm("pfifo", [("limit", "1 packets")])
            .unwrap()
            .build();
        for _ in 0..4 {
            path.send(
                Duration::from_micros(1500),
                Way::Down,
                Datagram::new((), 1000),
            );
        }
        let mut qlog = Qlog::new();
        path.verdicts().for_each(|event| qlog.add(&event));
        let file = String::from_utf8(qlog.into_bytes()).unwrap();
        let records: Vec<&str> = file.split(SEPARATOR).skip(1).collect();
        assert!(records.iter().all(|record| record.ends_with("}\n")));
        assert_eq!(records[0].trim_end(), HEAD);
        // Two go ahead of the rate, the third waits, and there is no room for the fourth.
        let last = r#"{"time":1.500000,"name":"sojourn:dropped","data":{"direction":"down","number":3,"reason":"overflow"}}"#;
        assert_eq!(records.last().unwrap().trim_end(), last);
        let left = r#"{"time":1.500000,"name":"sojourn:left","data":{"direction":"down","number":1,"sojourn":0.000000}}"#;
        assert!(records.iter().any(|record| record.trim_end() == left));
    }
}
