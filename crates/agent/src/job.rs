//! What the agent is told: one run of one arm, complete, in whole nanoseconds and `ip` and `tc` commands.

use serde::{Deserialize, Serialize};
use sojourn_experiment::model::{Direction, Kind};
use sojourn_traffic::Identity;
use sojourn_units::Time;

/// The first port of the flows: flow `n` sends to this port + `n`, so that a packet names its flow.
pub const FIRST_PORT: u16 = 10_000;
/// The first port of flows whose receiver opens the connections and asks: flow `n` sends from this port + `n`.
pub const FIRST_ASKED_PORT: u16 = 38_000;

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Version of the program that made it; the agent takes only its own.
    pub version: String,
    /// The run's seed, for draws that are made on the way (sizes of files).
    pub seed: u64,
    /// Kernel modules that it needs, dependencies left out; those built into the kernel are fine too.
    pub modules: Vec<String>,
    /// Namespaces, in the order of their making; deleting them undoes everything.
    pub namespaces: Vec<String>,
    /// How to build the network, in this order.
    pub setup: Vec<Step>,
    /// The queues to watch: link by link, down before up.
    pub bottlenecks: Vec<Bottleneck>,
    /// What is sent.
    pub flows: Vec<Flow>,
    /// Length of the run.
    pub duration_ns: u64,
    /// When measuring begins.
    pub warmup_ns: u64,
    /// Largest packet with its 14-byte Ethernet header: anything larger was not segmented.
    pub frame: u32,
    /// Width of the bins of the time series.
    pub series_ns: Option<u64>,
    /// Whether the headers of packets are kept.
    pub capture: bool,
    /// Whether those are kept too that come in at the device of the only queue: where `[link]` has none on the way back.
    pub captures_back: bool,
}

/// A step of building the network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The namespace to do it in; `None`: where the agent runs.
    pub namespace: Option<String>,
    /// What to do.
    pub action: Action,
}

/// What is done in a step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Action {
    /// Commands of `ip`, without its name.
    Ip(Vec<String>),
    /// Commands of `tc`, without its name.
    Tc(Vec<String>),
    /// Devices whose segmentation and receive offloads go off.
    OffloadsOff(Vec<String>),
    /// Settings below /proc/sys with their values.
    Sysctl(Vec<(String, String)>),
}

/// A queue to watch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bottleneck {
    /// The discipline's name in the experiment.
    pub aqm: String,
    /// Where its device is.
    pub namespace: String,
    /// Its device.
    pub device: String,
    /// Handle of the device's root qdisc, as tracepoints give it.
    pub handle: u32,
    /// Handle of the discipline under test as `tc` shows it: `10:`.
    pub leaf: String,
    /// By number of flow: whether its data passes here, and whether what returns does.
    pub passed_by: Vec<[bool; 2]>,
    /// Instants at which its rate changes, with the `tc` command that does it.
    pub rate_changes: Vec<(u64, String)>,
}

/// A flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// Number over all groups.
    pub number: u32,
    /// Where its data comes from.
    pub sender: String,
    /// Where its data goes.
    pub receiver: String,
    /// The IPv4 address that connections and datagrams go to: the receiver's, or the sender's if it is asked.
    pub address: std::net::Ipv4Addr,
    /// When its connection opens if that is before the start; below zero: before the run.
    pub opens_ns: Option<i64>,
    /// When it starts.
    pub start_ns: u64,
    /// When it stops sending.
    pub stop_ns: u64,
    /// The DiffServ code point of its packets, both ways.
    pub dscp: u8,
    /// Which way its data goes.
    pub direction: Direction,
    /// Options of its sockets if it runs over TCP.
    pub tcp: Option<Tcp>,
    /// What it does.
    pub kind: Kind,
}

impl Flow {
    /// Whether its receiver opens the connections and asks for the data.
    pub const fn is_asked(&self) -> bool {
        matches!(self.kind, Kind::Web(_) | Kind::Video(_))
    }

    /// The port that its data goes to, or that it comes from if it is asked for; echo requests carry it as their
    /// identifier.
    pub const fn port(&self) -> u16 {
        let first = if self.is_asked() {
            FIRST_ASKED_PORT
        } else {
            FIRST_PORT
        };
        first + self.number as u16
    }

    /// The flow as its application knows it.
    pub const fn identity(&self) -> Identity {
        Identity {
            flow: self.number,
            direction: self.direction,
            start: Time::from_nanos(self.start_ns),
            stop: Time::from_nanos(self.stop_ns),
        }
    }
}

/// Options of a TCP socket that are not its namespace's or its route's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tcp {
    /// Congestion control by the kernel's name.
    pub congestion_control: String,
    /// Whether ECN must turn out to be negotiated, or must not.
    pub ecn: bool,
    /// Unless a SYN was lost and sent again without.
    pub ecn_fallback: bool,
    /// TCP_MAXSEG if segments are smaller than the device allows.
    pub max_segment: Option<u32>,
}
