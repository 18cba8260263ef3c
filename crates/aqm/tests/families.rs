//! The checks of the fuzz targets, on the bytes of a property test: any settings in range, any traffic.

#[path = "drive/arbitrary.rs"]
mod arbitrary;
mod drive;

use sojourn_aqm::Datagram;
use std::collections::BTreeSet;

use arbitrary::FAMILIES;
use proptest::prelude::*;
use sojourn_aqm::Catalogue;

#[test]
fn every_discipline_is_in_a_family() {
    let in_families: BTreeSet<&str> = FAMILIES
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    let all: BTreeSet<&str> = Catalogue::<Datagram<u64>>::new()
        .iter()
        .map(|d| d.name)
        .collect();
    assert_eq!(in_families, all);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_settings_and_no_traffic_break_a_discipline(
        family in 0..FAMILIES.len(),
        data in proptest::collection::vec(any::<u8>(), 0..2_000),
    ) {
        arbitrary::drive(FAMILIES[family].0, &data).map_err(TestCaseError::fail)?;
    }
}
