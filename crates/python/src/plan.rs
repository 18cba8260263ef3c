//! An experiment file, read, and its runs.

use std::path::PathBuf;

use pyo3::prelude::*;
use sojourn_aqm::Catalogue;
use sojourn_experiment::{Cell, Source, read, read_file, resolved_with};
use sojourn_sim::names;

use crate::errors::{failed_run, wrong_input};
use crate::run::{Monitor, Run};

/// A checked experiment, its sweep expanded into jobs.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Plan {
    cells: Vec<Cell>,
    jobs: Vec<Job>,
}

/// One run to be made.
#[derive(Clone, Copy)]
struct Job {
    cell: usize,
    queue: usize,
    seed: u64,
}

impl Plan {
    fn new(plan: sojourn_experiment::Plan) -> Self {
        let jobs = plan
            .cells
            .iter()
            .enumerate()
            .flat_map(|(cell, Cell { experiment, .. })| {
                let seeds =
                    (0..u64::from(experiment.repeat)).map(|n| experiment.seed.wrapping_add(n));
                let queues = experiment.queues.len();
                seeds.flat_map(move |seed| (0..queues).map(move |queue| Job { cell, queue, seed }))
            })
            .collect();
        Self {
            cells: plan.cells,
            jobs,
        }
    }

    fn job(&self, index: usize) -> PyResult<(Job, &Cell)> {
        let job = *self
            .jobs
            .get(index)
            .ok_or_else(|| pyo3::exceptions::PyIndexError::new_err("no such job"))?;
        Ok((job, &self.cells[job.cell]))
    }
}

#[pymethods]
impl Plan {
    /// Reads a file; overrides are dotted keys with values.
    #[staticmethod]
    fn read_file(path: PathBuf, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let plan = read_file(&path, &overrides, &names()).map_err(|error| wrong_input(&error))?;
        Ok(Self::new(plan))
    }

    /// Reads an experiment's text; `name` stands for the file in messages.
    #[staticmethod]
    fn read_text(text: &str, name: &str, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let plan = read(Source { name, text }, &overrides, &names())
            .map_err(|error| wrong_input(&error))?;
        Ok(Self::new(plan))
    }

    /// The experiment's name.
    #[getter]
    fn name(&self) -> &str {
        &self.cells[0].experiment.name
    }

    /// (cell, queue, seed, label) in result order: cells, then seeds, then queues.
    #[getter]
    fn jobs(&self) -> Vec<(usize, usize, u64, &str)> {
        let label = |job: &Job| {
            self.cells[job.cell].experiment.queues[job.queue]
                .label
                .as_str()
        };
        self.jobs
            .iter()
            .map(|job| (job.cell, job.queue, job.seed, label(job)))
            .collect()
    }

    /// Simulated length of a job, in seconds.
    fn duration_s(&self, job: usize) -> PyResult<f64> {
        Ok(self.job(job)?.1.experiment.duration.as_secs_f64())
    }

    /// The experiment with every default filled in: one object per cell of the sweep, its swept
    /// values under `set`.
    fn resolved_json(&self) -> String {
        let names = names();
        let cell = |cell: &Cell| {
            let mut resolved = resolved_with(&cell.experiment, &names);
            resolved["set"] = set_json(cell);
            resolved
        };
        format!(
            "{:#}\n",
            self.cells.iter().map(cell).collect::<serde_json::Value>()
        )
    }

    /// Runs one job; other threads go on meanwhile.
    fn run(&self, py: Python<'_>, job: usize, monitor: &Monitor) -> PyResult<Run> {
        let (job, cell) = self.job(job)?;
        let result = py.detach(|| {
            sojourn_sim::run(
                &cell.experiment,
                job.queue,
                job.seed,
                &Catalogue::new(),
                monitor.inner(),
            )
        });
        let result = result.map_err(|error| failed_run(&error))?;
        Run::new(result, set_json(cell))
    }
}

/// The swept keys and their values in a cell.
fn set_json(cell: &Cell) -> serde_json::Value {
    cell.set
        .iter()
        .cloned()
        .collect::<serde_json::Map<_, _>>()
        .into()
}
