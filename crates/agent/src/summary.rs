//! A recording as results, in the schema of every backend.

use std::collections::BTreeMap;

use serde::Serialize;
use sojourn_experiment::jitter::Jitter;
use sojourn_experiment::loss_events::{LossEvents, Population};
use sojourn_experiment::model::{Browsing, Direction, Experiment, Kind};
use sojourn_experiment::result::{Bottleneck, Column, Flow, Quantiles, RunResult, Spread, Table};
use sojourn_experiment::{derived, emodel};
use sojourn_units::{Duration, Time};

use crate::capture;
use crate::disciplines::{Counters, counters};
use crate::job::Job;
use crate::recording::{Fate, FlowFigures, PacketRow, QueueFigures, Recording};

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

/// The directions in the order of the queues.
const DIRECTIONS: [&str; 2] = ["down", "up"];

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
    let mut bottleneck = BTreeMap::new();
    for (index, (of, figures)) in job.bottlenecks.iter().zip(&recording.queues).enumerate() {
        let Some(counted) = counters(&of.aqm, &of.leaf, &figures.at_end) else {
            invalid.push(format!(
                "tc showed no counters of {} at {}",
                of.aqm, of.device
            ));
            continue;
        };
        attribute_drops(&mut packets, index, counted);
        let rows = packets.iter().filter(|row| usize::from(row.queue) == index);
        let figures = figures_of(experiment, seed, index, rows, counted);
        bottleneck.insert(DIRECTIONS[index], figures);
    }
    LinuxRun {
        kernel: recording.kernel,
        invalid,
        result: RunResult {
            queue: arm.aqm.clone(),
            label: arm.label.clone(),
            seed,
            bottleneck,
            timeouts: recording.timeouts,
            flows: flows(experiment, seed, &recording.flows, &packets),
            simulated_s: experiment.duration.as_secs_f64(),
            wall_s,
            events: recording.events,
            queue_series: experiment
                .record
                .series
                .map(|width| queue_series(job, width, &packets, &recording.queues)),
            flow_series: experiment
                .record
                .series
                .map(|width| flow_series(width, &recording.flows)),
            capture: experiment.record.pcap.then(|| Table {
                columns: vec![("pcapng", Column::U8(capture::pcapng(&recording.captured)))],
            }),
            rtts: experiment.record.rtt.then(|| rtts(&recording.flows)),
            completions: None,
            packets: experiment.record.packets.then(|| packet_table(&packets)),
            ..RunResult::default()
        }
        .with_totals(experiment),
    }
}

/// Gives every drop whose reason the kernel left out one of the two: all the same one if the counters know only that,
/// else the longest waits, which a full queue makes, to the lack of room.
fn attribute_drops(packets: &mut [PacketRow], queue: usize, counted: Counters) {
    let mut unknown: Vec<&mut PacketRow> = packets
        .iter_mut()
        .filter(|row| usize::from(row.queue) == queue && row.fate == Fate::Dropped)
        .collect();
    let overflow = counted.overflow.min(counted.dropped);
    if overflow > 0 && overflow < counted.dropped {
        unknown.sort_by_key(|row| std::cmp::Reverse(row.settled_ns - row.entered_ns));
    }
    let share = overflow as usize;
    let last = if overflow == counted.dropped {
        unknown.len()
    } else {
        share
    };
    for (index, row) in unknown.into_iter().enumerate() {
        row.fate = if index < last {
            Fate::DroppedOverflow
        } else {
            Fate::DroppedAqm
        };
    }
}

const fn delivered(row: &PacketRow) -> bool {
    matches!(row.fate, Fate::Delivered | Fate::Marked)
}

