//! The figures of flows and groups.

use sojourn_experiment::derived;
use sojourn_experiment::derived::QueuePlace;
use sojourn_experiment::model::{Browsing, Experiment, Hop, Kind, Traffic};
use sojourn_measure::distribution::{Spread, nearest_rank};
use sojourn_measure::emodel;
use sojourn_measure::groups::{Group, Pooled, groups};
use sojourn_measure::jitter::Jitter;
use sojourn_measure::result::{Flow, power};
use sojourn_units::Duration;

use crate::recording::{Fate, FlowFigures, PacketRow};

/// What became of a flow's data on its way: arrivals count at the first queue, drops and marks at all.
#[derive(Clone, Default)]
struct Counts {
    arrived: u64,
    dropped: u64,
    marked: u64,
    /// Delays from the queue on of segments that are more than an acknowledgement and arrive while measuring: virtual
    /// Ethernet takes no time, so that behind the queue there is only the links' own delay.
    one_way_us: Vec<u32>,
}

/// The longest segment without data, SYN or FIN: Ethernet, IPv4 and TCP with timestamps.
const ACKNOWLEDGEMENT: u32 = 66;

fn counts(
    experiment: &Experiment,
    seed: u64,
    places: &[QueuePlace<'_>],
    packets: &[PacketRow],
) -> Vec<Counts> {
    let warmup = experiment.warmup;
    // Of each flow: the first queue that its data meets, and the propagation of its links.
    let met = |flow: derived::Flow<'_>| {
        let hops = flow.traffic.route.hops(flow.way);
        let queue = |hop: &Hop| places.iter().position(|place| place.hop == *hop);
        let first = hops.iter().find_map(queue);
        (first, flow.traffic.route.delay(&experiment.links))
    };
    let met: Vec<_> = derived::flows(experiment, seed).map(met).collect();
    let mut counts = vec![Counts::default(); met.len()];
    for row in packets.iter().filter(|row| !row.returning) {
        let number = row.flow as usize;
        if let (Some(own), Some((first, delay))) = (counts.get_mut(number), met.get(number)) {
            let queue = Some(usize::from(row.queue));
            let arrives = Duration::from_nanos(row.settled_ns) + *delay;
            if row.is_delivered() && row.bytes > ACKNOWLEDGEMENT && arrives >= warmup {
                let one_way = Duration::from_nanos(row.sojourn_ns()) + *delay;
                own.one_way_us.push(one_way.as_micros() as u32);
            }
            own.arrived += u64::from(queue == *first);
            own.dropped += u64::from(!row.is_delivered());
            own.marked += u64::from(row.fate == Fate::Marked);
        }
    }
    counts
}

