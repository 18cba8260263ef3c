//! The packets of a discipline with many queues: one pool of nodes, through which the queues are linked lists. After
//! the pool has grown to the largest backlog, nothing allocates.

use alloc::vec::Vec;

use sojourn_units::Time;

use crate::aqm::{Aqm, Backlog};
use crate::environment::Environment;
use crate::list::{Link, Linked, List, Stack};
use crate::packet::{Packet, ce_bytes};

/// One FIFO of packets in a [`Pool`].
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    list: List,
    packets: u32,
    bytes: u64,
    ce_bytes: u64,
}

impl Queue {
    /// A queue without packets.
    pub const EMPTY: Self = Self {
        list: List::EMPTY,
        packets: 0,
        bytes: 0,
        ce_bytes: 0,
    };

    /// Packets in this queue.
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes in this queue.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if there is no packet.
    pub const fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// The pool index of the first packet.
    pub fn front(&self) -> Option<u32> {
        self.list.front()
    }

    /// The pool index of the last packet.
    pub fn back(&self) -> Option<u32> {
        self.list.back()
    }
}

/// The scope of [`Backlog::qdisc_bytes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The bytes of its own queue.
    Queue,
    /// The bytes of all queues of the discipline.
    Discipline,
}

struct Node<P> {
    link: Link,
    packet: Option<P>,
}

impl<P> Linked for Node<P> {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The packets of all queues of a discipline.
pub struct Pool<P> {
    nodes: Vec<Node<P>>,
    /// Free nodes.
    free: Stack,
    packets: u64,
    bytes: u64,
}

impl<P: Packet> Pool<P> {
    /// A pool without packets.
    pub const fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: Stack::EMPTY,
            packets: 0,
            bytes: 0,
        }
    }

    /// Packets in all queues.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes in all queues.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The backlog of a queue, for its AQM.
    pub fn backlog(&self, queue: &Queue, scope: Scope) -> Backlog {
        Backlog {
            packets: u64::from(queue.packets),
            bytes: queue.bytes,
            ce_bytes: queue.ce_bytes,
            qdisc_bytes: match scope {
                Scope::Queue => queue.bytes,
                Scope::Discipline => self.bytes,
            },
        }
    }

    /// The next packet of a queue that its AQM lets pass. Dropped packets go to `env`. `see` is called with each
    /// packet.
    #[inline]
    pub fn serve<A: Aqm<P>>(
        &mut self,
        queue: &mut Queue,
        aqm: &mut A,
        scope: Scope,
        now: Time,
        env: &mut Environment<P>,
        see: impl Fn(&mut P),
    ) -> Option<P> {
        while let Some(mut packet) = self.pop_front(queue) {
            see(&mut packet);
            let verdict = aqm.on_dequeue(&packet, self.backlog(queue, scope), now, env);
            let passed = env.carry_out(verdict, packet);
            if passed.is_some() {
                return passed;
            }
        }
        aqm.on_empty(now);
        None
    }

    /// Appends a packet to a queue.
    #[inline(always)]
    pub fn push_back(&mut self, queue: &mut Queue, packet: P) {
        self.count_in(queue, &packet);
        let at = self.store(packet);
        queue.list.push_back(&mut self.nodes, at);
    }

    /// Inserts a packet at the head of a queue.
    pub fn push_front(&mut self, queue: &mut Queue, packet: P) {
        self.count_in(queue, &packet);
        let at = self.store(packet);
        queue.list.push_front(&mut self.nodes, at);
    }

    /// Removes the packet at the head of a queue.
    #[inline]
    pub fn pop_front(&mut self, queue: &mut Queue) -> Option<P> {
        let at = queue.list.pop_front(&mut self.nodes)?;
        self.take(queue, at)
    }

    /// Removes the packet at the tail of a queue.
    pub fn pop_back(&mut self, queue: &mut Queue) -> Option<P> {
        let at = queue.list.back()?;
        self.remove(queue, at)
    }

    /// Removes the packet at index `at`, which must be in the queue.
    pub fn remove(&mut self, queue: &mut Queue, at: u32) -> Option<P> {
        queue.list.remove(&mut self.nodes, at);
        self.take(queue, at)
    }

    /// Frees the node at `at`, which has left the queue's list, and returns its packet.
    #[inline]
    fn take(&mut self, queue: &mut Queue, at: u32) -> Option<P> {
        let packet = self.nodes[at as usize].packet.take()?;
        self.free.push(&mut self.nodes, at);
        let bytes = u64::from(packet.bytes());
        self.packets -= 1;
        self.bytes -= bytes;
        queue.packets -= 1;
        queue.bytes -= bytes;
        queue.ce_bytes -= ce_bytes(&packet);
        Some(packet)
    }

    /// The packet at index `at`, if there is one.
    pub fn get(&self, at: u32) -> Option<&P> {
        self.nodes[at as usize].packet.as_ref()
    }

    /// The index after `at` in its queue.
    pub fn after(&self, at: u32) -> Option<u32> {
        self.nodes[at as usize].link.next()
    }

    fn count_in(&mut self, queue: &mut Queue, packet: &P) {
        let bytes = u64::from(packet.bytes());
        self.packets += 1;
        self.bytes += bytes;
        queue.packets += 1;
        queue.bytes += bytes;
        queue.ce_bytes += ce_bytes(packet);
    }

    #[inline(always)]
    fn store(&mut self, packet: P) -> u32 {
        let Some(at) = self.free.pop(&mut self.nodes) else {
            return self.store_in_new(packet);
        };
        self.nodes[at as usize].packet = Some(packet);
        at
    }

    #[cold]
    #[inline(never)]
    fn store_in_new(&mut self, packet: P) -> u32 {
        self.nodes.push(Node {
            link: Link::ALONE,
            packet: Some(packet),
        });
        (self.nodes.len() - 1) as u32
    }
}

