//! mac80211's flow queueing (`include/net/fq_impl.h`): the flows of all stations share 4096 queues, each with CoDel. Each
//! station and user priority serves its queues by deficit round robin, new ones first.
//!
//! If a flow's queue is in use by another station or user priority, the flow goes to the default queue of its own one, so that no
//! queue holds packets of two stations. Once the first queue is free again, packets of the flow may be reordered. If there
//! are more packets or more memory than the limits, the queue with the most bytes loses packets from its head.

use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use sojourn_aqm::codel::{self, CoDel};
use sojourn_aqm::list::{Link, Linked, List};
use sojourn_aqm::pool::{Pool, Queue, Scope};
use sojourn_aqm::{DropReason, Environment};
use sojourn_units::{Duration, Time};

use crate::packet::Packet;

/// The parameters. [`FqSettings::LINUX`] are the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqSettings {
    /// Queues shared by all stations.
    pub flows: u32,
    /// Bytes that a flow gets per round.
    pub quantum: u32,
    /// The limit of packets in all queues.
    pub packets: u64,
    /// The limit of memory in all queues, in bytes as the kernel counts it.
    pub memory: u64,
    /// Bytes that a frame has more than its packet: the headers of 802.11 with QoS and of LLC and SNAP, less Ethernet's.
    pub header: u32,
    /// CoDel's target and interval.
    pub codel: (Duration, Duration),
    /// The same for slow stations, without ECN.
    pub slow_codel: (Duration, Duration),
    /// Whether CoDel marks ECN-capable packets, except those to slow stations.
    pub ecn: bool,
}

impl FqSettings {
    /// 4096 flows, 300 bytes, 8192 packets and 16 MiB, 20 ms and 100 ms with ECN; 50 ms and 300 ms.
    pub const LINUX: Self = Self {
        flows: 4096,
        quantum: 300,
        packets: 8192,
        memory: 16 << 20,
        header: 26 + 8 - 14,
        codel: (Duration::from_millis(20), Duration::from_millis(100)),
        slow_codel: (Duration::from_millis(50), Duration::from_millis(300)),
        ecn: true,
    };

    /// The same for radios without 802.11ac: 4 MiB.
    pub const LINUX_SMALL: Self = Self {
        memory: 4 << 20,
        ..Self::LINUX
    };

    /// Bytes of the frame of a packet, without check sequence.
    pub(super) const fn frame(&self, packet: u32) -> u32 {
        packet.saturating_add(self.header)
    }

    fn codel(&self, slow: bool) -> codel::Config {
        let (target, interval) = if slow { self.slow_codel } else { self.codel };
        codel::Config {
            target,
            interval,
            ecn: self.ecn && !slow,
            variant: codel::Variant::Linux,
            // mac80211 leaves `codel_params.mtu` at zero: CoDel may drop the last packet of a queue.
            mtu: 0,
            ..codel::Config::new(0)
        }
    }
}

/// The list of its tin that a queue is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InList {
    None,
    New,
    Old,
}

struct Flow {
    link: Link,
    in_list: InList,
    deficit: i64,
    queue: Queue,
    codel: CoDel,
    slow: bool,
    /// The tin that it belongs to, while it is in a list.
    tin: u32,
}

