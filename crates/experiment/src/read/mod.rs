//! The sections of the file, one module each, and the experiment that they form.

mod across_sections;
mod class;
mod header;
mod impair;
mod link;
mod queue;
mod record;
mod routes;
mod schedule;
mod tcp;
mod traffic;
mod wifi;

pub use tcp::LOSS_BASED;
pub use traffic::{TrafficSummary, traffic_kinds};

use std::path::Path;

use serde_json::{Value as Json, json};

use self::header::Header;
use self::traffic::TrafficsForm;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::forms::Maybe;
use crate::keys::{Keys, keys, table_schema, written_table};
use crate::model::{Class, Experiment, Link, Queue, Record, Traffic};
use crate::names::Names;
use crate::section::Section;

keys! {
    /// The sections of a file without its sweep.
    struct FileKeys {
        /// How long and how often to run.
        experiment: Header = header::HEADER, Required;
        /// The bottleneck, in the forward ("down") direction; or [[link]], the links of a network.
        link: Vec<Link> = link::LinksForm, Required;
        /// Classes of [link] that share its rate, each with a discipline of its own: a tree of HTB.
        class: Option<Vec<Class>> = Maybe(class::ClassesForm), Words("none: one queue for all packets");
        /// One entry per arm of the comparison.
        queue: Vec<Queue> = queue::QueuesForm, Required;
        /// One entry per group of flows of the same kind. A file without any describes the path of programs: sojourn shell.
        traffic: Option<Vec<Vec<Traffic>>> = Maybe(TrafficsForm), Words("none");
        /// What to record beyond the summary.
        record: Option<Record> = Maybe(record::RECORD), Words("the summary only");
    }
}

/// A file without its sweep.
pub(crate) struct File;

impl Form for File {
    type Out = Experiment;

    fn read(&self, entry: &Entry<'_>) -> Result<Experiment, ReadError> {
        let known = FileKeys::names().into_iter().chain(["sweep", "case"]);
        let section =
            Section::open(entry, self)?.refuse_unknown_keys("an experiment file", known)?;
        let file = FileKeys::read(&section)?;
        let stem = || Path::new(entry.context.file).file_stem();
        let header = file.experiment;
        let mut experiment = Experiment {
            name: match header.name {
                Some(name) => name,
                None => stem().unwrap_or_default().to_string_lossy().into_owned(),
            },
            duration: header.duration,
            warmup: header.warmup,
            repeat: header.repeat,
            seed: header.seed,
            kernel: header.kernel,
            ties: header.ties,
            links: file.link,
            classes: file.class.unwrap_or_default(),
            queues: file.queue,
            traffic: Vec::new(),
            record: file.record.unwrap_or_default(),
        };
        across_sections::check(entry, &mut experiment, file.traffic.unwrap_or_default())?;
        Ok(experiment)
    }

    fn write(&self, experiment: &Experiment) -> Json {
        written_table(&FileKeys {
            experiment: Header {
                name: Some(experiment.name.clone()),
                duration: experiment.duration,
                warmup: experiment.warmup,
                repeat: experiment.repeat,
                seed: experiment.seed,
                kernel: experiment.kernel,
                ties: experiment.ties,
            },
            traffic: (!experiment.traffic.is_empty()).then(|| vec![experiment.traffic.clone()]),
            link: experiment.links.clone(),
            class: (!experiment.classes.is_empty()).then(|| experiment.classes.clone()),
            queue: experiment.queues.clone(),
            record: Some(experiment.record),
        })
    }

    fn accepts(&self) -> String {
        "a table".into()
    }

    fn schema(&self, names: &Names) -> Json {
        let mut schema = table_schema(&FileKeys::keys(), names);
        schema["properties"]["case"] = json!({
            "description": "Set-ups that differ in several keys at once: each is run, with every combination of [sweep].",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "label": {"description": "The name of the set-up in tables and figures.", "type": "string"},
                    "set": {"description": "Dotted keys and their values.", "type": "object"},
                },
                "required": ["label"],
                "additionalProperties": false,
            },
        });
        schema["properties"]["sweep"] = json!({
            "description": "Dotted keys and the values that each takes: the file is run for every combination.",
            "type": "object",
            "properties": {
                "design": {
                    "description": "Sample the ranges instead of running every combination.",
                    "enum": ["sobol", "latin_hypercube"],
                },
                "samples": {
                    "description": "Samples of the design.",
                    "type": "integer",
                    "minimum": 2,
                },
                "seed": {
                    "description": "Seed of the design.",
                    "type": "integer",
                    "minimum": 0,
                },
            },
            "additionalProperties": {
                "anyOf": [{"type": "array", "minItems": 1}, {"type": "object"}],
            },
        });
        schema
    }
}
