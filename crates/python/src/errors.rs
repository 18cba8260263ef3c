//! Rust errors as Python exceptions.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use sojourn_experiment::{Plan, ReadError};

create_exception!(
    sojourn,
    ExperimentError,
    PyValueError,
    "The input is wrong: one line with file, line, key, what was given and what is accepted."
);
create_exception!(sojourn, RunError, PyRuntimeError, "A run failed.");
create_exception!(
    sojourn,
    Cancelled,
    PyRuntimeError,
    "A run was given up because its monitor was cancelled."
);

/// A file that cannot be read as an experiment.
pub fn wrong_input(error: &ReadError) -> PyErr {
    ExperimentError::new_err(error.to_string())
}

/// A queue that the simulator cannot build: the file's fault, at the key that the discipline refuses.
pub fn wrong_queue(plan: &Plan, cell: usize, queue: usize, error: &sojourn_sim::RunError) -> PyErr {
    match error {
        sojourn_sim::RunError::Settings(setting) => {
            let key = format!("queue.{queue}.{}", setting.key);
            wrong_input(&plan.refuse(cell, &key, &setting.message))
        }
        _ => ExperimentError::new_err(error.to_string()),
    }
}

/// A run that did not come to its end.
pub fn failed_run(error: &sojourn_sim::RunError) -> PyErr {
    match error {
        sojourn_sim::RunError::Cancelled => Cancelled::new_err(error.to_string()),
        _ => RunError::new_err(error.to_string()),
    }
}
