//! Values derived from an experiment, the same on every backend: flows with their start times, frame sizes, limits.

use std::collections::HashMap;

use sojourn_units::Duration;

use crate::model::{
    Buffer, Capacity, Class, Direction, Experiment, Hop, Kind, Link, Queue, Traffic, Way,
};
use crate::topology::{self, Route};
use sojourn_traffic::streams::Stream;

/// IP bytes of a full packet, unless a segment is larger.
const MTU: u32 = 1500;
/// TCP and IPv4 headers with timestamps.
const TCP_HEADERS: u32 = 52;
const IP_HEADER: u32 = 20;
/// UDP, or ICMP, and IPv4 headers.
pub const UDP_HEADERS: u32 = 28;

/// One flow of an experiment in one run.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// Flow number, over all groups.
    pub number: u32,
    /// Number of its traffic group.
    pub group: usize,
    /// Number within the group; upstream flows come after downstream ones.
    pub within: u32,
    /// The direction of its data; never both.
    pub direction: Direction,
    /// The same direction, along the route of its group.
    pub way: Way,
    /// Its traffic group.
    pub traffic: &'a Traffic,
    /// When it starts; drawn from the stream `flow/{number}/start`.
    pub start: Duration,
}

/// All flows of a run with `seed`, in the order of their numbers.
pub fn flows(experiment: &Experiment, seed: u64) -> impl Iterator<Item = Flow<'_>> {
    let groups = experiment.traffic.iter().enumerate();
    let unnumbered = groups.flat_map(|(group, traffic)| {
        let each_way = directions(traffic.direction)
            .iter()
            .flat_map(|direction| (0..traffic.flows).map(|_| *direction));
        each_way
            .enumerate()
            .map(move |(within, direction)| (group, within, direction, traffic))
    });
    unnumbered
        .enumerate()
        .map(move |(number, (group, within, direction, traffic))| Flow {
            number: number as u32,
            group,
            within: within as u32,
            direction,
            way: match direction {
                Direction::Up => Way::Up,
                Direction::Down | Direction::Both => Way::Down,
            },
            traffic,
            start: start(traffic, number as u32, seed),
        })
}

/// How late a sending by a timer may be: the given time, or for periodic senders the time that the slowest queue on the
/// way takes for a full packet, at most the time between two sendings. Without a queue on its way, the queues on the way
/// back count.
pub fn jitter(experiment: &Experiment, traffic: &Traffic, way: Way) -> Duration {
    let interval = traffic.kind.interval().unwrap_or(Duration::ZERO);
    if let Some(given) = traffic.jitter {
        return given;
    }
    if !traffic.kind.is_periodic() {
        return Duration::ZERO;
    }
    let slowest = |way| {
        let queued = |hop: &Hop| is_queued(&experiment.links, *hop);
        let hops = traffic.route.hops(way).into_iter().filter(queued);
        hops.map(|hop| packet_time(experiment, hop)).max()
    };
    let packet = slowest(way).or_else(|| slowest(way.reversed()));
    packet.unwrap_or(Duration::ZERO).min(interval)
}

/// The time that a queue takes for a full packet at its nominal rate.
fn packet_time(experiment: &Experiment, hop: Hop) -> Duration {
    let link = &experiment.links[hop.link];
    let capacity = match (hop.way, &link.up) {
        (Way::Up, Some(up)) => &up.rate,
        _ => &link.rate,
    };
    let frame = frame(experiment, link);
    capacity.nominal().tx_time(frame.into())
}

/// A host at an end of a route, which has one address for all its traffic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Host {
    /// With `[link]`: it is behind the link, where `down` leads.
    pub is_far: bool,
    /// Its number among those on its side.
    pub number: usize,
}

impl Host {
    /// Its IPv4 address: 10.1.NUMBER.1, or on the far side 10.2.NUMBER.1; higher numbers continue with 10.3 and 10.4.
    pub const fn address(self) -> u32 {
        let number = self.number as u32;
        let second = 1 + self.is_far as u32 + 2 * (number / 256);
        10 << 24 | second << 16 | (number % 256) << 8 | 1
    }
}

