//! A record of every packet's fate at the queues, and of what is captured.

use std::collections::{HashMap, VecDeque};

use sojourn_aqm::{DropReason, Ecn};
use sojourn_experiment::cells;
use sojourn_experiment::model::Hop;
use sojourn_path::Observer;
use sojourn_units::{Duration, Time};

use crate::ip;
use crate::packet::{Packet, arrived};

/// Bytes of Ethernet's header, which a packet counts in a row whatever the link's overhead.
const ETHERNET: u32 = ip::ETHERNET as u32;

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
    /// It left, and was lost on the air.
    Lost,
}

/// A packet at a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// When it entered.
    pub entered: Time,
    /// When its fate was decided; of one that waits, the latest instant that is known.
    pub settled: Time,
    /// How long it was on the air afterwards.
    pub air: Duration,
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
    /// Packets on the air, as those in the queues: when each entered its queue, and when it left it.
    on_air: HashMap<(u8, u32, bool), VecDeque<(Time, Time)>>,
    /// The names of the stations of each cell, with the number of its link.
    pub cells: Vec<(usize, Vec<String>)>,
    /// By queue.
    pub dropped: Vec<Dropped>,
    /// By impairment: packets lost, and packets copied.
    pub impaired: Vec<(Hop, u64, u64)>,
    /// Rows that are not kept, because there are too many.
    pub unrecorded: u64,
    /// The headers of packets, if they are recorded.
    pub capture: Option<Capture>,
}

/// Records the headers of packets as they leave the queues.
#[derive(Debug)]
pub struct Capture {
    /// Appends a row: when a packet left, the number of its queue, its bytes.
    pub note: fn(&mut Vec<u8>, u64, u8, &[u8]),
    /// The rows.
    pub rows: Vec<u8>,
    /// The number under which packets that pass no queue are recorded as they arrive.
    pub others: Option<u8>,
}

impl Capture {
    fn note(&mut self, number: u8, packet: &mut Packet, now: Time) {
        (self.note)(&mut self.rows, now.as_nanos(), number, arrived(packet));
    }
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
                air: Duration::ZERO,
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

    /// A packet has arrived.
    pub fn on_delivery(&mut self, packet: &mut Packet, now: Time) {
        if let Some(capture) = &mut self.capture
            && let Some(number) = capture.others.filter(|_| !packet.payload.captured)
        {
            capture.note(number, packet, now);
        }
    }

    fn note(&mut self, queue: usize, packet: &Packet, fate: Fate, now: Time) {
        self.forget(queue, packet, now);
        self.add(queue, packet, fate, (now, Duration::ZERO));
    }

    /// A packet does not wait any more.
    fn forget(&mut self, queue: usize, packet: &Packet, now: Time) {
        if let Some(waiting) = self.waiting.get_mut(&key(queue, packet)) {
            // One that is refused may not have been told when it entered.
            let entered = |at| waiting.iter().position(|one: &(Time, u32)| one.0 == at);
            let this = entered(packet.enqueued).or_else(|| entered(now));
            this.map(|at| waiting.remove(at));
        }
    }

    /// A packet was on the air until `now`.
    fn land(&mut self, queue: usize, packet: &Packet, fate: Fate, now: Time) {
        let flying = self.on_air.get_mut(&key(queue, packet));
        let left = flying.and_then(|flying| {
            let this = flying.iter().position(|one| one.0 == packet.enqueued)?;
            flying.remove(this)
        });
        let left = left.map_or(now, |(_, left)| left);
        self.add(queue, packet, fate, (left, now - left));
    }

    fn add(&mut self, queue: usize, packet: &Packet, fate: Fate, (settled, air): (Time, Duration)) {
        if self.rows.len() == MOST_ROWS {
            self.unrecorded += 1;
            return;
        }
        let frame = &packet.payload;
        self.rows.push(Row {
            entered: packet.enqueued,
            settled,
            air,
            flow: frame.flow,
            bytes: on_wire(packet),
            queue: queue as u8,
            returning: frame.returning,
            fate,
            refused: matches!(fate, Fate::Dropped(_)) && packet.enqueued == settled,
        });
    }
}

/// The queue, the flow and the direction of a packet.
fn key(queue: usize, packet: &Packet) -> (u8, u32, bool) {
    (queue as u8, packet.payload.flow, packet.payload.returning)
}

fn on_wire(packet: &Packet) -> u32 {
    packet.payload.bytes.len() as u32 + ETHERNET
}

impl Observer<Packet> for Watch {
    fn on_arrival(&mut self, link: usize, packet: &Packet, now: Time) {
        let waiting = self.waiting.entry(key(link, packet)).or_default();
        waiting.push_back((now, on_wire(packet)));
    }

    fn on_dequeue(&mut self, link: usize, packet: &mut Packet, now: Time) {
        self.note(link, packet, left(packet), now);
        if let Some(capture) = &mut self.capture {
            capture.note(link as u8, packet, now);
            packet.payload.captured = true;
        }
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

impl cells::Watch<Packet> for Watch {
    fn on_arrival(&mut self, queue: usize, packet: &Packet, now: Time) {
        Observer::on_arrival(self, queue, packet, now);
    }

    fn on_dequeue(&mut self, queue: usize, packet: &Packet, now: Time) {
        self.forget(queue, packet, now);
        let flying = self.on_air.entry(key(queue, packet)).or_default();
        flying.push_back((packet.enqueued, now));
    }

    fn on_departure(&mut self, queue: usize, packet: &Packet, now: Time) {
        self.land(queue, packet, left(packet), now);
        if let Some(capture) = &mut self.capture {
            capture.note(queue as u8, &mut packet.clone(), now);
        }
    }

    fn on_drop(
        &mut self,
        queue: usize,
        packet: Packet,
        why: DropReason,
        queued: Duration,
        now: Time,
    ) {
        Observer::on_drop(self, queue, packet, why, queued, now);
    }

    fn on_loss(&mut self, queue: usize, packet: Packet, now: Time) {
        self.land(queue, &packet, Fate::Lost, now);
    }
}

/// The fate of a packet that leaves a queue.
fn left(packet: &Packet) -> Fate {
    match packet.ecn {
        Ecn::Ce => Fate::Marked,
        _ => Fate::Delivered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::{Headers, Link};
    use crate::packet::packet;

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

    #[test]
    fn packets_of_a_cell_are_on_the_air_until_they_are_received_or_lost() {
        let mut watch = Watch::default();
        let [received, lost] = [(0, 1), (0, 2)].map(|(flow, ms)| {
            let packet = packet_of(flow, MS(ms));
            cells::Watch::on_arrival(&mut watch, 0, &packet, MS(ms));
            packet
        });
        for (packet, left) in [(&received, 3), (&lost, 4)] {
            cells::Watch::on_dequeue(&mut watch, 0, packet, MS(left));
        }
        cells::Watch::on_departure(&mut watch, 0, &received, MS(7));
        cells::Watch::on_loss(&mut watch, 0, lost, MS(9));
        let rows = watch.take_rows();
        let seen = rows
            .iter()
            .map(|row| (row.entered, row.settled, row.air, row.fate));
        let air = Duration::from_millis;
        let expected = [
            (MS(1), MS(3), air(4), Fate::Delivered),
            (MS(2), MS(4), air(5), Fate::Lost),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    }
}
