//! The network of an experiment: namespaces, virtual Ethernet pairs, routes, shapers and delays.
//!
//! ```text
//! near0 ─┐                                    ┌─ far0
//! near1 ─┤ router ──[down]────────[up]── remote ├─ far1
//!        └                                    ┘
//! ```
//!
//! Downward data flows from near to far hosts ([`crate::hosts`]). `router` and `remote` are the ends of `[link]`. With
//! `[[link]]` there is a namespace for every node as a router, and its host is attached to it. A queue is the leaf of an
//! HTB class at the end of the link where its direction begins.
//!
//! A netem on the last hop towards the receiver has the propagation delay of the path's links. Another, on the
//! receiving host's egress (the ACK path), has the rest of the base RTT; it is away from the queues. Where a host's
//! packets wait for different times, each time is a band, which the priority of a socket selects. There are no other
//! queues: virtual Ethernet has none.

use std::net::Ipv4Addr;

use sojourn_experiment::derived::{self, Egress, Host};
use sojourn_experiment::model::{Experiment, Hop, Link, Way};
use sojourn_path::Impair;
use sojourn_units::{Duration, Rate};

use crate::disciplines::Leaf;
use crate::hosts::{Hosts, Options, PlacedHost};
use crate::job::{Action, Interface, Route, Step};
use crate::netem;
use crate::ports::{Port, ethernet};
use crate::shaper::{self, Scheduler};

/// The Ethernet header, which is part of a packet's length in the kernel.
pub const ETHERNET: u32 = 14;

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

/// Shorter delays are left out: what the kernel does with a packet takes longer.
const LEAST_DELAY: Duration = Duration::from_micros(1);

/// The host part of a host's address on its link, and of its router's.
const HOST: u8 = 1;
const ROUTER: u8 = 2;

/// The most paths: the second byte of an address is the path's number.
pub const MOST_PATHS: usize = 250;

/// An address on the link between a host and its node.
const fn address(host: Host, end: u8) -> Ipv4Addr {
    let [first, second, third, _] = host.address().to_be_bytes();
    Ipv4Addr::new(first, second, third, end)
}

/// A host's name, without the prefix of namespaces.
fn host_name(host: Host) -> String {
    let side = if host.is_far { "far" } else { "near" };
    format!("{side}{}", host.number)
}

/// The side and the number of the host that a namespace is; `None` of a node.
pub fn host_of(namespace: &str, prefix: &str) -> Option<Host> {
    let name = namespace.strip_prefix(prefix)?.strip_prefix('-')?;
    let of = |side, is_far| {
        let number = name.strip_prefix(side)?.parse().ok()?;
        Some(Host { is_far, number })
    };
    of("near", false).or_else(|| of("far", true))
}

impl PlacedHost {
    /// Its namespace.
    pub fn namespace(&self, names: &Names) -> String {
        names.of(&host_name(self.host))
    }

    /// Its address.
    pub const fn address(&self) -> Ipv4Addr {
        address(self.host, HOST)
    }

