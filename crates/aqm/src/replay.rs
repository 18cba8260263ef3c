//! Replays a recorded queue's arrivals and departures through a discipline, decision by decision.
//!
//! [`read`] reads a recording. [`replay`] tests whether a discipline sends the same packets at the same times.
//! [`follow`] keeps the queue as recorded, whatever the algorithm decides, and shows the algorithm's state at chosen
//! times; it is meant for algorithms that drop arrivals.
//!
//! A recording made with Linux's tracepoints has no row for a packet that was dropped on arrival. So only disciplines
//! that drop at the head, or from the longest queue, can match it packet by packet.
//!
//! If the rows have flows, the discipline uses the flow's number in place of a hash. If they have ECN fields, it may mark;
//! marks are compared if the departures have them. The discipline's clock starts at the first row.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

use crate::aqm::{Aqm, Backlog};
use crate::datagram::Datagram;
use crate::environment::Environment;
use crate::packet::{Ecn, FlowKey};
use crate::qdisc::Qdisc;

mod recording;

pub use recording::{RecordingError, read};

/// One row of a recording. The ids of arrivals increase; times never decrease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A packet entered the queue.
    Enqueue {
        /// The packet.
        id: u64,
        /// When.
        at: Time,
        /// Its size on the link in bytes.
        bytes: u32,
        /// Its flow, which is also its queue in a discipline that hashes flows. `None` if all packets belong to one flow.
        flow: Option<u32>,
        /// Its ECN field on arrival.
        ecn: Ecn,
    },
    /// A packet left the queue.
    Dequeue {
        /// The packet.
        id: u64,
        /// When.
        at: Time,
        /// Whether it left with CE; `None` if the recording does not tell.
        ce: Option<bool>,
    },
}

impl Event {
    /// When it happened.
    pub const fn time(self) -> Time {
        match self {
            Self::Enqueue { at, .. } | Self::Dequeue { at, .. } => at,
        }
    }
}

/// A packet of a recording. Its payload is its id.
pub type Recorded = Datagram<u64>;

/// The packet of an arrival.
///
/// # Panics
/// The event is a departure.
fn arriving(event: Event, now: Time) -> Recorded {
    let Event::Enqueue {
        id,
        bytes,
        flow,
        ecn,
        ..
    } = event
    else {
        unreachable!("only arrivals bring packets");
    };
    let key = FlowKey {
        source: flow.unwrap_or(0),
        ..FlowKey::default()
    };
    Recorded {
        bucket: flow,
        enqueued: now,
        ..Datagram::new(id, bytes).with_ecn(ecn).with_flow(key)
    }
}

/// The result of comparing a discipline with a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Packets that entered the queue.
    pub enqueued: u64,
    /// Packets that left the queue in the recording.
    pub dequeued: u64,
    /// Packets that the recorded queue dropped: those that never left although a later one of their flow did.
    pub dropped_recorded: u64,
    /// Packets that the discipline dropped. Packets whose fate is not in the recording are not counted.
    pub dropped_ours: u64,
    /// Packets that left with CE in the recording, and from the discipline; `None` if the recording does not tell.
    pub marked: Option<(u64, u64)>,
    /// True if the discipline sent the recorded packet with the recorded mark at every departure, and dropped as many
    /// packets as the recorded queue.
    pub agree: bool,
    /// The first departure with a different packet or a different mark.
    pub first_divergence: Option<Divergence>,
}

/// A departure that differs from the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The row of the recording, counted from zero.
    pub event: u64,
    /// When, in microseconds.
    pub t_us: u64,
    /// The packet that left in the recording.
    pub expected: u64,
    /// The packet that the discipline sent; `None` if it had none.
    pub got: Option<u64>,
    /// Whether the packet left with CE in the recording, and from the discipline, if that is the difference.
    pub ce: Option<(bool, bool)>,
}

/// Returns the time of an event since the first row.
fn clock(events: &[Event]) -> impl Fn(&Event) -> Time + use<> {
    let origin = events.first().map_or(Time::ZERO, |first| first.time());
    move |event| Time::ZERO + event.time().saturating_since(origin)
}

/// The time from the first row of a recording to its last.
pub fn length(events: &[Event]) -> Duration {
    let last = events.last().map_or(Time::ZERO, clock(events));
    last.saturating_since(Time::ZERO)
}

