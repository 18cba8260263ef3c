//! Flow queueing: a queue per flow, each with its own AQM, served by deficit round robin with priority for sparse
//! flows (RFC 8290, with CoDel; the scheduler is DRR++, §1.3, §4).
//!
//! [`Fair`] is the scheduler for any [`Aqm`]: fq_codel, fq_pie and the others differ in their [`Config`]. Linux's
//! deviations from the RFC are fields of it; there is no second scheduler.

use alloc::format;
use alloc::vec::Vec;

use sojourn_units::{Time, Value};

use crate::aqm::Aqm;
use crate::classify::{Classifier, Hashing};
use crate::environment::Environment;
use crate::key::{Key, SettingError};
use crate::limit::Limit;
use crate::list::{Link, Linked, List};
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::pool::{Pool, Queue, Scope, earliest};
use crate::qdisc::Qdisc;
use crate::settings::Settings;
use crate::verdict::DropReason;
use crate::{choice, parameters};

/// Memory in bytes that a packet takes besides its own: the size of Linux's `struct sk_buff` and `struct
/// skb_shared_info` on a 64-bit machine (256 and 320). The kernel counts the driver's allocation, which is larger.
/// With this estimate `memory_limit` binds as late as in a kernel at best.
pub const PACKET_MEMORY: u64 = 576;

parameters! {
    /// The parameters of the scheduler. [`Config::new`] holds the defaults.
    pub struct Config {
        /// queues that the flows are hashed to, 1 to 65536
        pub flows: u64,
        /// bytes that a queue may send per round
        pub quantum: u64 as Bytes = "one frame",
        /// memory for queued packets, counting 576 B per packet besides its bytes
        pub memory_limit: u64 as Bytes,
        /// plain, or 8-way set-associative as in CAKE, which has fewer collisions
        pub hash: Hashing,
    }
    besides {
        /// The limit for all queues together.
        pub limit: Limit,
        /// Which packets are dropped when a limit is exceeded.
        pub overflow: Overflow,
        /// Which specification or implementation to follow.
        pub variant: Variant,
    }
}

impl Config {
    /// The defaults for frames of `mtu` bytes: RFC 8290's (§5.2.3 to §5.2.5), and Linux's memory limit.
    pub const fn new(mtu: u32, overflow: Overflow, variant: Variant) -> Self {
        Self {
            flows: 1024,
            quantum: mtu as u64,
            memory_limit: 32 << 20,
            hash: Hashing::Plain,
            limit: Limit::Packets(10_240),
            overflow,
            variant,
        }
    }
}

/// Which packets are dropped when a limit is exceeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overflow {
    /// Packets from the head of the queue with the most bytes, until half of its bytes or `batch` packets are dropped
    /// (RFC 8290 §4.1: up to 64); repeated while the limit is exceeded.
    Fattest {
        /// The most packets dropped at once, at least 1.
        batch: u32,
    },
    /// The arriving packet.
    Arrival,
}

choice! {
    /// Which scheduler to follow. They differ in two points.
    ///
    /// Where a queue of the new list goes that is found empty: the RFC (§4.2) moves it to the end of the old list,
    /// because otherwise a flow that sends a packet each time its queue has emptied would starve the others. Linux
    /// removes it from the lists if the old list is empty.
    ///
    /// The value of [`crate::Backlog::qdisc_bytes`], below which CoDel does not drop the last frame: with the RFC the
    /// bytes of the flow's own queue, as CoDel is defined for one queue. In Linux the bytes of all queues: a flow's
    /// only packet can be dropped while other flows have packets queued.
    pub enum Variant {
        /// RFC 8290.
        Rfc8290 = "rfc8290",
        /// Linux's `sch_fq_codel` and `sch_fq_pie`.
        Linux = "linux",
    }
}

impl Variant {
    const fn scope(self) -> Scope {
        match self {
            Self::Rfc8290 => Scope::Queue,
            Self::Linux => Scope::Discipline,
        }
    }
}

/// The list that a queue is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    New,
    Old,
}

impl State {
    /// The index in [`INNER_QUEUES`] for the packets of a queue in this list. A queue in no list starts in the new
    /// one.
    const fn inner_queue(self) -> u8 {
        match self {
            Self::Idle | Self::New => 0,
            Self::Old => 1,
        }
    }
}

/// The inner queue of a packet is the list from which its queue is served: new or old.
const INNER_QUEUES: &[&str] = &["sparse", "bulk"];

struct Flow<A> {
    link: Link,
    state: State,
    /// Credits (RFC 8290) in bytes.
    deficit: i64,
    queue: Queue,
    aqm: A,
}