impl Linked for Flow {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The queues of one station and user priority.
#[derive(Clone, Copy)]
struct Tin {
    new: List,
    old: List,
    packets: u64,
    slow: bool,
}

/// Bytes of memory that the kernel counts for a frame that it has made itself: `struct sk_buff`, and a buffer for the frame, for
/// headers before it (94 fits what Linux 7.3 counts) and for `struct skb_shared_info`, of the size of an allocation.
const fn memory(frame: u32) -> u64 {
    const PACKET: u64 = 256;
    const BEFORE_AND_BEHIND: u64 = 94 + 320;
    const SMALLEST: u64 = 704;
    let buffer = frame as u64 + BEFORE_AND_BEHIND;
    PACKET
        + if buffer <= SMALLEST {
            SMALLEST
        } else {
            buffer.next_power_of_two()
        }
}

/// The most packets that an overflow drops at once (since Linux 5.12).
const BATCH: u32 = 32;

pub(super) struct Fq<P> {
    settings: FqSettings,
    pool: Pool<P>,
    /// The shared queues, then a default queue per tin.
    flows: Vec<Flow>,
    tins: Vec<Tin>,
    memory: u64,
    salt: Option<u64>,
    /// Hashes of flows by their source, in place of ours.
    #[cfg(test)]
    pub(super) hashes: alloc::collections::BTreeMap<u32, u32>,
}

impl<P: Packet> Fq<P> {
    pub(super) fn new(settings: FqSettings, tins: usize) -> Self {
        let shared = settings.flows.max(1);
        let flow = || Flow {
            link: Link::ALONE,
            in_list: InList::None,
            deficit: 0,
            queue: Queue::EMPTY,
            codel: CoDel::new(settings.codel(false)),
            slow: false,
            tin: 0,
        };
        let tin = Tin {
            new: List::EMPTY,
            old: List::EMPTY,
            packets: 0,
            slow: false,
        };
        Self {
            settings,
            pool: Pool::new(),
            flows: (0..shared as usize + tins).map(|_| flow()).collect(),
            tins: vec![tin; tins],
            memory: 0,
            salt: None,
            #[cfg(test)]
            hashes: Default::default(),
        }
    }

    pub(super) fn packets_of(&self, tin: usize) -> u64 {
        self.tins[tin].packets
    }

    pub(super) const fn packets(&self) -> u64 {
        self.pool.packets()
    }

    pub(super) fn set_slow(&mut self, tin: usize, slow: bool) {
        self.tins[tin].slow = slow;
    }

    fn shared(&self) -> u32 {
        (self.flows.len() - self.tins.len()) as u32
    }

    fn flow_of(&mut self, tin: usize, packet: &P, env: &mut Environment<P>) -> u32 {
        let salt = *self.salt.get_or_insert_with(|| env.random_u64());
        let hash = u64::from(packet.flow().hash(salt));
        #[cfg(test)]
        let hash = match self.hashes.get(&packet.flow().source) {
            Some(&given) => u64::from(given),
            None => hash,
        };
        let at = ((hash * u64::from(self.shared())) >> 32) as u32;
        let flow = &self.flows[at as usize];
        if flow.in_list != InList::None && flow.tin != tin as u32 {
            self.shared() + tin as u32
        } else {
            at
        }
    }

    pub(super) fn enqueue(
        &mut self,
        tin: usize,
        mut packet: P,
        now: Time,
        env: &mut Environment<P>,
    ) {
        packet.set_enqueued(now);
        self.memory += memory(self.settings.frame(packet.bytes()));
        let at = self.flow_of(tin, &packet, env);
        let flow = &mut self.flows[at as usize];
        self.pool.push_back(&mut flow.queue, packet);
        self.tins[tin].packets += 1;
        if flow.in_list == InList::None {
            flow.in_list = InList::New;
            flow.tin = tin as u32;
            flow.deficit = i64::from(self.settings.quantum);
            self.tins[tin].new.push_back(&mut self.flows, at);
        }
        while (self.pool.packets() > self.settings.packets.max(1)
            || self.memory > self.settings.memory)
            && self.drop_from_longest(env).is_some()
        {}
    }

    /// Drops from the queue with the most bytes; of several with as many, from the first.
    fn drop_from_longest(&mut self, env: &mut Environment<P>) -> Option<()> {
        let header = u64::from(self.settings.header);
        let bytes = |flow: &Flow| flow.queue.bytes() + header * u64::from(flow.queue.packets());
        let active = self.flows.iter_mut().filter(|flow| !flow.queue.is_empty());
        let flow = active.rev().max_by_key(|flow| bytes(flow))?;
        let most = BATCH.min(flow.queue.packets() / 2).max(1);
        for _ in 0..most {
            if let Some(packet) = self.pool.pop_front(&mut flow.queue) {
                self.tins[flow.tin as usize].packets -= 1;
                self.memory -= memory(self.settings.frame(packet.bytes()));
                env.drop(packet, DropReason::Overflow);
            }
        }
        Some(())
    }

