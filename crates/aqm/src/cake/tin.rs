//! A tin: flow queueing with host fairness, and COBALT on each queue.
//!
//! As in [`crate::fq`], new queues have priority and the others share by deficit round robin. A bulk flow's quantum is
//! divided by the number of bulk flows of its hosts (Høiland-Jørgensen, Täht and Morton 2018). An emptied queue
//! moves to a third list until the state of its COBALT has decayed.

use alloc::vec::Vec;

use sojourn_units::{Duration, Rate, Time};

use super::ack_filter::AckFilter;
use super::framing::Framing;
use super::hosts::{Ends, Hosts, Isolation};
use super::shaper::Claim;
use crate::aqm::Algorithm as _;
use crate::classify::{Classifier, Hashing};
use crate::cobalt::{self, Cobalt};
use crate::environment::Environment;
use crate::list::{Link, Linked, List};
use crate::packet::{FlowKey, Packet};
use crate::pool::{Pool, Queue, Scope};
use crate::qdisc::InnerSettings;
use crate::verdict::DropReason;

/// Queues in a tin, and hosts on either side.
pub(super) const QUEUES: u32 = 1024;

/// The parameters of a tin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Config {
    /// The rate of its share; `None` without a shaper.
    pub(super) rate: Option<Rate>,
    /// Credit in bytes per round of the tins, without a shaper.
    pub(super) quantum: u32,
    pub(super) cobalt: cobalt::Config,
    pub(super) isolation: Isolation,
    pub(super) ack_filter: AckFilter,
    pub(super) framing: Framing,
}

/// The kind of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Set {
    Idle,
    /// New: has not used up its first quantum.
    Sparse,
    /// Has used up its quantum and was then empty: it takes its turn, but is not counted as a bulk flow.
    SparseWait,
    Bulk,
    /// Empty; kept until the state of its COBALT has decayed.
    Decaying,
}

const NEW: usize = 0;
const OLD: usize = 1;
const DECAYING: usize = 2;

impl Set {
    /// The list that holds queues of this kind.
    const fn list(self) -> Option<usize> {
        match self {
            Self::Idle => None,
            Self::Sparse => Some(NEW),
            Self::SparseWait | Self::Bulk => Some(OLD),
            Self::Decaying => Some(DECAYING),
        }
    }
}

struct Flow {
    link: Link,
    set: Set,
    /// Its flow, and the flow's hosts.
    flow: FlowKey,
    ends: Ends,
    deficit: i64,
    queue: Queue,
    cobalt: Cobalt,
}

impl Linked for Flow {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The result of visiting the queue in turn.
pub(super) enum Served<P> {
    /// A packet to send.
    Packet(P),
    /// The queue was out of credit and received some.
    OutOfCredit,
    /// The queue was empty.
    Empty,
    /// There was no queue.
    Nothing,
}

/// A tin.
pub(super) struct Tin {
    config: Config,
    /// Bytes of credit per queue and round.
    flow_quantum: u32,
    classifier: Classifier,
    hosts: Hosts,
    flows: Vec<Flow>,
    lists: [List; 3],
    sparse: u32,
    bulk: u32,
    packets: u64,
    claim: Option<Claim>,
    /// Its credit in the round of the tins, without a shaper.
    deficit: i64,
}

impl Tin {
    pub(super) fn new(config: Config) -> Self {
        Self {
            flow_quantum: flow_quantum(config.rate),
            classifier: Classifier::new(Hashing::SetAssociative, 0),
            hosts: Hosts::new(config.isolation, 0),
            flows: Vec::new(),
            lists: [List::EMPTY; 3],
            sparse: 0,
            bulk: 0,
            packets: 0,
            claim: config.rate.map(Claim::new),
            deficit: 0,
            config,
        }
    }

