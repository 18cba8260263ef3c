//! `[[traffic]]`: groups of like flows.
//!
//! A new kind of traffic is one [`TrafficKind`] here beside its variant in the model.

use serde_json::{Value as Json, json};
use sojourn_units::{Duration, Kind as Unit, Value};

use super::tcp;
use crate::error::ReadError;
use crate::form::{AnyKey, Default, Form, Key, table_schema};
use crate::forms::{Bytes, Span, Speed, Whole, Word, kind_schema};
use crate::model::{Cbr, Direction, Files, Kind, Ping, Traffic};
use crate::names::Names;
use crate::section::{Entry, Section};

/// A kind of traffic: its name, its keys besides those of every group, and how they are read.
struct TrafficKind {
    name: &'static str,
    doc: &'static str,
    /// In groups, so that kinds can share some.
    keys: &'static [&'static [&'static dyn AnyKey]],
    read: fn(&Section<'_>) -> Result<Kind, ReadError>,
}

impl TrafficKind {
    /// The keys of every kind, then its own.
    fn all_keys(&self) -> impl Iterator<Item = &'static dyn AnyKey> {
        let own = self.keys.iter().copied().flatten();
        COMMON.iter().chain(own).copied()
    }
}

/// A kind of traffic, for listings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrafficSummary {
    /// Its name, as `kind` gives it.
    pub name: &'static str,
    /// What its flows do, in one line.
    pub doc: &'static str,
    /// The keys that it accepts, those of every kind first.
    pub keys: Vec<&'static str>,
}

/// Every kind of traffic that a file may ask for.
pub fn traffic_kinds() -> Vec<TrafficSummary> {
    let summary = |kind: &TrafficKind| TrafficSummary {
        name: kind.name,
        doc: kind.doc,
        keys: kind.all_keys().map(|key| key.name()).collect(),
    };
    KINDS.iter().map(summary).collect()
}

static KINDS: &[TrafficKind] = &[
    TrafficKind {
        name: "bulk",
        doc: "TCP with always more to send.",
        keys: &[tcp::KEYS],
        read: |section| tcp::read(section).map(Kind::Bulk),
    },
    TrafficKind {
        name: "cbr",
        doc: "UDP at a constant rate.",
        keys: &[&[&RATE, &PACKET]],
        read: |section| {
            Ok(Kind::Cbr(Cbr {
                rate: section.get(&RATE)?,
                packet: section.get(&PACKET)? as u32,
            }))
        },
    },
    TrafficKind {
        name: "ping",
        doc: "Echo requests with 56 bytes of payload; their RTTs are a result.",
        keys: &[&[&INTERVAL]],
        read: |section| {
            Ok(Kind::Ping(Ping {
                interval: section.get(&INTERVAL)?,
            }))
        },
    },
    TrafficKind {
        name: "files",
        doc: "Files one after another, each on a TCP connection of its own.",
        keys: &[&[&SIZE, &COUNT, &THINK], tcp::KEYS],
        read: |section| {
            Ok(Kind::Files(Files {
                sizes: section.get(&SIZE)?,
                count: section.find(&COUNT)?,
                think: section.get(&THINK)?,
                tcp: tcp::read(section)?,
            }))
        },
    },
];

static KIND: Key<KindForm> = Key {
    name: "kind",
    form: KindForm,
    default: Default::Required,
    doc: "What the flows do.",
};
static FLOWS: Key<Whole> = Key {
    name: "flows",
    form: Whole {
        from: 1,
        to: 100_000,
    },
    default: Default::Is("1"),
    doc: "Flows in the group (each way, if both ways).",
};
static RTT: Key<Span> = Key {
    name: "rtt",
    form: Span::AboveZero,
    default: Default::Required,
    doc: "Base RTT of these flows: everything but the queue.",
};
static START: Key<Starts> = Key {
    name: "start",
    form: Starts,
    default: Default::Is("0 s"),
    doc: "When the flows start; \"0..1 s\": each uniformly at random in that range.",
};
static STOP: Key<Span> = Key {
    name: "stop",
    form: Span::AboveZero,
    default: Default::Words("the experiment's duration"),
    doc: "When the flows stop sending; after the end of the run: at the end.",
};
static DIRECTION: Key<Word<Direction>> = Key {
    name: "direction",
    form: Word(&[
        ("down", Direction::Down),
        ("up", Direction::Up),
        ("both", Direction::Both),
    ]),
    default: Default::Is("down"),
    doc: "Which way the data goes; both: that many flows each way.",
};
static COMMON: &[&dyn AnyKey] = &[&KIND, &FLOWS, &RTT, &START, &STOP, &DIRECTION];

static RATE: Key<Speed> = Key {
    name: "rate",
    form: Speed,
    default: Default::Required,
    doc: "Rate of the payload.",
};
static PACKET: Key<Bytes> = Key {
    name: "packet",
    // The most that IPv4 and UDP leave: 65535 - 20 - 8.
    form: Bytes {
        from: 1,
        to: 65_507,
    },
    default: Default::Is("1448 B"),
    doc: "Payload of a packet; on the link 28 bytes (UDP, IPv4) and link.overhead more.",
};
static INTERVAL: Key<Span> = Key {
    name: "interval",
    form: Span::AboveZero,
    default: Default::Is("1 s"),
    doc: "Time between requests.",
};
static SIZE: Key<Sizes> = Key {
    name: "size",
    form: Sizes,
    default: Default::Required,
    doc: "Size of a file, or sizes of which each file's is drawn uniformly.",
};
static COUNT: Key<Whole> = Key {
    name: "count",
    form: Whole {
        from: 1,
        to: 1_000_000_000,
    },
    default: Default::Words("as many as fit until the stop"),
    doc: "Files per flow.",
};
static THINK: Key<Span> = Key {
    name: "think",
    form: Span::Any,
    default: Default::Is("0 s"),
    doc: "Mean of the exponentially distributed time from the end of one file to the next.",
};

