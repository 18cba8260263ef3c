//! The network of an experiment as namespaces, virtual Ethernet pairs and `ip` and `tc` commands.
//!
//! ```text
//! near0 ─┐                                    ┌─ far0
//! near1 ─┤ router ──[down]────────[up]── remote ├─ far1
//!        └                                    ┘
//! ```
//!
//! Every path (a traffic group in one direction) has hosts of its own: data that goes down flows from near to far.
//! The queue under test is the leaf of an HTB class at `down` and, where the experiment has `link.up`, at `up`. A
//! path's base RTT is a netem delay on its receiving host's way out, the ACK path, away from the queue; `link.delay`
//! is one on the last hop towards the receiver. Nothing else has a queue: virtual Ethernet has none.

use std::net::Ipv4Addr;

use sojourn_experiment::derived;
use sojourn_experiment::model::{Direction, Experiment, Recovery, Tcp, Traffic};
use sojourn_units::{Duration, Rate};

use crate::disciplines::{Leaf, span_words};
use crate::job::{Action, Step};

/// The bottleneck's devices.
pub const DOWN: &str = "sj-down";
/// As [`DOWN`], the other end.
pub const UP: &str = "sj-up";
/// Handles of the root qdiscs there: unlikely numbers, as other qdiscs of a host are traced by handle too.
pub const DOWN_HANDLE: u16 = 0x5d01;
/// As [`DOWN_HANDLE`].
pub const UP_HANDLE: u16 = 0x5d02;
/// Handle of the discipline under test.
pub const LEAF: &str = "10:";
/// What a netem holds: never in the way.
const NETEM_LIMIT: u32 = 200_000;
/// Ethernet header, which the kernel counts in a packet's length.
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

/// Names of namespaces, told apart from those of other runs by a prefix.
pub struct Names {
    /// What all of them begin with.
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

/// Host part of a host's address on its link, and of its router's.
const HOST: u8 = 1;
const ROUTER: u8 = 2;

/// The most paths, which the second byte of an address numbers.
pub const MOST_PATHS: usize = 250;

const fn near(path: usize, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, path as u8, host)
}

const fn far(path: usize, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 2, path as u8, host)
}

/// A device's Ethernet address, made from its IPv4 address: nothing is left to chance, and no ARP is needed.
const fn ethernet(address: Ipv4Addr) -> [u8; 6] {
    let [_, net, path, host] = address.octets();
    [2, 0, 0, net, path, host]
}

fn mac(address: Ipv4Addr) -> String {
    ethernet(address)
        .map(|byte| format!("{byte:02x}"))
        .join(":")
}

/// Addresses of the bottleneck's devices: [`DOWN`], [`UP`].
const BOTTLENECK: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)];

/// Ethernet addresses of the bottleneck's devices.
pub fn bottleneck_ends() -> [[u8; 6]; 2] {
    BOTTLENECK.map(ethernet)
}

/// One end of a virtual Ethernet pair.
struct End<'a> {
    namespace: &'a str,
    device: String,
    address: Ipv4Addr,
}

/// A network being written down.
struct Writer<'a> {
    names: &'a Names,
    mtu: u32,
    namespaces: Vec<String>,
    steps: Vec<Step>,
}

/// The namespaces of an experiment and the steps that build it, with the disciplines ready in `leaves`: down, and up
/// if there is one.
pub fn network(
    experiment: &Experiment,
    leaves: &[Leaf],
    names: &Names,
) -> (Vec<String>, Vec<Step>) {
    let mut writer = Writer {
        names,
        mtu: derived::frame(experiment) - experiment.link.overhead,
        namespaces: Vec::new(),
        steps: Vec::new(),
    };
    let (router, remote) = (names.of("router"), names.of("remote"));
    // The kernel-wide bounds of socket buffers belong to the first namespace.
    writer.sysctl(
        None,
        &[
            ("net/core/rmem_max", "33554432"),
            ("net/core/wmem_max", "33554432"),
        ],
    );
    for namespace in [&router, &remote] {
        writer.namespace(namespace, &[("net/ipv4/ip_forward", "1")]);
    }
    let bottleneck = [
        End {
            namespace: &router,
            device: DOWN.into(),
            address: BOTTLENECK[0],
        },
        End {
            namespace: &remote,
            device: UP.into(),
            address: BOTTLENECK[1],
        },
    ];
    writer.pair(&bottleneck);
    for (from, to) in [(0, 1), (1, 0)] {
        let routes = format!("route add default via {}", bottleneck[to].address);
        writer.ip(bottleneck[from].namespace, vec![routes]);
    }
    for path in paths(experiment) {
        writer.path(experiment, &path, &router, &remote);
    }
    let up = experiment.link.up.as_ref().map(|up| up.rate.nominal());
    let rates = [Some(experiment.link.rate.nominal()), up];
    let devices = [(DOWN, DOWN_HANDLE), (UP, UP_HANDLE)];
    for (((end, rate), leaf), (device, handle)) in bottleneck
        .iter()
        .zip(rates.into_iter().flatten())
        .zip(leaves)
        .zip(devices)
    {
        writer.tc(
            end.namespace,
            vec![
                root(device, handle, experiment.link.overhead),
                format!("class add {}", class(device, handle, rate, experiment)),
                format!(
                    "qdisc add dev {device} parent {handle:x}:1 handle {LEAF} {}",
                    leaf.words
                ),
            ],
        );
    }
    (writer.namespaces, writer.steps)
}

