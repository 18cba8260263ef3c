//! Checks of values in different sections against each other.

use std::collections::HashMap;

use sojourn_units::Duration;

use super::class::Classes;
use super::routes;
use crate::derived::{Owner, group_names, is_queued, largest_packet, queues, ways};
use crate::entry::Entry;
use crate::error::ReadError;
use crate::model::{Buffer, Experiment, Kind, Link, Queue, Traffic, Transport};

/// The most bins of a time series: a row each, per run.
const MOST_BINS: u64 = 10_000_000;

/// Checks an experiment as a whole and adds its traffic groups, given per entry of the file. Traffic without an end, or
/// with one after the run, ends with the run.
///
/// # Errors
/// At the value of `file` that contradicts another.
pub(super) fn check(
    file: &Entry<'_>,
    experiment: &mut Experiment,
    groups: Vec<Vec<Traffic>>,
) -> Result<(), ReadError> {
    let duration = experiment.duration;
    // For each group, the number of the entry that defines it.
    let mut entries = Vec::new();
    let has_nodes = experiment.links[0].nodes.is_some();
    if has_nodes && !experiment.classes.is_empty() {
        return Err(file
            .at("class")
            .error("must be left out with [[link]]; classes are those of [link]"));
    }
    let of_link = experiment.classes.clone();
    let mut classes = Classes::new(&of_link);
    for (index, groups) in groups.into_iter().enumerate() {
        let is_test = groups.len() > 1;
        for mut traffic in groups {
            let entry = file.at(&format!("traffic.{index}"));
            let host = entry.at("host");
            if host.path == entry.path {
                traffic.host = (is_test && !has_nodes).then(|| host_of_test(index, traffic.host));
            } else if has_nodes {
                return Err(
                    host.refuse("left out: with [[link]] the nodes from and to are the hosts")
                );
            }
            classes.check(&entry, &traffic)?;
            traffic.route = routes::resolve(&entry, &experiment.links, traffic.route.nodes)?;
            check_rtt(&entry, &traffic, &experiment.links)?;
            check_times(&entry, &traffic, duration)?;
            check_unlimited(&entry, &traffic, &experiment.links)?;
            let is_late = duration < traffic.stop && traffic.stop < Duration::MAX;
            traffic.late_stop = is_late.then_some(traffic.stop);
            traffic.stop = traffic.stop.min(duration);
            experiment.traffic.push(traffic);
            entries.push(index);
        }
    }
    check_names(file, experiment, &entries)?;
    check_up(file, experiment)?;
    check_sizes(file, experiment)?;
    if let Some(series) = experiment.record.series {
        let entry = file.at("record.series");
        if series > duration {
            let most = format!("at most experiment.duration (\"{duration}\")");
            return Err(entry.refuse(most));
        }
        if duration.as_nanos() / series.as_nanos() > MOST_BINS {
            let most = format!("wider: the run has more than {MOST_BINS} such bins");
            return Err(entry.refuse(most));
        }
    }
    Ok(())
}

/// The host of a group that is part of a test such as rrul: the test's only one, or one of several.
fn host_of_test(index: usize, of_several: Option<String>) -> String {
    match of_several {
        Some(number) => format!("traffic.{index} host {number}"),
        None => format!("traffic.{index}"),
    }
}

/// Group names must be unique, default names included.
fn check_names(
    file: &Entry<'_>,
    experiment: &Experiment,
    entries: &[usize],
) -> Result<(), ReadError> {
    let mut first = HashMap::new();
    for (group, name) in group_names(experiment).into_iter().enumerate() {
        if let Some(twin) = first.insert(name.clone(), group) {
            // One of the two names was given in the file.
            let (given, other) = match experiment.traffic[group].name {
                Some(_) => (group, twin),
                None => (twin, group),
            };
            let entry = file.at(&format!("traffic.{}.name", entries[given]));
            let other = entries[other];
            return Err(entry.error(format!(
                "traffic.{other} is called \"{name}\" as well; give each a name of its own"
            )));
        }
    }
    Ok(())
}

/// The base RTT must contain the propagation delay of the links: at least one way for `[link]`, both ways for a route.
fn check_rtt(entry: &Entry<'_>, traffic: &Traffic, links: &[Link]) -> Result<(), ReadError> {
    let one_way = traffic.route.delay(links);
    let (least, what) = match links[0].nodes {
        None => (one_way, "link.delay"),
        Some(_) => (one_way * 2, "twice the delays of its route"),
    };
    if traffic.rtt < least {
        let accepted = format!("at least {what} (\"{least}\"), which is part of it");
        return Err(entry.at("rtt").refuse(accepted));
    }
    Ok(())
}

