//! Devices, addresses, routes and disciplines of a namespace, by netlink (rtnetlink(7), linux/ethtool_netlink.h).

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::SockProtocol;

use super::generic::Family;
use super::namespace::{handle_of, within};
use super::socket::{CHANGE, CREATE, DUMP, REPLACE, acknowledged, dump, open};
use super::{Context, Failure};
use crate::disciplines::Options;
use crate::job::{Attachment, Interface, Route};
use crate::netlink::{Attributes, attribute, attributes, number, request};
use crate::shaper::{self, Part, Scheduler};

/// Types of messages (linux/rtnetlink.h, linux/netlink.h).
const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const NEW_RULE: u16 = 32;
const NEW_NEIGHBOUR: u16 = 28;
const NEW_QDISC: u16 = 36;
const GET_QDISC: u16 = 38;
const NEW_CLASS: u16 = 40;
const NEW_FILTER: u16 = 44;
const AF_INET: u8 = 2;
/// The index of the loopback device in every namespace (LOOPBACK_IFINDEX).
const LOOPBACK: u32 = 1;
/// IFF_UP.
const UP: u32 = 1;
/// NUD_PERMANENT.
const PERMANENT: u16 = 0x80;
/// RT_TABLE_MAIN, RTPROT_BOOT, RTN_UNICAST.
const MAIN: u8 = 254;
const BOOT: u8 = 3;
const UNICAST: u8 = 1;
/// RTN_LOCAL, RT_SCOPE_HOST, FR_ACT_TO_TBL.
const LOCAL: u8 = 2;
const HOST: u8 = 254;
const TO_TABLE: u8 = 1;
/// Length of the networks' prefixes, in bits.
pub const PREFIX: u8 = 24;

/// TCA_KIND, TCA_OPTIONS and TCA_STAB.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const SIZES: u16 = 8;

/// The features that segmentation and receive offloads consist of.
pub const OFFLOADS: [&str; 6] = [
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-generic-segmentation",
    "rx-gro",
];

/// A netlink socket in one namespace.
pub struct Link(OwnedFd);

