//! The names accepted in a file, as JSON.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::{Value as Json, json};
use sojourn_experiment::{TrafficSummary, traffic_kinds};
use sojourn_measure::metrics::METRICS;
use sojourn_sim::SimPacket;
use sojourn_tcp::cc::Algorithm;

use crate::errors::wrong_input;
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
    let key = |key: &sojourn_aqm::Key| {
        json!({
            "name": key.name,
            "accepts": key.kind.accepts(),
            "default": key.default,
            "summary": key.doc,
        })
    };
    let discipline = |discipline: &sojourn_aqm::Discipline<SimPacket>| {
        json!({
            "name": discipline.name,
            "summary": discipline.summary,
            "source": discipline.source,
            "keys": discipline.keys().iter().map(key).collect::<Vec<_>>(),
        })
    };
    own::disciplines(&own::Failure::default())
        .iter()
        .map(discipline)
        .collect::<Json>()
        .to_string()
}

/// The registry of metrics.
#[pyfunction]
pub fn metrics_json() -> String {
    json!(METRICS).to_string()
}

/// A text of an experiment file as a number and its unit; None if it is not numeric.
#[pyfunction]
pub fn quantity(text: &str) -> Option<(f64, &'static str)> {
    sojourn_units::quantity(text)
}

/// Every congestion control.
#[pyfunction]
pub fn congestion_controls_json() -> String {
    let control = |control: &Algorithm| {
        json!({
            "name": control.name,
            "summary": control.summary,
            "source": control.source,
        })
    };
    own::catalogue(&own::Failure::default())
        .congestion_controls
        .iter()
        .map(control)
        .collect::<Json>()
        .to_string()
}

/// Every traffic model with the names of its keys.
#[pyfunction]
pub fn traffic_json() -> String {
    let kind = |kind: TrafficSummary| {
        let key = |name: &&str| json!({"name": name});
        json!({
            "name": kind.name,
            "summary": kind.doc,
            "keys": kind.keys.iter().map(key).collect::<Vec<_>>(),
        })
    };
    traffic_kinds()
        .into_iter()
        .map(kind)
        .collect::<Json>()
        .to_string()
}

/// The JSON Schema of the experiment file.
#[pyfunction]
pub fn schema_json() -> String {
    format!("{:#}\n", sojourn_experiment::schema(&own::names()))
}
