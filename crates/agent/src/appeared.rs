//! What to measure in a run whose flows appeared while it went on.

use sojourn_experiment::model::{Experiment, Route};
use sojourn_measure::meter::{Measures, RowsOf};
use sojourn_measure::scope::{Flow, Group, Scope};
use sojourn_units::{Duration, Time, Way};

use crate::recording::{Appeared, AppearedKind, Recording};

/// The goodput of datagrams is over at least this time.
const LEAST: Duration = Duration::from_secs(1);

/// An experiment without its traffic, which lasted so long.
pub fn without_traffic(experiment: &Experiment, length: Duration) -> Experiment {
    Experiment {
        traffic: Vec::new(),
        warmup: Duration::ZERO,
        duration: length.max(Duration::from_nanos(1)),
        ..experiment.clone()
    }
}

/// Adds the flows that appeared to what is measured. A group has the flows of a service in one direction; the recording's flows are
/// put in the order of their groups.
pub fn add(
    scope: &mut Scope,
    experiment: &Experiment,
    route: &Route,
    appeared: &[Appeared],
    recording: &mut Recording,
) {
    let mut services: Vec<&str> = Vec::new();
    for flow in appeared {
        if !services.contains(&flow.service.as_str()) {
            services.push(&flow.service);
        }
    }
    let group = |flow: &Appeared| services.iter().position(|known| *known == flow.service);
    let mut order: Vec<usize> = (0..appeared.len()).collect();
    order.sort_by_key(|number| (group(&appeared[*number]), appeared[*number].up));
    let mut number_of = vec![0; appeared.len()];
    let mut last = None;
    let mut within = 0;
    let delay = route.delay(&experiment.links);
    for (number, old) in order.iter().enumerate() {
        number_of[*old] = number as u32;
        let flow = &appeared[*old];
        let of = (group(flow), flow.up);
        within = if last == Some(of) { within + 1 } else { 0 };
        last = Some(of);
        let way = if flow.up { Way::Up } else { Way::Down };
        let hops = route.hops(way);
        let queue = |hop| scope.queues.iter().position(|queue| queue == hop);
        let group = Group {
            traffic: of.0.unwrap_or(0),
            name: flow.service.clone(),
            total: None,
            kind: match flow.kind {
                AppearedKind::Tcp => "tcp",
                AppearedKind::Ping => "ping",
                AppearedKind::Udp => "udp",
            },
            way,
            dscp: flow.dscp,
            active: active(flow),
            rtt: delay * 2,
            link_delay: delay,
            queues: hops.iter().filter_map(queue).collect(),
            measures: Measures {
                warmup: Time::ZERO,
                over_tcp: flow.kind == AppearedKind::Tcp,
                one_way: flow.kind == AppearedKind::Udp,
                completions: false,
                page_loads: false,
                playback: false,
                frames: false,
                rows: experiment.record.rtt.then_some(RowsOf::Samples),
            },
            codec: None,
            requirements: None,
        };
        scope.flows.push(Flow {
            within,
            group: group.into(),
        });
    }
    for row in &mut recording.packets {
        row.flow = number_of[row.flow as usize];
    }
    let mut figures = std::mem::take(&mut recording.flows);
    recording.flows = order
        .iter()
        .map(|old| std::mem::take(&mut figures[*old]))
        .collect();
}

/// The time over which a flow's goodput is taken. That of a few datagrams says nothing of a rate.
fn active(flow: &Appeared) -> [Time; 2] {
    let [begin, end] = [flow.span_ns.0, flow.span_ns.1].map(Time::from_nanos);
    match flow.kind {
        AppearedKind::Tcp => [begin, end],
        AppearedKind::Ping | AppearedKind::Udp => [begin, end.max(begin + LEAST)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Fate, FlowFigures, PacketRow};
    use sojourn_experiment::measured;
    use sojourn_experiment::{DisciplineKeys, Names, Source, read};

    fn flow(service: &str, up: bool) -> Appeared {
        Appeared {
            service: service.into(),
            kind: AppearedKind::Tcp,
            up,
            dscp: 0,
            span_ns: (1_000_000_000, 3_000_000_000),
        }
    }

    #[test]
    fn the_goodput_of_a_datagram_is_over_a_second() {
        let short = |kind| Appeared {
            kind,
            span_ns: (2_000_000_000, 2_010_000_000),
            ..flow("53", false)
        };
        let until = |kind| active(&short(kind))[1];
        assert_eq!(until(AppearedKind::Tcp), Time::from_millis(2010));
        assert_eq!(until(AppearedKind::Udp), Time::from_secs(3));
        assert_eq!(until(AppearedKind::Ping), Time::from_secs(3));
    }

    /// A download, a call's packets, another download: the downloads are one group.
    #[test]
    fn flows_of_a_service_and_direction_are_one_group() {
        let text = "experiment = { duration = '60 s' }\nlink = { rate = '8 Mbit/s', delay = '10 ms' }\nqueue = [{ aqm = 'pfifo' }]";
        let names = Names {
            disciplines: vec![DisciplineKeys {
                name: "pfifo".into(),
                keys: vec![],
            }],
            congestion_controls: vec![],
        };
        let plan =
            read(Source { name: "file", text }, &[], &names).expect("a file without traffic");
        let experiment = without_traffic(&plan.cells[0].experiment, Duration::from_secs(4));
        let appeared = [
            flow("tcp 80", false),
            flow("tcp 22", true),
            flow("tcp 80", true),
            flow("tcp 80", false),
        ];
        let row = |flow| PacketRow {
            entered_ns: 1,
            settled_ns: 2,
            air_us: 0,
            flow,
            bytes: 1514,
            queue: 0,
            returning: false,
            fate: Fate::Delivered,
            refused: false,
        };
        let sent = |sent| FlowFigures {
            sent,
            ..FlowFigures::default()
        };
        let mut recording = Recording {
            packets: (0..4).map(row).collect(),
            flows: (0..4).map(sent).collect(),
            ..Recording::default()
        };
        let mut scope = measured::scope(&experiment, 0, 1);
        add(
            &mut scope,
            &experiment,
            &Route::of_one_link(),
            &appeared,
            &mut recording,
        );
        let found: Vec<_> = scope
            .flows
            .iter()
            .map(|flow| (flow.group.traffic, flow.within, flow.group.way))
            .collect();
        assert_eq!(
            found,
            [
                (0, 0, Way::Down),
                (0, 1, Way::Down),
                (0, 0, Way::Up),
                (1, 0, Way::Up)
            ]
        );
        assert_eq!(
            recording
                .packets
                .iter()
                .map(|row| row.flow)
                .collect::<Vec<_>>(),
            [0, 3, 2, 1]
        );
        assert_eq!(
            recording
                .flows
                .iter()
                .map(|flow| flow.sent)
                .collect::<Vec<_>>(),
            [0, 3, 2, 1]
        );
        // The link has no queue upwards.
        assert_eq!(
            (
                &scope.flows[0].group.queues[..],
                &scope.flows[2].group.queues[..]
            ),
            (&[0][..], &[][..])
        );
        assert_eq!(
            (scope.flows[0].group.active, scope.flows[0].group.rtt),
            ([1, 3].map(Time::from_secs), Duration::from_millis(20))
        );
    }
}