    pub(super) fn dequeue(&mut self, tin: usize, now: Time, env: &mut Environment<P>) -> Option<P> {
        loop {
            let lists = &self.tins[tin];
            let at = lists.new.front().or_else(|| lists.old.front())?;
            let flow = &mut self.flows[at as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.settings.quantum);
                self.move_to_old(tin, at);
                continue;
            }
            let slow = self.tins[tin].slow;
            if flow.slow != slow {
                flow.slow = slow;
                flow.codel.reconfigure(self.settings.codel(slow));
            }
            let before = flow.queue.packets();
            let settings = &self.settings;
            let freed = Cell::new(0);
            let served = self.pool.serve(
                &mut flow.queue,
                &mut flow.codel,
                Scope::Queue,
                now,
                env,
                |packet| freed.set(freed.get() + memory(settings.frame(packet.bytes()))),
            );
            self.memory -= freed.get();
            self.tins[tin].packets -= u64::from(before - flow.queue.packets());
            let Some(packet) = served else {
                self.retire(tin, at);
                continue;
            };
            flow.deficit -= i64::from(self.settings.frame(packet.bytes()));
            return Some(packet);
        }
    }

    fn leave_list(&mut self, tin: usize, at: u32) {
        let lists = &mut self.tins[tin];
        match core::mem::replace(&mut self.flows[at as usize].in_list, InList::None) {
            InList::New => lists.new.remove(&mut self.flows, at),
            InList::Old => lists.old.remove(&mut self.flows, at),
            InList::None => {}
        }
    }

    fn move_to_old(&mut self, tin: usize, at: u32) {
        self.leave_list(tin, at);
        self.flows[at as usize].in_list = InList::Old;
        self.tins[tin].old.push_back(&mut self.flows, at);
    }