/// All groups.
pub(crate) struct TrafficsForm;

impl Form for TrafficsForm {
    type Out = Vec<Traffic>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<Traffic>, ReadError> {
        let entries = entry.items().filter(|entries| !entries.is_empty());
        let entries = entries.ok_or_else(|| entry.refuse(self.accepts()))?;
        entries
            .iter()
            .map(|entry| TrafficForm.read(entry))
            .collect()
    }

    fn accepts(&self) -> String {
        "at least one table [[traffic]] with a kind and an rtt".into()
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"type": "array", "minItems": 1, "items": TrafficForm.schema(names)})
    }
}

/// One group.
struct TrafficForm;

impl Form for TrafficForm {
    type Out = Traffic;

    fn read(&self, entry: &Entry<'_>) -> Result<Traffic, ReadError> {
        let section = Section::open(entry, self)?;
        let kind = section.get(&KIND)?;
        let section = section.only(kind.name, kind.all_keys().map(|key| key.name()))?;
        let traffic = Traffic {
            flows: section.get(&FLOWS)? as u32,
            rtt: section.get(&RTT)?,
            start: section.get(&START)?,
            stop: section.find(&STOP)?.unwrap_or(Duration::MAX),
            direction: section.get(&DIRECTION)?,
            kind: (kind.read)(&section)?,
        };
        if let (true, Some(stop)) = (traffic.stop <= traffic.start.1, section.given(STOP.name)) {
            return Err(stop.refuse(format!("after start (\"{}\")", traffic.start.1)));
        }
        Ok(traffic)
    }

    fn accepts(&self) -> String {
        "a table with a kind and an rtt".into()
    }

    fn schema(&self, names: &Names) -> Json {
        let kinds = KINDS.iter().map(|kind| {
            let keys: Vec<&dyn AnyKey> = kind.all_keys().collect();
            let mut schema = table_schema(&keys, names);
            schema["properties"][KIND.name] = json!({"const": kind.name, "description": kind.doc});
            schema
        });
        json!({"type": "object", "oneOf": kinds.collect::<Vec<_>>()})
    }
}

/// The name of a kind of traffic.
struct KindForm;

impl Form for KindForm {
    type Out = &'static TrafficKind;

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        let text = entry.text().ok_or_else(|| entry.refuse(self.accepts()))?;
        let found = KINDS.iter().find(|kind| kind.name == text);
        found.ok_or_else(|| entry.unknown(KINDS.iter().map(|kind| kind.name)))
    }

    fn accepts(&self) -> String {
        let quoted: Vec<String> = KINDS
            .iter()
            .map(|kind| format!("\"{}\"", kind.name))
            .collect();
        format!("one of {}", quoted.join(", "))
    }

    fn schema(&self, _: &Names) -> Json {
        json!({"type": "string"})
    }
}

/// An instant, or a range of instants: `"0..1 s"`, `"500 ms..1 s"`.
struct Starts;

impl Form for Starts {
    type Out = (Duration, Duration);

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        let Some((first, last)) = entry.text().and_then(|text| text.split_once("..")) else {
            return Span::Any.read(entry).map(|instant| (instant, instant));
        };
        // A bare first end is in the unit of the last.
        let first = first.trim();
        let plain = |c: char| c.is_ascii_digit() || c == '.';
        let with_unit = match first.chars().all(plain) {
            true => format!("{first}{}", last.trim().trim_start_matches(plain)),
            false => first.to_string(),
        };
        match (Unit::Duration.parse(&with_unit), Unit::Duration.parse(last)) {
            (Ok(Value::Duration(first)), Ok(Value::Duration(last))) if first <= last => {
                Ok((first, last))
            }
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn accepts(&self) -> String {
        "a time like \"5 ms\" (ns, us, ms, s, min) or a range like \"0..1 s\"".into()
    }

    fn schema(&self, _: &Names) -> Json {
        let range = json!({"type": "string", "pattern": r"^[\d.]+ *[a-zµ]*\.\.[ \d.]+ *(ns|us|µs|ms|s|min)$"});
        json!({"anyOf": [kind_schema(Unit::Duration), range]})
    }
}

/// One size, or an array of them.
struct Sizes;

/// A byte to a terabyte.
static ONE_SIZE: Bytes = Bytes {
    from: 1,
    to: 1_000_000_000_000,
};

impl Form for Sizes {
    type Out = Vec<u64>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<u64>, ReadError> {
        match entry.items() {
            Some(sizes) if sizes.is_empty() => Err(entry.refuse(self.accepts())),
            Some(sizes) => sizes.iter().map(|size| ONE_SIZE.read(size)).collect(),
            None => ONE_SIZE.read(entry).map(|size| vec![size]),
        }
    }

    fn accepts(&self) -> String {
        "a size like \"100 kB\" or an array of sizes".into()
    }

    fn schema(&self, _: &Names) -> Json {
        let size = kind_schema(Unit::Bytes);
        json!({"anyOf": [size, {"type": "array", "minItems": 1, "items": size}]})
    }
}
