//! Computes the result of a run, figures and tables, from its measurements.

use sojourn_units::{Duration, Hop};

use crate::cell::Cell;
use crate::delays::Delays;
use crate::emodel;
use crate::flow::Flow;
use crate::groups::{Pooled, groups};
use crate::meter::{Meter, OneWay, Packets};
use crate::probe::{FlowCounts, QueueProbe};
use crate::qoo::Conditions;
use crate::result::{Bottleneck, RunResult, power};
use crate::scope::{self, Scope};
use crate::series::Series;
use crate::table::{Column, Table};

/// The measurements of a run. Queues and flows are in the order of the [`Scope`].
pub struct Measured<'m> {
    /// The probes of the queues.
    pub probes: Vec<QueueProbe>,
    /// Figures of the queues for which they are known.
    pub queues: Vec<(Hop, Bottleneck)>,
    /// Figures of the links that are cells of Wi-Fi, by the link's number.
    pub cells: Vec<(usize, Cell)>,
    /// A row per transmission in these cells, if transmissions are recorded.
    pub media: Option<Table>,
    /// The meters of the flows.
    pub meters: Vec<&'m mut Meter>,
    /// The series, if there is one.
    pub series: Option<Series>,
    /// The capture, if there is one, as a pcapng file.
    pub capture: Option<Vec<u8>>,
}

/// The result of a run, without the names of its arm and without figures that only its backend knows.
pub fn summarise(scope: &Scope, measured: Measured<'_>) -> RunResult {
    let Measured {
        probes, mut meters, ..
    } = measured;
    let flows: Vec<Flow> = (0..)
        .zip(&scope.flows)
        .zip(&meters)
        .map(|((number, flow), meter)| flow_figures(flow, meter, counts(&probes, number, flow)))
        .collect();
    let groups = groups(&flows, |members| {
        let outcome = outcome(members, scope, &flows, &meters);
        (pooled(members, &meters), outcome)
    });
    let histograms =
        (scope.queues.iter().zip(&probes)).map(|(queue, probe)| probe.histogram(*queue));
    let histogram = histograms.reduce(Table::stacked);
    let records_rtts = meters.iter().any(|meter| meter.recorded.is_some());
    let rtts = records_rtts.then(|| {
        timed("rtt_ns", &mut meters, |meter| {
            meter.recorded.take().unwrap_or_default()
        })
    });
    let completes = meters.iter().any(|meter| meter.completions.is_some());
    let completions = completes.then(|| {
        timed("completion_ns", &mut meters, |meter| {
            std::mem::take(&mut meter.completed)
        })
    });
    let tables =
        (scope.queues.iter().zip(probes)).filter_map(|(queue, probe)| probe.into_table(*queue));
    let mut result = RunResult {
        flows,
        groups,
        timeouts: meters.iter().map(|meter| meter.timeouts).sum(),
        simulated_s: scope.duration.as_secs_f64(),
        packets: tables.reduce(Table::stacked),
        medium: measured.media,
        capture: measured.capture,
        queue_series: measured
            .series
            .as_ref()
            .map(|series| series.queue_table(&scope.queues)),
        flow_series: measured.series.as_ref().map(Series::flow_table),
        rtts,
        completions,
        histogram,
        ..RunResult::default()
    }
    .with_totals(&scope.links, &scope.bottleneck_link, measured.queues);
    for (link, cell) in measured.cells {
        result.links.add_cell(link, cell);
    }
    result
}

/// The fate of a flow's data on its route: arrivals at the first queue, drops at all queues, marks at the last.
fn counts(probes: &[QueueProbe], number: usize, flow: &scope::Flow) -> FlowCounts {
    let met = || {
        flow.group
            .queues
            .iter()
            .map(|queue| probes[*queue].flows[number])
    };
    FlowCounts {
        arrived: met().next().map_or(0, |first| first.arrived),
        dropped: met().map(|counts| counts.dropped).sum(),
        marked: met().next_back().map_or(0, |last| last.marked),
    }
}

fn flow_figures(flow: &scope::Flow, meter: &Meter, counts: FlowCounts) -> Flow {
    let group = &*flow.group;
    let [begin, stop] = group.active;
    let active = stop.saturating_since(begin).as_secs_f64();
    let bits = meter.received_while_active() as f64 * 8.0;
    let goodput_bps = if active > 0.0 { bits / active } else { 0.0 };
    let rtt_ms = meter.round_trips.spread();
    let one_way = meter.one_way();
    Flow {
        traffic: group.traffic,
        flow: flow.within,
        name: group.name.clone(),
        total: group.total.clone(),
        kind: group.kind,
        is_over_tcp: group.measures.over_tcp,
        direction: group.way.name(),
        dscp: group.dscp,
        goodput_bps,
        sent_bytes: meter.sent,
        received_bytes: meter.received,
        retransmits: meter.retransmits,
        bottleneck_packets: counts.arrived,
        dropped_packets: counts.dropped,
        marked_packets: counts.marked,
        power_bps_per_s: power(goodput_bps, rtt_ms.mean),
        rtt_ms,
        one_way_ms: one_way.map(|one_way| one_way.delays.spread().into()),
        jitter_ms: one_way.map(|one_way| one_way.jitter.spread().into()),
        pdv_ms: one_way.map(|one_way| one_way.delays.variation().into()),
        mos: one_way.and_then(|one_way| opinion(group, one_way)),
        lost_packets: meter.packets.as_ref().map(Packets::lost),
        completion_ms: (meter.completions.as_ref()).map(|times| times.spread().into()),
        page_load_ms: meter.pages.as_ref().map(|times| times.spread().into()),
        frame_ms: (meter.frames.as_ref()).map(|frames| frames.spread().into()),
        video: (meter.video.as_ref()).map(|video| video.figures().into()),
    }
}

