//! An experiment's arm, built and run.

use std::collections::BTreeMap;
use std::fmt;

use sojourn_aqm::{Catalogue, Discipline, Limit, SettingError, Settings};
use sojourn_experiment::derived;
use sojourn_experiment::loss_events::Population;
use sojourn_experiment::model::{
    Buffer, Capacity, CapturePoint, Direction, Experiment, Kind, Queue,
};
use sojourn_experiment::streams;
use sojourn_experiment::{InUse, Values};
use sojourn_tcp::cc;
use sojourn_units::{Duration, Rate, Time};

use crate::capture::{Capture, LinkFacts};
use crate::delay_line::{DelayLine, Exit};
use crate::delays::Precision;
use crate::link::{self, BoxedQdisc, Link};
use crate::monitor::Monitor;
use crate::packet::SimPacket;
use crate::probe::LinkProbe;
use crate::result::RunResult;
use crate::simulation::{AccessLink, Hop, Network, Path, Sampler, Simulation, link_of};
use crate::summary::{DIRECTIONS, summarise};
use crate::traffic::{Identity, Source};

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
        .try_for_each(|traffic| algorithm(&traffic.kind).map(drop))
}

/// The values that the disciplines of an experiment take, defaults included: as the code that builds them asks for them.
///
/// # Errors
/// As [`check`].
pub fn in_use(
    experiment: &Experiment,
    catalogue: &Catalogue<SimPacket>,
) -> Result<InUse, RunError> {
    let values = |place: &Place<'_>| -> Result<Values, RunError> {
        let discipline = discipline(place.arm, catalogue)?;
        let settings = settings(experiment, place);
        discipline.build(&settings)?;
        let mut values = settings.in_use();
        values.retain(|(key, _)| match key.as_str() {
            "ecn" => true,
            // Where a link has a buffer, that is the limit.
            "limit" => settings.limit.is_none(),
            key => discipline.key(key).is_some(),
        });
        Ok(values)
    };
    let mut in_use = InUse::default();
    for queue in 0..experiment.queues.len() {
        let mut arm = Values::new();
        for place in places(experiment, queue) {
            let values = values(&place)?;
            if place.link == 0 {
                arm = values;
            } else if std::ptr::eq(place.arm, &raw const experiment.queues[queue]) {
                // One queue's table for two links: what follows from the link's rate cannot stand there.
                arm.retain(|value| values.contains(value));
            } else {
                in_use.up = values;
            }
        }
        in_use.queues.push(arm);
    }
    Ok(in_use)
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
    Ok(RunResult {
        queue: arm.aqm.clone(),
        label: arm.label.clone(),
        seed,
        wall_s: began.elapsed().as_secs_f64(),
        ..summarise(experiment, simulation, seed)
    })
}

// ---- Building ------------------------------------------------------------------------------------------

fn build_links(
    experiment: &Experiment,
    queue: usize,
    seed: u64,
    catalogue: &Catalogue<SimPacket>,
) -> Result<Vec<Link>, RunError> {
    places(experiment, queue)
        .map(|place| build_link(experiment, &place, seed, catalogue))
        .collect()
}

/// The directions of the bottleneck with arm number `queue`.
fn places(experiment: &Experiment, queue: usize) -> impl Iterator<Item = Place<'_>> {
    let down = &experiment.link;
    let arm = &experiment.queues[queue];
    let up = down.up.as_ref().map(|up| Place {
        link: 1,
        arm: up.queue.as_ref().unwrap_or(arm),
        buffer: up.buffer.or(down.buffer),
        capacity: &up.rate,
    });
    let down = Place {
        link: 0,
        arm,
        buffer: down.buffer,
        capacity: &down.rate,
    };
    std::iter::once(down).chain(up)
}

/// What one direction of the bottleneck is built from.
struct Place<'a> {
    /// Index of the link.
    link: usize,
    arm: &'a Queue,
    buffer: Option<Buffer>,
    capacity: &'a Capacity,
}

fn build_link(
    experiment: &Experiment,
    place: &Place<'_>,
    seed: u64,
    catalogue: &Catalogue<SimPacket>,
) -> Result<Link, RunError> {
    let Place { link, capacity, .. } = place;
    let qdisc: BoxedQdisc =
        discipline(place.arm, catalogue)?.build(&settings(experiment, place))?;
    let config = link::Config {
        capacity: (*capacity).clone(),
        burst: experiment.link.burst,
        overhead: experiment.link.overhead,
        device_queue: experiment.link.device_queue,
        steady: (experiment.warmup, experiment.duration),
        seed: streams::seed(seed, &format!("queue/{}", DIRECTIONS[*link])),
    };
    let warmup = Time::ZERO + experiment.warmup;
    let population = Population::of_link(experiment, *link, seed);
    let probe = LinkProbe::new(warmup, experiment.record.packets, population);
    Ok(Link::new(qdisc, config, probe))
}

