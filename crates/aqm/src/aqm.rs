//! Active queue management of one queue: a decision per packet, apart from the queue itself.

use sojourn_units::Time;

use crate::packet::Packet;
use crate::qdisc::{DropReason, Environment};

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is kept as it is.
    Pass,
    /// It is marked and kept. Only for ECN-capable packets.
    Mark,
    /// It is given up.
    Drop,
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
pub trait Aqm {
    /// A packet arrives and there is room for it. The packet's `enqueued` time is `now`.
    fn on_enqueue<P: Packet>(
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
    fn on_dequeue<P: Packet>(
        &mut self,
        _packet: &P,
        _backlog: Backlog,
        _now: Time,
        _env: &mut Environment<P>,
    ) -> Verdict {
        Verdict::Pass
    }

    /// Why the packet of the last [`Verdict::Drop`] was given up.
    fn drop_reason(&self) -> DropReason {
        DropReason::Aqm
    }

    /// An arriving packet was given up for want of room; the queue stands at `backlog`.
    fn on_overflow(&mut self, _backlog: Backlog, _now: Time) {}

    /// A flow-queueing scheduler that was out of room gave up `packets` packets from the head of this queue.
    fn on_head_drops(&mut self, _packets: u64) {}

    /// A packet was asked for and the queue is empty.
    fn on_empty(&mut self, _now: Time) {}

    /// When `on_timer` is due; `None` if never.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Called once `next_timer` is reached.
    fn on_timer(&mut self, _backlog: Backlog, _now: Time) {}

    /// Shows the state by the defining document's names, for probes.
    fn state(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}

/// An [`Aqm`] as an object, for packets of one type: every `Aqm` is one. The methods are those of `Aqm`.
pub trait DynAqm<P: Packet> {
    /// [`Aqm::on_enqueue`].
    fn on_enqueue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict;

    /// [`Aqm::on_dequeue`].
    fn on_dequeue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict;

    /// [`Aqm::on_overflow`].
    fn on_overflow(&mut self, backlog: Backlog, now: Time);

    /// [`Aqm::on_empty`].
    fn on_empty(&mut self, now: Time);

    /// [`Aqm::next_timer`].
    fn next_timer(&self) -> Option<Time>;

    /// [`Aqm::on_timer`].
    fn on_timer(&mut self, backlog: Backlog, now: Time);

    /// [`Aqm::state`].
    fn state(&self, visit: &mut dyn FnMut(&'static str, f64));
}

impl<P: Packet, A: Aqm> DynAqm<P> for A {
    fn on_enqueue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        Aqm::on_enqueue(self, packet, backlog, now, env)
    }

    fn on_dequeue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        Aqm::on_dequeue(self, packet, backlog, now, env)
    }

    fn on_overflow(&mut self, backlog: Backlog, now: Time) {
        Aqm::on_overflow(self, backlog, now);
    }

    fn on_empty(&mut self, now: Time) {
        Aqm::on_empty(self, now);
    }

    fn next_timer(&self) -> Option<Time> {
        Aqm::next_timer(self)
    }

    fn on_timer(&mut self, backlog: Backlog, now: Time) {
        Aqm::on_timer(self, backlog, now);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        Aqm::state(self, visit);
    }
}
