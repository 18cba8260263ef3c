//! Computes the results of a run from its recording: by a `replay`, and with the figures that only Linux provides.

use serde::Serialize;
use sojourn_experiment::derived::{self, QueuePlace};
use sojourn_experiment::measured;
use sojourn_experiment::model::{Capacity, Experiment};
use sojourn_measure::result::{Bottleneck, RunResult};
use sojourn_measure::summary::{Measured, summarise as figures};
use sojourn_units::{Carried, Time};

use crate::capture;
use crate::disciplines::Counters;
use crate::recording::{Fate, PacketRow, Recording};
use crate::replay::{Replayed, on_link, replay};

/// A run on Linux: the figures of every backend, and those of this one only.
#[derive(Clone, Debug, Serialize)]
pub struct LinuxRun {
    /// The figures.
    #[serde(flatten)]
    pub result: RunResult,
    /// The kernel's release.
    pub kernel: String,
    /// Why the run is invalid; absent if it is valid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
}

impl AsMut<RunResult> for LinuxRun {
    fn as_mut(&mut self) -> &mut RunResult {
        &mut self.result
    }
}

/// The results of a recording of arm number `queue` with `seed`.
pub fn summarise(
    experiment: &Experiment,
    queue: usize,
    seed: u64,
    mut recording: Recording,
    wall_s: f64,
) -> LinuxRun {
    let arm = &experiment.queues[queue];
    let invalid = recording.faults.clone();
    let places = derived::queues(experiment, queue);
    for (index, figures) in recording.queues.iter().enumerate() {
        attribute_drops(&mut recording.packets, index, figures.at_end);
    }
    let scope = measured::scope(experiment, queue, seed);
    let Replayed {
        probes,
        mut meters,
        series,
    } = replay(&scope, &places, &recording);
    let queues = places.iter().enumerate().filter_map(|(index, place)| {
        let counted = recording.queues.get(index)?.at_end;
        let rows = || {
            let rows = recording.packets.iter();
            rows.filter(move |row| usize::from(row.queue) == index)
        };
        let used = utilization(experiment, place, rows().filter(|row| row.is_delivered()));
        let seen = || rows().filter(|row| row.fate == Fate::Marked).count() as u64;
        // The discipline's own counters, because the kernel may not give the reason of each drop.
        let figures = Bottleneck {
            dropped_aqm: counted.dropped - counted.overflow,
            dropped_overflow: counted.overflow,
            ..probes[index].figures(used, counted.marked.unwrap_or_else(seen))
        };
        Some((place.hop, figures))
    });
    let measured = Measured {
        queues: queues.collect(),
        probes,
        cells: Vec::new(),
        media: None,
        meters: meters.iter_mut().collect(),
        series,
        capture: experiment.record.pcap.map(|_| {
            let interfaces = capture::interfaces(experiment);
            capture::pcapng(&recording.captured, &interfaces)
        }),
    };
    LinuxRun {
        kernel: recording.kernel,
        invalid,
        result: RunResult {
            queue: arm.aqm.clone(),
            label: arm.label.clone(),
            seed,
            timeouts: recording.timeouts,
            wall_s,
            events: recording.events,
            ..figures(&scope, measured)
        },
    }
}

/// Assigns a reason to drops without one, if the counters know only one reason. With both reasons, the overflow drops
/// of a queue cannot be told apart by their sojourn times: they may be packets just arrived, or packets at the head.
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

/// The share of the capacity used after the warm-up. The time on the link follows from a packet's departure and the
/// token bucket, as in the simulator: a packet in transmission at either end counts in part.
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
        let rate = place.capacity.at(now);
        let begin = free.max(now.saturating_sub(rate.tx_time(place.link.burst)));
        free = begin + rate.tx_time(on_link(place.link, row).into());
        carried.send(begin, free);
    }
    carried.share()
}

#[cfg(test)]
mod tests;