    /// Makes its tables, before its first packet: most tins never see one, and a thousand subscribers have six thousand.
    fn furnish(&mut self) {
        self.classifier = Classifier::new(Hashing::SetAssociative, QUEUES);
        self.hosts = Hosts::new(self.config.isolation, QUEUES);
        self.flows = (0..QUEUES)
            .map(|_| Flow {
                link: Link::ALONE,
                set: Set::Idle,
                flow: FlowKey::default(),
                ends: Ends::default(),
                deficit: 0,
                queue: Queue::EMPTY,
                cobalt: Cobalt::new(self.config.cobalt),
            })
            .collect();
    }

    /// True from its first packet on.
    pub(super) fn is_furnished(&self) -> bool {
        !self.flows.is_empty()
    }

    /// What it was given.
    pub(super) const fn settings(&self) -> InnerSettings {
        InnerSettings {
            threshold: self.config.rate,
            target: self.config.cobalt.target,
            interval: self.config.cobalt.interval,
        }
    }

    /// Changes the rate of its share, and with it the flows' quantum.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.config.rate = Some(rate);
        self.flow_quantum = flow_quantum(self.config.rate);
        if let Some(claim) = &mut self.claim {
            claim.set_rate(rate);
        }
    }

    /// True if it has used more than its credit.
    pub(super) const fn is_overdrawn(&self) -> bool {
        self.deficit < 0
    }

    /// Adds credit for the next round of the tins.
    pub(super) fn give_credit(&mut self) {
        if self.deficit <= 0 {
            self.deficit += i64::from(self.config.quantum);
        }
    }

    /// True if a queue waits for its turn.
    pub(super) const fn is_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    pub(super) fn enqueue<P: Packet>(
        &mut self,
        packet: P,
        pool: &mut Pool<P>,
        now: Time,
        env: &mut Environment<P>,
    ) {
        if let Some(claim) = self.claim.as_mut().filter(|_| self.packets == 0) {
            claim.wake(now);
        }
        if !self.is_furnished() {
            self.furnish();
        }
        let at = self.queue_of(&packet, env);
        let queue = &mut self.flows[at as usize].queue;
        pool.push_back(queue, packet);
        self.packets += 1;
        if let Some(ack) = self.config.ack_filter.take_redundant(pool, queue) {
            self.packets -= 1;
            env.drop(ack, DropReason::Aqm);
        }
        match self.flows[at as usize].set {
            Set::Idle | Set::Decaying => {
                self.move_to(at, Set::Sparse);
                self.flows[at as usize].deficit = self.credit(at, env);
            }
            // It is already in the list of old queues; only its state changes.
            Set::SparseWait => self.count_as(at, Set::Bulk),
            Set::Sparse | Set::Bulk => {}
        }
    }

    fn queue_of<P: Packet>(&mut self, packet: &P, env: &mut Environment<P>) -> u32 {
        let flow = packet.flow();
        let key = self.config.isolation.queue_key(flow);
        let flows = &self.flows;
        let is_idle = |at: u32| flows[at as usize].set == Set::Idle;
        let at = self
            .classifier
            .queue_of_key(&key, packet.bucket(), is_idle, env);
        let known = &self.flows[at as usize];
        if known.flow != flow || matches!(known.set, Set::Idle | Set::Decaying) {
            self.take_over(at, flow, env);
        }
        at
    }

    /// Assigns an idle queue, or one with a hash collision, to this flow.
    fn take_over<P: Packet>(&mut self, at: u32, flow: FlowKey, env: &mut Environment<P>) {
        let ends = self.hosts.ends_of(flow, env);
        let queue = &mut self.flows[at as usize];
        if queue.set == Set::Bulk {
            self.hosts.leave(queue.ends);
            self.hosts.join(ends);
        }
        queue.flow = flow;
        queue.ends = ends;
    }

