//! SFQ: stochastic fairness queueing (McKenney 1990), a queue per hash of the flow, served in turn. When the buffer is
//! full, the longest queue loses a packet.
//!
//! Two variants. McKenney's serves one packet per turn and lets a queue grow to the whole buffer. Linux's `sch_sfq`
//! (tc-sfq(8)) serves a quantum of bytes per turn, and limits the number of queues (128) and their length (127 packets).
//! A key that is given applies to both. Linux before 6.1.129 counted bytes in units of 8.
//!
//! Unlike [`crate::fq`] there is no priority for sparse flows: a queue that becomes non-empty joins the end of the
//! round. Each queue can have an [`Aqm`].
//!
//! Departure from Linux: at a perturbation each bucket keeps the state of its AQM; Linux computes the averages of RED
//! anew from the moved packets.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

use crate::aqm::Aqm;
use crate::classify::{Classifier, Hashing};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::fifo::DropTail;
use crate::fq::require_quantum;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::list::{Link, Linked, List};
use crate::packet::Packet;
use crate::parameters::Parameters as _;
use crate::pool::{Pool, Queue, Scope, earliest};
use crate::qdisc::Qdisc;
use crate::settings::Settings;
use crate::verdict::{DropReason, Verdict};
use crate::{choice, parameters};

mod lengths;

use lengths::Lengths;

/// Most non-empty queues in Linux (`SFQ_DEFAULT_FLOWS`).
const LINUX_FLOWS: u64 = 128;
/// Linux's longest queue in packets (`SFQ_MAX_DEPTH`), and its default limit.
const LINUX_DEPTH: u64 = 127;

/// The parameters of SFQ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Buckets of the hash, with a queue each. Default 1024.
    pub divisor: u32,
    /// The most non-empty queues; a packet of a further flow is dropped.
    pub flows: u32,
    /// The maximum length of a queue in packets.
    pub depth: u32,
    /// The most bytes in a queue; `None` if only `depth` limits it.
    pub flow_limit: Option<u64>,
    /// The limit for all queues together.
    pub limit: Limit,
    /// How much a queue may send per turn.
    pub turn: Turn,
    /// The interval between new salts of the hash; `None` for never.
    pub perturb: Option<Duration>,
    /// The end at which a queue drops a packet.
    pub end: End,
    /// Give a queue a new AQM whenever it becomes non-empty, as Linux does, instead of keeping its state.
    pub renew_aqm: bool,
}

/// How much a queue may send per turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// One packet (McKenney).
    Packet,
    /// A number of bytes.
    Bytes(u32),
}

/// An end of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The oldest packet.
    Head,
    /// The newest packet.
    Tail,
}

impl Turn {
    fn credit(self) -> i64 {
        match self {
            Self::Packet => 1,
            Self::Bytes(quantum) => i64::from(quantum),
        }
    }

    fn cost(self, bytes: u32) -> i64 {
        match self {
            Self::Packet => 1,
            Self::Bytes(_) => i64::from(bytes),
        }
    }
}

struct Bucket<A> {
    /// Its neighbours in the round.
    link: Link,
    allot: i64,
    queue: Queue,
    aqm: A,
}

impl<A> Linked for Bucket<A> {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// Stochastic fairness queueing with an [`Aqm`] on each queue.
pub struct Sfq<P, A> {
    config: Config,
    classifier: Classifier,
    pool: Pool<P>,
    buckets: Vec<Bucket<A>>,
    /// The non-empty buckets, the next in turn first.
    round: List,
    active: u32,
    lengths: Lengths,
    new_aqm: Box<dyn Fn() -> A + Send>,
    next_perturbation: Option<Time>,
    /// A lower bound of all AQMs' timers.
    aqm_timer: Option<Time>,
}

impl<P: Packet, A: Aqm<P>> Sfq<P, A> {
    /// An empty discipline. Calls `new_aqm` for the AQM of each queue.
    pub fn new(config: Config, new_aqm: impl Fn() -> A + Send + 'static) -> Self {
        let buckets: Vec<Bucket<A>> = (0..config.divisor.max(1))
            .map(|_| Bucket {
                link: Link::ALONE,
                allot: 0,
                queue: Queue::EMPTY,
                aqm: new_aqm(),
            })
            .collect();
        let queues = buckets.len() as u32;
        let mut sfq = Self {
            config,
            classifier: Classifier::new(Hashing::Plain, queues),
            pool: Pool::new(),
            buckets,
            round: List::EMPTY,
            active: 0,
            lengths: Lengths::new(queues),
            new_aqm: Box::new(new_aqm),
            next_perturbation: config.perturb.map(|period| Time::ZERO + period),
            aqm_timer: None,
        };
        sfq.find_aqm_timer();
        sfq
    }

