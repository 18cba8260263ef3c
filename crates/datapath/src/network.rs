//! The links and routes of an experiment for real packets, and a record of every packet's fate.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use sojourn_aqm::{Catalogue, Datagram, DropReason, Ecn, Qdisc};
use sojourn_experiment::derived;
use sojourn_experiment::model::{Experiment, Hop, Route as Hops, Traffic, Way};
use sojourn_experiment::network::{self, RunError, Topology};
use sojourn_experiment::{DisciplineKeys, KeySpec, Names};
use sojourn_path::{Builder, Observer, Route};
use sojourn_units::{Duration, Time};

use crate::gso::Partial;
use crate::ip::{self, Carried, Headers, Link};

/// A packet on its way.
pub type Packet = Datagram<Frame>;
/// The network that it passes.
pub type Network = sojourn_path::Network<Packet, Watch>;

/// Bytes of Ethernet's header, which a packet counts in a row whatever the link's overhead.
const ETHERNET: u32 = ip::ETHERNET as u32;

/// A packet's bytes, and where it belongs.
#[derive(Clone, Debug)]
pub struct Frame {
    /// From the IP header on. A copy that a wire makes shares them.
    pub bytes: Arc<[u8]>,
    /// Its header of Ethernet.
    pub link: Link,
    /// Its checksum, if that is to be completed.
    pub checksum: Partial,
    /// What it carries.
    pub carried: Carried,
    /// When it was read.
    pub sent: Time,
    /// The number of its flow.
    pub flow: u32,
    /// True if it travels towards the sender of the flow's data.
    pub returning: bool,
    /// The port by which it leaves.
    pub port: u16,
}

/// A packet that was read at `now` and that belongs to a flow. `overhead`: bytes that the hosts' link adds.
pub fn packet(
    (link, bytes, checksum): (Link, &[u8], Partial),
    headers: &Headers,
    (flow, returning, port): (u32, bool, u16),
    overhead: u32,
    now: Time,
) -> Packet {
    let frame = Frame {
        bytes: bytes.into(),
        link,
        checksum,
        carried: headers.carried,
        sent: now,
        flow,
        returning,
        port,
    };
    let mut packet = Datagram::new(frame, bytes.len() as u32 + overhead)
        .with_ecn(headers.ecn)
        .with_flow(headers.key())
        .with_dscp(headers.dscp)
        .with_ack(headers.pure_ack());
    packet.enqueued = now;
    packet
}

/// The bytes of a packet that has arrived. If a queue marked it, its header says so.
pub fn arrived(packet: &mut Packet) -> &[u8] {
    if packet.ecn == Ecn::Ce {
        let bytes = &mut packet.payload.bytes;
        if Headers::read(bytes).is_some_and(|headers| headers.ecn != Ecn::Ce) {
            let mut marked = bytes.to_vec();
            ip::set_ce(&mut marked);
            *bytes = marked.into();
        }
    }
    &packet.payload.bytes
}

/// What became of a packet at a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It left.
    Delivered,
    /// It left with Congestion Experienced.
    Marked,
    /// It was dropped.
    Dropped(DropReason),
    /// It is still queued.
    Waiting,
}

/// A packet at a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// When it entered.
    pub entered: Time,
    /// When its fate was decided; of one that waits, the latest instant that is known.
    pub settled: Time,
    /// Its flow.
    pub flow: u32,
    /// Bytes with Ethernet's header.
    pub bytes: u32,
    /// The queue's number.
    pub queue: u8,
    /// True if it travels towards the sender of the data.
    pub returning: bool,
    /// What became of it.
    pub fate: Fate,
    /// It was dropped on arrival.
    pub refused: bool,
}

/// Packets that a queue has dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// For any reason.
    pub all: u64,
    /// For lack of room.
    pub overflow: u64,
}

/// Records the fate of packets.
#[derive(Debug, Default)]
pub struct Watch {
    /// A row per packet and queue, in the order in which their fate was decided.
    pub rows: Vec<Row>,
    /// The packets in the queues, by queue, flow and direction: when each entered, and its bytes.
    waiting: HashMap<(u8, u32, bool), VecDeque<(Time, u32)>>,
    /// By queue.
    pub dropped: Vec<Dropped>,
    /// By impairment: packets lost, and packets copied.
    pub impaired: Vec<(Hop, u64, u64)>,
    /// Rows that are not kept, because there are too many.
    pub unrecorded: u64,
}