    /// An empty queue leaves its list. If it was a new one and old ones wait, it becomes an old one instead.
    fn retire(&mut self, tin: usize, at: u32) {
        if self.flows[at as usize].in_list == InList::New && !self.tins[tin].old.is_empty() {
            self.move_to_old(tin, at);
        } else {
            self.leave_list(tin, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_aqm::{Datagram, FlowKey};

    /// A packet of a flow, with its number.
    fn packet(flow: u32, bytes: u32) -> Datagram<u32> {
        let key = FlowKey {
            source: flow,
            ..FlowKey::default()
        };
        Datagram::new(flow, bytes).with_flow(key)
    }

    fn fq(settings: FqSettings) -> (Fq<Datagram<u32>>, Environment<Datagram<u32>>) {
        (Fq::new(settings, 8), Environment::new(3))
    }

    fn packets(
        fq: &mut Fq<Datagram<u32>>,
        tin: usize,
        env: &mut Environment<Datagram<u32>>,
    ) -> Vec<u32> {
        let mut flows = Vec::new();
        while let Some(packet) = fq.dequeue(tin, Time::from_millis(1), env) {
            flows.push(packet.payload);
        }
        flows
    }

    #[test]
    fn a_new_flow_goes_before_those_that_wait() {
        let (mut fq, mut env) = fq(FqSettings::LINUX);
        for _ in 0..3 {
            fq.enqueue(0, packet(1, 1500), Time::ZERO, &mut env);
        }
        let first = fq.dequeue(0, Time::ZERO, &mut env).expect("a packet");
        assert_eq!(first.payload, 1);
        fq.enqueue(0, packet(2, 100), Time::ZERO, &mut env);
        assert_eq!(packets(&mut fq, 0, &mut env), [2, 1, 1]);
    }

    #[test]
    fn flows_share_by_bytes() {
        // A quantum of 300 bytes: five packets of 300 for one of 1500.
        let (mut fq, mut env) = fq(FqSettings::LINUX);
        for _ in 0..10 {
            fq.enqueue(0, packet(1, 1500), Time::ZERO, &mut env);
        }
        for _ in 0..50 {
            fq.enqueue(0, packet(2, 300), Time::ZERO, &mut env);
        }
        let served = packets(&mut fq, 0, &mut env);
        let small = served[..30].iter().filter(|&&flow| flow == 2).count();
        assert!((23..=27).contains(&small), "{served:?}");
    }

    #[test]
    fn stations_do_not_share_a_queue() {
        // With a single shared queue the second station's flows go to its own default queue.
        let (mut fq, mut env) = fq(FqSettings {
            flows: 1,
            ..FqSettings::LINUX
        });
        fq.enqueue(0, packet(1, 1500), Time::ZERO, &mut env);
        fq.enqueue(4, packet(2, 1500), Time::ZERO, &mut env);
        fq.enqueue(4, packet(3, 1500), Time::ZERO, &mut env);
        assert_eq!((fq.packets_of(0), fq.packets_of(4)), (1, 2));
        assert_eq!(packets(&mut fq, 4, &mut env), [2, 3]);
        assert_eq!(packets(&mut fq, 0, &mut env), [1]);
    }

    #[test]
    fn an_overflow_drops_from_the_head_of_the_longest_queue() {
        let (mut fq, mut env) = fq(FqSettings {
            packets: 100,
            ..FqSettings::LINUX
        });
        fq.enqueue(4, packet(2, 100), Time::ZERO, &mut env);
        for _ in 0..100 {
            fq.enqueue(0, packet(1, 1500), Time::ZERO, &mut env);
        }
        // The packet that exceeds the limit causes 32 drops in the flow of 100 packets.
        let dropped: Vec<_> = env.take_dropped().collect();
        assert_eq!(dropped.len(), 32);
        assert!(
            dropped
                .iter()
                .all(|(packet, why)| packet.payload == 1 && *why == DropReason::Overflow)
        );
        assert_eq!(
            (fq.packets(), fq.packets_of(0), fq.packets_of(4)),
            (69, 68, 1)
        );
    }

    #[test]
    fn memory_is_counted_as_the_kernel_does() {
        // What a Linux 7.3 counted for frames of these lengths.
        for (frame, bytes) in [
            (98, 960),
            (134, 960),
            (234, 960),
            (334, 1280),
            (934, 2304),
            (1534, 2304),
        ] {
            assert_eq!(memory(frame), bytes, "{frame}");
        }
    }

    #[test]
    fn an_overflow_of_memory_drops_too_and_memory_is_freed() {
        let (mut fq, mut env) = fq(FqSettings {
            memory: 10 * 2304,
            ..FqSettings::LINUX
        });
        for _ in 0..11 {
            fq.enqueue(0, packet(1, 1514), Time::ZERO, &mut env);
        }
        // Half of the eleven.
        assert_eq!(env.take_dropped().count(), 5);
        assert_eq!((fq.packets(), fq.memory), (6, 6 * 2304));
        assert_eq!(packets(&mut fq, 0, &mut env).len(), 6);
        assert_eq!(fq.memory, 0);
    }

    #[test]
    fn of_queues_with_as_many_bytes_the_first_loses_packets() {
        let (mut fq, mut env) = fq(FqSettings {
            packets: 9,
            ..FqSettings::LINUX
        });
        // The second flow has the first place.
        fq.hashes = [(1, 1 << 31), (2, 0)].into();
        for flow in [1, 2].into_iter().cycle().take(10) {
            fq.enqueue(0, packet(flow, 1514), Time::ZERO, &mut env);
        }
        let dropped: Vec<_> = env
            .take_dropped()
            .map(|(packet, _)| packet.payload)
            .collect();
        assert_eq!(dropped, [2, 2]);
    }

    #[test]
    fn codel_has_a_higher_target_for_slow_stations() {
        // The sojourn time stays at 40 ms, above the target of 20 ms and below that of 50 ms.
        let drops = |slow: bool| {
            let (mut fq, mut env) = fq(FqSettings::LINUX);
            fq.set_slow(0, slow);
            for step in 0..300 {
                let now = Time::from_millis(step);
                fq.enqueue(0, packet(1, 1500), now, &mut env);
                if step >= 40 {
                    fq.dequeue(0, now, &mut env);
                }
            }
            env.take_dropped().count()
        };
        assert!(drops(false) > 0);
        assert_eq!(drops(true), 0);
    }
}
