//! Compiles one run of an experiment's arm to a job.

use sojourn_aqm::cake::framing::Cells;
use sojourn_experiment::derived::{self, Egress};
use sojourn_experiment::model::{
    self, Abe, Capacity, CapturePoint, EchoProtocol, Experiment, Hop, Kind, RttOf, Traffic, Way,
};
use sojourn_path::Impair;
use sojourn_traffic::OPENS_AHEAD;
use sojourn_units::{Duration, Rate, Value};

use crate::disciplines::{self, Leaf, Refusal};
use crate::hosts::Hosts;
use crate::job::{
    Action, FIRST_PORT, FIRST_PORT_OF_REQUESTED, Flow, Job, ObservedQueue, PathJob, Step, Tcp,
};
use crate::netem;
use crate::ports::Port;
use crate::shaper;
use crate::topology::{self, Names};

/// The timestamp option, which TCP_MAXSEG includes.
const TIMESTAMPS: u32 = 12;
/// Bytes that the agent writes into each echo request by ICMP: its time and its number.
const STAMP: u32 = 16;
/// Bytes that the agent writes into each datagram: its number.
const NUMBER: u32 = 8;
/// TCP and IP headers without options.
const HEADERS: u32 = 40;

/// The job for arm number `queue` with `seed`. The names of its namespaces begin with `prefix`.
///
/// # Errors
/// The kernel does not support the value of a key. The refusal contains the key's full path, `queue.0.target`.
pub fn job(experiment: &Experiment, queue: usize, seed: u64, prefix: &str) -> Result<Job, Refusal> {
    let names = Names {
        prefix: prefix.into(),
    };
    check(experiment)?;
    let hosts = Hosts::of(experiment);
    check_hosts(experiment, queue, &hosts)?;
    let sides = sides(experiment, queue)?;
    let queues: Vec<(Egress<'_>, &[Leaf])> = sides
        .iter()
        .map(|side| (side.egress, &side.leaves[..]))
        .collect();
    let (namespaces, setup) = topology::network(experiment, &queues, &hosts, &names);
    let mut modules: Vec<String> = ["veth", "sch_htb", "inet_diag", "tcp_diag"]
        .map(str::to_owned)
        .into();
    let delays = |step: &Step| matches!(&step.action, Action::Add(of) if of.kind == "netem");
    if setup.iter().any(delays) {
        modules.push("sch_netem".into());
    }
    if hosts.all.iter().any(|placed| placed.role.rests.len() > 1) {
        modules.push("sch_prio".into());
    }
    let leaves = || sides.iter().flat_map(|side| &side.leaves);
    modules.extend(leaves().map(|leaf| leaf.module.to_owned()));
    if leaves().count() > sides.len() {
        modules.push("cls_u32".into());
    }
    let flows: Vec<Flow> = flows(experiment, seed, &hosts, &names);
    modules.extend(flows.iter().filter_map(|flow| {
        let tcp = flow.tcp.as_ref()?;
        Some(format!("tcp_{}", tcp.congestion_control))
    }));
    modules.sort();
    modules.dedup();
    // Reno is built in and has no module.
    modules.retain(|module| module != "tcp_reno");
    let rates = sides.iter().flat_map(|side| side.rate);
    Ok(Job {
        version: env!("CARGO_PKG_VERSION").into(),
        seed,
        modules,
        namespaces,
        setup,
        bottlenecks: sides
            .iter()
            .map(|side| side.observed(experiment, seed, &names))
            .collect(),
        flows,
        duration_ns: experiment.duration.as_nanos(),
        warmup_ns: experiment.warmup.as_nanos(),
        bps: rates.map(|(_, rate)| rate.as_bps()).max().unwrap_or(0),
        frame: derived::mtu(experiment) + topology::ETHERNET,
        series_ns: experiment.record.series.map(Duration::as_nanos),
        capture: experiment.record.pcap.is_some(),
        captures_back: experiment.links[0].nodes.is_none() && experiment.links[0].up.is_none(),
    })
}

/// The job for arm number `queue` with `seed` where the packets pass Sojourn's own path in place of the kernel's queues.
/// `document` is the run's.
///
/// # Errors
/// As [`job`].
pub fn path_job(
    experiment: &Experiment,
    queue: usize,
    seed: u64,
    document: String,
) -> Result<PathJob, Refusal> {
    let names = Names {
        prefix: "sj".into(),
    };
    check_path(experiment)?;
    let hosts = Hosts::of(experiment);
    check_hosts(experiment, queue, &hosts)?;
    let (namespaces, setup) = topology::hosts_alone(experiment, &hosts, &names);
    let mut flows: Vec<Flow> = flows(experiment, seed, &hosts, &names);
    for flow in &mut flows {
        // The handshake takes the place that it has in the simulator; there is nothing that delays by priority.
        flow.opens_ns = None;
        flow.priorities = [0, 0];
    }
    let controls = flows.iter().filter_map(|flow| flow.tcp.as_ref());
    let mut congestion_controls: Vec<String> =
        controls.map(|tcp| tcp.congestion_control.clone()).collect();
    congestion_controls.sort();
    congestion_controls.dedup();
    Ok(PathJob {
        job: Job {
            version: env!("CARGO_PKG_VERSION").into(),
            seed,
            modules: Vec::new(),
            namespaces,
            setup,
            bottlenecks: Vec::new(),
            flows,
            duration_ns: experiment.duration.as_nanos(),
            warmup_ns: experiment.warmup.as_nanos(),
            bps: 0,
            frame: derived::mtu(experiment) + topology::ETHERNET,
            series_ns: experiment.record.series.map(Duration::as_nanos),
            capture: false,
            captures_back: false,
        },
        document,
        congestion_controls,
        foreign: Vec::new(),
        decider: None,
        watcher: None,
    })
}

/// Refuses settings that real packets through Sojourn's own path do not support, whatever the traffic.
///
/// # Errors
/// As [`job`].
pub fn check_links(experiment: &Experiment) -> Result<(), Refusal> {
    if experiment.record.medium {
        return refuse(
            "record.medium",
            "must be left out for real packets; backends that have it: sim",
        );
    }
    check_capture(experiment)?;
    check_qlog(experiment)
}

/// Refuses captures at the hosts.
fn check_capture(experiment: &Experiment) -> Result<(), Refusal> {
    if !matches!(experiment.record.pcap, None | Some(CapturePoint::Router)) {
        return refuse(
            "record.pcap",
            "must be true, false or \"router\" on Linux and for real packets; backends that capture at the hosts: sim",
        );
    }
    Ok(())
}

/// Refuses a qlog: the state of a kernel's or of a program's sender is not seen packet by packet.
fn check_qlog(experiment: &Experiment) -> Result<(), Refusal> {
    if experiment.record.qlog {
        return refuse(
            "record.qlog",
            "must be false, as Sojourn's own senders write it; backends that have it: sim",
        );
    }
    Ok(())
}

/// Refuses what [`check_links`] does, and traffic that the kernel's hosts cannot have.
fn check_path(experiment: &Experiment) -> Result<(), Refusal> {
    check_links(experiment)?;
    check_traffic(experiment)
}

/// Refuses traffic whose ends have to know each other, as those on two machines do not.
///
/// # Errors
/// As [`job`].
pub fn check_parts(experiment: &Experiment) -> Result<(), Refusal> {
    for (group, traffic) in experiment.traffic.iter().enumerate() {
        if matches!(traffic.kind, Kind::Files(_) | Kind::Web(_) | Kind::Video(_)) {
            return refuse(
                format!("traffic.{group}.kind"),
                "must be bulk, onoff, cbr, voip, game or ping on a testbed, where a program is at one end of a flow only; \
                 all kinds run with --on host",
            );
        }
    }
    Ok(())
}

/// Settings of an experiment that a kernel implements differently: a line each, for the user.
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
            "record.rtt: for TCP, Linux records the smoothed round-trip time ten times a second, not {wanted}"
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

/// Refuses settings that Linux does not support, whatever the discipline.
fn check(experiment: &Experiment) -> Result<(), Refusal> {
    let with_device_queue = |egress: &Egress<'_>| egress.link.device_queue > 0;
    let egresses = derived::queues(experiment, 0);
    if let Some(egress) = egresses.iter().find(|egress| egress.link.wifi.is_some()) {
        return refuse(
            format!("{}.kind", egress.link_key()),
            "must be left out on Linux; a Wi-Fi link needs sim",
        );
    }
    if let Some(egress) = egresses.iter().find(|egress| with_device_queue(egress)) {
        return refuse(
            format!("{}.device_queue", egress.link_key()),
            "must be 0 packets on Linux, whose virtual links have no device queue; backends that have it: sim",
        );
    }
    let framed = |egress: &&Egress<'_>| egress.link.cells != Cells::None || egress.link.mpu > 0;
    if let Some(egress) = egresses.iter().find(framed) {
        let key = if egress.link.mpu > 0 {
            "mpu"
        } else {
            "framing"
        };
        return refuse(
            format!("{}.{key}", egress.link_key()),
            "must be left out on Linux, whose links count bytes without cells; backends that have it: sim",
        );
    }
    let is_granted = |egress: &&Egress<'_>| {
        egress
            .link
            .up
            .as_ref()
            .is_some_and(|up| up.request_grant.is_some())
    };
    if let Some(egress) = egresses.iter().find(is_granted) {
        return refuse(
            format!("{}.up.request_grant", egress.link_key()),
            "must be left out on Linux, whose links send without grants; backends that have it: sim",
        );
    }
    for egress in &egresses {
        check_wire(egress, &experiment.traffic)?;
    }
    check_traffic(experiment)?;
    check_capture(experiment)?;
    check_qlog(experiment)
}