/// The hosts of each traffic group, at the beginning and at the end of its route. With `[[link]]` the nodes are the hosts.
/// With `[link]` every group has hosts of its own, and groups with the same `host` share that behind the link.
pub fn hosts(experiment: &Experiment) -> Vec<[Host; 2]> {
    let nodes = topology::names(&experiment.links);
    let node = |name: &String| Host {
        is_far: false,
        number: nodes.iter().position(|node| node == name).unwrap_or(0),
    };
    let groups = experiment.traffic.iter().enumerate();
    let ends = groups.map(|(group, traffic)| {
        if let [from, .., to] = traffic.route.nodes.as_slice() {
            return [node(from), node(to)];
        }
        let shares = |other: &Traffic| other.host.is_some() && other.host == traffic.host;
        let first = experiment.traffic.iter().position(shares);
        let host = |is_far, number| Host { is_far, number };
        [host(false, group), host(true, first.unwrap_or(group))]
    });
    ends.collect()
}

/// The name of each traffic group in results: the given name, or the kind. If several unnamed groups have the same
/// kind, the group's number in the file follows.
pub fn group_names(experiment: &Experiment) -> Vec<String> {
    let groups = &experiment.traffic;
    let kinds = groups.iter().map(|group| match group.name {
        Some(_) => "",
        None => group.kind.name(),
    });
    let defaults = numbered(&kinds.collect::<Vec<_>>());
    let names = groups.iter().zip(defaults);
    names
        .map(|(group, default)| group.name.clone().unwrap_or(default))
        .collect()
}

/// These words. A word that occurs more than once gets its index in the list appended.
pub(crate) fn numbered(words: &[&str]) -> Vec<String> {
    let name = |(index, word): (usize, &&str)| {
        if words.iter().filter(|other| *other == word).count() > 1 {
            format!("{word} {index}")
        } else {
            (*word).to_string()
        }
    };
    words.iter().enumerate().map(name).collect()
}

/// The directions of a group's data, each `Down` or `Up`.
pub const fn directions(direction: Direction) -> &'static [Direction] {
    match direction {
        Direction::Down => &[Direction::Down],
        Direction::Up => &[Direction::Up],
        Direction::Both => &[Direction::Down, Direction::Up],
    }
}

fn start(traffic: &Traffic, flow: u32, seed: u64) -> Duration {
    let (from, to) = traffic.start;
    let spread = to.saturating_sub(from).as_nanos();
    let offset = Stream::new(seed, &format!("flow/{flow}/start")).below(spread.max(1));
    from + Duration::from_nanos(offset)
}

/// IP bytes of the largest packet of this kind of traffic.
pub fn largest_packet(kind: &Kind) -> u32 {
    let segment = kind.tcp().map(|tcp| tcp.mss + TCP_HEADERS);
    let datagram = kind.largest_datagram().map(|payload| payload + UDP_HEADERS);
    segment.or(datagram).unwrap_or(MTU)
}

/// IP bytes of the fragments of a datagram of `payload` bytes on a path with this MTU (RFC 791 §3.2): as few as
/// possible, all but the last with a multiple of eight payload bytes.
pub fn fragments(payload: u32, mtu: Option<u32>) -> impl Iterator<Item = u32> {
    let room = mtu.map_or(u32::MAX, |mtu| mtu - IP_HEADER);
    let mut left = Some(payload + UDP_HEADERS - IP_HEADER);
    std::iter::from_fn(move || {
        let bytes = left?;
        let sent = if bytes <= room { bytes } else { room / 8 * 8 };
        left = (sent < bytes).then(|| bytes - sent);
        Some(sent + IP_HEADER)
    })
}

/// IP bytes of the largest packet of all traffic, at least 1500.
pub fn mtu(experiment: &Experiment) -> u32 {
    let connections = experiment
        .traffic
        .iter()
        .filter_map(|traffic| traffic.kind.tcp());
    let segments = connections.map(|tcp| tcp.mss + TCP_HEADERS);
    segments.fold(MTU, u32::max)
}

/// Bytes of that packet on a link.
pub fn frame(experiment: &Experiment, link: &Link) -> u32 {
    mtu(experiment) + link.overhead
}

/// The queue at the egress of a link: one of its directions, with its discipline.
#[derive(Clone, Copy, Debug)]
pub struct Egress<'a> {
    /// The link and the direction.
    pub hop: Hop,
    /// The link.
    pub link: &'a Link,
    /// Its discipline.
    pub arm: &'a Queue,
    /// Where the discipline comes from.
    pub owner: Owner,
    /// The buffer limit, unless the discipline has its own.
    pub buffer: Option<Buffer>,
    /// The capacity in this direction.
    pub capacity: &'a Capacity,
}