fn figures_of<'a>(
    experiment: &Experiment,
    seed: u64,
    index: usize,
    rows: impl Iterator<Item = &'a PacketRow> + Clone,
    counted: Counters,
) -> Bottleneck {
    let warmup_ns = experiment.warmup.as_nanos();
    let rate = match (&experiment.link.up, index) {
        (Some(up), 1) => &up.rate,
        _ => &experiment.link.rate,
    };
    let capacity = rate.bytes(
        experiment.warmup,
        experiment.duration,
        experiment.link.overhead,
    );
    let losses = loss_events(experiment, seed, index, rows.clone());
    // The kernel's length has an Ethernet header, whatever the link adds.
    let on_link = |row: &PacketRow| u64::from(row.bytes) + u64::from(experiment.link.overhead) - 14;
    let left = rows.filter(|row| delivered(row));
    let steady = left.clone().filter(|row| row.settled_ns >= warmup_ns);
    let mut sojourns: Vec<u64> = steady.clone().map(sojourn_ns).collect();
    sojourns.sort_unstable();
    let startup = left.clone().filter(|row| row.settled_ns < warmup_ns);
    let startup_peak = startup.map(sojourn_ns).max().unwrap_or(0);
    let steady_bytes: u64 = steady.map(on_link).sum();
    Bottleneck {
        sojourn_ms: quantiles(&sojourns),
        startup_peak_ms: startup_peak as f64 / 1e6,
        utilization: if capacity > 0.0 {
            steady_bytes as f64 / capacity
        } else {
            0.0
        },
        delivered_packets: left.clone().count() as u64,
        delivered_bytes: left.map(on_link).sum(),
        dropped_aqm: counted.dropped - counted.overflow,
        dropped_overflow: counted.overflow,
        marked: counted.marked,
        loss_events: losses.count(),
        loss_synchronization: losses.synchronization(),
        ..Bottleneck::default()
    }
}

fn loss_events<'a>(
    experiment: &Experiment,
    seed: u64,
    index: usize,
    rows: impl Iterator<Item = &'a PacketRow>,
) -> LossEvents {
    let mut events = LossEvents::new(Population::of_link(experiment, index, seed));
    let warmup_ns = experiment.warmup.as_nanos();
    for row in rows {
        if !delivered(row) && !row.returning && row.settled_ns >= warmup_ns {
            events.on_drop(row.flow, Time::from_nanos(row.settled_ns));
        }
    }
    events
}

const fn sojourn_ns(row: &PacketRow) -> u64 {
    row.settled_ns - row.entered_ns
}

/// The smallest value that at least the share `q` of the sorted values does not exceed.
fn quantile<T: Copy>(sorted: &[T], q: f64) -> Option<T> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

fn quantiles(sorted_ns: &[u64]) -> Quantiles {
    let at = |q: f64| quantile(sorted_ns, q).map(|nanos| nanos as f64 / 1e6);
    let sum: u128 = sorted_ns.iter().map(|nanos| u128::from(*nanos)).sum();
    let n = sorted_ns.len();
    Quantiles {
        n: n as u64,
        mean: (n > 0).then(|| sum as f64 / n as f64 / 1e6),
        min: at(0.0),
        p1: at(0.01),
        p5: at(0.05),
        p10: at(0.1),
        p25: at(0.25),
        p50: at(0.5),
        p75: at(0.75),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p99_9: at(0.999),
        max: at(1.0),
    }
}

fn spread(micros: &[u32]) -> Spread {
    let mut sorted = micros.to_vec();
    sorted.sort_unstable();
    let at = |q: f64| quantile(&sorted, q).map(|micros| f64::from(micros) / 1e3);
    let n = sorted.len();
    let sum: u64 = sorted.iter().map(|micros| u64::from(*micros)).sum();
    Spread {
        n: n as u64,
        mean: (n > 0).then(|| sum as f64 / n as f64 / 1e3),
        p5: at(0.05),
        p25: at(0.25),
        p50: at(0.5),
        p75: at(0.75),
        p95: at(0.95),
        max: at(1.0),
    }
}

/// What became of a flow's data at the bottlenecks.
#[derive(Clone, Default)]
struct Counts {
    arrived: u64,
    dropped: u64,
    marked: u64,
    /// Delays from the queue on of segments that are more than an acknowledgement and arrive while measuring: virtual
    /// Ethernet takes no time, so that behind the queue there is only the link's own delay.
    one_way_us: Vec<u32>,
}

/// The longest segment without data, SYN or FIN: Ethernet, IPv4 and TCP with timestamps.
const ACKNOWLEDGEMENT: u32 = 66;

