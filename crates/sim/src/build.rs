//! Builds the simulation of one arm of an experiment.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use sojourn_experiment::cells::{self, Built, Cell};
use sojourn_experiment::derived::{self, Egress, Host, Owner};
use sojourn_experiment::measured;
use sojourn_experiment::model::{CapturePoint, Experiment, Hop, Kind, Ties, Way};
use sojourn_experiment::network::{
    RunError, Topology, at, discipline, impairments, links, settings,
};
use sojourn_experiment::{InUse, Plan, ReadError, RunSpec, Values};
use sojourn_measure::meter::Measures;
use sojourn_path::{Builder, Route, Stage};
use sojourn_tcp::cc;
use sojourn_units::Time;

use crate::capture::{Capture, Facts, Interfaces};
use crate::catalogue::Catalogue;
use crate::network::{ImpairedPackets, Watch};
use crate::packet::{Packets, SimPacket};
use crate::simulation::Simulation;
use crate::traffic::{FlowEndpoints, Identity, Transports, Waits};

/// Checks that arm number `queue` can be built. It finds what the file reader cannot check.
///
/// # Errors
/// [`RunError::Settings`] names the key at fault; the others name what is unknown.
pub fn check(experiment: &Experiment, queue: usize, catalogue: &Catalogue) -> Result<(), RunError> {
    check_queues(experiment, queue, catalogue)?;
    if experiment.traffic.is_empty() {
        return Err(RunError::Settings {
            key: "traffic".into(),
            message: "must be at least one table [[traffic]] with a kind and an rtt; without any, programs bring it: \
                      sojourn shell FILE -- COMMAND"
                .into(),
        });
    }
    experiment
        .traffic
        .iter()
        .try_for_each(|traffic| algorithm(&traffic.kind, catalogue).map(drop))
}

/// The mistake in the file because of which arm number `queue` of cell number `cell` cannot be built, if `error` names a
/// key.
pub fn refusal(
    plan: &Plan,
    (cell, queue): (usize, usize),
    error: &RunError,
    catalogue: &Catalogue,
) -> Option<ReadError> {
    let RunError::Settings { key, message } = error else {
        return None;
    };
    let is_refused = |other: &Experiment| is_refused(other, queue, key, catalogue);
    Some(plan.refuse(cell, key, message, is_refused))
}

/// True if arm number `queue` of an experiment cannot be built because of the same key.
pub fn is_refused(experiment: &Experiment, queue: usize, key: &str, catalogue: &Catalogue) -> bool {
    queue < experiment.queues.len()
        && matches!(check(experiment, queue, catalogue), Err(RunError::Settings { key: other, .. }) if other == key)
}

/// Checks that the queues of arm number `queue` can be built, whatever the traffic.
///
/// # Errors
/// As [`check`].
pub fn check_queues(
    experiment: &Experiment,
    queue: usize,
    catalogue: &Catalogue,
) -> Result<(), RunError> {
    links(experiment, queue, 0, &catalogue.disciplines).map(drop)?;
    cells::cells(experiment, queue, 0, &catalogue.disciplines).map(drop)
}

/// The values that an experiment's disciplines use, defaults included, as their constructors request them.
///
/// # Errors
/// As [`check`].
pub fn in_use(experiment: &Experiment, catalogue: &Catalogue) -> Result<InUse, RunError> {
    let values = |egress: &Egress<'_>, queue| -> Result<Values, RunError> {
        if let Some(values) = cells::in_use(experiment, queue, egress)? {
            return Ok(values);
        }
        let discipline = discipline(egress.arm, &catalogue.disciplines)?;
        let settings = settings(experiment, egress);
        discipline.build(&settings).map_err(at(egress, queue))?;
        let known = discipline.keys();
        let mut values = settings.in_use();
        values.retain(|(key, _)| match key.as_str() {
            "ecn" => true,
            // Where a link has a buffer, the buffer is the limit.
            "limit" => settings.limit.is_none(),
            name => known.iter().any(|key| key.name == name),
        });
        Ok(values)
    };
    let mut in_use = InUse::default();
    for queue in 0..experiment.queues.len() {
        let mut arm: Option<Values> = None;
        for egress in derived::queues(experiment, queue) {
            let values = values(&egress, queue)?;
            match (egress.owner, &mut arm) {
                (Owner::Comparison | Owner::ComparisonUp, None) => arm = Some(values),
                // One [[queue]] table applies to several links: drop values that follow from one link's rate.
                (Owner::Comparison | Owner::ComparisonUp, Some(arm)) => {
                    arm.retain(|value| values.contains(value));
                }
                (Owner::Link, _) => {
                    // Both directions of the link share one table.
                    let known = in_use.links.entry((egress.hop.link, Way::Down));
                    let known = known.or_insert_with(|| values.clone());
                    known.retain(|value| values.contains(value));
                }
                (Owner::Up, _) => {
                    in_use.links.insert((egress.hop.link, Way::Up), values);
                }
            }
        }
        in_use.queues.push(arm.unwrap_or_default());
    }
    Ok(in_use)
}

