//! Aggregates frames into transmissions. A transmission carries the retransmissions first, then new packets from the queues.

use sojourn_units::Time;

use super::{Medium, Member, Transmission, node, session_of};
use crate::access::Access;
use crate::aggregate::{Aggregation, Framing, Mpdu, Psdu};
use crate::block_ack::{MOST_OUTSTANDING, WINDOW};
use crate::exchange::Payload;
use crate::frames;
use crate::observer::Observer;
use crate::packet::Packet;
use crate::phy::Mode;
use crate::queues::{Peer, priorities_of};
use crate::rate_control::Chain;

impl<P: Packet> Medium<P> {
    /// Fills the queue of transmissions that the device prepares in advance. True if the category has something to send.
    #[inline(always)]
    pub(super) fn fill_ready(
        &mut self,
        member: usize,
        access: Access,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> bool {
        let ahead = self.members[member].queues.ready_ahead();
        if ahead == 0 {
            let category = &self.members[member].categories[access.index()];
            return !category.ready.is_empty()
                || self.has_something_to_send(member, access, WINDOW);
        }
        self.fill_ahead(ahead, (member, access), now, observer)
    }

    /// Prepares up to `ahead` transmissions. True if one is ready.
    #[inline(never)]
    fn fill_ahead(
        &mut self,
        ahead: usize,
        (member, access): (usize, Access),
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> bool {
        while self.members[member].categories[access.index()].ready.len() < ahead {
            let Some(built) = self.next_transmission(member, access, now, observer) else {
                break;
            };
            self.members[member].categories[access.index()]
                .ready
                .push_back(built);
        }
        !self.members[member].categories[access.index()]
            .ready
            .is_empty()
    }

    /// Prepares a transmission if none is ready. False if there is nothing to send.
    pub(super) fn ensure_ready(
        &mut self,
        member: usize,
        access: Access,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> bool {
        if self.members[member].categories[access.index()]
            .ready
            .is_empty()
        {
            let built = self.next_transmission(member, access, now, observer);
            self.members[member].categories[access.index()]
                .ready
                .extend(built);
        }
        !self.members[member].categories[access.index()]
            .ready
            .is_empty()
    }

    /// Frames to a peer that a member's device holds at most, on the air and waiting: a window, or more if two full
    /// aggregates are.
    fn reach(&self, member: usize) -> u16 {
        let ahead = self.members[member].queues.ready_ahead() as u16;
        (ahead * self.cell.aggregation.frames).clamp(WINDOW, MOST_OUTSTANDING)
    }

    /// The limits of an aggregate that is sent in these modes, of which this is the slowest.
    fn limits(&self, chain: &Chain, slowest: Mode) -> Aggregation {
        if chain.is_probe || !slowest.can_aggregate() {
            Aggregation::NONE
        } else {
            self.cell.aggregation
        }
    }

    /// Composes the transmission that is about to start anew if the device holds more than a window of frames for its peer:
    /// frames that the last Block Ack reported missing go first, and frames beyond the window wait. Devices of 802.11ac
    /// aggregate when they have won the medium.
    pub(super) fn recompose(&mut self, member: usize, access: Access, now: Time) {
        if self.reach(member) == WINDOW {
            return;
        }
        let ready = &self.members[member].categories[access.index()].ready[0];
        let slowest = ready.chain.slowest();
        let (limits, peer) = (self.limits(&ready.chain, slowest), ready.peer);
        let session = self.session(member, peer);
        let session = &mut self.sessions[session];
        let Member {
            queues, categories, ..
        } = &mut self.members[member];
        let sent = &mut categories[access.index()].ready[0];
        let is_composed = !session.has_retransmission()
            && sent.frames.iter().all(|mpdu| session.is_in_window(mpdu));
        if sent.tries > 0 || sent.payload == Payload::BlockAckRequest || is_composed {
            return;
        }
        for mpdu in sent.frames.drain(..) {
            session.queue_retransmission(mpdu);
        }
        let room = self.rooms.of(slowest, &limits, &self.cell.timing);
        sent.psdu = Psdu::default();
        while let Some(mpdu) = session.take_in_window(|bytes| room.holds(sent.psdu.with(bytes))) {
            sent.psdu = sent.psdu.with(mpdu.bytes);
            sent.frames.push(mpdu);
        }
        sent.payload = Payload::of(sent.frames.len());
        if session.has_retransmission() {
            queues.activate(peer, now);
        }
    }

    /// True if a packet, a retransmission or a BlockAckReq waits for this category, whose device holds `reach` frames to a peer.
    #[inline(always)]
    fn has_something_to_send(&mut self, member: usize, access: Access, reach: u16) -> bool {
        let stations = self.stations();
        let sessions = &self.sessions;
        let session = |peer| &sessions[session_of(stations, member, peer)];
        let (can_send, has_retransmission) = (
            |peer| session(peer).can_send(reach),
            |peer| session(peer).has_retransmission(),
        );
        self.members[member]
            .queues
            .next_peer(access, can_send, has_retransmission)
            .is_some()
            || (self.requests_due && self.peer_to_request(member, access).is_some())
    }

    /// The next transmission of a category: a BlockAckReq that is due, or frames to the peer whose turn it is.
    fn next_transmission(
        &mut self,
        member: usize,
        access: Access,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Transmission<P>> {
        if let Some(request) = self.next_block_ack_request(member, access) {
            return Some(request);
        }
        let stations = self.stations();
        let reach = self.reach(member);
        // The AQM may drop every packet that is queued for a peer. Then the next peer has its turn.
        for _ in 0..=2 * stations {
            let sessions = &self.sessions;
            let session = |peer| &sessions[session_of(stations, member, peer)];
            let (can_send, has_retransmission) = (
                |peer| session(peer).can_send(reach),
                |peer| session(peer).has_retransmission(),
            );
            let peer =
                self.members[member]
                    .queues
                    .next_peer(access, can_send, has_retransmission)?;
            let built = self.aggregate(member, peer, now, observer);
            self.note_drops(member, now, observer);
            if built.is_some() {
                return built;
            }
        }
        None
    }

    /// The first peer to which a BlockAckReq is due.
    fn peer_to_request(&self, member: usize, access: Access) -> Option<Peer> {
        let peers = if member == 0 { self.stations() } else { 1 };
        let of_peer = |peer| priorities_of(access).map(|priority| (peer, priority));
        let due = |peer: &Peer| self.sessions[self.session(member, *peer)].request_due;
        (0..peers).flat_map(of_peer).find(due)
    }

    /// A BlockAckReq, if a receiver has to be told that frames were dropped.
    fn next_block_ack_request(&mut self, member: usize, access: Access) -> Option<Transmission<P>> {
        if !self.requests_due {
            return None;
        }
        let peer = self.peer_to_request(member, access)?;
        let link = self.link(member, peer.0);
        let session = self.session(member, peer);
        self.sessions[session].request_due = false;
        self.requests_due = self.sessions.iter().any(|session| session.request_due);
        let mode = self.controllers[link].estimate().response();
        Some(Transmission {
            peer,
            payload: Payload::BlockAckRequest,
            frames: self.spare.pop().unwrap_or_default(),
            psdu: Psdu::default().with(frames::BLOCK_ACK_REQUEST),
            chain: Chain::of(mode, self.cell.retry_limit),
            tries: 0,
        })
    }

    /// Aggregates frames to a peer: first retransmissions, then new ones. `None` if there are none.
    fn aggregate(
        &mut self,
        member: usize,
        peer: Peer,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Transmission<P>> {
        let link = self.link(member, peer.0);
        let station = if member == 0 { peer.0 } else { member - 1 };
        let snr = self.channels[station].snr(now);
        let controller = &mut self.controllers[link];
        let chain = controller.chain(snr, now);
        let expected = controller.expected_bps();
        let (mode, slowest) = (chain.first(), chain.slowest());
        let limits = self.limits(&chain, slowest);
        let reach = self.reach(member);
        let framing = self.cell.framing;
        let room = self.rooms.of(slowest, &limits, &self.cell.timing);
        let fits = |psdu: Psdu| room.holds(psdu);
        let stations = self.channels.len();
        let session = &mut self.sessions[session_of(stations, member, peer)];
        let mut frames = self.spare.pop().unwrap_or_default();
        let mut psdu = Psdu::default();
        while let Some(mpdu) = session.take_retransmission(|bytes| fits(psdu.with(bytes))) {
            psdu = psdu.with(mpdu.bytes);
            frames.push(mpdu);
        }
        let Member { queues, env, .. } = &mut self.members[member];
        queues.note_rate(peer.0, expected);
        let sender = node(member);
        let most = u32::from(limits.frames.max(1));
        let most_amsdu_bytes = if queues.forms_amsdus() {
            queues.limit_amsdu(peer.0, self.controllers[link].most_amsdu_bytes());
            0
        } else {
            limits.amsdu_bytes
        };
        while !session.has_retransmission()
            && psdu.frames() < most
            && session.originator.has_room(reach)
        {
            let first_fits = |bytes| fits(psdu.with(framing.mpdu(framing.msdu(bytes))));
            let mut left = |packet: &P| observer.on_dequeue(sender, packet, now);
            let Some(taken) = queues.dequeue(peer, mode, first_fits, now, env, &mut left) else {
                break;
            };
            let mut amsdu = amsdu_bytes(&framing, 0, taken.bytes);
            let mut mpdu = Mpdu {
                sequence: session.originator.assign(),
                bytes: framing.mpdu(framing.msdu(taken.bytes)),
                packet: Some(taken.packet),
                more: taken.more,
                failures: 0,
                estimate: taken.estimate,
            };
            while amsdu < most_amsdu_bytes {
                let another = |bytes| {
                    let longer = amsdu_bytes(&framing, amsdu, bytes);
                    longer <= most_amsdu_bytes && fits(psdu.with(framing.mpdu(longer)))
                };
                let Some(taken) = queues.dequeue(peer, mode, another, now, env, &mut left) else {
                    break;
                };
                amsdu = amsdu_bytes(&framing, amsdu, taken.packet.bytes());
                mpdu.bytes = framing.mpdu(amsdu);
                mpdu.estimate += taken.estimate;
                mpdu.more.push(taken.packet);
            }
            psdu = psdu.with(mpdu.bytes);
            frames.push(mpdu);
        }
        let sessions = &self.sessions;
        let has_retransmission =
            |peer| sessions[session_of(stations, member, peer)].has_retransmission();
        queues.end_turn(peer, has_retransmission, now);
        if frames.is_empty() {
            self.spare.push(frames);
            return None;
        }
        Some(Transmission {
            peer,
            payload: Payload::of(frames.len()),
            frames,
            psdu,
            chain,
            tries: 0,
        })
    }
}

/// The bytes of an A-MSDU of `before` bytes with another packet.
fn amsdu_bytes(framing: &Framing, before: u32, packet_bytes: u32) -> u32 {
    frames::padded(before)
        .saturating_add(frames::AMSDU_SUBFRAME)
        .saturating_add(framing.msdu(packet_bytes))
}