    fn find_aqm_timer(&mut self) {
        let timers = self
            .buckets
            .iter()
            .filter_map(|bucket| bucket.aqm.next_timer());
        self.aqm_timer = timers.min();
    }

    fn note_timer(&mut self, at: u32) {
        let timer = self.buckets[at as usize].aqm.next_timer();
        self.aqm_timer = earliest(self.aqm_timer, timer);
    }

    fn bucket_of(&mut self, packet: &P, env: &mut Environment<P>) -> u32 {
        self.classifier.queue_of(packet, |_| true, env)
    }

    /// True if the queue must drop a packet before one of `bytes` can be added.
    fn is_full(&self, at: u32, bytes: u32) -> bool {
        let queue = &self.buckets[at as usize].queue;
        let limit = self.config.flow_limit.unwrap_or(u64::MAX);
        queue.packets() >= self.config.depth || queue.bytes() + u64::from(bytes) > limit
    }

    /// True if the queue is empty and no further queue may become non-empty.
    fn is_shut_out(&self, at: u32) -> bool {
        self.buckets[at as usize].queue.is_empty() && self.active >= self.config.flows
    }

    fn push(&mut self, at: u32, packet: P) {
        let bucket = &mut self.buckets[at as usize];
        self.pool.push_back(&mut bucket.queue, packet);
        let length = bucket.queue.packets();
        if length == 1 {
            bucket.allot = self.config.turn.credit();
            self.round.push_back(&mut self.buckets, at);
            self.active += 1;
        }
        self.lengths.change(at, length - 1, length);
    }

    /// Updates the round and the lengths after a queue of `before` packets has lost some.
    fn note_loss(&mut self, at: u32, before: u32) {
        let length = self.buckets[at as usize].queue.packets();
        self.lengths.change(at, before, length);
        if before > 0 && length == 0 {
            self.round.remove(&mut self.buckets, at);
            self.active -= 1;
        }
    }

    fn drop_one(&mut self, at: u32, reason: DropReason, env: &mut Environment<P>) {
        let queue = &mut self.buckets[at as usize].queue;
        let before = queue.packets();
        let packet = match self.config.end {
            End::Head => self.pool.pop_front(queue),
            End::Tail => self.pool.pop_back(queue),
        };
        if let Some(packet) = packet {
            env.drop(packet, reason);
        }
        self.note_loss(at, before);
    }

    fn is_over_limit(&self) -> bool {
        match self.config.limit {
            Limit::Packets(limit) => self.pool.packets() > limit,
            Limit::Bytes(limit) => self.pool.bytes() > limit,
        }
    }

    /// Buffer stealing (McKenney 1990): the longest queue drops a packet. If none has more than one packet, the next
    /// in turn does (Linux).
    fn steal(&mut self, now: Time, env: &mut Environment<P>) {
        let victim = if self.lengths.greatest() > 1 {
            self.lengths.longest()
        } else {
            self.round.front()
        };
        if let Some(at) = victim {
            self.drop_one(at, DropReason::Overflow, env);
            let bucket = &mut self.buckets[at as usize];
            let backlog = self.pool.backlog(&bucket.queue, Scope::Queue);
            match self.config.end {
                End::Head => bucket.aqm.on_head_drops(1),
                End::Tail => bucket.aqm.on_overflow(backlog, now),
            }
        }
    }

    /// Marks the packet whose mark arrives soonest: the one at the head if heads are dropped too.
    fn mark(&mut self, at: u32, packet: &mut P, env: &mut Environment<P>) {
        let queue = &mut self.buckets[at as usize].queue;
        let head_is_capable = queue
            .front()
            .and_then(|head| self.pool.get(head))
            .is_some_and(|head| head.ecn().is_capable());
        if self.config.end == End::Head && head_is_capable {
            if let Some(mut head) = self.pool.pop_front(queue) {
                env.mark(&mut head);
                self.pool.push_front(queue, head);
            }
        } else {
            env.mark(packet);
        }
    }

