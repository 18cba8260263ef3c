//! A run that is driven step by step is the same run.

use proptest::prelude::*;
use sojourn_experiment::{RunSpec, Source, read};
use sojourn_sim::{RunResult, Session, catalogue, document, names, run};
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

fn specs() -> Vec<RunSpec> {
    let source = Source {
        name: "test.toml",
        text: TEXT,
    };
    let plan = read(source, &[], &names()).unwrap_or_else(|error| panic!("{error}"));
    plan.specs().collect()
}

/// A result without the time that it took.
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
fn an_empty_step_and_one_beyond_the_end_do_no_harm() {
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
fn a_run_that_was_written_down_and_read_is_the_same_run() {
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

    /// However long the steps, in simulated time or in events.
    #[test]
    fn steps_of_any_length_make_the_same_run(
        arm in 0..2_usize,
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
