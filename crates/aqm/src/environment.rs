//! The environment of a discipline: random numbers, and the record of drops and marks.

use alloc::vec::Vec;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::packet::Packet;
use crate::verdict::{DropReason, Verdict};

/// The environment of a discipline: random numbers, and the record of drops and marks. There is one per queue, so that
/// no other queue shifts its random stream.
pub struct Environment<P> {
    rng: Xoshiro256PlusPlus,
    dropped: Vec<(P, DropReason)>,
    marked: u64,
}

impl<P: Packet> Environment<P> {
    /// An environment whose random stream is determined by `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            dropped: Vec::with_capacity(64),
            marked: 0,
        }
    }

    /// Drops a packet.
    pub fn drop(&mut self, packet: P, reason: DropReason) {
        self.dropped.push((packet, reason));
    }

    /// Marks an ECN-capable packet and counts the mark. A packet that already carries CE is counted too, because the
    /// queue asked for a signal and the packet carries one.
    pub fn mark(&mut self, packet: &mut P) {
        debug_assert!(packet.ecn().is_capable());
        packet.set_ce();
        self.marked += 1;
    }

    /// Carries out a decision about a packet; returns the packet unless it is dropped.
    #[inline(always)]
    pub(crate) fn carry_out(&mut self, verdict: Verdict, packet: P) -> Option<P> {
        if verdict == Verdict::Pass {
            return Some(packet); // the usual case
        }
        self.signal(verdict, packet)
    }

    /// Marks or drops a packet.
    #[inline(never)]
    fn signal(&mut self, verdict: Verdict, mut packet: P) -> Option<P> {
        match verdict.for_packet(&packet) {
            Verdict::Pass => {}
            Verdict::Mark => self.mark(&mut packet),
            Verdict::Drop(reason) => {
                self.drop(packet, reason);
                return None;
            }
        }
        Some(packet)
    }

    /// A uniform random number in [0, 1), with 53 random bits.
    #[inline(always)]
    pub fn uniform(&mut self) -> f64 {
        // A signed number takes fewer instructions to convert.
        (self.rng.next_u64() >> 11) as i64 as f64 / (1_u64 << 53) as f64
    }

    /// A uniform random 64-bit word.
    pub fn random_u64(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Exchanges random streams with another environment, for an algorithm that sees the packets in another type. A
    /// second call undoes the first.
    pub const fn swap_random<Q>(&mut self, other: &mut Environment<Q>) {
        core::mem::swap(&mut self.rng, &mut other.rng);
    }

    /// Takes back the last dropped packet if others follow it in a burst: only the first of them is dropped.
    pub fn take_burst(&mut self) -> Option<(P, DropReason)> {
        if self.has_dropped_burst() {
            self.dropped.pop()
        } else {
            None
        }
    }

    /// True if the last dropped packet begins a burst.
    pub(crate) fn has_dropped_burst(&self) -> bool {
        (self.dropped.last()).is_some_and(|(packet, _)| packet.followers() > 0)
    }

    /// Takes the packets dropped since the last call, oldest first.
    pub fn take_dropped(&mut self) -> alloc::vec::Drain<'_, (P, DropReason)> {
        self.dropped.drain(..)
    }

    /// True if packets were dropped since they were last taken.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Marks since the beginning.
    pub const fn marked(&self) -> u64 {
        self.marked
    }
}
