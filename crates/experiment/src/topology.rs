//! Links, the nodes that they join, and the routes of traffic over them.

use std::collections::VecDeque;

use sojourn_aqm::cake::framing::Cells;
use sojourn_path::Impair;
use sojourn_path::impair::{Jitter, Loss, Reorder};
use sojourn_units::{Capacity, Duration, Hop, Rate, Way};

use crate::queue::{Buffer, Queue};
use crate::wifi::Wifi;

/// A link between two nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Its name in keys and results; `link` for the single link of `[link]`.
    pub name: String,
    /// The nodes at its ends; `None` for `[link]`, which has none.
    pub nodes: Option<Nodes>,
    /// The downstream capacity; for Wi-Fi, the highest frame rate.
    pub rate: Capacity,
    /// One-way propagation delay, part of the base RTT of every flow that passes it; of a delay that changes, the least.
    pub delay: Duration,
    /// The one-way propagation delay from each instant on; empty if it does not change.
    pub delays: Vec<(Duration, Duration)>,
    /// What happens to packets on the wire.
    pub impaired: Impaired,
    /// The discipline's limit, unless the queue has its own; `None`: the discipline's default.
    pub buffer: Option<Buffer>,
    /// Packets in an unmanaged FIFO below the discipline; 0: none.
    pub device_queue: u64,
    /// Bytes of a packet on the link beyond its IP length. Default 14, an Ethernet header.
    pub overhead: u32,
    /// The cells that it sends packets in.
    pub cells: Cells,
    /// The least size of a packet on it, in bytes, before it is split into cells.
    pub mpu: u32,
    /// Bytes that the link may send ahead of its rate after an idle time: the shaper's token bucket. Default 1600, one
    /// frame as in a Linux HTB; 0: a serial line.
    pub burst: u64,
    /// Its own discipline; `None`: the link is under test, with the arms of the experiment.
    pub queue: Option<Queue>,
    /// The reverse direction, if it has a queue.
    pub up: Option<UpLink>,
    /// Wi-Fi settings, if the link is a Wi-Fi cell; its upstream queues are the stations'.
    pub wifi: Option<Wifi>,
}

/// The reverse direction of a link.
#[derive(Clone, PartialEq, Debug)]
pub struct UpLink {
    /// As [`Link::rate`].
    pub rate: Capacity,
    /// As [`Link::buffer`]; `None`: the forward direction's.
    pub buffer: Option<Buffer>,
    /// Its discipline; `None`: the same as forward.
    pub queue: Option<Queue>,
    /// The interval in which packets are requested and granted, as upstream of a cable modem; `None`: at once.
    pub request_grant: Option<Duration>,
    /// What happens to packets on the wire, where it differs from the forward direction.
    pub impaired: Impaired,
}

/// What happens to packets on a wire; see [`Impair`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Impaired {
    /// Which packets are lost.
    pub loss: Option<Loss>,
    /// How the delay of packets varies.
    pub jitter: Option<Jitter>,
    /// Which packets overtake others.
    pub reorder: Option<Reorder>,
    /// The probability that a packet arrives twice.
    pub duplicate: Option<f64>,
    /// The probability that a packet arrives damaged.
    pub corrupt: Option<f64>,
}

/// The nodes at the ends of a link; downstream is from the first to the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nodes {
    /// Where downstream packets enter; for Wi-Fi, the access point.
    pub from: String,
    /// Where they leave: one node, or the stations of a Wi-Fi cell.
    pub to: Vec<String>,
}

/// The path of traffic from one node to another.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Route {
    /// The end nodes and the intermediate nodes that the file names; empty for the single link of `[link]`.
    pub nodes: Vec<String>,
    /// The links in order, downstream.
    pub hops: Vec<Hop>,
    /// For each of these links, the index in [`Nodes::to`] of the node that it leads to, or comes from if passed
    /// upstream: the station, for Wi-Fi.
    pub stations: Vec<u16>,
}

impl Route {
    /// The route over the single link of `[link]`.
    pub fn of_one_link() -> Self {
        Self {
            nodes: Vec::new(),
            hops: vec![Hop {
                link: 0,
                way: Way::Down,
            }],
            stations: vec![0],
        }
    }

    /// The links in this direction. Upstream, their order and their directions are reversed.
    pub fn hops(&self, way: Way) -> Vec<Hop> {
        let reversed = |hop: &Hop| Hop {
            link: hop.link,
            way: hop.way.reversed(),
        };
        match way {
            Way::Down => self.hops.clone(),
            Way::Up => self.hops.iter().rev().map(reversed).collect(),
        }
    }

