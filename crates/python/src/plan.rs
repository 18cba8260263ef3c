//! A parsed experiment file, and its runs.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};
use sojourn_agent::check_path_links;
use sojourn_experiment::derived::whole_route;
use sojourn_experiment::model::Record;
use sojourn_experiment::{Cell, Source, notes, read, read_file, resolved_with, sha256};
use sojourn_sim::{RunError, check, check_queues, in_use};

use crate::errors::{ExperimentError, failed_run, wrong_input};
use crate::own;
use crate::run_spec::{Common, RunSpec};

/// A checked experiment, with its sweep expanded into runs.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Plan {
    /// The content of the file.
    pub plan: sojourn_experiment::Plan,
    jobs: Vec<Job>,
    /// Of each cell and queue, what its runs have in common.
    common: Vec<Vec<Arc<Common>>>,
}

/// The index of a run in a plan.
#[derive(Clone, Copy)]
struct Job {
    cell: usize,
    queue: usize,
    seed: u64,
}

impl Plan {
    /// A plan whose queues can all be built.
    fn checked(plan: sojourn_experiment::Plan) -> PyResult<Self> {
        let failure = own::Failure::default();
        let catalogue = own::catalogue(&failure);
        let mut jobs = Vec::new();
        for (cell, Cell { experiment, .. }) in plan.cells.iter().enumerate() {
            let queues = experiment.queues.len();
            for queue in 0..queues {
                let error = check(experiment, queue, &catalogue);
                error.map_err(|error| refusal(&plan, (cell, queue), &error, &failure))?;
            }
            for repeat in 0..u64::from(experiment.repeat) {
                let seed = experiment.seed.wrapping_add(repeat);
                jobs.extend((0..queues).map(|queue| Job { cell, queue, seed }));
            }
        }
        Ok(Self::of(plan, jobs))
    }

    fn of(plan: sojourn_experiment::Plan, jobs: Vec<Job>) -> Self {
        let arms = |cell: &Cell| {
            cell.experiment
                .queues
                .iter()
                .map(|_| Arc::default())
                .collect()
        };
        let common = plan.cells.iter().map(arms).collect();
        Self { plan, jobs, common }
    }

    fn spec(&self, job: Job) -> RunSpec {
        let cell = &self.plan.cells[job.cell];
        let spec = sojourn_experiment::RunSpec {
            experiment: Arc::clone(&cell.experiment),
            queue: job.queue,
            seed: job.seed,
            set: cell.set.clone(),
        };
        RunSpec::of_arm(spec, None, Arc::clone(&self.common[job.cell][job.queue]))
    }
}

