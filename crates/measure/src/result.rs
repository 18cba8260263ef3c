//! The result of a run: figures for the summary, and recorded tables.

use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Serialize, Serializer};

pub use crate::cell::{Cell, Exchanged, Medium, Station};
pub use crate::distribution::{Quantiles, Spread};
pub use crate::groups::{Group, Pooled};
use sojourn_units::Hop;

/// The result of one run: one arm of the comparison with one seed. Serialises to an element of the summary's `runs`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunResult {
    /// The discipline.
    pub queue: String,
    /// The arm's name.
    pub label: String,
    /// The seed.
    pub seed: u64,
    /// Figures of the first link under test, by direction: `down`, and `up` if it has a queue in that direction.
    pub bottleneck: BTreeMap<&'static str, Bottleneck>,
    /// The name of that link: with `[link]` it is `link`.
    pub bottleneck_link: String,
    /// The same figures for every link by name: `links.home.down`; a Wi-Fi link also has its `stations` and its `medium`.
    pub links: Links,
    /// Figures per flow, in the order of the file.
    pub flows: Vec<Flow>,
    /// Figures per traffic group and direction, in the order of the file.
    pub groups: Vec<Group>,
    /// Jain's index of the goodput of the TCP flows; `None` without such flows or goodput. In summary.csv, tables and
    /// differences, where a row is a direction: of its TCP flows.
    pub jain_goodput: Option<f64>,
    /// Jain's index of `dropped_packets` / `bottleneck_packets` of the flows that sent packets to a bottleneck, except
    /// pings; `None` if nothing was dropped.
    pub jain_drop_share: Option<f64>,
    /// Network power (Kleinrock 1979): goodput of the TCP flows divided by their mean round-trip time; `None` without such
    /// flows.
    pub power_bps_per_s: Option<f64>,
    /// Payload that all flows received, over the whole run.
    pub transferred_kilobytes: f64,
    /// Retransmission timeouts of all ends of TCP connections, including those of a SYN or SYN-ACK (Linux: TCPTimeouts of
    /// all hosts), over the whole run.
    pub timeouts: u64,
    /// Packets that impaired directions without a queue lost, by link and direction: `{"link/up": 12}`, over the whole run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost_packets: BTreeMap<String, u64>,
    /// The duration of the run.
    pub simulated_s: f64,
    /// Seconds that the run took, by the clock of the machine.
    pub wall_s: f64,
    /// Events that the simulator handled.
    pub events: u64,
    /// A row per packet at a queue: `link`, `direction`, `time_ns`, `sojourn_ns`, `flow`, `bytes`, `returning`, `fate`
    /// (0 delivered, 1 delivered marked, 2 dropped by the algorithm, 3 dropped for lack of room, 4 dropped for an
    /// unknown reason), in the simulator `packet`, its number in the run.
    #[serde(skip)]
    pub packets: Option<Table>,
    /// The packet capture: a pcapng file.
    #[serde(skip)]
    pub capture: Option<Vec<u8>>,
    /// The qlog of each flow that has one, by its index in `flows`.
    #[serde(skip)]
    pub qlogs: BTreeMap<u32, Vec<u8>>,
    /// A row per transmission in a Wi-Fi cell: `link`, `sender` (0: the access point, from 1 on the stations), `station`,
    /// `access` (0 background to 3 voice), `outcome` (0 answered, 1 unanswered, 2 collision), `waiting_since_ns`, `start_ns`,
    /// `end_ns`, `rate_bps`, `frames`, `received`, `tries`.
    #[serde(skip)]
    pub medium: Option<Table>,
    /// A row per queue and bin of the series: `link`, `direction` and its figures.
    #[serde(skip)]
    pub queue_series: Option<Table>,
    /// A row per flow and bin of the series.
    #[serde(skip)]
    pub flow_series: Option<Table>,
    /// The sojourn times after the warm-up, a row per queue and non-empty bucket: `link`, `direction`, `sojourn_ms`
    /// (the bucket's upper edge), `packets`.
    #[serde(skip)]
    pub histogram: Option<Table>,
    /// A row per round-trip time measured by a flow: `time_ns`, `flow` (over all groups), `rtt_ns`.
    #[serde(skip)]
    pub rtts: Option<Table>,
    /// A row per file or response completed after the warm-up: `time_ns`, `flow` (over all groups), `completion_ns`.
    #[serde(skip)]
    pub completions: Option<Table>,
}