/// Refuses impairments that the kernel's netem cannot have.
fn check_wire(egress: &Egress<'_>, traffic: &[Traffic]) -> Result<(), Refusal> {
    let (name, link) = (egress.link_key(), egress.link);
    if let (Some(_), Some(key)) = (&link.nodes, link.impaired_key()) {
        return refuse(
            format!("{name}.{key}"),
            "must be left out on Linux with [[link]], whose wires are not apart; backends that have it: sim",
        );
    }
    let refused = |way: &str, delay, impair: &Impair| match netem::refused(delay, impair) {
        Some((key, message)) => refuse(format!("{name}{way}.{key}"), message),
        None => Ok(()),
    };
    refused("", link.delay, &link.impair(Way::Down))?;
    let back = link.impair(Way::Up);
    if link.up.is_none() {
        // The way back is the rest of each RTT.
        let mut rests = traffic.iter().map(|group| group.rtt - link.delay);
        return rests.try_for_each(|rest| refused(".up", rest, &back));
    }
    if back.jitter.is_some() || back.reorder.is_some() {
        return refuse(
            format!("{name}.up.jitter"),
            "must be \"0 s\", and reorder 0, on Linux, where nothing delays behind the queue upwards; backends that have it: sim",
        );
    }
    refused(".up", link.delay, &back)
}