/// Drives a discipline with the recorded arrivals and requests a packet at each recorded departure. `seed` is for
/// disciplines that draw random numbers.
pub fn replay(qdisc: &mut dyn Qdisc<Recorded>, events: &[Event], seed: u64) -> Outcome {
    let mut env = Environment::new(seed);
    let mut lost = Losses::default();
    let mut dropped: Vec<Recorded> = Vec::new();
    let mut marked = None;
    let mut first_divergence = None;
    let time_of = clock(events);
    for (row, &event) in (0..).zip(events) {
        let now = time_of(&event);
        while let Some(due) = qdisc.next_timer().filter(|due| *due <= now) {
            qdisc.on_timer(due, &mut env);
        }
        match event {
            Event::Enqueue { .. } => {
                let packet = arriving(event, now);
                lost.enter(&packet);
                qdisc.enqueue(packet, now, &mut env);
            }
            Event::Dequeue { id, at, ce } => {
                lost.leave(id);
                let sent = qdisc.dequeue(now, &mut env);
                let got = sent.map(|packet| packet.payload);
                let has_ce = sent.is_some_and(|packet| packet.ecn == Ecn::Ce);
                if let Some(recorded) = ce {
                    let (theirs, ours) = marked.get_or_insert((0, 0));
                    *theirs += u64::from(recorded);
                    *ours += u64::from(has_ce);
                }
                let ce = ce
                    .map(|recorded| (recorded, has_ce))
                    .filter(|(recorded, has)| got == Some(id) && recorded != has);
                if (got != Some(id) || ce.is_some()) && first_divergence.is_none() {
                    first_divergence = Some(Divergence {
                        event: row,
                        t_us: at.as_nanos() / 1_000,
                        expected: id,
                        got,
                        ce,
                    });
                }
            }
        }
        dropped.extend(env.take_dropped().map(|(packet, _)| packet));
    }
    let dropped_recorded = lost.recorded();
    let dropped_ours = dropped
        .iter()
        .filter(|packet| lost.is_known(packet))
        .count() as u64;
    Outcome {
        enqueued: lost.entered.len() as u64,
        dequeued: lost.departed,
        dropped_recorded,
        dropped_ours,
        marked,
        agree: first_divergence.is_none() && dropped_recorded == dropped_ours,
        first_divergence,
    }
}

/// The fate of the packets of a recording. A packet was dropped if it never left although a later one of its flow did.
/// The fate of packets behind the last departure of their flow is unknown.
#[derive(Default)]
struct Losses {
    /// Id and flow of each packet, in order.
    entered: Vec<(u64, Option<u32>)>,
    departed: u64,
    /// The newest packet of each flow that left.
    newest: BTreeMap<Option<u32>, u64>,
}

impl Losses {
    fn enter(&mut self, packet: &Recorded) {
        self.entered.push((packet.payload, packet.bucket));
    }

    fn leave(&mut self, id: u64) {
        self.departed += 1;
        if let Ok(place) = self.entered.binary_search_by_key(&id, |&(known, _)| known) {
            let newest = self.newest.entry(self.entered[place].1).or_insert(id);
            *newest = id.max(*newest);
        }
    }

    /// True if the recording tells whether the packet was dropped.
    fn is_known(&self, packet: &Recorded) -> bool {
        let newest = self.newest.get(&packet.bucket);
        newest.is_some_and(|newest| packet.payload <= *newest)
    }

    /// Packets that the recorded queue dropped.
    fn recorded(&self) -> u64 {
        let known = self
            .entered
            .iter()
            .filter(|(id, flow)| self.newest.get(flow).is_some_and(|newest| id <= newest));
        (known.count() as u64).saturating_sub(self.departed)
    }
}

/// Shows an algorithm every packet that entered and left a recorded FIFO, ignoring its verdicts. Calls `observe` with
/// it at each of `instants`, which increase and count from the first row.
pub fn follow(
    aqm: &mut dyn Aqm<Recorded>,
    events: &[Event],
    instants: &[Time],
    observe: &mut dyn FnMut(Time, &dyn Aqm<Recorded>),
) {
    let mut env = Environment::new(0);
    let mut queue: VecDeque<Recorded> = VecDeque::new();
    let mut backlog = Backlog::default();
    let mut instants = instants.iter().copied().peekable();
    let time_of = clock(events);
    for &event in events {
        let now = time_of(&event);
        loop {
            let timer = aqm.next_timer().filter(|due| *due <= now);
            let instant = instants.peek().copied().filter(|at| *at <= now);
            match (timer, instant) {
                (Some(due), at) if at.is_none_or(|at| due <= at) => aqm.on_timer(backlog, due),
                (_, Some(at)) => {
                    observe(at, aqm);
                    instants.next();
                }
                _ => break,
            }
        }
        match event {
            Event::Enqueue { bytes, .. } => {
                let packet = arriving(event, now);
                aqm.on_enqueue(&packet, backlog, now, &mut env);
                queue.push_back(packet);
                account(&mut backlog, &queue, i64::from(bytes));
            }
            // Packets ahead of the one that left were dropped at the head.
            Event::Dequeue { id, .. } => {
                while let Some(packet) = queue.pop_front() {
                    account(&mut backlog, &queue, -i64::from(packet.bytes));
                    aqm.on_dequeue(&packet, backlog, now, &mut env);
                    if packet.payload == id {
                        break;
                    }
                }
            }
        }
    }
    for at in instants {
        observe(at, aqm);
    }
}

fn account(backlog: &mut Backlog, queue: &VecDeque<Recorded>, change: i64) {
    backlog.packets = queue.len() as u64;
    backlog.bytes = backlog.bytes.wrapping_add_signed(change);
    backlog.qdisc_bytes = backlog.bytes;
}
