//! What a run amounts to: figures and tables from what the probes saw.

use sojourn_experiment::derived;
use sojourn_experiment::derived::QueuePlace;
use sojourn_experiment::model::{Codec, Experiment, Hop, Kind};
use sojourn_measure::emodel;
use sojourn_measure::groups::{Pooled, groups};
use sojourn_units::Duration;

use sojourn_path::Link;

use crate::packet::SimPacket;
use crate::probe::{FlowCounts, LinkProbe};
use crate::result::{Bottleneck, Column, Flow, RunResult, Spread, Table, power};
use crate::sampler::{FlowSample, QueueSample, Sampler};
use crate::simulation::{Endpoints, Simulation};
use crate::traffic::{Meter, Source};
use sojourn_measure::delays::Delays;

/// The results of a simulation that has ended, without the names of the arm.
pub fn summarise(
    experiment: &Experiment,
    queue: usize,
    simulation: Simulation,
    seed: u64,
) -> RunResult {
    let Simulation {
        network,
        hosts: Endpoints { mut sources, .. },
        sampler,
        events,
        ..
    } = simulation;
    let names = derived::group_names(experiment);
    let queues = derived::queues(experiment, queue);
    let flows: Vec<Flow> = derived::flows(experiment, seed)
        .zip(&mut sources)
        .map(|(flow, source)| {
            let counts = counts(&queues, &network.observer.probes, &flow);
            Flow {
                name: names[flow.group].clone(),
                ..flow_figures(experiment, &flow, source.meter(), &counts)
            }
        })
        .collect();
    let groups = groups(&flows, |members| pooled(&mut sources[members]));
    let rtts = experiment.record.rtt.then(|| {
        timed("rtt_ns", &mut sources, |meter| {
            meter.recorded.take().unwrap_or_default()
        })
    });
    let completions = sources
        .iter_mut()
        .any(|source| source.meter().completions.is_some())
        .then(|| {
            timed("completion_ns", &mut sources, |meter| {
                std::mem::take(&mut meter.completed)
            })
        });
    let mut figures = Vec::new();
    let (mut packets, mut histogram): (Option<Table>, Option<Table>) = (None, None);
    for (number, place) in queues.iter().enumerate() {
        let (link, probe) = (&network.links()[number], &network.observer.probes[number]);
        figures.push((place.hop, queue_figures(link, probe)));
        histogram = below(histogram, Some(probe.sojourns.table(place.hop)));
    }
    for (place, probe) in queues.iter().zip(network.observer.probes) {
        packets = below(packets, probe.into_table(place.hop));
    }
    RunResult {
        timeouts: sources
            .iter_mut()
            .map(|source| source.meter().timeouts)
            .sum(),
        flows,
        groups,
        simulated_s: experiment.duration.as_secs_f64(),
        events,
        packets,
        capture: network.observer.capture.map(|capture| Table {
            columns: vec![("pcapng", Column::U8(capture.into_bytes()))],
        }),
        queue_series: sampler
            .width
            .map(|width| queue_series(&sampler, &queues, width)),
        flow_series: sampler.width.map(|_| flow_series(&sampler)),
        rtts,
        completions,
        histogram,
        ..RunResult::default()
    }
    .with_totals(
        experiment.links.iter().map(|link| link.name.clone()),
        &experiment.bottleneck().name,
        figures,
    )
}

/// A table with another below it.
fn below(table: Option<Table>, more: Option<Table>) -> Option<Table> {
    match (table, more) {
        (Some(table), Some(more)) => Some(table.stacked(more)),
        (table, more) => table.or(more),
    }
}

fn queue_figures(link: &Link<SimPacket>, probe: &LinkProbe) -> Bottleneck {
    Bottleneck {
        sojourn_ms: probe.sojourns.quantiles(),
        startup_peak_ms: probe.startup_peak.as_millis_f64(),
        utilization: link.utilization(),
        delivered_packets: probe.delivered_packets,
        delivered_bytes: probe.delivered_bytes,
        dropped_aqm: probe.dropped_aqm(),
        dropped_overflow: probe.dropped_overflow(),
        marked: link.marked(),
        drop_delay_ms: probe.drop_delays(),
        loss_events: probe.loss_events.count(),
        loss_synchronization: probe.loss_events.synchronization(),
        queues: probe.inner_queues(),
    }
}

