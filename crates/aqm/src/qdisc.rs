//! The queue discipline: what to keep, mark, drop and send next.

use alloc::vec::Vec;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sojourn_units::Time;

use crate::aqm::DynAqm;
use crate::packet::Packet;

/// Why a packet was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DropReason {
    /// The algorithm chose to: its signal to the sender.
    Aqm,
    /// The algorithm chose to, by a rule that leaves nothing to chance beside one that does (MADPIE).
    Deterministic,
    /// There was no room.
    Overflow,
}

/// What a discipline is given besides time: randomness, and where its drops and marks are noted.
/// One per queue, so that nothing else shifts its random stream.
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

    /// Gives a packet up.
    pub fn drop(&mut self, packet: P, reason: DropReason) {
        self.dropped.push((packet, reason));
    }

    /// Marks an ECN-capable packet and counts the mark. A packet that already carries CE counts again:
    /// the queue asked for a signal, and it is there.
    pub fn mark(&mut self, packet: &mut P) {
        debug_assert!(packet.ecn().is_capable());
        packet.set_ce();
        self.marked += 1;
    }

    /// A uniform random number in [0, 1), with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A uniform random 64-bit word.
    pub fn random_u64(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// Exchanges random streams with the environment of other packets, for an algorithm that sees ours as
    /// those. Called a second time it undoes the first.
    pub const fn swap_random<Q>(&mut self, other: &mut Environment<Q>) {
        core::mem::swap(&mut self.rng, &mut other.rng);
    }

    /// Takes the packets given up since the last call, oldest first.
    pub fn take_dropped(&mut self) -> alloc::vec::Drain<'_, (P, DropReason)> {
        self.dropped.drain(..)
    }

    /// True if packets were given up since they were last taken.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Marks since the beginning.
    pub const fn marked(&self) -> u64 {
        self.marked
    }
}

/// How much a queue may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// So many packets.
    Packets(u64),
    /// So many bytes, link headers included.
    Bytes(u64),
}

impl Limit {
    /// True if a packet of `bytes` still fits beside `packets` packets of `queued_bytes` bytes.
    pub const fn has_room(self, packets: u64, queued_bytes: u64, bytes: u32) -> bool {
        match self {
            Self::Packets(limit) => packets < limit,
            Self::Bytes(limit) => queued_bytes + bytes as u64 <= limit,
        }
    }
}

/// A queue discipline. Time only ever arrives as `now`, which never goes back.
///
/// Every packet offered is exactly once returned by [`Qdisc::dequeue`] or given up through
/// [`Environment::drop`], or is still queued.
pub trait Qdisc<P: Packet> {
    /// Offers a packet arriving at `now`. What is given up for it, this packet or another, goes to `env`.
    fn enqueue(&mut self, packet: P, now: Time, env: &mut Environment<P>);

    /// The next packet to send. Packets given up on the way go to `env`, oldest first. `None` if nothing
    /// is queued, or if the discipline shapes and nothing may leave yet (see [`Qdisc::ready_at`]).
    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P>;

    /// Packets queued.
    fn packets(&self) -> u64;

    /// Bytes queued, link headers included.
    fn bytes(&self) -> u64;

    /// When [`Qdisc::on_timer`] is due (PIE: every update period); `None` if never.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Called once `next_timer` is reached.
    fn on_timer(&mut self, _now: Time, _env: &mut Environment<P>) {}

    /// For disciplines with a shaper of their own: when a queued packet may leave. `None`: at once.
    fn ready_at(&self) -> Option<Time> {
        None
    }

    /// Shows the algorithm's state by the defining document's names, for probes: `probability`, `count` …
    fn state(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}

    /// The names of its inner queues, where it has several whose delays differ by design. It then tells every packet that
    /// leaves or is dropped from which ([`Packet::set_inner_queue`]).
    fn inner_queues(&self) -> &'static [&'static str] {
        &[]
    }

    /// The algorithm that alone governs its one queue, to be shown a recorded queue (see
    /// [`crate::replay::follow`]); `None` if there is more to the discipline.
    fn aqm(&mut self) -> Option<&mut dyn DynAqm<P>> {
        None
    }
}
