//! The network of an experiment: namespaces, virtual Ethernet pairs, routes, shapers and delays.
//!
//! ```text
//! near0 ─┐                                    ┌─ far0
//! near1 ─┤ router ──[down]────────[up]── remote ├─ far1
//!        └                                    ┘
//! ```
//!
//! Every path (a traffic group in one direction) has its own hosts; downward data flows from near to far. `router` and
//! `remote` are the ends of `[link]`. With `[[link]]` there is a namespace for every node, and hosts are attached to
//! the first and last nodes of their route. A queue is the leaf of an HTB class at the end of the link where its
//! direction begins.
//!
//! A netem on the last hop towards the receiver has the propagation delay of the path's links. Another, on the
//! receiving host's egress (the ACK path), has the rest of the base RTT; it is away from the queues. There are no
//! other queues: virtual Ethernet has none.

use std::net::Ipv4Addr;

use sojourn_experiment::derived::{self, QueuePlace};
use sojourn_experiment::model::{Direction, Experiment, Hop, Link, Recovery, Tcp, Traffic, Way};
use sojourn_units::{Duration, Rate};

use crate::disciplines::Leaf;
use crate::job::{Action, Interface, Route, Step};
use crate::shaper::{self, Scheduler};

/// The handle of the first root qdisc: an unusual number, because other qdiscs of a host are traced by handle too.
const FIRST_HANDLE: u16 = 0x5d01;
/// The Ethernet header, which is part of a packet's length in the kernel.
pub const ETHERNET: u32 = 14;

/// A traffic group in one direction: a pair of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// Number of the path, and of its hosts.
    pub number: usize,
    /// The traffic group.
    pub group: usize,
    /// `Down` or `Up`.
    pub direction: Direction,
}

impl Path {
    /// The sending and the receiving namespace.
    pub fn hosts(&self, names: &Names) -> (String, String) {
        let near = names.of(&format!("near{}", self.number));
        let far = names.of(&format!("far{}", self.number));
        match self.direction {
            Direction::Up => (far, near),
            Direction::Down | Direction::Both => (near, far),
        }
    }

    /// The sender's address.
    pub const fn sender(&self) -> Ipv4Addr {
        match self.direction {
            Direction::Up => far(self.number, HOST),
            Direction::Down | Direction::Both => near(self.number, HOST),
        }
    }

    /// The receiver's address.
    pub const fn receiver(&self) -> Ipv4Addr {
        match self.direction {
            Direction::Up => near(self.number, HOST),
            Direction::Down | Direction::Both => far(self.number, HOST),
        }
    }
}

/// Names of namespaces, with a prefix that distinguishes them from those of other runs.
pub struct Names {
    /// The common prefix.
    pub prefix: String,
}

impl Names {
    /// A namespace's full name.
    pub fn of(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }
}

/// All paths of an experiment.
pub fn paths(experiment: &Experiment) -> Vec<Path> {
    let groups = experiment.traffic.iter().enumerate();
    let each = groups.flat_map(|(group, traffic)| {
        derived::directions(traffic.direction)
            .iter()
            .map(move |direction| (group, *direction))
    });
    each.enumerate()
        .map(|(number, (group, direction))| Path {
            number,
            group,
            direction,
        })
        .collect()
}

/// The host part of a host's address on its link, and of its router's.
const HOST: u8 = 1;
const ROUTER: u8 = 2;

/// The most paths: the second byte of an address is the path's number.
pub const MOST_PATHS: usize = 250;

const fn near(path: usize, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, path as u8, host)
}

const fn far(path: usize, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 2, path as u8, host)
}

/// A device's Ethernet address, derived from its IPv4 address, so that it is deterministic and needs no ARP.
const fn ethernet(address: Ipv4Addr) -> [u8; 6] {
    let [_, net, path, host] = address.octets();
    [2, 0, 0, net, path, host]
}

/// One end of a link: the egress device in the direction that begins there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its namespace, without the prefix.
    pub node: String,
    /// The device.
    pub device: String,
    /// The major number of the device's root qdisc.
    pub major: u16,
    address: Ipv4Addr,
}

