//! An experiment written out again, every default spelled out, as JSON that mirrors the file.

use std::collections::BTreeMap;

use crate::model::{
    Browsing, Capacity, CapturePoint, Direction, EchoProtocol, Experiment, Files, Kind, Link,
    OnOff, Pace, Queue, RttOf, Sizes, Tcp, Times, Traffic, Transport, Way, Web,
};
use crate::written::{buffer, bytes, value_json};
use serde_json::{Value as Json, json};
use sojourn_units::Value;

/// The experiment as a file that reads to the same: each key of the format with its value, defaults
/// included, quantities with units. A discipline's own defaults are left to it; see [`resolved_with`].
pub fn resolved(experiment: &Experiment) -> Json {
    resolved_with(experiment, &InUse::default())
}

/// Values by key.
pub type Values = Vec<(String, Value)>;

/// What the disciplines of an experiment take for their keys, given or not.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InUse {
    /// Of each arm.
    pub queues: Vec<Values>,
    /// Of the disciplines that links have of their own, by link and direction.
    pub links: BTreeMap<(usize, Way), Values>,
}

/// As [`resolved`], with what each discipline takes for its keys that were not given.
pub fn resolved_with(experiment: &Experiment, in_use: &InUse) -> Json {
    let links = experiment.links.iter().enumerate();
    let mut links: Vec<Json> = links.map(|(number, of)| link(number, of, in_use)).collect();
    let link = match experiment.links[0].nodes {
        None => links.remove(0),
        Some(_) => links.into(),
    };
    let mut record = json!({
        "packets": experiment.record.packets,
        "pcap": match experiment.record.pcap {
            None => json!(false),
            Some(CapturePoint::Sender) => json!("sender"),
            Some(CapturePoint::Router) => json!("router"),
            Some(CapturePoint::Receiver) => json!("receiver"),
        },
        "rtt": experiment.record.rtt,
        "rtt_of": match experiment.record.rtt_of {
            RttOf::Samples => "samples",
            RttOf::Segments => "segments",
        },
        "one_way": experiment.record.one_way,
    });
    put(&mut record, "series", experiment.record.series.map(written));
    let queues = experiment.queues.iter().enumerate();
    let queues =
        queues.map(|(arm, of)| queue(of, in_use.queues.get(arm).map_or(&[], Vec::as_slice)));
    json!({
        "experiment": {
            "name": experiment.name,
            "duration": written(experiment.duration),
            "warmup": written(experiment.warmup),
            "repeat": experiment.repeat,
            "seed": experiment.seed,
        },
        "link": link,
        "queue": queues.collect::<Vec<_>>(),
        "traffic": experiment.traffic.iter().map(traffic).collect::<Vec<_>>(),
        "record": record,
    })
}

fn link(number: usize, link: &Link, in_use: &InUse) -> Json {
    let own_queue = |own: &Option<Queue>, way| {
        let values = in_use.links.get(&(number, way));
        own.as_ref()
            .map(|own| queue(own, values.map_or(&[], Vec::as_slice)))
    };
    let mut json = json!({
        "rate": capacity(&link.rate),
        "delay": written(link.delay),
        "device_queue": format!("{} packets", link.device_queue),
        "overhead": bytes(link.overhead),
        "burst": bytes(link.burst),
    });
    if let Some(nodes) = &link.nodes {
        json["name"] = link.name.as_str().into();
        json["from"] = nodes.from.as_str().into();
        json["to"] = nodes.to.as_str().into();
    }
    put(&mut json, "buffer", link.buffer.map(buffer));
    put(&mut json, "queue", own_queue(&link.queue, Way::Down));
    if let Some(up) = &link.up {
        let mut up_json = json!({"rate": capacity(&up.rate)});
        put(&mut up_json, "buffer", up.buffer.map(buffer));
        put(&mut up_json, "queue", own_queue(&up.queue, Way::Up));
        json["up"] = up_json;
    }
    json
}

fn written(quantity: impl ToString) -> String {
    quantity.to_string()
}

fn put(into: &mut Json, key: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        into[key] = value.into();
    }
}

fn capacity(capacity: &Capacity) -> Json {
    match capacity {
        Capacity::Trace(trace) => json!({"trace": trace.file}),
        Capacity::Steps(steps) => match steps.as_slice() {
            [(_, rate)] => written(rate).into(),
            steps => steps
                .iter()
                .map(|(from, rate)| json!([written(from), written(rate)]))
                .collect(),
        },
    }
}

fn queue(queue: &Queue, in_use: &[(String, Value)]) -> Json {
    let mut json = json!({"aqm": queue.aqm, "label": queue.label});
    for (key, value) in in_use.iter().chain(&queue.settings) {
        json[key] = value_json(value);
    }
    put(&mut json, "limit", queue.limit.map(buffer));
    json
}

