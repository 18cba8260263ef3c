//! mac80211's flow queueing (`include/net/fq_impl.h`): the flows of all stations share 4096 queues, each with CoDel. Each
//! station and user priority serves its queues by deficit round robin, new ones first.
//!
//! If a flow's queue is in use by another station or user priority, the flow goes to the default queue of its own one, so that no
//! queue holds packets of two stations. Once the first queue is free again, packets of the flow may be reordered. If there
//! are more packets or more memory than the limits, the queue with the most bytes loses packets from its head.
//!
//! With [`Amsdu`] a packet joins the last frame of its queue, which then is an A-MSDU (`ieee80211_amsdu_aggregate`). A queue holds
//! *frames*: what counts packets counts frames, and CoDel drops or marks a frame by the time since its first packet came.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use sojourn_aqm::codel::{self, CoDel};
use sojourn_aqm::list::{Link, Linked, List};
use sojourn_aqm::pool::{Pool, Queue, Scope};
use sojourn_aqm::{DropReason, Environment};
use sojourn_units::{Duration, Time};

use crate::frames;
use crate::packet::Packet;
use crate::queues::Frame;

/// What limits A-MSDUs that form as packets enter the queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Amsdu {
    /// A packet joins a frame if the bytes of both, as Ethernet and as 802.11 without check sequence, are at most these
    /// (`max_amsdu_len`, `max_rc_amsdu_len`, `max_tid_amsdu_len`). The frame may be longer by what A-MSDU adds: up to 25 bytes.
    pub bytes: u32,
    /// The most packets of a frame (`max_amsdu_subframes`, `max_tx_fragments`).
    pub packets: u32,
}

impl Amsdu {
    /// None is formed.
    const NONE: Self = Self {
        bytes: 0,
        packets: 1,
    };
}

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
    /// A-MSDUs; `None` with drivers without `IEEE80211_HW_TX_AMSDU`, as ath9k.
    pub amsdu: Option<Amsdu>,
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
        amsdu: None,
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
    /// Bytes that its frames have beyond their first packets.
    joined_bytes: u64,
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
    amsdu: Amsdu,
}

/// What a queued frame has beyond its first packet.
struct Joined<P> {
    packets: Vec<P>,
    bytes: u32,
}

impl<P> Joined<P> {
    const NOTHING: Self = Self {
        packets: Vec::new(),
        bytes: 0,
    };
}