    /// A queue's credit: the quantum divided by the number of bulk flows of its hosts, rounded at random so that the
    /// average is exact.
    fn credit<P: Packet>(&self, at: u32, env: &mut Environment<P>) -> i64 {
        let load = self.hosts.load(self.flows[at as usize].ends);
        if load == 1 {
            return i64::from(self.flow_quantum);
        }
        let fixed_point = (u64::from(self.flow_quantum) << 16) / u64::from(load);
        ((fixed_point + (env.random_u64() >> 48)) >> 16) as i64
    }

    /// Changes the kind of a queue, which stays in its list.
    fn count_as(&mut self, at: u32, set: Set) {
        let flow = &mut self.flows[at as usize];
        let before = core::mem::replace(&mut flow.set, set);
        if before == set {
            return;
        }
        match before {
            Set::Sparse | Set::SparseWait => self.sparse -= 1,
            Set::Bulk => {
                self.bulk -= 1;
                self.hosts.leave(flow.ends);
            }
            Set::Idle | Set::Decaying => {}
        }
        match set {
            Set::Sparse | Set::SparseWait => self.sparse += 1,
            Set::Bulk => {
                self.bulk += 1;
                self.hosts.join(flow.ends);
            }
            Set::Idle | Set::Decaying => {}
        }
    }

    /// Changes the kind of a queue and moves it to the end of that kind's list.
    fn move_to(&mut self, at: u32, set: Set) {
        if let Some(list) = self.flows[at as usize].set.list() {
            self.lists[list].remove(&mut self.flows, at);
        }
        self.count_as(at, set);
        if let Some(list) = set.list() {
            self.lists[list].push_back(&mut self.flows, at);
        }
    }

    /// The queue in turn: new ones first, then old ones. Decaying queues come before both if `decaying_first`,
    /// otherwise after.
    fn in_turn(&self, decaying_first: bool) -> Option<u32> {
        let decaying = self.lists[DECAYING].front();
        let first = if decaying_first { decaying } else { None };
        first
            .or(self.lists[NEW].front())
            .or(self.lists[OLD].front())
            .or(decaying)
    }

    /// Visits the queue in turn once.
    pub(super) fn serve<P: Packet>(
        &mut self,
        decaying_first: bool,
        pool: &mut Pool<P>,
        now: Time,
        env: &mut Environment<P>,
    ) -> Served<P> {
        let Some(at) = self.in_turn(decaying_first) else {
            return Served::Nothing;
        };
        let flow = &mut self.flows[at as usize];
        if flow.deficit <= 0 {
            let set = match flow.set {
                Set::Sparse if flow.queue.is_empty() => Set::SparseWait,
                Set::Sparse => Set::Bulk,
                set => set,
            };
            self.move_to(at, set);
            self.flows[at as usize].deficit += self.credit(at, env);
            return Served::OutOfCredit;
        }
        let before = pool.packets();
        let served = pool.serve(
            &mut flow.queue,
            &mut flow.cobalt,
            Scope::Queue,
            now,
            env,
            |_| {},
        );
        self.packets -= before - pool.packets();
        let Some(packet) = served else {
            let unused = flow.cobalt.is_unused(now);
            self.move_to(at, if unused { Set::Idle } else { Set::Decaying });
            return Served::Empty;
        };
        let bytes = i64::from(self.config.framing.bytes_on_link(packet.bytes()));
        flow.deficit -= bytes;
        self.deficit -= bytes;
        Served::Packet(packet)
    }

    /// The queue with the most bytes, and these bytes.
    pub(super) fn fattest(&self) -> Option<(u32, u64)> {
        let mut fattest: Option<(u32, u64)> = None;
        for list in [NEW, OLD] {
            let mut next = self.lists[list].front();
            while let Some(at) = next {
                let flow = &self.flows[at as usize];
                let more = fattest.is_none_or(|(_, most)| flow.queue.bytes() > most);
                if more && !flow.queue.is_empty() {
                    fattest = Some((at, flow.queue.bytes()));
                }
                next = flow.link.next();
            }
        }
        fattest
    }