/// A run as one JSON object, its discipline's defaults included: see [`RunSpec::document`].
///
/// # Errors
/// As [`check`].
pub fn document(spec: &RunSpec, catalogue: &Catalogue) -> Result<Json, RunError> {
    Ok(spec.document(&in_use(&spec.alone(), catalogue)?))
}

// ---- Building ------------------------------------------------------------------------------------------

/// The congestion control of a traffic group. A group without TCP ignores it, so any will do.
fn algorithm<'a>(kind: &Kind, catalogue: &'a Catalogue) -> Result<&'a cc::Algorithm, RunError> {
    let name = kind.tcp().map_or("cubic", |tcp| &tcp.congestion_control);
    let found = catalogue.congestion_controls.get(name);
    found.ok_or_else(|| RunError::UnknownCongestionControl(name.to_owned()))
}

/// Builds arm number `queue` of an experiment with `seed`.
///
/// # Errors
/// As [`check`].
pub(crate) fn build(
    experiment: &Experiment,
    queue: usize,
    seed: u64,
    catalogue: &Catalogue,
) -> Result<Simulation, RunError> {
    let queues = links(experiment, queue, seed, &catalogue.disciplines)?;
    let cells = cells::cells(experiment, queue, seed, &catalogue.disciplines)?;
    let egresses = derived::queues(experiment, queue);
    let scope = measured::scope(experiment, queue, seed);
    let mut builder = Builder::new();
    if experiment.ties == Ties::Departures {
        builder.departures_first();
    }
    let mut probes = Vec::new();
    for (qdisc, config) in queues {
        let mut probe = scope.probe(probes.len()).with_numbers();
        probe.split_by_inner_queue(qdisc.inner_queues());
        probes.push(probe);
        builder.add_link(qdisc, config);
    }
    for inner in cells.iter().flat_map(|cell| cell.inner) {
        let mut probe = scope.probe(probes.len()).with_numbers();
        probe.split_by_inner_queue(inner);
        probes.push(probe);
    }
    let mut impaired = Vec::new();
    for (hop, impair, seed) in impairments(experiment, seed) {
        builder.add_impairment(impair, seed, SimPacket::copied);
        impaired.push(ImpairedPackets {
            hop,
            lost: 0,
            duplicated: 0,
        });
    }
    let network = Topology {
        links: &experiment.links,
        impaired: impaired.iter().map(|of| of.hop).collect(),
        queues: egresses.iter().map(|egress| egress.hop).collect(),
        cells: cells.iter().map(|cell| cell.link).collect(),
    };
    // The propagation delay behind the only queue of a direction comes before all other delay lines.
    let delay = experiment.links[0].delay;
    if !delay.is_zero() {
        builder.reserve_last_line(delay);
    }
    // By group and direction: flows of one host share its access link.
    let mut access_of: BTreeMap<(usize, Way), usize> = BTreeMap::new();
    let hosts = derived::hosts(experiment);
    let (mut seen_at, mut sources) = (Vec::new(), Vec::new());
    let mut transports = Transports::default();
    let mut stations = BTreeMap::new();
    for (flow, measured) in derived::flows(experiment, seed).zip(&scope.flows) {
        let traffic = flow.traffic;
        let algorithm = algorithm(&traffic.kind, catalogue)?;
        let there = traffic.route.hops(flow.way);
        let back = traffic.route.hops(flow.way.reversed());
        let mut forward = network.stages(&traffic.route, flow.way);
        let interfaces = interfaces(&network, &there, &back);
        // An access link matters only ahead of a queue. Without a queue nothing waits, so leave it out.
        if let (Some(rate), [true, _]) = (traffic.access, interfaces.meets_queue) {
            let access = access_of
                .entry((flow.group, flow.way))
                .or_insert_with(|| builder.add_access(rate));
            forward.insert(0, Stage::Access(*access));
        }
        let returning = network.stages_back(traffic, flow.way.reversed());
        let routes = [builder.add_route(&forward), builder.add_route(&returning)];
        seen_at.push(interfaces);
        let station =
            (there.first()).filter(|hop| hop.way == Way::Up && network.cells.contains(&hop.link));
        let waits = match (station.and_then(|hop| network.queue(*hop)), traffic.access) {
            (_, Some(_)) => Waits::AtLink,
            (Some(queue), None) => {
                stations.insert(flow.number, queue);
                Waits::AtStation
            }
            (None, None) => Waits::Nowhere,
        };
        let identity = identity(
            experiment,
            &flow,
            waits,
            hosts[flow.group],
            routes,
            measured.group.measures,
        );
        let transport = (algorithm, &mut transports);
        sources.push(FlowEndpoints::new(identity, &traffic.kind, transport, seed));
    }
    let watch = Watch {
        probes,
        packets: Packets::default(),
        capture: experiment
            .record
            .pcap
            .map(|point| Box::new(capture(experiment, point, &network.queues, seen_at))),
        impaired,
        lost: Vec::new(),
        stations,
        left: Vec::new(),
        notes_sent: experiment.record.packets || experiment.record.pcap.is_some(),
        sent: 0,
    };
    let stations = |cell: &Built<SimPacket>| {
        let nodes = experiment.links[cell.link].nodes.as_ref();
        (
            cell.link,
            nodes.map_or(Vec::new(), |nodes| nodes.to.clone()),
        )
    };
    let named = cells.iter().map(stations).collect();
    let media = cells
        .into_iter()
        .map(|cell| Cell::new(cell.medium, cell.queue, experiment.record.medium));
    let network = builder.build_with_media(watch, media.collect());
    Ok(Simulation::new(scope, named, network, sources))
}