/// Refuses traffic that the kernel's hosts cannot have.
fn check_traffic(experiment: &Experiment) -> Result<(), Refusal> {
    if experiment.traffic.is_empty() {
        return refuse(
            "traffic",
            "must have at least one table [[traffic]]; without any, programs bring it: sojourn shell FILE -- COMMAND",
        );
    }
    let flows: u64 = experiment
        .traffic
        .iter()
        .map(|traffic| u64::from(traffic.flows) * 2)
        .sum();
    let most =
        u64::from((FIRST_PORT_OF_REQUESTED - FIRST_PORT).min(u16::MAX - FIRST_PORT_OF_REQUESTED));
    if flows > most {
        return refuse(
            "traffic",
            format!(
                "must be at most {most} flows on Linux, each way of a flow counted, with a port for each"
            ),
        );
    }
    if Hosts::of(experiment).paths.len() > topology::MOST_PATHS {
        return refuse(
            "traffic",
            format!("must be at most {} groups on Linux", topology::MOST_PATHS),
        );
    }
    experiment
        .traffic
        .iter()
        .enumerate()
        .try_for_each(|(group, traffic)| {
            if experiment.record.one_way && traffic.kind.tcp().is_some() {
                check_one_way(experiment, traffic)?;
            }
            if traffic.access.is_some() {
                return refuse(
                    format!("traffic.{group}.access"),
                    "must be left out on Linux, whose hosts have unlimited links; backends that have it: sim",
                );
            }
            check_kind(&traffic.kind).map_err(|(key, must)| Refusal {
                key: format!("traffic.{group}.{key}"),
                must: format!("must be {must} on Linux; all kinds run on: sim"),
            })
        })
}

/// Refuses traffic that has the same host as other traffic but needs settings that a host on Linux has only once, if the
/// discipline tells hosts apart.
fn check_hosts(experiment: &Experiment, queue: usize, hosts: &Hosts) -> Result<(), Refusal> {
    let egresses = derived::queues(experiment, queue);
    let knows_hosts = |egress: &Egress<'_>| {
        let by_flow = |(key, value): &(String, Value)| {
            key == "isolation"
                && matches!(value, Value::Word(word) if word == "flows" || word == "flowblind")
        };
        egress.arm.aqm == "cake" && !egress.arm.settings.iter().any(by_flow)
    };
    match hosts.apart {
        Some(group) if egresses.iter().any(knows_hosts) => refuse(
            format!("traffic.{group}"),
            "must have the ecn, accecn, sack, recovery, initial_window, min_rto and window, the delay of its links and, for pings, \
             the rtt of the other traffic of its host, and not go both ways over links with a delay, on Linux, where CAKE sees one host; \
             backends without this limit: sim",
        ),
        _ => Ok(()),
    }
}

