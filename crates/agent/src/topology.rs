//! The network of an experiment: namespaces, virtual Ethernet pairs and `ip` and `tc` commands.
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

use crate::disciplines::{Encoding, Leaf, tc_time};
use crate::job::{Action, DisciplineAttributes, Step};

/// The handle of the first root qdisc: an unusual number, because other qdiscs of a host are traced by handle too.
const FIRST_HANDLE: u16 = 0x5d01;
/// Handle of a queue's discipline.
pub const LEAF: &str = "10:";
/// Its major number.
const LEAF_MAJOR: u32 = 0x10;
/// Packets that a netem holds: more than ever occur.
const NETEM_LIMIT: u32 = 200_000;
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

fn mac(address: Ipv4Addr) -> String {
    ethernet(address)
        .map(|byte| format!("{byte:02x}"))
        .join(":")
}

/// One end of a link: the egress device in the direction that begins there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its namespace, without the prefix.
    pub node: String,
    /// The device.
    pub device: String,
    /// Handle of the device's root qdisc.
    pub handle: u16,
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
            handle: FIRST_HANDLE + 2 * number as u16 + way as u16,
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

/// One end of a virtual Ethernet pair.
struct End<'a> {
    namespace: &'a str,
    device: String,
    address: Ipv4Addr,
}

/// Collects the commands that build a network.
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
        writer.pair(&[
            end(&namespaces[0], down.device.clone(), down.address),
            end(&namespaces[1], up.device.clone(), up.address),
        ]);
        if link.nodes.is_none() {
            for (from, to) in [(0, 1), (1, 0)] {
                let routes = format!("route add default via {}", ports[to].address);
                writer.ip(&namespaces[from], vec![routes]);
            }
        }
    }
    for path in paths(experiment) {
        writer.path(experiment, &path);
    }
    for (place, leaf) in queues {
        let port = Port::of(links, place.hop);
        let (device, handle) = (&port.device, port.handle);
        let node = names.of(&port.node);
        let mut lines = vec![
            root(device, handle, place.link.overhead),
            format!(
                "class add {}",
                class(&port, place.capacity.nominal(), place.link)
            ),
        ];
        match &leaf.encoding {
            Encoding::TcArguments(arguments) => {
                lines.push(format!(
                    "qdisc add dev {device} parent {handle:x}:1 handle {LEAF} {arguments}"
                ));
                writer.tc(&node, lines);
            }
            Encoding::Attributes(kind, options) => {
                writer.tc(&node, lines);
                let discipline = DisciplineAttributes {
                    device: device.clone(),
                    parent: u32::from(handle) << 16 | 1,
                    handle: LEAF_MAJOR << 16,
                    kind: kind.clone(),
                    options: options.clone(),
                };
                writer.step(Some(&node), Action::Add(discipline));
            }
        }
    }
    (writer.namespaces, writer.steps)
}

/// The shaper at the root. A size table adds the link's overhead beyond an Ethernet header, so that the discipline
/// below counts it too.
fn root(device: &str, handle: u16, overhead: u32) -> String {
    let beyond = i64::from(overhead) - i64::from(ETHERNET);
    let sizes = match beyond {
        0 => String::new(),
        _ => format!("stab overhead {beyond} linklayer ethernet "),
    };
    format!("qdisc add dev {device} root handle {handle:x}: {sizes}htb default 1")
}

/// The arguments of the shaper's class, also used to change its rate.
pub fn class(port: &Port, rate: Rate, link: &Link) -> String {
    let Port { device, handle, .. } = port;
    // A bucket of one byte is a serial line: HTB lets a frame exceed the credit and then waits until it is repaid.
    let burst = link.burst.max(1);
    format!(
        "dev {device} parent {handle:x}: classid {handle:x}:1 htb rate {}bit burst {burst} cburst {burst}",
        rate.as_bps()
    )
}

