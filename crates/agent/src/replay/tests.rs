use sojourn_experiment::model::{Experiment, Kernel, Queue as Arm, Record, Ties, Traffic};
use sojourn_experiment::topology::Route;
use sojourn_experiment::{derived, measured};
use sojourn_measure::result::{Column, Table};
use sojourn_measure::series::SenderState;
use sojourn_traffic::{Codec, Direction, Kind, Voip};
use sojourn_units::{Hop, Rate, Way};

use super::*;
use crate::recording::QueueFigures;
use crate::summary::summarise;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A call over 8 Mbit/s, a byte per microsecond, with a base RTT of 100 ms of which the link has 10 ms each way.
fn experiment() -> Experiment {
    let link = Link {
        delay: MS(10),
        ..Link::of_rate(Rate::from_mbps(8))
    };
    Experiment {
        name: "call".into(),
        duration: MS(30),
        warmup: Duration::ZERO,
        repeat: 1,
        seed: 1,
        kernel: Kernel::V6_1,
        ties: Ties::Arrivals,
        classes: Vec::new(),
        links: vec![link],
        queues: vec![Arm {
            aqm: "codel".into(),
            label: "codel".into(),
            classes: true,
            up: None,
            limit: None,
            settings: Vec::new(),
        }],
        traffic: vec![Traffic {
            name: None,
            total: None,
            kind: Kind::Voip(Voip {
                codec: Codec::G711,
                packet: 172,
                interval: MS(20),
            }),
            flows: 1,
            route: Route::of_one_link(),
            rtt: MS(100),
            start: (Duration::ZERO, Duration::ZERO),
            stop: MS(30),
            late_stop: None,
            direction: Direction::Down,
            dscp: 0,
            access: None,
            jitter: None,
            outcome: sojourn_experiment::model::Outcome::default(),
            host: None,
            class: None,
        }],
        record: Record {
            series: Some(MS(10)),
            rtt: true,
            ..Record::default()
        },
    }
}

/// A packet of 1000 bytes of flow 0 in the first queue; times in milliseconds.
fn row(entered: u64, settled: u64, fate: Fate) -> PacketRow {
    PacketRow {
        entered_ns: entered * 1_000_000,
        settled_ns: settled * 1_000_000,
        air_us: 0,
        flow: 0,
        bytes: 1000,
        queue: 0,
        returning: false,
        fate,
        refused: false,
    }
}

fn replayed(recording: &Recording) -> Replayed {
    let experiment = experiment();
    let scope = measured::scope(&experiment, 0, 1);
    replay(&scope, &derived::queues(&experiment, 0), recording)
}

fn column(table: &Table, name: &str) -> Vec<f64> {
    let found = table.columns.iter().find(|(known, _)| *known == name);
    match &found.expect("a column").1 {
        Column::U8(values) => values.iter().map(|value| f64::from(*value)).collect(),
        Column::U32(values) => values.iter().map(|value| f64::from(*value)).collect(),
        Column::U64(values) => values.iter().map(|value| *value as f64).collect(),
        Column::F64(values) => values.clone(),
    }
}

/// Bins of 10 ms: a packet that waits from 5 to 25 ms is queued at the ends of bins 0 and 1 and leaves in bin 2.
#[test]
fn a_packet_is_backlog_at_the_end_of_every_bin_that_it_waits_through() {
    let replayed = replayed(&Recording {
        packets: vec![row(12, 14, Fate::DroppedAqm), row(5, 25, Fate::Delivered)],
        ..Recording::default()
    });
    let table = replayed.series.expect("it is recorded").queue_table(&[Hop {
        link: 0,
        way: Way::Down,
    }]);
    let begins = column(&table, "time_s");
    let begins: Vec<f64> = begins.iter().map(|s| (s * 1000.0).round()).collect();
    assert_eq!(begins, [0.0, 10.0, 20.0]);
    assert_eq!(column(&table, "backlog_packets"), [1.0, 1.0, 0.0]);
    assert_eq!(column(&table, "backlog_bytes"), [1000.0, 1000.0, 0.0]);
    assert_eq!(column(&table, "packets"), [0.0, 0.0, 1.0]);
    assert_eq!(column(&table, "sojourn_max_ms"), [0.0, 0.0, 20.0]);
}

/// It has arrived, and is backlog to the end; it has no sojourn time, and no queue dropped it.
#[test]
fn a_packet_that_waits_at_the_end_is_backlog_until_then() {
    let replayed = replayed(&Recording {
        packets: vec![row(2, 4, Fate::Delivered), row(5, 30, Fate::Waiting)],
        ..Recording::default()
    });
    let probe = &replayed.probes[0];
    assert_eq!((probe.flows[0].arrived, probe.flows[0].dropped), (2, 0));
    assert_eq!(probe.figures(1.0, 0).delivered_packets, 1);
    let table = replayed.series.expect("it is recorded").queue_table(&[Hop {
        link: 0,
        way: Way::Down,
    }]);
    assert_eq!(column(&table, "backlog_packets"), [1.0, 1.0, 1.0]);
}

