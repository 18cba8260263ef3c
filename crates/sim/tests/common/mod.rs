//! Helpers for tests of whole runs.
#![allow(
    dead_code,
    reason = "each test file is a crate of its own and uses a part"
)]

use std::path::Path;

use sojourn_experiment::{Plan, RunSpec, Source, read, read_file};
use sojourn_sim::result::{Column, Flow, Table};
use sojourn_sim::{RunResult, catalogue, names, run};

/// Runs a minute of traffic through one queue. `traffic` omits the header of its first group.
pub fn with_queue(rate: &str, queue: &str, traffic: &str) -> RunResult {
    runs("60 s", rate, queue, traffic, "").remove(0)
}

/// As [`with_queue`], with a duration and additional sections.
pub fn runs(duration: &str, rate: &str, queue: &str, traffic: &str, more: &str) -> Vec<RunResult> {
    let text = format!(
        "experiment = {{ duration = '{duration}' }}\nlink = {{ rate = '{rate}' }}\nqueue = [{queue}]\n[[traffic]]\n{traffic}\n{more}\n"
    );
    self::text(&text)
}

/// Runs an experiment given as text.
pub fn text(text: &str) -> Vec<RunResult> {
    let source = Source {
        name: "test.toml",
        text,
    };
    all(&read(source, &[], &names()).unwrap_or_else(|error| panic!("{error}")))
}

/// Runs a file.
pub fn file(path: &Path) -> Vec<RunResult> {
    file_with(path, &[])
}

/// Runs a file with overrides.
pub fn file_with(path: &Path, set: &[(&str, &str)]) -> Vec<RunResult> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let set: Vec<(String, String)> = set.iter().map(owned).collect();
    all(&read_file(path, &set, &names()).unwrap_or_else(|error| panic!("{error}")))
}

/// Executes every arm of every cell once.
fn all(plan: &Plan) -> Vec<RunResult> {
    let first = |spec: &RunSpec| spec.seed == spec.experiment.seed;
    let ran = plan
        .specs()
        .filter(first)
        .map(|spec| run(spec, &catalogue()).unwrap_or_else(|error| panic!("{error}")));
    ran.collect()
}

/// A flow by its index in the summary.
pub fn flow(run: &RunResult, at: usize) -> &Flow {
    &run.flows[at]
}

/// A column of a table.
pub fn column(table: &Table, name: &str) -> Vec<f64> {
    let (_, column) = table
        .columns
        .iter()
        .find(|(known, _)| *known == name)
        .unwrap_or_else(|| panic!("no column {name}"));
    match column {
        Column::U8(values) => values.iter().map(|x| f64::from(*x)).collect(),
        Column::U32(values) => values.iter().map(|x| f64::from(*x)).collect(),
        Column::U64(values) => values.iter().map(|x| *x as f64).collect(),
        Column::F64(values) => values.clone(),
    }
}