impl<A> Linked for Flow<A> {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// A flow-queueing scheduler with an [`Aqm`] per queue.
///
/// It takes at most 64 bytes per queue besides the AQM's state, and a link of 8 bytes per packet.
pub struct Fair<P, A> {
    config: Config,
    classifier: Classifier,
    pool: Pool<P>,
    /// Before the first packet one stands for all: their AQMs have seen the same.
    flows: Vec<Flow<A>>,
    new: List,
    old: List,
    /// A lower bound of all AQMs' timers.
    next_timer: Option<Time>,
}

impl<A> Flow<A> {
    const fn new(aqm: A) -> Self {
        Self {
            link: Link::ALONE,
            state: State::Idle,
            deficit: 0,
            queue: Queue::EMPTY,
            aqm,
        }
    }
}

impl<P: Packet, A: Aqm<P> + Clone> Fair<P, A> {
    /// A scheduler with empty queues, each with a copy of the AQM that `aqm` makes.
    pub fn new(config: Config, aqm: impl FnOnce() -> A) -> Self {
        let mut fair = Self {
            config,
            classifier: Classifier::new(config.hash, config.flows.max(1) as u32),
            pool: Pool::new(),
            flows: Vec::from([Flow::new(aqm())]),
            new: List::EMPTY,
            old: List::EMPTY,
            next_timer: None,
        };
        fair.find_next_timer();
        fair
    }

    /// Makes its queues, before its first packet: most of a Wi-Fi station's user priorities never see one.
    #[cold]
    #[inline(never)]
    fn furnish(&mut self) {
        let of_all = self.flows.swap_remove(0).aqm;
        self.flows = (0..self.config.flows)
            .map(|_| Flow::new(of_all.clone()))
            .collect();
    }

    fn find_next_timer(&mut self) {
        let timers = self.flows.iter().filter_map(|flow| flow.aqm.next_timer());
        self.next_timer = timers.min();
    }

    fn queue_of(&mut self, packet: &P, env: &mut Environment<P>) -> u32 {
        let flows = &self.flows;
        let is_idle = |at: u32| flows[at as usize].state == State::Idle;
        self.classifier.queue_of(packet, is_idle, env)
    }

    fn has_room(&self, packet: &P) -> bool {
        let bytes = u64::from(packet.bytes());
        self.config
            .limit
            .has_room(self.pool.packets(), self.pool.bytes(), packet.bytes())
            && self.memory() + PACKET_MEMORY + bytes <= self.config.memory_limit
    }

    fn is_over_limit(&self) -> bool {
        let over = match self.config.limit {
            Limit::Packets(limit) => self.pool.packets() > limit,
            Limit::Bytes(limit) => self.pool.bytes() > limit,
        };
        over || self.memory() > self.config.memory_limit
    }

    fn memory(&self) -> u64 {
        self.pool.bytes() + self.pool.packets() * PACKET_MEMORY
    }

    /// The queue with the most bytes. Only queues in the lists can hold packets.
    fn fattest(&self) -> Option<u32> {
        let mut fattest: Option<(u32, u64)> = None;
        for list in [self.new, self.old] {
            let mut next = list.front();
            while let Some(at) = next {
                let flow = &self.flows[at as usize];
                let more = fattest.is_none_or(|(_, most)| flow.queue.bytes() > most);
                if more && !flow.queue.is_empty() {
                    fattest = Some((at, flow.queue.bytes()));
                }
                next = flow.link.next();
            }
        }
        fattest.map(|(at, _)| at)
    }

    fn drop_from_fattest(&mut self, batch: u32, env: &mut Environment<P>) -> Option<()> {
        let fattest = self.fattest()?;
        let flow = &mut self.flows[fattest as usize];
        let half = flow.queue.bytes() / 2;
        let inner_queue = flow.state.inner_queue();
        let mut dropped_bytes = 0;
        let mut dropped = 0;
        while let Some(mut packet) = self.pool.pop_front(&mut flow.queue) {
            packet.set_inner_queue(inner_queue);
            dropped_bytes += u64::from(packet.bytes());
            dropped += 1;
            env.drop(packet, DropReason::Overflow);
            if dropped >= batch || dropped_bytes >= half {
                break;
            }
        }
        flow.aqm.on_head_drops(u64::from(dropped));
        Some(())
    }

    /// Appends a queue that is in no list to the new list, with a quantum of credit.
    fn activate(&mut self, at: u32) {
        let flow = &mut self.flows[at as usize];
        flow.state = State::New;
        flow.deficit = self.config.quantum as i64;
        self.new.push_back(&mut self.flows, at);
    }

    fn leave_list(&mut self, at: u32) {
        match core::mem::replace(&mut self.flows[at as usize].state, State::Idle) {
            State::New => self.new.remove(&mut self.flows, at),
            State::Old => self.old.remove(&mut self.flows, at),
            State::Idle => {}
        }
    }

    fn move_to_old(&mut self, at: u32) {
        self.leave_list(at);
        self.flows[at as usize].state = State::Old;
        self.old.push_back(&mut self.flows, at);
    }