/// Refuses one-way delays of segments that pass several queues, because the delays of one segment in several queues
/// cannot be matched.
fn check_one_way(experiment: &Experiment, traffic: &Traffic) -> Result<(), Refusal> {
    let queues = |way: &Way| {
        let hops = traffic.route.hops(*way).into_iter();
        hops.filter(|hop| derived::is_queued(&experiment.links, *hop))
            .count()
    };
    if derived::ways(traffic.direction)
        .iter()
        .any(|way| queues(way) > 1)
    {
        return refuse(
            "record.one_way",
            "must be false on Linux where TCP passes several queues; backends that have it: sim",
        );
    }
    Ok(())
}

/// Congestion controls that a kernel has, some with patches. Another of this name, a user's own, would be the kernel's there.
const IN_KERNELS: [&str; 11] = [
    "bbr", "bbr3", "cubic", "dctcp", "illinois", "ledbat", "ledbat++", "prague", "reno", "vegas",
    "westwood",
];

fn is_whole_ms(span: Duration) -> bool {
    span.as_nanos() % 1_000_000 == 0
}

/// Refuses options that the agent does not support. The error holds a key and its accepted values.
fn check_kind(kind: &Kind) -> Result<(), (&'static str, &'static str)> {
    if kind.tcp().is_some_and(|tcp| tcp.abe != Abe::Off) {
        return Err(("abe", "false, as it is"));
    }
    if kind.tcp().is_some_and(|tcp| tcp.beta.is_some()) {
        return Err(("beta", "omitted: the kernel's own"));
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
    let is_in_no_kernel = |tcp: &model::Tcp| !IN_KERNELS.contains(&tcp.congestion_control.as_str());
    if kind.tcp().is_some_and(is_in_no_kernel) {
        return Err(("tcp", "one that a kernel has, like reno or cubic,"));
    }
    if kind.tcp().is_some_and(|tcp| !tcp.gso) {
        return Err(("gso", "true, as it is"));
    }
    match kind {
        Kind::Ping(ping) if ping.protocol == EchoProtocol::Icmp && ping.packet < STAMP => {
            Err(("packet", "at least 16 B"))
        }
        Kind::Ping(ping) if ping.packet == 0 => Err(("packet", "at least 1 B")),
        Kind::Call(_) => Err(("kind", "another, as a call's sender is the simulator's,")),
        Kind::Cbr(cbr) if cbr.mtu.is_some() => {
            Err(("mtu", "left out, because the link's MTU applies,"))
        }
        Kind::Cbr(cbr) if cbr.packet < NUMBER => Err(("packet", "at least 8 B")),
        Kind::OnOff(onoff) if onoff.send_buffer.is_some() => Err(("send_buffer", "left out")),
        Kind::OnOff(onoff) if kind.tcp().is_none() && onoff.packet < NUMBER => {
            Err(("packet", "at least 8 B"))
        }
        _ => Ok(()),
    }
}

/// A queue with its discipline.
struct Side<'a> {
    egress: Egress<'a>,
    rate: &'a [(Duration, Rate)],
    /// One discipline, or one for each class without classes below it.
    leaves: Vec<Leaf>,
}

fn sides(experiment: &Experiment, queue: usize) -> Result<Vec<Side<'_>>, Refusal> {
    let egresses = derived::queues(experiment, queue).into_iter();
    egresses
        .map(|egress| side(experiment, queue, egress))
        .collect()
}

