//! The end of an exchange: frames arrive, acknowledgements come or fail to come, and contention resumes.

use sojourn_units::{Duration, Time, cold_path};

use super::{Departed, Medium, Phase, ends, node, owner};
use crate::access::Access;
use crate::aggregate::Mpdu;
use crate::backoff::Edcaf;
use crate::block_ack::Recipient;
use crate::exchange::Payload;
use crate::observer::{Loss, Node, Observer, Transmitted, Use};
use crate::packet::Packet;
use crate::queues::{PRIORITIES, Peer};
use crate::rate_control::Outcome;
use crate::session::{Msdu, Transmission};

impl<P: Packet> Medium<P> {
    /// The frames of the only sender have arrived.
    pub(super) fn deliver(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let sender = self.on_air.senders[0];
        let (member, access) = owner(sender.edcaf);
        let peer = self.members[member].categories[access.index()].ready[0].peer;
        let session = self.session(member, peer);
        if self.members[member].categories[access.index()].ready[0].payload
            == Payload::BlockAckRequest
        {
            let start = self.sessions[session].originator.start();
            self.with_recipient(session, now, observer, |recipient, up| {
                recipient.skip_to(start, now, up)
            });
        } else {
            self.receive((member, access), session, now, observer);
        }
        self.on_air.phase = if self.on_air.answered {
            Phase::Ending(self.on_air.start + sender.plan.whole())
        } else {
            Phase::Ending(now)
        };
    }

    /// The receiver takes the frames that it has received.
    fn receive(
        &mut self,
        (member, access): (usize, Access),
        session: usize,
        now: Time,
        observer: &mut impl Observer<P>,
    ) {
        // What is used in turn is taken out meanwhile.
        let mut recipient = self.take_recipient(session);
        let received = core::mem::take(&mut self.on_air.received);
        let category = &mut self.members[member].categories[access.index()];
        let mut frames = core::mem::take(&mut category.ready[0].frames);
        let has_qos = self.cell.standard.has_qos();
        for (mpdu, _) in frames.iter_mut().zip(&received).filter(|(_, is)| **is) {
            let sequence = mpdu.sequence;
            let Some(msdu) = mpdu.take() else {
                continue;
            };
            if !has_qos {
                self.pass_up(session, msdu, now, observer);
                continue;
            }
            let before = recipient.waiting_since();
            let mut up = |msdu| self.pass_up(session, msdu, now, observer);
            let late = recipient.receive(sequence, msdu, now, &mut up);
            self.note_wait(session, before, recipient.waiting_since());
            if late.is_some() {
                self.drop_all(member, late, Loss::Late, now, observer);
            }
        }
        self.members[member].categories[access.index()].ready[0].frames = frames;
        self.on_air.received = received;
        self.sessions[session].recipient = recipient;
    }

    /// Runs `act` on a session's recipient. The packets that the recipient passes up leave the medium.
    pub(super) fn with_recipient(
        &mut self,
        session: usize,
        now: Time,
        observer: &mut impl Observer<P>,
        act: impl FnOnce(&mut Recipient<Msdu<P>>, &mut dyn FnMut(Msdu<P>)),
    ) {
        let mut recipient = self.take_recipient(session);
        let before = recipient.waiting_since();
        act(&mut recipient, &mut |msdu| {
            self.pass_up(session, msdu, now, observer)
        });
        self.note_wait(session, before, recipient.waiting_since());
        self.sessions[session].recipient = recipient;
    }

    fn take_recipient(&mut self, session: usize) -> Recipient<Msdu<P>> {
        core::mem::replace(&mut self.sessions[session].recipient, Recipient::new())
    }

    /// Notes a wait for a missing frame that has begun `since` then; `before`: since when one was under way.
    fn note_wait(&mut self, session: usize, before: Time, since: Time) {
        if since != before && since != Time::MAX {
            self.reordering.push_back((since, session));
        }
    }

    /// Moves received packets out of the medium.
    #[inline(always)]
    fn pass_up(
        &mut self,
        session: usize,
        (first, more): Msdu<P>,
        now: Time,
        observer: &mut impl Observer<P>,
    ) {
        self.leave(session, first, now, observer);
        if !more.is_empty() {
            cold_path();
            for packet in more {
                self.leave(session, packet, now, observer);
            }
        }
    }

    #[inline(always)]
    fn leave(&mut self, session: usize, packet: P, now: Time, observer: &mut impl Observer<P>) {
        let (station, way) = ends(self.stations(), session / PRIORITIES);
        observer.on_departure(Node::sender(station, way), &packet, now);
        let account = self.airtime.of(station, way);
        account.packets += 1;
        account.bytes += u64::from(packet.bytes());
        self.departed.push_back(Departed {
            station,
            way,
            packet,
        });
    }

