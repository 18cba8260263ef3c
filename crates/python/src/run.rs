//! A run's monitor and its results.

use pyo3::prelude::*;
use serde_json::Value as Json;
use sojourn_sim::RunResult;

/// Watches one run from another thread.
#[pyclass(frozen, module = "sojourn._core")]
#[derive(Default)]
pub struct Monitor(sojourn_sim::Monitor);

impl Monitor {
    /// The simulator's side of it.
    pub fn inner(&self) -> &sojourn_sim::Monitor {
        &self.0
    }
}

#[pymethods]
impl Monitor {
    #[new]
    fn py_new() -> Self {
        Self::default()
    }

    /// How far the run has come, in simulated seconds.
    #[getter]
    fn simulated_s(&self) -> f64 {
        self.0.simulated().as_secs_f64()
    }

    /// Makes the run stop soon.
    fn cancel(&self) {
        self.0.cancel();
    }
}

/// What one run left behind.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Run {
    summary_json: String,
}

impl Run {
    /// A run's results; `set` holds the swept values of its cell.
    pub fn new(result: RunResult, set: Json) -> PyResult<Self> {
        let _ = (result, set);
        Ok(Self {
            summary_json: String::new(),
        })
    }
}

#[pymethods]
impl Run {
    /// One element of `runs` in summary.json.
    #[getter]
    fn summary_json(&self) -> &str {
        &self.summary_json
    }
}
