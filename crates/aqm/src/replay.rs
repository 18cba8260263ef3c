//! Replays a recorded queue's arrivals and departures through a discipline, decision by decision.
//!
//! [`read`] reads a recording. [`replay`] tests whether a discipline sends the same packets at the same times.
//! [`follow`] keeps the queue as recorded, whatever the algorithm decides, and shows the algorithm's state at chosen
//! times; it is meant for algorithms that drop arrivals.
//!
//! A recording made with Linux's tracepoints has no row for a packet that was dropped on arrival, so only disciplines
//! that drop at the head can match it packet by packet. The discipline's clock starts at the first row.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

use crate::aqm::{Aqm, Backlog};
use crate::environment::Environment;
use crate::packet::{Ecn, FlowKey, Packet};
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
        /// When, in microseconds.
        t_us: u64,
        /// Its size on the link in bytes.
        bytes: u32,
    },
    /// A packet left the queue.
    Dequeue {
        /// The packet.
        id: u64,
        /// When, in microseconds.
        t_us: u64,
    },
}

impl Event {
    /// When it happened.
    pub const fn time(self) -> Time {
        match self {
            Self::Enqueue { t_us, .. } | Self::Dequeue { t_us, .. } => {
                Time::from_nanos(t_us.saturating_mul(1_000))
            }
        }
    }
}

/// A packet of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Its id.
    pub id: u64,
    bytes: u32,
    enqueued: Time,
}

impl Packet for Recorded {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ce(&mut self) {}
    fn enqueued(&self) -> Time {
        self.enqueued
    }
    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }
    fn flow(&self) -> FlowKey {
        FlowKey::default()
    }
}

/// The result of comparing a discipline with a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Packets that entered the queue.
    pub enqueued: u64,
    /// Packets that left the queue in the recording.
    pub dequeued: u64,
    /// Packets that the recorded queue dropped: those that never left although a later one did.
    pub dropped_recorded: u64,
    /// Packets that the discipline dropped.
    pub dropped_ours: u64,
    /// True if the discipline sent the recorded packet at every departure, and dropped as many packets.
    pub agree: bool,
    /// The first departure of another packet.
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
    let mut entered = Vec::new();
    let (mut dequeued, mut dropped_ours) = (0, 0);
    let mut newest_departed = None;
    let mut first_divergence = None;
    let time_of = clock(events);
    for (row, &event) in (0..).zip(events) {
        let now = time_of(&event);
        while let Some(due) = qdisc.next_timer().filter(|due| *due <= now) {
            qdisc.on_timer(due, &mut env);
        }
        match event {
            Event::Enqueue { id, bytes, .. } => {
                entered.push(id);
                let packet = Recorded {
                    id,
                    bytes,
                    enqueued: now,
                };
                qdisc.enqueue(packet, now, &mut env);
            }
            Event::Dequeue { id, t_us } => {
                dequeued += 1;
                newest_departed = newest_departed.max(Some(id));
                let got = qdisc.dequeue(now, &mut env).map(|packet| packet.id);
                if got != Some(id) && first_divergence.is_none() {
                    first_divergence = Some(Divergence {
                        event: row,
                        t_us,
                        expected: id,
                        got,
                    });
                }
            }
        }
        dropped_ours += env.take_dropped().count() as u64;
    }
    let left_or_lost = entered.partition_point(|&id| Some(id) <= newest_departed);
    let dropped_recorded = (left_or_lost as u64).saturating_sub(dequeued);
    Outcome {
        enqueued: entered.len() as u64,
        dequeued,
        dropped_recorded,
        dropped_ours,
        agree: first_divergence.is_none() && dropped_recorded == dropped_ours,
        first_divergence,
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
            Event::Enqueue { id, bytes, .. } => {
                let packet = Recorded {
                    id,
                    bytes,
                    enqueued: now,
                };
                aqm.on_enqueue(&packet, backlog, now, &mut env);
                queue.push_back(packet);
                account(&mut backlog, &queue, i64::from(bytes));
            }
            // Packets ahead of the one that left were dropped at the head.
            Event::Dequeue { id, .. } => {
                while let Some(packet) = queue.pop_front() {
                    account(&mut backlog, &queue, -i64::from(packet.bytes));
                    aqm.on_dequeue(&packet, backlog, now, &mut env);
                    if packet.id == id {
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
