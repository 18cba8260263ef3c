//! The output of the agent: figures of flows, counters of queues, and a row per packet at a queue.
//!
//! Format on a disk or in a file: `SOJOURN5`, the lengths of the three parts, the figures as JSON, the rows, the
//! captured headers, and a checksum (FNV-1a, 64 bits) of everything before it. Numbers are little-endian. Data after
//! the checksum is ignored.

use std::fmt;

use serde::{Deserialize, Serialize};
use sojourn_measure::cell::Cell;
use sojourn_measure::playback::Playback;
use sojourn_measure::series::SenderState;

use crate::disciplines::Counters;

const MAGIC: &[u8; 8] = b"SOJOURN5";
/// The magic and the three lengths.
const HEAD: usize = 32;
/// Bytes of a packet's row.
const ROW: usize = 32;

/// The recording of one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Recording {
    /// The kernel's release.
    pub kernel: String,
    /// Figures of each flow, in the job's order.
    pub flows: Vec<FlowFigures>,
    /// Counters of each queue, in the job's order.
    pub queues: Vec<QueueFigures>,
    /// Why the run is invalid; empty if it is valid.
    pub faults: Vec<String>,
    /// Retransmission timeouts of all hosts, as counted by the kernel.
    #[serde(default)]
    pub timeouts: u64,
    /// The impaired directions of links: the link's number, whether it is upwards, packets lost, and packets delivered twice,
    /// if they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub impaired: Vec<(usize, bool, u64, Option<u64>)>,
    /// The number of tracepoint events.
    pub events: u64,
    /// What is known only where the packets passed Sojourn's own path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathFigures>,
    /// A row per packet at a queue, in the order in which their fate was decided, and behind them those that still wait.
    #[serde(skip)]
    pub packets: Vec<PacketRow>,
    /// Headers of the packets that passed the bottleneck, if they are recorded.
    #[serde(skip)]
    pub captured: Vec<u8>,
}

/// The figures of a path of real packets.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PathFigures {
    /// How late packets were delivered.
    pub lateness: Lateness,
    /// The CPU time of the thread that carried the packets.
    pub cpu_s: f64,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The length of a run that its traffic ends, and the flows that appeared in it.
    pub appeared: Option<(u64, Vec<Appeared>)>,
    /// The figures of Wi-Fi cells, each with the number of its link.
    pub cells: Vec<(usize, Cell)>,
    /// The share of the medium that a queue's frames took, by the number of the queue; only of cells.
    pub used: Vec<(usize, f64)>,
}

/// A distribution of delays in milliseconds: from the instant at which a packet should have arrived to that at which it was
/// handed to its host.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Packets.
    pub n: u64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p99_9: f64,
    /// The longest.
    pub max: f64,
}

/// A flow that appeared during a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Appeared {
    /// The protocol and the port of its service: the name of its group.
    pub service: String,
    /// What its packets carry.
    pub kind: AppearedKind,
    /// Whether its data travels upwards.
    pub up: bool,
    /// The DiffServ code point of its first packet.
    pub dscp: u8,
    /// When its first packet came, and when its last was delivered.
    pub span_ns: (u64, u64),
}

/// What the packets of a flow that appeared carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AppearedKind {
    /// Segments of TCP.
    Tcp,
    /// Echo requests and replies.
    Ping,
    /// Datagrams of UDP, and everything else.
    Udp,
}