/// Where a queue's discipline comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// From the comparison: the discipline is under test.
    Comparison,
    /// From the comparison, with keys of the reverse direction.
    ComparisonUp,
    /// From the link.
    Link,
    /// From the link's reverse direction.
    Up,
}

impl Egress<'_> {
    /// Its name in results and observations: `down`, or with `[[link]]` the link's before it: `home/down`.
    pub fn name(&self) -> String {
        let way = self.hop.way.name();
        match self.link.nodes {
            None => way.to_owned(),
            Some(_) => format!("{}/{way}", self.link.name),
        }
    }

    /// Whether its discipline is under test.
    pub const fn is_compared(&self) -> bool {
        matches!(self.owner, Owner::Comparison | Owner::ComparisonUp)
    }

    /// The dotted key of the link: `link`, `link.home`.
    pub fn link_key(&self) -> String {
        match self.link.nodes {
            None => "link".into(),
            Some(_) => format!("link.{}", self.link.name),
        }
    }

    /// The dotted key of this direction of the link: `link`, `link.up`, `link.home.up`.
    pub fn key(&self) -> String {
        let link = self.link_key();
        match self.hop.way {
            Way::Down => link,
            Way::Up => format!("{link}.up"),
        }
    }

    /// The dotted key of the discipline's `key` in arm number `queue`. A limit may come from the link's buffer.
    pub fn key_of(&self, queue: usize, key: &str) -> String {
        if key == "limit" && self.arm.limit.is_none() {
            let of_up = self.link.up.as_ref().is_some_and(|up| up.buffer.is_some());
            return match self.hop.way {
                Way::Up if of_up => format!("{}.buffer", self.key()),
                _ => format!("{}.buffer", self.link_key()),
            };
        }
        match self.owner {
            Owner::Comparison => format!("queue.{queue}.{key}"),
            Owner::ComparisonUp => format!("queue.{queue}.up.{key}"),
            Owner::Link => format!("{}.queue.{key}", self.link_key()),
            Owner::Up => format!("{}.queue.{key}", self.key()),
        }
    }
}

/// The queues of an experiment with arm number `queue`: link by link, down before up; Wi-Fi queues come last.
pub fn queues(experiment: &Experiment, queue: usize) -> Vec<Egress<'_>> {
    let under_test = &experiment.queues[queue];
    let mut egresses = Vec::new();
    for (number, link) in experiment.links.iter().enumerate() {
        let (arm, owner) = match &link.queue {
            Some(own) => (own, Owner::Link),
            None => (under_test, Owner::Comparison),
        };
        egresses.push(Egress {
            hop: Hop {
                link: number,
                way: Way::Down,
            },
            link,
            arm,
            owner,
            buffer: link.buffer,
            capacity: &link.rate,
        });
        if let Some(up) = &link.up {
            let (arm, owner) = match (&up.queue, &arm.up) {
                (Some(own), _) => (own, Owner::Up),
                (None, Some(of_arm)) => (&**of_arm, Owner::ComparisonUp),
                (None, None) => (arm, owner),
            };
            egresses.push(Egress {
                hop: Hop {
                    link: number,
                    way: Way::Up,
                },
                link,
                arm,
                owner,
                buffer: up.buffer.or(link.buffer),
                capacity: &up.rate,
            });
        }
    }
    egresses.sort_by_key(|egress| egress.link.wifi.is_some());
    egresses
}

/// The route of programs' packets, which bring their own traffic: that of the first traffic of the file; without any, over the link,
/// or from the first link's beginning to the last one's end.
///
/// # Errors
/// No links lead there; names both nodes.
pub fn whole_route(experiment: &Experiment) -> Result<Route, String> {
    if let Some(traffic) = experiment.traffic.first() {
        return Ok(traffic.route.clone());
    }
    let nodes = |link: Option<&Link>| link.and_then(|link| link.nodes.clone());
    let links = &experiment.links;
    let (Some(first), Some(last)) = (nodes(links.first()), nodes(links.last())) else {
        return Ok(Route::of_one_link());
    };
    let ends = [first.from, last.to[0].clone()];
    topology::route(links, &ends)
        .map_err(|_| format!("no links lead from \"{}\" to \"{}\"", ends[0], ends[1]))
}