/// Quality of Outcome of a group: by RTTs, or else by one-way delays, and the loss and goodput of its flows. The loss of a TCP
/// flow is the share that queues dropped, that of a ping the share of requests without a reply, in the whole run.
fn outcome(members: &[usize], scope: &Scope, flows: &[Flow], meters: &[&mut Meter]) -> Option<f64> {
    let of = &*scope.flows[members[0]].group;
    let requirements = of.requirements?;
    let flows = members.iter().map(|member| &flows[*member]);
    let round_trips = together(members, meters, |meter| Some(&meter.round_trips));
    let (delays, rest) = match round_trips.filter(|delays| delays.n() > 0) {
        Some(delays) => (delays, Duration::ZERO),
        None => {
            let delays = together(members, meters, |meter| {
                meter.one_way().map(|one_way| &one_way.delays)
            })?;
            // The measured delays have only the links' part of the base RTT.
            let rest = mouth_to_ear(of.link_delay, of.rtt, of.link_delay);
            (delays, rest.saturating_sub(of.link_delay))
        }
    };
    let quantiles = delays.quantiles();
    let each = members.iter().zip(flows.clone());
    let losses = each.map(|(member, flow)| match &meters[*member].packets {
        None => (flow.dropped_packets, flow.bottleneck_packets),
        Some(packets) => match packets.one_way.as_ref().and_then(|of| of.losses()) {
            Some(after_the_warmup) => after_the_warmup,
            None => (packets.lost(), packets.arrived + packets.lost()),
        },
    });
    let (lost, sent) = losses.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let measured = Conditions {
        p99_ms: quantiles.p99? + rest.as_millis_f64(),
        p99_9_ms: quantiles.p99_9? + rest.as_millis_f64(),
        loss: (sent > 0).then(|| lost as f64 / sent as f64),
        rate_bps: flows.map(|flow| flow.goodput_bps).sum::<f64>() / members.len() as f64,
    };
    Some(requirements.score(&measured))
}

/// The delays of several flows, combined.
fn together(
    members: &[usize],
    meters: &[&mut Meter],
    of: fn(&Meter) -> Option<&Delays>,
) -> Option<Delays> {
    let mut each = members.iter().filter_map(|member| of(meters[*member]));
    let mut all = each.next()?.clone();
    each.for_each(|delays| all.add(delays));
    Some(all)
}

/// The opinion score of a call; `None` for other traffic, and if nothing arrived.
fn opinion(group: &scope::Group, one_way: &OneWay) -> Option<f64> {
    let (delay, loss) = one_way.delays.mean().zip(one_way.loss())?;
    let delay = mouth_to_ear(delay, group.rtt, group.link_delay);
    let rating = emodel::rating(delay, loss, group.codec?);
    Some(emodel::opinion_score(rating))
}

/// The one-way delay of a call. The measured delay contains only the links' part of the base RTT, since the rest is on
/// the way back; a call has half of the base RTT each way.
fn mouth_to_ear(measured: Duration, rtt: Duration, links: Duration) -> Duration {
    let half = Duration::from_nanos(rtt.as_nanos() / 2);
    measured.saturating_sub(links) + half.max(links)
}

/// All measurements of some flows, combined.
fn pooled(members: &[usize], meters: &[&mut Meter]) -> Pooled {
    let together = |of| together(members, meters, of).map(|delays| delays.spread());
    Pooled {
        rtt_ms: together(|meter| Some(&meter.round_trips)).unwrap_or_default(),
        one_way_ms: together(|meter| meter.one_way().map(|one_way| &one_way.delays)),
        completion_ms: together(|meter| meter.completions.as_deref()),
        page_load_ms: together(|meter| meter.pages.as_deref()),
        frame_ms: together(|meter| meter.frames.as_deref()),
    }
}

/// Times and durations in nanoseconds, flow by flow.
fn timed(
    name: &'static str,
    meters: &mut [&mut Meter],
    take: impl Fn(&mut Meter) -> Vec<(u64, u64)>,
) -> Table {
    let (mut time, mut flows, mut durations) = (Vec::new(), Vec::new(), Vec::new());
    for (flow, meter) in (0..).zip(meters) {
        for (at, nanos) in take(meter) {
            time.push(at);
            flows.push(flow);
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