    /// [`Route::stations`] in this direction.
    pub fn stations(&self, way: Way) -> Vec<u16> {
        match way {
            Way::Down => self.stations.clone(),
            Way::Up => self.stations.iter().rev().copied().collect(),
        }
    }

    /// The one-way propagation delay of its links.
    pub fn delay(&self, links: &[Link]) -> Duration {
        let delays = self.hops.iter().map(|hop| links[hop.link].delay);
        delays.fold(Duration::ZERO, |sum, delay| sum + delay)
    }
}

/// Why there is no route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoRoute {
    /// No link has this node.
    UnknownNode(String),
    /// No links join these two nodes.
    Apart(String, String),
    /// The route would pass this link twice.
    Twice(String),
}

/// The route from the first node to the last through all nodes between, taking the fewest links from each to the next.
/// Of several equally short paths, the one whose links come first in the file wins.
///
/// # Errors
/// As for [`NoRoute`].
pub fn route(links: &[Link], nodes: &[String]) -> Result<Route, NoRoute> {
    let mut route = Route {
        nodes: nodes.to_vec(),
        ..Route::default()
    };
    let known = names(links);
    if let Some(unknown) = nodes.iter().find(|node| !known.contains(&node.as_str())) {
        return Err(NoRoute::UnknownNode(unknown.clone()));
    }
    for pair in nodes.windows(2) {
        let part = shortest(links, &pair[0], &pair[1])
            .filter(|part| !part.is_empty())
            .ok_or_else(|| NoRoute::Apart(pair[0].clone(), pair[1].clone()))?;
        for (hop, station) in part {
            // From station to station a packet passes its cell twice: up, then down.
            let is_cell = links[hop.link].wifi.is_some();
            let clash =
                |passed: &Hop| passed.link == hop.link && !(is_cell && passed.way != hop.way);
            if route.hops.iter().any(clash) {
                return Err(NoRoute::Twice(links[hop.link].name.clone()));
            }
            route.hops.push(hop);
            route.stations.push(station);
        }
    }
    Ok(route)
}

