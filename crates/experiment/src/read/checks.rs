//! What must hold between sections.

use std::collections::HashMap;

use sojourn_units::Duration;

use crate::derived::{group_names, largest_packet};
use crate::error::ReadError;
use crate::model::{Buffer, Direction, Experiment, Kind, Queue, Traffic, Transport};
use crate::section::Entry;

/// The most bins of a time series: a row each, per run.
const MOST_BINS: u64 = 10_000_000;

/// Checks an experiment as a whole and gives it the groups of traffic, by the entries of the file that make them.
/// Traffic that has no end or a late one ends with the run.
///
/// # Errors
/// At the value of `file` that does not go with the others.
pub(super) fn check(
    file: &Entry<'_>,
    experiment: &mut Experiment,
    groups: Vec<Vec<Traffic>>,
) -> Result<(), ReadError> {
    let duration = experiment.duration;
    // Of each group the number of the entry that makes it.
    let mut entries = Vec::new();
    for (index, groups) in groups.into_iter().enumerate() {
        for mut traffic in groups {
            check_times(file, index, &traffic, duration, experiment.link.delay)?;
            if experiment.link.up.is_none() {
                check_upload(file, index, &traffic)?;
            }
            traffic.stop = traffic.stop.min(duration);
            experiment.traffic.push(traffic);
            entries.push(index);
        }
    }
    check_names(file, experiment, &entries)?;
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

/// No two groups may share a name, a default one included.
fn check_names(
    file: &Entry<'_>,
    experiment: &Experiment,
    entries: &[usize],
) -> Result<(), ReadError> {
    let mut first = HashMap::new();
    for (group, name) in group_names(experiment).into_iter().enumerate() {
        if let Some(twin) = first.insert(name.clone(), group) {
            // One of the two has the name from the file.
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

fn check_times(
    file: &Entry<'_>,
    index: usize,
    traffic: &Traffic,
    duration: Duration,
    delay: Duration,
) -> Result<(), ReadError> {
    if traffic.rtt < delay {
        let least = format!("at least link.delay (\"{delay}\"), which is part of it");
        return Err(file.at(&format!("traffic.{index}.rtt")).refuse(least));
    }
    let latest = traffic.start.1;
    if latest >= traffic.stop.min(duration) {
        let entry = file.at(&format!("traffic.{index}"));
        let before = format!("before the end, experiment.duration (\"{duration}\")");
        return Err(match entry.at("start") {
            start if start.path != entry.path => start.refuse(before),
            // The load of a test that probes for a while first.
            _ => entry.error(format!("its load starts at \"{latest}\"; must be {before}")),
        });
    }
    Ok(())
}

/// TCP with always more to send needs something that limits it, and the reverse path without a bottleneck has nothing.
fn check_upload(file: &Entry<'_>, index: usize, traffic: &Traffic) -> Result<(), ReadError> {
    let without_end = match &traffic.kind {
        Kind::Bulk(tcp) => tcp.window.is_none(),
        Kind::OnOff(onoff) => {
            matches!(&onoff.transport, Transport::Tcp(tcp, None) if tcp.window.is_none())
        }
        _ => false,
    };
    if !without_end || traffic.direction == Direction::Down {
        return Ok(());
    }
    let entry = file.at(&format!("traffic.{index}"));
    Err(entry.error(
        "sends up all that TCP takes; must have link.up with a rate, or a window, as nothing else limits it",
    ))
}

/// A limit in bytes has to hold the largest packet, which would never get through otherwise.
fn check_sizes(file: &Entry<'_>, experiment: &Experiment) -> Result<(), ReadError> {
    let lengths = experiment
        .traffic
        .iter()
        .map(|traffic| u64::from(largest_packet(&traffic.kind)));
    let frame = lengths.max().unwrap_or(0) + u64::from(experiment.link.overhead);
    let holds = |limit: Option<Buffer>, path: &str| match limit {
        Some(Buffer::Bytes(bytes)) if bytes < frame => Err(file.at(path).refuse(format!(
            "at least the largest frame of this traffic (\"{frame} B\")"
        ))),
        _ => Ok(()),
    };
    let own = |queue: &Queue| queue.limit;
    holds(experiment.link.buffer, "link.buffer")?;
    if let Some(up) = &experiment.link.up {
        holds(up.buffer, "link.up.buffer")?;
        holds(up.queue.as_ref().and_then(own), "link.up.queue.limit")?;
    }
    for (index, queue) in experiment.queues.iter().enumerate() {
        holds(own(queue), &format!("queue.{index}.limit"))?;
    }
    Ok(())
}