/// The figures of one flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowFigures {
    /// Payload bytes sent, without retransmissions.
    pub sent: u64,
    /// Payload bytes received.
    pub received: u64,
    /// Of the datagrams that arrived after the warm-up: numbers of the first and of the highest, and how many arrived.
    pub seen: Option<(u64, u64, u64)>,
    /// The part of `received` before the end of the warm-up.
    pub received_before: u64,
    /// The part of `received` before the flow's stop; `None` if that is the end of the run.
    pub received_at_stop: Option<u64>,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Datagrams or requests sent, and the number that arrived or were answered.
    pub datagrams: Option<(u64, u64)>,
    /// Times in nanoseconds and round-trip times in microseconds: TCP's smoothed estimate ten times a second, or
    /// echoes.
    pub round_trips: Vec<(u64, u32)>,
    /// Of a flow's part on one machine: when each datagram was sent, in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent_ns: Vec<u64>,
    /// Of a flow's part on one machine: numbers and times of the datagrams that arrived after the warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrived_ns: Vec<(u64, u64)>,
    /// One-way delays of datagrams in microseconds, after the warm-up.
    pub one_way_us: Vec<u32>,
    /// Times in nanoseconds and completion times of files and web responses in microseconds.
    pub completions: Vec<(u64, u32)>,
    /// Times in nanoseconds and load times of pages in microseconds.
    pub page_loads: Vec<(u64, u32)>,
    /// The figures of a video player.
    pub playback: Playback,
    /// Bytes received so far and the state of the senders at the end of each bin of the series.
    pub series: Vec<(u64, Option<SenderState>)>,
}

/// The counters of one queue's discipline.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct QueueFigures {
    /// At the end of the run.
    pub at_end: Counters,
    /// At the end of each bin of the series.
    pub series: Vec<Counters>,
}

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It left the queue.
    Delivered,
    /// It left with Congestion Experienced.
    Marked,
    /// The algorithm dropped it, according to the kernel.
    DroppedAqm,
    /// It was dropped for lack of room, according to the kernel.
    DroppedOverflow,
    /// It was dropped, and the kernel gives no reason.
    Dropped,
    /// It was queued when the run ended.
    Waiting,
    /// It left the queue, and was lost on the air.
    Lost,
}

const FATES: [Fate; 7] = [
    Fate::Delivered,
    Fate::Marked,
    Fate::DroppedAqm,
    Fate::DroppedOverflow,
    Fate::Dropped,
    Fate::Waiting,
    Fate::Lost,
];

/// A packet at a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketRow {
    /// When it entered, in nanoseconds since the run began.
    pub entered_ns: u64,
    /// When its fate at the queue was decided, or when the run ended.
    pub settled_ns: u64,
    /// How long it was on the air afterwards, in microseconds.
    pub air_us: u32,
    /// The flow's number.
    pub flow: u32,
    /// Bytes with the Ethernet header.
    pub bytes: u32,
    /// Index of the queue, in the job's order.
    pub queue: u8,
    /// True if it was sent by the receiver of the data.
    pub returning: bool,
    /// Its fate.
    pub fate: Fate,
    /// It was dropped on arrival and never queued.
    pub refused: bool,
}

/// The error that bytes are not a complete recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damaged(String);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the recording is incomplete: {}", self.0)
    }
}

impl std::error::Error for Damaged {}

