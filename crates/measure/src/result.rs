//! What a run gives: figures for the summary, and tables for what was recorded.

use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Serialize, Serializer};

pub use crate::distribution::{Quantiles, Spread};
pub use crate::groups::{Group, Pooled};
use sojourn_units::Hop;

/// One run: one arm of the comparison, one seed. Serialises to an element of the summary's `runs`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunResult {
    /// The discipline.
    pub queue: String,
    /// The arm's label.
    pub label: String,
    /// The seed.
    pub seed: u64,
    /// Figures of the first link under test per direction: `down`, and `up` where that has a queue.
    pub bottleneck: BTreeMap<&'static str, Bottleneck>,
    /// The name of that link.
    pub bottleneck_link: String,
    /// The same figures of every link.
    pub links: Links,
    /// Figures per flow, in the order of the file.
    pub flows: Vec<Flow>,
    /// Figures per traffic group and direction, in the order of the file.
    pub groups: Vec<Group>,
    /// Jain's index over the goodput of the TCP flows; `None` without such flows or goodput.
    pub jain_goodput: Option<f64>,
    /// Jain's index over the drop shares of the flows that sent anything to a bottleneck, echo requests left out;
    /// `None` if nothing was dropped.
    pub jain_drop_share: Option<f64>,
    /// Network power (Kleinrock 1979): goodput of the TCP flows over their mean round-trip time, in bit/s per second;
    /// `None` without such flows.
    pub power_bps_per_s: Option<f64>,
    /// Payload that all flows received, in units of 1000 bytes; whole run.
    pub transferred_kilobytes: f64,
    /// Retransmission timeouts of all ends of TCP connections, those of a SYN included; whole run.
    pub timeouts: u64,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Wall-clock seconds that the run took.
    pub wall_s: f64,
    /// Events handled.
    pub events: u64,
    /// A row per packet that met a queue: `link`, `direction`, `time_ns`, `sojourn_ns`, `flow`, `bytes`, `returning`,
    /// `fate` (0 delivered, 1 delivered marked, 2 dropped by the algorithm, 3 dropped for want of room, 4 dropped and
    /// not known why).
    #[serde(skip)]
    pub packets: Option<Table>,
    /// The capture of packets: a pcapng file.
    #[serde(skip)]
    pub capture: Option<Vec<u8>>,
    /// A row per queue and bin of the series: `link`, `direction` and its figures.
    #[serde(skip)]
    pub queue_series: Option<Table>,
    /// A row per flow and bin of the series.
    #[serde(skip)]
    pub flow_series: Option<Table>,
    /// The sojourn times after the warm-up, a row per queue and bucket that is not empty: `link`, `direction`, `sojourn_ms` (the
    /// bucket's upper edge), `packets`.
    #[serde(skip)]
    pub histogram: Option<Table>,
    /// A row per round-trip time that a flow measured: `time_ns`, `flow` (over all groups), `rtt_ns`.
    #[serde(skip)]
    pub rtts: Option<Table>,
    /// A row per file or response that was complete after the warm-up: `time_ns`, `flow` (over all groups), `completion_ns`.
    #[serde(skip)]
    pub completions: Option<Table>,
}

impl RunResult {
    /// With the figures of queues, and those that follow from the flows'. `links` are the names of all links,
    /// `bottleneck_link` that of the first one under test.
    pub fn with_totals(
        self,
        links: &[String],
        bottleneck_link: &str,
        queues: Vec<(Hop, Bottleneck)>,
    ) -> Self {
        let unmeasured = links.iter().map(|name| (name.clone(), BTreeMap::new()));
        let mut links = Links(unmeasured.collect());
        for (place, figures) in queues {
            links.0[place.link].1.insert(place.way.name(), figures);
        }
        let flows = &self.flows;
        let over_tcp = |flow: &&Flow| flow.is_over_tcp;
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

/// Network power of flows together: their goodput over the mean of their round-trip times.
fn power_of_all<'f>(flows: impl Iterator<Item = &'f Flow>) -> Option<f64> {
    let (mut bps, mut samples, mut sum_ms) = (0.0, 0, 0.0);
    for flow in flows {
        bps += flow.goodput_bps;
        samples += flow.rtt_ms.n;
        sum_ms += flow.rtt_ms.mean.unwrap_or(0.0) * flow.rtt_ms.n as f64;
    }
    power(bps, Some(sum_ms / samples as f64))
}

/// Network power: goodput over mean round-trip time; `None` without any, or of no time at all.
pub fn power(goodput_bps: f64, rtt_ms: Option<f64>) -> Option<f64> {
    let rtt_ms = rtt_ms.filter(|rtt_ms| *rtt_ms > 0.0)?;
    Some(goodput_bps / (rtt_ms / 1000.0))
}

/// A backend's own results hold these, so that all can be handed on alike.
impl AsMut<Self> for RunResult {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// The figures of a queue: one direction of a link.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Bottleneck {
    /// Sojourn times of the packets that left after the warm-up, in milliseconds.
    pub sojourn_ms: Quantiles,
    /// The longest sojourn before the warm-up ended, in milliseconds.
    pub startup_peak_ms: f64,
    /// Share of the link's capacity that was used after the warm-up.
    pub utilization: f64,
    /// Packets that left, whole run.
    pub delivered_packets: u64,
    /// Their bytes on the link.
    pub delivered_bytes: u64,
    /// Packets that the algorithm dropped, whole run.
    pub dropped_aqm: u64,
    /// Packets dropped for want of room, whole run.
    pub dropped_overflow: u64,
    /// Packets marked, whole run.
    pub marked: u64,
    /// How long the queue was when packets were dropped, by reason (`aqm`, `deterministic`, `overflow`, on Linux also `unknown`), after the
    /// warm-up, in milliseconds: the sojourn of a packet that was queued; of one that was not, the time that the
    /// backlog takes to leave. `deterministic` is the part of an algorithm's drops that it does not leave to chance,
    /// where it has both (MADPIE); `dropped_aqm` counts it in.
    pub drop_delay_ms: BTreeMap<&'static str, Spread>,
    /// Loss events after the warm-up: all drops of TCP data within one round trip, the largest base RTT of the TCP
    /// flows in this direction, from the first of them on.
    pub loss_events: u64,
    /// Loss synchronisation: the mean share of these flows that lose in a loss event (RFC 7928 §2.4); `None` without
    /// events.
    pub loss_synchronization: Option<f64>,
    /// Figures per inner queue, of disciplines that have several; only of the simulator.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<&'static str, InnerQueue>,
}

/// The figures of one of several queues that a discipline has: `l` and `c` of DualPI2, CAKE's tins; `sparse` and `bulk`
/// packets of flow queueing, by the list that their flow was served from.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InnerQueue {
    /// Sojourn times of the packets that left it after the warm-up, in milliseconds.
    pub sojourn_ms: Quantiles,
    /// Packets that left it, whole run.
    pub delivered_packets: u64,
    /// Packets dropped from it for any reason, whole run.
    pub dropped_packets: u64,
    /// Packets that left it with a CE mark, whole run.
    pub marked: u64,
}