fn side<'a>(
    experiment: &'a Experiment,
    queue: usize,
    egress: Egress<'a>,
) -> Result<Side<'a>, Refusal> {
    let Capacity::Steps(rate) = egress.capacity else {
        return refuse(
            format!("{}.rate", egress.key()),
            "must be a rate or a schedule of rates on Linux; traces run on: sim",
        );
    };
    // The kernel counts bytes a second.
    if rate.iter().any(|(_, rate)| rate.as_bps() < 8) {
        return refuse(
            format!("{}.rate", egress.key()),
            "must be at least 8 bit/s on Linux; lower rates run on: sim",
        );
    }
    let frame = derived::frame(experiment, egress.link);
    let leaf = |egress: &Egress<'_>, rate| {
        let limit = derived::limit(experiment, egress);
        disciplines::leaf(egress.arm, limit, frame, rate).map_err(|refusal| Refusal {
            key: egress.key_of(queue, &refusal.key),
            ..refusal
        })
    };
    let classes = derived::classes(experiment, &egress);
    let share = |class: usize| classes[class].share(egress.hop.way);
    let (mut leaves, mut given) = (Vec::new(), 0);
    for class in derived::leaf_classes(classes) {
        let ceil = Capacity::constant(share(class).ceil);
        let egress = Egress {
            capacity: &ceil,
            ..egress
        };
        leaves.push(leaf(&egress, share(class).ceil)?);
    }
    if classes.is_empty() {
        leaves.push(leaf(&egress, rate[0].1)?);
    }
    for (number, class) in classes.iter().enumerate() {
        if class.parent.is_none() {
            given += share(number).rate.as_bps();
        }
    }
    match rate.iter().find(|(_, rate)| rate.as_bps() < given) {
        Some((_, rate)) => refuse(
            "class",
            format!(
                "must have rates that add up to at most the {rate} of {} on Linux, whose HTB sends them whatever the link's \
                 rate; backends that have it: sim",
                egress.key()
            ),
        ),
        None => Ok(Side {
            egress,
            rate,
            leaves,
        }),
    }
}

impl Side<'_> {
    fn observed(&self, experiment: &Experiment, seed: u64, names: &Names) -> ObservedQueue {
        let port = Port::of(&experiment.links, self.egress.hop);
        let changes = self.rate.iter().skip(1).map(|(at, rate)| {
            (
                at.as_nanos(),
                topology::class(&port, *rate, self.egress.link),
            )
        });
        ObservedQueue {
            aqm: self.egress.arm.aqm.clone(),
            namespace: names.of(&port.node),
            rate_changes: changes.collect(),
            passed_by: passed_by(experiment, seed, self.egress.hop),
            handle: u32::from(port.major) << 16,
            leaves: (0..self.leaves.len()).map(shaper::leaf_handle).collect(),
            device: port.device,
        }
    }
}

/// The flows whose packets pass a queue: by flow number, whether its data does, and whether its returning packets do.
fn passed_by(experiment: &Experiment, seed: u64, queue: Hop) -> Vec<[bool; 2]> {
    let passes = |flow: derived::Flow<'_>| {
        [flow.way, flow.way.reversed()].map(|way| flow.traffic.route.hops(way).contains(&queue))
    };
    derived::flows(experiment, seed).map(passes).collect()
}

fn flows(experiment: &Experiment, seed: u64, hosts: &Hosts, names: &Names) -> Vec<Flow> {
    let mtu = derived::mtu(experiment);
    let flow = |flow: derived::Flow<'_>| {
        // Every group has a path in each of its directions.
        let path = hosts.path(flow.group, flow.direction)?;
        let [sender, receiver] = path.sender_and_receiver().map(|host| &hosts.all[host]);
        let delay = flow.traffic.route.delay(&experiment.links);
        let kind = flow.traffic.kind.clone();
        let mut compiled = Flow {
            number: flow.number,
            sender: sender.namespace(names),
            receiver: receiver.namespace(names),
            address: receiver.address(),
            priorities: [
                sender.priority(Duration::ZERO),
                receiver.priority(flow.traffic.rtt.saturating_sub(delay)),
            ],
            opens_ns: opens_ns(&flow),
            start_ns: flow.start.as_nanos(),
            stop_ns: flow.traffic.stop.as_nanos(),
            jitter_ns: derived::jitter(experiment, flow.traffic, flow.way).as_nanos(),
            dscp: flow.traffic.dscp,
            direction: flow.direction,
            tcp: kind.tcp().map(|options| tcp(options, mtu)),
            kind,
        };
        if compiled.receiver_connects() {
            compiled.address = sender.address();
        }
        Some(compiled)
    };
    derived::flows(experiment, seed).filter_map(flow).collect()
}

/// The time at which a bulk flow connects, before its start and its exchange (`executor/traffic/greeting.rs`).
fn opens_ns(flow: &derived::Flow<'_>) -> Option<i64> {
    let ahead = (flow.traffic.rtt * OPENS_AHEAD).as_nanos() as i64;
    let exchanges = flow.traffic.kind.exchanges_first();
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
