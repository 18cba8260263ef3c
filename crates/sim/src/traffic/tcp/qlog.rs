//! A flow's qlog (draft-ietf-quic-qlog-main-schema), as the sender of its data sees it: a JSON text sequence (RFC 7464).
//!
//! TCP has no schema of its own, so the events are those of QUIC that have a counterpart
//! (draft-ietf-quic-qlog-quic-events): packets sent, received and judged lost, the metrics of recovery, the phase of the
//! congestion control. A packet's number counts transmissions, as in QUIC; `tcp` has what a TCP header says instead. A
//! congestion control's own variables stand beside the metrics, by the names of its defining document.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use sojourn_tcp::cc::Window;
use sojourn_tcp::seq::Seq;
use sojourn_tcp::{Endpoint, LossCause, Segment};
use sojourn_traffic::Id;
use sojourn_units::{Duration, Rate, Time};

const RECORD_SEPARATOR: u8 = 0x1e;

/// The file of a flow, which grows with every event.
pub struct Qlog {
    file: Vec<u8>,
    mss: u64,
    connections: BTreeMap<u32, Connection>,
}

/// What has been written of a connection.
#[derive(Default)]
struct Connection {
    /// Packets sent and received.
    packets: [u64; 2],
    /// The number of the last packet with the data that begins at this sequence number.
    numbers: BTreeMap<u32, u64>,
    metrics: Map<String, Json>,
    phase: Option<&'static str>,
}

impl Qlog {
    /// A file without events. `flow`: its index in the results.
    pub fn new(flow: u32, mss: u64) -> Self {
        let mut file = Vec::new();
        let head = json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "trace": {
                "title": format!("flow {flow}"),
                "common_fields": {
                    "protocol_types": ["TCP"],
                    "reference_time": {"clock_type": "monotonic", "epoch": "unknown"},
                    "time_format": "relative_to_epoch",
                },
                "vantage_point": {"name": "sender", "type": "unknown"},
                "event_schemas": ["urn:ietf:params:qlog:events:quic-12"],
            },
        });
        write(&mut file, &head);
        Self {
            file,
            mss,
            connections: BTreeMap::new(),
        }
    }

    /// The bytes of the file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.file
    }

    /// Notes a packet of `ip_bytes` that the sender sends.
    pub fn sent(&mut self, id: Id, segment: &Segment, ip_bytes: u32, now: Time) {
        let connection = self.connections.entry(id.0).or_default();
        connection
            .numbers
            .insert(segment.seq.0, connection.packets[0]);
        self.packet(id, 0, segment, ip_bytes, now);
    }

    /// Notes a packet of `ip_bytes` that the sender receives.
    pub fn received(&mut self, id: Id, segment: &Segment, ip_bytes: u32, now: Time) {
        self.packet(id, 1, segment, ip_bytes, now);
    }

    fn packet(&mut self, id: Id, way: usize, segment: &Segment, ip_bytes: u32, now: Time) {
        let count = &mut self.connections.entry(id.0).or_default().packets[way];
        let data = json!({
            "header": header(*count),
            "raw": {"length": ip_bytes, "payload_length": segment.len},
            "tcp": {
                "seq": segment.seq.0,
                "ack": segment.ack.0,
                "flags": format!("{:?}", segment.flags),
                "window": segment.window,
                "sack": segment.sack_blocks().iter().map(|block| [block.start.0, block.end.0]).collect::<Vec<_>>(),
            },
        });
        *count += 1;
        self.event(
            id,
            ["quic:packet_sent", "quic:packet_received"][way],
            &data,
            now,
        );
    }

    /// Notes what has changed in the sender after an acknowledgement with this RTT sample, or after a timer.
    pub fn updated(&mut self, id: Id, end: &mut Endpoint, rtt: Option<Duration>, now: Time) {
        if !end.is_established() {
            return;
        }
        for lost in end.take_losses() {
            let trigger = match lost.cause {
                LossCause::Reordering => "reordering_threshold",
                LossCause::Time => "time_threshold",
                LossCause::Timeout => "pto_expired",
            };
            let Seq(seq) = lost.seq;
            let connection = self.connections.entry(id.0).or_default();
            let number = connection.numbers.get(&seq).copied().unwrap_or_default();
            let data = json!({"header": header(number), "trigger": trigger, "tcp": {"seq": seq}});
            self.event(id, "quic:packet_lost", &data, now);
        }
        let metrics = self.metrics(end, rtt);
        let connection = self.connections.entry(id.0).or_default();
        let mut changed = metrics;
        changed.retain(|name, value| connection.metrics.get(name) != Some(value));
        connection.metrics.extend(changed.clone());
        let phase = end.sender().phase();
        let before = connection.phase.replace(phase);
        if !changed.is_empty() {
            self.event(id, "quic:recovery_metrics_updated", &changed.into(), now);
        }
        if before != Some(phase) {
            let data = match before {
                Some(old) => json!({"old": old, "new": phase}),
                None => json!({"new": phase}),
            };
            self.event(id, "quic:congestion_state_updated", &data, now);
        }
    }

    fn metrics(&self, end: &mut Endpoint, rtt: Option<Duration>) -> Map<String, Json> {
        let sender = end.sender();
        let bytes = |segments: u32| json!(u64::from(segments) * self.mss);
        let ssthresh = Some(sender.ssthresh()).filter(|known| *known != Window::INFINITE);
        let entries = [
            ("smoothed_rtt", sender.smoothed_rtt().map(ms)),
            ("min_rtt", sender.min_rtt().map(ms)),
            ("latest_rtt", rtt.map(ms)),
            ("congestion_window", Some(bytes(sender.cwnd()))),
            ("bytes_in_flight", Some(bytes(sender.in_flight()))),
            ("packets_in_flight", Some(json!(sender.in_flight()))),
            ("ssthresh", ssthresh.map(bytes)),
            (
                "pacing_rate",
                sender.pacing_rate().map(Rate::as_bps).map(Json::from),
            ),
        ];
        let known = entries
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let mut metrics: Map<String, Json> = known.collect();
        // A bound that is infinite is null.
        sender.control().state(&mut |name, value| {
            metrics.insert(name.to_owned(), json!(value));
        });
        metrics
    }

    fn event(&mut self, id: Id, name: &str, data: &Json, now: Time) {
        let event = json!({
            "time": now.as_nanos() as f64 / 1e6,
            "name": name,
            "group_id": id.0.to_string(),
            "data": data,
        });
        write(&mut self.file, &event);
    }
}

fn header(number: u64) -> Json {
    json!({"packet_type": "1RTT", "packet_number": number})
}

fn ms(span: Duration) -> Json {
    json!(span.as_nanos() as f64 / 1e6)
}

fn write(file: &mut Vec<u8>, record: &Json) {
    file.push(RECORD_SEPARATOR);
    file.extend(record.to_string().into_bytes());
    file.push(b'\n');
}
