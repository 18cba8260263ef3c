//! An experiment written out again, every default spelled out, as JSON that mirrors the file.

use serde_json::{Value as Json, json};
use sojourn_units::{Duration, Rate};

use crate::document::parse_value;
use crate::error::Origin;
use crate::model::{Direction, Experiment, Kind, Queue, Tcp, Traffic};
use crate::names::Names;
use crate::written::{buffer, bytes, value_json};

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
        "delay": written(link.delay),
        "device_queue": format!("{} packets", link.device_queue),
        "overhead": bytes(link.overhead),
        "burst": bytes(link.burst),
    });
    put(&mut link_json, "buffer", link.buffer.map(buffer));
    if let Some(up) = &link.up {
        let mut up_json = json!({"rate": rates(&up.rate)});
        put(&mut up_json, "buffer", up.buffer.map(buffer));
        put(
            &mut up_json,
            "queue",
            up.queue.as_ref().map(|arm| queue(arm, names)),
        );
        link_json["up"] = up_json;
    }
    let mut record = json!({"packets": experiment.record.packets, "pcap": experiment.record.pcap});
    put(&mut record, "series", experiment.record.series.map(written));
    json!({
        "experiment": {
            "name": experiment.name,
            "duration": written(experiment.duration),
            "warmup": written(experiment.warmup),
            "repeat": experiment.repeat,
            "seed": experiment.seed,
        },
        "link": link_json,
        "queue": experiment.queues.iter().map(|arm| queue(arm, names)).collect::<Vec<_>>(),
        "traffic": experiment.traffic.iter().map(traffic).collect::<Vec<_>>(),
        "record": record,
    })
}

fn written(quantity: impl ToString) -> String {
    quantity.to_string()
}

fn put(into: &mut Json, key: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        into[key] = value.into();
    }
}

fn rates(schedule: &[(Duration, Rate)]) -> Json {
    match schedule {
        [(_, rate)] => written(rate).into(),
        steps => steps
            .iter()
            .map(|(from, rate)| json!([written(from), written(rate)]))
            .collect(),
    }
}

fn queue(queue: &Queue, names: &Names) -> Json {
    let mut json = json!({"aqm": queue.aqm, "label": queue.label});
    put(&mut json, "limit", queue.limit.map(buffer));
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
        "rtt": written(traffic.rtt),
        "start": if first == last { written(first) } else { format!("{first}..{last}") },
        "stop": written(traffic.stop),
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
            json["rate"] = written(cbr.rate).into();
            json["packet"] = bytes(cbr.packet).into();
        }
        Kind::Ping(ping) => {
            json["kind"] = "ping".into();
            json["interval"] = written(ping.interval).into();
        }
        Kind::Files(files) => {
            json["kind"] = "files".into();
            json["size"] = files.sizes.iter().map(|size| bytes(*size)).collect();
            json["think"] = written(files.think).into();
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
