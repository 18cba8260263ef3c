//! `[link]`, the bottleneck, or `[[link]]`, the links of a network.

use serde_json::{Value as Json, json};
use sojourn_aqm::cake::framing::Cells;
use sojourn_units::{Duration, Kind, Rate};

use super::impair::{DelayForm, Delays};
use super::queue::QueueForm;
use super::routes::NodeName;
use super::schedule::steps;
use super::wifi::CellForm;
use crate::document::Item;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::forms::{
    BufferForm, Bytes, Maybe, Packets, Span, Speed, Text, Whole, Word, kind_schema,
};
use crate::keys::{Keys, TableOf, keys, table_schema};
use crate::model::{Buffer, Capacity, Impaired, Link, Nodes, Queue, Trace, UpLink};
use crate::names::Names;
use crate::section::Section;

keys! {
    /// The keys of every link.
    struct LinkKeys {
        /// Rate of the link, or a schedule of rates: [["0 s", "100 Mbit/s"], ["50 s", "10 Mbit/s"]], or a packet-delivery
        /// trace: { trace = "file" }.
        rate: Capacity = CapacityForm, Required;
        /// One-way propagation delay of the link; part of the RTT of every flow that passes it. Or a schedule of delays:
        /// [["0 s", "20 ms"], ["50 s", "80 ms"]], or a trace of them: { trace = "file" }; the least is part of the RTT.
        delay: Delays = DelayForm, Is("0 s");
        /// The discipline's limit: packets, bytes, the time to send it, or multiples of rate × largest base RTT; of a rate that
        /// changes, the first counts.
        buffer: Option<Buffer> = Maybe(BufferForm), Words("the discipline's own limit");
        /// An unmanaged FIFO below the discipline (a driver's ring).
        device_queue: u64 = Packets, Is("0 packets");
        /// Bytes of each packet on the link beyond its IP length.
        overhead: u32 = Bytes { from: 0, to: 65_535 }, Is("14 B");
        /// Cells in which it sends packets with their overhead: atm, 53 bytes for each 48 and the last one padded; ptm, one more byte
        /// for each 64. As the keys of cake.
        framing: Option<Cells> = Maybe(Word(Cells::ALL)), Words("noatm, whole packets");
        /// The least size of a packet on it with its overhead, before the cells.
        mpu: Option<u32> = Maybe(Bytes { from: 0, to: 65_535 }), Words("none");
        /// Bytes that the link may send at once after an idle time (its token bucket); 0 B: a serial line.
        burst: u64 = Bytes { from: 0, to: 1_000_000_000 }, Is("1600 B");
        /// The reverse direction, if it is a bottleneck as well.
        up: Option<UpLink> = Maybe(UP), Words("the reverse path has no queue");
    }
    with impaired: Impaired
}

keys! {
    /// The keys of a link in a network.
    struct NetworkLinkKeys {
        /// Name of the link in keys, link.NAME.rate, and in results.
        name: String = NodeName, Required;
        /// As many links: name-1, name-2 and so on; {i} in any text of the entry, such as to = "home-{i}", stands for the number.
        count: Option<u32> = Maybe(Whole { from: 1, to: 10_000 }), Words("a single link");
        /// The node where its forward ("down") direction begins; a node exists if a link names it.
        from: String = NodeName, Required;
        /// The node where its forward direction ends.
        to: String = NodeName, Required;
        /// A discipline of its own, with its keys, that is not under test.
        queue: Option<Queue> = Maybe(QueueForm), Words("the arms of [[queue]] are compared here");
    }
    with link: LinkKeys
    ; check check
}

keys! {
    UpLink {
        /// Rate of the link, or a schedule of rates: [["0 s", "100 Mbit/s"], ["50 s", "10 Mbit/s"]], or a packet-delivery
        /// trace: { trace = "file" }.
        rate = CapacityForm, Required;
        /// The limit of the reverse direction's discipline.
        buffer = Maybe(BufferForm), Words("the forward direction's");
        /// The reverse direction's discipline, with its keys.
        queue = Maybe(QueueForm), Words("the same discipline as forward");
        /// The interval of requests and grants of a cable modem: what waits is requested at its beginning and may leave in the
        /// next one. DOCSIS has 2 ms. A packet that finds nothing waiting waits for one to two of them, by when it comes; the
        /// first begins at a random time of the seed. A sender whose period is a multiple meets the same wait each time.
        /// The wait counts as sojourn time: with "4 ms", CAKE with its usual target drops packets that wait for nothing but
        /// grants.
        request_grant = Maybe(Span::AboveZero), Words("packets leave without a grant");
    }
    with impaired: Impaired
}