    /// Moves all packets to new queues with a new salt. The packets of a flow keep their order.
    fn rehash(&mut self, env: &mut Environment<P>) {
        self.classifier.perturb();
        let mut packets = Vec::with_capacity(self.pool.packets() as usize);
        for at in 0..self.buckets.len() as u32 {
            let queue = &mut self.buckets[at as usize].queue;
            let before = queue.packets();
            while let Some(packet) = self.pool.pop_front(queue) {
                packets.push(packet);
            }
            self.note_loss(at, before);
        }
        for packet in packets {
            let at = self.bucket_of(&packet, env);
            if self.is_shut_out(at) || self.is_full(at, packet.bytes()) {
                env.drop(packet, DropReason::Overflow);
            } else {
                self.push(at, packet);
            }
        }
    }
}

impl<P: Packet, A: Aqm<P>> Qdisc<P> for Sfq<P, A> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        let at = self.bucket_of(&packet, env);
        if self.is_shut_out(at) {
            return env.drop(packet, DropReason::Overflow);
        }
        let bucket = &mut self.buckets[at as usize];
        if self.config.renew_aqm && bucket.queue.is_empty() {
            bucket.aqm = (self.new_aqm)();
        }
        let backlog = self.pool.backlog(&bucket.queue, Scope::Queue);
        let verdict = bucket.aqm.on_enqueue(&packet, backlog, now, env);
        let lost = match verdict.for_packet(&packet) {
            Verdict::Drop(reason) => Some(reason),
            _ if self.is_full(at, packet.bytes()) => Some(DropReason::Overflow),
            Verdict::Mark => {
                self.mark(at, &mut packet, env);
                None
            }
            Verdict::Pass => None,
        };
        if let Some(reason) = lost {
            self.note_timer(at);
            if reason == DropReason::Overflow {
                self.buckets[at as usize].aqm.on_overflow(backlog, now);
            }
            let fits = u64::from(packet.bytes()) <= self.config.flow_limit.unwrap_or(u64::MAX);
            if self.config.end == End::Tail || backlog.packets == 0 || !fits {
                return env.drop(packet, reason);
            }
            self.drop_one(at, reason, env);
            // Removing a small packet at the head may not make enough room for a large one.
            while self.is_full(at, packet.bytes()) {
                self.drop_one(at, DropReason::Overflow, env);
            }
        }
        self.push(at, packet);
        self.note_timer(at);
        while self.is_over_limit() && self.pool.packets() > 0 {
            self.steal(now, env);
        }
    }

    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        loop {
            let at = self.round.front()?;
            let bucket = &mut self.buckets[at as usize];
            if bucket.allot <= 0 {
                bucket.allot += self.config.turn.credit();
                self.round.remove(&mut self.buckets, at);
                self.round.push_back(&mut self.buckets, at);
                continue;
            }
            let before = bucket.queue.packets();
            let served = self.pool.serve(
                &mut bucket.queue,
                &mut bucket.aqm,
                Scope::Queue,
                now,
                env,
                |_| {},
            );
            if let Some(packet) = &served {
                bucket.allot -= self.config.turn.cost(packet.bytes());
            }
            self.note_loss(at, before);
            self.note_timer(at);
            if served.is_some() {
                return served;
            }
        }
    }

    fn packets(&self) -> u64 {
        self.pool.packets()
    }

    fn bytes(&self) -> u64 {
        self.pool.bytes()
    }

    fn next_timer(&self) -> Option<Time> {
        earliest(self.next_perturbation, self.aqm_timer)
    }

    fn on_timer(&mut self, now: Time, env: &mut Environment<P>) {
        if self.next_perturbation.is_some_and(|due| due <= now) {
            self.rehash(env);
            self.next_perturbation = self.config.perturb.map(|period| now + period);
        }
        if self.aqm_timer.is_some_and(|due| due <= now) {
            for bucket in &mut self.buckets {
                if bucket.aqm.next_timer().is_some_and(|due| due <= now) {
                    let backlog = self.pool.backlog(&bucket.queue, Scope::Queue);
                    bucket.aqm.on_timer(backlog, now);
                }
            }
            self.find_aqm_timer();
        }
    }

    /// The number of queues with packets, and the state of the AQM of the longest.
    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("active_flows", f64::from(self.active));
        if let Some(at) = self.lengths.longest() {
            self.buckets[at as usize].aqm.state(visit);
        }
    }
}

