//! What follows from an experiment and is the same on every backend: flows with their instants, frame sizes,
//! limits.

use sojourn_units::{Duration, Rate};

use crate::game;
use crate::model::{Buffer, Direction, Experiment, Kind, Queue, Traffic};
use crate::streams::Stream;

/// IP bytes of a full packet where no segment is larger.
const MTU: u32 = 1500;
/// TCP and IPv4 headers with timestamps.
const TCP_HEADERS: u32 = 52;
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
            traffic,
            start: start(traffic, number as u32, seed),
        })
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
    if let Some(tcp) = kind.tcp() {
        return tcp.mss + TCP_HEADERS;
    }
    let payload = match kind {
        Kind::Cbr(cbr) => cbr.packet,
        Kind::Ping(ping) => ping.packet,
        Kind::OnOff(onoff) => onoff.packet,
        Kind::Voip(voip) => voip.packet,
        _ => game::MOST_BYTES,
    };
    payload + UDP_HEADERS
}

/// Bytes on the link of the largest packet that the traffic sends, at least that of an MTU of 1500.
pub fn frame(experiment: &Experiment) -> u32 {
    let connections = experiment
        .traffic
        .iter()
        .filter_map(|traffic| traffic.kind.tcp());
    let segments = connections.map(|tcp| tcp.mss + TCP_HEADERS);
    segments.fold(MTU, u32::max) + experiment.link.overhead
}

/// What a queue may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Packets of any size.
    Packets(u64),
    /// Bytes on the link.
    Bytes(u64),
}

/// The limit of an arm's queue, its own or the link's `buffer`, in packets or bytes. A multiple of the BDP counts in
/// packets, as the discipline does, except for those whose limit `tc` takes in bytes.
pub fn limit(
    experiment: &Experiment,
    arm: &Queue,
    buffer: Option<Buffer>,
    rate: Rate,
) -> Option<Limit> {
    Some(match arm.limit.or(buffer)? {
        Buffer::Packets(packets) => Limit::Packets(packets),
        Buffer::Bytes(bytes) => Limit::Bytes(bytes),
        Buffer::Bdp(multiple) => {
            let longest = experiment
                .traffic
                .iter()
                .map(|traffic| traffic.rtt)
                .max()
                .unwrap_or(Duration::ZERO);
            let bytes = rate.bytes_per_sec() * longest.as_secs_f64() * multiple;
            let frame = f64::from(frame(experiment));
            if matches!(arm.aqm.as_str(), "bfifo" | "red" | "ared") {
                Limit::Bytes(bytes.max(frame) as u64)
            } else {
                Limit::Packets((bytes / frame).round().max(1.0) as u64)
            }
        }
    })
}