/// The names of all nodes, in the order of the links.
pub fn names(links: &[Link]) -> Vec<&str> {
    let nodes = links.iter().filter_map(|link| link.nodes.as_ref());
    let mut names = Vec::new();
    for name in nodes.flat_map(|nodes| std::iter::once(&nodes.from).chain(&nodes.to)) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// The path with the fewest links from one node to another, found breadth first, with the station index of each link.
fn shortest(links: &[Link], from: &str, to: &str) -> Option<Vec<(Hop, u16)>> {
    let mut reached = vec![from];
    let mut to_visit = VecDeque::from([(from, Vec::new())]);
    while let Some((node, hops)) = to_visit.pop_front() {
        if node == to {
            return Some(hops);
        }
        for (link, nodes) in links.iter().enumerate().filter_map(with_nodes) {
            for (next, way, station) in steps(nodes, node) {
                if !reached.contains(&next) {
                    reached.push(next);
                    let mut hops: Vec<(Hop, u16)> = hops.clone();
                    hops.push((Hop { link, way }, station));
                    to_visit.push_back((next, hops));
                }
            }
        }
    }
    None
}

/// The nodes that a link reaches from a node.
fn steps<'a>(nodes: &'a Nodes, node: &str) -> Vec<(&'a str, Way, u16)> {
    let stations = (0..).zip(&nodes.to);
    if nodes.from == node {
        let step = |(station, name): (u16, &'a String)| (name.as_str(), Way::Down, station);
        return stations.map(step).collect();
    }
    let from_here = stations.filter(|(_, name)| *name == node);
    let step = |(station, _)| (nodes.from.as_str(), Way::Up, station);
    from_here.map(step).collect()
}

fn with_nodes((number, link): (usize, &Link)) -> Option<(usize, &Nodes)> {
    link.nodes.as_ref().map(|nodes| (number, nodes))
}

impl Link {
    /// What happens to packets on the wire in a direction.
    pub fn impair(&self, way: Way) -> Impair {
        let own = match (&self.up, way) {
            (Some(up), Way::Up) => up.impaired.clone(),
            _ => Impaired::default(),
        };
        let all = &self.impaired;
        let mut impair = Impair::new();
        impair.loss = own.loss.or(all.loss).filter(|loss| loss.share() > 0.0);
        impair.jitter = own.jitter.or(all.jitter);
        impair.jitter = impair
            .jitter
            .filter(|jitter| !(jitter.mean + jitter.spread).is_zero());
        impair.reorder = own.reorder.or(all.reorder).filter(|how| how.share > 0.0);
        impair.duplicate = own.duplicate.or(all.duplicate).unwrap_or(0.0);
        impair.corrupt = own.corrupt.or(all.corrupt).unwrap_or(0.0);
        let beyond = |(from, delay): &(Duration, Duration)| (*from, *delay - self.delay);
        impair.delay = self.delays.iter().map(beyond).collect();
        impair
    }

    /// A key that says what happens to packets on the wire, in either direction; `None` if nothing does.
    pub fn impaired_key(&self) -> Option<&'static str> {
        let key = |impair: Impair| match impair {
            of if of.loss.is_some() => Some("loss"),
            of if of.jitter.is_some() => Some("jitter"),
            of if of.reorder.is_some() => Some("reorder"),
            of if of.duplicate > 0.0 => Some("duplicate"),
            of if of.corrupt > 0.0 => Some("corrupt"),
            of if !of.delay.is_empty() => Some("delay"),
            _ => None,
        };
        let ways = [Way::Down, Way::Up];
        ways.into_iter().find_map(|way| key(self.impair(way)))
    }

    /// A link with only a rate, as `[link]` may have: no delay, no buffer.
    pub fn of_rate(rate: Rate) -> Self {
        Self {
            name: "link".into(),
            nodes: None,
            rate: Capacity::constant(rate),
            delay: Duration::ZERO,
            delays: Vec::new(),
            impaired: Impaired::default(),
            buffer: None,
            device_queue: 0,
            overhead: 14,
            cells: Cells::None,
            mpu: 0,
            burst: 1600,
            queue: None,
            up: None,
            wifi: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, from: &str, to: &str) -> Link {
        Link {
            name: name.into(),
            nodes: Some(Nodes {
                from: from.into(),
                to: vec![to.into()],
            }),
            ..Link::of_rate(Rate::from_mbps(1))
        }
    }

    fn found(links: &[Link], nodes: &[&str]) -> Result<Vec<(String, Way)>, NoRoute> {
        let nodes: Vec<String> = nodes.iter().map(|&node| node.into()).collect();
        let hops = route(links, &nodes)?.hops.into_iter();
        Ok(hops
            .map(|hop| (links[hop.link].name.clone(), hop.way))
            .collect())
    }

    fn passes(names: &[(&str, Way)]) -> Result<Vec<(String, Way)>, NoRoute> {
        Ok(names
            .iter()
            .map(|(name, way)| ((*name).into(), *way))
            .collect())
    }

    /// A ring of four with a chord: a - b - c - d - a, and a - c.
    fn ring() -> Vec<Link> {
        vec![
            link("ab", "a", "b"),
            link("bc", "b", "c"),
            link("cd", "c", "d"),
            link("da", "d", "a"),
            link("ac", "a", "c"),
        ]
    }

    #[test]
    fn a_route_takes_the_fewest_links() {
        use Way::{Down, Up};
        assert_eq!(found(&ring(), &["a", "c"]), passes(&[("ac", Down)]));
        assert_eq!(
            found(&ring(), &["d", "b"]),
            passes(&[("cd", Up), ("bc", Up)])
        );
        let by_way_of_a = passes(&[("da", Down), ("ab", Down)]);
        assert_eq!(found(&ring(), &["d", "a", "b"]), by_way_of_a);
    }

    #[test]
    fn a_missing_route_is_explained() {
        let mut links = ring();
        links.push(link("xy", "x", "y"));
        let unknown = Err(NoRoute::UnknownNode("z".into()));
        assert_eq!(found(&links, &["a", "z"]), unknown);
        let apart = Err(NoRoute::Apart("a".into(), "x".into()));
        assert_eq!(found(&links, &["a", "x"]), apart);
        let twice = Err(NoRoute::Twice("ab".into()));
        assert_eq!(found(&links, &["a", "b", "a"]), twice);
        let none = Err(NoRoute::Apart("a".into(), "a".into()));
        assert_eq!(found(&links, &["a", "a"]), none);
    }

    #[test]
    fn the_upstream_route_is_reversed() {
        let route = route(&ring(), &["d".into(), "b".into()]).expect("they are joined");
        let numbers = |way| {
            route
                .hops(way)
                .iter()
                .map(|hop| hop.link)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (numbers(Way::Down), numbers(Way::Up)),
            (vec![2, 1], vec![1, 2])
        );
        assert_eq!(route.hops(Way::Up)[0].way, Way::Down);
    }
}
