//! Links, the nodes that they join, and the routes of traffic over them.

use std::collections::VecDeque;

use sojourn_units::{Capacity, Duration, Hop, Rate, Way};

use crate::model::{Buffer, Queue};

/// A link between two nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Its name in keys and results; of the only link of a file with `[link]`, `link`.
    pub name: String,
    /// The nodes at its ends; `None`: `[link]`, the only link that there is.
    pub nodes: Option<Nodes>,
    /// What it can carry downwards.
    pub rate: Capacity,
    /// One-way propagation, part of the base RTT of every flow that passes it.
    pub delay: Duration,
    /// The discipline's limit, unless the queue has its own; `None`: the discipline's default.
    pub buffer: Option<Buffer>,
    /// Packets in an unmanaged FIFO below the discipline; 0: none.
    pub device_queue: u64,
    /// Bytes that a packet takes on the link beyond its IP length. Default 14, an Ethernet header.
    pub overhead: u32,
    /// Bytes that the link may send ahead of its rate after an idle time: the token bucket of the shaper. Default 1600 as
    /// a Linux HTB of one frame's burst; 0: a serial line.
    pub burst: u64,
    /// A discipline of its own; `None`: the arms of the comparison are tried here.
    pub queue: Option<Queue>,
    /// The reverse direction, if that has a queue as well.
    pub up: Option<UpLink>,
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
}

/// The nodes at the ends of a link: down is from the first to the second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nodes {
    /// Where packets that go down enter.
    pub from: String,
    /// Where they leave.
    pub to: String,
}

/// How traffic gets from one node to another.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Route {
    /// The nodes at its ends, and those between them that the file names; empty: the only link of `[link]`.
    pub nodes: Vec<String>,
    /// The links in order, for what goes down.
    pub hops: Vec<Hop>,
}

impl Route {
    /// The route over the only link of `[link]`.
    pub fn of_one_link() -> Self {
        Self {
            nodes: Vec::new(),
            hops: vec![Hop {
                link: 0,
                way: Way::Down,
            }],
        }
    }

    /// The links for what goes this way: upwards in reverse order, each the other way.
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

    /// The propagation of its links, one way.
    pub fn delay(&self, links: &[Link]) -> Duration {
        let delays = self.hops.iter().map(|hop| links[hop.link].delay);
        delays.fold(Duration::ZERO, |sum, delay| sum + delay)
    }
}

/// Why there is no route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoRoute {
    /// No link has a node of this name.
    UnknownNode(String),
    /// No links lead from the one node to the other.
    Apart(String, String),
    /// It would pass this link twice.
    Twice(String),
}

/// The links from the first of some nodes to the last by way of all between them: from each to the next over the fewest,
/// of several such ways the one whose links stand first in the file.
///
/// # Errors
/// As [`NoRoute`] says.
pub fn route(links: &[Link], nodes: &[String]) -> Result<Vec<Hop>, NoRoute> {
    let mut hops: Vec<Hop> = Vec::new();
    let known = names(links);
    if let Some(unknown) = nodes.iter().find(|node| !known.contains(&node.as_str())) {
        return Err(NoRoute::UnknownNode(unknown.clone()));
    }
    for pair in nodes.windows(2) {
        let part = shortest(links, &pair[0], &pair[1])
            .filter(|part| !part.is_empty())
            .ok_or_else(|| NoRoute::Apart(pair[0].clone(), pair[1].clone()))?;
        for hop in part {
            if hops.iter().any(|passed| passed.link == hop.link) {
                return Err(NoRoute::Twice(links[hop.link].name.clone()));
            }
            hops.push(hop);
        }
    }
    Ok(hops)
}

/// The names of all nodes, in the order in which links name them.
pub fn names(links: &[Link]) -> Vec<&str> {
    let nodes = links.iter().filter_map(|link| link.nodes.as_ref());
    let mut names = Vec::new();
    for name in nodes.flat_map(|nodes| [nodes.from.as_str(), nodes.to.as_str()]) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The fewest links from one node to another, found breadth first.
fn shortest(links: &[Link], from: &str, to: &str) -> Option<Vec<Hop>> {
    let mut reached = vec![from];
    let mut to_visit = VecDeque::from([(from, Vec::new())]);
    while let Some((node, hops)) = to_visit.pop_front() {
        if node == to {
            return Some(hops);
        }
        for (link, nodes) in links.iter().enumerate().filter_map(with_nodes) {
            let (next, way) = if nodes.from == node {
                (nodes.to.as_str(), Way::Down)
            } else if nodes.to == node {
                (nodes.from.as_str(), Way::Up)
            } else {
                continue;
            };
            if !reached.contains(&next) {
                reached.push(next);
                let mut hops: Vec<Hop> = hops.clone();
                hops.push(Hop { link, way });
                to_visit.push_back((next, hops));
            }
        }
    }
    None
}

fn with_nodes((number, link): (usize, &Link)) -> Option<(usize, &Nodes)> {
    link.nodes.as_ref().map(|nodes| (number, nodes))
}

impl Link {
    /// A link without a name, a delay and a buffer, as `[link]` is with nothing but a rate.
    pub fn of_rate(rate: Rate) -> Self {
        Self {
            name: "link".into(),
            nodes: None,
            rate: Capacity::constant(rate),
            delay: Duration::ZERO,
            buffer: None,
            device_queue: 0,
            overhead: 14,
            burst: 1600,
            queue: None,
            up: None,
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
                to: to.into(),
            }),
            ..Link::of_rate(Rate::from_mbps(1))
        }
    }

    fn found(links: &[Link], nodes: &[&str]) -> Result<Vec<(String, Way)>, NoRoute> {
        let nodes: Vec<String> = nodes.iter().map(|&node| node.into()).collect();
        let hops = route(links, &nodes)?.into_iter();
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
    fn where_no_route_leads_it_says_why() {
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
    fn upwards_a_route_is_passed_the_other_way_round() {
        let route = Route {
            hops: route(&ring(), &["d".into(), "b".into()]).expect("they are joined"),
            ..Route::default()
        };
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
