//! What must hold between sections.

use sojourn_units::Duration;

use crate::error::ReadError;
use crate::model::{Buffer, Experiment, Kind, Queue, Traffic};
use crate::section::Entry;

/// IPv4 (20), TCP (20) and its timestamps (12).
const TCP_HEADERS: u64 = 52;
/// IPv4 (20) and UDP (8).
const UDP_HEADERS: u64 = 28;
/// The payload of an echo request with its ICMP (8) and IPv4 (20) headers.
const PING_LENGTH: u64 = 56 + 28;
/// The most bins of a time series: a row each, per run.
const MOST_BINS: u64 = 10_000_000;

/// Checks an experiment as a whole, and ends traffic that has no end or a late one with the run.
///
/// # Errors
/// At the value of `file` that does not go with the others.
pub(super) fn check(file: &Entry<'_>, experiment: &mut Experiment) -> Result<(), ReadError> {
    let duration = experiment.duration;
    for (index, traffic) in experiment.traffic.iter_mut().enumerate() {
        check_times(file, index, traffic, duration, experiment.link.delay)?;
        traffic.stop = traffic.stop.min(duration);
    }
    check_sizes(file, experiment)?;
    if let Some(series) = experiment.record.series
        && duration.as_nanos() / series.as_nanos() > MOST_BINS
    {
        let most = format!("wider: the run has more than {MOST_BINS} such bins");
        return Err(file.at("record.series").refuse(most));
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
    if traffic.start.1 >= duration {
        let before = format!("before the end, experiment.duration (\"{duration}\")");
        return Err(file.at(&format!("traffic.{index}.start")).refuse(before));
    }
    Ok(())
}

/// A limit in bytes has to hold the largest packet, which would never get through otherwise.
fn check_sizes(file: &Entry<'_>, experiment: &Experiment) -> Result<(), ReadError> {
    let lengths = experiment
        .traffic
        .iter()
        .map(|traffic| match &traffic.kind {
            Kind::Bulk(tcp) => u64::from(tcp.mss) + TCP_HEADERS,
            Kind::Files(files) => u64::from(files.tcp.mss) + TCP_HEADERS,
            Kind::Cbr(cbr) => u64::from(cbr.packet) + UDP_HEADERS,
            Kind::Ping(_) => PING_LENGTH,
        });
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
