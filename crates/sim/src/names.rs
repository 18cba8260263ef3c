//! The names that the simulator knows, for the reader of experiment files.

use sojourn_experiment::{DisciplineKeys, KeySpec, Names};

use crate::catalogue::{Catalogue, catalogue};

/// Every built-in discipline with its keys, and every congestion control.
pub fn names() -> Names {
    names_in(&catalogue())
}

/// Every discipline of `catalogue` with its keys, and its congestion controls: for experiments that use those added to
/// it.
pub fn names_in(catalogue: &Catalogue) -> Names {
    let disciplines = catalogue
        .disciplines
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
    let congestion_controls = catalogue
        .congestion_controls
        .iter()
        .map(|algorithm| algorithm.name.into())
        .collect();
    Names {
        disciplines,
        congestion_controls,
    }
}

#[cfg(test)]
mod tests {
    use sojourn_experiment::LOSS_BASED;
    use sojourn_tcp::Config;
    use sojourn_tcp::cc::{self, Signal, Window};

    /// `beta` is a key of exactly those whose decrease it changes.
    #[test]
    fn the_loss_based_controls_are_those_that_beta_changes() {
        let left = |algorithm: &cc::Algorithm, beta| {
            let config = Config {
                beta,
                ..Config::default()
            };
            let mut window = Window::new(100);
            window.flight_size = 100;
            algorithm
                .build(&config)
                .on_congestion(Signal::Loss, &window)
        };
        let changed: Vec<_> = cc::Catalogue::new()
            .iter()
            .filter(|algorithm| left(algorithm, Some(0.3)) != left(algorithm, None))
            .map(|algorithm| algorithm.name)
            .collect();
        assert_eq!(changed, LOSS_BASED);
    }
}
