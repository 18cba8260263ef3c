//! The names accepted in a file, as JSON.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::json;
use sojourn_measure::metrics::{METRICS, UNITS};
use sojourn_sim::lists;

use crate::errors::{ExperimentError, wrong_input};
use crate::own;

/// The design that an experiment file asks for; `null` if it has a grid or the points of its design.
#[pyfunction]
pub fn design_json(path: PathBuf, overrides: Vec<(String, String)>) -> PyResult<String> {
    let found = sojourn_experiment::design(&path, &overrides, &own::names());
    Ok(found.map_err(|error| wrong_input(&error))?.to_string())
}

/// Every discipline with its keys.
#[pyfunction]
pub fn disciplines_json() -> String {
    lists::disciplines(&own::catalogue(&own::Failure::default())).to_string()
}

/// The registry of metrics.
#[pyfunction]
pub fn metrics_json() -> String {
    json!(METRICS).to_string()
}

/// The units of numbers in a result, by the endings of their keys.
#[pyfunction]
pub fn units_json() -> String {
    json!(UNITS).to_string()
}

/// A learned network from an archive of `numpy.savez`, as the JSON of `weights`.
#[pyfunction]
pub fn network_json(archive: &[u8]) -> PyResult<String> {
    let network = sojourn_experiment::npz::network(archive).map_err(ExperimentError::new_err)?;
    Ok(network.to_string())
}

/// A text of an experiment file as a number and its unit; None if it is not numeric.
#[pyfunction]
pub fn quantity(text: &str) -> Option<(f64, &'static str)> {
    sojourn_units::quantity(text)
}

/// Every congestion control.
#[pyfunction]
pub fn congestion_controls_json() -> String {
    lists::congestion_controls(&own::catalogue(&own::Failure::default())).to_string()
}

/// Every traffic model with the names of its keys.
#[pyfunction]
pub fn traffic_json() -> String {
    lists::traffic().to_string()
}

/// The JSON Schema of the experiment file.
#[pyfunction]
pub fn schema_json() -> String {
    format!("{:#}\n", sojourn_experiment::schema(&own::names()))
}