    /// Handles an empty queue found at the head of the lists.
    fn retire(&mut self, at: u32) {
        let detour = match self.config.variant {
            Variant::Rfc8290 => true,
            Variant::Linux => !self.old.is_empty(),
        };
        if self.flows[at as usize].state == State::New && detour {
            self.move_to_old(at);
        } else {
            self.leave_list(at);
        }
    }
}

impl<P: Packet, A: Aqm<P> + Clone> Qdisc<P> for Fair<P, A> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        if (self.flows.len() as u64) < self.config.flows {
            self.furnish();
        }
        packet.set_enqueued(now);
        let at = self.queue_of(&packet, env);
        let has_room = self.config.overflow != Overflow::Arrival || self.has_room(&packet);
        let flow = &mut self.flows[at as usize];
        packet.set_inner_queue(flow.state.inner_queue());
        let backlog = self.pool.backlog(&flow.queue, self.config.variant.scope());
        if !has_room {
            flow.aqm.on_overflow(backlog, now);
            return env.drop(packet, DropReason::Overflow);
        }
        let verdict = flow.aqm.on_enqueue(&packet, backlog, now, env);
        self.next_timer = earliest(self.next_timer, flow.aqm.next_timer());
        let Some(packet) = env.carry_out(verdict, packet) else {
            return;
        };
        self.pool.push_back(&mut flow.queue, packet);
        if flow.state == State::Idle {
            self.activate(at);
        }
        if let Overflow::Fattest { batch } = self.config.overflow {
            while self.is_over_limit() && self.drop_from_fattest(batch, env).is_some() {}
        }
    }

    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        loop {
            let list = if self.new.is_empty() {
                self.old
            } else {
                self.new
            };
            let at = list.front()?;
            let flow = &mut self.flows[at as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.config.quantum as i64;
                if flow.state == State::Old {
                    self.old.rotate(&mut self.flows);
                } else {
                    self.move_to_old(at);
                }
                continue;
            }
            let scope = self.config.variant.scope();
            let inner_queue = flow.state.inner_queue();
            let note = |packet: &mut P| packet.set_inner_queue(inner_queue);
            let served = self
                .pool
                .serve(&mut flow.queue, &mut flow.aqm, scope, now, env, note);
            let Some(packet) = served else {
                self.retire(at);
                continue;
            };
            flow.deficit -= i64::from(packet.bytes());
            self.next_timer = earliest(self.next_timer, flow.aqm.next_timer());
            return Some(packet);
        }
    }

    fn packets(&self) -> u64 {
        self.pool.packets()
    }

    fn bytes(&self) -> u64 {
        self.pool.bytes()
    }

    fn may_hold(&self) -> bool {
        false
    }

    fn next_timer(&self) -> Option<Time> {
        self.next_timer
    }

    fn on_timer(&mut self, now: Time, _env: &mut Environment<P>) {
        for flow in &mut self.flows {
            if flow.aqm.next_timer().is_some_and(|timer| timer <= now) {
                let backlog = self.pool.backlog(&flow.queue, self.config.variant.scope());
                flow.aqm.on_timer(backlog, now);
            }
        }
        self.find_next_timer();
    }

    fn inner_queues(&self) -> &'static [&'static str] {
        INNER_QUEUES
    }

    /// The number of queues in the lists, and the state of the AQM of the fattest queue.
    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let active = self.flows.iter().filter(|flow| flow.state != State::Idle);
        visit("active_flows", active.count() as f64);
        if let Some(at) = self.fattest() {
            self.flows[at as usize].aqm.state(visit);
        }
    }

    fn change(&mut self, settings: &Settings) -> Result<(), SettingError> {
        let now = &self.config;
        let mut new = config(settings, now.overflow, now.variant)?;
        for (key, stays) in [
            ("flows", new.flows == now.flows),
            ("hash", new.hash == now.hash),
        ] {
            if !stays {
                return Err(SettingError::fixed(key));
            }
        }
        if let (Overflow::Fattest { batch }, Some(Value::Count(given))) =
            (&mut new.overflow, settings.get("drop_batch"))
        {
            *batch = (*given).try_into().unwrap_or(u32::MAX);
        }
        for flow in &mut self.flows {
            flow.aqm.change(settings, new.limit)?;
        }
        self.config = new;
        Ok(())
    }
}

/// The keys of the scheduler.
pub(crate) fn keys() -> Vec<Key> {
    Config::new(0, Overflow::Arrival, Variant::Rfc8290).keys()
}

/// Reads the scheduler's keys.
///
/// # Errors
/// A number is out of range.
pub(crate) fn config(
    settings: &Settings,
    overflow: Overflow,
    variant: Variant,
) -> Result<Config, SettingError> {
    let config = Config::new(settings.mtu, overflow, variant).given(settings)?;
    if !(1..=65_536).contains(&config.flows) {
        let message = format!("got {}; must be 1 to 65536", config.flows);
        return Err(SettingError::new("flows", message));
    }
    require_quantum(config.quantum)?;
    Ok(Config {
        limit: settings.limit_or(config.limit),
        ..config
    })
}

/// Checks a quantum.
///
/// # Errors
/// It is not from 1 B to 1 MiB.
pub(crate) fn require_quantum(bytes: u64) -> Result<(), SettingError> {
    if (1..=1 << 20).contains(&bytes) {
        return Ok(());
    }
    let message = format!("got \"{bytes} B\"; must be 1 B to 1 MiB");
    Err(SettingError::new("quantum", message))
}

#[cfg(test)]
mod tests;
