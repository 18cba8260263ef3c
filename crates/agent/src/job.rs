//! The input of the agent. A job describes one run of one arm. Times are in nanoseconds; the network is a list of steps
//! that build it.

use std::cmp::Reverse;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sojourn_experiment::model::{Direction, Kind};
use sojourn_traffic::Identity;
use sojourn_units::{Duration, Time};

use crate::decision::Foreign;
use crate::shaper::Scheduler;

/// The first port of the flows. Flow `n` sends to this port + `n`, so that a packet identifies its flow.
pub const FIRST_PORT: u16 = 10_000;
/// The first port of flows whose data is requested: the receiver opens the connections. Flow `n` sends from this port +
/// `n`.
pub const FIRST_PORT_OF_REQUESTED: u16 = 38_000;

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Version of the program that made the job. The agent accepts only jobs of its own version.
    pub version: String,
    /// The seed of the run, for random numbers drawn during it (sizes of files).
    pub seed: u64,
    /// Kernel modules that the run needs, without their dependencies. Modules may also be built into the kernel.
    pub modules: Vec<String>,
    /// Namespaces in the order of their creation. Deleting them removes the network.
    pub namespaces: Vec<String>,
    /// The steps that build the network, in order.
    pub setup: Vec<Step>,
    /// The queues to observe: link by link, down before up.
    pub bottlenecks: Vec<ObservedQueue>,
    /// The flows.
    pub flows: Vec<Flow>,
    /// Duration of the run.
    pub duration_ns: u64,
    /// When measuring begins.
    pub warmup_ns: u64,
    /// The highest rate of a queue, in bits per second; 0 if there are no queues to observe.
    pub bps: u64,
    /// Bytes of the largest frame, Ethernet header included. A larger one means that an offload is still on.
    pub frame: u32,
    /// Width of the bins of the time series.
    pub series_ns: Option<u64>,
    /// Whether to record packet headers.
    pub capture: bool,
    /// Whether to record also the packets that enter the queue's device from the other side: with `[link]`, if the reverse
    /// direction has no queue.
    pub captures_back: bool,
}

/// One run whose packets pass Sojourn's own path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathJob {
    /// The hosts and their traffic. There are no queues to observe.
    pub job: Job,
    /// The run, as its document: the links between the hosts.
    pub document: String,
    /// The congestion controls that the document names.
    pub congestion_controls: Vec<String>,
    /// The disciplines of another process that the document names.
    pub foreign: Vec<Foreign>,
    /// The socket at which that process decides.
    pub decider: Option<PathBuf>,
    /// The socket of whoever watches the run.
    pub watcher: Option<PathBuf>,
}

/// A program, with its network behind Sojourn's own path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ShellJob {
    /// Version of the program that made the job.
    pub version: String,
    /// The run, as its document: the path.
    pub document: String,
    /// As of [`PathJob`].
    pub congestion_controls: Vec<String>,
    /// As of [`PathJob`].
    pub foreign: Vec<Foreign>,
    /// As of [`PathJob`].
    pub decider: Option<PathBuf>,
    /// Commands for a shell, each a server at the other end of the path.
    pub servers: Vec<String>,
    /// The interfaces of this machine between which the path lies, from the first down to the second; `None`: it lies before the
    /// program.
    pub between: Option<[String; 2]>,
    /// Where to write what takes the place of `/etc/resolv.conf`, if the program reaches the outside.
    pub outside: Option<PathBuf>,
    /// As of [`PathJob`].
    pub watcher: Option<PathBuf>,
}

/// A step of building the network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The namespace of the step; `None` for the agent's own.
    pub namespace: Option<String>,
    /// The action.
    pub action: Action,
}

/// The action of a step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Action {
    /// Creates a namespace, which `ip netns` also finds, with its loopback device up.
    Namespace(String),
    /// Connects two namespaces by a pair of virtual Ethernet devices without offloads, whose ends know each other.
    Connect([Interface; 2]),
    /// Gives a namespace its end of such a pair whose other end is on another machine.
    Attach(Attachment),
    /// Makes a TUN device, by which Sojourn's own path is reached.
    Tun(Interface),
    /// Adds a route.
    Route(Route),
    /// Adds a discipline or class.
    Add(Scheduler),
    /// Settings below /proc/sys with their values.
    Sysctl(Vec<(String, String)>),
    /// As `Sysctl`; settings that the kernel does not have, or a container may not change, are skipped.
    SysctlIfKnown(Vec<(String, String)>),
}

/// An end of a virtual Ethernet pair, or a TUN device, which has no Ethernet address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Interface {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub device: String,
    /// Its address in a network of 24 bits.
    pub address: Ipv4Addr,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Bytes of the largest IP packet.
    pub mtu: u32,
}