fn discipline<'a>(
    arm: &Queue,
    catalogue: &'a Catalogue<SimPacket>,
) -> Result<&'a Discipline<SimPacket>, RunError> {
    catalogue
        .get(&arm.aqm)
        .ok_or_else(|| RunError::UnknownDiscipline(arm.aqm.clone()))
}

fn settings(experiment: &Experiment, place: &Place<'_>) -> Settings {
    let rate = place.capacity.nominal();
    let limit = derived::limit(experiment, place.arm, place.buffer, rate);
    let mut settings = Settings::new(rate, derived::frame(experiment));
    settings.limit = limit.map(|limit| match limit {
        derived::Limit::Packets(packets) => Limit::Packets(packets),
        derived::Limit::Bytes(bytes) => Limit::Bytes(bytes),
    });
    settings.values.clone_from(&place.arm.settings);
    settings
}

/// The congestion control of a group; of one without TCP any will do.
fn algorithm(kind: &Kind) -> Result<&'static cc::Algorithm, RunError> {
    let name = kind.tcp().map_or("cubic", |tcp| &tcp.congestion_control);
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
        known.unwrap_or_else(|| self.add(delay, exit))
    }

    /// A line of its own.
    fn add(&mut self, delay: Duration, exit: Exit) -> usize {
        self.0.push(DelayLine::new(delay, exit));
        self.0.len() - 1
    }
}

fn build(experiment: &Experiment, seed: u64, links: Vec<Link>) -> Result<Simulation, RunError> {
    let mut lines = Lines::default();
    let delay = experiment.link.delay;
    let behind_link = (!delay.is_zero()).then(|| lines.find(delay, Exit::Host));
    let behind = vec![behind_link; links.len()];
    let mut paths = Vec::new();
    let mut accesses: Vec<(Rate, usize)> = Vec::new();
    // Of each group and direction: flows of one host share its link.
    let mut access_of: BTreeMap<(usize, bool), usize> = BTreeMap::new();
    let mut sources = Vec::new();
    let flows: Vec<derived::Flow<'_>> = derived::flows(experiment, seed).collect();
    let precision = Precision::of_flow(flows.len());
    for flow in flows {
        let traffic = flow.traffic;
        let algorithm = algorithm(&traffic.kind)?;
        let forward_link = link_of(flow.direction, links.len());
        let back = if flow.direction == Direction::Down {
            (links.len() > 1).then_some(1)
        } else {
            Some(0)
        };
        let exit = back.map_or(Exit::Host, Exit::Link);
        let forward = match forward_link {
            Some(link) => Hop::Link(link as u32),
            None => Hop::Line(lines.find(delay, Exit::Host) as u32),
        };
        // A way back through the other bottleneck has that one's propagation behind it.
        let passed = if back.is_some() { delay * 2 } else { delay };
        let return_line = lines.find(traffic.rtt.saturating_sub(passed), exit);
        let access = traffic.access.zip(forward_link).map(|(rate, link)| {
            let host = (flow.group, flow.direction == Direction::Up);
            *access_of.entry(host).or_insert_with(|| {
                accesses.push((rate, link));
                accesses.len() - 1
            })
        });
        paths.push(Path {
            forward: access.map_or(forward, |access| Hop::Access(access as u32)),
            return_line: return_line as u32,
        });
        let identity = identity(experiment, &flow, precision);
        sources.push(Source::new(identity, &traffic.kind, algorithm, seed));
    }
    // Lines of their own, after all that are shared.
    let accesses = accesses.into_iter().map(|(rate, link)| {
        let line = lines.add(Duration::ZERO, Exit::Link(link));
        AccessLink::new(rate, line)
    });
    let accesses = accesses.collect();
    let sampler = Sampler::new(Time::ZERO + experiment.warmup, experiment.record.series);
    let mut network = Network::new(links, lines.0, behind, paths, accesses);
    network.capture = experiment
        .record
        .pcap
        .map(|point| capture(experiment, point));
    Ok(Simulation::new(network, sources, sampler))
}

fn capture(experiment: &Experiment, point: CapturePoint) -> Capture {
    let traffic = experiment.traffic.iter();
    let link = LinkFacts {
        overhead: experiment.link.overhead,
        mss: traffic
            .map(|group| group.kind.tcp().map_or(0, |tcp| tcp.mss as u16))
            .collect(),
    };
    Capture::new(point, link)
}

fn identity(experiment: &Experiment, flow: &derived::Flow<'_>, precision: Precision) -> Identity {
    Identity {
        flow: flow.number,
        group: flow.group as u16,
        direction: flow.direction,
        dscp: flow.traffic.dscp,
        overhead: experiment.link.overhead,
        has_access_link: flow.traffic.access.is_some(),
        start: Time::ZERO + flow.start,
        stop: Time::ZERO + flow.traffic.stop,
        warmup: Time::ZERO + experiment.warmup,
        record_rtt: experiment.record.rtt,
        rtt_of: experiment.record.rtt_of,
        record_one_way: experiment.record.one_way,
        precision,
    }
}
