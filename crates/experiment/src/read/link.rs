//! `[link]`, the bottleneck, or `[[link]]`, the links of a network.

use serde_json::{Value as Json, json};
use sojourn_units::{Duration, Kind, Rate};

use super::queue::QueueForm;
use super::routes::NodeName;
use crate::document::Item;
use crate::error::ReadError;
use crate::form::{AnyKey, Default, Form, Key, table_schema};
use crate::forms::{BufferForm, Bytes, Packets, Span, Speed, Text, kind_schema};
use crate::model::{Capacity, Link, Nodes, Trace, UpLink};
use crate::names::Names;
use crate::section::{Entry, Section, names_of};

static RATE: Key<CapacityForm> = Key {
    name: "rate",
    form: CapacityForm,
    default: Default::Required,
    doc: "Rate of the link, or a schedule of rates: [[\"0 s\", \"100 Mbit/s\"], [\"50 s\", \"10 Mbit/s\"]], or a packet-delivery trace: { trace = \"file\" }.",
};
static DELAY: Key<Span> = Key {
    name: "delay",
    form: Span::Any,
    default: Default::Is("0 s"),
    doc: "One-way propagation of the bottleneck itself, part of every flow's RTT.",
};
static BUFFER: Key<BufferForm> = Key {
    name: "buffer",
    form: BufferForm,
    default: Default::Words("the discipline's own limit"),
    doc: "The discipline's limit: packets, bytes, or multiples of rate × largest base RTT.",
};
static DEVICE_QUEUE: Key<Packets> = Key {
    name: "device_queue",
    form: Packets,
    default: Default::Is("0 packets"),
    doc: "An unmanaged FIFO below the discipline (a driver's ring).",
};
static OVERHEAD: Key<Bytes> = Key {
    name: "overhead",
    form: Bytes {
        from: 0,
        to: 65_535,
    },
    default: Default::Is("14 B"),
    doc: "What a packet takes on the link beyond its IP length.",
};
static BURST: Key<Bytes> = Key {
    name: "burst",
    form: Bytes {
        from: 0,
        to: 1_000_000_000,
    },
    default: Default::Is("1600 B"),
    doc: "What the link may send ahead of its rate after an idle time; 0 B: a serial line.",
};
static UP: Key<UpForm> = Key {
    name: "up",
    form: UpForm,
    default: Default::Words("the reverse path has no queue"),
    doc: "The reverse direction, if it is a bottleneck as well.",
};
static ONLY_KEYS: &[&dyn AnyKey] = &[
    &RATE,
    &DELAY,
    &BUFFER,
    &DEVICE_QUEUE,
    &OVERHEAD,
    &BURST,
    &UP,
];

static NAME: Key<NodeName> = Key {
    name: "name",
    form: NodeName,
    default: Default::Required,
    doc: "What the link is called in keys, link.NAME.rate, and in results.",
};
static FROM: Key<NodeName> = Key {
    name: "from",
    form: NodeName,
    default: Default::Required,
    doc: "The node where its forward (\"down\") direction begins; nodes exist by being named.",
};
static TO: Key<NodeName> = Key {
    name: "to",
    form: NodeName,
    default: Default::Required,
    doc: "The node where its forward direction ends.",
};
static QUEUE: Key<QueueForm> = Key {
    name: "queue",
    form: QueueForm,
    default: Default::Words("the arms of [[queue]] are tried here"),
    doc: "A discipline of its own, with its keys, that is not under test.",
};
static KEYS_OF_ONE: &[&dyn AnyKey] = &[
    &NAME,
    &FROM,
    &TO,
    &RATE,
    &DELAY,
    &BUFFER,
    &DEVICE_QUEUE,
    &OVERHEAD,
    &BURST,
    &QUEUE,
    &UP,
];

/// The most links of a network.
const MOST_LINKS: usize = 100;

static UP_BUFFER: Key<BufferForm> = Key {
    name: "buffer",
    form: BufferForm,
    default: Default::Words("the forward direction's"),
    doc: "The limit of the reverse direction's discipline.",
};
static UP_QUEUE: Key<QueueForm> = Key {
    name: "queue",
    form: QueueForm,
    default: Default::Words("the same discipline as forward"),
    doc: "The reverse direction's discipline, with its keys.",
};
static UP_KEYS: &[&dyn AnyKey] = &[&RATE, &UP_BUFFER, &UP_QUEUE];

/// The links: of a file with `[link]` one, of `[[link]]` any number.
pub(crate) struct LinksForm;

impl Form for LinksForm {
    type Out = Vec<Link>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<Link>, ReadError> {
        let Some(entries) = entry.items() else {
            let section = Section::open(entry, self)?.only("[link]", names_of(ONLY_KEYS))?;
            return Ok(vec![link(&section, "link".into())?]);
        };
        if entries.is_empty() {
            return Err(entry.refuse(self.accepts()));
        }
        if entries.len() > MOST_LINKS {
            return Err(entry.refuse(format!("at most {MOST_LINKS} tables [[link]]")));
        }
        let mut links: Vec<Link> = Vec::with_capacity(entries.len());
        for entry in &entries {
            let link = link_of_network(entry)?;
            if let Some(twin) = links.iter().position(|other| other.name == link.name) {
                return Err(entry.at(NAME.name).error(format!(
                    "link.{twin} is called \"{}\" as well; give each a name of its own",
                    link.name
                )));
            }
            links.push(link);
        }
        if links.iter().all(|link| link.queue.is_some()) {
            return Err(entry.error(
                "every link has a queue of its own; must leave one without, where the arms of [[queue]] are tried",
            ));
        }
        Ok(links)
    }