impl Port {
    /// The port where a direction of a link begins.
    pub fn of(links: &[Link], hop: Hop) -> Self {
        let number = hop.link;
        let way = hop.way;
        let node = match (&links[number].nodes, way) {
            (None, Way::Down) => "router".into(),
            (None, Way::Up) => "remote".into(),
            (Some(nodes), Way::Down) => node_name(&nodes.from),
            (Some(nodes), Way::Up) => node_name(&nodes.to.concat()),
        };
        let device = match links[number].nodes {
            None => format!("sj-{}", way.name()),
            Some(_) => format!("sj{number}-{}", way.name()),
        };
        Self {
            node,
            device,
            major: FIRST_HANDLE + 2 * number as u16 + way as u16,
            address: Ipv4Addr::new(10, 9, number as u8, 1 + way as u8),
        }
    }

    /// Its Ethernet address.
    pub const fn mac(&self) -> [u8; 6] {
        ethernet(self.address)
    }
}

/// The namespace of a node of `[[link]]`.
fn node_name(node: &str) -> String {
    format!("node-{node}")
}

/// The ports at which downward packets of a traffic group leave nodes, in order, each with the port at the other end of
/// the link.
fn ports(links: &[Link], traffic: &Traffic) -> Vec<(Port, Port)> {
    let hops = traffic.route.hops(Way::Down).into_iter();
    let both = |hop: Hop| {
        let back = Hop {
            way: hop.way.reversed(),
            ..hop
        };
        (Port::of(links, hop), Port::of(links, back))
    };
    hops.map(both).collect()
}

/// Collects the steps that build a network.
struct Writer<'a> {
    names: &'a Names,
    mtu: u32,
    namespaces: Vec<String>,
    steps: Vec<Step>,
}

