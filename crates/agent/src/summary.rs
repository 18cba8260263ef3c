//! Computes the results of a run from its recording: by a `replay`, and with the figures that only Linux provides.

use serde::Serialize;
use sojourn_experiment::derived::{self, Egress};
use sojourn_experiment::measured;
use sojourn_experiment::model::{Capacity, Experiment};
use sojourn_measure::meter::Packets;
use sojourn_measure::result::{Bottleneck, RunResult};
use sojourn_measure::summary::{Measured, summarise as figures};
use sojourn_units::{Carried, Duration, Hop, Time, Way};

use crate::appeared::{self, without_traffic};
use crate::capture;
use crate::disciplines::Counters;
use crate::recording::{Fate, Lateness, PacketRow, Recording};
use crate::replay::{Replayed, on_link, replay};

/// A run on Linux: the figures of every backend, and those of this one only.
#[derive(Clone, Debug, Serialize)]
pub struct LinuxRun {
    /// The figures.
    #[serde(flatten)]
    pub result: RunResult,
    /// Of runs on Linux and of real packets: the kernel's release.
    pub kernel: String,
    /// How late packets were delivered: from the instant at which a packet should have arrived. Only of real packets, like
    /// the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ms: Option<Lateness>,
    /// The CPU time of the thread that carried the packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_cpu_s: Option<f64>,
    /// What the user should know about the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
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
    given: &Experiment,
    queue: usize,
    seed: u64,
    mut recording: Recording,
    wall_s: f64,
) -> LinuxRun {
    let arm = &given.queues[queue];
    let invalid = recording.faults.clone();
    let path = recording.path.take().unwrap_or_default();
    let programs;
    let mut experiment = given;
    if let Some((length_ns, _)) = &path.appeared {
        programs = without_traffic(experiment, Duration::from_nanos(*length_ns));
        experiment = &programs;
    }
    let egresses = derived::queues(experiment, queue);
    for (index, figures) in recording.queues.iter().enumerate() {
        attribute_drops(&mut recording.packets, index, figures.at_end);
    }
    let mut scope = measured::scope(experiment, queue, seed);
    if let Some((_, appeared)) = &path.appeared {
        let route = derived::whole_route(given).unwrap_or_default();
        appeared::add(&mut scope, experiment, &route, appeared, &mut recording);
    }
    let Replayed {
        probes,
        mut meters,
        series,
    } = replay(&scope, &egresses, &recording);
    let mut dropped = vec![0; meters.len()];
    for row in recording.packets.iter().filter(|row| row.is_dropped()) {
        dropped[row.flow as usize] += 1;
    }
    for (meter, dropped) in meters.iter_mut().zip(dropped) {
        if let Some(packets) = &mut meter.packets {
            packets.on_their_way = match recording.impaired[..] {
                [] => packets.sent.saturating_sub(packets.arrived + dropped),
                _ => after_the_latest(packets),
            };
        }
    }
    let queues = egresses.iter().enumerate().filter_map(|(index, egress)| {
        let counted = recording.queues.get(index)?.at_end;
        let rows = || {
            let rows = recording.packets.iter();
            rows.filter(move |row| usize::from(row.queue) == index)
        };
        let of_cell = path.used.iter().find(|(of, _)| *of == index);
        let used = of_cell.map_or_else(
            || utilization(experiment, egress, rows().filter(|row| row.is_delivered())),
            |(_, share)| *share,
        );
        let seen = || rows().filter(|row| row.fate == Fate::Marked).count() as u64;
        // The discipline's own counters, because the kernel may not give the reason of each drop.
        let figures = Bottleneck {
            dropped_aqm: counted.dropped - counted.overflow,
            dropped_overflow: counted.overflow,
            ..probes[index].figures(used, counted.marked.unwrap_or_else(seen))
        };
        let impaired = recording.impaired.iter().find(|of| is_at(of, egress.hop));
        let figures = Bottleneck {
            lost_packets: impaired.map(|(_, _, lost, _)| *lost),
            duplicated_packets: impaired.and_then(|(_, _, _, twice)| *twice),
            ..figures
        };
        Some((egress.hop, figures))
    });
    let measured = Measured {
        queues: queues.collect(),
        probes,
        cells: path.cells,
        media: None,
        meters: meters.iter_mut().collect(),
        series,
        capture: experiment.record.pcap.map(|_| {
            let interfaces = capture::interfaces(experiment);
            capture::pcapng(&recording.captured, &interfaces)
        }),
    };
    let without_queue = recording.impaired.iter().filter(|(link, up, ..)| {
        let way = if *up { Way::Up } else { Way::Down };
        !derived::is_queued(&experiment.links, Hop { link: *link, way })
    });
    let name = |(link, up, lost, _): &(usize, bool, u64, Option<u64>)| {
        let way = if *up { Way::Up } else { Way::Down };
        (format!("{}/{}", scope.links[*link], way.name()), *lost)
    };
    LinuxRun {
        lateness_ms: (path.lateness.n > 0).then_some(path.lateness),
        path_cpu_s: (path.lateness.n > 0).then_some(path.cpu_s),
        notes: path.notes,
        kernel: recording.kernel,
        invalid,
        result: RunResult {
            queue: arm.aqm.clone(),
            label: arm.label.clone(),
            seed,
            lost_packets: without_queue.map(name).collect(),
            timeouts: recording.timeouts,
            wall_s,
            events: recording.events,
            ..figures(&scope, measured)
        },
    }
}

/// True if figures of an impaired direction are those of this one.
fn is_at((link, up, ..): &(usize, bool, u64, Option<u64>), hop: Hop) -> bool {
    (*link, *up) == (hop.link, hop.way == Way::Up)
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

/// The datagrams sent after the latest that arrived. netem does not say whose packets it lost; those behind the latest arrival
/// count as on their way. Echoes have no numbers.
fn after_the_latest(packets: &Packets) -> u64 {
    let one_way = packets.one_way.as_ref();
    let latest = one_way.and_then(|one_way| one_way.seen);
    latest.map_or(0, |(_, highest, _)| {
        packets.sent.saturating_sub(u64::from(highest) + 1)
    })
}

/// The share of the capacity used after the warm-up. The time on the link follows from a packet's departure and the
/// token bucket, as in the simulator: a packet in transmission at either end counts in part.
fn utilization<'a>(
    experiment: &Experiment,
    egress: &Egress<'_>,
    left: impl Iterator<Item = &'a PacketRow>,
) -> f64 {
    let Capacity::Steps(rates) = egress.capacity else {
        // Of a trace, on Sojourn's own path: the bytes that it could have carried.
        let since = Time::ZERO + experiment.warmup;
        let sent = left.filter(|row| Time::from_nanos(row.settled_ns) >= since);
        let bytes: u64 = sent.map(|row| u64::from(on_link(egress.link, row))).sum();
        let span = experiment.duration.saturating_sub(experiment.warmup);
        return bytes as f64 / (egress.capacity.nominal().bytes_per_sec() * span.as_secs_f64());
    };
    let mut carried = Carried::new(rates, experiment.warmup, experiment.duration);
    let mut free = Time::ZERO;
    for row in left {
        let now = Time::from_nanos(row.settled_ns);
        let rate = egress.capacity.at(now);
        let begin = free.max(now.saturating_sub(rate.tx_time(egress.link.burst)));
        free = begin + rate.tx_time(on_link(egress.link, row).into());
        carried.send(begin, free);
    }
    carried.share()
}

#[cfg(test)]
mod tests;