fn counts(experiment: &Experiment, flows: usize, packets: &[PacketRow]) -> Vec<Counts> {
    let mut counts = vec![Counts::default(); flows];
    let (delay, warmup) = (experiment.link.delay, experiment.warmup);
    for row in packets.iter().filter(|row| !row.returning) {
        if let Some(own) = counts.get_mut(row.flow as usize) {
            let arrives = Duration::from_nanos(row.settled_ns) + delay;
            if delivered(row) && row.bytes > ACKNOWLEDGEMENT && arrives >= warmup {
                let one_way = Duration::from_nanos(sojourn_ns(row)) + delay;
                own.one_way_us.push(one_way.as_micros() as u32);
            }
            own.arrived += 1;
            own.dropped += u64::from(!delivered(row));
            own.marked += u64::from(row.fate == Fate::Marked);
        }
    }
    counts
}

fn flows(
    experiment: &Experiment,
    seed: u64,
    figures: &[FlowFigures],
    packets: &[PacketRow],
) -> Vec<Flow> {
    let counts = counts(experiment, figures.len(), packets);
    derived::flows(experiment, seed)
        .zip(figures)
        .zip(counts)
        .map(|((flow, figures), counts)| flow_figures(experiment, &flow, figures, &counts))
        .collect()
}

fn flow_figures(
    experiment: &Experiment,
    flow: &derived::Flow<'_>,
    figures: &FlowFigures,
    counts: &Counts,
) -> Flow {
    let traffic = flow.traffic;
    let from = experiment.warmup.max(traffic.start.0);
    let active = traffic.stop.saturating_sub(from).as_secs_f64();
    let bits = (figures.received - figures.received_before) as f64 * 8.0;
    let goodput_bps = if active > 0.0 { bits / active } else { 0.0 };
    let warmup_ns = experiment.warmup.as_nanos();
    let steady = |(at_ns, rtt_us): &(u64, u32)| (*at_ns >= warmup_ns).then_some(*rtt_us);
    let rtts: Vec<u32> = figures.round_trips.iter().filter_map(steady).collect();
    let rtt_ms = spread(&rtts);
    let one_way = match traffic.kind {
        Kind::Ping(_) => None,
        _ if traffic.kind.tcp().is_none() => Some(&figures.one_way_us),
        _ => experiment.record.one_way.then_some(&counts.one_way_us),
    };
    let loads_pages =
        matches!(&traffic.kind, Kind::Web(web) if matches!(web.browsing, Browsing::Pages(_)));
    let completes = matches!(traffic.kind, Kind::Files(_) | Kind::Web(_)) && !loads_pages;
    Flow {
        traffic: flow.group,
        flow: flow.within,
        kind: traffic.kind.name(),
        direction: DIRECTIONS[usize::from(flow.direction == Direction::Up)],
        dscp: traffic.dscp,
        goodput_bps,
        sent_bytes: figures.sent,
        received_bytes: figures.received,
        retransmits: figures.retransmits,
        bottleneck_packets: counts.arrived,
        dropped_packets: counts.dropped,
        marked_packets: counts.marked,
        power_bps_per_s: rtt_ms.mean.map(|rtt_ms| goodput_bps / (rtt_ms / 1000.0)),
        rtt_ms,
        one_way_ms: one_way.map(|delays| spread(delays)),
        jitter_ms: one_way.map(|delays| spread(&jitter(delays))),
        pdv_ms: one_way.map(|delays| spread(&variation(delays))),
        mos: opinion(&traffic.kind, figures),
        lost_packets: figures.datagrams.map(|(sent, arrived)| sent - arrived),
        completion_ms: completes.then(|| spread(&figures.completions_us)),
        page_load_ms: loads_pages.then(|| spread(&figures.page_loads_us)),
        video: matches!(traffic.kind, Kind::Video(_)).then(|| figures.playback.figures()),
    }
}

/// The running estimate of the jitter after each delay.
fn jitter(delays_us: &[u32]) -> Vec<u32> {
    let mut estimate = Jitter::default();
    delays_us
        .iter()
        .filter_map(|delay| estimate.update(Duration::from_micros(u64::from(*delay))))
        .map(|jitter| jitter.as_micros() as u32)
        .collect()
}

