//! Compares the pages in `docs/disciplines` with the catalogue.

use std::fs;

use sojourn_aqm::Catalogue;
use sojourn_aqm::replay::Recorded;

#[test]
fn every_discipline_has_a_page_with_the_help_of_its_keys() {
    for discipline in Catalogue::<Recorded>::new().iter() {
        let path = format!(
            "{}/../../docs/disciplines/{}.md",
            env!("CARGO_MANIFEST_DIR"),
            discipline.name
        );
        let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        for key in discipline.keys() {
            let row = format!("| `{}` | {} | {} |\n", key.name, key.default, key.doc);
            assert!(page.contains(&row), "{path} lacks the row {row}");
        }
    }
}
