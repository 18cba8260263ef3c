//! Helpers for tests of the file format.
#![allow(
    dead_code,
    reason = "each test file is a crate of its own and uses a part"
)]

use sojourn_experiment::{DisciplineKeys, KeySpec, Names, Plan, ReadError, Source, read};
use sojourn_units::Kind;

/// The example of the format's description.
pub const EXAMPLE: &str = include_str!("example.toml");

/// A file that sets most keys of the format to a non-default value.
pub const EVERY_KEY: &str = include_str!("every_key.toml");

/// A few disciplines with keys of every kind.
pub fn names() -> Names {
    let key = |name: &str, kind, default: &str| KeySpec {
        name: name.into(),
        kind,
        default: default.into(),
        doc: format!("The {name}."),
    };
    let discipline = |name: &str, keys: Vec<KeySpec>| DisciplineKeys {
        name: name.into(),
        keys,
    };
    let codel = vec![
        key("target", Kind::Duration, "5 ms"),
        key("interval", Kind::Duration, "100 ms"),
        key("variant", Kind::Choice(&["rfc8289", "linux"]), "rfc8289"),
    ];
    let mut fq_codel = codel.clone();
    fq_codel.push(key("flows", Kind::Count, "1024"));
    fq_codel.push(key("memory_limit", Kind::Bytes, "32 MB"));
    fq_codel.push(key("ecn", Kind::Flag, "true"));
    Names {
        disciplines: vec![
            discipline("pfifo", vec![]),
            discipline(
                "red",
                vec![
                    key("min", Kind::Size, "a third of max"),
                    key("probability", Kind::Probability, "0.02"),
                    key("weight", Kind::Number, "from burst"),
                    key("gentle", Kind::Flag, "true"),
                    key("bandwidth", Kind::Rate, "the link's rate"),
                ],
            ),
            discipline("codel", codel),
            discipline("fq_codel", fq_codel),
        ],
        congestion_controls: ["reno", "cubic", "bbr"].map(String::from).to_vec(),
    }
}

/// Reads `text` as `load.toml`, with overrides.
pub fn read_with(text: &str, overrides: &[(&str, &str)]) -> Result<Plan, ReadError> {
    let owned = |(key, value): &(&str, &str)| (key.to_string(), value.to_string());
    let overrides: Vec<(String, String)> = overrides.iter().map(owned).collect();
    let source = Source {
        name: "load.toml",
        text,
    };
    read(source, &overrides, &names())
}

/// Reads `text` as `load.toml`.
pub fn read_text(text: &str) -> Result<Plan, ReadError> {
    read_with(text, &[])
}