/// The shaper at the root. What the link adds beyond an Ethernet header is told by a size table, so that the
/// discipline below counts it too.
fn root(device: &str, handle: u16, overhead: u32) -> String {
    let beyond = i64::from(overhead) - i64::from(ETHERNET);
    let sizes = match beyond {
        0 => String::new(),
        _ => format!("stab overhead {beyond} linklayer ethernet "),
    };
    format!("qdisc add dev {device} root handle {handle:x}: {sizes}htb default 1")
}

/// The words of the shaper's class: what a change of rate repeats.
pub fn class(device: &str, handle: u16, rate: Rate, experiment: &Experiment) -> String {
    // A bucket of one byte is a serial line: HTB lets a frame go into debt and waits until that is paid.
    let burst = experiment.link.burst.max(1);
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
        // No neighbour or router discovery of IPv6 among the packets.
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

    /// Joins two namespaces by a link without a queue, their neighbours known.
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

    /// The two hosts of a path, their links to the routers, and its delays.
    fn path(&mut self, experiment: &Experiment, path: &Path, router: &str, remote: &str) {
        let traffic = &experiment.traffic[path.group];
        let number = path.number;
        let near_host = self.names.of(&format!("near{number}"));
        let far_host = self.names.of(&format!("far{number}"));
        for host in [&near_host, &far_host] {
            self.namespace(host, &host_settings(traffic));
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
        let delay = experiment.link.delay;
        self.delay(receiver, traffic.rtt.saturating_sub(delay));
        self.delay(last_hop, delay);
    }

    fn delay(&mut self, end: &End<'_>, delay: Duration) {
        if !delay.is_zero() {
            let device = &end.device;
            let delay = span_words(delay);
            let words =
                format!("qdisc add dev {device} root netem delay {delay} limit {NETEM_LIMIT}");
            self.tc(end.namespace, vec![words]);
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

/// Bytes that wait in a socket to be sent for the first time, at most: always enough to send from. Megabytes of them,
/// which buffers have room for, would put the kernel's TCP under memory pressure, where it holds windows at four segments.
const UNSENT: &str = "262144";

/// Settings of a path's hosts: buffers that are never in the way, ECN and SACK as the flows want them.
fn host_settings(traffic: &Traffic) -> Vec<(&'static str, &'static str)> {
    let flag = |on: bool| if on { "1" } else { "0" };
    let (ecn, ecn_fallback, sack) = traffic.kind.tcp().map_or((false, true, true), |tcp| {
        (tcp.ecn, tcp.ecn_fallback, tcp.sack)
    });
    let is_rack = |tcp: &Tcp| tcp.recovery == Recovery::Rack;
    let rack = traffic.kind.tcp().is_none_or(is_rack);
    vec![
        ("net/ipv4/tcp_rmem", "4096 6291456 33554432"),
        ("net/ipv4/tcp_wmem", "4096 4194304 33554432"),
        ("net/ipv4/tcp_notsent_lowat", UNSENT),
        ("net/ipv4/tcp_no_metrics_save", "1"),
        // Below the flows' own ports.
        ("net/ipv4/ip_local_port_range", "1024 9999"),
        ("net/ipv4/tcp_ecn", flag(ecn)),
        ("net/ipv4/tcp_ecn_fallback", flag(ecn_fallback)),
        ("net/ipv4/tcp_sack", flag(sack)),
        // Without: losses by three segments reported by SACK, no tail loss probes, no F-RTO.
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