/// The figures of one flow.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Flow {
    /// Number of the traffic group in the file, from 0.
    pub traffic: usize,
    /// Number of the flow within the group, from 0.
    pub flow: u32,
    /// The name of its group.
    pub name: String,
    /// The kind of traffic.
    pub kind: &'static str,
    /// It runs over TCP.
    #[serde(skip)]
    pub is_over_tcp: bool,
    /// Which way its data goes.
    pub direction: &'static str,
    /// The DiffServ code point of its packets.
    pub dscp: u8,
    /// Payload bits per second received between the warm-up and the end, while the flow was on.
    pub goodput_bps: f64,
    /// Payload bytes sent, without retransmissions; whole run.
    pub sent_bytes: u64,
    /// Payload bytes received in order; whole run.
    pub received_bytes: u64,
    /// Segments retransmitted; whole run.
    pub retransmits: u64,
    /// Packets of its data that came to the first queue on their route; whole run, as the two that follow.
    pub bottleneck_packets: u64,
    /// Packets of its data that a queue dropped.
    pub dropped_packets: u64,
    /// Packets of its data that left the last queue on their route marked.
    pub marked_packets: u64,
    /// Network power: goodput over mean round-trip time, in bit/s per second; `None` without round-trip times.
    pub power_bps_per_s: Option<f64>,
    /// Round-trip times after the warm-up, in milliseconds: TCP's samples, or the echoes of a ping.
    pub rtt_ms: Spread,
    /// One-way delays of datagrams, and of TCP's segments if `record.one_way` asks for it, after the warm-up, in milliseconds. Of the base RTT they have the link's own delay
    /// in them; the rest is on the way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_ms: Option<Spread>,
    /// Their jitter after the warm-up, in milliseconds: the running estimate (RFC 3550 §6.4.1) after each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<Spread>,
    /// Their delay variation after the warm-up, in milliseconds: delay above the smallest (RFC 5481 §4.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdv_ms: Option<Spread>,
    /// Mean opinion score of a call (ITU-T G.107), from its loss and its mean one-way delay after the warm-up; of the
    /// base RTT half counts, wherever it is simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// Datagrams or echo requests that never arrived or were not answered, of those sent in time to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<u64>,
    /// Completion times of files, or of the PackMime model's requests, that were finished after the warm-up, in
    /// milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_ms: Option<Spread>,
    /// Load times of pages that were finished after the warm-up, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_load_ms: Option<Spread>,
    /// What a player of video saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<Video>,
}

/// The figures of a player of adaptive video, over the whole run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Video {
    /// Segments received.
    pub segments: u64,
    /// Their mean media rate, in bit/s.
    pub media_rate_bps: Option<f64>,
    /// How often the media rate changed.
    pub switches: u64,
    /// From the start to the first picture, in milliseconds.
    pub startup_ms: Option<f64>,
    /// How often playing ran out.
    pub stalls: u64,
    /// For how long in all, in milliseconds.
    pub stalled_ms: f64,
}

/// A recorded table: named columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The columns in order.
    pub columns: Vec<(&'static str, Column)>,
}

/// The figures of every link's queues, by name in the order of the file, and by direction. Serialises to a map.
#[derive(Clone, Debug, Default)]
pub struct Links(Vec<(String, BTreeMap<&'static str, Bottleneck>)>);

impl Index<&str> for Links {
    type Output = BTreeMap<&'static str, Bottleneck>;

    /// # Panics
    /// There is no such link.
    fn index(&self, name: &str) -> &Self::Output {
        let mut links = self.0.iter();
        let (_, figures) = links.find(|(known, _)| known == name).expect("a link");
        figures
    }
}

impl Serialize for Links {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, figures)| (name, figures)))
    }
}

/// The columns that name the queue of `rows` rows: `link`, its number in the file, and `direction`, 0 down, 1 up.
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
    /// This table with another of the same columns below it.
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

/// Jain's fairness index (Jain, Chiu, Hawe 1984): (Σx)² / (n·Σx²); `None` if nothing is above zero.
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

    /// 8 Mbit/s at 20 ms; a round trip that took no time has no power, and neither has none (0/0).
    #[test]
    fn power_is_goodput_over_delay() {
        assert_eq!(power(8e6, Some(20.0)), Some(4e8));
        for rtt_ms in [None, Some(0.0), Some(f64::NAN)] {
            assert_eq!(power(8e6, rtt_ms), None);
        }
    }
}
