//! `[experiment]`: how long and how often to run.

use std::path::Path;

use serde_json::Value as Json;
use sojourn_units::Duration;

use crate::error::ReadError;
use crate::form::{AnyKey, Default, Form, Key, table_schema};
use crate::forms::{Span, Text, Whole};
use crate::names::Names;
use crate::section::{Entry, Section, names_of};

static NAME: Key<Text> = Key {
    name: "name",
    form: Text,
    default: Default::Words("the file's name without its extension"),
    doc: "What the experiment is called in results.",
};
static DURATION: Key<Span> = Key {
    name: "duration",
    form: Span::AboveZero,
    default: Default::Required,
    doc: "How long each run lasts, in simulated or real time.",
};
static WARMUP: Key<Span> = Key {
    name: "warmup",
    form: Span::Any,
    default: Default::Is("0 s"),
    doc: "The part at the beginning that steady-state statistics leave out.",
};
static REPEAT: Key<Whole> = Key {
    name: "repeat",
    form: Whole {
        from: 1,
        to: 100_000,
    },
    default: Default::Is("1"),
    doc: "Independent runs per queue: seeds seed, seed + 1, …",
};
static SEED: Key<Whole> = Key {
    name: "seed",
    // So that seed + repeat fits a signed number of 64 bits, as tables have it.
    form: Whole {
        from: 0,
        to: 1 << 62,
    },
    default: Default::Is("1"),
    doc: "The seed of the first run.",
};
static KEYS: &[&dyn AnyKey] = &[&NAME, &DURATION, &WARMUP, &REPEAT, &SEED];

/// What `[experiment]` says.
pub(crate) struct Header {
    pub name: String,
    pub duration: Duration,
    pub warmup: Duration,
    pub repeat: u32,
    pub seed: u64,
}

/// The section.
pub(crate) struct HeaderForm;

impl Form for HeaderForm {
    type Out = Header;

    fn read(&self, entry: &Entry<'_>) -> Result<Header, ReadError> {
        let section = Section::open(entry, self)?.only("[experiment]", names_of(KEYS))?;
        let stem = || Path::new(entry.context.file).file_stem();
        let header = Header {
            name: match section.find(&NAME)? {
                Some(name) => name,
                None => stem().unwrap_or_default().to_string_lossy().into_owned(),
            },
            duration: section.get(&DURATION)?,
            warmup: section.get(&WARMUP)?,
            repeat: section.get(&REPEAT)? as u32,
            seed: section.get(&SEED)?,
        };
        if header.warmup >= header.duration {
            let below = format!("below experiment.duration (\"{}\")", header.duration);
            return Err(entry.at("warmup").refuse(below));
        }
        Ok(header)
    }

    fn accepts(&self) -> String {
        "a table [experiment] with at least a duration".into()
    }

    fn schema(&self, names: &Names) -> Json {
        table_schema(KEYS, names)
    }
}
