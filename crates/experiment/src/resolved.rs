//! Writes an experiment as JSON that mirrors the file, with every default.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use sojourn_units::Value;

use crate::form::Form;
use crate::model::{Experiment, Way};
use crate::read::File;
use crate::written::value_json;

/// The experiment as a file that reads back to the same experiment: every key with its value, defaults included,
/// quantities with units. It omits the disciplines' own defaults; see [`resolved_with`].
pub fn resolved(experiment: &Experiment) -> Json {
    resolved_with(experiment, &InUse::default())
}

/// Values by key.
pub type Values = Vec<(String, Value)>;

/// The values that an experiment's disciplines use for their keys, given or default.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InUse {
    /// Per arm.
    pub queues: Vec<Values>,
    /// Per link with its own discipline; for a discipline of the reverse direction the way is up.
    pub links: BTreeMap<(usize, Way), Values>,
}

/// As [`resolved`], plus the values that each discipline uses for keys not given.
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

/// Adds values to a discipline's table; given values stay.
fn fill(discipline: &mut Json, values: &Values) {
    for (key, value) in values {
        if discipline[key].is_null() {
            discipline[key] = value_json(value);
        }
    }
}
