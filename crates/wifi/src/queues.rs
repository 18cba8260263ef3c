//! Where a node's packets wait before they contend for the medium.
//!
//! | module | what is there |
//! | --- | --- |
//! | `ring` | a discipline above a device ring of settable size, whose packets the discipline does not see |
//! | [`mac80211`] | as Linux since 4.10: a queue per station and user priority, fairness between stations, airtime limits below |

pub mod mac80211;
mod ring;

use alloc::boxed::Box;

use sojourn_aqm::Environment;
use sojourn_path::link::BoxedQdisc;
use sojourn_units::{Duration, Time};

use crate::access::{Access, PriorityMap, UserPriority};
use crate::packet::Packet;
use crate::phy::Mode;
use mac80211::{Mac80211, Settings};
use ring::Ring;

/// Makes the discipline of a station and user priority.
pub type MakeQdisc<P> = Box<dyn FnMut() -> BoxedQdisc<P> + Send>;

/// How a node queues.
pub enum Queueing<P> {
    /// A discipline, and below it a device ring, from whose packets transmissions are aggregated.
    Ring {
        /// The discipline under test, or drop-tail.
        qdisc: BoxedQdisc<P>,
        /// Packets that the ring holds, at least one.
        packets: u64,
    },
    /// Linux's mac80211: FQ-CoDel per station and user priority.
    Mac80211(Settings),
    /// The same with any discipline per station and user priority in place of FQ-CoDel.
    PerStation(Settings, MakeQdisc<P>),
}

/// A node's peer and a user priority. Peers are numbered from zero: the stations of the access point, the access point of a
/// station.
pub(crate) type Peer = (usize, UserPriority);

/// A frame that leaves the queues.
pub(crate) struct Frame<P> {
    /// Its first packet.
    pub packet: P,
    /// The further ones of an A-MSDU.
    pub more: alloc::vec::Vec<P>,
    /// Of an A-MSDU, the bytes of a packet whose frame would be as long.
    pub bytes: u32,
    /// AQL's estimate of its airtime, in µs, once there is one.
    pub estimate: u32,
}

impl<P: Packet> Frame<P> {
    /// A frame with a single packet.
    pub(crate) fn of(packet: P) -> Self {
        Self {
            bytes: packet.bytes(),
            packet,
            more: alloc::vec::Vec::new(),
            estimate: 0,
        }
    }

    /// The number of its packets.
    pub(crate) fn packets(&self) -> u64 {
        1 + self.more.len() as u64
    }
}

/// User priorities.
pub(crate) const PRIORITIES: usize = UserPriority::ALL.len();

/// The number of the queue of a peer: those of a peer are in the order of user priorities, two for each category.
pub(crate) const fn queue_of((peer, priority): Peer) -> usize {
    peer * PRIORITIES + priority.index()
}

/// The peer of a queue.
pub(crate) const fn peer_of(queue: usize) -> Peer {
    (queue / PRIORITIES, UserPriority::at(queue))
}

/// Both user priorities of a category.
pub(crate) const fn priorities_of(access: Access) -> [UserPriority; 2] {
    let first = access.index() * 2;
    [UserPriority::at(first), UserPriority::at(first + 1)]
}

/// The user priority of a packet.
pub(crate) fn priority_of<P: Packet>(priorities: Option<PriorityMap>, packet: &P) -> UserPriority {
    priorities.map_or(UserPriority::BEST_EFFORT, |map| map.priority(packet.dscp()))
}

/// The queues of a node.
pub(crate) enum Queues<P> {
    Ring(Ring<P>),
    Mac80211(Box<Mac80211<P>>),
}

impl<P: Packet> Queues<P> {
    pub(crate) fn new(
        queueing: Queueing<P>,
        peers: usize,
        priorities: Option<PriorityMap>,
    ) -> Self {
        let (settings, make) = match queueing {
            Queueing::Ring { qdisc, packets } => {
                return Self::Ring(Ring::new(qdisc, packets, peers, priorities));
            }
            Queueing::Mac80211(settings) => (settings, None),
            Queueing::PerStation(settings, make) => (settings, Some(make)),
        };
        Self::Mac80211(Box::new(Mac80211::new(settings, make, peers)))
    }

    /// Queues a packet. `left` is called with each packet that leaves the discipline. False if the packet has joined a frame
    /// that waits already, so that nothing else changes.
    pub(crate) fn enqueue(
        &mut self,
        packet: P,
        peer: Peer,
        now: Time,
        env: &mut Environment<P>,
        left: impl FnMut(&P),
    ) -> bool {
        match self {
            Self::Ring(ring) => {
                ring.enqueue(packet, now, env, left);
                true
            }
            Self::Mac80211(queues) => queues.enqueue(packet, peer, now, env),
        }
    }

