//! What a run measures, the same on every backend.

use std::sync::Arc;

use sojourn_measure::emodel::Equipment;
use sojourn_measure::meter::{Measures, RowsOf};
use sojourn_measure::qoo::Requirements;
use sojourn_measure::scope::{Flow, Group, Scope};
use sojourn_traffic::{Browsing, Kind};
use sojourn_units::{Hop, Time, Way};

use crate::derived;
use crate::model::{Experiment, Outcome, RttOf, Traffic};

/// What to measure in a run of arm number `queue` with `seed`.
pub fn scope(experiment: &Experiment, queue: usize, seed: u64) -> Scope {
    let egresses = derived::queues(experiment, queue);
    let queues: Vec<Hop> = egresses.iter().map(|egress| egress.hop).collect();
    let names = derived::group_names(experiment);

    let group = |flow: &derived::Flow<'_>| {
        let traffic = flow.traffic;
        let hops = traffic.route.hops(flow.way);
        let number = |hop: &Hop| queues.iter().position(|queue| queue == hop);
        Group {
            traffic: flow.group,
            name: names[flow.group].clone(),
            total: traffic.total.clone(),
            kind: traffic.kind.name(),
            way: way_of_data(experiment, &hops, flow.way),
            dscp: traffic.dscp,
            active: [experiment.warmup.max(traffic.start.0), traffic.stop]
                .map(|since| Time::ZERO + since),
            rtt: traffic.rtt,
            link_delay: traffic.route.delay(&experiment.links),
            queues: hops.iter().filter_map(number).collect(),
            measures: measures(experiment, traffic),
            codec: match &traffic.kind {
                Kind::Voip(voip) => Some(Equipment {
                    impairment: voip.codec.impairment(),
                    loss_robustness: voip.codec.loss_robustness(),
                }),
                _ => None,
            },
            requirements: requirements(traffic.outcome, experiment.record.qoo),
        }
    };
    // Flows of one group and direction follow one another.
    let mut last: Option<((usize, Way), Arc<Group>)> = None;
    let flow = |flow: derived::Flow<'_>| {
        let of = (flow.group, flow.way);
        let known = last.take().filter(|(before, _)| *before == of);
        let (_, group) = last.insert(known.unwrap_or_else(|| (of, group(&flow).into())));
        Flow {
            within: flow.within,
            group: Arc::clone(group),
        }
    };
    Scope {
        flows: derived::flows(experiment, seed).map(flow).collect(),
        links: (experiment.links.iter().map(|link| link.name.clone())).collect(),
        bottleneck_link: experiment.bottleneck().name.clone(),
        warmup: experiment.warmup,
        duration: experiment.duration,
        records_packets: experiment.record.packets,
        series: experiment.record.series,
        queues,
    }
}

/// The direction of a flow's data: on the only link, or else along its own route, `from` one host `to` another.
fn way_of_data(experiment: &Experiment, hops: &[Hop], along_route: Way) -> Way {
    match (&experiment.links[..], hops) {
        ([_], [hop]) => hop.way,
        _ => along_route,
    }
}

/// What a group's application needs, if the group has a score.
fn requirements(given: Outcome, all: bool) -> Option<Requirements> {
    let default = Requirements::default();
    (all || given != Outcome::default()).then(|| Requirements {
        p99: given.qoo_p99.unwrap_or(default.p99),
        p99_9: given.qoo_p99_9.unwrap_or(default.p99_9),
        loss: given.qoo_loss.unwrap_or(default.loss),
        rate: given.qoo_rate.or(default.rate),
    })
}

/// What to measure of a flow of this traffic.
fn measures(experiment: &Experiment, traffic: &Traffic) -> Measures {
    let kind = &traffic.kind;
    let record = experiment.record;
    let over_tcp = kind.tcp().is_some();
    let page_loads = matches!(kind, Kind::Web(web) if matches!(web.browsing, Browsing::Pages(_)));
    let rows_of = match record.rtt_of {
        RttOf::Segments if over_tcp => RowsOf::Segments,
        _ => RowsOf::Samples,
    };
    Measures {
        warmup: Time::ZERO + experiment.warmup,
        over_tcp,
        one_way: if over_tcp {
            record.one_way
        } else {
            !matches!(kind, Kind::Ping(_))
        },
        completions: matches!(kind, Kind::Files(_) | Kind::Web(_)) && !page_loads,
        page_loads,
        playback: matches!(kind, Kind::Video(_) | Kind::Call(_)),
        frames: matches!(kind, Kind::Call(_)),
        rows: record.rtt.then_some(rows_of),
    }
}