    fn accepts(&self) -> String {
        "a table [link] with at least a rate, or tables [[link]]".into()
    }

    fn schema(&self, names: &Names) -> Json {
        let link = table_schema(KEYS_OF_ONE, names);
        json!({
            "anyOf": [
                table_schema(ONLY_KEYS, names),
                {"type": "array", "minItems": 1, "maxItems": MOST_LINKS, "items": link},
            ],
        })
    }
}

/// One of several links.
fn link_of_network(entry: &Entry<'_>) -> Result<Link, ReadError> {
    let section = Section::open(entry, &LinksForm)?.only("[[link]]", names_of(KEYS_OF_ONE))?;
    let nodes = Nodes {
        from: section.get(&FROM)?,
        to: section.get(&TO)?,
    };
    if nodes.from == nodes.to {
        return Err(entry.at(TO.name).refuse("another node than from"));
    }
    Ok(Link {
        nodes: Some(nodes),
        queue: section.find(&QUEUE)?,
        ..link(&section, section.get(&NAME)?)?
    })
}

/// What every link has.
fn link(section: &Section<'_>, name: String) -> Result<Link, ReadError> {
    Ok(Link {
        name,
        nodes: None,
        rate: section.get(&RATE)?,
        delay: section.get(&DELAY)?,
        buffer: section.find(&BUFFER)?,
        device_queue: section.get(&DEVICE_QUEUE)?,
        overhead: section.get(&OVERHEAD)? as u32,
        burst: section.get(&BURST)?,
        queue: None,
        up: section.find(&UP)?,
    })
}

/// The reverse direction.
struct UpForm;

impl Form for UpForm {
    type Out = UpLink;

    fn read(&self, entry: &Entry<'_>) -> Result<UpLink, ReadError> {
        let section = Section::open(entry, self)?.only("link.up", names_of(UP_KEYS))?;
        Ok(UpLink {
            rate: section.get(&RATE)?,
            buffer: section.find(&UP_BUFFER)?,
            queue: section.find(&UP_QUEUE)?,
        })
    }

    fn accepts(&self) -> String {
        "a table like { rate = \"1 Mbit/s\" }".into()
    }

    fn schema(&self, names: &Names) -> Json {
        table_schema(UP_KEYS, names)
    }
}

/// One rate, rates from instants on, or a trace of deliveries.
struct CapacityForm;

impl Form for CapacityForm {
    type Out = Capacity;

    fn read(&self, entry: &Entry<'_>) -> Result<Capacity, ReadError> {
        match &entry.node.item {
            Item::Table(_) => {
                let section = Section::open(entry, self)?.only("a trace", [TRACE.name])?;
                section.get(&TRACE).map(Capacity::Trace)
            }
            Item::Array(_) => steps(entry, &self.accepts()).map(Capacity::Steps),
            Item::Text(_) => Ok(Capacity::Steps(vec![(Duration::ZERO, Speed.read(entry)?)])),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn accepts(&self) -> String {
        format!(
            "{}, a schedule like [[\"0 s\", \"100 Mbit/s\"]], or {{ trace = \"file\" }}",
            Speed.accepts()
        )
    }

    fn schema(&self, names: &Names) -> Json {
        json!({
            "anyOf": [
                kind_schema(Kind::Rate),
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "array",
                        "prefixItems": [kind_schema(Kind::Duration), kind_schema(Kind::Rate)],
                        "minItems": 2,
                        "maxItems": 2,
                    },
                },
                table_schema(&[&TRACE], names),
            ],
        })
    }
}

fn steps(entry: &Entry<'_>, accepts: &str) -> Result<Vec<(Duration, Rate)>, ReadError> {
    let steps = entry.items().filter(|steps| !steps.is_empty());
    let steps = steps.ok_or_else(|| entry.refuse(accepts))?;
    let mut rates: Vec<(Duration, Rate)> = Vec::with_capacity(steps.len());
    for step in &steps {
        let pair: Option<[Entry<'_>; 2]> = step.items().and_then(|pair| pair.try_into().ok());
        let Some([from, rate]) = pair else {
            return Err(step.refuse("a pair of a time and a rate like [\"50 s\", \"10 Mbit/s\"]"));
        };
        let (instant, rate) = (Span::Any.read(&from)?, Speed.read(&rate)?);
        match rates.last() {
            None if !instant.is_zero() => {
                return Err(from.refuse("\"0 s\", the first instant of a schedule"));
            }
            Some((last, _)) if instant <= *last => {
                return Err(from.refuse(format!("after the instant before it (\"{last}\")")));
            }
            _ => rates.push((instant, rate)),
        }
    }
    Ok(rates)
}

static TRACE: Key<TraceForm> = Key {
    name: "trace",
    form: TraceForm,
    default: Default::Required,
    doc: "A file of packet deliveries as mahimahi has it, its path from the folder of the experiment file (in --set: from the working directory): a line per opportunity to deliver a packet of 1500 bytes, its time in whole milliseconds; after the last it begins anew.",
};

/// The name of a trace.
struct TraceForm;

impl Form for TraceForm {
    type Out = Trace;

    fn read(&self, entry: &Entry<'_>) -> Result<Trace, ReadError> {
        let name = Text.read(entry)?;
        let trace = entry.context.trace(&name, &entry.node.origin);
        trace.map_err(|what| entry.error(format!("got {}; {what}", entry.node.item)))
    }

    fn accepts(&self) -> String {
        "the path of a packet-delivery trace".into()
    }

    fn schema(&self, names: &Names) -> Json {
        Text.schema(names)
    }
}