impl Link {
    /// Opens the socket; `None` for the agent's own namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn open(namespace: Option<&str>) -> Result<Self, Failure> {
        open(namespace, SockProtocol::NetlinkRoute).map(Self)
    }

    /// Puts the loopback device up.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn loopback_up(&self) -> Result<(), Failure> {
        self.up(LOOPBACK).context(|| "putting lo up".into())
    }

    /// Puts a device up.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn up(&self, index: u32) -> Result<(), Failure> {
        self.put(index, true)
    }

    /// Puts a device up or down.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn put(&self, index: u32, up: bool) -> Result<(), Failure> {
        let mut body = interface(index, UP);
        if !up {
            body[8..12].fill(0);
        }
        self.ask(NEW_LINK, CHANGE, &body)
    }

    /// True if the kernel has a discipline, with whatever options. Adds it to the loopback device, which must be of a namespace
    /// made for that.
    pub fn has_discipline(&self, kind: &str) -> bool {
        let scheduler = Scheduler {
            part: Part::Discipline,
            device: String::new(),
            parent: shaper::ROOT,
            handle: shaper::ANY,
            kind: kind.into(),
            options: Options::Attributes(Attributes::new()),
            overhead: 0,
        };
        let asked = request(NEW_QDISC, REPLACE, &scheduler_body(&scheduler, LOOPBACK));
        acknowledged(&self.0, &asked) != Err(Errno::ENOENT)
    }

    /// True if the kernel has a kind of virtual devices; may make one.
    pub fn has_device(&self, kind: &str) -> bool {
        let info = Attributes::new().nest(18, &Attributes::new().text(1, kind));
        let body = [&interface(0, 0)[..], info.as_bytes()].concat();
        acknowledged(&self.0, &request(NEW_LINK, CREATE, &body)) != Err(Errno::EOPNOTSUPP)
    }

    /// Sets the largest packet of a device and the length of its queue, and puts it up.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn up_with(&self, index: u32, mtu: u32, queue: u32) -> Result<(), Failure> {
        // IFLA_MTU and IFLA_TXQLEN.
        let sizes = Attributes::new().u32(4, mtu).u32(13, queue);
        let body = [&interface(index, UP)[..], sizes.as_bytes()].concat();
        self.ask(NEW_LINK, CHANGE, &body)
    }

    /// Moves a device to a namespace, where it has another index.
    ///
    /// # Errors
    /// There is no such namespace, or the kernel refuses.
    pub fn move_to(&self, index: u32, namespace: &str) -> Result<(), Failure> {
        let there = handle_of(namespace)?;
        // IFLA_NET_NS_FD.
        let to = Attributes::new().u32(28, there.as_raw_fd() as u32);
        let body = [&interface(index, 0)[..], to.as_bytes()].concat();
        self.ask(NEW_LINK, CHANGE, &body)
    }

    /// Gives a device an address in a network of so many bits.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn address(&self, index: u32, address: Ipv4Addr, bits: u8) -> Result<(), Failure> {
        self.ask(NEW_ADDRESS, CREATE, &address_body(address, bits, index))
    }

    /// Tells a device the Ethernet address of a neighbour, for good.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn neighbour(&self, index: u32, address: Ipv4Addr, mac: [u8; 6]) -> Result<(), Failure> {
        self.ask(NEW_NEIGHBOUR, REPLACE, &neighbour_body(address, mac, index))
    }

    /// Adds a route to this namespace.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn route(&self, route: &Route) -> Result<(), Failure> {
        self.ask(NEW_ROUTE, CREATE, &route_body(route))
            .context(|| format!("adding a route by {}", route.via))
    }

    /// Adds a route to a table by which packets for all addresses are this namespace's own.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take_all(&self, table: u8) -> Result<(), Failure> {
        let mut body = vec![AF_INET, 0, 0, 0, table, BOOT, HOST, LOCAL, 0, 0, 0, 0];
        // RTA_OIF.
        body.extend(Attributes::new().u32(4, LOOPBACK).as_bytes());
        self.ask(NEW_ROUTE, CREATE, &body)
    }

    /// Looks up the packets of a protocol that come from a device in a table: fib_rule_hdr, FRA_IIFNAME and FRA_IP_PROTO.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn look_up(&self, table: u8, from: &str, protocol: u8) -> Result<(), Failure> {
        let mut body = vec![AF_INET, 0, 0, 0, table, 0, 0, TO_TABLE, 0, 0, 0, 0];
        let attributes = Attributes::new().text(3, from).put(22, &[protocol]);
        body.extend(attributes.as_bytes());
        self.ask(NEW_RULE, CREATE, &body)
    }

    /// Adds a discipline or class to a device of this namespace.
    ///
    /// # Errors
    /// There is no such device, or the kernel refuses.
    pub fn add(&self, namespace: Option<&str>, scheduler: &Scheduler) -> Result<(), Failure> {
        self.schedule(namespace, scheduler, CREATE, "adding")
    }

    /// Changes a class of a device of this namespace.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn change(&self, namespace: Option<&str>, scheduler: &Scheduler) -> Result<(), Failure> {
        self.schedule(namespace, scheduler, CHANGE, "changing")
    }

    fn schedule(
        &self,
        namespace: Option<&str>,
        scheduler: &Scheduler,
        flags: u16,
        verb: &str,
    ) -> Result<(), Failure> {
        let doing = || format!("{verb} {} on {}", scheduler.kind, scheduler.device);
        let index = index(namespace, &scheduler.device)?;
        let kind = match scheduler.part {
            Part::Discipline => NEW_QDISC,
            Part::Class => NEW_CLASS,
            Part::Filter => NEW_FILTER,
        };
        self.ask(kind, flags, &scheduler_body(scheduler, index))
            .context(doing)
    }

    /// The attributes of all disciplines in this namespace, with their devices' indices and their handles.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn disciplines(&self) -> Result<Vec<(u32, u32, Vec<u8>)>, Failure> {
        let mut found = Vec::new();
        dump(&self.0, &request(GET_QDISC, DUMP, &[0; TCMSG]), |body| {
            found.extend(discipline(body));
        })
        .context(|| "asking for the disciplines".into())?;
        Ok(found)
    }

    /// Sends a request and waits for its acknowledgement.
    fn ask(&self, kind: u16, flags: u16, body: &[u8]) -> Result<(), Failure> {
        acknowledged(&self.0, &request(kind, flags, body))
            .map_err(|errno| Failure(errno.desc().into()))
    }
}