/// The most rows: some 3 GB.
const MOST_ROWS: usize = 100_000_000;

impl Watch {
    /// Takes the rows, those of the packets that still wait behind the others.
    pub fn take_rows(&mut self) -> Vec<Row> {
        let mut rows = std::mem::take(&mut self.rows);
        let mut still: Vec<Row> = Vec::new();
        for ((queue, flow, returning), waiting) in self.waiting.drain() {
            still.extend(waiting.into_iter().map(|(entered, bytes)| Row {
                entered,
                settled: entered,
                flow,
                bytes,
                queue,
                returning,
                fate: Fate::Waiting,
                refused: false,
            }));
        }
        still.sort_unstable_by_key(|row| (row.entered, row.queue, row.flow, row.returning));
        let latest = rows.last().map(|row| row.settled);
        let latest = latest.max(still.last().map(|row| row.entered));
        for row in &mut still {
            row.settled = latest.unwrap_or(row.entered);
        }
        rows.extend(still);
        rows
    }

    fn note(&mut self, queue: usize, packet: &Packet, fate: Fate, now: Time) {
        if let Some(waiting) = self.waiting.get_mut(&place(queue, packet)) {
            // One that is refused may not have been told when it entered.
            let entered = |at| waiting.iter().position(|one: &(Time, u32)| one.0 == at);
            let this = entered(packet.enqueued).or_else(|| entered(now));
            this.map(|at| waiting.remove(at));
        }
        if self.rows.len() == MOST_ROWS {
            self.unrecorded += 1;
            return;
        }
        let frame = &packet.payload;
        self.rows.push(Row {
            entered: packet.enqueued,
            settled: now,
            flow: frame.flow,
            bytes: on_wire(packet),
            queue: queue as u8,
            returning: frame.returning,
            fate,
            refused: matches!(fate, Fate::Dropped(_)) && packet.enqueued == now,
        });
    }
}

/// The queue, the flow and the direction of a packet.
fn place(queue: usize, packet: &Packet) -> (u8, u32, bool) {
    (queue as u8, packet.payload.flow, packet.payload.returning)
}

fn on_wire(packet: &Packet) -> u32 {
    packet.payload.bytes.len() as u32 + ETHERNET
}

impl Observer<Packet> for Watch {
    fn on_arrival(&mut self, link: usize, packet: &Packet, now: Time) {
        let waiting = self.waiting.entry(place(link, packet)).or_default();
        waiting.push_back((now, on_wire(packet)));
    }

    fn on_dequeue(&mut self, link: usize, packet: &mut Packet, now: Time) {
        let fate = match packet.ecn {
            Ecn::Ce => Fate::Marked,
            _ => Fate::Delivered,
        };
        self.note(link, packet, fate, now);
    }

    fn on_pass(&mut self, link: usize, packet: &mut Packet, now: Time) {
        packet.enqueued = now;
        self.on_dequeue(link, packet, now);
    }

    fn on_drop(&mut self, link: usize, packet: Packet, reason: DropReason, _: Duration, now: Time) {
        let dropped = &mut self.dropped[link];
        dropped.all += 1;
        dropped.overflow += u64::from(reason == DropReason::Overflow);
        self.note(link, &packet, Fate::Dropped(reason), now);
    }

    fn on_loss(&mut self, impairment: usize, _: Packet, _: Time) {
        self.impaired[impairment].1 += 1;
    }

    fn on_duplicate(&mut self, impairment: usize, _: &Packet, _: Time) {
        self.impaired[impairment].2 += 1;
    }
}

/// The names that a run's document may use: the built-in disciplines, these of another process, and these congestion controls.
pub fn names(foreign: Vec<DisciplineKeys>, congestion_controls: Vec<String>) -> Names {
    let disciplines = Catalogue::<Packet>::new();
    let keys = |discipline: &sojourn_aqm::Discipline<Packet>| DisciplineKeys {
        name: discipline.name.into(),
        keys: (discipline.keys().into_iter())
            .map(|key| KeySpec {
                name: key.name.into(),
                kind: key.kind,
                default: key.default.into_owned(),
                doc: key.doc.into(),
            })
            .collect(),
    };
    Names {
        disciplines: disciplines.iter().map(keys).chain(foreign).collect(),
        congestion_controls,
    }
}

/// A network being built.
pub struct Plan<'e> {
    builder: Builder<Packet>,
    topology: Topology<'e>,
    watch: Watch,
}

