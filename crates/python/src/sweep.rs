//! A sweep too large for memory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use serde_json::json;
use sojourn_experiment::model::Experiment;
use sojourn_experiment::{Cell, InUse, sha256};
use sojourn_sim::{RunError, check, in_use};

use crate::errors::{failed_run, wrong_input};
use crate::own;
use crate::run_spec::{Common, RunSpec};

/// The runs of an experiment file, each read on request.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Sweep {
    sweep: sojourn_experiment::Sweep,
    name: String,
    /// The last cell read, with the values that its disciplines use. Runs are usually requested in their order, so the next
    /// run is probably one of the same cell.
    last: Mutex<Option<(u64, Known)>>,
    hash: OnceLock<String>,
}

/// A cell that was read.
#[derive(Clone)]
struct Known {
    cell: Cell,
    /// The values that the disciplines of its arms use.
    in_use: Arc<InUse>,
    /// Of each arm, what its runs have in common.
    common: Vec<Arc<Common>>,
}

impl Sweep {
    /// Reads a cell and checks that it can be built.
    fn cell(&self, number: u64) -> PyResult<Known> {
        {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, known)) = last.as_ref().filter(|(last, _)| *last == number) {
                return Ok(known.clone());
            }
        }
        let cell = self
            .sweep
            .cell(number)
            .map_err(|error| wrong_input(&error))?;
        let failure = own::Failure::default();
        let catalogue = own::catalogue(&failure);
        let refused = |error: &RunError, queue| match (failure.take(), error) {
            (Some(raised), _) => raised,
            (None, RunError::Settings { key, message }) => {
                let is_refused = |other: &_| is_refused(other, queue, key);
                wrong_input(&self.sweep.refuse(number, key, message, is_refused))
            }
            (None, error) => failed_run(error),
        };
        for queue in 0..cell.experiment.queues.len() {
            check(&cell.experiment, queue, &catalogue).map_err(|error| refused(&error, queue))?;
        }
        let values = in_use(&cell.experiment, &catalogue).map_err(|error| refused(&error, 0))?;
        let known = Known {
            in_use: Arc::new(values),
            common: cell
                .experiment
                .queues
                .iter()
                .map(|_| Arc::default())
                .collect(),
            cell,
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((number, known.clone()));
        Ok(known)
    }

    /// A run of a cell by its number.
    fn run_of(&self, known: &Known, number: u64) -> RunSpec {
        let spec = self.sweep.run_of(&known.cell, number);
        let common = Arc::clone(&known.common[spec.queue]);
        RunSpec::of_arm(spec, Some(Arc::clone(&known.in_use)), common)
    }
}

#[pymethods]
impl Sweep {
    /// Reads a file; overrides are dotted keys with values.
    #[staticmethod]
    fn read_file(path: PathBuf, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let sweep = sojourn_experiment::Sweep::read_file(&path, &overrides, &own::names())
            .map_err(|error| wrong_input(&error))?;
        let first = sweep.cell(0).map_err(|error| wrong_input(&error))?;
        let sweep = Self {
            name: first.experiment.name.clone(),
            sweep,
            last: Mutex::new(None),
            hash: OnceLock::new(),
        };
        for cell in sweep.sweep.edges() {
            sweep.cell(cell)?;
        }
        Ok(sweep)
    }

    /// The experiment's name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The number of runs.
    fn __len__(&self) -> usize {
        self.sweep.runs() as usize
    }

    /// The run with this index: by cell, then seed, then queue.
    fn __getitem__(&self, index: usize) -> PyResult<RunSpec> {
        if index as u64 >= self.sweep.runs() {
            return Err(PyIndexError::new_err("no such run"));
        }
        let per_cell = self.sweep.runs_per_cell();
        let known = self.cell(index as u64 / per_cell)?;
        Ok(self.run_of(&known, index as u64 % per_cell))
    }

    /// The first runs of the cells that differ from the first cell in at most one value. They include every value.
    fn edges(&self) -> Vec<u64> {
        let per_cell = self.sweep.runs_per_cell();
        self.sweep
            .edges()
            .iter()
            .map(|cell| cell * per_cell)
            .collect()
    }

    /// The swept keys with their values, as JSON.
    #[getter]
    fn axes_json(&self) -> PyResult<String> {
        Ok(json!(self.sweep.axes()).to_string())
    }

    /// SHA-256, in hexadecimal, of everything that determines the runs' results and their names.
    #[getter]
    fn hash(&self) -> PyResult<&str> {
        if let Some(hash) = self.hash.get() {
            return Ok(hash);
        }
        let mut text = format!("{} {}\n", self.sweep.runs(), self.axes_json()?);
        let per_cell = self.sweep.runs_per_cell();
        for cell in self.sweep.edges() {
            let known = self.cell(cell)?;
            let arms = known.cell.experiment.queues.len() as u64;
            for arm in 0..arms.min(per_cell) {
                text += &self.run_of(&known, arm).written()?.0;
                text.push('\n');
            }
        }
        Ok(self.hash.get_or_init(|| sha256(&text)))
    }
}

/// True if the simulator cannot build queue `queue` of an experiment because of the same key.
fn is_refused(experiment: &Experiment, queue: usize, key: &str) -> bool {
    let failure = own::Failure::default();
    sojourn_sim::is_refused(experiment, queue, key, &own::catalogue(&failure))
}
