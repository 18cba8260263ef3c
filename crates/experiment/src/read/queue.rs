//! `[[queue]]`: the arms of the comparison.

use serde_json::{Value as Json, json};
use sojourn_units::Value;

use crate::document::Item;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::{Form, described};
use crate::forms::{BufferForm, Flag, Maybe, Named, Text, kind_schema};
use crate::keys::{Keys, keys, table_schema, written_table};
use crate::model::{Buffer, Queue};
use crate::names::{DisciplineKeys, KeySpec, Names};
use crate::section::Section;
use crate::written;

keys! {
    /// The keys of every queue.
    struct QueueKeys {
        /// The discipline.
        aqm: String = DISCIPLINE, Required;
        /// The name in tables and plots.
        label: Option<String> = Maybe(Text), Words("the discipline's name, with the settings that distinguish it from other arms");
        /// The most this queue may hold.
        limit: Option<Buffer> = Maybe(BufferForm), Words("link.buffer");
        /// Mark packets of flows that support ECN instead of dropping them. No effect on those that never mark, or mark by keys of their own.
        ecn: Option<bool> = Maybe(Flag), Words("the discipline's own");
    }
}

const DISCIPLINE: Named = Named {
    what: "discipline",
    known: |names| names.disciplines.iter().map(|d| d.name.as_str()).collect(),
};

/// A discipline's keys besides those of every queue.
fn own_keys(discipline: &DisciplineKeys) -> impl Iterator<Item = &KeySpec> {
    discipline
        .keys
        .iter()
        .filter(|spec| QueueKeys::names().iter().all(|name| *name != spec.name))
}

/// All arms; no two may be equal.
pub(crate) struct QueuesForm;

impl Form for QueuesForm {
    type Out = Vec<Queue>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<Queue>, ReadError> {
        let entries = entry.items().filter(|entries| !entries.is_empty());
        let entries = entries.ok_or_else(|| entry.refuse(self.accepts()))?;
        let mut queues = Vec::with_capacity(entries.len());
        let mut labelled = Vec::with_capacity(entries.len());
        for entry in &entries {
            queues.push(ArmForm.read(entry)?);
            labelled.push(Section::open(entry, &ArmForm)?.given("label").is_some());
        }
        make_labels_unique(&mut queues, &labelled);
        for (index, queue) in queues.iter().enumerate() {
            if let Some(twin) = queues[..index]
                .iter()
                .position(|other| other.label == queue.label)
            {
                let given = entries[index].at("label");
                return Err(given.error(format!(
                    "queue.{twin} is labelled \"{}\" as well; give each a label of its own",
                    queue.label
                )));
            }
        }
        Ok(queues)
    }

    fn write(&self, queues: &Vec<Queue>) -> Json {
        queues.iter().map(|queue| ArmForm.write(queue)).collect()
    }

    fn accepts(&self) -> String {
        "at least one table [[queue]] with an aqm".into()
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"type": "array", "minItems": 1, "items": ArmForm.schema(names)})
    }
}