impl RunResult {
    /// Adds the figures of queues, and totals over the flows. `links` are the names of all links, `bottleneck_link`
    /// that of the first one under test.
    pub fn with_totals(
        self,
        links: &[String],
        bottleneck_link: &str,
        queues: Vec<(Hop, Bottleneck)>,
    ) -> Self {
        let unmeasured = links.iter().map(|name| (name.clone(), Link::default()));
        let mut links = Links(unmeasured.collect());
        for (hop, figures) in queues {
            let link = &mut links.0[hop.link].1;
            link.queues.insert(hop.way.name(), figures);
        }
        let flows = &self.flows;
        let over_tcp = |flow: &&Flow| flow.is_over_tcp && flow.has_data();
        let drop_shares = flows
            .iter()
            .filter(|flow| flow.kind != "ping" && flow.bottleneck_packets > 0)
            .map(|flow| flow.dropped_packets as f64 / flow.bottleneck_packets as f64);
        Self {
            bottleneck: links[bottleneck_link].clone(),
            bottleneck_link: bottleneck_link.into(),
            links,
            jain_goodput: jain(flows.iter().filter(over_tcp).map(|flow| flow.goodput_bps)),
            jain_drop_share: jain(drop_shares),
            power_bps_per_s: power_of_all(flows.iter().filter(over_tcp)),
            transferred_kilobytes: flows
                .iter()
                .map(|flow| flow.received_bytes as f64 / 1000.0)
                .sum(),
            ..self
        }
    }
}

/// Network power of several flows: their goodput divided by the mean of their round-trip times.
fn power_of_all<'f>(flows: impl Iterator<Item = &'f Flow>) -> Option<f64> {
    let (mut bps, mut samples, mut sum_ms) = (0.0, 0, 0.0);
    for flow in flows {
        bps += flow.goodput_bps;
        samples += flow.rtt_ms.n;
        sum_ms += flow.rtt_ms.mean.unwrap_or(0.0) * flow.rtt_ms.n as f64;
    }
    power(bps, Some(sum_ms / samples as f64))
}

/// Network power: goodput divided by mean round-trip time; `None` without a round-trip time, or if it is zero.
pub fn power(goodput_bps: f64, rtt_ms: Option<f64>) -> Option<f64> {
    let rtt_ms = rtt_ms.filter(|rtt_ms| *rtt_ms > 0.0)?;
    Some(goodput_bps / (rtt_ms / 1000.0))
}

/// A backend's own result contains a `RunResult`, so that all results can be processed alike.
impl AsMut<Self> for RunResult {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// The figures of a queue: one direction of a link.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Bottleneck {
    /// Distribution of the sojourn time of packets that left after the warm-up.
    pub sojourn_ms: Quantiles,
    /// The longest sojourn time before the warm-up ended.
    pub startup_peak_ms: f64,
    /// Bits sent on the link after the warm-up, as a share of its capacity: a packet in transmission at either end counts
    /// in part, and what a full bucket (`link.burst`) lets pass at the start does not count.
    pub utilization: f64,
    /// Packets that left the queue, over the whole run.
    pub delivered_packets: u64,
    /// Their bytes on the link.
    pub delivered_bytes: u64,
    /// Packets that the algorithm dropped, over the whole run.
    pub dropped_aqm: u64,
    /// Packets dropped for lack of room, over the whole run.
    pub dropped_overflow: u64,
    /// Packets marked, over the whole run.
    pub marked: u64,
    /// Of a link with impairments: packets lost on the wire behind the queue, damaged ones included, over the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<u64>,
    /// Of a link with impairments: packets that it delivered twice, over the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicated_packets: Option<u64>,
    /// Queueing delay at drops after the warm-up, by reason: `aqm`, `deterministic` (MADPIE's drops that are not random;
    /// `dropped_aqm` includes them), `overflow`, on Linux also `unknown`. It is the sojourn time of a packet that was
    /// queued; for a packet dropped on arrival, the time that the backlog takes to leave.
    pub drop_delay_ms: BTreeMap<&'static str, Spread>,
    /// Loss events after the warm-up. An event is all drops of TCP data within one round trip from its first drop: the
    /// largest base RTT of the TCP flows in this direction.
    pub loss_events: u64,
    /// Loss synchronisation: the mean share of these flows with a loss in an event (RFC 7928 §2.4); `None` without events.
    pub loss_synchronization: Option<f64>,
    /// Figures per inner queue, of disciplines with several; simulator only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<&'static str, InnerQueue>,
}

