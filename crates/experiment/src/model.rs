//! An experiment as the backends see it: typed, complete, checked.

use sojourn_units::{Duration, Rate, Value};

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
    /// The bottleneck.
    pub link: Link,
    /// The arms of the comparison, at least one.
    pub queues: Vec<Queue>,
    /// What is sent, at least one group.
    pub traffic: Vec<Traffic>,
    /// What is recorded beyond the summary.
    pub record: Record,
}

/// The bottleneck link.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Rate from each instant on; the first is at zero, instants increase.
    pub rate: Vec<(Duration, Rate)>,
    /// One-way propagation of the bottleneck itself, part of every flow's RTT.
    pub delay: Duration,
    /// The discipline's limit, unless the queue has its own; `None`: the discipline's default.
    pub buffer: Option<Buffer>,
    /// Packets in an unmanaged FIFO below the discipline; 0: none.
    pub device_queue: u64,
    /// Bytes that a packet takes on the link beyond its IP length. Default 14, an Ethernet header.
    pub overhead: u32,
    /// Bytes that the link may send ahead of its rate after an idle time: the token bucket of the
    /// shaper. Default 1600 as a Linux HTB of one frame's burst; 0: a serial line.
    pub burst: u64,
    /// The reverse direction, if it is a bottleneck as well.
    pub up: Option<UpLink>,
}

/// The reverse direction of the bottleneck.
#[derive(Clone, PartialEq, Debug)]
pub struct UpLink {
    /// As [`Link::rate`].
    pub rate: Vec<(Duration, Rate)>,
    /// As [`Link::buffer`]; `None`: the forward direction's.
    pub buffer: Option<Buffer>,
    /// Its discipline; `None`: the same as forward.
    pub queue: Option<Queue>,
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
    /// What the flows do.
    pub kind: Kind,
    /// Flows in the group (each way, if both ways).
    pub flows: u32,
    /// Base RTT: everything but the queue.
    pub rtt: Duration,
    /// Each flow starts uniformly at random in this range; equal ends: at that instant.
    pub start: (Duration, Duration),
    /// When the flows stop sending; at most the duration.
    pub stop: Duration,
    /// Which way the data goes.
    pub direction: Direction,
}

/// Which way data goes through the bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Forward.
    Down,
    /// Reverse.
    Up,
    /// That many flows each way.
    Both,
}

/// What a flow does.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// TCP with always more to send.
    Bulk(Tcp),
    /// UDP at a constant rate.
    Cbr(Cbr),
    /// Echo requests.
    Ping(Ping),
    /// Files one after another, each on a connection of its own.
    Files(Files),
}

/// The options of a TCP flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Tcp {
    /// Congestion control by name. Default `cubic`.
    pub congestion_control: String,
    /// Negotiate ECN (RFC 3168). Default no.
    pub ecn: bool,
    /// Alternative backoff with ECN (RFC 8511). Default no.
    pub abe: bool,
    /// Selective acknowledgements. Default yes.
    pub sack: bool,
    /// Initial window in segments (RFC 6928). Default 10.
    pub initial_window: u32,
    /// Payload bytes of a full segment. Default 1448 (MTU 1500 with timestamps).
    pub mss: u32,
    /// Largest receive window in bytes; `None`: never in the way.
    pub window: Option<u64>,
}

/// Constant bit rate.
#[derive(Clone, PartialEq, Debug)]
pub struct Cbr {
    /// Rate of payload bits.
    pub rate: Rate,
    /// Payload bytes of a packet; on the link + 28 (UDP, IP) + the link's overhead.
    pub packet: u32,
}

/// Echo requests, 56 bytes of payload.
#[derive(Clone, PartialEq, Debug)]
pub struct Ping {
    /// Time between requests. Default 1 s.
    pub interval: Duration,
}

/// Finite transfers.
#[derive(Clone, PartialEq, Debug)]
pub struct Files {
    /// The transport.
    pub tcp: Tcp,
    /// Sizes in bytes; each file's is drawn uniformly from these.
    pub sizes: Vec<u64>,
    /// Files per flow; `None`: until the stop.
    pub count: Option<u64>,
    /// Mean of the exponentially distributed time from the end of one file to the next; zero: at once.
    pub think: Duration,
}

/// What is recorded beyond the summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// A row per packet that met the queue.
    pub packets: bool,
    /// The packets' headers, as a capture.
    pub pcap: bool,
    /// Width of the bins of the time series.
    pub series: Option<Duration>,
}