/// Makes default labels unique: adds the settings that an arm does not share with all unlabelled arms of its
/// discipline, as in `codel target=20 ms`.
fn make_labels_unique(queues: &mut [Queue], labelled: &[bool]) {
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

/// An arm's settings that differ from the discipline's defaults, as `key=value`.
fn settings_text(queue: &Queue) -> Vec<String> {
    let limit = queue
        .limit
        .map(|limit| format!("limit={}", written::buffer(limit)));
    let settings = queue.settings.iter();
    let settings = settings.map(|(key, value)| format!("{key}={}", written::value(value)));
    let up = queue.up.iter().flat_map(|up| up_settings(queue, up));
    let up = up.map(|(key, value)| format!("up.{key}={}", written::value(value)));
    let apart = (!queue.classes).then(|| "classes=false".to_owned());
    limit
        .into_iter()
        .chain(settings)
        .chain(apart)
        .chain(up)
        .collect()
}

/// One arm: a discipline with its parameters, and those that differ in the reverse direction.
struct ArmForm;

impl Form for ArmForm {
    type Out = Queue;

    fn read(&self, entry: &Entry<'_>) -> Result<Queue, ReadError> {
        let mut queue = discipline(entry, &["up", "classes"])?;
        if let Some(given) = Section::open(entry, self)?.given("classes") {
            queue.classes = Flag.read(&given)?;
        }
        if let Some(given) = Section::open(entry, self)?.given("up") {
            if !matches!(given.node.item, Item::Table(_)) {
                return Err(given.refuse("a table of keys of the reverse direction"));
            }
            let section = Section::open(&given, self)?;
            let own = specs(given.context.names, &queue.aqm);
            let known = ["limit", "ecn"]
                .into_iter()
                .chain(own.iter().map(|spec| &*spec.name));
            let section = section.refuse_unknown_keys(&queue.aqm, known)?;
            let mut up = queue.clone();
            if let Some(given) = section.given("limit") {
                up.limit = Some(BufferForm.read(&given)?);
            }
            if let Some(given) = section.given("ecn") {
                put(&mut up, "ecn", Value::Flag(Flag.read(&given)?));
            }
            for spec in own {
                if let Some(given) = section.given(&spec.name) {
                    put(&mut up, &spec.name, given.quantity(spec.kind)?);
                }
            }
            queue.up = Some(Box::new(up));
        }
        Ok(queue)
    }

    fn write(&self, queue: &Queue) -> Json {
        let mut table = QueueForm.write(queue);
        if !queue.classes {
            table["classes"] = false.into();
        }
        if let Some(up) = &queue.up {
            table["up"] = up_settings(queue, up)
                .map(|(key, value)| (key.to_owned(), written::value_json(value)))
                .collect();
            if up.limit != queue.limit {
                table["up"]["limit"] = up.limit.map(written::buffer).into();
            }
        }
        table
    }

    fn accepts(&self) -> String {
        QueueForm.accepts()
    }

    fn schema(&self, names: &Names) -> Json {
        let mut schema = QueueForm.schema(names);
        for arm in schema["oneOf"].as_array_mut().into_iter().flatten() {
            let mut up = arm.clone();
            if let Some(keys) = up["properties"].as_object_mut() {
                keys.retain(|key, _| key != "aqm" && key != "label");
            }
            up["required"] = json!([]);
            up["description"] = "Keys of the reverse direction, where they differ; not of a link whose up has a queue of its own.".into();
            arm["properties"]["up"] = up;
            let doc = "Whether each [[class]] of the link has this discipline for itself; false: one queue for all packets.";
            arm["properties"]["classes"] = described(json!({"type": "boolean"}), doc, Some("true"));
        }
        schema
    }
}

/// The settings of the reverse direction that differ.
fn up_settings<'a>(queue: &'a Queue, up: &'a Queue) -> impl Iterator<Item = &'a (String, Value)> {
    let differs = |setting: &&(String, Value)| !queue.settings.contains(setting);
    up.settings.iter().filter(differs)
}

fn put(queue: &mut Queue, key: &str, value: Value) {
    match queue.settings.iter_mut().find(|(name, _)| name == key) {
        Some((_, known)) => *known = value,
        None => queue.settings.push((key.into(), value)),
    }
}

fn specs<'a>(names: &'a Names, aqm: &str) -> Vec<&'a KeySpec> {
    let discipline = names.discipline(aqm);
    discipline.into_iter().flat_map(own_keys).collect()
}

/// Reads a discipline with its parameters; `more` are keys that the caller reads.
fn discipline(entry: &Entry<'_>, more: &[&'static str]) -> Result<Queue, ReadError> {
    let section = Section::open(entry, &QueueForm)?;
    let aqm = match section.given("aqm") {
        Some(given) => DISCIPLINE.read(&given)?,
        None => return Err(section.missing("aqm", &DISCIPLINE)),
    };
    let own = specs(entry.context.names, &aqm);
    let known = QueueKeys::names().into_iter();
    let known = known.chain(own.iter().map(|spec| spec.name.as_str()));
    let section = section.refuse_unknown_keys(&aqm, known.chain(more.iter().copied()))?;
    let keys = QueueKeys::read(&section)?;
    let ecn = keys.ecn.map(|ecn| ("ecn".to_string(), Value::Flag(ecn)));
    let mut settings: Vec<(String, Value)> = ecn.into_iter().collect();
    for spec in own {
        if let Some(given) = section.given(&spec.name) {
            settings.push((spec.name.clone(), given.quantity(spec.kind)?));
        }
    }
    Ok(Queue {
        label: keys.label.unwrap_or_else(|| aqm.clone()),
        limit: keys.limit,
        aqm,
        settings,
        classes: true,
        up: None,
    })
}

/// One discipline with its parameters.
pub(crate) struct QueueForm;

impl Form for QueueForm {
    type Out = Queue;

    fn read(&self, entry: &Entry<'_>) -> Result<Queue, ReadError> {
        discipline(entry, &[])
    }

    fn write(&self, queue: &Queue) -> Json {
        let mut table = written_table(&QueueKeys {
            aqm: queue.aqm.clone(),
            label: Some(queue.label.clone()),
            limit: queue.limit,
            ecn: None,
        });
        for (key, value) in &queue.settings {
            table[key] = written::value_json(value);
        }
        table
    }

    fn accepts(&self) -> String {
        "a table with an aqm".into()
    }

    fn schema(&self, names: &Names) -> Json {
        let arms = names.disciplines.iter().map(|discipline| {
            let mut schema = table_schema(&QueueKeys::keys(), names);
            let properties = &mut schema["properties"];
            properties["aqm"] = json!({"const": discipline.name});
            for spec in &discipline.keys {
                properties[&spec.name] = key_schema(spec);
            }
            schema
        });
        json!({"type": "object", "oneOf": arms.collect::<Vec<_>>()})
    }
}

/// The schema of a discipline's key. A default that is not of the key's kind is in words.
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
