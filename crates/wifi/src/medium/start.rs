//! The start of an exchange: one node wins the medium, or several collide.

use sojourn_units::Time;

use super::{Medium, Phase, Sender, edcaf, owner};
use crate::backoff::Edcaf;
use crate::exchange::{Payload, Plan};
use crate::observer::Observer;
use crate::packet::Packet;

impl<P: Packet> Medium<P> {
    /// The nodes whose back-off is over begin to send.
    pub(super) fn start(&mut self, now: Time, observer: &mut impl Observer<P>) {
        self.airtime.note_idle(now);
        let mut winners = core::mem::take(&mut self.winners);
        self.contention.take_due(now, &mut winners);
        self.on_air.busy = now;
        self.on_air.senders.clear();
        // Sorted by member and category: within a member the last is the one with the highest priority.
        for (at, &winner) in winners.iter().enumerate() {
            let (member, access) = owner(winner);
            let beaten = winners
                .get(at + 1)
                .is_some_and(|&next| owner(next).0 == member);
            if beaten {
                // An internal collision: the lower priority backs off as if it had collided (§10.23.2.4).
                self.back_off(winner, true);
            } else if self.ensure_ready(member, access, now, observer) {
                self.recompose(member, access, now);
                self.add_sender(winner, now);
            }
        }
        winners.clear();
        self.winners = winners;
        match self.on_air.senders.len() {
            0 => self.resume(now, now),
            1 => self.begin(now),
            _ => self.collide(now),
        }
    }

    /// The same sender starts another exchange in its TXOP.
    pub(super) fn continue_txop(&mut self, winner: Edcaf, now: Time) {
        self.airtime.note_idle(now);
        self.on_air.senders.clear();
        self.add_sender(winner, now);
        self.begin(now);
    }

    fn add_sender(&mut self, winner: Edcaf, now: Time) {
        let plan = self.plan(winner);
        self.on_air.senders.push(Sender {
            edcaf: winner,
            plan,
            end: now + plan.exposed(),
        });
    }

    /// The durations of the exchange that a category has ready.
    pub(super) fn plan(&self, winner: Edcaf) -> Plan {
        let (member, access) = owner(winner);
        let transmission = &self.members[member].categories[access.index()].ready[0];
        let chain = &transmission.chain;
        let mode = chain
            .after(transmission.tries)
            .map_or_else(|| chain.slowest(), |stage| stage.1);
        let bytes = transmission.psdu.bytes(mode);
        Plan::new(&self.cell, mode, bytes, transmission.payload)
    }

    /// One node sends. Draws which of its frames are received, and whether the answer is.
    fn begin(&mut self, now: Time) {
        let Sender {
            edcaf: winner,
            plan,
            ..
        } = self.on_air.senders[0];
        let (member, access) = owner(winner);
        let transmission = &self.members[member].categories[access.index()].ready[0];
        let station = if member == 0 {
            transmission.peer.0
        } else {
            member - 1
        };
        let chain = &transmission.chain;
        let mode = chain
            .after(transmission.tries)
            .map_or_else(|| chain.slowest(), |stage| stage.1);
        let channel = &mut self.channels[station];
        channel.snr(now);
        let (control, answer_bytes) = plan.answer_frame;
        let is_clear_to_send = plan.rts.is_none()
            || (channel.receives(control, crate::frames::RTS)
                && channel.receives(control, crate::frames::CTS));
        let received = &mut self.on_air.received;
        received.clear();
        if transmission.payload == Payload::BlockAckRequest {
            received
                .push(is_clear_to_send && channel.receives(mode, crate::frames::BLOCK_ACK_REQUEST));
        } else {
            let frames = transmission.frames.iter();
            received
                .extend(frames.map(|mpdu| is_clear_to_send && channel.receives(mode, mpdu.bytes)));
        }
        let any = received.contains(&true);
        self.on_air.answered = any && channel.receives(control, answer_bytes);
        self.on_air.start = now;
        self.on_air.phase = if any {
            Phase::Arriving(now + plan.protection + plan.data)
        } else if is_clear_to_send {
            Phase::Ending(now + plan.protection + plan.data)
        } else {
            Phase::Ending(now + plan.exposed())
        };
        self.on_air.senders[0].end = match self.on_air.phase {
            Phase::Arriving(end) | Phase::Ending(end) => end,
            Phase::Idle => now,
        };
    }

    /// Several nodes send: nothing is received.
    fn collide(&mut self, now: Time) {
        let ends = self.on_air.senders.iter().map(|sender| sender.end);
        let end = ends.max().unwrap_or(now);
        self.on_air.received.clear();
        self.on_air.answered = false;
        self.on_air.start = now;
        self.on_air.phase = Phase::Ending(end);
    }

    /// Draws a back-off and contends again. After a failure the contention window doubles first.
    pub(super) fn back_off(&mut self, of: Edcaf, failed: bool) {
        let (member, access) = owner(of);
        debug_assert_eq!(of, edcaf(member, access));
        let member = &mut self.members[member];
        let category = &mut member.categories[access.index()];
        if failed {
            category.window.double();
        }
        let slots = category.window.draw_slots(&mut member.random);
        self.contention.join(of, slots, true);
    }
}
