//! Runs on Linux: compiles the agent's job and summarises its recording. The caller runs the agent in between.

use std::collections::BTreeSet;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sojourn_agent::{
    Job, PathJob, Recording, Refusal, ShellJob, check_parts, compile_job, compile_notes,
    compile_path_job, parts, summarise,
};
use sojourn_experiment::model::Experiment;

use crate::errors::{RunError, wrong_input};
use crate::own;
use crate::plan::Plan;
use crate::run::Run;
use crate::run_spec::RunSpec;

/// The agent's job for a run, as JSON. Names of namespaces begin with `prefix`.
#[pyfunction]
pub fn linux_job(spec: &RunSpec, prefix: &str) -> PyResult<String> {
    let RunSpec { inner, .. } = spec;
    let compiled = compile_job(&inner.experiment, inner.queue, inner.seed, prefix)
        .map_err(|refusal| failed(format!("{}: {}", refusal.key, refusal.must)))?;
    serde_json::to_string(&compiled).map_err(failed)
}

/// The parts of a job, as JSON, on each of several machines, as JSON. Names of namespaces begin with `prefix`.
#[pyfunction]
pub fn linux_parts(job: &str, prefix: &str, machines: &str) -> PyResult<Vec<String>> {
    let (job, machines) = (read_json::<Job>(job)?, read_json::<Vec<_>>(machines)?);
    let parts = parts::split(&job, prefix, &machines);
    let parts = parts.iter().map(serde_json::to_string);
    parts.collect::<Result<_, _>>().map_err(failed)
}

/// The recording of a job from those of its parts, in the order of the machines; see `linux_parts`.
#[pyfunction]
pub fn linux_joined<'py>(
    py: Python<'py>,
    job: &str,
    prefix: &str,
    machines: &str,
    recordings: Vec<Vec<u8>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (job, machines) = (read_json::<Job>(job)?, read_json::<Vec<_>>(machines)?);
    let read = |bytes: &Vec<u8>| Recording::from_bytes(bytes).map_err(failed);
    let recordings = recordings.iter().map(read).collect::<PyResult<_>>()?;
    let split = parts::split(&job, prefix, &machines);
    let whole = parts::join(&job, &machines, &split, recordings);
    Ok(PyBytes::new(py, &whole.to_bytes().map_err(failed)?))
}

fn read_json<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(failed)
}

/// The kernel modules that a plan's runs need, on one machine or in `parts`. Fails with the file's line if Linux cannot make one
/// of the runs.
#[pyfunction]
#[pyo3(signature = (plan, parts=false))]
pub fn linux_modules(plan: &Plan, parts: bool) -> PyResult<Vec<String>> {
    let mut modules = BTreeSet::new();
    for (number, cell) in plan.plan.cells.iter().enumerate() {
        for queue in 0..cell.experiment.queues.len() {
            let job = |of: &Experiment| {
                if parts {
                    check_parts(of)?;
                }
                compile_job(of, queue, of.seed, "sj")
            };
            let refused = |refusal: Refusal| {
                let is_refused = |other: &Experiment| {
                    queue < other.queues.len()
                        && job(other).is_err_and(|other| other.key == refusal.key)
                };
                plan.plan
                    .refuse(number, &refusal.key, &refusal.must, is_refused)
            };
            modules.extend(
                job(&cell.experiment)
                    .map_err(|refusal| wrong_input(&refused(refusal)))?
                    .modules,
            );
        }
    }
    Ok(modules.into_iter().collect())
}

/// The agent's job for a run whose packets pass Sojourn's own path, as JSON.
#[pyfunction]
pub fn path_job(spec: &RunSpec) -> PyResult<String> {
    let RunSpec { inner, .. } = spec;
    let document = spec.written()?.0.clone();
    let compiled = compile_path_job(&inner.experiment, inner.queue, inner.seed, document)
        .map_err(|refusal| failed(format!("{}: {}", refusal.key, refusal.must)))?;
    let told = PathJob {
        foreign: own::foreign(inner),
        ..compiled
    };
    serde_json::to_string(&told).map_err(failed)
}

/// Fails with the file's line if real packets cannot make one of a plan's runs.
#[pyfunction]
pub fn path_check(plan: &Plan) -> PyResult<()> {
    for (number, cell) in plan.plan.cells.iter().enumerate() {
        for queue in 0..cell.experiment.queues.len() {
            let job = |of: &Experiment| compile_path_job(of, queue, of.seed, String::new());
            let refused = |refusal: Refusal| {
                let is_refused = |other: &Experiment| {
                    queue < other.queues.len()
                        && job(other).is_err_and(|other| other.key == refusal.key)
                };
                plan.plan
                    .refuse(number, &refusal.key, &refusal.must, is_refused)
            };
            job(&cell.experiment).map_err(|refusal| wrong_input(&refused(refusal)))?;
        }
    }
    Ok(())
}

/// The agent's job for programs behind the path of a run, as JSON.
#[pyfunction]
pub fn shell_job(
    spec: &RunSpec,
    servers: Vec<String>,
    between: Option<[String; 2]>,
) -> PyResult<String> {
    let kinds = spec.inner.experiment.traffic.iter().map(|of| &of.kind);
    let controls = kinds.filter_map(|kind| Some(kind.tcp()?.congestion_control.clone()));
    let job = ShellJob {
        version: env!("CARGO_PKG_VERSION").into(),
        document: spec.written()?.0.clone(),
        congestion_controls: controls.collect(),
        foreign: own::foreign(&spec.inner),
        decider: None,
        servers,
        between,
        outside: None,
        watcher: None,
    };
    serde_json::to_string(&job).map_err(failed)
}

/// Settings of an experiment that Linux implements differently, in lines for the user.
#[pyfunction]
pub fn linux_notes(plan: &Plan) -> Vec<String> {
    let cells = plan.plan.cells.iter();
    let mut notes: Vec<String> = cells
        .flat_map(|cell| compile_notes(&cell.experiment))
        .collect();
    notes.sort();
    notes.dedup();
    notes
}

/// The results of a run from the agent's recording.
#[pyfunction]
pub fn linux_run(py: Python<'_>, spec: &RunSpec, recording: &[u8], wall_s: f64) -> PyResult<Run> {
    let inner = &spec.inner;
    let run = py.detach(|| {
        let recording = Recording::from_bytes(recording).map_err(|error| error.to_string())?;
        Ok::<_, String>(summarise(
            &inner.experiment,
            inner.queue,
            inner.seed,
            recording,
            wall_s,
        ))
    });
    Run::new(run.map_err(failed)?, spec.set_json())
}

fn failed(error: impl ToString) -> PyErr {
    RunError::new_err(error.to_string())
}
