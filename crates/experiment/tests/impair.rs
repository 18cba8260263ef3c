//! The impairments of a link.

mod common;

use common::{names, read_text};
use sojourn_experiment::model::{Experiment, Way};
use sojourn_experiment::{InUse, RunSpec, read_file};
use sojourn_path::Impair;
use sojourn_path::impair::{Jitter, Loss, Reorder, Shape};
use sojourn_units::Duration;

fn text(link: &str) -> String {
    format!(
        "experiment = {{ duration = '10 s' }}
        link = {{ rate = '10 Mbit/s', {link} }}
        queue = [{{ aqm = 'pfifo' }}]
        traffic = [{{ kind = 'bulk', rtt = '400 ms' }}]"
    )
}

fn read(link: &str) -> Experiment {
    let plan = read_text(&text(link)).unwrap_or_else(|error| panic!("{error}"));
    Experiment::clone(&plan.cells[0].experiment)
}

fn impair(link: &str) -> Impair {
    read(link).links[0].impair(Way::Down)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_share_is_a_percentage_or_a_number() {
    for keys in ["loss = '0.1 %'", "loss = 0.001"] {
        assert_eq!(impair(keys).loss, Some(Loss::Each(0.001)), "{keys}");
    }
    let all = impair("duplicate = '1%', corrupt = 1");
    assert_eq!((all.duplicate, all.corrupt), (0.01, 1.0));
    assert!(impair("loss = 0, duplicate = '0 %', corrupt = 0, jitter = '0 s'").is_nothing());
}

#[test]
fn tables_say_more() {
    let all = impair(
        "loss = { enter = 0.01, leave = '30 %' }, jitter = { mean = '2 ms', spread = '3 ms', shape = 'pareto' }, \
         reorder = { share = '1 %', by = '5 ms' }",
    );
    let bursts = Loss::Bursts {
        enter: 0.01,
        leave: 0.3,
        bad: 1.0,
        good: 0.0,
    };
    assert_eq!(all.loss, Some(bursts));
    assert_eq!(all.jitter, Some(Jitter::new(ms(2), ms(3), Shape::Pareto)));
    assert_eq!(all.reorder, Some(Reorder::new(0.01, Some(ms(5)))));
    let by_jitter = impair("jitter = '3 ms', reorder = '1 %'");
    assert_eq!(by_jitter.reorder, Some(Reorder::new(0.01, None)));
    let normal = Jitter::new(Duration::ZERO, ms(3), Shape::Normal);
    assert_eq!(by_jitter.jitter, Some(normal));
}

#[test]
fn the_reverse_direction_is_impaired_alike_unless_it_says_otherwise() {
    let link = read("loss = '1 %', jitter = '3 ms', up = { rate = '1 Mbit/s', loss = 0 }");
    let [down, up] = [Way::Down, Way::Up].map(|way| link.links[0].impair(way));
    assert_eq!((down.loss, up.loss), (Some(Loss::Each(0.01)), None));
    assert_eq!(down.jitter, up.jitter);
    let alike = &read("loss = '1 %'").links[0];
    assert_eq!(alike.impair(Way::Up), alike.impair(Way::Down));
}

#[test]
fn a_delay_that_changes_has_its_least_in_the_rtt() {
    let folder = std::env::temp_dir().join(format!("sojourn-delays-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let trace = folder.join("delay.csv");
    std::fs::write(&trace, "seconds,ms\n0,30\n1.5, 20\n# a comment\n4,80\n").expect("a file");
    let schedule = "delay = [['0 s', '30 ms'], ['1.5 s', '20 ms'], ['4 s', '80 ms']]";
    let file = folder.join("traced.toml");
    std::fs::write(&file, text("delay = { trace = 'delay.csv' }")).expect("a file");
    let plan = read_file(&file, &[], &names()).unwrap_or_else(|error| panic!("{error}"));
    let traced = Experiment::clone(&plan.cells[0].experiment);
    assert_eq!(traced.links, read(schedule).links);
    assert_eq!(traced.links[0].delay, ms(20));
    let beyond = traced.links[0].impair(Way::Up).delay;
    let at = |ms: u64| Duration::from_millis(ms);
    assert_eq!(
        beyond,
        [(at(0), ms(10)), (at(1500), ms(0)), (at(4000), ms(60))]
    );
    // The document of a run says all of it.
    let spec = plan.specs().next().expect("a run");
    let document = spec.document(&InUse::default());
    let again = RunSpec::read(&document.to_string(), &names()).expect("it reads back");
    assert_eq!(again.experiment.links, traced.links);
    assert_eq!(again.document(&InUse::default()), document);

    std::fs::write(&trace, "0,30\n1.5;20\n").expect("a file");
    let wrong = read_file(&file, &[], &names())
        .map(drop)
        .expect_err("it is wrong")
        .to_string();
    let expected = "delay.csv:2: got \"1.5;20\"; must be seconds and milliseconds like 1.5,20";
    assert!(wrong.ends_with(expected), "{wrong}");
    std::fs::remove_dir_all(&folder).expect("it was made");
}

#[test]
fn a_run_with_impairments_reads_back_from_its_document() {
    let links = "loss = { enter = 0.01, leave = 0.3, bad = 0.9, good = 0.001 }, jitter = { spread = '3 ms', shape = 'uniform' }, \
                 reorder = 0.001, duplicate = '0.01 %', corrupt = '0.001 %', up = { rate = '1 Mbit/s', loss = '2 %' }";
    let plan = read_text(&text(links)).unwrap_or_else(|error| panic!("{error}"));
    let spec = plan.specs().next().expect("a run");
    let document = spec.document(&InUse::default());
    let again = RunSpec::read(&document.to_string(), &names()).expect("it reads back");
    assert_eq!(again.experiment.links, spec.experiment.links);
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    let share = "a share like \"0.1 %\" or 0.001";
    let loss = format!("{share}, or a table like {{ enter = 0.01, leave = 0.3 }}");
    for (keys, told) in [
        ("loss = 1.5", format!("link.loss: got 1.5; must be {loss}")),
        ("loss = '101 %'", format!("link.loss: got \"101 %\"; must be {loss}")),
        ("loss = '-1 %'", format!("link.loss: got \"-1 %\"; must be {loss}")),
        ("loss = { enter = 2, leave = 0 }", format!("link.loss.enter: got 2; must be {share}")),
        ("loss = { enter = 0.1 }", format!("link.loss.leave: missing; must be {share}")),
        ("loss = { p = 0.1 }", "link.loss.p: unknown key; accepted by loss: enter, leave, bad, good".into()),
        ("duplicate = 'often'", format!("link.duplicate: got \"often\"; must be {share}")),
        ("jitter = '3'", "link.jitter: got \"3\"; must be a time like \"5 ms\" (ns, us, ms, s, min)".into()),
        ("jitter = { spread = '3 ms', shape = 'round' }", "link.jitter.shape: got \"round\"; accepted: normal, uniform, pareto".into()),
        ("reorder = '1 %'", "link.reorder: says not by how much packets overtake: must have jitter beside it, or be like { share = 0.001, by = \"5 ms\" }".into()),
        ("up = { rate = '1 Mbit/s', loss = 7 }", format!("link.up.loss: got 7; must be {loss}")),
        ("delay = [['1 s', '20 ms']]", "link.delay.0.0: got \"1 s\"; must be \"0 s\", the first instant of a schedule".into()),
    ] {
        let error = read_text(&text(keys)).map(drop).expect_err(keys).to_string();
        let (_, what) = error.split_once(": ").expect("a place");
        let what = what.split_once(": ").map_or(what, |(_, what)| what);
        assert!(error.contains(&told) || what == told, "{error}\n{told}");
    }
}