fn traffic(traffic: &Traffic) -> Json {
    let (first, last) = traffic.start;
    let mut json = json!({
        "kind": traffic.kind.name(),
        "flows": traffic.flows,
        "rtt": written(traffic.rtt),
        "start": if first == last { written(first) } else { format!("{first}..{last}") },
        "stop": written(traffic.stop),
        "direction": match traffic.direction {
            Direction::Down => "down",
            Direction::Up => "up",
            Direction::Both => "both",
        },
        "dscp": traffic.dscp,
    });
    put(&mut json, "name", traffic.name.as_deref());
    if let [from, via @ .., to] = traffic.route.nodes.as_slice() {
        json["from"] = from.as_str().into();
        json["to"] = to.as_str().into();
        if !via.is_empty() {
            json["via"] = via.into();
        }
    }
    put(&mut json, "access", traffic.access.map(written));
    match &traffic.kind {
        Kind::Bulk(_) | Kind::Game => {}
        Kind::Cbr(cbr) => {
            json["rate"] = written(cbr.rate).into();
            json["packet"] = bytes(cbr.packet).into();
            put(&mut json, "mtu", cbr.mtu.map(bytes));
        }
        Kind::Ping(ping) => {
            json["interval"] = written(ping.interval).into();
            json["packet"] = bytes(ping.packet).into();
            json["protocol"] = match ping.protocol {
                EchoProtocol::Icmp => "icmp",
                EchoProtocol::Udp => "udp",
            }
            .into();
        }
        Kind::Voip(voip) => {
            json["codec"] = voip.codec.name().into();
            json["packet"] = bytes(voip.packet).into();
            json["interval"] = written(voip.interval).into();
        }
        Kind::Files(options) => files(&mut json, options),
        Kind::OnOff(options) => onoff(&mut json, options),
        Kind::Web(options) => web(&mut json, options),
        Kind::Video(video) => {
            json["segment"] = written(video.segment).into();
            json["buffer"] = written(video.buffer).into();
            json["ladder"] = video.ladder.iter().map(written).collect();
        }
    }
    if let Some(options) = traffic.kind.tcp() {
        tcp(&mut json, options);
    }
    json
}

fn files(json: &mut Json, files: &Files) {
    json["size"] = sizes(&files.sizes);
    put(json, "count", files.count);
    match files.pace {
        Pace::Think(think) => json["think"] = written(think).into(),
        Pace::Arrivals(arrivals) => json["arrivals"] = arrivals.into(),
    }
}

fn onoff(json: &mut Json, onoff: &OnOff) {
    let (transport, rate) = match &onoff.transport {
        Transport::Udp(rate) => ("udp", Some(*rate)),
        Transport::Tcp(_, rate) => ("tcp", *rate),
    };
    json["transport"] = transport.into();
    put(json, "rate", rate.map(written));
    json["packet"] = bytes(onoff.packet).into();
    put(json, "send_buffer", onoff.send_buffer.map(bytes));
    json["on"] = written(onoff.on).into();
    json["off"] = written(onoff.off).into();
    json["times"] = match onoff.times {
        Times::Exponential => "exponential",
        Times::Fixed => "fixed",
    }
    .into();
}

fn web(json: &mut Json, web: &Web) {
    match &web.browsing {
        Browsing::PackMime(connections) => json["connections"] = (*connections).into(),
        Browsing::Pages(pages) => {
            json["objects"] = pages.objects.into();
            json["size"] = sizes(&pages.sizes);
            json["parallel"] = pages.parallel.into();
            json["request"] = bytes(pages.request).into();
            json["think"] = written(pages.think).into();
        }
    }
}

fn sizes(sizes: &Sizes) -> Json {
    match sizes {
        Sizes::OneOf(sizes) => sizes.iter().map(|size| bytes(*size)).collect(),
        Sizes::Uniform { min, max } => {
            json!({"distribution": "uniform", "min": bytes(*min), "max": bytes(*max)})
        }
        Sizes::Exponential { mean } => json!({"distribution": "exponential", "mean": bytes(*mean)}),
        Sizes::Pareto { mean, shape } => {
            json!({"distribution": "pareto", "mean": bytes(*mean), "shape": shape})
        }
        Sizes::Lognormal { median, sigma } => {
            json!({"distribution": "lognormal", "median": bytes(*median), "sigma": sigma})
        }
    }
}

fn tcp(json: &mut Json, tcp: &Tcp) {
    json["tcp"] = tcp.congestion_control.as_str().into();
    json["ecn"] = tcp.ecn.into();
    json["ecn_fallback"] = tcp.ecn_fallback.into();
    json["abe"] = tcp.abe.into();
    json["sack"] = tcp.sack.into();
    json["recovery"] = tcp.recovery.name().into();
    json["min_rto"] = written(tcp.min_rto).into();
    json["quickack"] = tcp.quickack.into();
    json["ack_every"] = tcp.ack_every.into();
    json["gso"] = tcp.gso.into();
    json["small_queues"] = tcp.small_queues.into();
    json["initial_window"] = tcp.initial_window.into();
    json["mss"] = bytes(tcp.mss).into();
    put(json, "window", tcp.window.map(bytes));
}
