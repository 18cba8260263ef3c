//! The fate of each packet, derived from tracepoints.
//!
//! A packet arrives (`net_dev_queue`), is queued (`qdisc_enqueue`; missing if the discipline made room by dropping
//! another packet of the same flow), and leaves (`qdisc_dequeue`) or is freed (`kfree_skb`). Between these events its
//! address identifies it.

use std::collections::HashMap;

use crate::recording::{Fate, PacketRow};

/// A tracepoint's meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A packet of `bytes` arrives at a queue.
    Arrival {
        /// Index of the queue.
        queue: u8,
        /// Its length with the Ethernet header.
        bytes: u32,
    },
    /// The queue accepted it.
    Enqueue,
    /// It leaves.
    Dequeue,
    /// It is freed because of a drop.
    Free(Reason),
}

/// Why the kernel freed a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The algorithm dropped it.
    Aqm,
    /// There was no room.
    Overflow,
    /// The kernel gives no reason.
    Unknown,
}

/// An event of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketEvent {
    /// Time since the run began; negative before it.
    pub time_ns: i64,
    /// The packet's address in the kernel.
    pub packet: u64,
    /// What happened.
    pub event: Event,
}

/// A queued packet.
struct Waiting {
    queue: u8,
    bytes: u32,
    entered_ns: i64,
    label: Label,
    /// The kernel reported that the queue accepted it.
    enqueued: bool,
}

/// The flow of a packet, its direction and its ECN state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Label {
    /// The flow's number.
    pub flow: u32,
    /// True if it was sent by the receiver of the data.
    pub returning: bool,
    /// True if it carries Congestion Experienced.
    pub ce: bool,
}

/// Labels of the packets of one queue, in order of arrival and of departure; empty if they were not observed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Labels {
    /// Labels of packets that arrived.
    pub arrivals: Vec<Label>,
    /// Labels of packets that left.
    pub departures: Vec<Label>,
}

/// Rows of all packets that entered since the run began, in the order in which their fate was decided, and behind them those
/// that still wait at `end_ns`. `events` and the `labels` of each queue are in order of time and complete, including the time
/// before the run.
pub fn settle(events: &[PacketEvent], labels: &[Labels], end_ns: i64) -> Vec<PacketRow> {
    let mut waiting: HashMap<u64, Waiting> = HashMap::new();
    let mut arrived = vec![0; labels.len()];
    let mut left = vec![0; labels.len()];
    // By queue: the last packet that arrived, until the queue's next arrival or departure.
    let mut coming: HashMap<u8, u64> = HashMap::new();
    let mut rows = Vec::new();
    for PacketEvent {
        time_ns,
        packet,
        event,
    } in events.iter().take_while(|event| event.time_ns < end_ns)
    {
        let time_ns = *time_ns;
        match *event {
            Event::Arrival { queue, bytes } => {
                let label = next(
                    &mut arrived,
                    queue,
                    labels.get(usize::from(queue)).map(|of| &of.arrivals),
                );
                let new = Waiting {
                    queue,
                    bytes,
                    entered_ns: time_ns,
                    label: label.unwrap_or_default(),
                    enqueued: false,
                };
                coming.insert(queue, *packet);
                // The address is in use again, so the packet that had it was freed without an event.
                if let Some(gone) = waiting.insert(*packet, new) {
                    rows.extend(gone.row(time_ns, Fate::Dropped));
                }
            }
            Event::Enqueue => {
                if let Some(packet) = waiting.get_mut(packet) {
                    packet.entered_ns = time_ns;
                    packet.enqueued = true;
                }
            }
            Event::Dequeue => {
                let Some(mut packet) = waiting.remove(packet) else {
                    continue;
                };
                let queue = packet.queue;
                coming.remove(&queue);
                let label = next(
                    &mut left,
                    queue,
                    labels.get(usize::from(queue)).map(|of| &of.departures),
                );
                let fate = match label {
                    Some(label) if label.ce => Fate::Marked,
                    _ => Fate::Delivered,
                };
                packet.label = label.unwrap_or(packet.label);
                rows.extend(packet.row(time_ns, fate));
            }
            Event::Free(reason) => {
                if let Some(freed) = waiting.remove(packet) {
                    let fate = match reason {
                        Reason::Aqm => Fate::DroppedAqm,
                        Reason::Overflow => Fate::DroppedOverflow,
                        Reason::Unknown => Fate::Dropped,
                    };
                    // If a queue refuses a packet, the kernel frees it before the next event of that queue.
                    let refused = !freed.enqueued && coming.get(&freed.queue) == Some(packet);
                    let row = freed.row(time_ns, fate);
                    rows.extend(row.map(|row| PacketRow { refused, ..row }));
                }
            }
        }
    }
    let still = waiting.values().filter(|one| one.enqueued);
    let mut still: Vec<PacketRow> = still
        .filter_map(|one| one.row(end_ns, Fate::Waiting))
        .collect();
    still.sort_unstable_by_key(|row| (row.entered_ns, row.queue, row.flow, row.returning));
    rows.extend(still);
    rows
}

fn next(counts: &mut [usize], queue: u8, labels: Option<&Vec<Label>>) -> Option<Label> {
    let count = counts.get_mut(usize::from(queue))?;
    *count += 1;
    labels?.get(*count - 1).copied()
}

