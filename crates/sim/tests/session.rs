//! A run that is driven step by step gives the same result.

use proptest::prelude::*;
use sojourn_experiment::{RunSpec, Source, read};
use sojourn_sim::{Happened, RunResult, Session, catalogue, document, names, run};
use sojourn_units::{Duration, Time};

const TEXT: &str = r#"
experiment = { duration = "3 s", warmup = "1 s" }
link = { rate = "4 Mbit/s", up = { rate = "1 Mbit/s" } }
queue = [{ aqm = "pie", ecn = true }, { aqm = "fq_codel" }]
record = { series = "100 ms", packets = true, rtt = true }
[[traffic]]
kind = "bulk"
flows = 2
rtt = "30 ms"
ecn = true
[[traffic]]
kind = "cbr"
rate = "500 kbit/s"
rtt = "20 ms"
[[traffic]]
kind = "web"
rtt = "50 ms"
"#;

/// Links in a row, so that packets go ahead of time.
const ROW: &str = r#"
experiment = { duration = "3 s", warmup = "1 s" }
link = [
    { name = "a", from = "n0", to = "n1", rate = "4 Mbit/s", delay = "1 ms" },
    { name = "b", from = "n1", to = "n2", rate = "5 Mbit/s", delay = "3 ms" },
    { name = "c", from = "n2", to = "n3", rate = "8 Mbit/s", delay = "2 ms" },
    { name = "d", from = "n3", to = "n4", rate = "6 Mbit/s", delay = "1 ms" },
]
queue = [{ aqm = "codel" }]
record = { series = "100 ms", packets = true, rtt = true }
[[traffic]]
kind = "bulk"
flows = 3
rtt = "30 ms"
from = "n0"
to = "n4"
[[traffic]]
kind = "cbr"
rate = "1 Mbit/s"
rtt = "20 ms"
from = "n2"
to = "n4"
"#;

fn specs() -> Vec<RunSpec> {
    let of = |text| {
        let name = "test.toml";
        let plan = read(Source { name, text }, &[], &names());
        plan.unwrap_or_else(|error| panic!("{error}"))
            .specs()
            .collect::<Vec<_>>()
    };
    [of(TEXT), of(ROW)].concat()
}

/// A result without its wall time.
fn figures(result: RunResult) -> String {
    let result = RunResult {
        wall_s: 0.0,
        ..result
    };
    format!("{result:?}")
}

fn whole(spec: RunSpec) -> String {
    figures(run(spec, &catalogue()).expect("it runs"))
}

#[test]
fn an_empty_step_and_one_beyond_the_end_change_nothing() {
    let spec = specs().remove(0);
    let mut session = Session::new(spec.clone(), &catalogue()).expect("it is built");
    session.step(Time::ZERO);
    assert_eq!(session.now(), Time::ZERO);
    assert!(!session.is_finished());
    session.step(Time::from_secs(1));
    session.step(Time::from_millis(500));
    assert_eq!(session.now(), Time::from_secs(1));
    session.step(Time::from_secs(100));
    assert_eq!(session.now(), Time::from_secs(3));
    assert!(session.is_finished());
    session.step(Time::from_secs(200));
    assert_eq!(figures(session.finish()), whole(spec));
}

