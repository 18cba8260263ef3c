//! Active queue management of one queue: a decision per packet, separate from the queue itself.

use sojourn_units::Time;

use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::settings::Settings;
use crate::verdict::Verdict;

/// The queued packets, without the one to be decided about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets in this queue.
    pub packets: u64,
    /// Bytes in this queue.
    pub bytes: u64,
    /// The part of `bytes` in CE-marked packets.
    pub ce_bytes: u64,
    /// Bytes in the whole discipline: more than `bytes` if this queue is one of several.
    pub qdisc_bytes: u64,
}

/// An AQM algorithm for one queue. [`crate::Single`] or a flow-queueing scheduler owns the queue.
///
/// For every packet, `on_enqueue` (or `on_overflow`) is called once. If the packet passed, `on_dequeue` is called once
/// when it reaches the head.
pub trait Aqm<P: Packet>: Algorithm {
    /// Decides about a packet that arrives and fits in the queue. Its `enqueued` time is `now`.
    fn on_enqueue(
        &mut self,
        _packet: &P,
        _backlog: Backlog,
        _now: Time,
        _env: &mut Environment<P>,
    ) -> Verdict {
        Verdict::Pass
    }

    /// True if `on_enqueue` passes every packet and notes nothing about it, so that only the limit decides about arrivals.
    fn passes_arrivals(&self) -> bool {
        false
    }

    /// Decides about a packet taken from the head. After [`Verdict::Drop`] the next packet, if any, is taken and
    /// decided about at the same time.
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

/// The part of an AQM algorithm that does not depend on the type of the packets.
pub trait Algorithm {
    /// An arriving packet was dropped because there was no room; the queue holds `backlog`.
    fn on_overflow(&mut self, _backlog: Backlog, _now: Time) {}

    /// A flow-queueing scheduler without room dropped `packets` packets from the head of this queue.
    fn on_head_drops(&mut self, _packets: u64) {}

    /// A packet was requested while the queue is empty. Not every link does so: a token bucket, such as HTB, requests
    /// none from an empty queue.
    fn on_empty(&mut self, _now: Time) {}

    /// The last packet has left the queue.
    fn on_drained(&mut self, _now: Time) {}

    /// When `on_timer` is due; `None` if never, see [`crate::Qdisc::next_timer`].
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// True if only `on_timer` and `change` change `next_timer`.
    fn keeps_timer(&self) -> bool {
        false
    }

    /// Called once `next_timer` is reached.
    fn on_timer(&mut self, _backlog: Backlog, _now: Time) {}

    /// Changes the parameters while running; see [`crate::Qdisc::change`]. `limit` is the queue's.
    ///
    /// # Errors
    /// The algorithm cannot be changed while it runs, or a value is out of range.
    fn change(&mut self, _settings: &Settings, _limit: Limit) -> Result<(), SettingError> {
        Err(SettingError::unchangeable())
    }

    /// Reports the state under the defining document's names, for probes.
    fn state(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}