/// An end of a pair whose other end is reached by an interface of this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attachment {
    /// The end.
    pub end: Interface,
    /// The other end.
    pub other: Interface,
    /// The machine's interface.
    pub wire: String,
}

/// A route by a neighbour, with what TCP connections over it start from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Route {
    /// The network of 24 bits; `None` for all others.
    pub to: Option<Ipv4Addr>,
    /// The neighbour.
    pub via: Ipv4Addr,
    /// Initial congestion window in segments (initcwnd).
    pub initial_window: Option<u32>,
    /// Least retransmission timeout in milliseconds (rto_min).
    pub min_rto_ms: Option<u32>,
    /// The largest window to advertise, in bytes (window).
    pub window: Option<u32>,
}

impl Route {
    /// A route without settings of TCP.
    pub const fn new(to: Option<Ipv4Addr>, via: Ipv4Addr) -> Self {
        Self {
            to,
            via,
            initial_window: None,
            min_rto_ms: None,
            window: None,
        }
    }
}

/// A queue to observe, with its shaper.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ObservedQueue {
    /// The discipline's name in the experiment.
    pub aqm: String,
    /// The namespace of its device.
    pub namespace: String,
    /// Its device.
    pub device: String,
    /// Handle of the device's root qdisc, as in tracepoints.
    pub handle: u32,
    /// Handles of the disciplines under test: one, or one for each class.
    pub leaves: Vec<u32>,
    /// By flow number: whether the flow's data passes this queue, and whether its returning packets do.
    pub passed_by: Vec<[bool; 2]>,
    /// Times at which its rate changes, with the shaper's class from then on.
    pub rate_changes: Vec<(u64, Scheduler)>,
}

/// A flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// Its number over all groups.
    pub number: u32,
    /// The sender's namespace.
    pub sender: String,
    /// The receiver's namespace.
    pub receiver: String,
    /// The destination IPv4 address of connections and datagrams: the receiver's, or the sender's if the receiver
    /// opens the connections.
    pub address: Ipv4Addr,
    /// The priority (SO_PRIORITY) of the sender's sockets and of the receiver's, which selects how long their packets wait on
    /// their way out of the host; 0: all wait alike.
    pub priorities: [u32; 2],
    /// The time of the connection's handshake, if it precedes the flow's start. Negative: before the run.
    pub opens_ns: Option<i64>,
    /// When it starts.
    pub start_ns: u64,
    /// When it stops sending.
    pub stop_ns: u64,
    /// How late a sending by a timer may be.
    pub jitter_ns: u64,
    /// The DiffServ code point of its packets in both directions.
    pub dscp: u8,
    /// The direction of its data.
    pub direction: Direction,
    /// Its socket options if it runs over TCP.
    pub tcp: Option<Tcp>,
    /// Its kind of traffic.
    pub kind: Kind,
}

impl Job {
    /// True if a namespace is on this machine.
    pub fn has(&self, namespace: &String) -> bool {
        self.namespaces.contains(namespace)
    }

    /// When flows stop that do so before the run ends, and which; the earliest is the last.
    pub fn stops(&self) -> Vec<(u64, usize)> {
        let flows = self.flows.iter().enumerate();
        let stops = flows.map(|(index, flow)| (flow.stop_ns, index));
        let mut stops: Vec<_> = stops
            .filter(|(at_ns, _)| *at_ns < self.duration_ns)
            .collect();
        stops.sort_unstable_by_key(|(at_ns, _)| Reverse(*at_ns));
        stops
    }
}

impl Flow {
    /// True if its receiver opens the connections and sends requests for the data.
    pub const fn receiver_connects(&self) -> bool {
        matches!(self.kind, Kind::Web(_) | Kind::Video(_))
    }

    /// The destination port of its data, or the source port if the receiver opens the connections. In echo requests it is
    /// the identifier.
    pub const fn port(&self) -> u16 {
        let first = if self.receiver_connects() {
            FIRST_PORT_OF_REQUESTED
        } else {
            FIRST_PORT
        };
        first + self.number as u16
    }

    /// The identity of the flow for its application.
    pub const fn identity(&self) -> Identity {
        Identity {
            flow: self.number,
            direction: self.direction,
            start: Time::from_nanos(self.start_ns),
            stop: Time::from_nanos(self.stop_ns),
            jitter: Duration::from_nanos(self.jitter_ns),
        }
    }
}

/// Options of a TCP socket that are not set on its namespace or its route.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tcp {
    /// Congestion control by the kernel's name.
    pub congestion_control: String,
    /// True: ECN must be negotiated. False: it must not.
    pub ecn: bool,
    /// Accept a connection without ECN if a SYN was lost and retransmitted without it.
    pub ecn_fallback: bool,
    /// TCP_MAXSEG if segments are smaller than the device allows.
    pub max_segment: Option<u32>,
}
