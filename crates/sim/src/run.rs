//! An experiment's arm, built and run.

use std::collections::BTreeMap;
use std::fmt;

use sojourn_aqm::{Catalogue, Limit, SettingError, Settings};
use sojourn_experiment::derived::{self, capacity_bytes, directions, kind_name};
use sojourn_experiment::model::{Buffer, Direction, Experiment, Kind, Queue, Traffic};
use sojourn_experiment::streams;
use sojourn_tcp::cc;
use sojourn_units::{Duration, Time};

use crate::capture::{Capture, LinkFacts};
use crate::delay_line::{DelayLine, Exit};
use crate::link::{self, BoxedQdisc, Link};
use crate::monitor::Monitor;
use crate::packet::SimPacket;
use crate::probe::LinkProbe;
use crate::result::{Bottleneck, Column, Flow, RunResult, Table, jain};
use crate::simulation::{Network, Path, QueueSample, Sampler, Simulation, link_of};
use crate::traffic::{Cbr, Identity, Ping, Source, TcpFlow};

/// The directions in the order of the links.
const DIRECTIONS: [&str; 2] = ["down", "up"];

/// Why a run did not end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// The parameters of the queue cannot go together.
    Settings(SettingError),
    /// The catalogue has no discipline of this name.
    UnknownDiscipline(String),
    /// There is no congestion control of this name.
    UnknownCongestionControl(String),
    /// The run was stopped from outside.
    Cancelled,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(error) => write!(f, "{error}"),
            Self::UnknownDiscipline(name) => write!(f, "no discipline is called \"{name}\""),
            Self::UnknownCongestionControl(name) => {
                write!(f, "no congestion control is called \"{name}\"")
            }
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<SettingError> for RunError {
    fn from(error: SettingError) -> Self {
        Self::Settings(error)
    }
}

/// The disciplines that the simulator has by name.
pub fn catalogue() -> Catalogue<SimPacket> {
    Catalogue::new()
}

/// Checks that arm number `queue` can be built: what a reader of files cannot know.
///
/// # Errors
/// [`RunError::Settings`] names the key of the queue; the others name what is unknown.
pub fn check(
    experiment: &Experiment,
    queue: usize,
    catalogue: &Catalogue<SimPacket>,
) -> Result<(), RunError> {
    build_links(experiment, queue, 0, catalogue).map(drop)?;
    experiment
        .traffic
        .iter()
        .try_for_each(|traffic| algorithm(traffic).map(drop))
}

/// Runs arm number `queue` of an experiment with `seed`.
///
/// # Errors
/// As [`check`], and [`RunError::Cancelled`] if the monitor says so.
pub fn run(
    experiment: &Experiment,
    queue: usize,
    seed: u64,
    catalogue: &Catalogue<SimPacket>,
    monitor: &Monitor,
) -> Result<RunResult, RunError> {
    let began = std::time::Instant::now();
    let links = build_links(experiment, queue, seed, catalogue)?;
    let mut simulation = build(experiment, seed, links)?;
    let end = Time::ZERO + experiment.duration;
    simulation
        .run(end, monitor)
        .map_err(|_| RunError::Cancelled)?;
    let arm = &experiment.queues[queue];
    let mut result = summarise(experiment, simulation);
    result.queue.clone_from(&arm.aqm);
    result.label.clone_from(&arm.label);
    result.seed = seed;
    result.wall_s = began.elapsed().as_secs_f64();
    Ok(result)
}

// ---- Building ------------------------------------------------------------------------------------------

fn build_links(
    experiment: &Experiment,
    queue: usize,
    seed: u64,
    catalogue: &Catalogue<SimPacket>,
) -> Result<Vec<Link>, RunError> {
    let down = &experiment.link;
    let arm = &experiment.queues[queue];
    let mut links = vec![build_link(
        experiment,
        arm,
        down.buffer,
        &down.rate,
        "down",
        seed,
        catalogue,
    )?];
    if let Some(up) = &down.up {
        let arm = up.queue.as_ref().unwrap_or(arm);
        let buffer = up.buffer.or(down.buffer);
        links.push(build_link(
            experiment, arm, buffer, &up.rate, "up", seed, catalogue,
        )?);
    }
    Ok(links)
}

fn build_link(
    experiment: &Experiment,
    arm: &Queue,
    buffer: Option<Buffer>,
    rate: &[(Duration, sojourn_units::Rate)],
    direction: &str,
    seed: u64,
    catalogue: &Catalogue<SimPacket>,
) -> Result<Link, RunError> {
    let discipline = catalogue
        .get(&arm.aqm)
        .ok_or_else(|| RunError::UnknownDiscipline(arm.aqm.clone()))?;
    let settings = Settings {
        rate: rate[0].1,
        mtu: derived::frame(experiment),
        limit: derived::limit(experiment, arm, buffer, rate[0].1).map(|limit| match limit {
            derived::Limit::Packets(packets) => Limit::Packets(packets),
            derived::Limit::Bytes(bytes) => Limit::Bytes(bytes),
        }),
        values: arm.settings.clone(),
    };
    let qdisc: BoxedQdisc = (discipline.build)(&settings)?;
    let config = link::Config {
        rate: rate.to_vec(),
        burst: experiment.link.burst,
        device_queue: experiment.link.device_queue,
        seed: streams::seed(seed, &format!("queue/{direction}")),
    };
    let probe = LinkProbe::new(Time::ZERO + experiment.warmup, experiment.record.packets);
    Ok(Link::new(qdisc, config, probe))
}