/// The figures of one of several queues of a discipline: `l` and `c` of DualPI2, CAKE's tins; `sparse` and `bulk` for
/// flow queueing, the list from which the packets' flow was served.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InnerQueue {
    /// Distribution of the sojourn time of packets that left it after the warm-up.
    pub sojourn_ms: Quantiles,
    /// Packets that left it, over the whole run.
    pub delivered_packets: u64,
    /// Packets dropped from it for any reason, over the whole run.
    pub dropped_packets: u64,
    /// Packets that left it with a CE mark, over the whole run.
    pub marked: u64,
    /// The rate above which it yields to others; only of CAKE's tins, with a shaper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_bps: Option<u64>,
    /// The target of its algorithm; only of CAKE's tins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ms: Option<f64>,
    /// The interval of its algorithm; only of CAKE's tins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_ms: Option<f64>,
}

/// The figures of one flow. What only few kinds of traffic have stands apart: there may be 100,000 flows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Flow {
    /// Its group's index in `traffic` of experiment.json (tests such as `rrul` are several groups there).
    pub traffic: usize,
    /// Its index in the group.
    pub flow: u32,
    /// Its group's name.
    pub name: String,
    /// The total that its group belongs to, if any.
    #[serde(skip)]
    pub total: Option<String>,
    /// The kind of traffic.
    pub kind: &'static str,
    /// Whether it runs over TCP.
    #[serde(skip)]
    pub is_over_tcp: bool,
    /// The direction of its data: that of the only link, and in a network of several `down` from the traffic's `from` to
    /// its `to`.
    pub direction: &'static str,
    /// The DiffServ code point of its packets.
    pub dscp: u8,
    /// Payload that TCP delivered in order after the warm-up, or that datagrams brought; what waits behind a lost segment
    /// counts when that arrives, so that after a short warm-up the goodput can exceed the rate of the link. It is over the
    /// time after the warm-up in which the flow sends, from its `start`, of a range such as `"0..1 s"` the beginning, to
    /// its `stop`, and counts what arrives in that time, not what is on its way or queued at the `stop`: the goodputs of
    /// flows that send at different times do not add up to a rate of the link.
    pub goodput_bps: f64,
    /// Payload sent, without retransmissions, over the whole run.
    pub sent_bytes: u64,
    /// Payload received in order, over the whole run.
    pub received_bytes: u64,
    /// Segments retransmitted, over the whole run.
    pub retransmits: u64,
    /// Packets of its data that arrived at the first queue of their route, over the whole run.
    pub bottleneck_packets: u64,
    /// Packets of its data that a queue dropped, or that Wi-Fi lost on the air, over the whole run.
    pub dropped_packets: u64,
    /// Packets of its data that left the last queue of their route marked, over the whole run.
    pub marked_packets: u64,
    /// Network power: goodput divided by mean round-trip time; `None` without round-trip times.
    pub power_bps_per_s: Option<f64>,
    /// Round-trip times after the warm-up: TCP's samples, or the echoes of a ping.
    pub rtt_ms: Spread,
    /// One-way delays after the warm-up: of datagrams, and of TCP's segments if `record.one_way` is set. They are queueing
    /// and `link.delay`; the rest of the base RTT is on the way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_ms: Option<Box<Spread>>,
    /// Their jitter after the warm-up: the running estimate (RFC 3550 §6.4.1) after each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<Box<Spread>>,
    /// Their delay variation after the warm-up: delay above the smallest (RFC 5481 §4.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdv_ms: Option<Box<Spread>>,
    /// Opinion score of a call (ITU-T G.107), of its mean delay, with half of its base RTT each way, and its losses after the
    /// warm-up. Jitter, which a playout buffer turns into delay and loss, does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// Datagrams that a queue dropped or a link lost, and echo requests so left without a reply, over the whole run; those
    /// still on their way when it ends are not lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<u64>,
    /// Completion times of files, or of the PackMime model's requests, finished after the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_ms: Option<Box<Spread>>,
    /// Load times of pages finished after the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_load_ms: Option<Box<Spread>>,
    /// Delays of a video call's frames that arrived whole after the warm-up: from when a frame is taken to the arrival of
    /// its last packet, with the wait for the pacer, the queues and `link.delay`; the rest of the base RTT is on the way
    /// back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_ms: Option<Box<Spread>>,
    /// The figures of a video player, or of a video call, whose frames are the segments and whose freezes are the stalls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<Box<Video>>,
}

