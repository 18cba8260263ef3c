//! An experiment as the backends see it: typed, complete, checked.

pub use sojourn_traffic::{
    Browsing, Cbr, Codec, Direction, EchoProtocol, Files, Kind, OnOff, Pace, Pages, Ping, Recovery,
    Sizes, Tcp, Times, Transport, Video, Voip, Web,
};
pub use sojourn_units::{Capacity, Hop, Trace, Way};
use sojourn_units::{Duration, Rate, Value};

pub use crate::topology::{Link, Nodes, Route, UpLink};

/// One experiment without its sweep: what is run once per queue and seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Experiment {
    /// The name given, or the file's stem.
    pub name: String,
    /// How long each run lasts.
    pub duration: Duration,
    /// The part at the beginning that steady-state statistics leave out; below `duration`.
    pub warmup: Duration,
    /// Independent runs per queue: seeds `seed`, `seed + 1`, …
    pub repeat: u32,
    /// The seed of the first run.
    pub seed: u64,
    /// The links between hosts, at least one.
    pub links: Vec<Link>,
    /// The arms of the comparison, at least one.
    pub queues: Vec<Queue>,
    /// What is sent, at least one group.
    pub traffic: Vec<Traffic>,
    /// What is recorded beyond the summary.
    pub record: Record,
}

impl Experiment {
    /// The first link where the arms are tried.
    ///
    /// # Panics
    /// Without one, which no file can ask for.
    pub fn bottleneck(&self) -> &Link {
        let mut links = self.links.iter();
        links
            .find(|link| link.queue.is_none())
            .expect("a link without a queue of its own")
    }
}

/// How much a queue holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Buffer {
    /// Packets of any size.
    Packets(u64),
    /// Bytes on the link.
    Bytes(u64),
    /// Multiples of the first rate × the largest base RTT.
    Bdp(f64),
}

/// One arm of the comparison: a discipline with its parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// The discipline's name.
    pub aqm: String,
    /// The name in tables and plots, different for every arm; if none was given the discipline's, with
    /// the settings that set it apart from other arms.
    pub label: String,
    /// The arm's own limit.
    pub limit: Option<Buffer>,
    /// The keys given, `ecn` included, each checked to be of its kind.
    pub settings: Vec<(String, Value)>,
}

/// A group of like flows.
#[derive(Clone, PartialEq, Debug)]
pub struct Traffic {
    /// What it is called in results, if it was given a name; [`crate::derived::group_names`] has a name for every group.
    pub name: Option<String>,
    /// What the flows do.
    pub kind: Kind,
    /// Flows in the group (each way, if both ways).
    pub flows: u32,
    /// The links that its data passes.
    pub route: Route,
    /// Base RTT: everything but the queue.
    pub rtt: Duration,
    /// Each flow starts uniformly at random in this range; equal ends: at that instant.
    pub start: (Duration, Duration),
    /// When the flows stop sending; at most the duration.
    pub stop: Duration,
    /// Which way the data goes: down is along the route.
    pub direction: Direction,
    /// The DiffServ code point of their packets, both ways: 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// Rate of the link between the sending host and the bottleneck, which its flows share; `None`: unlimited.
    pub access: Option<Rate>,
}

/// What is recorded beyond the summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// A row per packet that met the queue.
    pub packets: bool,
    /// Where the packets' headers are captured, if they are.
    pub pcap: Option<CapturePoint>,
    /// A row per round-trip time of a flow.
    pub rtt: bool,
    /// What counts as one.
    pub rtt_of: RttOf,
    /// One-way delays of TCP segments.
    pub one_way: bool,
    /// Width of the bins of the time series.
    pub series: Option<Duration>,
}

/// Where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturePoint {
    /// At the host that sends a flow's data, drops included.
    Sender,
    /// At the bottleneck, behind its queue.
    Router,
    /// At the host that receives a flow's data.
    Receiver,
}

/// What counts as a round-trip time of a TCP flow in the record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RttOf {
    /// A sample as TCP takes it for its timer.
    #[default]
    Samples,
    /// From the first sending of a segment until it is acknowledged, whatever was lost in between: what tcptrace and
    /// Wireshark draw.
    Segments,
}