/// The error for a queue that cannot be built.
fn refusal(
    plan: &sojourn_experiment::Plan,
    (cell, queue): (usize, usize),
    error: &RunError,
    failure: &own::Failure,
) -> PyErr {
    // A Ctrl-C while a class was built is not an error in the file.
    let raised = failure.take();
    raised.unwrap_or_else(|| {
        let catalogue = own::catalogue(&own::Failure::default());
        match sojourn_sim::refusal(plan, (cell, queue), error, &catalogue) {
            Some(refused) => wrong_input(&refused),
            None => ExperimentError::new_err(error.to_string()),
        }
    })
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

    /// Reads an experiment's text; `name` replaces the file name in messages.
    #[staticmethod]
    fn read_text(text: &str, name: &str, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let plan = read(Source { name, text }, &overrides, &own::names())
            .map_err(|error| wrong_input(&error))?;
        Self::checked(plan)
    }

    /// As `read_text`, for programs that bring the traffic: one run, of the arm with this label, or else of the first arm.
    #[staticmethod]
    fn for_programs(
        text: &str,
        name: &str,
        overrides: Vec<(String, String)>,
        label: Option<&str>,
    ) -> PyResult<Self> {
        let mut plan = read(Source { name, text }, &overrides, &own::names())
            .map_err(|error| wrong_input(&error))?;
        if plan.cells.len() != 1 {
            let what = format!("{name}: sweep: must be left out where programs bring the traffic");
            return Err(ExperimentError::new_err(what));
        }
        let experiment = Arc::clone(&plan.cells[0].experiment);
        let labels = experiment.queues.iter().map(|arm| arm.label.as_str());
        let queue = match label {
            None => 0,
            Some(label) => labels
                .clone()
                .position(|known| known == label)
                .ok_or_else(|| {
                    let known = labels.collect::<Vec<_>>().join("\", \"");
                    ExperimentError::new_err(format!(
                        "--queue: got \"{label}\"; must be one of \"{known}\""
                    ))
                })?,
        };
        let failure = own::Failure::default();
        check_queues(&experiment, queue, &own::catalogue(&failure))
            .map_err(|error| refusal(&plan, (0, queue), &error, &failure))?;
        check_path_links(&experiment).map_err(|refusal| {
            let is_refused = |other: &_| check_path_links(other).is_err();
            wrong_input(&plan.refuse(0, &refusal.key, &refusal.must, is_refused))
        })?;
        whole_route(&experiment)
            .map_err(|what| ExperimentError::new_err(format!("{name}: link: {what}")))?;
        let alone = sojourn_experiment::RunSpec {
            queue,
            seed: experiment.seed,
            set: Vec::new(),
            experiment,
        };
        plan.cells[0].experiment = Arc::new(alone.alone());
        let jobs = vec![Job {
            cell: 0,
            queue: 0,
            seed: alone.seed,
        }];
        Ok(Self::of(plan, jobs))
    }

    /// The experiment's name.
    #[getter]
    fn name(&self) -> &str {
        &self.plan.cells[0].experiment.name
    }

    /// (cell, queue, seed, label) of every run, in the order of results: cells, then seeds, then queues.
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

    /// The number of runs.
    fn __len__(&self) -> usize {
        self.jobs.len()
    }

    /// The run with this index: by cell, then seed, then queue.
    fn __getitem__(&self, index: usize) -> PyResult<RunSpec> {
        let job = self.jobs.get(index);
        let job = job.ok_or_else(|| PyIndexError::new_err("no such run"))?;
        Ok(self.spec(*job))
    }

    /// All runs in order.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let specs = self.jobs.iter().map(|job| self.spec(*job));
        PyList::new(py, specs)?.try_iter()
    }

    /// What the user may overlook, a line each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for note in self
            .plan
            .cells
            .iter()
            .flat_map(|cell| notes(&cell.experiment))
        {
            if !lines.contains(&note) {
                lines.push(note);
            }
        }
        lines
    }

    /// The tables that some of its runs record, as the file requires.
    #[getter]
    fn recorded(&self) -> Vec<&'static str> {
        let any = |is_wanted: fn(&Record) -> bool| {
            let mut cells = self.plan.cells.iter();
            cells.any(|cell| is_wanted(&cell.experiment.record))
        };
        [
            ("packets", any(|record| record.packets)),
            ("capture", any(|record| record.pcap.is_some())),
            ("qlog", any(|record| record.qlog)),
            ("queue_series", any(|record| record.series.is_some())),
            ("flow_series", any(|record| record.series.is_some())),
            ("rtts", any(|record| record.rtt)),
            ("medium", any(|record| record.medium)),
        ]
        .into_iter()
        .filter_map(|(name, is_recorded)| is_recorded.then_some(name))
        .collect()
    }

    /// SHA-256, in hexadecimal, of everything that determines the runs' results and their names.
    #[getter]
    fn hash(&self) -> PyResult<String> {
        let mut text = String::new();
        for cell in &self.plan.cells {
            let first = |spec: &sojourn_experiment::RunSpec| spec.seed == cell.experiment.seed;
            for spec in cell.specs().take_while(first) {
                let spec = RunSpec::new(spec);
                text += &format!("{} {}\n", cell.experiment.repeat, spec.written()?.0);
            }
        }
        Ok(sha256(&text))
    }

    /// The experiment with every default filled in: one object per cell of the sweep, with its swept values under
    /// `set`.
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
}

/// The swept keys and their values in a cell.
fn set_json(cell: &Cell) -> serde_json::Value {
    cell.set
        .iter()
        .cloned()
        .collect::<serde_json::Map<_, _>>()
        .into()
}