/// Each delay above the smallest.
fn variation(delays_us: &[u32]) -> Vec<u32> {
    let least = delays_us.iter().min().copied().unwrap_or(0);
    delays_us.iter().map(|delay| delay - least).collect()
}

/// The opinion score of a call, from its mean delay and its loss (RFC 3550 §A.3) while measuring.
fn opinion(kind: &Kind, figures: &FlowFigures) -> Option<f64> {
    let Kind::Voip(voip) = kind else {
        return None;
    };
    let (first, highest, arrived) = figures.seen?;
    let mean_ms = spread(&figures.one_way_us).mean?;
    let loss = 1.0 - arrived as f64 / (highest - first + 1) as f64;
    let delay = Duration::from_secs_f64(mean_ms / 1000.0);
    Some(emodel::opinion_score(emodel::rating(
        delay, loss, voip.codec,
    )))
}

fn packet_table(packets: &[PacketRow]) -> Table {
    let bytes = |of: fn(&PacketRow) -> u8| Column::U8(packets.iter().map(of).collect());
    let words = |of: fn(&PacketRow) -> u32| Column::U32(packets.iter().map(of).collect());
    let longs = |of: fn(&PacketRow) -> u64| Column::U64(packets.iter().map(of).collect());
    Table {
        columns: vec![
            ("direction", bytes(|row| row.queue)),
            ("time_ns", longs(|row| row.settled_ns)),
            ("sojourn_ns", longs(sojourn_ns)),
            ("flow", words(|row| row.flow)),
            ("bytes", words(|row| row.bytes)),
            ("returning", bytes(|row| u8::from(row.returning))),
            ("fate", bytes(fate)),
        ],
    }
}

/// The numbers of the `fate` column.
const fn fate(row: &PacketRow) -> u8 {
    match row.fate {
        Fate::Delivered => 0,
        Fate::Marked => 1,
        Fate::DroppedAqm => 2,
        Fate::DroppedOverflow | Fate::Dropped => 3,
    }
}

/// One bin of one queue.
#[derive(Clone, Copy, Default)]
struct Bin {
    packets: u64,
    sum_ns: u64,
    longest_ns: u64,
    backlog_packets: u64,
    backlog_bytes: u64,
}

/// The bins of one queue. The backlog at a bin's end is what had entered by then and was not settled.
fn bins(packets: &[PacketRow], queue: usize, width_ns: u64, count: usize) -> Vec<Bin> {
    let mut bins = vec![Bin::default(); count];
    for row in packets.iter().filter(|row| usize::from(row.queue) == queue) {
        let (from, to) = (row.entered_ns / width_ns, row.settled_ns / width_ns);
        for bin in bins.iter_mut().take(to as usize).skip(from as usize) {
            bin.backlog_packets += 1;
            bin.backlog_bytes += u64::from(row.bytes);
        }
        if delivered(row)
            && let Some(bin) = bins.get_mut(to as usize)
        {
            bin.packets += 1;
            bin.sum_ns += sojourn_ns(row);
            bin.longest_ns = bin.longest_ns.max(sojourn_ns(row));
        }
    }
    bins
}