fn algorithm(traffic: &Traffic) -> Result<&'static cc::Algorithm, RunError> {
    let name = match &traffic.kind {
        Kind::Bulk(tcp) => &tcp.congestion_control,
        Kind::Files(files) => &files.tcp.congestion_control,
        Kind::Cbr(_) | Kind::Ping(_) => "cubic",
    };
    cc::by_name(name).ok_or_else(|| RunError::UnknownCongestionControl(name.to_owned()))
}

/// Lines with the same delay and exit are one: packets in them stay in order.
#[derive(Default)]
struct Lines(Vec<DelayLine>);

impl Lines {
    fn find(&mut self, delay: Duration, exit: Exit) -> usize {
        let known = self
            .0
            .iter()
            .position(|line| line.delay == delay && line.exit == exit);
        known.unwrap_or_else(|| {
            self.0.push(DelayLine::new(delay, exit));
            self.0.len() - 1
        })
    }
}

fn build(experiment: &Experiment, seed: u64, links: Vec<Link>) -> Result<Simulation, RunError> {
    let mut lines = Lines::default();
    let delay = experiment.link.delay;
    let behind_link = (!delay.is_zero()).then(|| lines.find(delay, Exit::Host));
    let behind = vec![behind_link; links.len()];
    let mut paths = Vec::new();
    let mut sources = Vec::new();
    for flow in derived::flows(experiment, seed) {
        let traffic = flow.traffic;
        let algorithm = algorithm(traffic)?;
        let forward_link = link_of(flow.direction, links.len());
        let back = if flow.direction == Direction::Down {
            (links.len() > 1).then_some(1)
        } else {
            Some(0)
        };
        let exit = back.map_or(Exit::Host, Exit::Link);
        let forward_line = if forward_link.is_none() {
            Some(lines.find(delay, Exit::Host))
        } else {
            behind_link
        };
        let return_line = lines.find(traffic.rtt.saturating_sub(delay), exit);
        paths.push(Path {
            forward_link,
            forward_line,
            return_line,
        });
        let identity = identity(experiment, &flow);
        sources.push(match &traffic.kind {
            Kind::Bulk(tcp) => Source::Tcp(Box::new(TcpFlow::bulk(identity, tcp, algorithm, seed))),
            Kind::Files(files) => {
                Source::Tcp(Box::new(TcpFlow::files(identity, files, algorithm, seed)))
            }
            Kind::Cbr(cbr) => Source::Cbr(Cbr::new(identity, cbr)),
            Kind::Ping(ping) => Source::Ping(Ping::new(identity, ping)),
        });
    }
    let sampler = Sampler::new(Time::ZERO + experiment.warmup, experiment.record.series);
    let mut network = Network::new(links, lines.0, behind, paths);
    network.capture = experiment.record.pcap.then(|| capture(experiment));
    Ok(Simulation::new(network, sources, sampler))
}

fn capture(experiment: &Experiment) -> Capture {
    let mss = |traffic: &Traffic| match &traffic.kind {
        Kind::Bulk(tcp) => tcp.mss as u16,
        Kind::Files(files) => files.tcp.mss as u16,
        Kind::Cbr(_) | Kind::Ping(_) => 0,
    };
    Capture::new(LinkFacts {
        overhead: experiment.link.overhead,
        mss: experiment.traffic.iter().map(mss).collect(),
    })
}

fn identity(experiment: &Experiment, flow: &derived::Flow<'_>) -> Identity {
    Identity {
        flow: flow.number,
        group: flow.group as u16,
        overhead: experiment.link.overhead,
        start: Time::ZERO + flow.start,
        stop: Time::ZERO + flow.traffic.stop,
        warmup: Time::ZERO + experiment.warmup,
    }
}

// ---- Summing up ----------------------------------------------------------------------------------------

fn summarise(experiment: &Experiment, simulation: Simulation) -> RunResult {
    let Simulation {
        network,
        sources,
        sampler,
        events,
        ..
    } = simulation;
    let flows = flow_figures(experiment, &sources);
    let tcp = flows
        .iter()
        .filter(|flow| matches!(flow.kind, "bulk" | "files"));
    let jain_goodput = jain(tcp.map(|flow| flow.goodput_bps));
    let mut bottleneck = BTreeMap::new();
    let mut packets: Option<Table> = None;
    for (index, link) in network.links.into_iter().enumerate() {
        bottleneck.insert(
            DIRECTIONS[index],
            bottleneck_figures(experiment, index, &link),
        );
        if let Some(table) = link.probe.into_table(index as u8) {
            packets = Some(match packets {
                Some(above) => above.stacked(table),
                None => table,
            });
        }
    }
    RunResult {
        queue: String::new(),
        label: String::new(),
        seed: 0,
        bottleneck,
        flows,
        jain_goodput,
        simulated_s: experiment.duration.as_secs_f64(),
        wall_s: 0.0,
        events,
        packets,
        capture: network.capture.map(|capture| Table {
            columns: vec![("pcapng", Column::U8(capture.into_bytes()))],
        }),
        queue_series: sampler.width.map(|width| queue_series(&sampler, width)),
        flow_series: sampler.width.map(|_| flow_series(&sampler)),
    }
}