fn check_times(entry: &Entry<'_>, traffic: &Traffic, duration: Duration) -> Result<(), ReadError> {
    let latest = traffic.start.1;
    if latest >= traffic.stop.min(duration) {
        let before = match traffic.stop < duration {
            true => format!("before its stop (\"{}\")", traffic.stop),
            false => format!("before the end, experiment.duration (\"{duration}\")"),
        };
        return Err(match entry.at("start") {
            start if start.path != entry.path => start.refuse(before),
            // A test such as rrul, whose load starts later than its probes.
            _ => entry.error(format!("its load starts at \"{latest}\"; must be {before}")),
        });
    }
    Ok(())
}

/// TCP with unlimited data needs a limit: a queue on its path, or a window.
fn check_unlimited(entry: &Entry<'_>, traffic: &Traffic, links: &[Link]) -> Result<(), ReadError> {
    let without_end = match &traffic.kind {
        Kind::Bulk(tcp) => tcp.window.is_none(),
        Kind::OnOff(onoff) => {
            matches!(&onoff.transport, Transport::Tcp(tcp, None) if tcp.window.is_none())
        }
        _ => false,
    };
    let is_limited = |way| {
        let hops = traffic.route.hops(way);
        hops.iter().any(|hop| is_queued(links, *hop))
    };
    let unlimited = ways(traffic.direction)
        .iter()
        .find(|way| !is_limited(**way));
    let Some(way) = unlimited.filter(|_| without_end) else {
        return Ok(());
    };
    Err(match links[0].nodes {
        None => {
            entry.error("sends upwards without a limit; must have link.up with a rate, or a window")
        }
        Some(_) => {
            let hops = traffic.route.hops(*way).into_iter();
            let keys = hops.map(|hop| format!("link.{}.up", links[hop.link].name));
            let keys = keys.collect::<Vec<_>>().join(" or ");
            entry.error(format!(
                "sends without a limit against the direction of its links, where they have no queue; must have {keys} with a \
                 rate, or a window"
            ))
        }
    })
}

/// A byte limit must hold the largest packet, which could otherwise never pass.
/// Keys of an arm for the reverse direction belong to a link that has a queue there.
fn check_up(file: &Entry<'_>, experiment: &Experiment) -> Result<(), ReadError> {
    for (index, queue) in experiment.queues.iter().enumerate() {
        let mut egresses = queues(experiment, index).into_iter();
        if queue.up.is_some() && !egresses.any(|egress| egress.owner == Owner::ComparisonUp) {
            let entry = file.at(&format!("queue.{index}.up"));
            return Err(
                entry.refuse("left out: no link under test has a rate in that direction, link.up")
            );
        }
    }
    Ok(())
}

fn check_sizes(file: &Entry<'_>, experiment: &Experiment) -> Result<(), ReadError> {
    let lengths = experiment
        .traffic
        .iter()
        .map(|traffic| u64::from(largest_packet(&traffic.kind)));
    let longest = lengths.max().unwrap_or(0);
    let overheads = experiment.links.iter().map(|link| link.overhead);
    let largest = longest + u64::from(overheads.max().unwrap_or(0));
    let holds = |limit: Option<Buffer>, frame: u64, path: &str| match limit {
        Some(Buffer::Bytes(bytes)) if bytes < frame => Err(file.at(path).refuse(format!(
            "at least the largest frame of this traffic (\"{frame} B\")"
        ))),
        _ => Ok(()),
    };
    let own = |queue: &Queue| queue.limit;
    for (number, link) in experiment.links.iter().enumerate() {
        let frame = longest + u64::from(link.overhead);
        let path = match link.nodes {
            None => "link".into(),
            Some(_) => format!("link.{number}"),
        };
        holds(link.buffer, frame, &format!("{path}.buffer"))?;
        let limit = link.queue.as_ref().and_then(own);
        holds(limit, frame, &format!("{path}.queue.limit"))?;
        if let Some(up) = &link.up {
            holds(up.buffer, frame, &format!("{path}.up.buffer"))?;
            let limit = up.queue.as_ref().and_then(own);
            holds(limit, frame, &format!("{path}.up.queue.limit"))?;
        }
    }
    for (index, queue) in experiment.queues.iter().enumerate() {
        holds(own(queue), largest, &format!("queue.{index}.limit"))?;
        let of_up = queue.up.as_deref().and_then(own);
        holds(of_up, largest, &format!("queue.{index}.up.limit"))?;
    }
    Ok(())
}
