//! The names that the simulator knows, for the reader of experiment files.

use sojourn_aqm::Catalogue;
use sojourn_experiment::{DisciplineKeys, KeySpec, Names};
use sojourn_tcp::cc;

use crate::build::catalogue;
use crate::packet::SimPacket;

/// Every built-in discipline with its keys, and every congestion control.
pub fn names() -> Names {
    names_in(&catalogue())
}

/// Every discipline of `catalogue` with its keys, and every congestion control: for experiments that use disciplines
/// added to the catalogue.
pub fn names_in(catalogue: &Catalogue<SimPacket>) -> Names {
    let disciplines = catalogue
        .iter()
        .map(|discipline| DisciplineKeys {
            name: discipline.name.into(),
            keys: discipline
                .keys()
                .into_iter()
                .map(|key| KeySpec {
                    name: key.name.into(),
                    kind: key.kind,
                    default: key.default.into_owned(),
                    doc: key.doc.into(),
                })
                .collect(),
        })
        .collect();
    let congestion_controls = cc::ALGORITHMS
        .iter()
        .map(|algorithm| algorithm.name.into())
        .collect();
    Names {
        disciplines,
        congestion_controls,
    }
}
