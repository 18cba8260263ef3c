//! The messages between a queue on Sojourn's own path and its algorithm in another process: lines of JSON on a socket.
//!
//! ```text
//! the queue                         the algorithm
//!     ── connects ──────────────────────▶
//!     ◀─────────────────────── Greeting ──
//!     ── Question ──────────────────────▶
//!     ◀───────────────────────── Answer ──
//! ```
//!
//! Both processes read the same run, and build its queues in the same order: the algorithm of a connection is the next one.

use serde::{Deserialize, Serialize};
use sojourn_aqm::{AckView, Backlog, Ecn, FlowKey, Packet, Verdict};
use sojourn_experiment::{DisciplineKeys, KeySpec};
use sojourn_units::{Kind, Time};

/// A discipline whose algorithm is in another process, with its keys, so that a document that has them can be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Foreign {
    /// Its name.
    pub name: String,
    /// Its keys, each with the name of its kind.
    pub keys: Vec<(String, String)>,
}

/// The kinds of keys that a discipline in another language may have.
const KINDS: [(Kind, &str); 7] = [
    (Kind::Duration, "time"),
    (Kind::Rate, "rate"),
    (Kind::Bytes, "bytes"),
    (Kind::Size, "size"),
    (Kind::Number, "number"),
    (Kind::Count, "count"),
    (Kind::Flag, "flag"),
];

impl Foreign {
    /// A discipline; `None` if it has a key of a kind that only built-in ones have.
    pub fn new(discipline: &DisciplineKeys) -> Option<Self> {
        let key = |key: &KeySpec| {
            let (_, kind) = KINDS.iter().find(|(kind, _)| *kind == key.kind)?;
            Some((key.name.clone(), (*kind).to_owned()))
        };
        Some(Self {
            name: discipline.name.clone(),
            keys: discipline.keys.iter().map(key).collect::<Option<_>>()?,
        })
    }

    /// The discipline for the reader of a document. A key of an unknown kind is left out.
    pub fn keys(&self) -> DisciplineKeys {
        let key = |(name, kind): &(String, String)| {
            let (kind, _) = KINDS.iter().find(|(_, known)| known == kind)?;
            Some(KeySpec {
                name: name.clone(),
                kind: *kind,
                default: String::new(),
                doc: String::new(),
            })
        };
        DisciplineKeys {
            name: self.name.clone(),
            keys: self.keys.iter().filter_map(key).collect(),
        }
    }
}

/// An occasion to ask the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Occasion {
    /// A packet arrives and fits.
    Enqueue,
    /// A packet is at the head.
    Dequeue,
    /// A packet was dropped for lack of room.
    Overflow,
    /// A packet was requested from the empty queue.
    Empty,
    /// The algorithm's timer is due.
    Timer,
    /// Its state is wanted.
    State,
}

/// The algorithm's first message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// The occasions at which it wants to be asked.
    pub occasions: Vec<Occasion>,
    /// When its timer is due first.
    pub timer_ns: Option<u64>,
}

/// A question of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Question {
    /// The occasion.
    pub occasion: Occasion,
    /// The packet that is to be decided about.
    pub packet: Option<Seen>,
    /// Packets, bytes and bytes with a mark in the queue, without that packet.
    pub backlog: [u64; 3],
    /// The time of the run.
    pub now_ns: u64,
}

impl Question {
    /// A question.
    pub const fn new(
        occasion: Occasion,
        packet: Option<Seen>,
        backlog: Backlog,
        now: Time,
    ) -> Self {
        Self {
            occasion,
            packet,
            backlog: [backlog.packets, backlog.bytes, backlog.ce_bytes],
            now_ns: now.as_nanos(),
        }
    }

    /// What is queued.
    pub const fn backlog(&self) -> Backlog {
        let [packets, bytes, ce_bytes] = self.backlog;
        Backlog {
            packets,
            bytes,
            ce_bytes,
            qdisc_bytes: bytes,
        }
    }

    /// The time of the run.
    pub const fn now(&self) -> Time {
        Time::from_nanos(self.now_ns)
    }
}

/// A packet as the algorithm sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Seen {
    bytes: u32,
    ecn: u8,
    entered_ns: u64,
    hosts: [u32; 2],
    ports: [u16; 2],
    protocol: u8,
    dscp: u8,
}

impl Seen {
    /// A packet.
    pub fn new(packet: &impl Packet) -> Self {
        let flow = packet.flow();
        Self {
            bytes: packet.bytes(),
            ecn: packet.ecn().bits(),
            entered_ns: packet.enqueued().as_nanos(),
            hosts: [flow.source, flow.destination],
            ports: [flow.source_port, flow.destination_port],
            protocol: flow.protocol,
            dscp: packet.dscp(),
        }
    }
}

impl Packet for Seen {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.ecn)
    }

    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce.bits();
    }

    fn enqueued(&self) -> Time {
        Time::from_nanos(self.entered_ns)
    }

    fn set_enqueued(&mut self, now: Time) {
        self.entered_ns = now.as_nanos();
    }

    fn flow(&self) -> FlowKey {
        FlowKey {
            source: self.hosts[0],
            destination: self.hosts[1],
            source_port: self.ports[0],
            destination_port: self.ports[1],
            protocol: self.protocol,
        }
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn ack(&self) -> Option<AckView> {
        None
    }
}

/// The answer of the algorithm.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The decision about the packet.
    pub decision: Decision,
    /// When its timer is due next.
    pub timer_ns: Option<u64>,
    /// Its drop probability, if its state was wanted and has one.
    pub probability: Option<f64>,
}

/// A decision about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Decision {
    /// Keep it.
    #[default]
    Pass,
    /// Mark it.
    Mark,
    /// Drop it.
    Drop,
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Mark => Self::Mark,
            Verdict::Drop(_) => Self::Drop,
        }
    }
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Pass => Self::Pass,
            Decision::Mark => Self::Mark,
            Decision::Drop => Self::DROP,
        }
    }
}