/// Connects two namespaces by a pair of devices without offloads, with addresses, and neighbours that never expire.
///
/// # Errors
/// A namespace is missing, or the kernel refuses.
pub fn connect(ends: &[Interface; 2]) -> Result<(), Failure> {
    let [a, b] = ends;
    let connecting = || format!("connecting {} and {}", a.device, b.device);
    let files = [handle_of(&a.namespace)?, handle_of(&b.namespace)?];
    let [of_a, of_b] =
        [(a, &files[0]), (b, &files[1])].map(|(end, file)| device(end, file.as_raw_fd()));
    Link::open(None)?
        .ask(NEW_LINK, CREATE, &pair_body(of_a, of_b))
        .context(connecting)?;
    settle(a, b)?;
    settle(b, a)
}

/// Gives a namespace its end of a pair whose other end is on another machine: a MAC-VLAN on this machine's interface.
///
/// # Errors
/// There is no such interface, or the kernel refuses.
pub fn attach(attachment: &Attachment) -> Result<(), Failure> {
    let Attachment { end, other, wire } = attachment;
    let file = handle_of(&end.namespace)?;
    let body = vlan_body(device(end, file.as_raw_fd()), index(None, wire)?);
    Link::open(None)?
        .ask(NEW_LINK, CREATE, &body)
        .context(|| format!("adding {} to {wire}", end.device))?;
    settle(end, other)
}

/// Removes what [`attach`] made. The kernel would remove it with its namespace, but some time later: until then no other may
/// have its Ethernet address.
///
/// # Errors
/// There is none.
pub fn detach(attachment: &Attachment) -> Result<(), Failure> {
    let Interface {
        namespace, device, ..
    } = &attachment.end;
    let namespace = Some(namespace.as_str());
    let body = interface(index(namespace, device)?, 0);
    Link::open(namespace)?
        .ask(DELETE_LINK, CHANGE, &body)
        .context(|| format!("removing {device}"))
}

/// Sets up an end of a pair: address, neighbour, no offloads.
fn settle(end: &Interface, other: &Interface) -> Result<(), Failure> {
    let namespace = Some(end.namespace.as_str());
    let link = Link::open(namespace)?;
    let index = index(namespace, &end.device)?;
    let setting = || format!("setting up {}", end.device);
    link.address(index, end.address, PREFIX).context(setting)?;
    link.up(index).context(setting)?;
    link.neighbour(index, other.address, other.mac)
        .context(setting)?;
    offloads_off(namespace, &end.device).context(setting)
}

/// The index of a device.
pub fn index(namespace: Option<&str>, device: &str) -> Result<u32, Failure> {
    within(namespace, || {
        if_nametoindex(device).context(|| format!("looking for device {device}"))
    })
}

/// ifinfomsg: family, type, index, flags, and which flags to change.
fn interface(index: u32, flags: u32) -> [u8; 16] {
    let mut body = [0; 16];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..16].copy_from_slice(&flags.to_ne_bytes());
    body
}

/// IFLA_IFNAME, IFLA_ADDRESS, IFLA_MTU and IFLA_NET_NS_FD of an end.
fn device(end: &Interface, namespace: i32) -> Attributes {
    Attributes::new()
        .text(3, &end.device)
        .put(1, &end.mac)
        .u32(4, end.mtu)
        .u32(28, namespace as u32)
}

/// A pair of virtual Ethernet devices: the second is IFLA_LINKINFO's VETH_INFO_PEER.
fn pair_body(a: Attributes, b: Attributes) -> Vec<u8> {
    let peer = [&interface(0, 0)[..], b.as_bytes()].concat();
    let data = Attributes::new().put(1, &peer);
    let info = Attributes::new().text(1, "veth").nest(2, &data);
    [&interface(0, 0)[..], a.nest(18, &info).as_bytes()].concat()
}

/// A MAC-VLAN above the interface of this index (IFLA_LINK), which others above it do not hear (IFLA_MACVLAN_MODE,
/// MACVLAN_MODE_PRIVATE).
fn vlan_body(end: Attributes, wire: u32) -> Vec<u8> {
    let data = Attributes::new().u32(1, 1);
    let info = Attributes::new().text(1, "macvlan").nest(2, &data);
    let whole = end.u32(5, wire).nest(18, &info);
    [&interface(0, 0)[..], whole.as_bytes()].concat()
}

/// ifaddrmsg: family, length of the prefix, flags, scope, index. IFA_LOCAL and IFA_ADDRESS.
fn address_body(address: Ipv4Addr, bits: u8, index: u32) -> Vec<u8> {
    let mut body = vec![AF_INET, bits, 0, 0];
    body.extend(index.to_ne_bytes());
    let attributes = Attributes::new()
        .put(2, &address.octets())
        .put(1, &address.octets());
    body.extend(attributes.as_bytes());
    body
}

