//! `[[queue]]`: the arms of the comparison.

use serde_json::{Value as Json, json};
use sojourn_units::Value;

use crate::error::ReadError;
use crate::form::{AnyKey, Default, Form, Key, described, table_schema};
use crate::forms::{BufferForm, Flag, Named, Text, kind_schema};
use crate::model::Queue;
use crate::names::{DisciplineKeys, KeySpec, Names};
use crate::section::{Entry, Section, names_of};
use crate::written;

static AQM: Key<Named> = Key {
    name: "aqm",
    form: Named {
        what: "discipline",
        known: |names| names.disciplines.iter().map(|d| d.name.as_str()).collect(),
    },
    default: Default::Required,
    doc: "The discipline.",
};
static LABEL: Key<Text> = Key {
    name: "label",
    form: Text,
    default: Default::Words("the discipline's name, with what sets it apart from other arms"),
    doc: "The name in tables and plots.",
};
static LIMIT: Key<BufferForm> = Key {
    name: "limit",
    form: BufferForm,
    default: Default::Words("link.buffer"),
    doc: "The most this queue may hold.",
};
static ECN: Key<Flag> = Key {
    name: "ecn",
    form: Flag,
    default: Default::Words("the discipline's own"),
    doc: "Mark packets of flows that support ECN instead of dropping them.",
};
static KEYS: &[&dyn AnyKey] = &[&AQM, &LABEL, &LIMIT, &ECN];

/// The keys of a discipline besides those of every queue.
fn own_keys(discipline: &DisciplineKeys) -> impl Iterator<Item = &KeySpec> {
    discipline
        .keys
        .iter()
        .filter(|spec| names_of(KEYS).all(|name| name != spec.name))
}

/// All arms, no two alike.
pub(crate) struct QueuesForm;

impl Form for QueuesForm {
    type Out = Vec<Queue>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<Queue>, ReadError> {
        let entries = entry.items().filter(|entries| !entries.is_empty());
        let entries = entries.ok_or_else(|| entry.refuse(self.accepts()))?;
        let mut queues = Vec::with_capacity(entries.len());
        let mut labelled = Vec::with_capacity(entries.len());
        for entry in &entries {
            queues.push(QueueForm.read(entry)?);
            labelled.push(
                Section::open(entry, &QueueForm)?
                    .given(LABEL.name)
                    .is_some(),
            );
        }
        tell_apart(&mut queues, &labelled);
        for (index, queue) in queues.iter().enumerate() {
            if let Some(twin) = queues[..index]
                .iter()
                .position(|other| other.label == queue.label)
            {
                let given = entries[index].at(LABEL.name);
                return Err(given.error(format!(
                    "queue.{twin} is labelled \"{}\" as well; give each a label of its own",
                    queue.label
                )));
            }
        }
        Ok(queues)
    }

    fn accepts(&self) -> String {
        "at least one table [[queue]] with an aqm".into()
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"type": "array", "minItems": 1, "items": QueueForm.schema(names)})
    }
}

/// Adds to a label that was not given, and that another arm has as well, the settings that this arm
/// does not share with all unlabelled arms of its discipline: `codel target=20 ms`.
fn tell_apart(queues: &mut [Queue], labelled: &[bool]) {
    let all: Vec<(Queue, Vec<String>)> = queues
        .iter()
        .map(|queue| (queue.clone(), settings_text(queue)))
        .collect();
    for (index, queue) in queues.iter_mut().enumerate() {
        let clash = (0..all.len()).any(|other| other != index && all[other].0.label == queue.label);
        if labelled[index] || !clash {
            continue;
        }
        let siblings: Vec<&Vec<String>> = (0..all.len())
            .filter(|other| !labelled[*other] && all[*other].0.aqm == queue.aqm)
            .map(|other| &all[other].1)
            .collect();
        for setting in &all[index].1 {
            let shared = siblings.iter().all(|sibling| sibling.contains(setting));
            if siblings.len() == 1 || !shared {
                queue.label = format!("{} {setting}", queue.label);
            }
        }
    }
}

/// What sets an arm apart from the discipline's defaults, as `key=value`.
fn settings_text(queue: &Queue) -> Vec<String> {
    let limit = queue
        .limit
        .map(|limit| format!("limit={}", written::buffer(limit)));
    let settings = queue.settings.iter();
    let settings = settings.map(|(key, value)| format!("{key}={}", written::value(value)));
    limit.into_iter().chain(settings).collect()
}

/// One discipline with its parameters.
pub(crate) struct QueueForm;

impl Form for QueueForm {
    type Out = Queue;

    fn read(&self, entry: &Entry<'_>) -> Result<Queue, ReadError> {
        let section = Section::open(entry, self)?;
        let name = section.get(&AQM)?;
        let own: Vec<&KeySpec> = entry
            .context
            .names
            .discipline(&name)
            .into_iter()
            .flat_map(own_keys)
            .collect();
        let known = names_of(KEYS).chain(own.iter().map(|spec| spec.name.as_str()));
        let section = section.only(&name, known)?;
        let mut settings: Vec<(String, Value)> = Vec::new();
        if let Some(ecn) = section.find(&ECN)? {
            settings.push((ECN.name.into(), Value::Flag(ecn)));
        }
        for spec in own {
            if let Some(given) = section.given(&spec.name) {
                settings.push((spec.name.clone(), given.quantity(spec.kind)?));
            }
        }
        Ok(Queue {
            label: section.find(&LABEL)?.unwrap_or_else(|| name.clone()),
            limit: section.find(&LIMIT)?,
            aqm: name,
            settings,
        })
    }

    fn accepts(&self) -> String {
        "a table with an aqm".into()
    }

    fn schema(&self, names: &Names) -> Json {
        let arms = names.disciplines.iter().map(|discipline| {
            let mut schema = table_schema(KEYS, names);
            let properties = &mut schema["properties"];
            properties[AQM.name] = json!({"const": discipline.name});
            for spec in &discipline.keys {
                properties[&spec.name] = key_schema(spec);
            }
            schema
        });
        json!({"type": "object", "oneOf": arms.collect::<Vec<_>>()})
    }
}

/// The schema of a discipline's key. A default that is no value of its kind is in words.
fn key_schema(spec: &KeySpec) -> Json {
    let schema = kind_schema(spec.kind);
    match spec.kind.parse(&spec.default) {
        Ok(_) => described(schema, &spec.doc, Some(&spec.default)),
        Err(_) => {
            let doc = format!("{} Default: {}.", spec.doc, spec.default);
            described(schema, &doc, None)
        }
    }
}
