//! From an experiment's arm to the job of one run.

use sojourn_experiment::derived;
use sojourn_experiment::model::{
    self, Capacity, CapturePoint, Direction, EchoProtocol, Experiment, Kind, Queue, RttOf,
};
use sojourn_units::{Duration, Rate};

use crate::disciplines::{self, Leaf, Refusal};
use crate::job::{Bottleneck, FIRST_ASKED_PORT, FIRST_PORT, Flow, Job, Tcp};
use crate::topology::{self, Names};

/// TCP options of a segment with timestamps, which TCP_MAXSEG counts in.
const TIMESTAMPS: u32 = 12;
/// Bytes that the agent writes into each echo request: its instant and its number.
const STAMP: u32 = 16;
/// Bytes that it writes into each datagram: its number.
const NUMBER: u32 = 8;
/// TCP and IP headers without options.
const HEADERS: u32 = 40;

/// The job of arm number `queue` with `seed`. Namespaces get names that begin with `prefix`.
///
/// # Errors
/// The kernel cannot do what a key asks for; the refusal holds the key's full path, `queue.0.target`.
pub fn job(experiment: &Experiment, queue: usize, seed: u64, prefix: &str) -> Result<Job, Refusal> {
    let names = Names {
        prefix: prefix.into(),
    };
    check(experiment)?;
    let sides = sides(experiment, queue)?;
    let leaves: Vec<Leaf> = sides.iter().map(|side| side.leaf.clone()).collect();
    let (namespaces, setup) = topology::network(experiment, &leaves, &names);
    let mut modules: Vec<String> = ["veth", "sch_htb", "sch_netem", "inet_diag", "tcp_diag"]
        .map(str::to_owned)
        .into();
    modules.extend(leaves.into_iter().map(|leaf| leaf.module));
    let flows: Vec<Flow> = flows(experiment, seed, &names);
    modules.extend(flows.iter().filter_map(|flow| {
        let tcp = flow.tcp.as_ref()?;
        Some(format!("tcp_{}", tcp.congestion_control))
    }));
    modules.sort();
    modules.dedup();
    // Reno is always there and has no module.
    modules.retain(|module| module != "tcp_reno");
    Ok(Job {
        version: env!("CARGO_PKG_VERSION").into(),
        seed,
        modules,
        namespaces,
        setup,
        bottlenecks: sides
            .iter()
            .map(|side| side.bottleneck(experiment, &names))
            .collect(),
        flows,
        duration_ns: experiment.duration.as_nanos(),
        warmup_ns: experiment.warmup.as_nanos(),
        frame: derived::frame(experiment) - experiment.link.overhead + 14,
        series_ns: experiment.record.series.map(Duration::as_nanos),
        capture: experiment.record.pcap.is_some(),
    })
}

/// What an experiment asks for and a kernel tells otherwise: a line each, for the user.
pub fn notes(experiment: &Experiment) -> Vec<String> {
    let has_tcp = experiment.traffic.iter().any(|of| of.kind.tcp().is_some());
    let record = &experiment.record;
    let mut notes = Vec::new();
    if record.rtt && has_tcp {
        let wanted = match record.rtt_of {
            RttOf::Samples => "every sample",
            RttOf::Segments => "the time of every segment",
        };
        notes.push(format!(
            "record.rtt: of TCP, Linux gives the smoothed round-trip time ten times a second, not {wanted}"
        ));
    }
    notes
}

fn refuse<T>(key: impl Into<String>, must: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        key: key.into(),
        must: must.into(),
    })
}

