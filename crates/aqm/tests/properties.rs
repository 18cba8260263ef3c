//! Properties of every discipline in the catalogue, in each of its variants, on any traffic.

mod drive;

use std::collections::HashMap;

use drive::{Books, Drive, Step};
use proptest::prelude::*;
use sojourn_aqm::{
    Catalogue, Datagram, Discipline, Ecn, Environment, FlowKey, Limit, Packet, Qdisc, Settings,
};
use sojourn_units::{Duration, Kind, Rate, Time, Value};

/// A packet of one of 16 flows, each with its own ECN field.
fn arrival(bytes: u32, flow: u32) -> Step {
    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][flow as usize % 4];
    Step::Enqueue {
        bytes,
        flow,
        ecn,
        dscp: 0,
        ack: None,
    }
}

/// The same traffic with every packet CE-marked.
fn all_ce(mut steps: Vec<Step>) -> Vec<Step> {
    for step in &mut steps {
        if let Step::Enqueue { ecn, .. } = step {
            *ecn = Ecn::Ce;
        }
    }
    steps
}

fn wait(nanos: u64) -> Step {
    Step::Wait(Duration::from_nanos(nanos))
}

/// Mostly a busy queue; now and then a pause of an hour, an empty packet or one of 64 kB.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes =
        prop_oneof![6 => Just(1514_u32), 2 => 40_u32..1514, 1 => Just(0), 1 => Just(65_535)];
    let step = prop_oneof![
        6 => (bytes, 0_u32..16).prop_map(|(bytes, flow)| arrival(bytes, flow)),
        5 => Just(Step::Dequeue),
        3 => (0_u64..3_000_000).prop_map(wait),
        1 => (0_u64..400_000_000).prop_map(wait),
        1 => prop_oneof![Just(0_u64), Just(3_600_000_000_000)].prop_map(wait),
    ];
    proptest::collection::vec(step, 1..400)
}

/// The settings to test of each discipline: every variant, with and without ECN, and with `ce_exclude` if it has that
/// key.
fn settings_of(discipline: &Discipline<Datagram<u64>>, limit: Limit) -> Vec<Settings> {
    let variants: Vec<Option<&str>> = match discipline.key("variant").map(|key| key.kind) {
        Some(Kind::Choice(words)) => words.iter().map(|word| Some(*word)).collect(),
        _ => vec![None],
    };
    let mut all = Vec::new();
    for variant in variants {
        for (ecn, ce_exclude) in [(false, false), (true, false), (true, true)] {
            if ce_exclude && discipline.key("ce_exclude").is_none() {
                continue;
            }
            let mut settings = Settings::new(Rate::from_mbps(10), 1514);
            settings.limit = Some(limit);
            settings.values.push(("ecn".into(), Value::Flag(ecn)));
            if ce_exclude {
                settings
                    .values
                    .push(("ce_exclude".into(), Value::Flag(true)));
            }
            if let Some(variant) = variant {
                settings
                    .values
                    .push(("variant".into(), Value::Word(variant.into())));
            }
            all.push(settings);
        }
    }
    all
}

fn play(
    qdisc: &mut dyn Qdisc<Datagram<u64>>,
    limit: Limit,
    steps: &[Step],
) -> Result<Books, TestCaseError> {
    let books = Drive::new(qdisc, Some(limit)).play(steps);
    books.map_err(TestCaseError::fail)
}

