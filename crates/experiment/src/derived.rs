//! What follows from an experiment and is the same on every backend: flows with their instants, frame sizes,
//! limits.

use sojourn_units::Duration;

use crate::model::{Buffer, Capacity, Direction, Experiment, Hop, Kind, Link, Queue, Traffic, Way};
use sojourn_traffic::streams::Stream;

/// IP bytes of a full packet where no segment is larger.
const MTU: u32 = 1500;
/// TCP and IPv4 headers with timestamps.
const TCP_HEADERS: u32 = 52;
const IP_HEADER: u32 = 20;
/// UDP, or ICMP, and IPv4 headers.
pub const UDP_HEADERS: u32 = 28;

/// One flow of an experiment in one run.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// Number over all groups.
    pub number: u32,
    /// Number of its traffic group.
    pub group: usize,
    /// Number within the group; those that send up come after those that send down.
    pub within: u32,
    /// Which way its data goes; never both.
    pub direction: Direction,
    /// The same as a way along its group's route.
    pub way: Way,
    /// Its group.
    pub traffic: &'a Traffic,
    /// When it starts: drawn from the stream `flow/{number}/start`.
    pub start: Duration,
}

/// All flows of a run seeded `seed`, in the order of their numbers.
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

/// What each traffic group is called in results: the name given, or its kind, with its number in the file if several
/// groups without a name are of that kind.
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

/// These words, each with its place behind it if it is there more than once.
pub(crate) fn numbered(words: &[&str]) -> Vec<String> {
    let name = |(place, word): (usize, &&str)| {
        if words.iter().filter(|other| *other == word).count() > 1 {
            format!("{word} {place}")
        } else {
            (*word).to_string()
        }
    };
    words.iter().enumerate().map(name).collect()
}

/// The ways that data of a group goes, each `Down` or `Up`.
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

/// IP bytes of the largest packet that this traffic sends.
pub fn largest_packet(kind: &Kind) -> u32 {
    let segment = kind.tcp().map(|tcp| tcp.mss + TCP_HEADERS);
    let datagram = kind.largest_datagram().map(|payload| payload + UDP_HEADERS);
    segment.or(datagram).unwrap_or(MTU)
}

/// IP bytes of the packets that carry a datagram of `payload` bytes over a path with this MTU (RFC 791 §3.2): as few as
/// will do, all but the last with a multiple of eight bytes.
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

/// IP bytes of the largest packet that the traffic sends, at least 1500.
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

/// A queue: a direction of a link that has one, with its discipline.
#[derive(Clone, Copy, Debug)]
pub struct QueuePlace<'a> {
    /// The link and the direction.
    pub hop: Hop,
    /// The link.
    pub link: &'a Link,
    /// Its discipline.
    pub arm: &'a Queue,
    /// Whose discipline that is.
    pub owner: Owner,
    /// Its limit, unless the discipline has its own.
    pub buffer: Option<Buffer>,
    /// What this direction of the link can carry.
    pub capacity: &'a Capacity,
}

/// Whose discipline a queue has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The comparison's: it is under test.
    Comparison,
    /// The link's own.
    Link,
    /// That of the link's reverse direction.
    Up,
}

impl QueuePlace<'_> {
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

    /// The dotted key of `key` of its discipline, where arm number `queue` is tried. A limit may be the link's buffer.
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
            Owner::Link => format!("{}.queue.{key}", self.link_key()),
            Owner::Up => format!("{}.queue.{key}", self.key()),
        }
    }
}

/// The queues of an experiment where arm number `queue` is tried: link by link, down before up, those of Wi-Fi after all
/// others.
pub fn queues(experiment: &Experiment, queue: usize) -> Vec<QueuePlace<'_>> {
    let tried = &experiment.queues[queue];
    let mut places = Vec::new();
    for (number, link) in experiment.links.iter().enumerate() {
        let (arm, owner) = match &link.queue {
            Some(own) => (own, Owner::Link),
            None => (tried, Owner::Comparison),
        };
        places.push(QueuePlace {
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
            let (arm, owner) = match &up.queue {
                Some(own) => (own, Owner::Up),
                None => (arm, owner),
            };
            places.push(QueuePlace {
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
    places.sort_by_key(|place| place.link.wifi.is_some());
    places
}

/// True if this direction of a link has a queue.
pub fn is_queued(links: &[Link], hop: Hop) -> bool {
    hop.way == Way::Down || links[hop.link].up.is_some()
}

/// The ways that data of a group goes along its route.
pub const fn ways(direction: Direction) -> &'static [Way] {
    match direction {
        Direction::Down => &[Way::Down],
        Direction::Up => &[Way::Up],
        Direction::Both => &[Way::Down, Way::Up],
    }
}

/// What a queue may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Packets of any size.
    Packets(u64),
    /// Bytes on the link.
    Bytes(u64),
}

/// The limit of a queue, its discipline's own or the link's `buffer`, in packets or bytes. A multiple of the BDP counts in
/// packets, as the discipline does, except for those whose limit `tc` takes in bytes.
pub fn limit(experiment: &Experiment, place: &QueuePlace<'_>) -> Option<Limit> {
    Some(match place.arm.limit.or(place.buffer)? {
        Buffer::Packets(packets) => Limit::Packets(packets),
        Buffer::Bytes(bytes) => Limit::Bytes(bytes),
        Buffer::Bdp(multiple) => {
            let longest = experiment
                .traffic
                .iter()
                .map(|traffic| traffic.rtt)
                .max()
                .unwrap_or(Duration::ZERO);
            let rate = place.capacity.nominal();
            let bytes = rate.bytes_per_sec() * longest.as_secs_f64() * multiple;
            let frame = f64::from(frame(experiment, place.link));
            if matches!(place.arm.aqm.as_str(), "bfifo" | "red" | "ared") {
                Limit::Bytes(bytes.max(frame) as u64)
            } else {
                Limit::Packets((bytes / frame).round().max(1.0) as u64)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 791 §3.2, with 20 bytes of header each: of 1500 + 8 bytes 1480 go into the first packet and 28 into the
    /// second. An MTU of 1006 leaves room for 986, of which 984 are a multiple of eight.
    #[test]
    fn a_datagram_beyond_the_mtu_goes_in_fragments() {
        let of = |payload, mtu| fragments(payload, mtu).collect::<Vec<_>>();
        assert_eq!(of(1500, None), [1528]);
        assert_eq!(of(1472, Some(1500)), [1500]);
        assert_eq!(of(1500, Some(1500)), [1500, 48]);
        assert_eq!(of(2000, Some(1006)), [1004, 1004, 60]);
    }
}