/// Refuses what no kernel can do here, whatever the discipline.
fn check(experiment: &Experiment) -> Result<(), Refusal> {
    if experiment.link.device_queue > 0 {
        return refuse(
            "link.device_queue",
            "must be 0 packets on Linux, whose virtual links have none; backends that have it: sim",
        );
    }
    let flows: u64 = experiment
        .traffic
        .iter()
        .map(|traffic| u64::from(traffic.flows) * 2)
        .sum();
    let most = u64::from((FIRST_ASKED_PORT - FIRST_PORT).min(u16::MAX - FIRST_ASKED_PORT));
    if flows > most {
        return refuse(
            "traffic",
            format!(
                "must be at most {most} flows on Linux, each way of a flow counted, with a port for each"
            ),
        );
    }
    if topology::paths(experiment).len() > topology::MOST_PATHS {
        return refuse(
            "traffic",
            format!("must be at most {} groups on Linux", topology::MOST_PATHS),
        );
    }
    if !matches!(experiment.record.pcap, None | Some(CapturePoint::Router)) {
        return refuse(
            "record.pcap",
            "must be true, false or \"router\" on Linux; backends that capture at the hosts: sim",
        );
    }
    experiment
        .traffic
        .iter()
        .enumerate()
        .try_for_each(|(group, traffic)| {
            if traffic.access.is_some() {
                return refuse(
                    format!("traffic.{group}.access"),
                    "must be left out on Linux, whose hosts have links that are never in the way; backends that have it: sim",
                );
            }
            check_kind(&traffic.kind).map_err(|(key, must)| Refusal {
                key: format!("traffic.{group}.{key}"),
                must: format!("must be {must} on Linux; all kinds run on: sim"),
            })
        })
}

/// Congestion controls of documents and of other simulators that no kernel has.
const NO_KERNELS: [&str; 4] = [
    "newreno",
    "cubic-2005",
    "cubic-nohystart",
    "cubic-hystart++",
];

fn is_whole_ms(span: Duration) -> bool {
    span.as_nanos() % 1_000_000 == 0
}

/// Refuses what the agent does not do; the error is a key and what is accepted of it.
fn check_kind(kind: &Kind) -> Result<(), (&'static str, &'static str)> {
    if kind.tcp().is_some_and(|tcp| tcp.abe) {
        return Err(("abe", "false, as it is"));
    }
    if kind.tcp().is_some_and(|tcp| !tcp.quickack) {
        return Err(("quickack", "true, as it is"));
    }
    if kind.tcp().is_some_and(|tcp| tcp.ack_every != 2) {
        return Err(("ack_every", "2, as it is"));
    }
    if kind.tcp().is_some_and(|tcp| !is_whole_ms(tcp.min_rto)) {
        return Err(("min_rto", "whole milliseconds"));
    }
    let is_ours = |tcp: &model::Tcp| NO_KERNELS.contains(&tcp.congestion_control.as_str());
    if kind.tcp().is_some_and(is_ours) {
        return Err(("tcp", "one that a kernel has, like reno or cubic,"));
    }
    if kind.tcp().is_some_and(|tcp| !tcp.gso) {
        return Err(("gso", "true, as it is"));
    }
    match kind {
        Kind::Ping(ping) if ping.protocol == EchoProtocol::Udp => Err(("protocol", "icmp")),
        Kind::Ping(ping) if ping.packet < STAMP => Err(("packet", "at least 16 B")),
        Kind::Cbr(cbr) if cbr.mtu.is_some() => Err(("mtu", "left out, as it is the link's,")),
        Kind::Cbr(cbr) if cbr.packet < NUMBER => Err(("packet", "at least 8 B")),
        Kind::OnOff(onoff) if onoff.send_buffer.is_some() => Err(("send_buffer", "left out")),
        Kind::OnOff(onoff) if kind.tcp().is_none() && onoff.packet < NUMBER => {
            Err(("packet", "at least 8 B"))
        }
        _ => Ok(()),
    }
}

/// One direction of the bottleneck with its discipline.
struct Side<'a> {
    direction: Direction,
    arm: &'a Queue,
    rate: &'a [(Duration, Rate)],
    leaf: Leaf,
}

fn sides(experiment: &Experiment, queue: usize) -> Result<Vec<Side<'_>>, Refusal> {
    let link = &experiment.link;
    let arm = &experiment.queues[queue];
    let mut sides = vec![side(experiment, queue, Direction::Down, arm)?];
    if let Some(up) = &link.up {
        let arm = up.queue.as_ref().unwrap_or(arm);
        sides.push(side(experiment, queue, Direction::Up, arm)?);
    }
    Ok(sides)
}