/// The namespaces of an experiment and the steps that build it, with the disciplines of its queues in `leaves`.
pub fn network(
    experiment: &Experiment,
    queues: &[(QueuePlace<'_>, &Leaf)],
    names: &Names,
) -> (Vec<String>, Vec<Step>) {
    let links = &experiment.links;
    let mut writer = Writer {
        names,
        mtu: derived::mtu(experiment),
        namespaces: Vec::new(),
        steps: Vec::new(),
    };
    // The limits of socket buffers are kernel-wide; the agent's own namespace has them.
    writer.sysctl(
        None,
        &[
            ("net/core/rmem_max", "33554432"),
            ("net/core/wmem_max", "33554432"),
        ],
    );
    let ends = |link: usize| [Way::Down, Way::Up].map(|way| Port::of(links, Hop { link, way }));
    let mut nodes: Vec<String> = Vec::new();
    for node in (0..links.len()).flat_map(|link| ends(link).map(|port| port.node)) {
        if !nodes.contains(&node) {
            writer.namespace(&names.of(&node), &[("net/ipv4/ip_forward", "1")]);
            nodes.push(node);
        }
    }
    for (number, link) in links.iter().enumerate() {
        let ports = ends(number);
        let namespaces = ports.each_ref().map(|port| names.of(&port.node));
        let [down, up] = &ports;
        writer.connect([
            (&namespaces[0], down.device.clone(), down.address),
            (&namespaces[1], up.device.clone(), up.address),
        ]);
        if link.nodes.is_none() {
            for (from, to) in [(0, 1), (1, 0)] {
                writer.route(&namespaces[from], Route::new(None, ports[to].address));
            }
        }
    }
    for path in paths(experiment) {
        writer.path(experiment, &path);
    }
    for (place, leaf) in queues {
        let port = Port::of(links, place.hop);
        let (device, major) = (&port.device, port.major);
        let node = names.of(&port.node);
        writer.add(
            &node,
            shaper::root(device, major, beyond_ethernet(place.link)),
        );
        writer.add(&node, class(&port, place.capacity.nominal(), place.link));
        writer.add(&node, shaper::leaf(device, major, leaf));
    }
    (writer.namespaces, writer.steps)
}

/// Bytes that a link adds to a packet beyond its Ethernet header. The discipline below the shaper counts them too.
fn beyond_ethernet(link: &Link) -> i32 {
    link.overhead as i32 - ETHERNET as i32
}

/// The shaper's class of a port; also what changes its rate.
pub fn class(port: &Port, rate: Rate, link: &Link) -> Scheduler {
    shaper::class(&port.device, port.major, rate, link.burst)
}

impl Writer<'_> {
    fn step(&mut self, namespace: Option<&str>, action: Action) {
        self.steps.push(Step {
            namespace: namespace.map(str::to_owned),
            action,
        });
    }

    fn route(&mut self, namespace: &str, route: Route) {
        self.step(Some(namespace), Action::Route(route));
    }

    fn add(&mut self, namespace: &str, scheduler: Scheduler) {
        self.step(Some(namespace), Action::Add(scheduler));
    }

    fn sysctl(&mut self, namespace: Option<&str>, values: &[(&str, &str)]) {
        let values = values
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()));
        self.step(namespace, Action::Sysctl(values.collect()));
    }

    fn namespace(&mut self, name: &str, values: &[(&str, &str)]) {
        self.namespaces.push(name.into());
        self.step(None, Action::Namespace(name.into()));
        // Without IPv6 there are no packets of its neighbour and router discovery.
        self.sysctl(
            Some(name),
            &[
                ("net/ipv6/conf/all/disable_ipv6", "1"),
                ("net/ipv6/conf/default/disable_ipv6", "1"),
            ],
        );
        self.sysctl(Some(name), values);
    }

    /// Connects two namespaces by a link without a queue: the namespace, device and address of each end.
    fn connect(&mut self, ends: [(&str, String, Ipv4Addr); 2]) {
        let ends = ends.map(|(namespace, device, address)| Interface {
            namespace: namespace.into(),
            device,
            address,
            mac: ethernet(address),
            mtu: self.mtu,
        });
        self.step(None, Action::Connect(ends));
    }

    /// Builds the two hosts of a path, their links to the nodes at its ends, its routes and its delays.
    fn path(&mut self, experiment: &Experiment, path: &Path) {
        let traffic = &experiment.traffic[path.group];
        let number = path.number;
        let ports = ports(&experiment.links, traffic);
        let (Some((first, _)), Some((_, last))) = (ports.first(), ports.last()) else {
            return; // no route is empty
        };
        let (router, remote) = (&self.names.of(&first.node), &self.names.of(&last.node));
        if experiment.links[0].nodes.is_some() {
            self.routes(&ports, number);
        }
        let near_host = self.names.of(&format!("near{number}"));
        let far_host = self.names.of(&format!("far{number}"));
        let unsent = unsent_limit(experiment);
        for host in [&near_host, &far_host] {
            self.namespace(host, &host_settings(traffic, &unsent));
            // Routers hash the headers, which do not change. Here a packet keeps the hash of its socket, which changes at a
            // timeout: flows that collide in FQ-CoDel would then no longer collide.
            let fixed_hash = ("net/core/txrehash".into(), "0".into());
            self.step(Some(host), Action::SysctlIfKnown(vec![fixed_hash]));
        }
        let [near_device, far_device] = [format!("n{number}"), format!("f{number}")];
        let [to_near, to_far] = [format!("rn{number}"), format!("rf{number}")];
        self.connect([
            (&near_host, near_device.clone(), near(number, HOST)),
            (router, to_near.clone(), near(number, ROUTER)),
        ]);
        self.connect([
            (remote, to_far.clone(), far(number, ROUTER)),
            (&far_host, far_device.clone(), far(number, HOST)),
        ]);
        let to_near_host = Route::new(None, near(number, ROUTER));
        let to_far_host = Route::new(None, far(number, ROUTER));
        let is_up = path.direction == Direction::Up;
        let (of_near, of_far) = if is_up {
            (
                receiving(to_near_host, traffic),
                sending(to_far_host, traffic),
            )
        } else {
            (
                sending(to_near_host, traffic),
                receiving(to_far_host, traffic),
            )
        };
        // The sender's route first.
        let mut routes = [(&near_host, of_near), (&far_host, of_far)];
        if is_up {
            routes.reverse();
        }
        for (host, route) in routes {
            self.route(host, route);
        }
        let (receiver, last_hop) = if is_up {
            ((&near_host, near_device), (router, to_near))
        } else {
            ((&far_host, far_device), (remote, to_far))
        };
        let delay = traffic.route.delay(&experiment.links);
        self.delay(receiver.0, &receiver.1, traffic.rtt.saturating_sub(delay));
        self.delay(last_hop.0, &last_hop.1, delay);
    }

    /// Adds the routes to a path's two hosts at every node on the path.
    fn routes(&mut self, ports: &[(Port, Port)], number: usize) {
        for (there, back) in ports {
            let (near, far) = (near(number, 0), far(number, 0));
            for (at, next, hosts) in [(there, back, far), (back, there, near)] {
                let node = self.names.of(&at.node);
                self.route(&node, Route::new(Some(hosts), next.address));
            }
        }
    }

    fn delay(&mut self, namespace: &str, device: &str, delay: Duration) {
        if !delay.is_zero() {
            self.add(namespace, shaper::delay(device, delay));
        }
    }
}