/// The earlier of two timers.
pub fn earliest(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;
    use crate::packet::Ecn;
    use crate::testing::packet;

    fn ids(pool: &mut Pool<Datagram<u64>>, queue: &mut Queue) -> Vec<u64> {
        core::iter::from_fn(|| pool.pop_front(queue))
            .map(|packet| packet.payload)
            .collect()
    }

    #[test]
    fn queues_in_one_pool_keep_their_order_and_their_counts() {
        let mut pool = Pool::new();
        let (mut one, mut other) = (Queue::EMPTY, Queue::EMPTY);
        for id in 0..3 {
            pool.push_back(&mut one, packet(1, id));
            pool.push_back(
                &mut other,
                packet(2, 10 + id).with_bytes(100).with_ecn(Ecn::Ce),
            );
        }
        pool.push_front(&mut other, packet(2, 9).with_bytes(50));
        let expected = Backlog {
            packets: 4,
            bytes: 350,
            ce_bytes: 300,
            qdisc_bytes: 3350,
        };
        assert_eq!(pool.backlog(&other, Scope::Discipline), expected);
        assert_eq!(pool.backlog(&other, Scope::Queue).qdisc_bytes, 350);
        assert_eq!(
            pool.pop_back(&mut other).map(|packet| packet.payload),
            Some(12)
        );
        assert_eq!(ids(&mut pool, &mut one), [0, 1, 2]);
        assert_eq!(ids(&mut pool, &mut other), [9, 10, 11]);
        assert_eq!((pool.packets(), pool.bytes()), (0, 0));
    }

    #[test]
    fn nodes_are_reused() {
        let mut pool = Pool::new();
        let mut queue = Queue::EMPTY;
        for id in 0..100 {
            pool.push_back(&mut queue, packet(1, id));
            pool.push_back(&mut queue, packet(1, id));
            let middle = queue.front().and_then(|front| pool.after(front));
            middle.and_then(|at| pool.remove(&mut queue, at));
            pool.pop_front(&mut queue);
        }
        assert!(queue.is_empty());
        assert_eq!(pool.nodes.len(), 2);
    }
}