impl Recording {
    /// The recording as bytes.
    ///
    /// # Errors
    /// The figures cannot be written as JSON, because a number is not finite.
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let figures = serde_json::to_vec(self)?;
        let parts = figures.len() + ROW * self.packets.len() + self.captured.len();
        let mut bytes = Vec::with_capacity(HEAD + parts + 8);
        bytes.extend(MAGIC);
        bytes.extend((figures.len() as u64).to_le_bytes());
        bytes.extend((self.packets.len() as u64).to_le_bytes());
        bytes.extend((self.captured.len() as u64).to_le_bytes());
        bytes.extend(figures);
        for row in &self.packets {
            bytes.extend(row.entered_ns.to_le_bytes());
            bytes.extend(row.settled_ns.to_le_bytes());
            bytes.extend(row.air_us.to_le_bytes());
            bytes.extend(row.flow.to_le_bytes());
            bytes.extend(row.bytes.to_le_bytes());
            let flags = [
                u8::from(row.returning),
                row.fate as u8,
                u8::from(row.refused),
            ];
            bytes.push(row.queue);
            bytes.extend(flags);
        }
        bytes.extend(&self.captured);
        bytes.extend(checksum(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// Reads a recording at the beginning of `bytes`.
    ///
    /// # Errors
    /// There is no recording, or it is incomplete.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Damaged> {
        let damaged = |what: &str| Damaged(what.into());
        let mut reader = Reader(bytes);
        if reader.take(8) != Some(MAGIC) {
            return Err(damaged("it has another header"));
        }
        let short = || damaged("it ends early");
        let figures = reader.u64().ok_or_else(short)? as usize;
        let rows = reader.u64().ok_or_else(short)? as usize;
        let captured = reader.u64().ok_or_else(short)? as usize;
        let figures = reader.take(figures).ok_or_else(short)?;
        let mut recording: Self =
            serde_json::from_slice(figures).map_err(|error| Damaged(error.to_string()))?;
        let table = rows.checked_mul(ROW).and_then(|length| reader.take(length));
        let table = table.ok_or_else(short)?;
        recording.captured = reader.take(captured).ok_or_else(short)?.to_vec();
        let length = bytes.len() - reader.0.len();
        if reader.u64() != Some(checksum(&bytes[..length])) {
            return Err(damaged("its checksum is wrong"));
        }
        let row = |row: &[u8]| PacketRow::read(&mut Reader(row));
        recording.packets = table
            .chunks_exact(ROW)
            .map(row)
            .collect::<Option<_>>()
            .ok_or_else(|| damaged("a packet has no known fate"))?;
        Ok(recording)
    }
}

impl PacketRow {
    /// True if it left the queue.
    pub const fn is_delivered(&self) -> bool {
        matches!(self.fate, Fate::Delivered | Fate::Marked)
    }

    /// When it was received, or lost on the air.
    pub const fn received_ns(&self) -> u64 {
        self.settled_ns + self.air_us as u64 * 1000
    }

    /// True if it was dropped, or lost on the air.
    pub const fn is_dropped(&self) -> bool {
        !self.is_delivered() && !matches!(self.fate, Fate::Waiting)
    }

    /// The time in the queue in nanoseconds.
    pub const fn sojourn_ns(&self) -> u64 {
        self.settled_ns - self.entered_ns
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (entered_ns, settled_ns) = (reader.u64()?, reader.u64()?);
        let air_us = reader.u32()?;
        let (flow, bytes) = (reader.u32()?, reader.u32()?);
        let &[queue, returning, fate, refused] = reader.take(4)? else {
            return None;
        };
        Some(Self {
            entered_ns,
            settled_ns,
            air_us,
            flow,
            bytes,
            queue,
            returning: returning != 0,
            fate: *FATES.get(usize::from(fate))?,
            refused: refused != 0,
        })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Recording {
        Recording {
            kernel: "6.1".into(),
            flows: vec![FlowFigures {
                sent: 1448,
                series: vec![
                    (0, None),
                    (
                        1448,
                        Some(SenderState {
                            cwnd: 10,
                            ..SenderState::default()
                        }),
                    ),
                ],
                ..FlowFigures::default()
            }],
            captured: vec![1, 2, 3],
            packets: vec![PacketRow {
                entered_ns: 1,
                settled_ns: u64::MAX,
                air_us: 0,
                flow: 3,
                bytes: 1514,
                queue: 1,
                returning: true,
                fate: Fate::Dropped,
                refused: true,
            }],
            ..Recording::default()
        }
    }

    #[test]
    fn a_recording_reads_back_with_other_data_behind_it() {
        let mut bytes = example().to_bytes().unwrap();
        bytes.extend([7; 512]);
        assert_eq!(Recording::from_bytes(&bytes), Ok(example()));
    }

    #[test]
    fn a_recording_cut_short_or_changed_is_refused() {
        let whole = example().to_bytes().unwrap();
        for length in 0..whole.len() {
            assert!(
                Recording::from_bytes(&whole[..length]).is_err(),
                "{length} bytes"
            );
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(Recording::from_bytes(&changed).is_err(), "byte {at}");
        }
    }
}
