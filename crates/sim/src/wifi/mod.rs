//! Wi-Fi cells as parts of the network.
//!
//! | module | what is there |
//! | --- | --- |
//! | `build` | builds a cell from its link |
//! | `figures` | the figures of a cell |
//! | `medium` | the recorded table of its transmissions |

mod build;
mod figures;
mod medium;

use sojourn_measure::delays::{Delays, Precision};
use sojourn_measure::probe::Packet as _;
use sojourn_units::{Duration, Time, Way};
use sojourn_wifi::{Airtime, Loss, Medium, Node, Observer, Transmitted};

use crate::capture::Stage;
use crate::network::{Watch, reason};
use crate::packet::SimPacket;

pub use build::{build, in_use};

/// A cell and its counters.
pub struct Cell {
    medium: Medium<SimPacket>,
    counts: Counts,
    /// The use of the medium up to the end of the warm-up.
    at_warmup: Airtime,
}

/// The counters of a cell.
struct Counts {
    /// The number of the access point's queue among the probes; the stations' is the next.
    queue: usize,
    /// The backlog of the disciplines: down, up.
    backlog: [Backlog; 2],
    /// Packets lost on the air, by station: down, up.
    lost: Vec<[u64; 2]>,
    /// The time from a packet's arrival until the receiver hands it up, after the warm-up, by station: down, up.
    latency: Vec<[Delays; 2]>,
    /// Every transmission, if they are recorded.
    transmitted: Option<Vec<Transmitted>>,
}

/// The contents of a queue.
#[derive(Clone, Copy, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Backlog {
    fn add(&mut self, packet: &SimPacket) {
        self.packets += 1;
        self.bytes += u64::from(packet.bytes());
    }

    fn remove(&mut self, packet: &SimPacket) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.bytes());
    }
}

impl Cell {
    /// A cell whose access point's queue has this number among the probes, and whose stations' queue has the next.
    pub fn new(medium: Medium<SimPacket>, queue: usize, records_medium: bool) -> Self {
        Self {
            at_warmup: medium.airtime().clone(),
            counts: Counts {
                queue,
                backlog: [Backlog::default(); 2],
                lost: vec![[0; 2]; medium.stations()],
                latency: latencies(medium.stations()),
                transmitted: records_medium.then(Vec::new),
            },
            medium,
        }
    }

    /// The backlog of the disciplines of the access point (down) or of the stations (up).
    pub const fn backlog(&self, way: Way) -> Backlog {
        self.counts.backlog[way as usize]
    }

    /// Marks that the disciplines of the access point (down) or of the stations (up) have made.
    pub fn marked(&self, way: Way) -> u64 {
        self.medium.marked(way)
    }

    /// Ends the warm-up.
    pub fn mark_warmup(&mut self, now: Time) {
        self.at_warmup = self.medium.airtime_until(now);
        self.counts.latency = latencies(self.counts.latency.len());
    }
}

impl sojourn_path::Medium<SimPacket, Watch> for Cell {
    fn enter(&mut self, entry: u16, packet: SimPacket, now: Time, watch: &mut Watch) {
        let way = if entry % 2 == Way::Down as u16 {
            Way::Down
        } else {
            Way::Up
        };
        let counts = &mut self.counts;
        let mut seen = Seen { watch, counts };
        self.medium.enqueue(packet, entry / 2, way, now, &mut seen);
    }

    fn due(&self) -> Time {
        self.medium.next_event()
    }

    fn act(&mut self, now: Time, watch: &mut Watch) {
        let counts = &mut self.counts;
        self.medium.act(now, &mut Seen { watch, counts });
    }

    fn leaves(&mut self) -> Option<SimPacket> {
        self.medium.poll().map(|departed| departed.packet)
    }

    fn packets(&self) -> u64 {
        self.medium.packets()
    }
}

fn latencies(stations: usize) -> Vec<[Delays; 2]> {
    vec![[const { Delays::new(Precision::Flow) }; 2]; stations]
}

/// The station that a node's packet goes to or comes from.
fn station(sender: Node, packet: &SimPacket) -> usize {
    usize::from(match sender {
        Node::AccessPoint => sojourn_wifi::Packet::station(packet),
        Node::Station(station) => station,
    })
}

/// Observes the packets of a cell.
struct Seen<'a> {
    watch: &'a mut Watch,
    counts: &'a mut Counts,
}

const fn side(sender: Node) -> usize {
    match sender {
        Node::AccessPoint => Way::Down as usize,
        Node::Station(_) => Way::Up as usize,
    }
}

impl Observer<SimPacket> for Seen<'_> {
    #[inline(always)]
    fn on_arrival(&mut self, sender: Node, packet: &SimPacket, now: Time) {
        let side = side(sender);
        self.counts.backlog[side].add(packet);
        self.watch.probes[self.counts.queue + side].on_arrival(packet, now);
    }

    #[inline(always)]
    fn on_dequeue(&mut self, sender: Node, packet: &SimPacket, now: Time) {
        let side = side(sender);
        self.counts.backlog[side].remove(packet);
        self.watch.probes[self.counts.queue + side].on_departure(packet, now);
    }

    #[inline(always)]
    fn on_departure(&mut self, sender: Node, packet: &SimPacket, now: Time) {
        let queue = self.counts.queue + side(sender);
        let latency = &mut self.counts.latency[station(sender, packet)][side(sender)];
        latency.record(now - packet.entered());
        if self.watch.capture.is_some() {
            self.watch.capture(Stage::Left { queue }, packet, now);
        }
    }

    fn on_drop(&mut self, sender: Node, packet: SimPacket, why: Loss, queued: Duration, now: Time) {
        let side = side(sender);
        let probe = &mut self.watch.probes[self.counts.queue + side];
        match why {
            Loss::Queue(why) => {
                self.counts.backlog[side].remove(&packet);
                probe.on_drop(&packet, reason(why), queued, now);
            }
            Loss::Retries | Loss::Late => {
                probe.on_loss(&packet, now);
                self.counts.lost[station(sender, &packet)][side] += 1;
            }
        }
        self.watch.discard(packet);
    }

    fn on_air(&mut self, transmitted: &Transmitted) {
        if let Some(rows) = &mut self.counts.transmitted {
            rows.push(*transmitted);
        }
    }
}