    /// The priority (SO_PRIORITY) of packets that wait for `rest` on their way out; 0 if all wait alike.
    pub fn priority(&self, rest: Duration) -> u32 {
        self.role.band(rest).map_or(0, shaper::band)
    }
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
    queues: &[(Egress<'_>, &[Leaf])],
    hosts: &Hosts,
    names: &Names,
) -> (Vec<String>, Vec<Step>) {
    let links = &experiment.links;
    let mut writer = Writer {
        names,
        mtu: derived::mtu(experiment),
        namespaces: Vec::new(),
        steps: Vec::new(),
    };
    // The agent's own namespace has them.
    writer.sysctl(None, &BUFFERS);
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
    let unsent = unsent_limit(count(experiment));
    for host in &hosts.all {
        writer.host(host, &unsent);
    }
    for host in &hosts.all {
        writer.host_routes(host);
    }
    for host in &hosts.all {
        writer.host_delays(host, &links[0]);
    }
    for (egress, leaves) in queues {
        let port = Port::of(links, egress.hop);
        let (device, major) = (&port.device, port.major);
        let node = names.of(&port.node);
        writer.add(
            &node,
            shaper::root(device, major, beyond_ethernet(egress.link)),
        );
        writer.add(&node, class(&port, egress.capacity.nominal(), egress.link));
        let link = u32::from(major) << 16 | shaper::CLASS;
        let classes = derived::classes(experiment, egress);
        if classes.is_empty() {
            writer.add(&node, shaper::leaf(device, link, 0, &leaves[0]));
            continue;
        }
        for (number, of) in classes.iter().enumerate() {
            let share = of.share(egress.hop.way);
            let class = shaper::Class {
                minor: minor(number),
                parent: of.parent.map_or(shaper::CLASS, minor),
                rate: share.rate,
                ceil: share.ceil,
                burst: egress.link.burst,
            };
            writer.add(&node, shaper::class(device, major, &class));
        }
        let handle = |number| u32::from(major) << 16 | minor(number);
        let numbered = derived::leaf_classes(classes).into_iter().enumerate();
        for ((number, class), leaf) in numbered.zip(*leaves) {
            writer.add(&node, shaper::leaf(device, handle(class), number, leaf));
        }
        for (host, class) in class_of_hosts(experiment, hosts) {
            let is_source = egress.hop.way == Way::Up;
            writer.add(
                &node,
                shaper::filter(device, handle(class), host, is_source),
            );
        }
    }
    (writer.namespaces, writer.steps)
}

/// As [`network`], where the packets pass Sojourn's own path: only the hosts, each with a TUN device to the path.
pub fn hosts_alone(
    experiment: &Experiment,
    hosts: &Hosts,
    names: &Names,
) -> (Vec<String>, Vec<Step>) {
    let mut writer = Writer {
        names,
        mtu: derived::mtu(experiment),
        namespaces: Vec::new(),
        steps: Vec::new(),
    };
    let unsent = unsent_limit(count(experiment));
    for placed in &hosts.all {
        writer.host_namespace(placed, &unsent);
        let address = placed.address();
        let [device, _] = devices(placed.host);
        let port = Interface {
            namespace: placed.namespace(names),
            device,
            address,
            mac: ethernet(address),
            mtu: writer.mtu,
        };
        writer.step(None, Action::Tun(port));
        writer.default_route(placed);
    }
    (writer.namespaces, writer.steps)
}

/// Bytes that a link adds to a packet beyond its Ethernet header. The discipline below the shaper counts them too.
fn beyond_ethernet(link: &Link) -> i32 {
    link.overhead as i32 - ETHERNET as i32
}

/// The shaper's class of a port; also what changes its rate.
pub fn class(port: &Port, rate: Rate, link: &Link) -> Scheduler {
    let of_link = shaper::Class {
        minor: shaper::CLASS,
        parent: 0,
        rate,
        ceil: rate,
        burst: link.burst,
    };
    shaper::class(&port.device, port.major, &of_link)
}

/// The far hosts by address, each with the number of its class. A group has several where Linux keeps its settings apart.
fn class_of_hosts(experiment: &Experiment, hosts: &Hosts) -> Vec<(u32, usize)> {
    let classes = derived::class_of_groups(experiment);
    let of_path = |path: &crate::hosts::Path| {
        let far = &hosts.all[path.ends[1]];
        Some((u32::from(far.address()), classes[path.group]?))
    };
    let mut found: Vec<(u32, usize)> = hosts.paths.iter().filter_map(of_path).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The minor number of one of the link's classes.
const fn minor(class: usize) -> u32 {
    shaper::CLASS + 1 + class as u32
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
        self.sysctl(Some(name), &NO_IPV6);
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

    /// Builds a host and its link to its node.
    fn host(&mut self, placed: &PlacedHost, unsent: &str) {
        let (name, node) = (placed.namespace(self.names), self.names.of(&placed.node));
        self.host_namespace(placed, unsent);
        let [own, of_node] = devices(placed.host);
        self.connect([
            (&name, own, placed.address()),
            (&node, of_node, address(placed.host, ROUTER)),
        ]);
    }

    /// Creates a host's namespace with its settings.
    fn host_namespace(&mut self, placed: &PlacedHost, unsent: &str) {
        let name = placed.namespace(self.names);
        self.namespace(&name, &host_settings(placed.role.options, unsent));
        // Routers hash the headers, which do not change. Here a packet keeps the hash of its socket, which changes at a
        // timeout: flows that collide in FQ-CoDel would then no longer collide.
        let fixed_hash = ("net/core/txrehash".into(), "0".into());
        self.step(Some(&name), Action::SysctlIfKnown(vec![fixed_hash]));
    }

    /// Adds the routes from a host, and those to it at every node on its paths.
    fn host_routes(&mut self, placed: &PlacedHost) {
        for (node, next) in &placed.role.routes {
            let node = self.names.of(node);
            self.route(&node, Route::new(Some(address(placed.host, 0)), *next));
        }
        self.default_route(placed);
    }

    /// Adds the route from a host to all others.
    fn default_route(&mut self, placed: &PlacedHost) {
        let role = &placed.role;
        let route = Route {
            initial_window: role.sends.map(|(window, _)| window),
            min_rto_ms: role
                .sends
                .map(|(_, rto)| (rto.as_nanos() / 1_000_000) as u32),
            window: role.receives.flatten().map(|bytes| bytes as u32),
            ..Route::new(None, address(placed.host, ROUTER))
        };
        self.route(&placed.namespace(self.names), route);
    }

    /// Adds the delays of what leaves a host, and of what comes to it. With `[link]` they are its wire, which may be impaired;
    /// without a queue upwards the way back begins at the far hosts.
    fn host_delays(&mut self, placed: &PlacedHost, link: &Link) {
        let impaired = |way: Way, is_here: bool| match link.nodes {
            None if is_here => link.impair(way),
            _ => Impair::new(),
        };
        let is_far = placed.host.is_far;
        let leaving = impaired(Way::Up, is_far && link.up.is_none());
        let coming = match is_far {
            true => impaired(Way::Down, true),
            false => impaired(Way::Up, link.up.is_some()),
        };
        let (name, node) = (placed.namespace(self.names), self.names.of(&placed.node));
        let [own, of_node] = devices(placed.host);
        match placed.role.rests.as_slice() {
            [rest] => self.wire(&name, &own, *rest, &leaving, Way::Up),
            rests => {
                // Without a priority are echo replies, and what a connection sends before it is accepted.
                let late = || rests.iter().copied().find(|rest| !rest.is_zero());
                let of_others = placed.role.echoes.or_else(late).unwrap_or(Duration::ZERO);
                let others = placed.role.band(of_others).unwrap_or(0);
                self.add(&name, shaper::bands(&own, rests.len(), others));
                for (band, rest) in rests.iter().enumerate() {
                    if *rest >= LEAST_DELAY || !leaving.is_nothing() {
                        let mut wire = netem::wire(&own, *rest, &leaving);
                        wire.parent = shaper::band(band);
                        if !leaving.is_nothing() {
                            wire.handle = netem::handle(Way::Up, band);
                        }
                        self.add(&name, wire);
                    }
                }
            }
        }
        let delay = placed.role.delay.unwrap_or(Duration::ZERO);
        let way = if is_far { Way::Down } else { Way::Up };
        self.wire(&node, &of_node, delay, &coming, way);
    }

    /// Adds a delay, with what happens to packets of this direction there.
    fn wire(&mut self, namespace: &str, device: &str, delay: Duration, of: &Impair, way: Way) {
        let wire = netem::wire(device, delay, of);
        if !of.is_nothing() {
            let handle = netem::handle(way, 0);
            self.add(namespace, Scheduler { handle, ..wire });
        } else if delay >= LEAST_DELAY {
            self.add(namespace, wire);
        }
    }
}

/// The limits of socket buffers, which are kernel-wide.
pub(crate) const BUFFERS: [(&str, &str); 2] = [
    ("net/core/rmem_max", "33554432"),
    ("net/core/wmem_max", "33554432"),
];

/// Without IPv6 there are no packets of its neighbour and router discovery.
pub(crate) const NO_IPV6: [(&str, &str); 2] = [
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
];

/// The flows of an experiment.
fn count(experiment: &Experiment) -> u64 {
    let groups = experiment.traffic.iter();
    groups.map(|group| u64::from(group.flows)).sum()
}

/// The most unsent bytes in a socket, with so many flows: always enough to send from, and at most 16 MiB in all sockets together. Full buffers
/// would hold megabytes each, which would put the kernel's TCP under memory pressure: it then limits windows to four
/// segments.
pub(crate) fn unsent_limit(flows: u64) -> String {
    ((16 << 20) / flows.max(1))
        .clamp(16 << 10, 256 << 10)
        .to_string()
}

/// Settings of a host: buffers that never limit, with this much unsent; ECN and SACK according to its connections.
pub(crate) fn host_settings(options: Option<Options>, unsent: &str) -> Vec<(&'static str, &str)> {
    let flag = |on: bool| if on { "1" } else { "0" };
    let options = options.unwrap_or(Options {
        ecn: false,
        accecn: false,
        ecn_fallback: true,
        sack: true,
        rack: true,
    });
    // Linux has value 3, AccECN in both directions, since 7.0; older ones refuse it.
    let ecn = if options.accecn {
        "3"
    } else {
        flag(options.ecn)
    };
    vec![
        ("net/ipv4/tcp_rmem", "4096 6291456 33554432"),
        ("net/ipv4/tcp_wmem", "4096 4194304 33554432"),
        ("net/ipv4/tcp_notsent_lowat", unsent),
        ("net/ipv4/tcp_no_metrics_save", "1"),
        // Below the flows' own ports.
        ("net/ipv4/ip_local_port_range", "1024 9999"),
        ("net/ipv4/tcp_ecn", ecn),
        ("net/ipv4/tcp_ecn_fallback", flag(options.ecn_fallback)),
        ("net/ipv4/tcp_sack", flag(options.sack)),
        // Without RACK: loss detection by three SACKed segments, no tail loss probes, no F-RTO.
        ("net/ipv4/tcp_recovery", flag(options.rack)),
        (
            "net/ipv4/tcp_early_retrans",
            if options.rack { "3" } else { "0" },
        ),
        ("net/ipv4/tcp_frto", if options.rack { "2" } else { "0" }),
    ]
}

/// The devices of a host's link: the host's and the node's.
fn devices(host: Host) -> [String; 2] {
    let side = if host.is_far { "f" } else { "n" };
    [
        format!("{side}{}", host.number),
        format!("r{side}{}", host.number),
    ]
}
