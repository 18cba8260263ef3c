//! Run documents: reading one gives the same run, and every run has its own hash.

mod common;

use serde_json::Value as Json;
use sojourn_experiment::{InUse, RunSpec, Source, hashed, read, sha256};

const TEXT: &str = r#"
experiment = { name = "load", duration = "10 s", warmup = "1 s", repeat = 2, seed = 7 }
link = { rate = [["0 s", "10 Mbit/s"], ["5 s", "4 Mbit/s"]], delay = "3 ms", up = { rate = "1 Mbit/s" } }
queue = [{ aqm = "pfifo" }, { aqm = "codel", target = "7 ms", label = "patient" }]
traffic = [{ kind = "bulk", flows = 4, rtt = "40 ms", start = "0..1 s" }, { kind = "web", rtt = "60 ms" }]
sweep = { "traffic.0.flows" = [4, 16] }
"#;

fn specs(text: &str) -> Vec<RunSpec> {
    let source = Source {
        name: "load.toml",
        text,
    };
    let plan = read(source, &[], &common::names()).unwrap_or_else(|error| panic!("{error}"));
    plan.specs().collect()
}

fn document(spec: &RunSpec) -> Json {
    spec.document(&InUse::default())
}

fn hash(spec: &RunSpec) -> String {
    sha256(&hashed(document(spec)).to_string())
}

#[test]
fn a_plan_lists_its_runs_by_cell_seed_and_arm() {
    let of = |spec: &RunSpec| (spec.set[0].1.clone(), spec.seed, spec.arm().label.clone());
    let listed: Vec<_> = specs(TEXT).iter().map(of).collect();
    assert_eq!(listed.len(), 8);
    assert_eq!(listed[0], (4.into(), 7, "pfifo".into()));
    assert_eq!(listed[1], (4.into(), 7, "patient".into()));
    assert_eq!(listed[2], (4.into(), 8, "pfifo".into()));
    assert_eq!(listed[7], (16.into(), 8, "patient".into()));
}

#[test]
fn a_run_reads_back_from_its_document() {
    for spec in specs(TEXT) {
        let text = document(&spec).to_string();
        let again =
            RunSpec::read(&text, &common::names()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(document(&again).to_string(), text);
        assert_eq!(
            (again.queue, again.seed, &again.set),
            (0, spec.seed, &spec.set)
        );
        assert_eq!(again.arm(), spec.arm());
        assert_eq!(again.experiment.traffic, spec.experiment.traffic);
        assert_eq!(again.experiment.links, spec.experiment.links);
    }
}

#[test]
fn every_run_has_its_own_hash() {
    let mut hashes: Vec<String> = specs(TEXT).iter().map(hash).collect();
    assert!(hashes.iter().all(|hash| hash.len() == 64));
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 8);
}

#[test]
fn names_and_sweep_do_not_change_the_hash() {
    let renamed = TEXT
        .replace("\"load\"", "\"other\"")
        .replace("patient", "calm");
    let without_sweep = renamed.split("sweep =").next().expect("a part").to_owned();
    let first = |text: &str| hash(&specs(text)[1]);
    assert_eq!(first(TEXT), first(&renamed));
    assert_eq!(first(TEXT), first(&without_sweep));
    assert_ne!(first(TEXT), first(&renamed.replace("7 ms", "8 ms")));
}

#[test]
fn a_run_document_contains_its_trace() {
    let folder = std::env::temp_dir().join(format!("sojourn-run-spec-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("line.trace"), "1\n1\n5\n9\n").expect("a trace");
    let text = r#"
        experiment = { duration = "10 s" }
        link = { rate = { trace = "line.trace" } }
        queue = [{ aqm = "pfifo" }]
        traffic = [{ kind = "bulk", rtt = "40 ms" }]
    "#;
    let file = folder.join("traced.toml");
    let source = Source {
        name: file.to_str().expect("UTF-8"),
        text,
    };
    let plan = read(source, &[], &common::names()).unwrap_or_else(|error| panic!("{error}"));
    let spec = plan.specs().next().expect("one");
    std::fs::remove_dir_all(&folder).expect("it was made");
    let written = document(&spec);
    assert_eq!(written["traces"]["line.trace"], "1\n1\n5\n9\n");
    let again = RunSpec::read(&written.to_string(), &common::names()).expect("it reads");
    assert_eq!(again.experiment.links, spec.experiment.links);
    let mut other = written.clone();
    other["traces"]["line.trace"] = "1\n2\n5\n9\n".into();
    assert_ne!(hashed(other.clone()), hashed(written));
    other["traces"] = Json::Null;
    let error = RunSpec::read(&other.to_string(), &common::names()).expect_err("no trace");
    let told = error.to_string();
    assert!(
        told.starts_with("run: link.rate.trace: got \"line.trace\""),
        "{told}"
    );
}

#[test]
fn a_bad_run_document_is_refused_in_one_line() {
    let text = document(&specs(TEXT)[0]).to_string();
    for (wrong, told) in [
        (
            "{",
            "run: not the document of a run: EOF while parsing an object at line 1 column 1",
        ),
        (
            &*text.replace("\"results\":1", "\"results\":0"),
            "run: results: got 0; must be 1",
        ),
        (
            &*text.replace("\"format\":1", "\"format\":\"x\""),
            "run: format: got \"x\"; must be 1",
        ),
        (
            &*text.replace("\"pfifo\"", "\"nothing\""),
            "run: queue.0.aqm: got \"nothing\"",
        ),
        (
            &*text.replace("\"format\":1", "\"format\":1,\"seed\":3"),
            "run: seed: unknown key; accepted by the document of a run: format, results, experiment, set, traces, files, own",
        ),
        (
            &*text.replace("\"set\":{", "\"set\":[],\"own\":{"),
            "run: set: got []; must be a table",
        ),
    ] {
        let error = RunSpec::read(wrong, &common::names())
            .expect_err(told)
            .to_string();
        assert!(error.starts_with(told), "{error}");
    }
}
