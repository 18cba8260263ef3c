//! Putting transmissions together.

use sojourn_units::Time;

use super::{Medium, Member, Transmission, link, node};
use crate::access::Access;
use crate::aggregate::{Aggregation, Framing, Mpdu, Psdu};
use crate::block_ack::WINDOW;
use crate::exchange::Payload;
use crate::frames;
use crate::observer::Observer;
use crate::packet::Packet;
use crate::rate_control::Chain;

impl<P: Packet> Medium<P> {
    /// Builds the transmissions that the device prepares in advance. True if the category has something to send.
    pub(super) fn refill(
        &mut self,
        number: usize,
        access: Access,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> bool {
        let ahead = self.members[number].queues.ready_ahead();
        while self.members[number].categories[access.index()].ready.len() < ahead {
            let Some(built) = self.build(number, access, now, observer) else {
                break;
            };
            self.members[number].categories[access.index()]
                .ready
                .push_back(built);
        }
        !self.members[number].categories[access.index()]
            .ready
            .is_empty()
            || (ahead == 0 && self.has_waiting(number, access))
    }

    /// Makes sure that something is ready; false if there is nothing.
    pub(super) fn make_ready(
        &mut self,
        number: usize,
        access: Access,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> bool {
        if self.members[number].categories[access.index()]
            .ready
            .is_empty()
        {
            let built = self.build(number, access, now, observer);
            self.members[number].categories[access.index()]
                .ready
                .extend(built);
        }
        !self.members[number].categories[access.index()]
            .ready
            .is_empty()
    }

    /// True if a transmission could be built.
    fn has_waiting(&mut self, number: usize, access: Access) -> bool {
        let stations = self.stations();
        let sessions = &self.sessions;
        let session = |peer| &sessions[link(stations, number, peer) * 4 + access.index()];
        let peers = if number == 0 { stations } else { 1 };
        let (may, again) = (
            |peer| session(peer).can_send(),
            |peer| session(peer).has_again(),
        );
        self.members[number]
            .queues
            .next_peer(access, may, again)
            .is_some()
            || (self.requests_due && (0..peers).any(|peer| session(peer).request_due))
    }

    fn build(
        &mut self,
        number: usize,
        access: Access,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Transmission<P>> {
        if let Some(request) = self.build_request(number, access) {
            return Some(request);
        }
        let stations = self.stations();
        // A peer may have nothing to send after all, if its AQM dropped all of its packets.
        for _ in 0..=stations {
            let sessions = &self.sessions;
            let session = |peer| &sessions[link(stations, number, peer) * 4 + access.index()];
            let (may, again) = (
                |peer| session(peer).can_send(),
                |peer| session(peer).has_again(),
            );
            let peer = self.members[number].queues.next_peer(access, may, again)?;
            let built = self.gather(number, access, peer, now, observer);
            self.note_drops(number, now, observer);
            if built.is_some() {
                return built;
            }
        }
        None
    }

    /// A BlockAckReq, if a receiver has to be told that frames were dropped.
    fn build_request(&mut self, number: usize, access: Access) -> Option<Transmission<P>> {
        if !self.requests_due {
            return None;
        }
        let peers = if number == 0 { self.stations() } else { 1 };
        let due =
            |peer: &usize| self.sessions[self.link(number, *peer) * 4 + access.index()].request_due;
        let peer = (0..peers).find(due)?;
        let link = self.link(number, peer);
        self.sessions[link * 4 + access.index()].request_due = false;
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

    /// The next transmission to a peer: first the frames to repeat, then new ones.
    fn gather(
        &mut self,
        number: usize,
        access: Access,
        peer: usize,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> Option<Transmission<P>> {
        let link = self.link(number, peer);
        let station = if number == 0 { peer } else { number - 1 };
        let snr = self.channels[station].snr(now);
        let controller = &mut self.controllers[link];
        let chain = controller.chain(snr, now);
        let expected = controller.expected_bps();
        let (mode, slowest) = (chain.first(), chain.slowest());
        let limits = if chain.is_probe || !slowest.can_aggregate() {
            Aggregation::NONE
        } else {
            self.cell.aggregation
        };
        let timing = &self.cell.timing;
        let framing = self.cell.framing;
        let fits = |psdu: Psdu| psdu.fits(slowest, &limits, timing);
        let session = &mut self.sessions[link * 4 + access.index()];
        let mut frames = self.spare.pop().unwrap_or_default();
        let mut psdu = Psdu::default();
        while let Some(again) = session.take_again(|bytes| fits(psdu.with(bytes))) {
            psdu = psdu.with(again.bytes);
            frames.push(again);
        }
        let Member { queues, env, .. } = &mut self.members[number];
        queues.note_rate(peer, expected);
        let sender = node(number);
        let most = u32::from(limits.frames.max(1));
        while !session.has_again() && psdu.frames() < most && session.originator.has_room(WINDOW) {
            let first_fits = |bytes| fits(psdu.with(framing.mpdu(framing.msdu(bytes))));
            let mut left = |packet: &P| observer.on_dequeue(sender, packet, now);
            let Some((packet, estimate)) =
                queues.dequeue((peer, access), mode, first_fits, now, env, &mut left)
            else {
                break;
            };
            let mut mpdu = Mpdu {
                number: session.originator.assign(),
                bytes: framing.mpdu(framing.msdu(packet.bytes())),
                packet: Some(packet),
                more: alloc::vec::Vec::new(),
                failures: 0,
                estimate,
            };
            let mut inside = amsdu(
                &framing,
                0,
                mpdu.packet.as_ref().map_or(0, |packet| packet.bytes()),
            );
            loop {
                let another = |bytes| {
                    let together = amsdu(&framing, inside, bytes);
                    together <= limits.amsdu_bytes && fits(psdu.with(framing.mpdu(together)))
                };
                if inside >= limits.amsdu_bytes {
                    break;
                }
                let Some((packet, estimate)) =
                    queues.dequeue((peer, access), mode, another, now, env, &mut left)
                else {
                    break;
                };
                inside = amsdu(&framing, inside, packet.bytes());
                mpdu.bytes = framing.mpdu(inside);
                mpdu.estimate += estimate;
                mpdu.more.push(packet);
            }
            psdu = psdu.with(mpdu.bytes);
            frames.push(mpdu);
        }
        queues.end_turn((peer, access), session.has_again());
        if frames.is_empty() {
            self.spare.push(frames);
            return None;
        }
        Some(Transmission {
            peer,
            payload: if frames.len() > 1 {
                Payload::Aggregate
            } else {
                Payload::Frame
            },
            frames,
            psdu,
            chain,
            tries: 0,
        })
    }
}

/// The bytes of an A-MSDU with another packet.
fn amsdu(framing: &Framing, before: u32, packet_bytes: u32) -> u32 {
    frames::padded(before)
        .saturating_add(frames::AMSDU_SUBFRAME)
        .saturating_add(framing.msdu(packet_bytes))
}