/// ndmsg: family, index, state, flags, type. NDA_DST and NDA_LLADDR.
fn neighbour_body(address: Ipv4Addr, mac: [u8; 6], index: u32) -> Vec<u8> {
    let mut body = vec![AF_INET, 0, 0, 0];
    body.extend(index.to_ne_bytes());
    body.extend(PERMANENT.to_ne_bytes());
    body.extend([0, UNICAST]);
    let attributes = Attributes::new().put(1, &address.octets()).put(2, &mac);
    body.extend(attributes.as_bytes());
    body
}

/// rtmsg: family, lengths of the prefixes, TOS, table, protocol, scope, type, flags. RTA_DST, RTA_GATEWAY and RTA_METRICS
/// with RTAX_LOCK, RTAX_WINDOW, RTAX_INITCWND and RTAX_RTO_MIN. A least retransmission timeout applies only if locked.
fn route_body(route: &Route) -> Vec<u8> {
    const RTO_MIN: u16 = 13;
    let length = if route.to.is_some() { PREFIX } else { 0 };
    let mut body = vec![AF_INET, length, 0, 0, MAIN, BOOT, 0, UNICAST, 0, 0, 0, 0];
    let lock = route.min_rto_ms.map(|_| 1 << RTO_MIN);
    let metrics = [
        (1, lock),
        (3, route.window),
        (11, route.initial_window),
        (RTO_MIN, route.min_rto_ms),
    ];
    let mut of_tcp = Attributes::new();
    for (metric, value) in metrics {
        if let Some(value) = value {
            of_tcp = of_tcp.u32(metric, value);
        }
    }
    let mut attributes = Attributes::new();
    if let Some(to) = route.to {
        attributes = attributes.put(1, &to.octets());
    }
    attributes = attributes.put(5, &route.via.octets());
    if !of_tcp.is_empty() {
        attributes = attributes.nest(8, &of_tcp);
    }
    body.extend(attributes.as_bytes());
    body
}

/// Length of tcmsg: family, index, handle, parent, info.
const TCMSG: usize = 20;

/// tcmsg and the attributes of a discipline or class.
fn scheduler_body(scheduler: &Scheduler, index: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(index.to_ne_bytes());
    body.extend(scheduler.handle.to_ne_bytes());
    body.extend(scheduler.parent.to_ne_bytes());
    body.extend(scheduler.part.info().to_ne_bytes());
    let mut attributes = Attributes::new().text(KIND, &scheduler.kind);
    if scheduler.overhead != 0 {
        attributes = attributes.nest(SIZES, &shaper::sizes(scheduler.overhead));
    }
    attributes = match &scheduler.options {
        Options::Attributes(none) if none.is_empty() => attributes,
        Options::Attributes(some) => attributes.nest(OPTIONS, some),
        Options::Fields(fields) => attributes.put(OPTIONS, fields),
    };
    body.extend(attributes.as_bytes());
    body
}

/// A discipline in an answer: its device's index, its handle and its attributes.
fn discipline(body: &[u8]) -> Option<(u32, u32, Vec<u8>)> {
    let index = number::<4>(body, 4)? as u32;
    let handle = number::<4>(body, 8)? as u32;
    Some((index, handle, body.get(TCMSG..)?.to_vec()))
}

/// The name of a described discipline.
pub fn kind(described: &[u8]) -> Option<&str> {
    let name = attribute(described, KIND)?;
    std::str::from_utf8(name.strip_suffix(b"\0")?).ok()
}

/// ETHTOOL_MSG_FEATURES_GET and ETHTOOL_MSG_FEATURES_SET.
const GET_FEATURES: u8 = 11;
const SET_FEATURES: u8 = 12;
/// ETHTOOL_FLAG_OMIT_REPLY.
const OMIT_REPLY: u32 = 2;

/// Disables a device's segmentation and receive offloads.
fn offloads_off(namespace: Option<&str>, device: &str) -> Result<(), Failure> {
    set_features(namespace, device, &OFFLOADS, false)
}

/// Sets features of a device.
///
/// # Errors
/// The kernel refuses.
pub fn set_features(
    namespace: Option<&str>,
    device: &str,
    names: &[&str],
    on: bool,
) -> Result<(), Failure> {
    let asked = features(device, names, on);
    Family::open(namespace, "ethtool")?
        .call(SET_FEATURES, &asked, "setting offloads")
        .map(drop)
}