    /// Ends the exchange: accounts for its airtime, handles its outcome, and resumes contention.
    pub(super) fn finish(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let collided = self.on_air.senders.len() > 1;
        self.account(now, observer);
        self.exceptions.clear();
        let senders = core::mem::take(&mut self.on_air.senders);
        // The senders are put back below and count as sending until then, so that none of them contends too early.
        let answered = self.on_air.answered;
        for sender in &senders {
            let (member, _) = owner(sender.edcaf);
            if answered {
                self.succeed(sender.edcaf, now, observer);
            } else {
                let heard = sender.end + self.cell.timing.response_timeout();
                self.exceptions.push((member, heard.max(now)));
                self.fail(sender.edcaf, now, observer);
            }
        }
        let first = senders[0];
        self.on_air.senders = senders;
        if answered && self.continue_txop_if_it_fits(first.edcaf, now, observer) {
            return;
        }
        for at in 0..self.on_air.senders.len() {
            let of = self.on_air.senders[at].edcaf;
            let (member, access) = owner(of);
            let has_frame = self.fill_ready(member, access, now, observer);
            let member = &mut self.members[member];
            let category = &mut member.categories[access.index()];
            category.waiting_since = now;
            let slots = category.window.draw_slots(&mut member.random);
            self.contention.join(of, slots, has_frame);
        }
        let eifs = self.cell.timing.eifs_extra();
        let clear = if collided {
            now + eifs
        } else if answered {
            now
        } else {
            self.nav_end(first.edcaf, now, eifs)
        };
        self.resume(now, clear);
        for at in 0..self.on_air.senders.len() {
            let (member, _) = owner(self.on_air.senders[at].edcaf);
            self.settle(member, now, observer);
        }
    }

    /// A transmission without a collision was not answered. Its receiver did not decode it and waits for EIFS. The other
    /// nodes decoded it and wait for the missing answer (NAV). Returns the end of the NAV.
    fn nav_end(&mut self, of: Edcaf, now: Time, eifs: Duration) -> Time {
        let (member, access) = owner(of);
        let receiver = if member == 0 {
            self.last_peer[access.index()] + 1
        } else {
            0
        };
        self.exceptions.push((receiver, now + eifs));
        now + self.on_air.senders[0].plan.answer
    }

    /// The medium is idle: the back-off counters run on, from `clear` and AIFS.
    pub(super) fn resume(&mut self, now: Time, clear: Time) {
        self.on_air.phase = Phase::Idle;
        self.clear = clear;
        debug_assert!(clear >= now);
        let (exceptions, aifs) = (&self.exceptions, &self.aifs);
        self.contention.resume(self.on_air.busy, |edcaf| {
            let exception = exceptions.iter().find(|(of, _)| *of == edcaf as usize / 4);
            exception.map_or(clear, |(_, clear)| *clear) + aifs[edcaf as usize]
        });
    }

    /// A sender continues its TXOP a SIFS later if its next exchange fits. False if it does not continue.
    fn continue_txop_if_it_fits(
        &mut self,
        of: Edcaf,
        now: Time,
        observer: &mut impl Observer<P>,
    ) -> bool {
        let (member, access) = owner(of);
        let txop = self.members[member].categories[access.index()]
            .contending
            .txop;
        if txop.is_zero() || !self.ensure_ready(member, access, now, observer) {
            return false;
        }
        self.recompose(member, access, now);
        let next = now + self.cell.timing.sifs;
        let fits = next + self.plan(of).whole() <= self.on_air.busy + txop;
        if fits {
            self.continue_txop(of, next);
        }
        fits
    }

    /// Accounts for the airtime since the exchange began.
    fn account(&mut self, now: Time, observer: &mut impl Observer<P>) {
        let collided = self.on_air.senders.len() > 1;
        let what = match (collided, self.on_air.answered) {
            (true, _) => Use::Collision,
            (false, true) => Use::Exchange,
            (false, false) => Use::Unanswered,
        };
        if collided {
            self.airtime.note_collision(now);
        }
        for at in 0..self.on_air.senders.len() {
            let sender = self.on_air.senders[at];
            let (member, access) = owner(sender.edcaf);
            let category = &self.members[member].categories[access.index()];
            let transmission = &category.ready[0];
            let (station, way) = ends(self.stations(), self.link(member, transmission.peer.0));
            let chain = &transmission.chain;
            let mode = chain
                .after(transmission.tries)
                .map_or_else(|| chain.slowest(), |stage| stage.1);
            let received = if collided {
                &[][..]
            } else {
                &self.on_air.received[..]
            };
            observer.on_air(&Transmitted {
                node: node(member),
                station,
                access,
                mode,
                what,
                start: self.on_air.start,
                end: if collided { sender.end } else { now },
                waiting_since: category.waiting_since,
                frames: transmission.frames.len() as u16,
                received: received.iter().filter(|&&received| received).count() as u16,
                tries: transmission.tries,
            });
            let (frames, retried) = (transmission.frames.len() as u64, transmission.tries > 0);
            let peer = transmission.peer;
            if !collided {
                self.airtime.note_exchange(station, way, now);
            }
            let account = self.airtime.of(station, way);
            account.transmissions += 1;
            account.frames += frames;
            account.retries += u64::from(retried);
            // Linux's access point charges a station the duration of the frames alone, both sent and received.
            let data = Duration::min(sender.plan.data, sender.end - self.on_air.start);
            if member == 0 {
                self.last_peer[access.index()] = peer.0;
                self.members[0].queues.charge(peer, data, false, now);
            } else if !collided && self.on_air.received.contains(&true) {
                let from = (member - 1, peer.1);
                self.members[0].queues.charge(from, data, true, now);
            }
        }
    }