    /// Drops the packet at the head of a queue to make room.
    pub(super) fn drop_head<P: Packet>(
        &mut self,
        at: u32,
        pool: &mut Pool<P>,
        now: Time,
        env: &mut Environment<P>,
    ) {
        let flow = &mut self.flows[at as usize];
        if let Some(packet) = pool.pop_front(&mut flow.queue) {
            self.packets -= 1;
            env.drop(packet, DropReason::Overflow);
        }
        let backlog = pool.backlog(&flow.queue, Scope::Queue);
        flow.cobalt.on_overflow(backlog, now);
    }

    /// Flows that have used up a quantum and continue to send.
    pub(super) const fn bulk_flows(&self) -> u32 {
        self.bulk
    }

    /// Queues that are not counted as bulk: new ones, and those that emptied before they became bulk.
    pub(super) const fn sparse_flows(&self) -> u32 {
        self.sparse
    }

    /// Charges a packet to the tin's claim.
    pub(super) fn charge(&mut self, bytes: u32, now: Time) {
        if let Some(claim) = &mut self.claim {
            claim.charge(bytes, now);
        }
    }

    /// The time from which the tin is within its share of the shaper's rate; zero without a shaper.
    pub(super) fn next(&self) -> Time {
        self.claim.map_or(Time::ZERO, |claim| claim.next())
    }
}

/// The quantum: the bytes sent in 1/4096 s, at least 300 and at most 1514. At low rates a small packet then does not
/// wait for a whole frame of every other flow.
fn flow_quantum(rate: Option<Rate>) -> u32 {
    const LEAST: u64 = 300;
    const MOST: u64 = 1514;
    let bytes = rate.map_or(MOST, |rate| (rate.as_bps() / 8) >> 12);
    bytes.clamp(LEAST, MOST) as u32
}

/// COBALT's parameters for a tin: at a low rate a target below 1.5 frame times cannot be kept, and the interval grows
/// by the same amount (Høiland-Jørgensen, Täht and Morton 2018).
pub(super) fn cobalt_config(
    rate: Option<Rate>,
    mtu: u32,
    rtt: Duration,
    ecn: bool,
    variant: cobalt::Variant,
) -> cobalt::Config {
    let wanted = Duration::from_nanos(rtt.as_nanos() / 20);
    let mtu_time = rate.map_or(Duration::ZERO, |rate| rate.tx_time(u64::from(mtu)));
    let target = wanted.max(Duration::from_nanos(mtu_time.as_nanos() * 3 / 2));
    let interval = (rtt + (target - wanted)).max(target.saturating_mul(2));
    cobalt::Config {
        target,
        interval,
        mtu_time,
        ecn,
        variant,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantum_follows_the_rate_between_300_bytes_and_a_frame() {
        // 20 Mbit/s: 2.5 MB/s / 4096 = 610 bytes.
        for (rate, quantum) in [
            (None, 1514),
            (Some(1), 300),
            (Some(20), 610),
            (Some(1000), 1514),
        ] {
            assert_eq!(flow_quantum(rate.map(Rate::from_mbps)), quantum);
        }
    }

    #[test]
    fn at_a_low_rate_the_target_is_one_and_a_half_frames() {
        let config = |mbps| {
            let rate = Some(Rate::from_mbps(mbps));
            let rtt = Duration::from_millis(100);
            cobalt_config(rate, 1500, rtt, true, cobalt::Variant::Published)
        };
        // 1 Mbit/s: a frame takes 12 ms, so 18 ms; the interval is 13 ms more than 100.
        let slow = config(1);
        assert_eq!(slow.target, Duration::from_millis(18));
        assert_eq!(slow.interval, Duration::from_millis(113));
        assert_eq!(slow.mtu_time, Duration::from_millis(12));
        let fast = config(100);
        assert_eq!(fast.target, Duration::from_millis(5));
        assert_eq!(fast.interval, Duration::from_millis(100));
    }
}