/// In bins of 10 ms: 1 and 2 ms in the first, 5 ms at the very end of the third.
#[test]
fn round_trips_are_averaged_by_bin() {
    let sender = SenderState {
        cwnd: 7,
        ssthresh: Some(5),
        pacing_bps: None,
        state: Some(3),
    };
    let flow = FlowFigures {
        round_trips: vec![(1_000_000, 1000), (9_000_000, 2000), (30_000_000, 5000)],
        series: vec![(1000, None), (1000, None), (3000, Some(sender))],
        received: 3000,
        ..FlowFigures::default()
    };
    let replayed = replayed(&Recording {
        flows: vec![flow],
        ..Recording::default()
    });
    let table = replayed.series.expect("it is recorded").flow_table();
    let rtts = column(&table, "rtt_ms");
    assert_eq!((rtts[0], rtts[2]), (1.5, 5.0));
    assert!(rtts[1].is_nan());
    assert_eq!(column(&table, "goodput_bps"), [8e5, 0.0, 1.6e6]);
    for (name, of_sender) in [
        ("cwnd_segments", 7.0),
        ("ssthresh_segments", 5.0),
        ("state", 3.0),
    ] {
        assert_eq!(column(&table, name)[2], of_sender);
    }
    assert!(column(&table, "pacing_bps")[2].is_nan());
    assert_eq!(replayed.meters[0].recorded.as_ref().map(Vec::len), Some(3));
}

/// The delay of a queued packet that is dropped is its sojourn time. The delay of a packet dropped on arrival is the time
/// that the other two packets take at a byte per microsecond. Drops without a reason are listed separately.
#[test]
fn drops_are_measured_by_how_long_the_queue_was() {
    let refused = PacketRow {
        refused: true,
        ..row(12, 12, Fate::DroppedOverflow)
    };
    let packets = vec![
        row(1, 9, Fate::DroppedAqm),
        refused,
        row(10, 15, Fate::Dropped),
        row(11, 16, Fate::Delivered),
    ];
    let replayed = replayed(&Recording {
        packets,
        ..Recording::default()
    });
    let figures = replayed.probes[0].figures(0.0, 0);
    let delays: Vec<(&str, Option<f64>)> = figures
        .drop_delay_ms
        .iter()
        .map(|(reason, spread)| (*reason, spread.max))
        .collect();
    let expected = [("aqm", 8.0), ("overflow", 2.0), ("unknown", 5.0)];
    assert_eq!(delays, expected.map(|(reason, ms)| (reason, Some(ms))));
}

/// One-way delays of 30 ms, of which 10 ms are on the link. With half the base RTT of 100 ms the delay of a call is 70 ms,
/// which sounds worse than 30 ms.
#[test]
fn a_call_has_half_of_the_base_rtt_each_way() {
    let flow = FlowFigures {
        datagrams: Some((2, 2)),
        one_way_us: vec![30_000; 2],
        seen: Some((0, 1, 2)),
        ..FlowFigures::default()
    };
    let recording = Recording {
        flows: vec![flow],
        queues: vec![QueueFigures::default()],
        ..Recording::default()
    };
    let experiment = experiment();
    let run = summarise(&experiment, 0, 1, recording, 0.0);
    let call = &run.result.flows[0];
    assert_eq!(
        call.one_way_ms.as_ref().and_then(|delays| delays.max),
        Some(30.0)
    );
    let score = |ms: u64| {
        let g711 = sojourn_measure::emodel::Equipment {
            impairment: 0.0,
            loss_robustness: 4.3,
        };
        sojourn_measure::emodel::opinion_score(sojourn_measure::emodel::rating(MS(ms), 0.0, g711))
    };
    assert_eq!((call.mos, score(70) < score(30)), (Some(score(70)), true));
}

/// Of 3,000 bytes 500 came before the warm-up ended, and another 2,000 before the flow's stop.
#[test]
fn goodput_counts_until_the_stop() {
    let flow = |received_at_stop| FlowFigures {
        received: 3000,
        received_before: 500,
        received_at_stop,
        ..FlowFigures::default()
    };
    let counted = |at_stop| {
        let recording = Recording {
            flows: vec![flow(at_stop)],
            ..Recording::default()
        };
        replayed(&recording).meters[0].received_while_active()
    };
    assert_eq!(counted(Some(2500)), 2000);
    assert_eq!(counted(Some(400)), 0);
    assert_eq!(counted(None), 2500);
}

/// A packet of Wi-Fi leaves the queue, and is lost on the air: its flow lacks it, the queue has not dropped it.
#[test]
fn a_packet_that_is_lost_on_the_air_has_left_the_queue() {
    let lost = PacketRow {
        air_us: 3000,
        ..row(1, 5, Fate::Lost)
    };
    let replayed = replayed(&Recording {
        packets: vec![lost, row(2, 6, Fate::Delivered)],
        ..Recording::default()
    });
    let figures = replayed.probes[0].figures(0.0, 0);
    assert_eq!((figures.delivered_packets, figures.dropped_aqm), (2, 0));
    assert_eq!(replayed.probes[0].flows[0].dropped, 1);
}