/// The figures of every flow and of every group.
pub fn figures(
    experiment: &Experiment,
    seed: u64,
    places: &[QueuePlace<'_>],
    figures: &[FlowFigures],
    packets: &[PacketRow],
) -> (Vec<Flow>, Vec<Group>) {
    let names = derived::group_names(experiment);
    let counts = counts(experiment, seed, places, packets);
    let (flows, values): (Vec<Flow>, Vec<Values>) = derived::flows(experiment, seed)
        .zip(figures)
        .zip(counts)
        .map(|((flow, figures), counts)| {
            let values = values(experiment, flow.traffic, figures, &counts);
            let named = Flow {
                name: names[flow.group].clone(),
                ..flow_figures(experiment, &flow, figures, &counts, &values)
            };
            (named, values)
        })
        .unzip();
    let groups = groups(&flows, |members| pooled(&values[members]));
    (flows, groups)
}

/// What was measured of a flow after the warm-up, in microseconds; `None` where its kind has no such thing.
struct Values {
    rtts: Vec<u32>,
    one_way: Option<Vec<u32>>,
    completions: Option<Vec<u32>>,
    page_loads: Option<Vec<u32>>,
}

fn values(
    experiment: &Experiment,
    traffic: &Traffic,
    figures: &FlowFigures,
    counts: &Counts,
) -> Values {
    let warmup_ns = experiment.warmup.as_nanos();
    let steady = |(at_ns, rtt_us): &(u64, u32)| (*at_ns >= warmup_ns).then_some(*rtt_us);
    let one_way = match traffic.kind {
        Kind::Ping(_) => None,
        _ if traffic.kind.tcp().is_none() => Some(&figures.one_way_us),
        _ => experiment.record.one_way.then_some(&counts.one_way_us),
    };
    let loads_pages =
        matches!(&traffic.kind, Kind::Web(web) if matches!(web.browsing, Browsing::Pages(_)));
    let completes = matches!(traffic.kind, Kind::Files(_) | Kind::Web(_)) && !loads_pages;
    Values {
        rtts: figures.round_trips.iter().filter_map(steady).collect(),
        one_way: one_way.cloned(),
        completions: completes.then(|| figures.completions_us.clone()),
        page_loads: loads_pages.then(|| figures.page_loads_us.clone()),
    }
}

/// The values of some flows together.
fn pooled(members: &[Values]) -> Pooled {
    let together = |of: fn(&Values) -> Option<&Vec<u32>>| {
        let each: Vec<&Vec<u32>> = members.iter().filter_map(of).collect();
        (!each.is_empty()).then(|| spread(each.into_iter().flatten().copied().collect()))
    };
    Pooled {
        rtt_ms: together(|values| Some(&values.rtts)).unwrap_or_default(),
        one_way_ms: together(|values| values.one_way.as_ref()),
        completion_ms: together(|values| values.completions.as_ref()),
        page_load_ms: together(|values| values.page_loads.as_ref()),
    }
}

/// The distribution of values in microseconds, in milliseconds.
fn spread(mut micros: Vec<u32>) -> Spread {
    micros.sort_unstable();
    let sum: u64 = micros.iter().map(|micros| u64::from(*micros)).sum();
    let mean = sum as f64 / micros.len() as f64 / 1e3;
    let at = |share| nearest_rank(&micros, share).map_or(f64::NAN, |value| f64::from(value) / 1e3);
    Spread::of(micros.len() as u64, mean, at)
}

fn flow_figures(
    experiment: &Experiment,
    flow: &derived::Flow<'_>,
    figures: &FlowFigures,
    counts: &Counts,
    values: &Values,
) -> Flow {
    let traffic = flow.traffic;
    let from = experiment.warmup.max(traffic.start.0);
    let active = traffic.stop.saturating_sub(from).as_secs_f64();
    let bits = (figures.received - figures.received_before) as f64 * 8.0;
    let goodput_bps = if active > 0.0 { bits / active } else { 0.0 };
    let rtt_ms = spread(values.rtts.clone());
    let of = |micros: &Option<Vec<u32>>| micros.clone().map(spread);
    let one_way = values.one_way.as_deref();
    Flow {
        traffic: flow.group,
        flow: flow.within,
        kind: traffic.kind.name(),
        is_over_tcp: traffic.kind.tcp().is_some(),
        direction: flow.way.name(),
        dscp: traffic.dscp,
        goodput_bps,
        sent_bytes: figures.sent,
        received_bytes: figures.received,
        retransmits: figures.retransmits,
        bottleneck_packets: counts.arrived,
        dropped_packets: counts.dropped,
        marked_packets: counts.marked,
        power_bps_per_s: power(goodput_bps, rtt_ms.mean),
        rtt_ms,
        one_way_ms: of(&values.one_way),
        jitter_ms: one_way.map(|delays| spread(jitter(delays))),
        pdv_ms: one_way.map(|delays| spread(variation(delays))),
        mos: opinion(&traffic.kind, figures),
        lost_packets: figures.datagrams.map(|(sent, arrived)| sent - arrived),
        completion_ms: of(&values.completions),
        page_load_ms: of(&values.page_loads),
        video: matches!(traffic.kind, Kind::Video(_)).then(|| figures.playback.figures()),
        ..Flow::default()
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
    let mean_ms = spread(figures.one_way_us.clone()).mean?;
    let loss = 1.0 - arrived as f64 / (highest - first + 1) as f64;
    let delay = Duration::from_secs_f64(mean_ms / 1000.0);
    Some(emodel::opinion_score(emodel::rating(
        delay,
        loss,
        emodel::Equipment {
            impairment: voip.codec.impairment(),
            loss_robustness: voip.codec.loss_robustness(),
        },
    )))
}