/// The names of those features of a device of this namespace that are active.
///
/// # Errors
/// There is no such device.
pub fn active_features(device: &str) -> Result<Vec<String>, Failure> {
    // ETHTOOL_A_FEATURES_HEADER, ETHTOOL_A_FEATURES_ACTIVE; its bits (ETHTOOL_A_BITSET_BITS) by ETHTOOL_A_BITSET_BIT_NAME.
    let asked = Attributes::new().nest(1, &Attributes::new().text(2, device));
    let answer =
        Family::open(None, "ethtool")?.call(GET_FEATURES, &asked, "asking for offloads")?;
    let active = answer.get(4..).and_then(|answer| attribute(answer, 4));
    let bits = active
        .and_then(|active| attribute(active, 3))
        .unwrap_or_default();
    let name = |(_, bit)| std::str::from_utf8(attribute(bit, 2)?.strip_suffix(b"\0")?).ok();
    Ok(attributes(bits)
        .filter_map(name)
        .map(str::to_owned)
        .collect())
}

/// ETHTOOL_A_FEATURES_HEADER with ETHTOOL_A_HEADER_DEV_NAME, and ETHTOOL_A_HEADER_FLAGS that ask for no reply; and
/// ETHTOOL_A_FEATURES_WANTED: a bit set of names, each with ETHTOOL_A_BITSET_BIT_VALUE if it is to be set.
fn features(device: &str, names: &[&str], on: bool) -> Attributes {
    let header = Attributes::new().text(2, device).u32(3, OMIT_REPLY);
    let bits = names.iter().fold(Attributes::new(), |bits, name| {
        let bit = Attributes::new().text(2, name);
        bits.nest(1, &if on { bit.put(3, &[]) } else { bit })
    });
    let wanted = Attributes::new().nest(3, &bits);
    Attributes::new().nest(1, &header).nest(3, &wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_locks_the_timeout_that_it_sets() {
        let plain = Route::new(None, Ipv4Addr::new(10, 1, 0, 2));
        let body = route_body(&plain);
        assert_eq!((body[1], body.len()), (0, 12 + 8));
        let sender = Route {
            initial_window: Some(10),
            min_rto_ms: Some(200),
            ..plain
        };
        let body = route_body(&sender);
        let metrics = attribute(&body[12..], 8).expect("metrics");
        let numbers: Vec<_> = attributes(metrics)
            .map(|(metric, value)| (metric, number::<4>(value, 0)))
            .collect();
        assert_eq!(
            numbers,
            [(1, Some(1 << 13)), (11, Some(10)), (13, Some(200))]
        );
    }

    #[test]
    fn a_network_route_has_its_prefix() {
        let to = Ipv4Addr::new(10, 2, 7, 0);
        let body = route_body(&Route::new(Some(to), Ipv4Addr::new(10, 9, 0, 2)));
        assert_eq!(body[1], 24);
        assert_eq!(attribute(&body[12..], 1), Some(&[10, 2, 7, 0][..]));
    }

    #[test]
    fn a_discipline_without_options_leaves_all_to_the_kernel() {
        let scheduler = Scheduler {
            part: Part::Discipline,
            device: "eth0".into(),
            parent: 1,
            handle: 2,
            kind: "codel".into(),
            options: Options::Attributes(Attributes::new()),
            overhead: 0,
        };
        let body = scheduler_body(&scheduler, 3);
        assert_eq!(number::<4>(&body, 4), Some(3));
        assert_eq!(attribute(&body[TCMSG..], OPTIONS), None);
        assert_eq!(kind(&body[TCMSG..]), Some("codel"));
        let sized = Scheduler {
            overhead: 4,
            ..scheduler
        };
        assert!(attribute(&scheduler_body(&sized, 3)[TCMSG..], SIZES).is_some());
    }

    #[test]
    fn features_are_cleared_by_name() {
        let features = features("eth0", &OFFLOADS, false);
        let wanted = attribute(features.as_bytes(), 3).expect("wanted");
        let bits = attribute(wanted, 3).expect("bits");
        let names: Vec<_> = attributes(bits)
            .filter_map(|(_, bit)| attribute(bit, 2))
            .collect();
        assert_eq!(names.len(), OFFLOADS.len());
        assert_eq!(names[5], b"rx-gro\0");
    }
}