fn side<'a>(
    experiment: &'a Experiment,
    queue: usize,
    direction: Direction,
    arm: &'a Queue,
) -> Result<Side<'a>, Refusal> {
    let link = &experiment.link;
    let (place_of_link, capacity, buffer) = match (&link.up, direction) {
        (Some(up), Direction::Up) => ("link.up", &up.rate, up.buffer.or(link.buffer)),
        _ => ("link", &link.rate, link.buffer),
    };
    let Capacity::Steps(rate) = capacity else {
        return refuse(
            format!("{place_of_link}.rate"),
            "must be a rate or a schedule of rates on Linux; traces run on: sim",
        );
    };
    let limit = derived::limit(experiment, arm, buffer, rate[0].1);
    let leaf = disciplines::leaf(arm, limit, derived::frame(experiment), rate[0].1).map_err(
        |refusal| Refusal {
            key: place(experiment, queue, direction, place_of_link, &refusal.key),
            ..refusal
        },
    )?;
    Ok(Side {
        direction,
        arm,
        rate,
        leaf,
    })
}

/// The full path of a key at fault: the arm's, the reverse direction's own arm's, or the link's buffer.
fn place(
    experiment: &Experiment,
    queue: usize,
    direction: Direction,
    link: &str,
    key: &str,
) -> String {
    let up_arm = experiment.link.up.as_ref().and_then(|up| up.queue.as_ref());
    let (arm, path) = match up_arm {
        Some(arm) if direction == Direction::Up => (arm, "link.up.queue".to_owned()),
        _ => (&experiment.queues[queue], format!("queue.{queue}")),
    };
    if key == "limit" && arm.limit.is_none() {
        return format!("{link}.buffer");
    }
    format!("{path}.{key}")
}

impl Side<'_> {
    fn bottleneck(&self, experiment: &Experiment, names: &Names) -> Bottleneck {
        let (namespace, device, handle) = match self.direction {
            Direction::Up => ("remote", topology::UP, topology::UP_HANDLE),
            Direction::Down | Direction::Both => ("router", topology::DOWN, topology::DOWN_HANDLE),
        };
        let changes = self.rate.iter().skip(1).map(|(at, rate)| {
            let class = topology::class(device, handle, *rate, experiment);
            (at.as_nanos(), format!("class change {class}"))
        });
        Bottleneck {
            aqm: self.arm.aqm.clone(),
            namespace: names.of(namespace),
            device: device.into(),
            handle: u32::from(handle) << 16,
            leaf: topology::LEAF.into(),
            rate_changes: changes.collect(),
        }
    }
}

fn flows(experiment: &Experiment, seed: u64, names: &Names) -> Vec<Flow> {
    let paths = topology::paths(experiment);
    let mtu = derived::frame(experiment) - experiment.link.overhead;
    let flow = |flow: derived::Flow<'_>| {
        // Every group has a path in each of its directions.
        let path = paths
            .iter()
            .find(|path| path.group == flow.group && path.direction == flow.direction)?;
        let (sender, receiver) = path.hosts(names);
        let kind = flow.traffic.kind.clone();
        let mut compiled = Flow {
            number: flow.number,
            sender,
            receiver,
            address: path.receiver(),
            opens_ns: opens_ns(&flow),
            start_ns: flow.start.as_nanos(),
            stop_ns: flow.traffic.stop.as_nanos(),
            dscp: flow.traffic.dscp,
            direction: flow.direction,
            tcp: kind.tcp().map(|options| tcp(options, mtu)),
            kind,
        };
        if compiled.is_asked() {
            compiled.address = path.sender();
        }
        Some(compiled)
    };
    derived::flows(experiment, seed).filter_map(flow).collect()
}

/// Bulk flows connect a round trip ahead of their start: what they exchange then takes the handshake's place. A SYN that is
/// lost delays the data as much as one at the start does. Not with a window of one segment: the exchange would fill and
/// so double it.
fn opens_ns(flow: &derived::Flow<'_>) -> Option<i64> {
    let ahead = flow.traffic.rtt.as_nanos() as i64;
    let tcp = flow.traffic.kind.tcp()?;
    let exchanges = matches!(flow.traffic.kind, Kind::Bulk(_)) && tcp.initial_window > 1;
    exchanges.then(|| flow.start.as_nanos() as i64 - ahead)
}

fn tcp(options: &model::Tcp, mtu: u32) -> Tcp {
    let whole = mtu - HEADERS - TIMESTAMPS;
    Tcp {
        congestion_control: options.congestion_control.clone(),
        ecn: options.ecn,
        ecn_fallback: options.ecn_fallback,
        max_segment: (options.mss != whole).then_some(options.mss + TIMESTAMPS),
    }
}

#[cfg(test)]
mod tests;
