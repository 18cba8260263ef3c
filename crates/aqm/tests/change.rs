//! Changes of parameters while a discipline runs.

use proptest::prelude::*;
use sojourn_aqm::{Catalogue, Datagram, Ecn, Environment, FlowKey, Limit, Qdisc, Settings};
use sojourn_units::{Duration, Rate, TextFile, Time, Value};

/// The disciplines that can be changed while they run; all others refuse.
const CHANGEABLE: [&str; 10] = [
    "pfifo",
    "bfifo",
    "codel",
    "pie",
    "pi2",
    "fq_codel",
    "fq_nocodel",
    "fq_pie",
    "policer",
    "policy",
];

fn weights() -> Value {
    Value::File(TextFile {
        name: "weights.json".into(),
        text: r#"{"interval": "20 ms", "inputs": ["packets"], "output": "probability",
            "layers": [{"weights": [[1]], "bias": [0]}]}"#
            .into(),
    })
}

fn settings(limit: u64) -> Settings {
    let mut settings = Settings::new(Rate::from_mbps(10), 1514);
    settings.limit = Some(Limit::Packets(limit));
    settings
}

/// The numbers and marks of the packets that leave `qdisc` while packets arrive twice as fast as they leave. Halfway,
/// `act` is called.
fn played(
    qdisc: &mut dyn Qdisc<Datagram<u64>>,
    gaps: &[u16],
    act: impl FnOnce(&mut dyn Qdisc<Datagram<u64>>),
) -> (Vec<(u64, Ecn)>, u64) {
    let mut env = Environment::new(7);
    let (mut now, mut left, mut act) = (Time::ZERO, Vec::new(), Some(act));
    for (number, gap) in gaps.iter().enumerate() {
        now += Duration::from_micros(u64::from(*gap));
        while qdisc.next_timer().is_some_and(|at| at <= now) {
            qdisc.on_timer(now, &mut env);
        }
        if number == gaps.len() / 2 {
            if let Some(act) = act.take() {
                act(qdisc);
            }
        }
        let packet = Datagram::new(number as u64, 1514)
            .with_ecn(Ecn::Ect0)
            .with_flow(FlowKey::numbered(number as u32 % 5));
        qdisc.enqueue(packet, now, &mut env);
        if number % 2 == 0 {
            left.extend(
                qdisc
                    .dequeue(now, &mut env)
                    .map(|packet| (packet.payload, packet.ecn)),
            );
        }
    }
    (left, qdisc.packets())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_change_to_the_same_values_changes_nothing(gaps in prop::collection::vec(0..4_000_u16, 200..600)) {
        for discipline in Catalogue::<Datagram<u64>>::new().iter() {
            let build = || discipline.build(&settings(60)).expect("the defaults are good");
            let (mut changed, mut alone) = (build(), build());
            let mut changes = false;
            let outcome = played(changed.as_mut(), &gaps, |qdisc| {
                changes = qdisc.change(&settings(60)).is_ok();
            });
            prop_assert_eq!(changes, CHANGEABLE.contains(&discipline.name), "{}", discipline.name);
            prop_assert_eq!(outcome, played(alone.as_mut(), &gaps, |_| {}), "{}", discipline.name);
        }
    }

    #[test]
    fn a_lower_limit_drops_nothing_that_is_queued(gaps in prop::collection::vec(0..400_u16, 200..400)) {
        for name in CHANGEABLE {
            let catalogue = Catalogue::<Datagram<u64>>::new();
            let discipline = catalogue.get(name).expect("it is in the catalogue");
            let mut qdisc = discipline.build(&settings(60)).expect("the defaults are good");
            let mut before = 0;
            let (_, after) = played(qdisc.as_mut(), &gaps, |qdisc| {
                before = qdisc.packets();
                qdisc.change(&settings(5)).expect("a lower limit is accepted");
                assert_eq!(qdisc.packets(), before);
            });
            prop_assert!(after <= before.max(5), "{}: {} to {}", name, before, after);
        }
    }
}

#[test]
fn a_refused_change_changes_nothing() {
    let catalogue = Catalogue::<Datagram<u64>>::new();
    for (name, key, value) in [
        ("codel", "interval", Value::Duration(Duration::ZERO)),
        ("pie", "target", Value::Duration(Duration::from_secs(60))),
        ("fq_codel", "quantum", Value::Bytes(0)),
        ("fq_codel", "flows", Value::Count(7)),
        ("codel", "variant", Value::Word("linux".into())),
        ("policy", "weights", weights()),
    ] {
        let discipline = catalogue.get(name).expect("it is in the catalogue");
        let gaps = [300; 400];
        let build = || {
            discipline
                .build(&settings(60))
                .expect("the defaults are good")
        };
        let (mut asked, mut alone) = (build(), build());
        let outcome = played(asked.as_mut(), &gaps, |qdisc| {
            let mut wrong = settings(9);
            wrong.values.push((key.into(), value));
            let error = qdisc.change(&wrong).expect_err("it is refused");
            assert_eq!(error.key, key);
        });
        assert_eq!(
            outcome,
            played(alone.as_mut(), &gaps, |_| {}),
            "{name}.{key}"
        );
    }
}