impl Flow {
    /// False for a direction of a program's connection that has only acknowledged.
    pub fn has_data(&self) -> bool {
        self.kind != "tcp" || self.sent_bytes > 0
    }
}

/// The figures of a player of adaptive video, over the whole run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Video {
    /// Segments received.
    pub segments: u64,
    /// Their mean media rate.
    pub media_rate_bps: Option<f64>,
    /// How often the media rate changed.
    pub switches: u64,
    /// From the start to the first picture.
    pub startup_ms: Option<f64>,
    /// How often playback stalled.
    pub stalls: u64,
    /// How long playback stalled in total.
    pub stalled_ms: f64,
}

/// A recorded table: named columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The columns in order.
    pub columns: Vec<(&'static str, Column)>,
}

/// The figures of every link, by name in the order of the file. Serialises to a map.
#[derive(Clone, Debug, Default)]
pub struct Links(Vec<(String, Link)>);

/// The figures of a link: those of its queues by direction and, if it is Wi-Fi, those of its cell.
#[derive(Clone, Debug, Default, Serialize)]
struct Link {
    #[serde(flatten)]
    queues: BTreeMap<&'static str, Bottleneck>,
    #[serde(flatten)]
    cell: Option<Cell>,
}

impl Links {
    /// The figures of a link's cell; `None` if the link is not Wi-Fi.
    pub fn cell(&self, name: &str) -> Option<&Cell> {
        let mut links = self.0.iter();
        links.find(|(known, _)| known == name)?.1.cell.as_ref()
    }

    /// Adds the figures of a cell, given the number of its link.
    pub(crate) fn add_cell(&mut self, link: usize, cell: Cell) {
        self.0[link].1.cell = Some(cell);
    }
}

impl Index<&str> for Links {
    type Output = BTreeMap<&'static str, Bottleneck>;

    /// # Panics
    /// There is no such link.
    fn index(&self, name: &str) -> &Self::Output {
        let mut links = self.0.iter();
        let (_, figures) = links.find(|(known, _)| known == name).expect("a link");
        &figures.queues
    }
}

impl Serialize for Links {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, figures)| (name, figures)))
    }
}

/// The columns that identify the queue of `rows` rows: `link`, its number in the file, and `direction`, 0 down, 1 up.
pub fn place_columns(queue: Hop, rows: usize) -> Vec<(&'static str, Column)> {
    vec![
        ("link", Column::U8(vec![queue.link as u8; rows])),
        ("direction", Column::U8(vec![queue.way as u8; rows])),
    ]
}

/// A column of numbers.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Column {
    U8(Vec<u8>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F64(Vec<f64>),
}

impl Table {
    /// This table followed by the rows of another with the same columns.
    pub fn stacked(mut self, other: Self) -> Self {
        for ((_, column), (_, more)) in self.columns.iter_mut().zip(other.columns) {
            match (column, more) {
                (Column::U8(column), Column::U8(more)) => column.extend(more),
                (Column::U32(column), Column::U32(more)) => column.extend(more),
                (Column::U64(column), Column::U64(more)) => column.extend(more),
                (Column::F64(column), Column::F64(more)) => column.extend(more),
                _ => unreachable!("tables of one kind have columns of the same types"),
            }
        }
        self
    }
}

/// Jain's fairness index (Jain, Chiu, Hawe 1984): (Σx)² / (n·Σx²); `None` if no value is above zero.
pub fn jain(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = values.clone().count() as f64;
    let sum: f64 = values.clone().sum();
    let squares: f64 = values.map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jain index of (1, 1, 1, 0): 3² / (4·3) = 0.75.
    #[test]
    fn one_starved_flow_of_four_gives_three_quarters() {
        assert_eq!(jain([1.0, 1.0, 1.0, 0.0].into_iter()), Some(0.75));
        assert_eq!(jain([5.0; 3].into_iter()), Some(1.0));
        assert_eq!(jain([0.0; 3].into_iter()), None);
    }

    /// 8 Mbit/s at 20 ms; there is no power if the round-trip time is zero or missing.
    #[test]
    fn power_is_goodput_over_delay() {
        assert_eq!(power(8e6, Some(20.0)), Some(4e8));
        for rtt_ms in [None, Some(0.0), Some(f64::NAN)] {
            assert_eq!(power(8e6, rtt_ms), None);
        }
    }
}