#[test]
fn a_run_read_from_its_document_gives_the_same_result() {
    for spec in specs() {
        let text = document(&spec, &catalogue())
            .expect("it is built")
            .to_string();
        let again = RunSpec::read(&text, &names()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(whole(again), whole(spec));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The step size does not matter, neither in simulated time nor in events.
    #[test]
    fn steps_of_any_length_make_the_same_run(
        arm in 0..3_usize,
        steps in prop::collection::vec((1..400_000_000_u64, 1..20_000_u64), 1..40),
    ) {
        let spec = specs().remove(arm);
        let mut session = Session::new(spec.clone(), &catalogue()).expect("it is built");
        for (nanos, events) in steps {
            let before = session.now();
            session.advance(before + Duration::from_nanos(nanos), events);
            prop_assert!(session.now() >= before);
            prop_assert!(session.now() <= session.end());
        }
        prop_assert_eq!(figures(session.finish()), whole(spec));
    }
}

fn session(queue: &str) -> Session {
    let text = format!(
        "experiment = {{ duration = '60 s' }}\n\
         link = {{ rate = '10 Mbit/s' }}\nqueue = [{queue}]\n\
         traffic = [{{ kind = 'cbr', rate = '12 Mbit/s', rtt = '20 ms' }}]\n"
    );
    let source = Source {
        name: "test.toml",
        text: &text,
    };
    let plan = read(source, &[], &names()).unwrap_or_else(|error| panic!("{error}"));
    let spec = plan.specs().next().expect("one run");
    Session::new(spec, &catalogue()).expect("it is built")
}

/// The mean sojourn time in milliseconds of packets that left within ten seconds from `from`.
fn sojourn_ms(session: &mut Session, from: u64) -> f64 {
    session.step(Time::from_secs(from));
    session.observe();
    session.step(Time::from_secs(from + 10));
    let recent = &session.observe().queues[0].recent;
    recent.sum as f64 / recent.packets as f64 / 1e6
}

#[test]
fn observations_add_up_to_the_result_and_do_not_affect_the_series() {
    let spec = specs().remove(0);
    let mut session = Session::new(spec.clone(), &catalogue()).expect("it is built");
    let (mut left, mut bits) = (0, 0.0);
    while !session.is_finished() {
        session.step(session.now() + Duration::from_millis(70));
        let seen = session.observe();
        assert_eq!(seen.now, session.now());
        left += seen.queues[0].recent.packets;
        let bulk = &seen.flows[0];
        bits += bulk.goodput_bps * (seen.now - seen.since).as_secs_f64();
        assert!(bulk.cwnd >= 1.0);
    }
    let result = session.finish();
    assert_eq!(left, result.bottleneck["down"].delivered_packets);
    assert!((bits / 8.0 - result.flows[0].received_bytes as f64).abs() < 1.0);
    assert_eq!(figures(result), whole(spec));
}

#[test]
fn a_target_set_during_a_run_takes_effect() {
    for (queue, key, from, to) in [
        (
            "{ aqm = 'pie', target = '40 ms' }",
            "queue.target",
            40.0,
            "10 ms",
        ),
        (
            "{ aqm = 'pi2', target = '40 ms' }",
            "queue.target",
            40.0,
            "10 ms",
        ),
        (
            "{ aqm = 'pfifo', limit = '40 packets' }",
            "queue.limit",
            48.4,
            "8 packets",
        ),
    ] {
        let mut session = session(queue);
        let before = sojourn_ms(&mut session, 10);
        assert!((before / from - 1.0).abs() < 0.15, "{queue}: {before}");
        session.set(key, to, &catalogue()).expect("it is set");
        let after = sojourn_ms(&mut session, 40);
        assert!((after / 10.0 - 1.0).abs() < 0.25, "{queue}: {after}");
    }
}

#[test]
fn codel_and_fq_codel_drop_more_with_a_shorter_interval() {
    for queue in ["{ aqm = 'codel' }", "{ aqm = 'fq_codel' }"] {
        let drops = |change: bool| {
            let mut session = session(queue);
            session.step(Time::from_millis(500));
            let before = session.observe().queues[0].dropped;
            if change {
                let set = session.set("queue.interval", "10 ms", &catalogue());
                set.expect("it is set");
            }
            session.step(Time::from_secs(1));
            session.observe().queues[0].dropped - before
        };
        // The next drop comes interval / sqrt(count) after the last: ten times as soon.
        assert!(
            drops(true) > 3 * drops(false),
            "{queue}: {} {}",
            drops(true),
            drops(false)
        );
    }
}

#[test]
fn a_rate_set_during_a_run_takes_effect() {
    let mut session = session("{ aqm = 'pfifo', limit = '20 packets' }");
    session.step(Time::from_secs(10));
    session.observe();
    session
        .set("link.rate", "5 Mbit/s", &catalogue())
        .expect("it is set");
    session.step(Time::from_secs(20));
    let left = session.observe().queues[0].recent.packets;
    // 10 s at 5 Mbit/s; frames of 1500 + 14 bytes, or of the size of cbr packets.
    let slow = session.observe();
    assert_eq!(slow.queues[0].recent.packets, 0);
    session
        .set("link.rate", "10 Mbit/s", &catalogue())
        .expect("it is set");
    session.step(Time::from_secs(30));
    let fast = session.observe().queues[0].recent.packets;
    assert!(
        (fast as f64 / left as f64 - 2.0).abs() < 0.01,
        "{left} {fast}"
    );
    let result = session.finish();
    assert!((result.bottleneck["down"].utilization - 1.0).abs() < 0.01);
}

#[test]
fn a_refused_setting_changes_nothing() {
    let spec = specs().remove(0);
    let mut session = Session::new(spec.clone(), &catalogue()).expect("it is built");
    session.step(Time::from_millis(1500));
    for (key, value, told) in [
        ("queue.tagret", "5 ms", "queue.tagret: pie has no such key"),
        (
            "queue.target",
            "fast",
            "queue.target: got \"fast\"; must be a time",
        ),
        (
            "queue.target",
            "60 s",
            "queue.target: got \"60 s\"; must be above 0 and at most 10 s",
        ),
        (
            "queue.variant",
            "2013",
            "queue.variant: cannot be changed while the discipline runs",
        ),
        (
            "link.rate",
            "-1 Mbit/s",
            "link.rate: got \"-1 Mbit/s\"; must be a rate",
        ),
        (
            "traffic.0.flows",
            "3",
            "traffic.0.flows: no such key of a run; keys that can be set are queue.KEY and link.rate, link.up.rate",
        ),
    ] {
        let error = session
            .set(key, value, &catalogue())
            .expect_err(key)
            .to_string();
        assert!(error.starts_with(told), "{error}");
    }
    assert_eq!(figures(session.finish()), whole(spec));
    let mut fixed = self::session("{ aqm = 'red' }");
    let error = fixed.set("queue.probability", "0.5", &catalogue());
    let told = "queue.probability: this discipline cannot be changed while it runs";
    assert_eq!(error.expect_err("red").to_string(), told);
}

#[test]
fn events_tell_every_packet_and_do_not_affect_the_run() {
    use std::collections::BTreeMap;
    for spec in specs() {
        let mut session = Session::new(spec.clone(), &catalogue()).expect("it is built");
        session.watch_packets();
        let mut counts = BTreeMap::new();
        let mut waiting = 0_i64;
        while !session.is_finished() {
            session.step(session.now() + Duration::from_millis(10));
            let events = session.take_events();
            for event in &events[0] {
                assert!(event.time <= session.now() && event.entered <= event.time);
                *counts.entry(event.what as u8).or_insert(0) += 1;
                let arrived = event.what == Happened::Arrived;
                waiting += if arrived { 1 } else { -1 };
            }
            let seen = session.observe();
            assert_eq!(waiting, seen.queues[0].backlog_packets as i64);
        }
        let count = |what: Happened| counts.get(&(what as u8)).copied().unwrap_or(0);
        let result = session.finish();
        let figures_of = &result.bottleneck["down"];
        let left = count(Happened::Delivered) + count(Happened::Marked);
        assert_eq!(left, figures_of.delivered_packets);
        assert_eq!(count(Happened::DroppedAqm), figures_of.dropped_aqm);
        assert_eq!(
            count(Happened::DroppedOverflow),
            figures_of.dropped_overflow
        );
        assert_eq!(figures(result), whole(spec));
    }
}

/// The keys of every discipline that can be set by number accept both ends of their range while the run goes on.
#[test]
fn every_number_of_a_space_is_accepted() {
    let catalogue = catalogue();
    for aqm in catalogue
        .disciplines
        .iter()
        .map(|discipline| discipline.name)
    {
        let text = format!(
            "experiment = {{ duration = \"1 s\" }}\nlink = {{ rate = \"10 Mbit/s\" }}\nqueue = [{{ aqm = \"{aqm}\" }}]\n\
             traffic = [{{ kind = \"bulk\", rtt = \"40 ms\" }}]\n"
        );
        let plan = read(
            Source {
                name: "one.toml",
                text: &text,
            },
            &[],
            &names(),
        );
        let spec = plan.expect("it is right").specs().next().expect("one run");
        let mut session = Session::new(spec, &catalogue).expect("it runs");
        session.step(Time::from_millis(300));
        let space = session.space(&catalogue).clone();
        if let Some(alpha) = space
            .actions
            .iter()
            .find(|action| aqm == "pie" && action.key == "queue.alpha")
        {
            assert_eq!(alpha.range, (0.0, 1000.0));
        }
        for action in &space.actions {
            for number in [action.range.0, action.range.1] {
                let done = session.act(action, number, &catalogue);
                assert_eq!(done, Ok(()), "{aqm}: {} = {number}", action.key);
            }
        }
    }
}

/// Weights of a file decide as a loop does that sees the same observations, but for packets that arrive at the very instant of a
/// decision, which an interval beside the hosts' ticks avoids: a policy that was learned from outside is the
/// same one in an experiment file, and in the run's document.
#[test]
fn a_policy_of_a_file_is_the_one_that_a_loop_sets() {
    const WEIGHTS: &str = r#"{
        "interval": "20003 us", "most": 0.5, "output": [0, 0.01, -0.01, 0.1, -0.1],
        "inputs": ["backlog_ms", "utilisation", "probability", "sojourn_mean_ms", "sojourn_max_ms", "packets",
                   "backlog_packets", "backlog_bytes", "dropped", "marked"],
        "layers": [
            {"weights": [[0.1, -1, 5, 0.1, 0.01, 0.001, 0, 0, 0.1, 0], [-0.05, 2, -9, 0, 0, 0, 0.01, 0.00001, 0, 0.1]],
             "bias": [-0.5, 0.5]},
            {"weights": [[0.1, 0.1], [1, 0], [0, 1], [1.2, -0.5], [0, 0]], "bias": [0.2, 0, 0, -0.5, 0]}
        ]
    }"#;
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("weights.json"), WEIGHTS).expect("a file");
    let specs = |key: &str| {
        let text = format!(
            r#"
experiment = {{ duration = "8 s", seed = 3 }}
link = {{ rate = "5 Mbit/s", buffer = "100 packets" }}
queue = [{{ aqm = "policy", ecn = true{key} }}]
traffic = [{{ kind = "bulk", flows = 3, rtt = "30 ms", start = "0..1 s" }}, {{ kind = "bulk", ecn = true, rtt = "50 ms" }}]
"#
        );
        let name = folder.join("test.toml");
        let source = Source {
            name: name.to_str().expect("a path"),
            text: &text,
        };
        let plan = read(source, &[], &names()).unwrap_or_else(|error| panic!("{error}"));
        plan.specs().next().expect("a run")
    };
    let learned = specs(r#", weights = "weights.json""#);
    let mut network = sojourn_aqm::policy::Network::read(WEIGHTS).expect("weights");
    let catalogue = catalogue();
    let mut session = Session::new(specs(""), &catalogue).expect("it is built");
    let space = session.space(&catalogue).clone();
    let key = |action: &&sojourn_sim::Action| action.key == "queue.probability";
    let action = space.actions.iter().find(key).expect("a key of policy");
    let mut numbers = vec![0.0; space.observations.len()];
    let (mut probability, mut seen) = (0.0, Vec::new());
    while !session.is_finished() {
        session
            .act(action, probability, &catalogue)
            .expect("in range");
        session.step(session.now() + Duration::from_micros(20_003));
        session.observe_into(&mut numbers);
        let inputs = sojourn_aqm::policy::INPUTS.map(|name| {
            let place = space
                .observations
                .iter()
                .position(|of| *of == format!("down.{name}"));
            place.map_or(probability, |place| numbers[place])
        });
        probability = network.decide(&inputs, probability);
        seen.push(probability);
    }
    assert!(
        seen.iter().any(|p| *p > 0.02) && seen.contains(&0.0),
        "{seen:?}"
    );
    // The timer's events come on top.
    let figures = |result: RunResult| {
        figures(RunResult {
            events: 0,
            ..result
        })
    };
    let of_loop = figures(session.finish());
    let document = document(&learned, &catalogue)
        .expect("it is written")
        .to_string();
    let pickled = RunSpec::read(&document, &names()).unwrap_or_else(|error| panic!("{error}"));
    for spec in [learned, pickled] {
        let of_file = run(spec, &catalogue).expect("it runs");
        assert_eq!(figures(of_file), of_loop);
    }
}