/// The capture interfaces of a flow: for packets that go `there`, and for those that come `back`.
fn interfaces(network: &Topology<'_>, there: &[Hop], back: &[Hop]) -> Interfaces {
    let first = |hops: &[Hop]| hops.iter().find_map(|hop| network.queue(*hop));
    let ways = [there, back];
    let way = |hops: &[Hop]| hops.first().map_or(0, |hop| hop.way as u32);
    Interfaces {
        // With `[link]` each direction is an interface, whether it has a queue or not.
        of_hosts: ways.map(
            |hops| match (first(hops), network.links[0].nodes.is_none()) {
                (Some(queue), false) => queue as u32,
                (None, false) => network.queues.len() as u32,
                (_, true) => way(hops),
            },
        ),
        meets_queue: ways.map(|hops| first(hops).is_some()),
    }
}

fn capture(
    experiment: &Experiment,
    point: CapturePoint,
    queues: &[Hop],
    flows: Vec<Interfaces>,
) -> Capture {
    // The seed sets only when flows start.
    let mss = derived::flows(experiment, 0)
        .map(|flow| flow.traffic.kind.tcp().map_or(0, |tcp| tcp.mss as u16));
    let named = |hop: &Hop| {
        let link = &experiment.links[hop.link];
        format!("{}/{}", link.name, hop.way.name())
    };
    let interfaces: Vec<String> = match experiment.links[0].nodes {
        None => vec!["down".into(), "up".into()],
        Some(_) => {
            let named = queues.iter().map(named);
            named.chain(["hosts".into()]).collect()
        }
    };
    let interfaces: Vec<&str> = interfaces.iter().map(String::as_str).collect();
    let of_queues = queues.iter().map(|hop| experiment.links[hop.link].overhead);
    let facts = Facts {
        overhead_at_hosts: experiment.links[0].overhead,
        overhead_behind_queues: of_queues.collect(),
        mss: mss.collect(),
        flows,
    };
    Capture::new(point, &interfaces, facts)
}

fn identity(
    experiment: &Experiment,
    flow: &derived::Flow<'_>,
    waits: Waits,
    [from, to]: [Host; 2],
    routes: [Route; 2],
    measures: Measures,
) -> Identity {
    Identity {
        routes,
        flow: flow.number,
        hosts: match flow.way {
            Way::Down => [from.address(), to.address()],
            Way::Up => [to.address(), from.address()],
        },
        direction: flow.direction,
        dscp: flow.traffic.dscp,
        overhead: experiment.links[0].overhead,
        waits,
        kernel: experiment.kernel,
        rtt: flow.traffic.rtt,
        start: Time::ZERO + flow.start,
        stop: Time::ZERO + flow.traffic.stop,
        jitter: derived::jitter(experiment, flow.traffic, flow.way),
        measures,
        qlog: experiment.record.qlog,
    }
}
