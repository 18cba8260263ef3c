//! Active queue management of one queue: a decision per packet, apart from the queue itself.

use sojourn_units::Time;

use crate::environment::{DropReason, Environment};
use crate::key::SettingError;
use crate::packet::Packet;
use crate::qdisc::Limit;
use crate::settings::Settings;

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is kept as it is.
    Pass,
    /// It is marked and kept. Only for ECN-capable packets.
    Mark,
    /// It is dropped.
    Drop(DropReason),
}

impl Verdict {
    /// Dropped as the algorithm's signal to the sender.
    pub const DROP: Self = Self::Drop(DropReason::Aqm);

    /// True if the packet is dropped, for whatever reason.
    pub const fn is_drop(self) -> bool {
        matches!(self, Self::Drop(_))
    }
}

/// What is queued, not counting the packet that is decided about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets in this queue.
    pub packets: u64,
    /// Bytes in this queue.
    pub bytes: u64,
    /// The part of `bytes` that carries CE.
    pub ce_bytes: u64,
    /// Bytes in the whole discipline: more than `bytes` where this queue is one of several.
    pub qdisc_bytes: u64,
}

/// An AQM algorithm for one queue, which somebody else keeps: [`crate::Single`] or a flow-queueing scheduler.
///
/// For every packet there is one call of `on_enqueue` (or `on_overflow`), and if it passed, one of
/// `on_dequeue` when it reaches the head.
pub trait Aqm<P: Packet>: Algorithm {
    /// A packet arrives and there is room for it. The packet's `enqueued` time is `now`.
    fn on_enqueue(
        &mut self,
        _packet: &P,
        _backlog: Backlog,
        _now: Time,
        _env: &mut Environment<P>,
    ) -> Verdict {
        Verdict::Pass
    }

    /// A packet has been taken from the head. After [`Verdict::Drop`] the next one, if there is one, is
    /// taken and asked about at the same instant.
    fn on_dequeue(
        &mut self,
        _packet: &P,
        _backlog: Backlog,
        _now: Time,
        _env: &mut Environment<P>,
    ) -> Verdict {
        Verdict::Pass
    }
}

/// What an AQM algorithm does besides deciding about packets, whatever their type.
pub trait Algorithm {
    /// An arriving packet was dropped for want of room; the queue stands at `backlog`.
    fn on_overflow(&mut self, _backlog: Backlog, _now: Time) {}

    /// A flow-queueing scheduler that was out of room dropped `packets` packets from the head of this queue.
    fn on_head_drops(&mut self, _packets: u64) {}

    /// A packet was asked for and the queue is empty.
    fn on_empty(&mut self, _now: Time) {}

    /// When `on_timer` is due; `None` if never.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Called once `next_timer` is reached.
    fn on_timer(&mut self, _backlog: Backlog, _now: Time) {}

    /// Takes other parameters from now on; see [`crate::Qdisc::change`]. `limit` is the queue's.
    ///
    /// # Errors
    /// The algorithm does not change while it runs, or a value is refused.
    fn change(&mut self, _settings: &Settings, _limit: Limit) -> Result<(), SettingError> {
        Err(SettingError::unchangeable())
    }

    /// Shows the state by the defining document's names, for probes.
    fn state(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}
