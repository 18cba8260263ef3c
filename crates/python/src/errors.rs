//! Rust errors as Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTraceback;
use sojourn_experiment::ReadError;

create_exception!(
    sojourn,
    ExperimentError,
    PyValueError,
    "The input is wrong: one line with file, line, key, what was given and what is accepted."
);
create_exception!(sojourn, RunError, PyRuntimeError, "A run failed.");
create_exception!(sojourn, Cancelled, PyRuntimeError, "A run was cancelled.");

/// The error in an experiment file.
pub fn wrong_input(error: &ReadError) -> PyErr {
    ExperimentError::new_err(error.to_string())
}

/// The error for an exception that an algorithm in Python raised. The exception becomes the error's cause, and the message
/// ends with the file and line that raised it. A Ctrl-C during the algorithm remains a Ctrl-C.
pub fn failed_algorithm(raised: PyErr) -> PyErr {
    Python::attach(|py| {
        if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
            return raised;
        }
        let mut innermost = raised.traceback(py);
        while let Some(next) = innermost
            .as_ref()
            .and_then(|traceback| traceback.getattr("tb_next").ok())
            .and_then(|next| next.cast_into().ok())
        {
            innermost = Some(next);
        }
        let location = innermost.and_then(|traceback| location(&traceback).ok());
        let location = location.map_or(String::new(), |location| format!(" ({location})"));
        let error = RunError::new_err(format!("an algorithm in Python raised {raised}{location}"));
        error.set_cause(py, Some(raised));
        error
    })
}

/// Where an exception was raised: `my_aqm.py:12`.
fn location(traceback: &Bound<'_, PyTraceback>) -> PyResult<String> {
    let code = traceback.getattr("tb_frame")?.getattr("f_code")?;
    let file: String = code.getattr("co_filename")?.extract()?;
    let line: u32 = traceback.getattr("tb_lineno")?.extract()?;
    Ok(format!("{file}:{line}"))
}

/// The error for a run that cannot be built.
pub fn failed_run(error: &sojourn_sim::RunError) -> PyErr {
    RunError::new_err(error.to_string())
}