/// What became of a flow's data on its way: what arrived counts at the first queue, drops at all, marks at the last.
fn counts(queues: &[QueuePlace<'_>], probes: &[LinkProbe], flow: &derived::Flow<'_>) -> FlowCounts {
    let hops = flow.traffic.route.hops(flow.way);
    let of_queue = |hop: &Hop| {
        let number = queues.iter().position(|place| place.hop == *hop)?;
        Some(probes[number].flows[flow.number as usize])
    };
    let met: Vec<FlowCounts> = hops.iter().filter_map(of_queue).collect();
    FlowCounts {
        arrived: met.first().map_or(0, |first| first.arrived),
        dropped: met.iter().map(|counts| counts.dropped).sum(),
        marked: met.last().map_or(0, |last| last.marked),
    }
}

fn flow_figures(
    experiment: &Experiment,
    flow: &derived::Flow<'_>,
    meter: &Meter,
    counts: &FlowCounts,
) -> Flow {
    let traffic = flow.traffic;
    let from = experiment.warmup.max(traffic.start.0);
    let active = traffic.stop.saturating_sub(from).as_secs_f64();
    let bits = meter.received_since_warmup() as f64 * 8.0;
    let goodput_bps = if active > 0.0 { bits / active } else { 0.0 };
    let rtt_ms = meter.round_trips.spread();
    let one_way = meter.one_way();
    let mos = match (&traffic.kind, one_way) {
        (Kind::Voip(voip), Some(one_way)) => {
            let measured = one_way.delays.mean().zip(one_way.loss());
            measured.map(|(delay, loss)| {
                let delay =
                    mouth_to_ear(delay, traffic.rtt, traffic.route.delay(&experiment.links));
                emodel::opinion_score(emodel::rating(delay, loss, equipment(voip.codec)))
            })
        }
        _ => None,
    };
    Flow {
        traffic: flow.group,
        flow: flow.within,
        kind: traffic.kind.name(),
        is_over_tcp: traffic.kind.tcp().is_some(),
        direction: flow.way.name(),
        dscp: traffic.dscp,
        goodput_bps,
        sent_bytes: meter.sent,
        received_bytes: meter.received,
        retransmits: meter.retransmits,
        bottleneck_packets: counts.arrived,
        dropped_packets: counts.dropped,
        marked_packets: counts.marked,
        power_bps_per_s: power(goodput_bps, rtt_ms.mean),
        rtt_ms,
        one_way_ms: one_way.map(|one_way| one_way.delays.spread()),
        jitter_ms: one_way.map(|one_way| one_way.jitter.spread()),
        pdv_ms: one_way.map(|one_way| one_way.delays.variation()),
        mos,
        lost_packets: meter
            .packets
            .as_ref()
            .map(|packets| packets.sent - packets.arrived),
        completion_ms: meter.completions.as_ref().map(|delays| delays.spread()),
        page_load_ms: meter.pages.as_ref().map(|delays| delays.spread()),
        video: meter.video.as_ref().map(|video| video.figures()),
        ..Flow::default()
    }
}

/// All that was measured of some flows, put together.
fn pooled(members: &mut [Source]) -> Pooled {
    let meters: Vec<&Meter> = members.iter_mut().map(|source| &*source.meter()).collect();
    let together = |of: fn(&Meter) -> Option<&Delays>| -> Option<Spread> {
        let mut each = meters.iter().filter_map(|meter| of(meter));
        let mut all = each.next()?.clone();
        each.for_each(|delays| all.add(delays));
        Some(all.spread())
    };
    Pooled {
        rtt_ms: together(|meter| Some(&meter.round_trips)).unwrap_or_default(),
        one_way_ms: together(|meter| meter.one_way().map(|one_way| &one_way.delays)),
        completion_ms: together(|meter| meter.completions.as_ref()),
        page_load_ms: together(|meter| meter.pages.as_ref()),
    }
}

/// A codec as the E-model knows it.
const fn equipment(codec: Codec) -> emodel::Equipment {
    emodel::Equipment {
        impairment: codec.impairment(),
        loss_robustness: codec.loss_robustness(),
    }
}

/// The one-way delay of a call: what was measured has only the links' part of the base RTT in it, since the rest of that
/// is simulated on the way back; a call has half of it each way.
fn mouth_to_ear(measured: Duration, rtt: Duration, links: Duration) -> Duration {
    let half = Duration::from_nanos(rtt.as_nanos() / 2);
    measured.saturating_sub(links) + half.max(links)
}

/// Instants and durations in nanoseconds, flow by flow.
fn timed(
    name: &'static str,
    sources: &mut [Source],
    take: impl Fn(&mut Meter) -> Vec<(u64, u64)>,
) -> Table {
    let (mut time, mut flows, mut durations) = (Vec::new(), Vec::new(), Vec::new());
    for (flow, source) in sources.iter_mut().enumerate() {
        for (at, nanos) in take(source.meter()) {
            time.push(at);
            flows.push(flow as u32);
            durations.push(nanos);
        }
    }
    Table {
        columns: vec![
            ("time_ns", Column::U64(time)),
            ("flow", Column::U32(flows)),
            (name, Column::U64(durations)),
        ],
    }
}

fn queue_series(sampler: &Sampler, queues: &[QueuePlace<'_>], width: Duration) -> Table {
    let rows = &sampler.queues;
    let of = |value: fn(&QueueSample) -> f64| Column::F64(rows.iter().map(value).collect());
    let at = |value: fn(Hop) -> u8| {
        let values = rows.iter().map(|row| value(queues[row.queue].hop));
        Column::U8(values.collect())
    };
    let begin = |row: &QueueSample| row.time.as_secs_f64() - width.as_secs_f64();
    let mut columns = vec![
        ("time_s", Column::F64(rows.iter().map(begin).collect())),
        ("link", at(|hop| hop.link as u8)),
        ("direction", at(|hop| hop.way as u8)),
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
    let begin = |row: &FlowSample| row.time.as_secs_f64() - width;
    let of = |value: fn(&FlowSample) -> f64| Column::F64(rows.iter().map(value).collect());
    Table {
        columns: vec![
            ("time_s", Column::F64(rows.iter().map(begin).collect())),
            (
                "flow",
                Column::U32(rows.iter().map(|row| row.flow).collect()),
            ),
            ("goodput_bps", of(|row| row.goodput_bps)),
            ("cwnd_segments", of(|row| row.cwnd)),
            ("rtt_ms", of(|row| row.rtt_ms)),
        ],
    }
}
