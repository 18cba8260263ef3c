//! Runs on Linux: the agent's job before, its recording after. In between the caller runs the agent.

use pyo3::prelude::*;
use sojourn_agent::{Recording, compile_job, compile_notes, summarise};

use crate::errors::{RunError, wrong_input};
use crate::plan::{Plan, set_json};
use crate::run::Run;

/// What the agent is to be told for a job, as JSON. Names of namespaces begin with `prefix`.
#[pyfunction]
pub fn linux_job(plan: &Plan, job: usize, prefix: &str) -> PyResult<String> {
    let (job, cell) = plan.job(job)?;
    let compiled = compile_job(&cell.experiment, job.queue, job.seed, prefix)
        .map_err(|refusal| wrong_input(&plan.plan.refuse(job.cell, &refusal.key, &refusal.must)))?;
    serde_json::to_string(&compiled).map_err(failed)
}

/// What an experiment asks for and Linux gives otherwise, in lines for the user.
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

/// The results of a job from what the agent was told and what it recorded.
#[pyfunction]
pub fn linux_run(
    py: Python<'_>,
    plan: &Plan,
    job: usize,
    told: &str,
    recording: &[u8],
    wall_s: f64,
) -> PyResult<Run> {
    let (job, cell) = plan.job(job)?;
    let run = py.detach(|| {
        let told = serde_json::from_str(told).map_err(|error| error.to_string())?;
        let recording = Recording::from_bytes(recording).map_err(|error| error.to_string())?;
        let experiment = &cell.experiment;
        Ok::<_, String>(summarise(
            experiment, job.queue, job.seed, &told, recording, wall_s,
        ))
    });
    Run::new(run.map_err(failed)?, set_json(cell))
}

fn failed(error: impl ToString) -> PyErr {
    RunError::new_err(error.to_string())
}
