//! Writes an experiment as JSON in the structure of the file, with the defaults of keys that are not given.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use sojourn_units::Value;

use crate::form::Form;
use crate::model::{Experiment, Way};
use crate::read::File;
use crate::written::value_json;

/// The experiment as a file that reads back to the same experiment. It has all keys, with defaults and units, except the
/// defaults of disciplines: [`resolved_with`] adds those.
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
    /// Per link with its own discipline: by the link's number, and `Way::Up` for the discipline of the reverse direction.
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
