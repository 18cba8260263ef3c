//! The ends of an experiment's links: their namespaces, devices and addresses.

use std::net::Ipv4Addr;

use sojourn_experiment::model::{Hop, Link, Traffic, Way};

/// The handle of the first root qdisc: an unusual number, because other qdiscs of a host are traced by handle too.
const FIRST_HANDLE: u16 = 0x5d01;

/// A device's Ethernet address, derived from its IPv4 address, so that it is deterministic and needs no ARP.
pub(crate) const fn ethernet(address: Ipv4Addr) -> [u8; 6] {
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
    /// Its address on the link.
    pub address: Ipv4Addr,
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
pub fn ports(links: &[Link], traffic: &Traffic) -> Vec<(Port, Port)> {
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
