//! `fq`: fair queueing with pacing per flow, as Linux's sch_fq treats forwarded packets (tc-fq(8)).
//!
//! Flows are served by deficit round robin, new ones first. A new flow may send `initial_quantum` at first, so that the initial
//! window of a short transfer passes at once. With `maxrate` a flow that has used up its quantum waits until its rate allows
//! the next packet. On a sending host Linux also paces each socket at its own rate; that part is in this simulator's TCP.
//!
//! The bands by priority of Linux since 6.7 and the horizon of timestamps are not modelled.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sojourn_units::{Duration, Rate, Time};

use crate::classify::{Classifier, Hashing};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::list::{Link, Linked, List};
use crate::packet::Packet;
use crate::parameters;
use crate::parameters::Parameters;
use crate::pool::{Pool, Queue};
use crate::qdisc::Qdisc;
use crate::settings::Settings;
use crate::verdict::DropReason;

parameters! {
    /// The parameters. [`Config::new`] holds the defaults.
    pub struct Config {
        /// queues that the flows are hashed to, 1 to 65536
        pub flows: u64,
        /// the most packets of a flow
        pub flow_limit: u64 as Packets,
        /// bytes that a flow may send per round
        pub quantum: u64 as Bytes = "two frames",
        /// bytes that a new flow may send at first
        pub initial_quantum: u64 as Bytes = "ten frames",
        /// idle time after which a flow has a quantum again
        pub refill_delay: Duration,
        /// the most that a flow may send
        pub maxrate: Option<Rate> = "unlimited",
        /// maxrate from which on a flow sends whole quanta, and not packet by packet
        pub low_rate_threshold: Rate,
        /// delay above which ECN-capable packets are marked
        pub ce_threshold: Option<Duration> = "none",
    }
}

impl Config {
    /// Linux's defaults, for frames of `mtu` bytes.
    pub const fn new(mtu: u32) -> Self {
        Self {
            flows: 1024,
            flow_limit: 100,
            quantum: 2 * mtu as u64,
            initial_quantum: 10 * mtu as u64,
            refill_delay: Duration::from_millis(40),
            maxrate: None,
            low_rate_threshold: match Rate::from_bps(550_000) {
                Some(rate) => rate,
                None => unreachable!(),
            },
            ce_threshold: None,
        }
    }
}

/// Where a flow is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// In no list, since this instant.
    Detached(Time),
    New,
    Old,
    /// Waits until its rate allows the next packet.
    Throttled,
}

struct Flow {
    link: Link,
    state: State,
    credit: i64,
    /// When its rate allows the next packet.
    next: Time,
    queue: Queue,
}

impl Linked for Flow {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The discipline.
pub struct PacedFq<P> {
    config: Config,
    limit: Limit,
    classifier: Classifier,
    pool: Pool<P>,
    flows: Vec<Flow>,
    new: List,
    old: List,
    /// Throttled flows by the time at which they may send.
    throttled: BinaryHeap<Reverse<(Time, u32)>>,
}

impl<P: Packet> PacedFq<P> {
    /// Empty queues.
    pub fn new(config: Config, limit: Limit) -> Self {
        let flow = || Flow {
            link: Link::ALONE,
            state: State::Detached(Time::ZERO),
            credit: config.initial_quantum as i64,
            next: Time::ZERO,
            queue: Queue::EMPTY,
        };
        Self {
            limit,
            classifier: Classifier::new(Hashing::Plain, config.flows as u32),
            pool: Pool::new(),
            flows: (0..config.flows).map(|_| flow()).collect(),
            new: List::EMPTY,
            old: List::EMPTY,
            throttled: BinaryHeap::with_capacity(64),
            config,
        }
    }

    fn release(&mut self, now: Time) {
        while let Some(&Reverse((at, flow))) = self.throttled.peek() {
            if at > now {
                return;
            }
            self.throttled.pop();
            self.flows[flow as usize].state = State::Old;
            self.old.push_back(&mut self.flows, flow);
        }
    }

    /// The flow whose turn it is, taken from its list.
    fn next_flow(&mut self) -> Option<(u32, State)> {
        if let Some(flow) = self.new.pop_front(&mut self.flows) {
            return Some((flow, State::New));
        }
        let flow = self.old.pop_front(&mut self.flows)?;
        Some((flow, State::Old))
    }

    fn make_old(&mut self, at: u32) {
        self.flows[at as usize].state = State::Old;
        self.old.push_back(&mut self.flows, at);
    }

