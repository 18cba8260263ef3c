//! A recording as results, in the schema of every backend: queues here, flows and tables in files of their own.

use serde::Serialize;
use sojourn_experiment::derived::{self, QueuePlace};
use sojourn_experiment::model::{Capacity, Experiment, Hop, Link};
use sojourn_measure::distribution::{Quantiles, histogram, nearest_rank};
use sojourn_measure::loss_events::{LossEvents, Population};
use sojourn_measure::result::{Bottleneck, Column, RunResult, Table};
use sojourn_units::{Carried, Time};

use crate::capture;
use crate::disciplines::{Counters, counters};
use crate::job::Job;
use crate::recording::{Fate, PacketRow, Recording};
use crate::topology::ETHERNET;

mod flows;
mod tables;

/// A run on Linux: the figures of every backend, and what only this one can say.
#[derive(Clone, Debug, Serialize)]
pub struct LinuxRun {
    /// The figures.
    #[serde(flatten)]
    pub result: RunResult,
    /// The kernel's release.
    pub kernel: String,
    /// Why the run is not to be trusted; absent if it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
}

impl AsMut<RunResult> for LinuxRun {
    fn as_mut(&mut self) -> &mut RunResult {
        &mut self.result
    }
}

/// The results of a recording of arm number `queue` with `seed`, made with `job`.
pub fn summarise(
    experiment: &Experiment,
    queue: usize,
    seed: u64,
    job: &Job,
    recording: Recording,
    wall_s: f64,
) -> LinuxRun {
    let arm = &experiment.queues[queue];
    let mut invalid = recording.faults.clone();
    let mut packets = recording.packets;
    let places = derived::queues(experiment, queue);
    let (mut queues, mut histograms) = (Vec::new(), Vec::new());
    for (index, (of, figures)) in job.bottlenecks.iter().zip(&recording.queues).enumerate() {
        let place = &places[index];
        let Some(counted) = counters(&of.aqm, &of.leaf, &figures.at_end) else {
            invalid.push(format!(
                "tc showed no counters of {} at {}",
                of.aqm, of.device
            ));
            continue;
        };
        attribute_drops(&mut packets, index, counted);
        let rows = packets.iter().filter(|row| usize::from(row.queue) == index);
        let sojourns = steady_sojourns(experiment, rows.clone());
        histograms.push(histogram_of(place.hop, &sojourns));
        let figures = figures_of(experiment, seed, place, rows, &sojourns, counted);
        queues.push((place.hop, figures));
    }
    let (flows, groups) = flows::figures(experiment, seed, &places, &recording.flows, &packets);
    LinuxRun {
        kernel: recording.kernel,
        invalid,
        result: RunResult {
            queue: arm.aqm.clone(),
            label: arm.label.clone(),
            seed,
            timeouts: recording.timeouts,
            flows,
            groups,
            histogram: histograms.into_iter().reduce(Table::stacked),
            simulated_s: experiment.duration.as_secs_f64(),
            wall_s,
            events: recording.events,
            queue_series: experiment.record.series.map(|width| {
                tables::queue_series(job, &places, width, &packets, &recording.queues)
            }),
            flow_series: experiment
                .record
                .series
                .map(|width| tables::flow_series(width, &recording.flows)),
            capture: experiment.record.pcap.map(|_| {
                let interfaces = capture::interfaces(experiment);
                let file = capture::pcapng(&recording.captured, &interfaces);
                Table {
                    columns: vec![("pcapng", Column::U8(file))],
                }
            }),
            rtts: experiment
                .record
                .rtt
                .then(|| tables::rtts(&recording.flows)),
            completions: None,
            packets: experiment
                .record
                .packets
                .then(|| tables::packet_table(&places, &packets)),
            ..RunResult::default()
        }
        .with_totals(
            experiment.links.iter().map(|link| link.name.clone()),
            &experiment.bottleneck().name,
            queues,
        ),
    }
}

/// Gives drops whose reason the kernel left out the one that the counters know, if they know only one. Which drops of a
/// queue were for want of room cannot be told from their waits: they may be of packets just come, or of those at the head.
fn attribute_drops(packets: &mut [PacketRow], queue: usize, counted: Counters) {
    let fate = match counted.overflow {
        0 => Fate::DroppedAqm,
        overflow if overflow >= counted.dropped => Fate::DroppedOverflow,
        _ => return,
    };
    for row in packets {
        if usize::from(row.queue) == queue && row.fate == Fate::Dropped {
            row.fate = fate;
        }
    }
}