const ONLY: TableOf<LinkKeys> = TableOf::new("[link]", ACCEPTS);
const OF_NETWORK: TableOf<NetworkLinkKeys> = TableOf::new("[[link]]", ACCEPTS);
const UP: TableOf<UpLink> = TableOf::new("link.up", "a table like { rate = \"1 Mbit/s\" }");
const ACCEPTS: &str = "a table [link] with at least a rate, or tables [[link]]";

/// The most links of a network.
const MOST_LINKS: usize = 2000;

fn check(link: &NetworkLinkKeys, section: &Section<'_>) -> Result<(), ReadError> {
    match section.given("to") {
        Some(to) if link.to == link.from => Err(to.refuse("another node than from")),
        _ => Ok(()),
    }
}

impl LinkKeys {
    fn link(self, name: String) -> Link {
        Link {
            name,
            nodes: None,
            rate: self.rate,
            delay: self.delay.least(),
            delays: self.delay.steps(),
            impaired: self.impaired,
            buffer: self.buffer,
            device_queue: self.device_queue,
            overhead: self.overhead,
            cells: self.framing.unwrap_or(Cells::None),
            mpu: self.mpu.unwrap_or(0),
            burst: self.burst,
            queue: None,
            up: self.up,
            wifi: None,
        }
    }

    fn of(link: &Link) -> Self {
        Self {
            rate: link.rate.clone(),
            delay: Delays::of(link),
            buffer: link.buffer,
            device_queue: link.device_queue,
            overhead: link.overhead,
            framing: Some(link.cells).filter(|cells| *cells != Cells::None),
            mpu: Some(link.mpu).filter(|mpu| *mpu > 0),
            burst: link.burst,
            up: link.up.clone(),
            impaired: link.impaired.clone(),
        }
    }
}

impl NetworkLinkKeys {
    fn link(self) -> Link {
        Link {
            nodes: Some(Nodes {
                from: self.from,
                to: vec![self.to],
            }),
            queue: self.queue,
            ..self.link.link(self.name)
        }
    }

    fn of(link: &Link, nodes: &Nodes) -> Self {
        Self {
            name: link.name.clone(),
            count: None,
            from: nodes.from.clone(),
            to: nodes.to.concat(),
            queue: link.queue.clone(),
            link: LinkKeys::of(link),
        }
    }
}

/// The links: one with `[link]`, any number with `[[link]]`.
pub(crate) struct LinksForm;

impl Form for LinksForm {
    type Out = Vec<Link>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<Link>, ReadError> {
        let Some(entries) = entry.items() else {
            return Ok(vec![ONLY.read(entry)?.link("link".into())]);
        };
        if entries.is_empty() {
            return Err(entry.refuse(self.accepts()));
        }
        if entries.len() > MOST_LINKS {
            return Err(entry.refuse(format!("at most {MOST_LINKS} tables [[link]]")));
        }
        let mut links: Vec<Link> = Vec::with_capacity(entries.len());
        for entry in &entries {
            let link = OneOfNetwork.read(entry)?;
            if let Some(twin) = links.iter().position(|other| other.name == link.name) {
                return Err(entry.at("name").error(format!(
                    "link.{twin} is called \"{}\" as well; give each a name of its own",
                    link.name
                )));
            }
            links.push(link);
        }
        if links.iter().all(|link| link.queue.is_some()) {
            return Err(entry.error(
                "every link has a queue of its own; must leave one without, where the arms of [[queue]] are compared",
            ));
        }
        Ok(links)
    }

    fn write(&self, links: &Vec<Link>) -> Json {
        match links.as_slice() {
            [link] if link.nodes.is_none() => ONLY.write(&LinkKeys::of(link)),
            links => links.iter().map(|link| OneOfNetwork.write(link)).collect(),
        }
    }

