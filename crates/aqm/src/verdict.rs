//! The decision about a packet, and why a packet was dropped.

use crate::packet::Packet;

/// The decision about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Keep it unchanged.
    Pass,
    /// Mark it and keep it. A packet that is not ECN-capable is dropped instead, as a drop is the only signal that it can
    /// carry (RFC 3168 §5).
    Mark,
    /// Drop it.
    Drop(DropReason),
}

impl Verdict {
    /// Dropped as the algorithm's signal to the sender.
    pub const DROP: Self = Self::Drop(DropReason::Aqm);

    /// The decision as this packet can carry it: a mark is a drop if the packet is not ECN-capable.
    #[inline(always)]
    pub(crate) fn for_packet(self, packet: &impl Packet) -> Self {
        match self {
            Self::Mark if !packet.ecn().is_capable() => Self::DROP,
            verdict => verdict,
        }
    }

    /// True if the packet is dropped, for whatever reason.
    pub const fn is_drop(self) -> bool {
        matches!(self, Self::Drop(_))
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// Decided by the algorithm, as a signal to the sender.
    Aqm,
    /// Decided by a deterministic rule of an algorithm that also drops at random (MADPIE).
    Deterministic,
    /// There was no room.
    Overflow,
}
