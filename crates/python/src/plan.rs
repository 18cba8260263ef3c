//! An experiment file, read, and its runs.

use std::path::PathBuf;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use sojourn_experiment::model::{Experiment, Record};
use sojourn_experiment::{Cell, Source, read, read_file, resolved_with};
use sojourn_sim::{check, in_use};

use crate::errors::{failed_algorithm, failed_run, wrong_input, wrong_queue};
use crate::own;
use crate::run::{Monitor, Run};

/// A checked experiment, its sweep expanded into jobs.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Plan {
    /// All that the file asks for.
    pub plan: sojourn_experiment::Plan,
    jobs: Vec<Job>,
}

/// One run to be made.
#[derive(Clone, Copy)]
pub struct Job {
    /// Number of the cell.
    pub cell: usize,
    /// Number of the arm.
    pub queue: usize,
    /// The seed.
    pub seed: u64,
}

impl Plan {
    /// A plan all of whose queues can be built.
    fn checked(plan: sojourn_experiment::Plan) -> PyResult<Self> {
        let failure = own::Failure::default();
        let catalogue = own::catalogue(&failure);
        let mut jobs = Vec::new();
        for (cell, Cell { experiment, .. }) in plan.cells.iter().enumerate() {
            let queues = experiment.queues.len();
            for queue in 0..queues {
                check(experiment, queue, &catalogue).map_err(|error| {
                    // A Ctrl-C while a class was built is no fault of the file.
                    let raised = failure.take();
                    raised.unwrap_or_else(|| wrong_queue(&plan, cell, &error))
                })?;
            }
            for repeat in 0..u64::from(experiment.repeat) {
                let seed = experiment.seed.wrapping_add(repeat);
                jobs.extend((0..queues).map(|queue| Job { cell, queue, seed }));
            }
        }
        Ok(Self { plan, jobs })
    }

    /// The job of an index, and its cell of the sweep.
    pub fn job(&self, index: usize) -> PyResult<(Job, &Cell)> {
        let job = self.jobs.get(index);
        let job = *job.ok_or_else(|| PyIndexError::new_err("no such job"))?;
        Ok((job, &self.plan.cells[job.cell]))
    }
}

#[pymethods]
impl Plan {
    /// Reads a file; overrides are dotted keys with values.
    #[staticmethod]
    fn read_file(path: PathBuf, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let plan =
            read_file(&path, &overrides, &own::names()).map_err(|error| wrong_input(&error))?;
        Self::checked(plan)
    }

    /// Reads an experiment's text; `name` stands for the file in messages.
    #[staticmethod]
    fn read_text(text: &str, name: &str, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let plan = read(Source { name, text }, &overrides, &own::names())
            .map_err(|error| wrong_input(&error))?;
        Self::checked(plan)
    }

    /// The experiment's name.
    #[getter]
    fn name(&self) -> &str {
        &self.plan.cells[0].experiment.name
    }

    /// (cell, queue, seed, label) in result order: cells, then seeds, then queues.
    #[getter]
    fn jobs(&self) -> Vec<(usize, usize, u64, &str)> {
        let label = |job: &Job| {
            self.plan.cells[job.cell].experiment.queues[job.queue]
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

    /// The tables that some of its runs record because the file asks for them.
    #[getter]
    fn recorded(&self) -> Vec<&'static str> {
        let any = |asked: fn(&Record) -> bool| {
            let mut cells = self.plan.cells.iter();
            cells.any(|cell| asked(&cell.experiment.record))
        };
        [
            ("packets", any(|record| record.packets)),
            ("capture", any(|record| record.pcap.is_some())),
            ("queue_series", any(|record| record.series.is_some())),
            ("flow_series", any(|record| record.series.is_some())),
            ("rtts", any(|record| record.rtt)),
        ]
        .into_iter()
        .filter_map(|(name, is_recorded)| is_recorded.then_some(name))
        .collect()
    }

    /// All that decides what a job's run gives, traces included, as text: the same text, the same run.
    fn run_text(&self, job: usize) -> PyResult<String> {
        let (job, cell) = self.job(job)?;
        let only = Experiment {
            name: String::new(),
            repeat: 1,
            seed: job.seed,
            queues: vec![cell.experiment.queues[job.queue].clone()],
            ..cell.experiment.clone()
        };
        Ok(format!("{only:?}"))
    }

    /// The experiment with every default filled in: one object per cell of the sweep, its swept
    /// values under `set`.
    fn resolved_json(&self) -> PyResult<String> {
        let failure = own::Failure::default();
        let catalogue = own::catalogue(&failure);
        let cell = |cell: &Cell| {
            let in_use = in_use(&cell.experiment, &catalogue)
                .map_err(|error| failure.take().unwrap_or_else(|| failed_run(&error)))?;
            let mut resolved = resolved_with(&cell.experiment, &in_use);
            resolved["set"] = set_json(cell);
            Ok(resolved)
        };
        let cells: PyResult<Vec<_>> = self.plan.cells.iter().map(cell).collect();
        Ok(format!("{:#}\n", serde_json::Value::Array(cells?)))
    }

    /// Runs one job; other threads go on meanwhile.
    fn run(&self, py: Python<'_>, job: usize, monitor: &Monitor) -> PyResult<Run> {
        let (job, cell) = self.job(job)?;
        let failure = own::Failure::cancelling(monitor.shared());
        let result = py.detach(|| {
            sojourn_sim::run(
                &cell.experiment,
                job.queue,
                job.seed,
                &own::catalogue(&failure),
                monitor.inner(),
            )
        });
        if let Some(raised) = failure.take() {
            return Err(failed_algorithm(raised));
        }
        let result = result.map_err(|error| failed_run(&error))?;
        Run::new(result, set_json(cell))
    }
}

/// The swept keys and their values in a cell.
pub fn set_json(cell: &Cell) -> serde_json::Value {
    cell.set
        .iter()
        .cloned()
        .collect::<serde_json::Map<_, _>>()
        .into()
}