parameters! {
    /// SFQ's keys except `variant`.
    pub(crate) struct Parameters {
        /// buckets of the hash, 1 to 65536
        divisor: u64,
        /// maximum number of non-empty queues
        flows: Option<u64> = "divisor; linux: 128",
        /// maximum length of a queue in packets
        depth: Option<u64> as Packets = "limit; linux: 127 packets",
        /// bytes that a queue may send per turn
        quantum: Option<u64> as Bytes = "one packet; linux: one frame",
        /// interval between new salts of the hash; 0 ms: never
        perturb: Duration,
        /// drop the oldest packet of a queue instead of the newest
        headdrop: bool,
    }
}

pub(crate) const DEFAULT: Parameters = Parameters {
    divisor: 1024,
    flows: None,
    depth: None,
    quantum: None,
    perturb: Duration::ZERO,
    headdrop: false,
};

choice! {
    /// Which SFQ to follow.
    pub enum Variant {
        /// McKenney's.
        McKenney = "mckenney1990",
        /// Linux's `sch_sfq`.
        Linux = "linux",
    }
}

parameters! {
    /// The additional key of SFQ without an AQM.
    struct Alone {
        /// one packet per turn with the buffer as the only limit, or Linux's sch_sfq
        variant: Variant,
    }
}

const ALONE: Alone = Alone {
    variant: Variant::McKenney,
};

/// Reads SFQ's keys.
///
/// # Errors
/// A number is out of range.
pub(crate) fn config(settings: &Settings, variant: Variant) -> Result<Config, SettingError> {
    let linux = variant == Variant::Linux;
    let given = DEFAULT.given(settings)?;
    let (most_flows, most_depth) = match variant {
        Variant::Linux => (LINUX_FLOWS, LINUX_DEPTH),
        Variant::McKenney => (given.divisor, u64::from(u32::MAX)),
    };
    let flows = given.flows.unwrap_or(most_flows);
    let depth = given.depth.unwrap_or(most_depth);
    let quantum = given.quantum.unwrap_or(settings.mtu.into());
    require_range("divisor", given.divisor, 65_536)?;
    require_range("flows", flows, 65_536)?;
    require_range("depth", depth, most_depth)?;
    require_quantum(quantum)?;
    let limit = settings.limit_or(Limit::Packets(if linux { LINUX_DEPTH } else { 1000 }));
    if linux && !given.divisor.is_power_of_two() {
        let message = format!("got {}; must be a power of two, as in Linux", given.divisor);
        return Err(SettingError::new("divisor", message));
    }
    if linux && limit == Limit::Packets(1) {
        let message =
            "got \"1 packets\"; must be at least \"2 packets\", as in Linux since 6.1.129";
        return Err(SettingError::new("limit", message));
    }
    let used = Parameters {
        flows: Some(flows),
        // Only the limit bounds McKenney's queues, and a turn is one packet of any size.
        depth: given.depth.or(linux.then_some(depth)),
        quantum: given.quantum.or(linux.then_some(quantum)),
        ..given
    };
    used.note(settings);
    Ok(Config {
        divisor: given.divisor as u32,
        flows: flows as u32,
        depth: depth as u32,
        flow_limit: None,
        limit,
        turn: match (variant, used.quantum) {
            (_, Some(quantum)) => Turn::Bytes(quantum as u32),
            (_, None) => Turn::Packet,
        },
        perturb: (!given.perturb.is_zero()).then_some(given.perturb),
        end: if given.headdrop { End::Head } else { End::Tail },
        renew_aqm: false,
    })
}

fn require_range(key: &'static str, given: u64, most: u64) -> Result<(), SettingError> {
    if (1..=most).contains(&given) {
        return Ok(());
    }
    let message = format!("got {given}; must be 1 to {most}");
    Err(SettingError::new(key, message))
}

/// `sfq`.
pub fn sfq<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "sfq",
        summary: "stochastic fairness queueing: a queue per hashed flow, in turn",
        source: "McKenney 1990; tc-sfq(8)",
        keys: Box::new(|| [DEFAULT.keys(), ALONE.keys()].concat()),
        make: Box::new(|settings| {
            let Alone { variant } = ALONE.given(settings)?;
            Ok(Box::new(Sfq::new(config(settings, variant)?, || DropTail)))
        }),
    }
}

#[cfg(test)]
mod tests;