/// Bytes of a frame before its body: header with QoS.
const BEFORE_BODY: u32 = 26;

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
    /// By queue, for each of its frames; empty without A-MSDU.
    joined: Vec<VecDeque<Joined<P>>>,
    /// Packets that are not the first of their frame.
    joined_packets: u64,
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
            joined_bytes: 0,
        };
        let queues = if settings.amsdu.is_some() {
            shared as usize + tins
        } else {
            0
        };
        let tin = Tin {
            new: List::EMPTY,
            old: List::EMPTY,
            packets: 0,
            slow: false,
            amsdu: settings.amsdu.unwrap_or(Amsdu::NONE),
        };
        Self {
            settings,
            pool: Pool::new(),
            flows: (0..shared as usize + tins).map(|_| flow()).collect(),
            tins: vec![tin; tins],
            joined: (0..queues).map(|_| VecDeque::new()).collect(),
            joined_packets: 0,
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
        self.pool.packets() + self.joined_packets
    }

    #[cfg(test)]
    pub(super) const fn frames(&self) -> u64 {
        self.pool.packets()
    }

    pub(super) fn set_slow(&mut self, tin: usize, slow: bool) {
        self.tins[tin].slow = slow;
    }

    /// Sets what limits the A-MSDUs of a tin, if there are any.
    pub(super) fn limit_amsdu(&mut self, tin: usize, limits: Amsdu) {
        self.tins[tin].amsdu = limits;
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

    /// Queues a packet. False if it has joined a frame that is queued already: then no limit applies, and the kernel
    /// does not tell the driver.
    pub(super) fn enqueue(
        &mut self,
        tin: usize,
        mut packet: P,
        now: Time,
        env: &mut Environment<P>,
    ) -> bool {
        packet.set_enqueued(now);
        let at = self.flow_of(tin, &packet, env);
        if self.settings.amsdu.is_some() {
            match self.join(tin, at, packet) {
                None => return false,
                Some(alone) => packet = alone,
            }
            self.joined[at as usize].push_back(Joined::NOTHING);
        }
        self.memory += memory(self.settings.frame(packet.bytes()));
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
        true
    }

    /// Adds a packet to the last frame of a queue; returns it if there is none or the frame has no room. Padding goes before a
    /// subframe, and only the memory of the first packet counts (`ieee80211_amsdu_aggregate`).
    fn join(&mut self, tin: usize, at: u32, packet: P) -> Option<P> {
        let limits = self.tins[tin].amsdu;
        let flow = &mut self.flows[at as usize];
        let (Some(last), Some(joined)) = (flow.queue.back(), self.joined[at as usize].back_mut())
        else {
            return Some(packet);
        };
        let first = self.pool.get(last).map_or(0, |first| first.bytes());
        let frame = self.settings.frame(first).saturating_add(joined.bytes);
        let fits = frame.saturating_add(packet.bytes()) <= limits.bytes;
        if !fits || joined.packets.len() as u64 + 2 > u64::from(limits.packets) {
            return Some(packet);
        }
        let header = if joined.packets.is_empty() {
            frames::AMSDU_SUBFRAME
        } else {
            0
        };
        let body = (frame + header).saturating_sub(BEFORE_BODY);
        let padding = frames::padded(body) - body;
        let more = header + padding + frames::LLC + packet.bytes();
        joined.bytes += more;
        joined.packets.push(packet);
        flow.joined_bytes += u64::from(more);
        self.joined_packets += 1;
        None
    }

    /// What the first frame of a queue had beyond its first packet, which has left.
    fn take_joined(&mut self, at: u32) -> Joined<P> {
        let queue = self.joined.get_mut(at as usize);
        let Some(joined) = queue.and_then(VecDeque::pop_front) else {
            return Joined::NOTHING;
        };
        self.flows[at as usize].joined_bytes -= u64::from(joined.bytes);
        self.joined_packets -= joined.packets.len() as u64;
        joined
    }

    /// Drops what the first frames of a queue had beyond their first packets, which were dropped.
    fn drop_joined(&mut self, at: u32, frames: u32, why: DropReason, env: &mut Environment<P>) {
        for _ in 0..frames {
            for packet in self.take_joined(at).packets {
                env.drop(packet, why);
            }
        }
    }

    /// Drops from the queue with the most bytes; of several with as many, from the first.
    fn drop_from_longest(&mut self, env: &mut Environment<P>) -> Option<()> {
        let header = u64::from(self.settings.header);
        let bytes = |flow: &Flow| {
            flow.queue.bytes() + flow.joined_bytes + header * u64::from(flow.queue.packets())
        };
        let flows = self.flows.iter_mut().enumerate();
        let active = flows.filter(|(_, flow)| !flow.queue.is_empty());
        let (at, flow) = active.rev().max_by_key(|(_, flow)| bytes(flow))?;
        let most = BATCH.min(flow.queue.packets() / 2).max(1);
        for _ in 0..most {
            if let Some(packet) = self.pool.pop_front(&mut flow.queue) {
                self.tins[flow.tin as usize].packets -= 1;
                self.memory -= memory(self.settings.frame(packet.bytes()));
                env.drop(packet, DropReason::Overflow);
            }
        }
        self.drop_joined(at as u32, most, DropReason::Overflow, env);
        Some(())
    }

    pub(super) fn dequeue(
        &mut self,
        tin: usize,
        now: Time,
        env: &mut Environment<P>,
    ) -> Option<Frame<P>> {
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
            let taken = before - flow.queue.packets();
            self.tins[tin].packets -= u64::from(taken);
            let dropped = taken - u32::from(served.is_some());
            if dropped > 0 {
                self.drop_joined(at, dropped, DropReason::Aqm, env);
            }
            let Some(packet) = served else {
                self.retire(tin, at);
                continue;
            };
            let mut frame = Frame::of(packet);
            if self.settings.amsdu.is_some() {
                let joined = self.take_joined(at);
                frame.more = joined.packets;
                frame.bytes += joined.bytes;
            }
            self.flows[at as usize].deficit -= i64::from(self.settings.frame(frame.bytes));
            return Some(frame);
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
        while let Some(frame) = fq.dequeue(tin, Time::from_millis(1), env) {
            flows.push(frame.packet.payload);
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
        assert_eq!(first.packet.payload, 1);
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

    fn with_amsdu(bytes: u32, packets: u32) -> FqSettings {
        FqSettings {
            amsdu: Some(Amsdu { bytes, packets }),
            ..FqSettings::LINUX
        }
    }

    /// What the frames of a tin have: the numbers of their packets, and the bytes of each as 802.11's without check sequence.
    fn frames(
        fq: &mut Fq<Datagram<u32>>,
        tin: usize,
        env: &mut Environment<Datagram<u32>>,
    ) -> Vec<(Vec<u32>, u32)> {
        let mut frames = Vec::new();
        while let Some(frame) = fq.dequeue(tin, Time::from_millis(1), env) {
            let mut packets = vec![frame.packet.payload];
            packets.extend(frame.more.iter().map(|packet| packet.payload));
            frames.push((packets, fq.settings.frame(frame.bytes)));
        }
        frames
    }

    /// A packet of flow 1 with a number of its own.
    fn numbered(number: u32, bytes: u32) -> Datagram<u32> {
        let mut packet = packet(1, bytes);
        packet.payload = number;
        packet
    }

    #[test]
    fn a_packet_joins_the_last_frame_of_its_flow() {
        // `ieee80211_amsdu_aggregate`: 1534 bytes get a subframe's header of 14, and padding of 2 since 1522 are no multiple of
        // four; the next has 1514 - 14 and its own of 14 + 8.
        let (mut fq, mut env) = fq(with_amsdu(3839, u32::MAX));
        let is_new: Vec<_> = (0..5)
            .map(|number| fq.enqueue(0, numbered(number, 1514), Time::ZERO, &mut env))
            .collect();
        assert_eq!(is_new, [true, false, true, false, true]);
        assert_eq!((fq.packets(), fq.packets_of(0)), (5, 3), "frames");
        let expected = [
            (vec![0, 1], 1548 + 2 + 1522),
            (vec![2, 3], 3072),
            (vec![4], 1534),
        ];
        assert_eq!(frames(&mut fq, 0, &mut env), expected);
        assert_eq!((fq.packets(), fq.memory), (0, 0));
    }

    #[test]
    fn another_flow_or_station_has_frames_of_its_own() {
        // `fq_flow_classify`: the second station's flows share its default queue, and so a frame.
        let (mut fq, mut env) = fq(FqSettings {
            flows: 1,
            ..with_amsdu(3839, u32::MAX)
        });
        for (tin, flow) in [(0, 1), (4, 2), (4, 3), (0, 1)] {
            fq.enqueue(tin, packet(flow, 100), Time::ZERO, &mut env);
        }
        assert_eq!(frames(&mut fq, 4, &mut env)[0].0, [2, 3]);
        assert_eq!(frames(&mut fq, 0, &mut env)[0].0, [1, 1]);
        fq.enqueue(0, packet(1, 100), Time::ZERO, &mut env);
        assert_eq!(frames(&mut fq, 0, &mut env)[0].0, [1], "no frame waits");
    }

    #[test]
    fn what_a_frame_gets_besides_the_packet_is_beyond_the_limit_of_bytes() {
        // `skb->len + head->len > max_amsdu_len`, the former as Ethernet, the latter as 802.11: 1514 + 1534.
        for (limit, count) in [(3047, 1), (3048, 2)] {
            let (mut fq, mut env) = fq(with_amsdu(limit, u32::MAX));
            for number in 0..2 {
                fq.enqueue(0, numbered(number, 1514), Time::ZERO, &mut env);
            }
            assert_eq!(frames(&mut fq, 0, &mut env)[0].0.len(), count);
        }
        // 7935 bytes: 3072 + 3 · 1524 are 7644.
        let (mut fq, mut env) = fq(with_amsdu(7935, u32::MAX));
        for number in 0..6 {
            fq.enqueue(0, numbered(number, 1514), Time::ZERO, &mut env);
        }
        assert_eq!(frames(&mut fq, 0, &mut env)[0], (vec![0, 1, 2, 3, 4], 7644));
    }

    #[test]
    fn a_frame_has_no_more_packets_than_the_receiver_takes() {
        // `max_amsdu_subframes`: `n` counts the packet that would join.
        let (mut fq, mut env) = fq(with_amsdu(3839, 3));
        for number in 0..7 {
            fq.enqueue(0, numbered(number, 61), Time::ZERO, &mut env);
        }
        let packets = frames(&mut fq, 0, &mut env);
        assert_eq!(
            packets.iter().map(|(of, _)| of.len()).collect::<Vec<_>>(),
            [3, 3, 1]
        );
        // 81 + 14, then twice 3 of padding and 61 + 8.
        assert_eq!(packets[0].1, 95 + 2 * 72);
    }

    #[test]
    fn limits_count_frames_and_the_memory_of_their_first_packets() {
        // `fq_tin_enqueue` and its limits see the frame alone; `ieee80211_amsdu_aggregate` adds no memory but what its header
        // takes. Half of the frames go, `fq_flow_drop`.
        let (mut fq, mut env) = fq(FqSettings {
            packets: 4,
            ..with_amsdu(3839, u32::MAX)
        });
        for number in 0..8 {
            fq.enqueue(0, numbered(number, 1514), Time::ZERO, &mut env);
        }
        assert!(!env.has_dropped());
        assert_eq!((fq.packets(), fq.memory), (8, 4 * 2304));
        fq.enqueue(0, numbered(8, 1514), Time::ZERO, &mut env);
        let mut dropped: Vec<_> = env.take_dropped().map(|(of, _)| of.payload).collect();
        dropped.sort_unstable();
        assert_eq!(dropped, [0, 1, 2, 3]);
        assert_eq!((fq.packets(), fq.memory), (5, 3 * 2304));
        assert_eq!(
            fq.flows.iter().map(|flow| flow.joined_bytes).sum::<u64>(),
            2 * 1538
        );
    }

    #[test]
    fn the_longest_queue_has_the_most_bytes_of_frames() {
        // `flow->backlog` has what A-MSDU adds: ten frames of 300 bytes are less than one frame with ten.
        let (mut fq, mut env) = fq(FqSettings {
            packets: 3,
            ..with_amsdu(3839, u32::MAX)
        });
        fq.hashes = [(1, 0), (2, 1 << 31), (3, 3 << 30)].into();
        for _ in 0..10 {
            fq.enqueue(0, packet(1, 200), Time::ZERO, &mut env);
        }
        fq.enqueue(0, packet(2, 1514), Time::ZERO, &mut env);
        fq.enqueue(0, packet(3, 60), Time::ZERO, &mut env);
        fq.enqueue(4, packet(4, 60), Time::ZERO, &mut env);
        let dropped: Vec<_> = env.take_dropped().map(|(of, _)| of.payload).collect();
        assert_eq!(dropped, [1; 10]);
    }

    #[test]
    fn a_flow_is_charged_the_bytes_of_the_frame() {
        // `fq_tin_dequeue`: after a frame of 3072 bytes, the other flow has 11 quanta of 300.
        let (mut fq, mut env) = fq(with_amsdu(3839, 2));
        for number in 0..4 {
            fq.enqueue(0, numbered(number, 1514), Time::ZERO, &mut env);
        }
        for _ in 0..40 {
            fq.enqueue(0, packet(7, 280), Time::ZERO, &mut env);
        }
        let order: Vec<_> = frames(&mut fq, 0, &mut env)
            .into_iter()
            .map(|(packets, _)| packets[0] == 7)
            .collect();
        // A frame of two has 300 + 14 + 2 + 288 bytes.
        assert_eq!(
            order.iter().take(8).filter(|is_small| **is_small).count(),
            6
        );
    }

    #[test]
    fn codel_takes_a_frame_for_a_packet() {
        // `codel_skb_time_func`: the time since the first packet came, 101 ms and more above the target. `INET_ECN_set_ce` marks
        // the first packet; without ECN all are dropped (`ieee80211_free_txskb`).
        use sojourn_aqm::Ecn;
        for ecn in [Ecn::NotEct, Ecn::Ect0] {
            let (mut fq, mut env) = fq(with_amsdu(3839, 2));
            let mut sent = Vec::new();
            for step in 0..400 {
                let now = Time::from_millis(step);
                for number in [2 * step, 2 * step + 1] {
                    let packet = numbered(number as u32, 700).with_ecn(ecn);
                    fq.enqueue(0, packet, now, &mut env);
                }
                if step >= 40 {
                    sent.extend(fq.dequeue(0, now, &mut env));
                }
            }
            let dropped: Vec<_> = env.take_dropped().map(|(of, _)| of.payload).collect();
            let marked = |packet: &Datagram<u32>| packet.ecn == Ecn::Ce;
            let first = sent.iter().filter(|frame| marked(&frame.packet)).count();
            let further = sent.iter().flat_map(|frame| &frame.more);
            assert_eq!(further.filter(|packet| marked(packet)).count(), 0);
            assert_eq!(
                (dropped.is_empty(), first > 2),
                (ecn != Ecn::NotEct, ecn != Ecn::NotEct)
            );
            assert!(
                dropped.chunks(2).all(|frame| frame[0] + 1 == frame[1]),
                "{dropped:?}"
            );
            assert!(sent.iter().all(|frame| frame.more.len() == 1));
        }
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
