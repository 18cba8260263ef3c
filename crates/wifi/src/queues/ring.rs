//! A discipline above a device ring, as the papers of 2013 measured it. The discipline holds only the packets for which the
//! ring has no room.
//!
//! Without aggregation the device sends packets in the order of their arrival. With aggregation it has a FIFO per peer and
//! category, and the peers take turns, as in ath9k before Linux 4.10.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_aqm::Environment;
use sojourn_path::link::BoxedQdisc;
use sojourn_units::Time;

use super::access_of;
use crate::access::{Access, PriorityMap};
use crate::packet::Packet;

pub(crate) struct Ring<P> {
    qdisc: BoxedQdisc<P>,
    limit: usize,
    held: usize,
    /// FIFOs by peer and category.
    fifos: Vec<VecDeque<P>>,
    /// The order of turns, per category: with aggregation the peers that have packets, without it the peer of each packet.
    turns: [VecDeque<u16>; 4],
    /// How code points map to categories; `None` without them, and without aggregation.
    priorities: Option<PriorityMap>,
}

impl<P: Packet> Ring<P> {
    pub(crate) fn new(
        qdisc: BoxedQdisc<P>,
        packets: u64,
        peers: usize,
        priorities: Option<PriorityMap>,
    ) -> Self {
        Self {
            qdisc,
            limit: packets.max(1) as usize,
            held: 0,
            fifos: (0..peers * 4).map(|_| VecDeque::new()).collect(),
            turns: Default::default(),
            priorities,
        }
    }

    pub(crate) fn enqueue(
        &mut self,
        packet: P,
        now: Time,
        env: &mut Environment<P>,
        left: impl FnMut(&P),
    ) {
        self.qdisc.enqueue(packet, now, env);
        self.fill(now, env, left);
    }

    /// Moves packets from the discipline to the ring while the ring has room.
    fn fill(&mut self, now: Time, env: &mut Environment<P>, mut left: impl FnMut(&P)) {
        while self.held < self.limit {
            let Some(packet) = self.qdisc.dequeue(now, env) else {
                return;
            };
            left(&packet);
            let (peer, access) = (packet.station(), access_of(self.priorities, &packet));
            let fifo = &mut self.fifos[usize::from(peer) * 4 + access.index()];
            let turns = &mut self.turns[access.index()];
            if self.priorities.is_none() || (fifo.is_empty() && !turns.contains(&peer)) {
                turns.push_back(peer);
            }
            fifo.push_back(packet);
            self.held += 1;
        }
    }

    pub(crate) fn has_turns(&self, access: Access) -> bool {
        !self.turns[access.index()].is_empty()
    }

    pub(crate) fn next_peer(
        &mut self,
        access: Access,
        can_send: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let turns = &mut self.turns[access.index()];
        for _ in 0..turns.len() {
            let peer = usize::from(*turns.front()?);
            if can_send(peer) {
                return Some(peer);
            }
            turns.rotate_left(1);
        }
        None
    }

    pub(crate) fn dequeue(
        &mut self,
        (peer, access): (usize, Access),
        now: Time,
        env: &mut Environment<P>,
        left: impl FnMut(&P),
    ) -> Option<P> {
        let packet = self.fifos[peer * 4 + access.index()].pop_front()?;
        self.held -= 1;
        if self.priorities.is_none() {
            self.turns[access.index()].pop_front();
        }
        self.fill(now, env, left);
        Some(packet)
    }

    /// Gives a peer a turn for its retransmissions, which are not in the ring.
    pub(crate) fn activate(&mut self, peer: usize, access: Access) {
        let turns = &mut self.turns[access.index()];
        if self.priorities.is_some() && !turns.contains(&(peer as u16)) {
            turns.push_back(peer as u16);
        }
    }

    /// Ends a peer's turn. `more`: retransmissions to it wait.
    pub(crate) fn end_turn(&mut self, peer: usize, access: Access, more: bool) {
        let turns = &mut self.turns[access.index()];
        if self.priorities.is_some() && turns.front() == Some(&(peer as u16)) {
            turns.pop_front();
            if more || !self.fifos[peer * 4 + access.index()].is_empty() {
                turns.push_back(peer as u16);
            }
        }
    }

    /// The bytes of a peer's next packet.
    pub(crate) fn peek(&self, peer: usize, access: Access) -> Option<u32> {
        let first = self.fifos[peer * 4 + access.index()].front();
        first.map(sojourn_aqm::Packet::bytes)
    }

    pub(crate) fn packets(&self) -> u64 {
        self.qdisc.packets() + self.held as u64
    }

    pub(crate) fn next_timer(&self) -> Time {
        let timer = self.qdisc.next_timer().unwrap_or(Time::MAX);
        if self.held < self.limit && self.qdisc.packets() > 0 {
            // The ring has room, but the discipline keeps its packets back: it shapes.
            timer.min(self.qdisc.ready_at().unwrap_or(Time::MAX))
        } else {
            timer
        }
    }

    pub(crate) fn on_timer(&mut self, now: Time, env: &mut Environment<P>, left: impl FnMut(&P)) {
        if self.qdisc.next_timer().is_some_and(|timer| timer <= now) {
            self.qdisc.on_timer(now, env);
        }
        self.fill(now, env, left);
    }
}
