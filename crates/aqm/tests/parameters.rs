//! Every discipline's keys: how they are shown, and which values are refused.

use sojourn_aqm::replay::Recorded;
use sojourn_aqm::{Catalogue, Settings};
use sojourn_units::{Duration, Kind, Rate, Value};

fn settings(values: &[(&str, Value)]) -> Settings {
    let mut settings = Settings::new(Rate::from_mbps(10), 1514);
    settings.values = values
        .iter()
        .map(|(key, value)| ((*key).into(), value.clone()))
        .collect();
    settings
}

#[test]
fn a_default_that_is_shown_is_the_value_in_use() {
    for discipline in Catalogue::<Recorded>::new().iter() {
        let defaults = settings(&[]);
        assert!(discipline.build(&defaults).is_ok(), "{}", discipline.name);
        let in_use = defaults.in_use();
        for key in discipline.keys() {
            let of_first_variant = key.default.split(';').next().unwrap_or_default();
            let used = in_use.iter().find(|(name, _)| name == key.name);
            // A default in words is not a value.
            if let (Ok(shown), Some((_, used))) = (key.kind.parse(of_first_variant), used) {
                assert_eq!(shown, *used, "{} {}", discipline.name, key.name);
            }
        }
    }
}

#[test]
fn every_key_is_refused_a_value_of_another_type() {
    for discipline in Catalogue::<Recorded>::new().iter() {
        for key in discipline.keys() {
            let wrong = match key.kind {
                Kind::Duration => Value::Flag(true),
                _ => Value::Duration(Duration::ZERO),
            };
            let error = discipline.build(&settings(&[(key.name, wrong)]));
            let error = error.err().expect("a value of another type");
            assert_eq!(error.key, key.name, "{}", discipline.name);
        }
    }
}

#[test]
fn a_key_without_effect_is_refused() {
    let catalogue = Catalogue::<Recorded>::new();
    let fq = catalogue.get("fq").expect("it is known");
    let threshold = Value::Rate(Rate::from_mbps(1));
    let built = fq.build(&settings(&[("low_rate_threshold", threshold.clone())]));
    assert_eq!(
        built.err().map(|error| error.to_string()),
        Some("low_rate_threshold: has no effect without maxrate".into())
    );
    let maxrate = Value::Rate(Rate::from_mbps(5));
    let both = settings(&[("low_rate_threshold", threshold), ("maxrate", maxrate)]);
    assert!(fq.build(&both).is_ok());
}

#[test]
fn cake_has_memory_for_a_frame_at_least() {
    let catalogue = Catalogue::<Recorded>::new();
    let cake = catalogue.get("cake").expect("it is known");
    let told = |bytes| {
        cake.build(&settings(&[("memlimit", Value::Bytes(bytes))]))
            .err()
    };
    assert_eq!(
        told(2089).map(|error| error.to_string()),
        Some("memlimit: got \"2089 B\"; must be \"2090 B\" or more, which a frame takes".into())
    );
    assert!(told(2090).is_none());
}

#[test]
fn a_key_that_a_discipline_does_not_have_is_refused() {
    for discipline in Catalogue::<Recorded>::new().iter() {
        let misspelt = settings(&[("targett", Value::Duration(Duration::from_millis(5)))]);
        let error = discipline.build(&misspelt).err().expect("no such key");
        let keys: String = discipline
            .keys()
            .iter()
            .map(|key| format!(", {}", key.name))
            .collect();
        let expected = format!(
            "targett: {} has no such key; it has limit, ecn{keys}",
            discipline.name
        );
        assert_eq!(error.to_string(), expected);
    }
}
