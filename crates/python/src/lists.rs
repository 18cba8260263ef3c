//! What can be named in a file, as JSON.

use pyo3::prelude::*;
use serde_json::{Value as Json, json};
use sojourn_aqm::Catalogue;
use sojourn_sim::{SimPacket, names};

/// Every discipline with its keys.
#[pyfunction]
pub fn disciplines_json() -> String {
    let catalogue = Catalogue::<SimPacket>::new();
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
            "keys": discipline.keys.iter().map(key).collect::<Vec<_>>(),
        })
    };
    catalogue
        .iter()
        .map(discipline)
        .collect::<Json>()
        .to_string()
}

/// Every congestion control.
#[pyfunction]
pub fn congestion_controls_json() -> String {
    let control = |name: &String| json!({"name": name});
    names()
        .congestion_controls
        .iter()
        .map(control)
        .collect::<Json>()
        .to_string()
}

/// Every traffic model.
#[pyfunction]
pub fn traffic_json() -> String {
    let schema = sojourn_experiment::schema(&names());
    let kinds = schema["properties"]["traffic"]["items"]["oneOf"].as_array();
    let key = |(name, key): (&String, &Json)| json!({"name": name, "default": key["default"], "summary": key["description"]});
    let kind = |kind: &Json| {
        let keys = kind["properties"].as_object().into_iter().flatten();
        json!({
            "name": kind["properties"]["kind"]["const"],
            "summary": kind["properties"]["kind"]["description"],
            "keys": keys.filter(|(name, _)| *name != "kind").map(key).collect::<Vec<_>>(),
        })
    };
    kinds
        .into_iter()
        .flatten()
        .map(kind)
        .collect::<Json>()
        .to_string()
}

/// The JSON Schema of the experiment file.
#[pyfunction]
pub fn schema_json() -> String {
    format!("{:#}\n", sojourn_experiment::schema(&names()))
}