/// The most unsent bytes in a socket: always enough to send from, and at most 16 MiB in all sockets together. Full buffers
/// would hold megabytes each, which would put the kernel's TCP under memory pressure: it then limits windows to four
/// segments.
fn unsent_limit(experiment: &Experiment) -> String {
    let flows: u64 = experiment
        .traffic
        .iter()
        .map(|group| u64::from(group.flows))
        .sum();
    ((16 << 20) / flows.max(1))
        .clamp(16 << 10, 256 << 10)
        .to_string()
}

/// Settings of a path's hosts: buffers that never limit, with this much unsent; ECN and SACK according to the flows.
fn host_settings<'a>(traffic: &Traffic, unsent: &'a str) -> Vec<(&'static str, &'a str)> {
    let flag = |on: bool| if on { "1" } else { "0" };
    let (ecn, ecn_fallback, sack) = traffic.kind.tcp().map_or(("0", true, true), |tcp| {
        // Linux has value 3, AccECN in both directions, since 7.0; older ones refuse it.
        let ecn = if tcp.accecn { "3" } else { flag(tcp.ecn) };
        (ecn, tcp.ecn_fallback, tcp.sack)
    });
    let is_rack = |tcp: &Tcp| tcp.recovery == Recovery::Rack;
    let rack = traffic.kind.tcp().is_none_or(is_rack);
    vec![
        ("net/ipv4/tcp_rmem", "4096 6291456 33554432"),
        ("net/ipv4/tcp_wmem", "4096 4194304 33554432"),
        ("net/ipv4/tcp_notsent_lowat", unsent),
        ("net/ipv4/tcp_no_metrics_save", "1"),
        // Below the flows' own ports.
        ("net/ipv4/ip_local_port_range", "1024 9999"),
        ("net/ipv4/tcp_ecn", ecn),
        ("net/ipv4/tcp_ecn_fallback", flag(ecn_fallback)),
        ("net/ipv4/tcp_sack", flag(sack)),
        // Without RACK: loss detection by three SACKed segments, no tail loss probes, no F-RTO.
        ("net/ipv4/tcp_recovery", flag(rack)),
        ("net/ipv4/tcp_early_retrans", if rack { "3" } else { "0" }),
        ("net/ipv4/tcp_frto", if rack { "2" } else { "0" }),
    ]
}

/// A sender's route.
fn sending(route: Route, traffic: &Traffic) -> Route {
    let tcp = traffic.kind.tcp();
    Route {
        initial_window: tcp.map(|tcp| tcp.initial_window),
        min_rto_ms: tcp.map(|tcp| (tcp.min_rto.as_nanos() / 1_000_000) as u32),
        ..route
    }
}

/// A receiver's route.
fn receiving(route: Route, traffic: &Traffic) -> Route {
    let window = traffic.kind.tcp().and_then(|tcp| tcp.window);
    Route {
        window: window.map(|bytes| bytes as u32),
        ..route
    }
}
