//! The sections of the file, one file each, and the experiment that they make together.

mod checks;
mod header;
mod link;
mod queue;
mod record;
mod routes;
mod tcp;
mod traffic;

pub use traffic::{TrafficSummary, traffic_kinds};

use serde_json::{Value as Json, json};

use crate::error::ReadError;
use crate::form::{AnyKey, Default, Form, Key, table_schema};
use crate::model::{Experiment, Record};
use crate::names::Names;
use crate::section::{Entry, Section, names_of};

static EXPERIMENT: Key<header::HeaderForm> = Key {
    name: "experiment",
    form: header::HeaderForm,
    default: Default::Required,
    doc: "How long and how often to run.",
};
static LINK: Key<link::LinksForm> = Key {
    name: "link",
    form: link::LinksForm,
    default: Default::Required,
    doc: "The bottleneck, in the forward (\"down\") direction; or [[link]], the links of a network.",
};
static QUEUE: Key<queue::QueuesForm> = Key {
    name: "queue",
    form: queue::QueuesForm,
    default: Default::Required,
    doc: "Every entry is one arm of the comparison.",
};
static TRAFFIC: Key<traffic::TrafficsForm> = Key {
    name: "traffic",
    form: traffic::TrafficsForm,
    default: Default::Required,
    doc: "Every entry is a group of like flows.",
};
static RECORD: Key<record::RecordForm> = Key {
    name: "record",
    form: record::RecordForm,
    default: Default::Words("the summary only"),
    doc: "What to record beyond the summary.",
};
static KEYS: &[&dyn AnyKey] = &[&EXPERIMENT, &LINK, &QUEUE, &TRAFFIC, &RECORD];

/// The whole file without its sweep.
pub(crate) struct File;

impl Form for File {
    type Out = Experiment;

    fn read(&self, entry: &Entry<'_>) -> Result<Experiment, ReadError> {
        let known = names_of(KEYS).chain(["sweep"]);
        let section = Section::open(entry, self)?.only("an experiment file", known)?;
        let header = section.get(&EXPERIMENT)?;
        let groups = section.get(&TRAFFIC)?;
        let mut experiment = Experiment {
            name: header.name,
            duration: header.duration,
            warmup: header.warmup,
            repeat: header.repeat,
            seed: header.seed,
            links: section.get(&LINK)?,
            queues: section.get(&QUEUE)?,
            traffic: Vec::new(),
            record: section.find(&RECORD)?.unwrap_or(Record::default()),
        };
        checks::check(entry, &mut experiment, groups)?;
        Ok(experiment)
    }

    fn accepts(&self) -> String {
        "a table".into()
    }

    fn schema(&self, names: &Names) -> Json {
        let mut schema = table_schema(KEYS, names);
        schema["properties"]["sweep"] = json!({
            "description": "Dotted keys and the values that each takes: the file is run for every combination.",
            "type": "object",
            "additionalProperties": {
                "anyOf": [{"type": "array", "minItems": 1}, {"type": "object"}],
            },
        });
        schema
    }
}
