//! An experiment written out again, every default spelled out, as JSON that mirrors the file.

use serde_json::{Value as Json, json};
use sojourn_units::{Duration, Rate, Value};

use crate::document::parse_value;
use crate::error::Origin;
use crate::model::{Buffer, Direction, Experiment, Kind, Queue, Tcp, Traffic};
use crate::names::Names;

/// The experiment as a file that reads to the same: each key of the format with its value, defaults
/// included, quantities with units. A discipline's own defaults are left to it; see [`resolved_with`].
pub fn resolved(experiment: &Experiment) -> Json {
    resolved_with(experiment, &Names::default())
}

/// As [`resolved`], with each discipline's default for its keys that were not given, where the default
/// is a value and not words.
pub fn resolved_with(experiment: &Experiment, names: &Names) -> Json {
    let link = &experiment.link;
    let mut link_json = json!({
        "rate": rates(&link.rate),
        "delay": text(link.delay),
        "device_queue": format!("{} packets", link.device_queue),
        "overhead": bytes(link.overhead),
        "burst": bytes(link.burst),
    });
    put(&mut link_json, "buffer", link.buffer.map(buffer_text));
    if let Some(up) = &link.up {
        let mut up_json = json!({"rate": rates(&up.rate)});
        put(&mut up_json, "buffer", up.buffer.map(buffer_text));
        put(
            &mut up_json,
            "queue",
            up.queue.as_ref().map(|arm| queue(arm, names)),
        );
        link_json["up"] = up_json;
    }
    let mut record = json!({"packets": experiment.record.packets});
    put(&mut record, "series", experiment.record.series.map(text));
    json!({
        "experiment": {
            "name": experiment.name,
            "duration": text(experiment.duration),
            "warmup": text(experiment.warmup),
            "repeat": experiment.repeat,
            "seed": experiment.seed,
        },
        "link": link_json,
        "queue": experiment.queues.iter().map(|arm| queue(arm, names)).collect::<Vec<_>>(),
        "traffic": experiment.traffic.iter().map(traffic).collect::<Vec<_>>(),
        "record": record,
    })
}

/// A quantity as one would write it.
pub(crate) fn value_text(value: &Value) -> String {
    match value_json(value) {
        Json::String(text) => text,
        bare => bare.to_string(),
    }
}

/// A queue's capacity as one would write it.
pub(crate) fn buffer_text(buffer: Buffer) -> String {
    match buffer {
        Buffer::Packets(1) => "1 packet".into(),
        Buffer::Packets(packets) => format!("{packets} packets"),
        Buffer::Bytes(size) => bytes(size),
        Buffer::Bdp(multiple) => format!("{multiple} bdp"),
    }
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Duration(span) => text(span).into(),
        Value::Rate(rate) => text(rate).into(),
        Value::Bytes(size) => bytes(*size).into(),
        Value::Packets(packets) => buffer_text(Buffer::Packets(*packets)).into(),
        Value::Number(number) => (*number).into(),
        Value::Count(count) => (*count).into(),
        Value::Flag(flag) => (*flag).into(),
        Value::Word(word) => word.as_str().into(),
    }
}

fn text(quantity: impl ToString) -> String {
    quantity.to_string()
}

fn bytes(size: impl Into<u64>) -> String {
    format!("{} B", size.into())
}

fn put(into: &mut Json, key: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        into[key] = value.into();
    }
}

fn rates(schedule: &[(Duration, Rate)]) -> Json {
    match schedule {
        [(_, rate)] => text(rate).into(),
        steps => steps
            .iter()
            .map(|(from, rate)| json!([text(from), text(rate)]))
            .collect(),
    }
}

fn queue(queue: &Queue, names: &Names) -> Json {
    let mut json = json!({"aqm": queue.aqm, "label": queue.label});
    put(&mut json, "limit", queue.limit.map(buffer_text));
    for spec in names
        .discipline(&queue.aqm)
        .into_iter()
        .flat_map(|known| &known.keys)
    {
        if spec.kind.parse(&spec.default).is_ok() {
            json[&spec.name] = parse_value(&spec.default, Origin::File).item.to_json();
        }
    }
    for (key, value) in &queue.settings {
        json[key] = value_json(value);
    }
    json
}

fn traffic(traffic: &Traffic) -> Json {
    let (first, last) = traffic.start;
    let mut json = json!({
        "flows": traffic.flows,
        "rtt": text(traffic.rtt),
        "start": if first == last { text(first) } else { format!("{first}..{last}") },
        "stop": text(traffic.stop),
        "direction": match traffic.direction {
            Direction::Down => "down",
            Direction::Up => "up",
            Direction::Both => "both",
        },
    });
    match &traffic.kind {
        Kind::Bulk(options) => {
            json["kind"] = "bulk".into();
            tcp(&mut json, options);
        }
        Kind::Cbr(cbr) => {
            json["kind"] = "cbr".into();
            json["rate"] = text(cbr.rate).into();
            json["packet"] = bytes(cbr.packet).into();
        }
        Kind::Ping(ping) => {
            json["kind"] = "ping".into();
            json["interval"] = text(ping.interval).into();
        }
        Kind::Files(files) => {
            json["kind"] = "files".into();
            json["size"] = files.sizes.iter().map(|size| bytes(*size)).collect();
            json["think"] = text(files.think).into();
            put(&mut json, "count", files.count);
            tcp(&mut json, &files.tcp);
        }
    }
    json
}

fn tcp(json: &mut Json, tcp: &Tcp) {
    json["tcp"] = tcp.congestion_control.as_str().into();
    json["ecn"] = tcp.ecn.into();
    json["abe"] = tcp.abe.into();
    json["sack"] = tcp.sack.into();
    json["initial_window"] = tcp.initial_window.into();
    json["mss"] = bytes(tcp.mss).into();
    put(json, "window", tcp.window.map(bytes));
}
