//! The names accepted in a file with their descriptions, as JSON.

use serde_json::{Value as Json, json};
use sojourn_aqm::Discipline;
use sojourn_experiment::{TrafficSummary, traffic_kinds};
use sojourn_tcp::cc::Algorithm;

use crate::catalogue::Catalogue;
use crate::packet::SimPacket;

/// Every discipline with its keys.
pub fn disciplines(catalogue: &Catalogue) -> Json {
    let key = |key: &sojourn_aqm::Key| {
        json!({
            "name": key.name,
            "accepts": key.kind.accepts(),
            "default": key.default,
            "summary": key.doc,
        })
    };
    let discipline = |discipline: &Discipline<SimPacket>| {
        json!({
            "name": discipline.name,
            "summary": discipline.summary,
            "source": discipline.source,
            "keys": discipline.keys().iter().map(key).collect::<Vec<_>>(),
        })
    };
    catalogue.disciplines.iter().map(discipline).collect()
}

/// Every congestion control.
pub fn congestion_controls(catalogue: &Catalogue) -> Json {
    let control = |control: &Algorithm| {
        json!({
            "name": control.name,
            "summary": control.summary,
            "source": control.source,
        })
    };
    catalogue.congestion_controls.iter().map(control).collect()
}

/// Every traffic model with the names of its keys.
pub fn traffic() -> Json {
    let kind = |kind: TrafficSummary| {
        let key = |name: &&str| json!({"name": name});
        json!({
            "name": kind.name,
            "summary": kind.doc,
            "keys": kind.keys.iter().map(key).collect::<Vec<_>>(),
        })
    };
    traffic_kinds().into_iter().map(kind).collect()
}
