//! An experiment as the backends see it: typed, complete, checked.

pub use sojourn_traffic::{
    Abe, Browsing, Call, Cbr, Codec, Direction, EchoProtocol, EcnField, Files, Kind, OnOff, Pace,
    Pages, Ping, Recovery, Sizes, Tcp, Times, Transport, Video, Voip, Web,
};
pub use sojourn_units::{Capacity, Hop, Trace, Way};
use sojourn_units::{Duration, Rate};

pub use crate::queue::{Buffer, Queue};
pub use crate::topology::{Impaired, Link, Nodes, Route, UpLink};

/// One experiment without its sweep; it runs once per queue and seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Experiment {
    /// The given name, or the file's stem.
    pub name: String,
    /// The duration of each run.
    pub duration: Duration,
    /// The initial period that steady-state statistics exclude; below `duration`.
    pub warmup: Duration,
    /// Independent runs per queue: seeds `seed`, `seed + 1`, …
    pub repeat: u32,
    /// The seed of the first run.
    pub seed: u64,
    /// The Linux whose TCP is simulated. Default 6.1.
    pub kernel: Kernel,
    /// Which is first of a packet that arrives at a queue and one that leaves it.
    pub ties: Ties,
    /// The links between hosts; at least one.
    pub links: Vec<Link>,
    /// The classes of `[link]`; parents precede their children.
    pub classes: Vec<Class>,
    /// The arms of the comparison; at least one.
    pub queues: Vec<Queue>,
    /// The traffic groups; none if programs bring their own.
    pub traffic: Vec<Traffic>,
    /// What to record beyond the summary.
    pub record: Record,
}

impl Experiment {
    /// The first link under test.
    ///
    /// # Panics
    /// No link is under test; files cannot express that.
    pub fn bottleneck(&self) -> &Link {
        let mut links = self.links.iter();
        links
            .find(|link| link.queue.is_none())
            .expect("a link without a queue of its own")
    }
}

/// Which is first when a packet arrives at a queue at the instant at which another leaves it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Ties {
    /// The arrival, as on a machine, whose timers are late by microseconds.
    #[default]
    Arrivals,
    /// The departure, as on a kernel in virtual time.
    Departures,
}

/// A version of Linux whose TCP differs from that of other versions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Kernel {
    /// Linux 6.1.
    #[default]
    V6_1,
    /// Linux 6.12.
    V6_12,
    /// Linux 6.18.
    V6_18,
    /// Linux 7.3.
    V7_3,
}

impl Kernel {
    /// The version as in experiment files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::V6_18 => "6.18",
            Self::V7_3 => "7.3",
        }
    }
}

/// A class of HTB, above disciplines; see [`sojourn_path::htb`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// The number of the class above it; `None`: the link.
    pub parent: Option<usize>,
    /// Its share of the link downwards.
    pub down: Share,
    /// The same upwards, if it differs.
    pub up: Option<Share>,
}

/// What a class may send at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// What it may always send at.
    pub rate: Rate,
    /// The most it may send at.
    pub ceil: Rate,
}

impl Class {
    /// Its share of a direction.
    pub fn share(&self, way: Way) -> Share {
        match way {
            Way::Down => self.down,
            Way::Up => self.up.unwrap_or(self.down),
        }
    }
}

/// A group of flows of the same kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Traffic {
    /// The given name in results; [`crate::derived::group_names`] names every group.
    pub name: Option<String>,
    /// The total under which tables show it together with others.
    pub total: Option<String>,
    /// The kind of traffic.
    pub kind: Kind,
    /// Flows in the group; per direction, if the direction is both.
    pub flows: u32,
    /// The route of its data.
    pub route: Route,
    /// With `[link]`: the host behind the link, which groups may share; `None`: one of its own.
    pub host: Option<String>,
    /// The class of `[link]` that its packets belong to, by name.
    pub class: Option<String>,
    /// Base RTT: everything but queueing.
    pub rtt: Duration,
    /// Each flow starts uniformly at random in this range; if the ends are equal, at that instant.
    pub start: (Duration, Duration),
    /// When the flows stop sending; at most the duration.
    pub stop: Duration,
    /// The given stop, if the run ends before it.
    pub late_stop: Option<Duration>,
    /// The direction of the data; down is along the route.
    pub direction: Direction,
    /// The DiffServ code point of the flows' packets in both directions: 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// Rate of the sender's access link, which the group's flows share; `None`: unlimited.
    pub access: Option<Rate>,
    /// The given bound of how late a sending by a timer may be; [`crate::derived::jitter`] is the bound in use.
    pub jitter: Option<Duration>,
    /// What the application needs, as far as it is given.
    pub outcome: Outcome,
}

/// What an application needs of the network, as far as it is given; see [`sojourn_measure::qoo::Requirements`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Optimal and unacceptable 99th percentile of the latency.
    pub qoo_p99: Option<(Duration, Duration)>,
    /// The same of the 99.9th percentile.
    pub qoo_p99_9: Option<(Duration, Duration)>,
    /// The same of the share of packets lost.
    pub qoo_loss: Option<(f64, f64)>,
    /// The least throughput of a flow.
    pub qoo_rate: Option<Rate>,
}

/// What to record beyond the summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// A row per packet that arrived at a queue.
    pub packets: bool,
    /// A row per transmission of a Wi-Fi cell.
    pub medium: bool,
    /// Where packet headers are captured, if at all.
    pub pcap: Option<CapturePoint>,
    /// A qlog of every TCP flow.
    pub qlog: bool,
    /// A row per RTT measurement of a flow.
    pub rtt: bool,
    /// Which RTT measurements these are.
    pub rtt_of: RttOf,
    /// One-way delays of TCP segments.
    pub one_way: bool,
    /// Quality of Outcome of every group.
    pub qoo: bool,
    /// Width of the bins of the time series.
    pub series: Option<Duration>,
}

/// Where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturePoint {
    /// At the host that sends a flow's data; shows packets that are dropped later.
    Sender,
    /// At the bottleneck, behind its queue.
    Router,
    /// At the host that receives a flow's data.
    Receiver,
}

/// The RTT measurements that are recorded for a TCP flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RttOf {
    /// The samples of TCP's retransmission timer.
    #[default]
    Samples,
    /// From a segment's first transmission to its acknowledgement, losses included, as tcptrace and Wireshark draw it.
    Segments,
}
