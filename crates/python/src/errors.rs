//! Rust errors as Python exceptions.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use sojourn_experiment::ReadError;

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

/// A run that did not come to its end.
pub fn failed_run(error: &sojourn_sim::RunError) -> PyErr {
    match error {
        sojourn_sim::RunError::Cancelled => Cancelled::new_err(error.to_string()),
        _ => RunError::new_err(error.to_string()),
    }
}
