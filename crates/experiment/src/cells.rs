//! The Wi-Fi cells of an experiment as parts of a network of `sojourn-path`, for every backend that carries packets itself.
//!
//! | module | what is there |
//! | --- | --- |
//! | `build` | builds a cell from its link |
//! | `figures` | the figures of a cell |
//! | `table` | the recorded table of its transmissions |

mod build;
mod figures;
mod table;

use sojourn_aqm::DropReason;
use sojourn_measure::delays::{Delays, Precision};
use sojourn_units::{Duration, Time, Way};
use sojourn_wifi::{Airtime, Loss, Medium, Node, Observer, Packet, Transmitted};

pub use build::{Built, cells, in_use};

/// Sees what happens to packets at the queues of cells, by the queues' numbers.
pub trait Watch<P> {
    /// A packet arrives at a queue.
    fn on_arrival(&mut self, queue: usize, packet: &P, now: Time);

    /// A packet leaves a queue for the medium.
    fn on_dequeue(&mut self, queue: usize, packet: &P, now: Time);

    /// A packet was received behind a queue.
    fn on_departure(&mut self, _queue: usize, _packet: &P, _now: Time) {}

    /// A queue drops a packet that was `queued` for so long.
    fn on_drop(&mut self, queue: usize, packet: P, why: DropReason, queued: Duration, now: Time);

    /// A packet that had left a queue is lost on the air.
    fn on_loss(&mut self, queue: usize, packet: P, now: Time);
}

/// A cell and its counters.
pub struct Cell<P> {
    medium: Medium<P>,
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
    fn add(&mut self, packet: &impl Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.bytes());
    }

    fn remove(&mut self, packet: &impl Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.bytes());
    }
}

impl<P: Packet> Cell<P> {
    /// A cell whose access point's queue has this number among the probes, and whose stations' queue has the next.
    pub fn new(medium: Medium<P>, queue: usize, records_medium: bool) -> Self {
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

impl<P: Packet, O: Watch<P>> sojourn_path::Medium<P, O> for Cell<P> {
    fn enter(&mut self, entry: u16, packet: P, now: Time, watch: &mut O) {
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

    fn act(&mut self, now: Time, watch: &mut O) {
        let counts = &mut self.counts;
        self.medium.act(now, &mut Seen { watch, counts });
    }

    fn leaves(&mut self) -> Option<P> {
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
fn station(sender: Node, packet: &impl Packet) -> usize {
    usize::from(match sender {
        Node::AccessPoint => packet.station(),
        Node::Station(station) => station,
    })
}

/// Observes the packets of a cell.
struct Seen<'a, O> {
    watch: &'a mut O,
    counts: &'a mut Counts,
}

const fn side(sender: Node) -> usize {
    match sender {
        Node::AccessPoint => Way::Down as usize,
        Node::Station(_) => Way::Up as usize,
    }
}

impl<P: Packet, O: Watch<P>> Observer<P> for Seen<'_, O> {
    #[inline(always)]
    fn on_arrival(&mut self, sender: Node, packet: &P, now: Time) {
        let side = side(sender);
        self.counts.backlog[side].add(packet);
        self.watch.on_arrival(self.counts.queue + side, packet, now);
    }

    #[inline(always)]
    fn on_dequeue(&mut self, sender: Node, packet: &P, now: Time) {
        let side = side(sender);
        self.counts.backlog[side].remove(packet);
        self.watch.on_dequeue(self.counts.queue + side, packet, now);
    }

    #[inline(always)]
    fn on_departure(&mut self, sender: Node, packet: &P, now: Time) {
        let queue = self.counts.queue + side(sender);
        let latency = &mut self.counts.latency[station(sender, packet)][side(sender)];
        latency.record(now - packet.enqueued());
        self.watch.on_departure(queue, packet, now);
    }

    fn on_drop(&mut self, sender: Node, packet: P, why: Loss, queued: Duration, now: Time) {
        let side = side(sender);
        let queue = self.counts.queue + side;
        match why {
            Loss::Queue(why) => {
                self.counts.backlog[side].remove(&packet);
                self.watch.on_drop(queue, packet, why, queued, now);
            }
            Loss::Retries | Loss::Late => {
                self.counts.lost[station(sender, &packet)][side] += 1;
                self.watch.on_loss(queue, packet, now);
            }
        }
    }

    fn on_air(&mut self, transmitted: &Transmitted) {
        if let Some(rows) = &mut self.counts.transmitted {
            rows.push(*transmitted);
        }
    }
}
