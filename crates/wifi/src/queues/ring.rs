//! A discipline above a device ring, as the papers of 2013 measured it. The discipline holds only the packets for which the
//! ring has no room.
//!
//! Without aggregation the device sends packets in the order of their arrival. With aggregation it has a FIFO per peer and
//! user priority. In a category the peers take turns, and of a peer its two user priorities, as in ath9k before Linux 4.10
//! (`ath_txq_schedule`).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_aqm::Environment;
use sojourn_path::link::BoxedQdisc;
use sojourn_units::Time;

use super::{PRIORITIES, Peer, peer_of, priority_of, queue_of};
use crate::access::{Access, PriorityMap};
use crate::packet::Packet;

/// True if the peer of a queue stands in the order of its category.
fn has_turn(turns: &VecDeque<u16>, queue: usize) -> bool {
    let peer = queue / PRIORITIES;
    turns
        .iter()
        .any(|&first| usize::from(first) / PRIORITIES == peer)
}

pub(crate) struct Ring<P> {
    qdisc: BoxedQdisc<P>,
    limit: usize,
    held: usize,
    /// FIFOs by peer and user priority.
    fifos: Vec<VecDeque<P>>,
    /// The order of turns, per category: with aggregation the peers that have packets, without it the peer of each packet. A
    /// peer stands here as that of its two queues which goes first, and has frames.
    turns: [VecDeque<u16>; 4],
    /// How code points map to user priorities; `None` without them, and without aggregation.
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
            fifos: (0..peers * PRIORITIES).map(|_| VecDeque::new()).collect(),
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
            let priority = priority_of(self.priorities, &packet);
            let queue = queue_of((packet.station().into(), priority));
            let fifo = &mut self.fifos[queue];
            let turns = &mut self.turns[priority.access().index()];
            if self.priorities.is_none() || (fifo.is_empty() && !has_turn(turns, queue)) {
                turns.push_back(queue as u16);
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
        can_send: impl Fn(Peer) -> bool,
        has_retransmission: impl Fn(Peer) -> bool,
    ) -> Option<Peer> {
        let first = peer_of(usize::from(*self.turns[access.index()].front()?));
        if can_send(first) {
            return Some(first);
        }
        self.next_of_others(access, can_send, has_retransmission)
    }

    /// The same when the first in the order may not send.
    #[cold]
    #[inline(never)]
    fn next_of_others(
        &mut self,
        access: Access,
        can_send: impl Fn(Peer) -> bool,
        has_retransmission: impl Fn(Peer) -> bool,
    ) -> Option<Peer> {
        let turns = &mut self.turns[access.index()];
        for _ in 0..turns.len() {
            let first = peer_of(usize::from(*turns.front()?));
            if can_send(first) {
                return Some(first);
            }
            let other = (first.0, first.1.other());
            let has_frames = !self.fifos[queue_of(other)].is_empty() || has_retransmission(other);
            if has_frames && can_send(other) {
                return Some(other);
            }
            turns.rotate_left(1);
        }
        None
    }

    pub(crate) fn dequeue(
        &mut self,
        peer: Peer,
        now: Time,
        env: &mut Environment<P>,
        left: impl FnMut(&P),
    ) -> Option<P> {
        let packet = self.fifos[queue_of(peer)].pop_front()?;
        self.held -= 1;
        if self.priorities.is_none() {
            self.turns[peer.1.access().index()].pop_front();
        }
        self.fill(now, env, left);
        Some(packet)
    }

    /// Gives a peer a turn for its retransmissions, which are not in the ring.
    pub(crate) fn activate(&mut self, peer: Peer) {
        let turns = &mut self.turns[peer.1.access().index()];
        let queue = queue_of(peer);
        if self.priorities.is_some() && !has_turn(turns, queue) {
            turns.push_back(queue as u16);
        }
    }

    /// Ends a peer's turn. `has_retransmission` tells whether retransmissions to a peer wait.
    pub(crate) fn end_turn(&mut self, peer: Peer, has_retransmission: impl Fn(Peer) -> bool) {
        let other = (peer.0, peer.1.other());
        let turns = &mut self.turns[peer.1.access().index()];
        let is_first = |&first: &u16| peer_of(first.into()).0 == peer.0;
        if self.priorities.is_some() && turns.front().is_some_and(is_first) {
            turns.pop_front();
            let has_frames =
                |peer| !self.fifos[queue_of(peer)].is_empty() || has_retransmission(peer);
            let next = [other, peer].into_iter().find(|&peer| has_frames(peer));
            turns.extend(next.map(|peer| queue_of(peer) as u16));
        }
    }

    /// The bytes of a peer's next packet.
    pub(crate) fn peek(&self, peer: Peer) -> Option<u32> {
        let first = self.fifos[queue_of(peer)].front();
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

#[cfg(test)]
mod tests {
    use sojourn_aqm::fifo::DropTail;
    use sojourn_aqm::{Datagram, Limit, Single};

    use super::*;
    use crate::access::UserPriority;
    use alloc::boxed::Box;

    type Datagrams = Ring<Datagram<u32>>;

    /// A ring with a packet for each of these stations and code points, and its order of turns if each takes one packet.
    fn turns(packets: &[(u16, u8)]) -> Vec<(usize, u8)> {
        let fifo = Box::new(Single::new(DropTail, Limit::Packets(1)));
        let mut ring = Datagrams::new(fifo, 100, 3, Some(PriorityMap::Precedence));
        let mut env = Environment::new(1);
        for &(station, dscp) in packets {
            let mut packet = Datagram::new(0, 100).with_dscp(dscp);
            packet.set_station(station);
            ring.enqueue(packet, Time::ZERO, &mut env, |_| {});
        }
        let mut order = Vec::new();
        while let Some(peer) = ring.next_peer(Access::Video, |_| true, |_| false) {
            let packet = ring.dequeue(peer, Time::ZERO, &mut env, |_| {});
            assert!(packet.is_some(), "{peer:?}");
            ring.end_turn(peer, |_| false);
            order.push((peer.0, peer.1.number()));
        }
        assert_eq!(ring.packets(), 0);
        order
    }

    #[test]
    fn stations_take_turns_and_of_a_station_its_user_priorities() {
        // CS4 has user priority 4 and CS5 has 5, both of video. The second station has one of them.
        let packets = [(0, 32), (0, 32), (0, 40), (0, 40), (1, 40), (1, 40)];
        let expected = [(0, 4), (1, 5), (0, 5), (1, 5), (0, 4), (0, 5)];
        assert_eq!(turns(&packets), expected);
    }

    #[test]
    fn a_user_priority_that_may_not_send_leaves_its_turn_to_the_other() {
        let fifo = Box::new(Single::new(DropTail, Limit::Packets(1)));
        let mut ring = Datagrams::new(fifo, 100, 1, Some(PriorityMap::Rfc8325));
        let mut env = Environment::new(1);
        ring.enqueue(Datagram::new(0, 100), Time::ZERO, &mut env, |_| {});
        let [df, af21] = [0, 3].map(|number| (0, UserPriority::new(number)));
        let mut next = |can_send: Peer, retransmission: Option<Peer>| {
            ring.next_peer(
                Access::BestEffort,
                |peer| peer == can_send,
                |peer| Some(peer) == retransmission,
            )
        };
        assert_eq!(next(df, None), Some(df));
        assert_eq!(next(af21, None), None, "it has nothing");
        assert_eq!(next(af21, Some(af21)), Some(af21));
    }
}