impl<'e> Plan<'e> {
    /// The queues and wires of arm number `queue`.
    ///
    /// # Errors
    /// A discipline is not in the catalogue, or refuses its settings.
    pub fn new(
        experiment: &'e Experiment,
        queue: usize,
        seed: u64,
        catalogue: &Catalogue<Packet>,
    ) -> Result<Self, RunError> {
        let mut builder = Builder::new();
        for (qdisc, config) in network::links(experiment, queue, seed, catalogue)? {
            builder.add_link(qdisc, config);
        }
        let mut watch = Watch::default();
        for (hop, impair, seed) in network::impairments(experiment, seed) {
            builder.add_impairment(impair, seed, Packet::clone);
            watch.impaired.push((hop, 0, 0));
        }
        let places = derived::queues(experiment, queue);
        watch.dropped = vec![Dropped::default(); places.len()];
        let topology = Topology {
            links: &experiment.links,
            queues: places.iter().map(|place| place.hop).collect(),
            cells: Vec::new(),
            impaired: watch.impaired.iter().map(|(hop, ..)| *hop).collect(),
        };
        Ok(Self {
            builder,
            topology,
            watch,
        })
    }

    /// The routes of a flow's data, and of what returns: together they have the base RTT of its traffic.
    pub fn routes_of(&mut self, traffic: &Traffic, way: Way) -> [Route; 2] {
        let there = self.topology.stages(&traffic.route, way);
        let back = self.topology.stages_back(traffic, way.reversed());
        [there, back].map(|stages| self.builder.add_route(&stages))
    }

    /// The routes down and up over these links, with their propagation delays in both directions.
    pub fn routes_over(&mut self, hops: &Hops) -> [Route; 2] {
        [Way::Down, Way::Up].map(|way| {
            let stages = self.topology.stages(hops, way);
            self.builder.add_route(&stages)
        })
    }

    /// The network.
    pub fn build(self) -> Network {
        self.builder.build(self.watch)
    }
}

/// The state of a queue.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct QueueState {
    /// Its drops so far.
    pub dropped: Dropped,
    /// Its marks so far.
    pub marked: u64,
    /// Packets in it.
    pub backlog_packets: u64,
    /// Its drop probability, if it has one.
    pub probability: Option<f64>,
}

/// The states of all queues of a network.
pub fn states(network: &Network) -> Vec<QueueState> {
    let state = |(number, link): (usize, &sojourn_path::Link<Packet>)| {
        let qdisc: &dyn Qdisc<Packet> = link.qdisc();
        let mut probability = None;
        qdisc.state(&mut |name, value| {
            if name == "probability" {
                probability = Some(value);
            }
        });
        QueueState {
            dropped: network.observer.dropped[number],
            marked: link.marked(),
            backlog_packets: qdisc.packets(),
            probability,
        }
    };
    network.links().iter().enumerate().map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    /// A UDP packet without payload, of this flow.
    fn packet_of(flow: u32, came: Time) -> Packet {
        let mut bytes = vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0];
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x14, 0x51, 0xc3, 0x50, 0, 8, 0, 0]);
        let headers = Headers::read(&bytes).expect("it is IPv4");
        packet(
            (Link::default(), &bytes, None),
            &headers,
            (flow, false, 0),
            0,
            came,
        )
    }

    #[test]
    fn packets_that_still_wait_follow_those_that_are_settled() {
        let mut watch = Watch {
            dropped: vec![Dropped::default()],
            ..Watch::default()
        };
        let [mut first, second, refused] = [(0, 1), (1, 2), (0, 3)].map(|(flow, ms)| {
            let packet = packet_of(flow, MS(ms));
            watch.on_arrival(0, &packet, MS(ms));
            packet
        });
        watch.on_drop(0, refused, DropReason::Overflow, Duration::ZERO, MS(3));
        watch.on_dequeue(0, &mut first, MS(5));
        let rows = watch.take_rows();
        let fates: Vec<_> = rows.iter().map(|row| (row.flow, row.fate)).collect();
        let overflow = Fate::Dropped(DropReason::Overflow);
        assert_eq!(
            fates,
            [(0, overflow), (0, Fate::Delivered), (1, Fate::Waiting)]
        );
        assert_eq!((rows[2].entered, rows[2].settled), (MS(2), MS(5)));
        assert_eq!(rows[2].bytes, second.payload.bytes.len() as u32 + ETHERNET);
    }
}
