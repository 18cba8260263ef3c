//! Bursts that travel as one object change no result.

use proptest::prelude::*;
use sojourn_experiment::{RunSpec, Source, read};
use sojourn_sim::{Session, catalogue, names, run};
use sojourn_units::Duration;

fn specs(text: &str) -> Vec<RunSpec> {
    let name = "test.toml";
    let plan = read(Source { name, text }, &[], &names());
    plan.unwrap_or_else(|error| panic!("{error}\n{text}"))
        .specs()
        .collect()
}

/// The result of a run of which somebody watches every packet. Then bursts are sent packet by packet.
fn watched(spec: &RunSpec) -> String {
    let mut session = Session::new(spec.clone(), &catalogue()).expect("it is built");
    session.watch_packets();
    while !session.is_finished() {
        session.step(session.now() + Duration::from_millis(100));
        session.take_events();
    }
    told(session.finish())
}

fn told(mut result: sojourn_sim::RunResult) -> String {
    result.wall_s = 0.0;
    serde_json::to_string(&result).expect("it is plain data")
}

fn experiment() -> impl Strategy<Value = String> {
    let aqm = prop::sample::select(vec![
        "'pfifo', limit = '60 packets'",
        "'pfifo', limit = '3 packets'",
        "'bfifo', limit = '40 kB'",
        "'pie'",
        "'pie', ecn = true",
        "'pie', variant = 'linux'",
        "'codel'",
        "'codel', ecn = true",
        "'red'",
        "'fq_codel'",
    ]);
    let tcp = prop::sample::select(vec!["reno", "cubic", "vegas", "bbr"]);
    let rate = prop::sample::select(vec![2_u32, 20, 200]);
    let rtt = prop::sample::select(vec![4_u32, 40]);
    let delay = prop::sample::select(vec!["", "delay = '2 ms'"]);
    let ecn = any::<bool>();
    (aqm, tcp, rate, rtt, delay, 1_u32..5, ecn).prop_map(
        |(aqm, tcp, rate, rtt, delay, flows, ecn)| {
            format!(
                "experiment = {{ duration = '1500 ms', warmup = '300 ms' }}\n\
                 queue = [{{ aqm = {aqm} }}]\n\
                 record = {{ series = '10 ms', rtt = true }}\n\
                 [link]\nrate = '{rate} Mbit/s'\n{delay}\nup = {{ rate = '2 Mbit/s' }}\n\
                 [[traffic]]\nkind = 'bulk'\ntcp = '{tcp}'\nflows = {flows}\nrtt = '{rtt} ms'\n\
                 ecn = {ecn}\nstart = '0..300 ms'\n\
                 [[traffic]]\nkind = 'web'\nrtt = '20 ms'\n\
                 [[traffic]]\nkind = 'cbr'\nrate = '300 kbit/s'\nrtt = '10 ms'\n"
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn bursts_change_no_result(text in experiment()) {
        for spec in specs(&text) {
            let whole = run(spec.clone(), &catalogue()).expect("it is built");
            prop_assert_eq!(told(whole), watched(&spec));
        }
    }
}