    /// Accounts for a packet of a flow, which may then have to wait.
    fn charge(&mut self, at: u32, bytes: u32, now: Time) {
        let Config {
            maxrate,
            low_rate_threshold,
            quantum,
            ..
        } = self.config;
        let flow = &mut self.flows[at as usize];
        flow.credit -= i64::from(bytes);
        let Some(rate) = maxrate else { return };
        let mut counted = u64::from(bytes);
        if rate <= low_rate_threshold {
            flow.credit = 0;
        } else {
            counted = counted.max(quantum);
            if flow.credit > 0 {
                return;
            }
        }
        let mut wait = rate.tx_time(counted).min(Duration::from_secs(1));
        if flow.next > Time::ZERO {
            // It was served later than its rate allowed: up to half of the wait is made up for.
            let late = now.saturating_since(flow.next);
            let half = Duration::from_nanos(wait.as_nanos() / 2);
            wait = wait.saturating_sub(late.min(half));
        }
        flow.next = now + wait;
    }
}

impl<P: Packet> Qdisc<P> for PacedFq<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        let (packets, bytes) = (self.pool.packets(), self.pool.bytes());
        if !self.limit.has_room(packets, bytes, packet.bytes()) {
            return env.drop(packet, DropReason::Overflow);
        }
        let flows = &self.flows;
        let is_idle = |at: u32| matches!(flows[at as usize].state, State::Detached(_));
        let at = self.classifier.queue_of(&packet, is_idle, env);
        let flow = &mut self.flows[at as usize];
        if u64::from(flow.queue.packets()) >= self.config.flow_limit {
            return env.drop(packet, DropReason::Overflow);
        }
        if let State::Detached(since) = flow.state {
            if now.saturating_since(since) > self.config.refill_delay {
                flow.credit = flow.credit.max(self.config.quantum as i64);
            }
            flow.state = State::New;
            self.new.push_back(&mut self.flows, at);
        }
        self.pool
            .push_back(&mut self.flows[at as usize].queue, packet);
    }

    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        self.release(now);
        while let Some((at, from)) = self.next_flow() {
            let flow = &mut self.flows[at as usize];
            if flow.credit <= 0 {
                flow.credit += self.config.quantum as i64;
                self.make_old(at);
                continue;
            }
            if flow.queue.is_empty() {
                // A new flow passes the old list once, so that it cannot starve the others.
                if from == State::New && !self.old.is_empty() {
                    self.make_old(at);
                } else {
                    flow.state = State::Detached(now);
                }
                continue;
            }
            if flow.next > now {
                flow.state = State::Throttled;
                self.throttled.push(Reverse((flow.next, at)));
                continue;
            }
            let allowed = flow.next;
            let mut packet = self.pool.pop_front(&mut flow.queue)?;
            let list = if from == State::New {
                &mut self.new
            } else {
                &mut self.old
            };
            list.push_front(&mut self.flows, at);
            let waited = now.saturating_since(packet.enqueued().max(allowed));
            if self.config.ce_threshold.is_some_and(|most| waited > most)
                && packet.ecn().is_capable()
            {
                env.mark(&mut packet);
            }
            self.charge(at, packet.bytes(), now);
            return Some(packet);
        }
        None
    }

    fn packets(&self) -> u64 {
        self.pool.packets()
    }

    fn bytes(&self) -> u64 {
        self.pool.bytes()
    }

    fn ready_at(&self) -> Option<Time> {
        if !self.new.is_empty() || !self.old.is_empty() {
            return None;
        }
        self.throttled.peek().map(|&Reverse((at, _))| at)
    }
}

fn config(settings: &Settings) -> Result<Config, SettingError> {
    let config = Config::new(settings.mtu).given(settings)?;
    for (key, value, most) in [
        ("flows", config.flows, 65_536),
        ("flow_limit", config.flow_limit, u64::from(u32::MAX)),
        ("quantum", config.quantum, 1 << 20),
        ("initial_quantum", config.initial_quantum, 1 << 30),
    ] {
        if !(1..=most).contains(&value) {
            let message = format!("got {value}; must be 1 to {most}");
            return Err(SettingError::new(key, message));
        }
    }
    if config.maxrate.is_none() {
        let key = "low_rate_threshold";
        if settings.get(key).is_some() {
            return Err(SettingError::new(key, "has no effect without maxrate"));
        }
        settings.note(key, None);
    }
    Ok(config)
}

