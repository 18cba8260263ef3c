//! What those see who watch a cell.

use sojourn_aqm::DropReason;
use sojourn_units::{Duration, Time, Way};

use crate::access::Access;
use crate::phy::Mode;

/// A node of the cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Node {
    /// The access point.
    AccessPoint,
    /// A station, by its number.
    Station(u16),
}

impl Node {
    /// Who sends in a direction: down is from the access point.
    pub const fn sender(station: u16, way: Way) -> Self {
        match way {
            Way::Down => Self::AccessPoint,
            Way::Up => Self::Station(station),
        }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Loss {
    /// By the queue.
    Queue(DropReason),
    /// It was sent in vain as often as the limit allows.
    Retries,
    /// It was received when the receiver had stopped waiting for it and handed up what came behind it.
    Late,
}

/// What a stretch of airtime was used for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Use {
    /// Frames that were answered, with the answer.
    Exchange,
    /// A transmission that nobody understood.
    Unanswered,
    /// Several nodes at once.
    Collision,
}

/// One node's transmission, from its first bit to the last of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmitted {
    /// Who sent.
    pub node: Node,
    /// To or from which station.
    pub station: u16,
    /// In which category.
    pub access: Access,
    /// In which mode.
    pub mode: Mode,
    /// What became of it.
    pub what: Use,
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Since when the node contended for it.
    pub waiting_since: Time,
    /// Frames in it.
    pub frames: u16,
    /// Frames received.
    pub received: u16,
    /// Times it was sent before.
    pub tries: u8,
}

/// What sees a cell. The sender names the queue.
pub trait Observer<P> {
    /// A packet comes to a node's queue.
    fn on_arrival(&mut self, _sender: Node, _packet: &P, _now: Time) {}

    /// A packet leaves a node's discipline: its sojourn ends. What it then waits for, the discipline does not see.
    fn on_dequeue(&mut self, _sender: Node, _packet: &P, _now: Time) {}

    /// A packet has been received, and those before it.
    fn on_departure(&mut self, _sender: Node, _packet: &P, _now: Time) {}

    /// A packet is dropped; it is the observer's now. `queued`: since when it had been with the sender.
    fn on_drop(&mut self, _sender: Node, _packet: P, _why: Loss, _queued: Duration, _now: Time) {}

    /// A transmission has ended. Those of a collision come one after the other.
    fn on_air(&mut self, _transmitted: &Transmitted) {}
}

impl<P> Observer<P> for sojourn_path::NoObserver {}
