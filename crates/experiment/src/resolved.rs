//! An experiment written out again, every default spelled out, as JSON that mirrors the file.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use sojourn_units::Value;

use crate::form::Form;
use crate::model::{Experiment, Way};
use crate::read::File;
use crate::written::value_json;

/// The experiment as a file that reads to the same: each key of the format with its value, defaults
/// included, quantities with units. A discipline's own defaults are left to it; see [`resolved_with`].
pub fn resolved(experiment: &Experiment) -> Json {
    resolved_with(experiment, &InUse::default())
}

/// Values by key.
pub type Values = Vec<(String, Value)>;

/// What the disciplines of an experiment take for their keys, given or not.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InUse {
    /// Of each arm.
    pub queues: Vec<Values>,
    /// Of the disciplines that links have of their own, by link; those of their reverse directions with the way up.
    pub links: BTreeMap<(usize, Way), Values>,
}

/// As [`resolved`], with what each discipline takes for its keys that were not given.
pub fn resolved_with(experiment: &Experiment, in_use: &InUse) -> Json {
    let mut file = File.write(experiment);
    for (arm, values) in in_use.queues.iter().enumerate() {
        fill(&mut file["queue"][arm], values);
    }
    for ((link, way), values) in &in_use.links {
        let link = match experiment.links[0].nodes {
            None => &mut file["link"],
            Some(_) => &mut file["link"][link],
        };
        match way {
            Way::Down => fill(&mut link["queue"], values),
            Way::Up => fill(&mut link["up"]["queue"], values),
        }
    }
    file
}

/// Puts the values into the table of a discipline, but none in place of one that was given.
fn fill(discipline: &mut Json, values: &Values) {
    for (key, value) in values {
        if discipline[key].is_null() {
            discipline[key] = value_json(value);
        }
    }
}