/// `fq`.
pub fn fq<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "fq",
        summary: "fair queueing with pacing per flow",
        source: "tc-fq(8); Linux 6.1 sch_fq",
        keys: Box::new(|| Config::new(0).keys()),
        make: Box::new(|settings| {
            let config = config(settings)?;
            let limit = settings.limit_or(Limit::Packets(10_000));
            Ok(Box::new(PacedFq::new(config, limit)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;
    use crate::packet::Ecn;
    use crate::testing::{Driven, packet};

    fn driven(config: Config) -> Driven<PacedFq<Datagram<u64>>> {
        Driven::new(PacedFq::new(config, Limit::Packets(10_000)))
    }

    /// Quanta of two and ten packets of 1000 bytes.
    const CONFIG: Config = Config::new(1000);

    /// tc-fq(8): a new flow may send its initial quantum at once, then two packets a round like the other.
    #[test]
    fn a_new_flow_goes_first_with_its_initial_quantum() {
        let mut queue = driven(CONFIG);
        for id in 0..20 {
            queue.enqueue(packet(1, id));
        }
        assert_eq!(queue.ids(12), (0..12).collect::<Vec<_>>());
        for id in 100..120 {
            queue.enqueue(packet(2, id));
        }
        let next = queue.ids(14);
        assert_eq!(next[..10], (100..110).collect::<Vec<_>>());
        assert_eq!(next[10..], [110, 111, 12, 13]);
    }

    /// A flow that returns after the refill delay has a quantum, not more.
    #[test]
    fn an_idle_flow_has_a_quantum_again() {
        let mut queue = driven(CONFIG);
        for id in 0..10 {
            queue.enqueue(packet(1, id));
        }
        assert_eq!(queue.ids(11).len(), 10);
        queue.now = Time::from_millis(100);
        for id in 0..4 {
            queue.enqueue(packet(1, id));
            queue.enqueue(packet(2, 10 + id));
        }
        // Flow 2 is as new as flow 1, but has ten packets of credit: flow 1 sends two, then flow 2 all.
        assert_eq!(queue.ids(8), [0, 1, 10, 11, 12, 13, 2, 3]);
    }

    #[test]
    fn a_flow_over_its_limit_loses_arrivals() {
        let mut queue = driven(Config {
            flow_limit: 3,
            ..CONFIG
        });
        for id in 0..5 {
            queue.enqueue(packet(1, id));
        }
        queue.enqueue(packet(2, 9));
        assert_eq!(
            queue.dropped(),
            [(3, DropReason::Overflow), (4, DropReason::Overflow)]
        );
    }

    /// 8 Mbit/s: a quantum of two packets takes 2 ms. The first ten are the initial quantum; then two every 2 ms.
    #[test]
    fn maxrate_spaces_the_quanta_of_a_flow() {
        let mut queue = driven(Config {
            maxrate: Some(Rate::from_mbps(8)),
            ..CONFIG
        });
        for id in 0..16 {
            queue.enqueue(packet(1, id));
        }
        let mut left = Vec::new();
        while queue.qdisc.packets() > 0 {
            match queue.dequeue() {
                Some(_) => left.push(queue.now.as_nanos() / 1_000_000),
                None => queue.now = queue.qdisc.ready_at().expect("a throttled flow"),
            }
        }
        assert_eq!(left[..10], [0; 10]);
        assert_eq!(left[10..], [2, 2, 4, 4, 6, 6]);
    }

    /// Below the threshold of 550 kbit/s every packet waits by itself: 1000 bytes at 400 kbit/s take 20 ms.
    #[test]
    fn a_low_rate_is_kept_packet_by_packet() {
        let mut queue = driven(Config {
            maxrate: Rate::from_bps(400_000),
            ..CONFIG
        });
        for id in 0..3 {
            queue.enqueue(packet(1, id));
        }
        assert_eq!(queue.ids(3), [0]);
        assert_eq!(queue.qdisc.ready_at(), Some(Time::from_millis(20)));
        queue.now = Time::from_millis(20);
        assert_eq!(queue.ids(3), [1]);
    }

    #[test]
    fn a_late_packet_is_marked() {
        let mut queue = driven(Config {
            ce_threshold: Some(Duration::from_millis(1)),
            ..CONFIG
        });
        for (id, ecn) in [(0, Ecn::Ect1), (1, Ecn::NotEct), (2, Ecn::Ect0)] {
            queue.enqueue(Datagram {
                ecn,
                ..packet(1, id)
            });
        }
        queue.now = Time::from_millis(1);
        assert_eq!(queue.dequeue().map(|packet| packet.ecn), Some(Ecn::Ect1));
        queue.now = Time::from_millis(2);
        assert_eq!(queue.dequeue().map(|packet| packet.ecn), Some(Ecn::NotEct));
        assert_eq!(queue.dequeue().map(|packet| packet.ecn), Some(Ecn::Ce));
    }
}