    fn accepts(&self) -> String {
        ACCEPTS.into()
    }

    fn schema(&self, names: &Names) -> Json {
        let link = OneOfNetwork.schema(names);
        json!({
            "anyOf": [
                ONLY.schema(names),
                {"type": "array", "minItems": 1, "maxItems": MOST_LINKS, "items": link},
            ],
        })
    }
}

/// A link of a network: one with a rate, or a Wi-Fi cell.
struct OneOfNetwork;

impl Form for OneOfNetwork {
    type Out = Link;

    fn read(&self, entry: &Entry<'_>) -> Result<Link, ReadError> {
        if Section::open(entry, self)?.given("kind").is_some() {
            CellForm.read(entry)
        } else {
            Ok(OF_NETWORK.read(entry)?.link())
        }
    }

    fn write(&self, link: &Link) -> Json {
        match (&link.nodes, &link.wifi) {
            (Some(nodes), None) => OF_NETWORK.write(&NetworkLinkKeys::of(link, nodes)),
            _ => CellForm.write(link),
        }
    }

    fn accepts(&self) -> String {
        ACCEPTS.into()
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"anyOf": [OF_NETWORK.schema(names), CellForm.schema(names)]})
    }
}

/// A rate, a schedule of rates, or a packet-delivery trace.
struct CapacityForm;

impl Form for CapacityForm {
    type Out = Capacity;

    fn read(&self, entry: &Entry<'_>) -> Result<Capacity, ReadError> {
        match &entry.node.item {
            Item::Table(_) => {
                let section = Section::open(entry, self)?
                    .refuse_unknown_keys("a trace", TraceKeys::names())?;
                TraceKeys::read(&section).map(|keys| Capacity::Trace(keys.trace))
            }
            Item::Array(_) => rates(entry, &self.accepts()).map(Capacity::Steps),
            Item::Text(_) => Ok(Capacity::Steps(vec![(Duration::ZERO, Speed.read(entry)?)])),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, capacity: &Capacity) -> Json {
        match capacity {
            Capacity::Trace(trace) => json!({"trace": trace.file}),
            Capacity::Steps(steps) => match steps.as_slice() {
                [(_, rate)] => Speed.write(rate),
                steps => steps
                    .iter()
                    .map(|(from, rate)| json!([Span::Any.write(from), Speed.write(rate)]))
                    .collect(),
            },
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
                table_schema(&TraceKeys::keys(), names),
            ],
        })
    }
}

/// True for `"0 bit/s"` and the like.
fn is_zero(text: &str) -> bool {
    let number = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    number.trim().parse() == Ok(0.0)
}

fn rates(entry: &Entry<'_>, accepts: &str) -> Result<Vec<(Duration, Rate)>, ReadError> {
    let pair = "a pair of a time and a rate like [\"50 s\", \"10 Mbit/s\"]";
    steps(entry, accepts, pair, |rate| {
        if rate.text().is_some_and(is_zero) {
            return Err(rate.refuse(
                "above zero; a link that pauses is a trace with a gap, { trace = \"file\" }",
            ));
        }
        Speed.read(rate)
    })
}

keys! {
    /// The keys of a trace-driven rate.
    struct TraceKeys {
        /// A packet-delivery trace in mahimahi's format. The path is relative to the folder of the experiment file, in --set to
        /// the working directory. Each line is the time, in whole milliseconds, of one opportunity to deliver a packet of
        /// 1500 bytes; the trace repeats after its last time.
        trace: Trace = TraceForm, Required;
    }
}

/// The name of a trace file.
struct TraceForm;

impl Form for TraceForm {
    type Out = Trace;

    fn read(&self, entry: &Entry<'_>) -> Result<Trace, ReadError> {
        let name = Text.read(entry)?;
        let trace = entry.context.trace(&name, &entry.node.origin);
        trace.map_err(|what| entry.error(format!("got {}; {what}", entry.node.item)))
    }

    fn write(&self, trace: &Trace) -> Json {
        trace.file.as_str().into()
    }

    fn accepts(&self) -> String {
        "the path of a packet-delivery trace".into()
    }

    fn schema(&self, names: &Names) -> Json {
        Text.schema(names)
    }
}