impl Writer<'_> {
    fn step(&mut self, namespace: Option<&str>, action: Action) {
        self.steps.push(Step {
            namespace: namespace.map(str::to_owned),
            action,
        });
    }

    fn ip(&mut self, namespace: &str, lines: Vec<String>) {
        self.step(Some(namespace), Action::Ip(lines));
    }

    fn tc(&mut self, namespace: &str, lines: Vec<String>) {
        self.step(Some(namespace), Action::Tc(lines));
    }

    fn sysctl(&mut self, namespace: Option<&str>, values: &[(&str, &str)]) {
        let values = values
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()));
        self.step(namespace, Action::Sysctl(values.collect()));
    }

    fn namespace(&mut self, name: &str, values: &[(&str, &str)]) {
        self.namespaces.push(name.into());
        self.step(None, Action::Ip(vec![format!("netns add {name}")]));
        // Without IPv6 there are no packets of its neighbour and router discovery.
        self.sysctl(
            Some(name),
            &[
                ("net/ipv6/conf/all/disable_ipv6", "1"),
                ("net/ipv6/conf/default/disable_ipv6", "1"),
            ],
        );
        self.sysctl(Some(name), values);
        self.ip(name, vec!["link set lo up".into()]);
    }

    /// Connects two namespaces by a link without a queue, with static neighbour entries.
    fn pair(&mut self, ends: &[End<'_>; 2]) {
        let [a, b] = ends;
        let create = format!(
            "link add {} netns {} address {} mtu {mtu} type veth peer name {} netns {} address {} mtu {mtu}",
            a.device,
            a.namespace,
            mac(a.address),
            b.device,
            b.namespace,
            mac(b.address),
            mtu = self.mtu,
        );
        self.step(None, Action::Ip(vec![create]));
        for (end, other) in [(a, b), (b, a)] {
            let device = &end.device;
            self.ip(
                end.namespace,
                vec![
                    format!("addr add {}/24 dev {device}", end.address),
                    format!("link set {device} up"),
                    format!(
                        "neigh replace {} lladdr {} dev {device} nud permanent",
                        other.address,
                        mac(other.address)
                    ),
                ],
            );
            self.step(
                Some(end.namespace),
                Action::OffloadsOff(vec![device.clone()]),
            );
        }
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
        let near_link = [
            end(&near_host, format!("n{number}"), near(number, HOST)),
            end(router, format!("rn{number}"), near(number, ROUTER)),
        ];
        let far_link = [
            end(remote, format!("rf{number}"), far(number, ROUTER)),
            end(&far_host, format!("f{number}"), far(number, HOST)),
        ];
        self.pair(&near_link);
        self.pair(&far_link);
        let (sender, receiver) = match path.direction {
            Direction::Up => (&far_link[1], &near_link[0]),
            Direction::Down | Direction::Both => (&near_link[0], &far_link[1]),
        };
        for (host, options) in [
            (sender, sender_options(traffic)),
            (receiver, receiver_options(traffic)),
        ] {
            let [a, b, c, _] = host.address.octets();
            let gateway = Ipv4Addr::new(a, b, c, ROUTER);
            self.ip(
                host.namespace,
                vec![format!("route add default via {gateway}{options}")],
            );
        }
        let last_hop = match path.direction {
            Direction::Up => &near_link[1],
            Direction::Down | Direction::Both => &far_link[0],
        };
        let delay = traffic.route.delay(&experiment.links);
        self.delay(receiver, traffic.rtt.saturating_sub(delay));
        self.delay(last_hop, delay);
    }

    /// Adds the routes to a path's two hosts at every node on the path.
    fn routes(&mut self, ports: &[(Port, Port)], number: usize) {
        for (there, back) in ports {
            let (near, far) = (near(number, 0), far(number, 0));
            for (at, next, hosts) in [(there, back, far), (back, there, near)] {
                let route = format!(
                    "route add {hosts}/24 via {} dev {}",
                    next.address, at.device
                );
                self.ip(&self.names.of(&at.node), vec![route]);
            }
        }
    }

    fn delay(&mut self, end: &End<'_>, delay: Duration) {
        if !delay.is_zero() {
            let device = &end.device;
            let delay = tc_time(delay);
            let command =
                format!("qdisc add dev {device} root netem delay {delay} limit {NETEM_LIMIT}");
            self.tc(end.namespace, vec![command]);
        }
    }
}

const fn end(namespace: &str, device: String, address: Ipv4Addr) -> End<'_> {
    End {
        namespace,
        device,
        address,
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

fn sender_options(traffic: &Traffic) -> String {
    traffic.kind.tcp().map_or(String::new(), |tcp| {
        let least = tcp.min_rto.as_nanos() / 1_000_000;
        format!(" initcwnd {} rto_min {least}ms", tcp.initial_window)
    })
}

fn receiver_options(traffic: &Traffic) -> String {
    let window = traffic.kind.tcp().and_then(|tcp| tcp.window);
    window.map_or(String::new(), |bytes| format!(" window {bytes}"))
}