/// The classes above the disciplines of a queue; empty if it has one for all packets.
pub fn classes<'a>(experiment: &'a Experiment, egress: &Egress<'_>) -> &'a [Class] {
    match egress.is_compared() && egress.arm.classes {
        true => &experiment.classes,
        false => &[],
    }
}

/// The numbers of the classes without classes below them.
pub fn leaf_classes(classes: &[Class]) -> Vec<usize> {
    let mut is_leaf = vec![true; classes.len()];
    for parent in classes.iter().filter_map(|class| class.parent) {
        is_leaf[parent] = false;
    }
    (0..classes.len())
        .filter(|number| is_leaf[*number])
        .collect()
}

/// The number of the class of each traffic group.
pub fn class_of_groups(experiment: &Experiment) -> Vec<Option<usize>> {
    let names = experiment.classes.iter().enumerate();
    let numbers: HashMap<&str, usize> = names
        .map(|(number, class)| (class.name.as_str(), number))
        .collect();
    let groups = experiment.traffic.iter();
    groups
        .map(|traffic| numbers.get(traffic.class.as_deref()?).copied())
        .collect()
}

/// The hosts behind the link by address, each with the number of its class.
pub fn class_of_hosts(experiment: &Experiment) -> Vec<(u32, usize)> {
    let classes = class_of_groups(experiment).into_iter();
    let of_group = |(class, [_, far]): (Option<usize>, [Host; 2])| Some((far.address(), class?));
    let mut found: Vec<(u32, usize)> = classes
        .zip(hosts(experiment))
        .filter_map(of_group)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// True if this direction of a link has a queue.
pub fn is_queued(links: &[Link], hop: Hop) -> bool {
    hop.way == Way::Down || links[hop.link].up.is_some()
}

/// The directions of a group's data along its route.
pub const fn ways(direction: Direction) -> &'static [Way] {
    match direction {
        Direction::Down => &[Way::Down],
        Direction::Up => &[Way::Up],
        Direction::Both => &[Way::Down, Way::Up],
    }
}

/// The propagation delay of [`whole_route`], one way.
fn whole_delay(experiment: &Experiment) -> Duration {
    let route = whole_route(experiment).unwrap_or_default();
    route.delay(&experiment.links)
}

/// A queue's limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Packets of any size.
    Packets(u64),
    /// Bytes on the link.
    Bytes(u64),
}

/// The limit of a queue in packets or bytes: the discipline's own or the link's `buffer`. A time or a multiple of the BDP
/// becomes packets, or bytes for disciplines whose `tc` limit is in bytes.
pub fn limit(experiment: &Experiment, egress: &Egress<'_>) -> Option<Limit> {
    let in_own_unit = |bytes: f64| {
        let frame = f64::from(frame(experiment, egress.link));
        if matches!(egress.arm.aqm.as_str(), "bfifo" | "red" | "ared") {
            Limit::Bytes(bytes.max(frame) as u64)
        } else {
            Limit::Packets((bytes / frame).round().max(1.0) as u64)
        }
    };
    let rate = egress.capacity.nominal();
    Some(match egress.arm.limit.or(egress.buffer)? {
        Buffer::Packets(packets) => Limit::Packets(packets),
        Buffer::Bytes(bytes) => Limit::Bytes(bytes),
        Buffer::Time(time) => in_own_unit(rate.bytes_per_sec() * time.as_secs_f64()),
        Buffer::Bdp(multiple) => {
            let longest = experiment
                .traffic
                .iter()
                .map(|traffic| traffic.rtt)
                .max()
                .unwrap_or_else(|| whole_delay(experiment) * 2);
            in_own_unit(rate.bytes_per_sec() * longest.as_secs_f64() * multiple)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 791 §3.2, with 20 bytes of header each: 1500 + 8 bytes become fragments of 1480 and 28 bytes of payload. An
    /// MTU of 1006 leaves room for 986 bytes, of which 984 are a multiple of eight.
    #[test]
    fn a_datagram_larger_than_the_mtu_is_fragmented() {
        let of = |payload, mtu| fragments(payload, mtu).collect::<Vec<_>>();
        assert_eq!(of(1500, None), [1528]);
        assert_eq!(of(1472, Some(1500)), [1500]);
        assert_eq!(of(1500, Some(1500)), [1500, 48]);
        assert_eq!(of(2000, Some(1006)), [1004, 1004, 60]);
    }
}