fn queue_series(
    job: &Job,
    width: Duration,
    packets: &[PacketRow],
    queues: &[QueueFigures],
) -> Table {
    let count = (job.duration_ns / width.as_nanos()) as usize;
    let each: Vec<(usize, Vec<Bin>, Vec<Counters>)> = job
        .bottlenecks
        .iter()
        .zip(queues)
        .enumerate()
        .map(|(index, (of, figures))| {
            let counted = figures
                .series
                .iter()
                .map(|shown| counters(&of.aqm, &of.leaf, shown).unwrap_or_default());
            (
                index,
                bins(packets, index, width.as_nanos(), count),
                counted.collect(),
            )
        })
        .collect();
    // A row per bin and queue, as the simulator has them.
    let rows: Vec<(f64, usize, Bin, Counters)> = (0..count)
        .flat_map(|bin| {
            let time_s = width.as_secs_f64() * bin as f64;
            each.iter().map(move |(index, bins, counted)| {
                (
                    time_s,
                    *index,
                    bins[bin],
                    counted.get(bin).copied().unwrap_or_default(),
                )
            })
        })
        .collect();
    let floats =
        |of: fn(&(f64, usize, Bin, Counters)) -> f64| Column::F64(rows.iter().map(of).collect());
    let longs =
        |of: fn(&(f64, usize, Bin, Counters)) -> u64| Column::U64(rows.iter().map(of).collect());
    Table {
        columns: vec![
            ("time_s", floats(|row| row.0)),
            (
                "direction",
                Column::U8(rows.iter().map(|row| row.1 as u8).collect()),
            ),
            ("packets", longs(|row| row.2.packets)),
            (
                "sojourn_mean_ms",
                floats(|row| row.2.sum_ns as f64 / row.2.packets as f64 / 1e6),
            ),
            (
                "sojourn_max_ms",
                floats(|row| row.2.longest_ns as f64 / 1e6),
            ),
            ("backlog_packets", longs(|row| row.2.backlog_packets)),
            ("backlog_bytes", longs(|row| row.2.backlog_bytes)),
            ("dropped", longs(|row| row.3.dropped)),
            ("marked", longs(|row| row.3.marked)),
            (
                "probability",
                floats(|row| row.3.probability.unwrap_or(f64::NAN)),
            ),
        ],
    }
}

fn flow_series(width: Duration, flows: &[FlowFigures]) -> Table {
    let count = flows
        .iter()
        .map(|flow| flow.series.len())
        .max()
        .unwrap_or(0);
    let mut table: (Vec<f64>, Vec<u32>, Vec<f64>, Vec<f64>) = Default::default();
    let mut rtt_ms = Vec::new();
    let means: Vec<Vec<f64>> = flows
        .iter()
        .map(|flow| mean_rtts_ms(&flow.round_trips, width, count))
        .collect();
    for bin in 0..count {
        for (number, flow) in flows.iter().enumerate() {
            let Some((received, window)) = flow.series.get(bin) else {
                continue;
            };
            rtt_ms.push(means[number].get(bin).copied().unwrap_or(f64::NAN));
            let before = bin.checked_sub(1).map_or(0, |before| flow.series[before].0);
            table.0.push(width.as_secs_f64() * bin as f64);
            table.1.push(number as u32);
            table
                .2
                .push((received - before) as f64 * 8.0 / width.as_secs_f64());
            table.3.push(window.map_or(f64::NAN, f64::from));
        }
    }
    Table {
        columns: vec![
            ("time_s", Column::F64(table.0)),
            ("flow", Column::U32(table.1)),
            ("goodput_bps", Column::F64(table.2)),
            ("cwnd_segments", Column::F64(table.3)),
            ("rtt_ms", Column::F64(rtt_ms)),
        ],
    }
}

/// The mean of the round-trip times in each bin; NaN where there are none. A sample at a bin's end is the bin's.
fn mean_rtts_ms(round_trips: &[(u64, u32)], width: Duration, count: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); count];
    for (at_ns, rtt_us) in round_trips {
        let bin = at_ns.saturating_sub(1) / width.as_nanos();
        if let Some((sum, n)) = sums.get_mut(bin as usize) {
            *sum += f64::from(*rtt_us) / 1e3;
            *n += 1.0;
        }
    }
    sums.iter().map(|(sum, n)| sum / n).collect()
}

/// Every round-trip time, flow by flow.
fn rtts(flows: &[FlowFigures]) -> Table {
    let rows: Vec<(u64, u32, u64)> = flows
        .iter()
        .zip(0..)
        .flat_map(|(flow, number)| {
            let of =
                move |(at_ns, rtt_us): &(u64, u32)| (*at_ns, number, u64::from(*rtt_us) * 1000);
            flow.round_trips.iter().map(of)
        })
        .collect();
    Table {
        columns: vec![
            (
                "time_ns",
                Column::U64(rows.iter().map(|row| row.0).collect()),
            ),
            ("flow", Column::U32(rows.iter().map(|row| row.1).collect())),
            (
                "rtt_ns",
                Column::U64(rows.iter().map(|row| row.2).collect()),
            ),
        ],
    }
}

#[cfg(test)]
mod tests;