/// The sojourn times in nanoseconds of the packets that left after the warm-up, sorted.
fn steady_sojourns<'a>(
    experiment: &Experiment,
    rows: impl Iterator<Item = &'a PacketRow>,
) -> Vec<u64> {
    let warmup_ns = experiment.warmup.as_nanos();
    let steady = rows.filter(|row| row.is_delivered() && row.settled_ns >= warmup_ns);
    let mut sojourns: Vec<u64> = steady.map(PacketRow::sojourn_ns).collect();
    sojourns.sort_unstable();
    sojourns
}

fn histogram_of(queue: Hop, sojourns: &[u64]) -> Table {
    let greatest = sojourns.last().copied().unwrap_or(0);
    histogram(queue, sojourns.iter().map(|nanos| (*nanos, 1)), greatest)
}

fn figures_of<'a>(
    experiment: &Experiment,
    seed: u64,
    place: &QueuePlace<'_>,
    rows: impl Iterator<Item = &'a PacketRow> + Clone,
    sojourns: &[u64],
    counted: Counters,
) -> Bottleneck {
    let warmup_ns = experiment.warmup.as_nanos();
    let losses = loss_events(experiment, seed, place.hop, rows.clone());
    let left = rows.filter(|row| row.is_delivered());
    let startup = left.clone().filter(|row| row.settled_ns < warmup_ns);
    let startup_peak = startup.map(PacketRow::sojourn_ns).max().unwrap_or(0);
    Bottleneck {
        sojourn_ms: quantiles(sojourns),
        startup_peak_ms: startup_peak as f64 / 1e6,
        utilization: utilization(experiment, place, left.clone()),
        delivered_packets: left.clone().count() as u64,
        delivered_bytes: left.map(|row| on_link(place.link, row)).sum(),
        dropped_aqm: counted.dropped - counted.overflow,
        dropped_overflow: counted.overflow,
        marked: counted.marked,
        loss_events: losses.count(),
        loss_synchronization: losses.synchronization(),
        ..Bottleneck::default()
    }
}

/// The share of the capacity used after the warm-up. When each packet was on the link follows from when it left and from
/// the token bucket, as in the simulator: a packet under way at either end counts in part.
fn utilization<'a>(
    experiment: &Experiment,
    place: &QueuePlace<'_>,
    left: impl Iterator<Item = &'a PacketRow>,
) -> f64 {
    let Capacity::Steps(rates) = place.capacity else {
        unreachable!("traces are refused before a run");
    };
    let mut carried = Carried::new(rates, experiment.warmup, experiment.duration);
    let mut free = Time::ZERO;
    for row in left {
        let now = Time::from_nanos(row.settled_ns);
        let in_force = rates.partition_point(|(from, _)| Time::ZERO + *from <= now);
        let (_, rate) = rates[in_force.max(1) - 1];
        let begin = free.max(now.saturating_sub(rate.tx_time(place.link.burst)));
        free = begin + rate.tx_time(on_link(place.link, row));
        carried.send(begin, free);
    }
    carried.share()
}

/// Bytes of a packet on the link. The kernel's length has an Ethernet header, whatever the link adds.
fn on_link(link: &Link, row: &PacketRow) -> u64 {
    u64::from(row.bytes) + u64::from(link.overhead) - u64::from(ETHERNET)
}

fn loss_events<'a>(
    experiment: &Experiment,
    seed: u64,
    queue: Hop,
    rows: impl Iterator<Item = &'a PacketRow>,
) -> LossEvents {
    let flows = derived::flows(experiment, seed).count();
    let responsive = derived::responsive_flows(experiment, queue, seed);
    let mut events = LossEvents::new(Population::new(flows, responsive));
    let warmup_ns = experiment.warmup.as_nanos();
    for row in rows {
        if !row.is_delivered() && !row.returning && row.settled_ns >= warmup_ns {
            events.on_drop(row.flow, Time::from_nanos(row.settled_ns));
        }
    }
    events
}

/// The quantiles of sorted values in nanoseconds, in milliseconds.
fn quantiles(sorted_ns: &[u64]) -> Quantiles {
    let sum: u128 = sorted_ns.iter().map(|nanos| u128::from(*nanos)).sum();
    let mean = sum as f64 / sorted_ns.len() as f64 / 1e6;
    let at = |share| nearest_rank(sorted_ns, share).map_or(f64::NAN, |nanos| nanos as f64 / 1e6);
    Quantiles::of(sorted_ns.len() as u64, mean, at)
}

#[cfg(test)]
mod tests;
