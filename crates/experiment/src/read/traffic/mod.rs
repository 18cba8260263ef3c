//! `[[traffic]]`: groups of like flows.
//!
//! A new kind of traffic is one [`TrafficKind`] beside its variant in the model.

mod datagrams;
mod flent;
mod forms;
mod http;
mod transfers;

use serde_json::{Value as Json, json};
use sojourn_units::Duration;

use self::forms::{Dscp, Starts};
use super::routes::{NodeName, Via};
use crate::derived::numbered;
use crate::error::ReadError;
use crate::form::{AnyKey, Default, Form, Key, table_schema};
use crate::forms::{Span, Speed, Text, Whole, Word};
use crate::model::{Direction, Kind, Route, Traffic};
use crate::names::Names;
use crate::section::{Entry, Section};

/// A kind of traffic: its name, its keys, and how they are read.
struct TrafficKind {
    name: &'static str,
    doc: &'static str,
    /// In groups, so that kinds can share some; first those of every kind.
    keys: &'static [&'static [&'static dyn AnyKey]],
    read: Read,
}

/// How the keys of a kind are read.
enum Read {
    /// To what the flows of one group do; `two_way` if by default they do it both ways.
    Group {
        kind: fn(&Section<'_>) -> Result<Kind, ReadError>,
        two_way: bool,
    },
    /// To groups of other kinds.
    Groups(fn(&Section<'_>, Times) -> Result<Vec<Traffic>, ReadError>),
}

/// When flows start and stop.
#[derive(Clone, Copy)]
struct Times {
    start: (Duration, Duration),
    stop: Duration,
}

impl TrafficKind {
    fn all_keys(&self) -> impl Iterator<Item = &'static dyn AnyKey> {
        self.keys.iter().copied().flatten().copied()
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
    KINDS.iter().copied().map(summary).collect()
}

static KINDS: &[&TrafficKind] = &[
    &transfers::BULK,
    &datagrams::CBR,
    &datagrams::PING,
    &transfers::FILES,
    &transfers::ONOFF,
    &datagrams::VOIP,
    &datagrams::GAME,
    &http::WEB,
    &http::VIDEO,
    &flent::RRUL,
    &flent::RRUL_BE,
    &flent::RTT_FAIR,
    &flent::RTT_FAIR4BE,
    &flent::RTT_FAIR6BE,
    &flent::RTT_FAIR_UP,
    &flent::RTT_FAIR_VAR,
];

static KIND: Key<KindForm> = Key {
    name: "kind",
    form: KindForm,
    default: Default::Required,
    doc: "What the flows do.",
};
static NAME: Key<Text> = Key {
    name: "name",
    form: Text,
    default: Default::Words("the kind, with the group's number where several share it"),
    doc: "What the group is called in results; the groups of a test such as rrul add their kinds to it.",
};
static FROM: Key<NodeName> = Key {
    name: "from",
    form: NodeName,
    default: Default::Words("the sending side of [link]; with [[link]] it has to be given"),
    doc: "The node at which these flows begin: what goes down goes from it.",
};
static TO: Key<NodeName> = Key {
    name: "to",
    form: NodeName,
    default: Default::Words("the receiving side of [link]; with [[link]] it has to be given"),
    doc: "The node at which they end, over the route with the fewest links.",
};
static VIA: Key<Via> = Key {
    name: "via",
    form: Via,
    default: Default::Words("the fewest links"),
    doc: "Nodes that the route passes, in this order.",
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
const fn direction(default: &'static str) -> Key<Word<Direction>> {
    Key {
        name: "direction",
        form: Word(&[
            ("down", Direction::Down),
            ("up", Direction::Up),
            ("both", Direction::Both),
        ]),
        default: Default::Is(default),
        doc: "Which way the data goes; both: that many flows each way.",
    }
}
static DIRECTION: Key<Word<Direction>> = direction("down");
/// As [`DIRECTION`], for traffic that by its nature goes both ways.
static DIRECTION_OF_BOTH: Key<Word<Direction>> = direction("both");
static DSCP: Key<Dscp> = Key {
    name: "dscp",
    form: Dscp,
    default: Default::Is("0"),
    doc: "DiffServ code point of the flows' packets, both ways: a number, or CS0 to CS7, AF11 to AF43, EF, VA, LE.",
};

static ACCESS: Key<Speed> = Key {
    name: "access",
    form: Speed,
    default: Default::Words("never in the way"),
    doc: "Rate of the link from the sending host of the group to the bottleneck: what is sent at once arrives one after another.",
};

/// The keys of a kind that makes one group.
static ONE_WAY: &[&dyn AnyKey] = &[
    &KIND, &NAME, &FROM, &TO, &VIA, &FLOWS, &RTT, &START, &STOP, &DIRECTION, &DSCP, &ACCESS,
];
static TWO_WAY: &[&dyn AnyKey] = &[
    &KIND,
    &NAME,
    &FROM,
    &TO,
    &VIA,
    &FLOWS,
    &RTT,
    &START,
    &STOP,
    &DIRECTION_OF_BOTH,
    &DSCP,
    &ACCESS,
];
/// The keys of every kind that makes several.
static SEVERAL: &[&dyn AnyKey] = &[&KIND, &NAME, &FROM, &TO, &VIA, &START, &STOP];

/// Groups that a file may have, and flows in all of them: more than a machine has memory for is a slip of the pen.
const MOST_ENTRIES: usize = 1000;
const MOST_FLOWS: u64 = 200_000;

/// All groups, by the entries of the file that make them.
pub(crate) struct TrafficsForm;

impl Form for TrafficsForm {
    type Out = Vec<Vec<Traffic>>;

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        let entries = entry.items().filter(|entries| !entries.is_empty());
        let entries = entries.ok_or_else(|| entry.refuse(self.accepts()))?;
        if entries.len() > MOST_ENTRIES {
            return Err(entry.refuse(format!("at most {MOST_ENTRIES} tables [[traffic]]")));
        }
        let mut flows = 0;
        let mut groups = Vec::new();
        for entry in entries {
            let read = TrafficForm.read(&entry)?;
            for group in &read {
                flows +=
                    u64::from(group.flows) * (1 + u64::from(group.direction == Direction::Both));
            }
            if flows > MOST_FLOWS {
                return Err(entry.error(format!(
                    "with this group there are {flows} flows; must be at most {MOST_FLOWS} in all"
                )));
            }
            groups.push(read);
        }
        Ok(groups)
    }

    fn accepts(&self) -> String {
        "at least one table [[traffic]] with a kind and an rtt".into()
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"type": "array", "minItems": 1, "items": TrafficForm.schema(names)})
    }
}

/// One entry: a group, or the groups of a test.
struct TrafficForm;

impl Form for TrafficForm {
    type Out = Vec<Traffic>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<Traffic>, ReadError> {
        let section = Section::open(entry, self)?;
        let kind = section.get(&KIND)?;
        let section = section.only(kind.name, kind.all_keys().map(|key| key.name()))?;
        let times = Times {
            start: section.get(&START)?,
            stop: section.find(&STOP)?.unwrap_or(Duration::MAX),
        };
        if let (true, Some(stop)) = (times.stop <= times.start.1, section.given(STOP.name)) {
            return Err(stop.refuse(format!("after start (\"{}\")", times.start.1)));
        }
        let name = section.find(&NAME)?;
        let (from, to) = (section.find(&FROM)?, section.find(&TO)?);
        let via = section.find(&VIA)?.unwrap_or_default();
        let nodes: Vec<String> = from.into_iter().chain(via).chain(to).collect();
        let mut groups = match kind.read {
            Read::Groups(read) => named_after(name, read(&section, times)?),
            Read::Group { kind, two_way } => vec![Traffic {
                name,
                route: Route::default(),
                flows: section.get(&FLOWS)? as u32,
                rtt: section.get(&RTT)?,
                start: times.start,
                stop: times.stop,
                direction: section.get(if two_way {
                    &DIRECTION_OF_BOTH
                } else {
                    &DIRECTION
                })?,
                dscp: section.get(&DSCP)?,
                access: section.find(&ACCESS)?,
                kind: kind(&section)?,
            }],
        };
        for group in &mut groups {
            group.route.nodes.clone_from(&nodes);
        }
        Ok(groups)
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

/// The groups of the test called `name`, each named after it: `line bulk 0`, `line bulk 1`, `line ping`.
fn named_after(name: Option<String>, mut groups: Vec<Traffic>) -> Vec<Traffic> {
    if let Some(name) = name {
        let kinds: Vec<&str> = groups.iter().map(|group| group.kind.name()).collect();
        let names = numbered(&kinds);
        for (group, of_kind) in groups.iter_mut().zip(names) {
            group.name = Some(format!("{name} {of_kind}"));
        }
    }
    groups
}

/// The name of a kind of traffic.
struct KindForm;

impl Form for KindForm {
    type Out = &'static TrafficKind;

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        let text = entry.text().ok_or_else(|| entry.refuse(self.accepts()))?;
        let found = KINDS.iter().copied().find(|kind| kind.name == text);
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