fn bottleneck_figures(experiment: &Experiment, index: usize, link: &Link) -> Bottleneck {
    let rate = match (&experiment.link.up, index) {
        (Some(up), 1) => &up.rate,
        _ => &experiment.link.rate,
    };
    let capacity = capacity_bytes(rate, experiment.warmup, experiment.duration);
    let probe = &link.probe;
    Bottleneck {
        sojourn_ms: probe.quantiles(),
        startup_peak_ms: probe.startup_peak.as_millis_f64(),
        utilization: if capacity > 0.0 {
            probe.steady_bytes as f64 / capacity
        } else {
            0.0
        },
        delivered_packets: probe.delivered_packets,
        delivered_bytes: probe.delivered_bytes,
        dropped_aqm: probe.dropped_aqm,
        dropped_overflow: probe.dropped_overflow,
        marked: link.marked(),
    }
}

fn flow_figures(experiment: &Experiment, sources: &[Source]) -> Vec<Flow> {
    let mut sources = sources.iter();
    let mut flows = Vec::new();
    for (group, traffic) in experiment.traffic.iter().enumerate() {
        let mut number = 0;
        for direction in directions(traffic.direction) {
            for source in sources.by_ref().take(traffic.flows as usize) {
                let meter = source.meter();
                let from = experiment.warmup.max(traffic.start.0);
                let active = traffic.stop.saturating_sub(from).as_secs_f64();
                let bits = meter.received_since_warmup() as f64 * 8.0;
                flows.push(Flow {
                    traffic: group,
                    flow: number,
                    kind: kind_name(&traffic.kind),
                    direction: DIRECTIONS[usize::from(*direction == Direction::Up)],
                    goodput_bps: if active > 0.0 { bits / active } else { 0.0 },
                    sent_bytes: meter.sent,
                    received_bytes: meter.received,
                    retransmits: meter.retransmits,
                    rtt_ms: meter.round_trips.spread(),
                    one_way_ms: meter.one_way.as_ref().map(|delays| delays.spread()),
                    lost_packets: meter.datagrams.map(|(sent, arrived)| sent - arrived),
                    completion_ms: meter.completions.as_ref().map(|delays| delays.spread()),
                });
                number += 1;
            }
        }
    }
    flows
}

fn queue_series(sampler: &Sampler, width: Duration) -> Table {
    let rows = &sampler.queues;
    let of = |value: fn(&QueueSample) -> f64| Column::F64(rows.iter().map(value).collect());
    let begin = |row: &QueueSample| row.time.as_secs_f64() - width.as_secs_f64();
    let mut columns = vec![
        ("time_s", Column::F64(rows.iter().map(begin).collect())),
        (
            "direction",
            Column::U8(rows.iter().map(|row| row.link as u8).collect()),
        ),
        (
            "packets",
            Column::U64(rows.iter().map(|row| row.recent.packets).collect()),
        ),
        (
            "sojourn_mean_ms",
            of(|row| row.recent.sum as f64 / row.recent.packets as f64 / 1e6),
        ),
        ("sojourn_max_ms", of(|row| row.recent.longest as f64 / 1e6)),
        (
            "backlog_packets",
            Column::U64(rows.iter().map(|row| row.backlog_packets).collect()),
        ),
        (
            "backlog_bytes",
            Column::U64(rows.iter().map(|row| row.backlog_bytes).collect()),
        ),
        (
            "dropped",
            Column::U64(rows.iter().map(|row| row.dropped).collect()),
        ),
        (
            "marked",
            Column::U64(rows.iter().map(|row| row.marked).collect()),
        ),
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
        columns.push((name, Column::F64(rows.iter().map(value).collect())));
    }
    Table { columns }
}

fn flow_series(sampler: &Sampler) -> Table {
    let rows = &sampler.flows;
    let width = sampler.width.map_or(0.0, Duration::as_secs_f64);
    Table {
        columns: vec![
            (
                "time_s",
                Column::F64(
                    rows.iter()
                        .map(|row| row.time.as_secs_f64() - width)
                        .collect(),
                ),
            ),
            (
                "flow",
                Column::U32(rows.iter().map(|row| row.flow).collect()),
            ),
            (
                "goodput_bps",
                Column::F64(rows.iter().map(|row| row.goodput_bps).collect()),
            ),
            (
                "cwnd_segments",
                Column::F64(rows.iter().map(|row| row.cwnd).collect()),
            ),
        ],
    }
}
