//! What the caller knows by name: disciplines with their keys, and congestion controls.

use sojourn_units::Kind;

/// The names that a file may use beyond those of the format itself.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Names {
    /// Every discipline, in the order in which messages list them.
    pub disciplines: Vec<DisciplineKeys>,
    /// Every congestion control, in the order in which messages list them.
    pub congestion_controls: Vec<String>,
}

/// A discipline and the keys that it accepts besides `aqm`, `label`, `limit` and `ecn`, which every
/// queue accepts. It may list `ecn` to give a default and doc of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct DisciplineKeys {
    /// Its name, as `aqm` gives it.
    pub name: String,
    /// Its keys.
    pub keys: Vec<KeySpec>,
}

/// A key of a discipline.
#[derive(Clone, PartialEq, Debug)]
pub struct KeySpec {
    /// The name in an experiment file.
    pub name: String,
    /// What it accepts.
    pub kind: Kind,
    /// Its default as one would write it; where it depends on other settings, in words.
    pub default: String,
    /// What it does, in one line.
    pub doc: String,
}

impl Names {
    /// The discipline called `name`.
    pub fn discipline(&self, name: &str) -> Option<&DisciplineKeys> {
        self.disciplines
            .iter()
            .find(|discipline| discipline.name == name)
    }
}
