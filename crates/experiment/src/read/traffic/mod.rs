//! `[[traffic]]`: groups of flows of the same kind.
//!
//! A new kind of traffic needs one [`TrafficKind`] and a variant in the model.

mod datagrams;
mod flent;
mod forms;
mod http;
mod outcome;
mod transfers;

use serde_json::{Value as Json, json};
use sojourn_units::{Duration, Rate};

use self::datagrams::Timer;
use self::forms::{Dscp, Starts};
use super::routes::{NodeName, Via};
use crate::derived::numbered;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::{AnyKey, Form};
use crate::forms::{Maybe, Span, Speed, Text, Whole, Word};
use crate::keys::{Keys, keys, names_of, table_schema, written_table};
use crate::model::{Direction, Kind, Outcome, Route, Traffic};
use crate::names::Names;
use crate::section::Section;

/// A kind of traffic: its name, its keys, and its reader.
pub(crate) struct TrafficKind {
    name: &'static str,
    doc: &'static str,
    /// The keys besides those of every kind.
    keys: fn() -> Vec<&'static dyn AnyKey>,
    read: Read,
    /// By default the flows run in both directions.
    two_way: bool,
}

/// The reader of a kind.
enum Read {
    /// Reads the kind of traffic of one group.
    Group(fn(&Section<'_>) -> Result<Kind, ReadError>),
    /// Reads groups of other kinds.
    Groups(fn(&Section<'_>, Times) -> Result<Vec<Traffic>, ReadError>),
}

impl TrafficKind {
    fn all_keys(&self) -> Vec<&'static dyn AnyKey> {
        let of_kind = (self.keys)();
        let many = match names_of(&of_kind).contains(&Many::names()[0]) {
            true => Vec::new(),
            false => Many::keys(),
        };
        let shared = match self.read {
            Read::Group(_) => [
                Load::keys(),
                Times::keys(),
                Sending::keys(),
                Outcome::keys(),
            ]
            .concat(),
            Read::Groups(_) => Times::keys(),
        };
        [Ends::keys(), many, shared, of_kind].concat()
    }
}

/// A kind of traffic, for listings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrafficSummary {
    /// Its name in `kind`.
    pub name: &'static str,
    /// What its flows do, in one line.
    pub doc: &'static str,
    /// Its keys; those of every kind come first.
    pub keys: Vec<&'static str>,
}

/// Every kind of traffic that a file may ask for.
pub fn traffic_kinds() -> Vec<TrafficSummary> {
    let summary = |kind: &TrafficKind| TrafficSummary {
        name: kind.name,
        doc: kind.doc,
        keys: names_of(&kind.all_keys()),
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
    &datagrams::CALL,
    &http::WEB,
    &http::VIDEO,
    &flent::RRUL,
    &flent::RRUL_BE,
    &flent::RTT_FAIR,
    &flent::RTT_FAIR4BE,
    &flent::RTT_FAIR6BE,
    &flent::RTT_FAIR_UP,
    &flent::RTT_FAIR_VAR,
    &flent::SPEED_TEST,
];

keys! {
    /// The keys for the kind of traffic, its name and its endpoints.
    struct Ends {
        /// Kind of traffic.
        kind: &'static TrafficKind = KindForm, Required;
        /// Name of the group in results; the groups of a test such as rrul add their kinds to it.
        name: Option<String> = Maybe(Text), Words("the kind, with the group's number where several share it");
        /// The total under which tables and figures show this group together with all others of that total.
        total: Option<String> = Maybe(Text), Words("none; with count, the name");
        /// The node where these flows begin; their down direction leads away from it.
        from: Option<String> = Maybe(NodeName), Words("the sending side of [link]; with [[link]] it has to be given");
        /// The node where they end; their route has the fewest links.
        to: Option<String> = Maybe(NodeName), Words("the receiving side of [link]; with [[link]] it has to be given");
        /// With [link]: the host behind the link that these flows belong to; groups with the same one share its address, as
        /// CAKE sees it. With [[link]] the nodes from and to are the hosts.
        host: Option<String> = Maybe(Text), Words("one of its own");
        /// With [[class]]: the class that the packets of these flows belong to.
        class: Option<String> = Maybe(Text), Words("none");
        /// Nodes that the route passes, in this order.
        via: Option<Vec<String>> = Maybe(Via), Words("the fewest links");
    }
}

keys! {
    /// The key for many groups, of every kind but files, whose count is that of its files. The reader of a kind does not see
    /// it: the file has been expanded before.
    struct Many {
        /// As many groups of this kind: name-1, name-2 and so on, in tables together as their total. {i} in any text of the entry
        /// stands for the number.
        count: Option<u32> = Maybe(Whole { from: 1, to: 10_000 }), Words("a single group");
    }
}

keys! {
    /// The keys for the number of flows and their base RTT.
    struct Load {
        /// Flows in the group; in each direction, if direction is both.
        flows: u32 = Whole { from: 1, to: 100_000 }, Is("1");
        /// Base RTT of these flows: everything but queueing.
        rtt: Duration = Span::AboveZero, Required;
    }
}

keys! {
    /// The keys for start and stop times.
    #[derive(Clone, Copy)]
    struct Times {
        /// When the flows start; "0..1 s": each uniformly at random in that range.
        start: (Duration, Duration) = Starts, Is("0 s");
        /// When the flows stop sending; at the latest when the run ends. TCP that always has data to send ends with a reset.
        stop: Option<Duration> = Maybe(Span::AboveZero), Words("the experiment's duration");
    }
    ; check check_times
}

keys! {
    /// The keys for packets and the sending host.
    struct Sending {
        /// Direction of the data; both: the same number of flows in each direction.
        direction: Direction = DIRECTION, Is("down");
        /// DiffServ code point of the flows' packets, both ways: a number, or CS0 to CS7, AF11 to AF43, EF, VA, LE, NQB.
        dscp: u8 = Dscp, Is("0");
        /// Sender access-link rate, which the group shares; it serialises bursts before the bottleneck.
        access: Option<Rate> = Maybe(Speed), Words("unlimited");
    }
}

const DIRECTION: Word<Direction> = Word(&[
    ("down", Direction::Down),
    ("up", Direction::Up),
    ("both", Direction::Both),
]);

fn check_times(times: &Times, section: &Section<'_>) -> Result<(), ReadError> {
    match (times.stop, section.given("stop")) {
        (Some(end), Some(stop)) if end <= times.start.1 => {
            Err(stop.refuse(format!("after start (\"{}\")", times.start.1)))
        }
        _ => Ok(()),
    }
}

impl Times {
    /// When the flows stop, unless the run ends first.
    fn end(self) -> Duration {
        self.stop.unwrap_or(Duration::MAX)
    }
}

/// The most groups of a file, and the most flows in all of them. A million flows take 5 GB; larger numbers would
/// exhaust memory and are typing errors.
const MOST_ENTRIES: usize = 20_000;
const MOST_FLOWS: u64 = 1_000_000;

/// All groups, per entry of the file.
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

    fn write(&self, entries: &Self::Out) -> Json {
        entries.iter().flatten().map(write).collect()
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
        let kind = match section.given("kind") {
            Some(given) => KindForm.read(&given)?,
            None => return Err(section.missing("kind", &KindForm)),
        };
        let section = section.refuse_unknown_keys(kind.name, names_of(&kind.all_keys()))?;
        let times = Times::read(&section)?;
        let ends = Ends::read(&section)?;
        let via = ends.via.unwrap_or_default();
        let nodes: Vec<String> = ends.from.into_iter().chain(via).chain(ends.to).collect();
        let mut groups = match kind.read {
            Read::Groups(read) => {
                let mut groups = read(&section, times)?;
                let parts = parts_of(&groups);
                for (part, group) in parts.iter().zip(&mut groups) {
                    if let Some(name) = &ends.name {
                        group.name = Some(format!("{name} {part}"));
                    }
                    group.total = ends.total.as_ref().map(|total| format!("{total} {part}"));
                }
                groups
            }
            Read::Group(read) => {
                let load = Load::read(&section)?;
                let sending = Sending::read(&section)?;
                let is_two_way = kind.two_way && section.given("direction").is_none();
                vec![Traffic {
                    name: ends.name,
                    total: ends.total,
                    host: None,
                    class: None,
                    route: Route::default(),
                    flows: load.flows,
                    rtt: load.rtt,
                    start: times.start,
                    stop: times.end(),
                    late_stop: None,
                    direction: match is_two_way {
                        true => Direction::Both,
                        false => sending.direction,
                    },
                    dscp: sending.dscp,
                    access: sending.access,
                    jitter: match names_of(&kind.all_keys()).contains(&Timer::names()[0]) {
                        true => Timer::read(&section)?.jitter,
                        false => None,
                    },
                    outcome: Outcome::read(&section)?,
                    kind: read(&section)?,
                }]
            }
        };
        for group in &mut groups {
            group.route.nodes.clone_from(&nodes);
            group.class.clone_from(&ends.class);
            if ends.host.is_some() {
                group.host.clone_from(&ends.host);
            }
        }
        Ok(groups)
    }

    fn write(&self, groups: &Vec<Traffic>) -> Json {
        groups.iter().map(write).collect()
    }

    fn accepts(&self) -> String {
        "a table with a kind and an rtt".into()
    }

    fn schema(&self, names: &Names) -> Json {
        let kinds = KINDS.iter().map(|kind| {
            let mut schema = table_schema(&kind.all_keys(), names);
            schema["properties"]["kind"] = json!({"const": kind.name, "description": kind.doc});
            if kind.two_way {
                schema["properties"]["direction"]["default"] = "both".into();
            }
            schema
        });
        json!({"type": "object", "oneOf": kinds.collect::<Vec<_>>()})
    }
}

/// A group as written in a file.
pub(crate) fn write(traffic: &Traffic) -> Json {
    let (from, via, to) = match traffic.route.nodes.as_slice() {
        [from, via @ .., to] => (Some(from.clone()), via.to_vec(), Some(to.clone())),
        _ => (None, Vec::new(), None),
    };
    let kind = KINDS
        .iter()
        .find(|kind| kind.name == traffic.kind.name())
        .expect("every kind has a name of the file");
    let ends = Ends {
        kind,
        name: traffic.name.clone(),
        total: traffic.total.clone(),
        host: traffic.host.clone(),
        class: traffic.class.clone(),
        from,
        to,
        via: Some(via).filter(|via| !via.is_empty()),
    };
    let load = Load {
        flows: traffic.flows,
        rtt: traffic.rtt,
    };
    let times = Times {
        start: traffic.start,
        stop: Some(traffic.stop),
    };
    let sending = Sending {
        direction: traffic.direction,
        dscp: traffic.dscp,
        access: traffic.access,
    };
    let timer = Timer {
        jitter: traffic.jitter,
    };
    let mut table = written_table(&ends);
    load.write(&mut table);
    times.write(&mut table);
    sending.write(&mut table);
    timer.write(&mut table);
    traffic.outcome.write(&mut table);
    match &traffic.kind {
        Kind::Bulk(_) | Kind::Game => {}
        Kind::Call(call) => datagrams::CallKeys::from(call).write(&mut table),
        Kind::Cbr(cbr) => cbr.write(&mut table),
        Kind::Ping(ping) => ping.write(&mut table),
        Kind::Voip(voip) => datagrams::VoipKeys::from(voip).write(&mut table),
        Kind::Files(files) => transfers::FilesKeys::from(files).write(&mut table),
        Kind::OnOff(onoff) => transfers::OnOffKeys::from(onoff).write(&mut table),
        Kind::Web(web) => http::write_web(web, &mut table),
        Kind::Video(video) => video.write(&mut table),
    }
    if let Some(tcp) = traffic.kind.tcp() {
        tcp.write(&mut table);
    }
    table
}

/// The name of each group of a test within it: its own, or its kind.
fn parts_of(groups: &[Traffic]) -> Vec<String> {
    let word = |group: &Traffic| match &group.name {
        Some(name) => name.clone(),
        None => group.kind.name().to_string(),
    };
    let words: Vec<String> = groups.iter().map(word).collect();
    numbered(&words.iter().map(String::as_str).collect::<Vec<_>>())
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

    fn write(&self, kind: &Self::Out) -> Json {
        kind.name.into()
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