    /// A transmission was answered: at least one of its frames is acknowledged.
    fn succeed(&mut self, of: Edcaf, now: Time, observer: &mut impl Observer<P>) {
        let (member, access) = owner(of);
        let category = &mut self.members[member].categories[access.index()];
        category.window.reset();
        let Some(mut sent) = category.ready.pop_front() else {
            return;
        };
        let link = self.link(member, sent.peer.0);
        if sent.payload != Payload::BlockAckRequest {
            let outcome = Outcome {
                tries: sent.tries + 1,
                frames: sent.frames.len() as u16,
                delivered: self
                    .on_air
                    .received
                    .iter()
                    .filter(|&&received| received)
                    .count() as u16,
            };
            self.controllers[link].report(&sent.chain, outcome);
            let session = self.session(member, sent.peer);
            for (at, mpdu) in sent.frames.iter_mut().enumerate() {
                if self.on_air.received.get(at) == Some(&true) {
                    self.sessions[session].originator.finish(mpdu.sequence);
                    let queues = &mut self.members[member].queues;
                    queues.release(sent.peer, mpdu.estimate);
                } else {
                    let mut mpdu = mpdu.take_whole();
                    mpdu.failures = mpdu.failures.saturating_add(1);
                    self.retransmit_or_drop(member, sent.peer, mpdu, now, observer);
                }
            }
        }
        sent.frames.clear();
        self.spare.push(sent.frames);
    }

    /// A transmission was not answered.
    fn fail(&mut self, of: Edcaf, now: Time, observer: &mut impl Observer<P>) {
        let (member, access) = owner(of);
        let category = &mut self.members[member].categories[access.index()];
        category.window.double();
        let sent = &mut category.ready[0];
        sent.tries += 1;
        for mpdu in &mut sent.frames {
            mpdu.failures = mpdu.failures.saturating_add(1);
        }
        if sent.chain.after(sent.tries).is_some() {
            return;
        }
        // All tries of the chain have failed. With Block Ack, frames below their retry limit go into new transmissions.
        // All other frames are dropped.
        category.window.reset();
        let Some(sent) = category.ready.pop_front() else {
            return;
        };
        self.abandon(member, sent, now, observer);
    }

    /// Reports the failure of a transmission, and retransmits or drops its frames.
    fn abandon(
        &mut self,
        member: usize,
        mut sent: Transmission<P>,
        now: Time,
        observer: &mut impl Observer<P>,
    ) {
        let link = self.link(member, sent.peer.0);
        if sent.payload != Payload::BlockAckRequest {
            let outcome = Outcome {
                tries: sent.tries,
                frames: sent.frames.len() as u16,
                delivered: 0,
            };
            self.controllers[link].report(&sent.chain, outcome);
        }
        for mpdu in sent.frames.drain(..) {
            self.retransmit_or_drop(member, sent.peer, mpdu, now, observer);
        }
        self.spare.push(sent.frames);
    }

    /// Queues a frame for retransmission. At its retry limit, or without Block Ack, drops it instead.
    fn retransmit_or_drop(
        &mut self,
        member: usize,
        peer: Peer,
        mut mpdu: Mpdu<P>,
        now: Time,
        observer: &mut impl Observer<P>,
    ) {
        let has_qos = self.cell.standard.has_qos();
        let session = self.session(member, peer);
        let session = &mut self.sessions[session];
        if has_qos && mpdu.failures < self.cell.aggregate_retry_limit {
            session.queue_retransmission(mpdu);
            self.members[member].queues.activate(peer, now);
            return;
        }
        session.originator.finish(mpdu.sequence);
        if has_qos {
            session.request_due = true;
            self.requests_due = true;
        }
        self.members[member].queues.release(peer, mpdu.estimate);
        self.drop_all(member, mpdu.take(), Loss::Retries, now, observer);
    }

    fn drop_all(
        &mut self,
        member: usize,
        msdu: Option<Msdu<P>>,
        why: Loss,
        now: Time,
        observer: &mut impl Observer<P>,
    ) {
        if let Some((first, more)) = msdu {
            for packet in core::iter::once(first).chain(more) {
                let queued = now.saturating_since(packet.enqueued());
                observer.on_drop(node(member), packet, why, queued, now);
            }
        }
    }
}