    /// False if no peer has a turn in this category and [`Queues::next_peer`] would change nothing. mac80211 counts the
    /// rounds in which it is asked.
    pub(crate) fn may_have_turns(&self, access: Access) -> bool {
        match self {
            Self::Ring(ring) => ring.has_turns(access),
            Self::Mac80211(_) => true,
        }
    }

    /// The peer whose turn it is; `None`: nothing may be sent in this category. `can_send` tells whether a frame may be sent
    /// to a peer, `has_retransmission` whether retransmissions to it wait. Airtime limits do not hold back retransmissions.
    pub(crate) fn next_peer(
        &mut self,
        access: Access,
        can_send: impl Fn(Peer) -> bool,
        has_retransmission: impl Fn(Peer) -> bool,
    ) -> Option<Peer> {
        match self {
            Self::Ring(ring) => ring.next_peer(access, can_send, has_retransmission),
            Self::Mac80211(queues) => queues.next_peer(access, can_send, has_retransmission),
        }
    }

    /// The next frame for a peer, if `fits` accepts its bytes; `mode` is for AQL's estimate.
    pub(crate) fn dequeue(
        &mut self,
        peer: Peer,
        mode: Mode,
        fits: impl Fn(u32) -> bool,
        now: Time,
        env: &mut Environment<P>,
        left: impl FnMut(&P),
    ) -> Option<Frame<P>> {
        match self {
            Self::Ring(ring) => {
                fits(ring.peek(peer)?).then_some(())?;
                ring.dequeue(peer, now, env, left).map(Frame::of)
            }
            Self::Mac80211(queues) => queues.dequeue(peer, mode, fits, now, env, left),
        }
    }

    /// Gives a peer a turn for its retransmissions, which are not in these queues.
    pub(crate) fn activate(&mut self, peer: Peer, now: Time) {
        match self {
            Self::Ring(ring) => ring.activate(peer),
            Self::Mac80211(queues) => queues.activate(peer, now),
        }
    }

    /// Ends a peer's turn. `has_retransmission` tells whether retransmissions to a peer wait.
    pub(crate) fn end_turn(
        &mut self,
        peer: Peer,
        has_retransmission: impl Fn(Peer) -> bool,
        now: Time,
    ) {
        match self {
            Self::Ring(ring) => ring.end_turn(peer, has_retransmission),
            Self::Mac80211(queues) => queues.end_turn(peer, has_retransmission(peer), now),
        }
    }

    /// A frame in the device has been acknowledged or dropped: AQL no longer counts its airtime.
    pub(crate) fn release(&mut self, peer: Peer, estimate: u32) {
        if let Self::Mac80211(queues) = self {
            queues.release(peer, estimate);
        }
    }

    /// Charges airtime to a peer: of frames to it, or of frames `received` from it.
    pub(crate) fn charge(&mut self, peer: Peer, airtime: Duration, received: bool, now: Time) {
        if let Self::Mac80211(queues) = self {
            queues.charge(peer, airtime, received, now);
        }
    }

    /// Notes the throughput that the rate control expects to a peer.
    pub(crate) fn note_rate(&mut self, peer: usize, expected_bps: u64) {
        if let Self::Mac80211(queues) = self {
            queues.note_rate(peer, expected_bps);
        }
    }

    /// Notes the most bytes of an A-MSDU to a peer by the rate control.
    pub(crate) fn limit_amsdu(&mut self, peer: usize, most_bytes: u32) {
        if let Self::Mac80211(queues) = self {
            queues.limit_amsdu(peer, most_bytes);
        }
    }

    /// Whether A-MSDUs form as packets enter, so that none form as they leave.
    pub(crate) const fn forms_amsdus(&self) -> bool {
        match self {
            Self::Ring(_) => false,
            Self::Mac80211(queues) => queues.forms_amsdus(),
        }
    }

    /// How many transmissions are prepared ahead, per category; 0: each is prepared when the medium is won.
    pub(crate) fn ready_ahead(&self) -> usize {
        match self {
            Self::Ring(_) => 0,
            Self::Mac80211(queues) => queues.ready_ahead(),
        }
    }

    /// Queued packets.
    pub(crate) fn packets(&self) -> u64 {
        match self {
            Self::Ring(ring) => ring.packets(),
            Self::Mac80211(queues) => queues.packets(),
        }
    }

    /// When the timer of a discipline is due next; [`Time::MAX`]: none is set.
    pub(crate) fn next_timer(&self) -> Time {
        match self {
            Self::Ring(ring) => ring.next_timer(),
            Self::Mac80211(queues) => queues.next_timer(),
        }
    }

    /// Runs the disciplines whose timers are due.
    pub(crate) fn on_timer(&mut self, now: Time, env: &mut Environment<P>, left: impl FnMut(&P)) {
        match self {
            Self::Ring(ring) => ring.on_timer(now, env, left),
            Self::Mac80211(queues) => queues.on_timer(now, env),
        }
    }
}
