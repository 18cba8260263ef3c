//! The result of a run: figures for the summary, and recorded tables.

use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Serialize, Serializer};

pub use crate::cell::{Cell, Exchanged, Medium, Station};
pub use crate::distribution::{Quantiles, Spread};
use crate::fairness::jain;
pub use crate::flow::{Flow, Video};
pub use crate::groups::{Group, Pooled};
pub use crate::table::{Column, Table};
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

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 Mbit/s at 20 ms; there is no power if the round-trip time is zero or missing.
    #[test]
    fn power_is_goodput_over_delay() {
        assert_eq!(power(8e6, Some(20.0)), Some(4e8));
        for rtt_ms in [None, Some(0.0), Some(f64::NAN)] {
            assert_eq!(power(8e6, rtt_ms), None);
        }
    }
}
