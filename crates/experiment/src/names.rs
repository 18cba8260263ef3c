//! The names that the caller provides: disciplines with their keys, and congestion controls.

use sojourn_units::Kind;

/// The names that a file may use beyond those of the format.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Names {
    /// Every discipline, in the order shown in messages.
    pub disciplines: Vec<DisciplineKeys>,
    /// Every congestion control, in the order shown in messages.
    pub congestion_controls: Vec<String>,
}

/// A discipline and its keys besides `aqm`, `label`, `limit` and `ecn`, which every queue accepts. It may list `ecn` to
/// give its own default and help.
#[derive(Clone, PartialEq, Debug)]
pub struct DisciplineKeys {
    /// Its name in `aqm`.
    pub name: String,
    /// Its keys.
    pub keys: Vec<KeySpec>,
}

/// A key of a discipline.
#[derive(Clone, PartialEq, Debug)]
pub struct KeySpec {
    /// The name in an experiment file.
    pub name: String,
    /// The kind of its values.
    pub kind: Kind,
    /// Its default, written as in a file; in words if it depends on other settings.
    pub default: String,
    /// The key's help, in one line.
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