impl Waiting {
    /// The row of a packet; `None` if it entered before the run.
    fn row(&self, time_ns: i64, fate: Fate) -> Option<PacketRow> {
        Some(PacketRow {
            entered_ns: u64::try_from(self.entered_ns).ok()?,
            settled_ns: u64::try_from(time_ns).ok()?,
            air_us: 0,
            flow: self.label.flow,
            bytes: self.bytes,
            queue: self.queue,
            returning: self.label.returning,
            fate,
            refused: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN: Event = Event::Arrival {
        queue: 0,
        bytes: 1514,
    };

    fn at(time_ns: i64, packet: u64, event: Event) -> PacketEvent {
        PacketEvent {
            time_ns,
            packet,
            event,
        }
    }

    fn fates(events: &[PacketEvent], labels: &[Labels]) -> Vec<(u64, u64, Fate)> {
        settle(events, labels, 1000)
            .iter()
            .map(|row| (row.entered_ns, row.settled_ns, row.fate))
            .collect()
    }

    #[test]
    fn a_sojourn_is_from_enqueue_to_dequeue() {
        let events = [
            at(10, 1, DOWN),
            at(12, 1, Event::Enqueue),
            at(50, 1, Event::Dequeue),
        ];
        assert_eq!(fates(&events, &[]), [(12, 50, Fate::Delivered)]);
    }

    #[test]
    fn a_packet_without_an_enqueue_event_counts_from_its_arrival() {
        assert_eq!(
            fates(&[at(10, 1, DOWN), at(50, 1, Event::Dequeue)], &[]),
            [(10, 50, Fate::Delivered)]
        );
    }

    #[test]
    fn a_freed_packet_was_dropped_and_its_address_may_come_back() {
        let events = [
            at(10, 1, DOWN),
            at(11, 1, Event::Free(Reason::Unknown)),
            at(20, 1, DOWN),
            at(30, 1, DOWN),
            at(40, 1, Event::Free(Reason::Overflow)),
            at(41, 1, Event::Free(Reason::Aqm)),
        ];
        assert_eq!(
            fates(&events, &[]),
            [
                (10, 11, Fate::Dropped),
                (20, 30, Fate::Dropped),
                (30, 40, Fate::DroppedOverflow)
            ]
        );
    }

    #[test]
    fn a_packet_that_is_queued_at_the_end_waits() {
        let events = [
            at(10, 1, DOWN),
            at(11, 1, Event::Enqueue),
            at(20, 2, DOWN),
            at(21, 2, Event::Enqueue),
            at(30, 1, Event::Dequeue),
            at(2000, 2, Event::Dequeue),
        ];
        assert_eq!(
            fates(&events, &[]),
            [(11, 30, Fate::Delivered), (21, 1000, Fate::Waiting)]
        );
    }

    /// A full queue refuses packet 2. Packet 3 makes room by an unreported drop in its own flow, and is dropped later.
    #[test]
    fn a_packet_freed_before_anything_else_happens_was_refused() {
        let events = [
            at(10, 1, DOWN),
            at(11, 1, Event::Enqueue),
            at(20, 2, DOWN),
            at(21, 2, Event::Free(Reason::Unknown)),
            at(30, 3, DOWN),
            at(31, 1, Event::Free(Reason::Unknown)),
            at(40, 4, DOWN),
            at(41, 3, Event::Free(Reason::Unknown)),
            at(50, 4, Event::Dequeue),
        ];
        let rows = settle(&events, &[], 1000);
        let refused: Vec<(u64, bool)> = rows
            .iter()
            .map(|row| (row.settled_ns, row.refused))
            .collect();
        assert_eq!(refused, [(21, true), (31, false), (41, false), (50, false)]);
    }

    #[test]
    fn a_packet_that_is_still_queued_at_the_end_has_no_row() {
        let events = [at(10, 1, DOWN), at(1000, 1, Event::Dequeue)];
        assert_eq!(fates(&events, &[]), []);
    }

    #[test]
    fn a_packet_from_before_the_run_has_a_label_but_no_row() {
        let label = |flow| Label {
            flow,
            ..Label::default()
        };
        let labels = Labels {
            arrivals: vec![label(7), label(8)],
            departures: vec![label(7), label(8)],
        };
        let events = [
            at(-20, 1, DOWN),
            at(-19, 1, Event::Dequeue),
            at(10, 1, DOWN),
            at(11, 1, Event::Dequeue),
        ];
        let rows = settle(&events, &[labels], 1000);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].entered_ns, rows[0].flow), (10, 8));
    }

    #[test]
    fn labels_follow_the_order_of_arrival_and_of_departure() {
        let label = |flow, ce| Label {
            flow,
            returning: false,
            ce,
        };
        let labels = Labels {
            arrivals: vec![label(7, false), label(8, false)],
            departures: vec![label(8, true)],
        };
        let events = [
            at(1, 1, DOWN),
            at(2, 2, DOWN),
            at(3, 2, Event::Dequeue),
            at(4, 1, Event::Free(Reason::Aqm)),
        ];
        let rows = settle(&events, &[labels], 1000);
        assert_eq!((rows[0].flow, rows[0].fate), (8, Fate::Marked));
        assert_eq!((rows[1].flow, rows[1].fate), (7, Fate::DroppedAqm));
    }
}