fn each_discipline(
    limit: Limit,
    mut check: impl FnMut(
        &str,
        &mut dyn FnMut() -> Box<dyn Qdisc<Datagram<u64>> + Send>,
    ) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    for discipline in Catalogue::<Datagram<u64>>::new().iter() {
        for settings in settings_of(discipline, limit) {
            let label = format!("{} {:?}", discipline.name, settings.values);
            check(&label, &mut || match discipline.build(&settings) {
                Ok(qdisc) => qdisc,
                Err(error) => panic!("{label}: {error}"),
            })
            .map_err(|error| TestCaseError::fail(format!("{label}: {error}")))?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_packet_leaves_once_in_its_flows_order_or_is_dropped_once(
        steps in steps(),
        limit in prop_oneof![Just(Limit::Packets(12)), Just(Limit::Packets(300)), Just(Limit::Bytes(40_000))],
        marked: bool,
    ) {
        let steps = if marked { all_ce(steps) } else { steps };
        each_discipline(limit, |label, build| {
            let mut qdisc = build();
            let books = play(qdisc.as_mut(), limit, &steps)?;
            let mut last_of_flow = HashMap::new();
            // A flow that becomes a heavy hitter, or ceases to be one, changes its FIFO, in Linux too.
            let keeps_order = !label.starts_with("hhf ");
            for packet in &books.dequeued {
                let before = last_of_flow.insert(packet.flow, packet.payload);
                let in_order = before.is_none_or(|before| before < packet.payload);
                prop_assert!(in_order || !keeps_order, "order of flow {:?}", packet.flow);
                let offered = &books.offered[packet.payload as usize];
                prop_assert!(packet.ecn == offered.ecn || packet.ecn == Ecn::Ce);
            }
            let names = qdisc.inner_queues();
            for packet in books.dequeued.iter().chain(&books.dropped) {
                let told = packet.inner_queue.map(usize::from);
                prop_assert!(told.map_or(names.is_empty(), |place| place < names.len().max(1)), "{told:?} of {names:?}");
            }
            let mut fates: Vec<u64> = books.dequeued.iter().chain(&books.dropped).map(|p| p.payload).collect();
            fates.sort_unstable();
            fates.dedup();
            prop_assert_eq!(fates.len(), books.dequeued.len() + books.dropped.len());
            Ok(())
        })?;
    }

    #[test]
    fn the_same_seed_and_traffic_give_the_same_decisions(steps in steps()) {
        let limit = Limit::Packets(40);
        each_discipline(limit, |_, build| {
            let first = play(build().as_mut(), limit, &steps)?;
            let second = play(build().as_mut(), limit, &steps)?;
            prop_assert_eq!(first, second);
            Ok(())
        })?;
    }

    #[test]
    fn an_uncongested_queue_passes_everything_unmarked(pauses in proptest::collection::vec(0_u64..20_000_000, 1..200)) {
        // Each packet is fetched when it arrives.
        each_discipline(Limit::Packets(100), |_, build| {
            let mut qdisc = build();
            let mut env = Environment::new(1);
            let mut now = Time::ZERO;
            for (id, pause) in (0..).zip(&pauses) {
                now = Time::from_nanos(now.as_nanos() + pause);
                while let Some(due) = qdisc.next_timer().filter(|due| *due <= now) {
                    qdisc.on_timer(due, &mut env);
                }
                let mut packet = Datagram::new(id, 1514);
                packet.ecn = Ecn::Ect0;
                qdisc.enqueue(packet, now, &mut env);
                packet.set_enqueued(now);
                let left = qdisc.dequeue(now, &mut env);
                let as_it_came = left.map(|mut left| {
                    left.inner_queue = None;
                    left
                });
                prop_assert_eq!(as_it_came, Some(packet));
                prop_assert_eq!(qdisc.dequeue(now, &mut env), None);
            }
            Ok(())
        })?;
    }

    #[test]
    fn to_pass_a_queue_is_to_be_enqueued_and_dequeued(
        rounds in proptest::collection::vec((0_u64..20_000_000, 0_u32..16, 0_u64..8, 0_usize..12), 1..60),
    ) {
        // The first packet of a round passes if nothing is queued; others follow, and some leave.
        each_discipline(Limit::Packets(12), |_, build| {
            let mut both = [build(), build()].map(|qdisc| (qdisc, Environment::new(1)));
            let (mut now, mut id) = (Time::ZERO, 0);
            for (pause, flow, more, leaving) in &rounds {
                now = Time::from_nanos(now.as_nanos() + pause);
                let arrivals: Vec<Datagram<u64>> = (id..=id + more).map(|id| {
                    let ecn = if flow % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
                    Datagram::new(id, 1514).with_ecn(ecn).with_flow(FlowKey::numbered(*flow))
                }).collect();
                id += more + 1;
                let [passed, enqueued] = &mut both;
                let outcomes = [(passed, true), (enqueued, false)].map(|((qdisc, env), passes)| {
                    while let Some(due) = qdisc.next_timer().filter(|due| *due <= now) {
                        qdisc.on_timer(due, env);
                    }
                    let is_empty = qdisc.packets() == 0;
                    let mut left = Vec::new();
                    for (number, packet) in arrivals.iter().enumerate() {
                        if number > 0 || !is_empty {
                            qdisc.enqueue(*packet, now, env);
                        } else if passes {
                            left.extend(qdisc.pass(*packet, now, env));
                        } else {
                            qdisc.enqueue(*packet, now, env);
                            if qdisc.packets() > 0 {
                                left.extend(qdisc.dequeue(now, env));
                            }
                        }
                    }
                    left.extend((0..*leaving).filter_map(|_| qdisc.dequeue(now, env)));
                    let mut state = Vec::new();
                    qdisc.state(&mut |name, value| state.push((name, value.to_bits())));
                    let dropped: Vec<_> = env.take_dropped().collect();
                    (left, dropped, env.marked(), qdisc.packets(), qdisc.bytes(), qdisc.next_timer(), state)
                });
                prop_assert_eq!(&outcomes[0], &outcomes[1]);
            }
            Ok(())
        })?;
    }
}
