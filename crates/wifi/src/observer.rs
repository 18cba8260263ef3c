//! What an observer of a cell is told.

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
    /// The sender in a direction: down is from the access point.
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
    /// The queue dropped it.
    Queue(DropReason),
    /// It reached the retry limit.
    Retries,
    /// It was received after the receiver had stopped waiting for it and passed up later frames.
    Late,
}

/// What a stretch of airtime was used for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Use {
    /// Frames and their answer.
    Exchange,
    /// A transmission without an answer.
    Unanswered,
    /// Several nodes sent at once.
    Collision,
}

/// One node's transmission, from its first bit to the last of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmitted {
    /// The sender.
    pub node: Node,
    /// The station to or from which it was sent.
    pub station: u16,
    /// Its access category.
    pub access: Access,
    /// Its mode.
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
    /// How often it was sent before.
    pub tries: u8,
}

/// Is told what happens in a cell. The sender identifies the queue.
pub trait Observer<P> {
    /// A packet arrives at a node's queue.
    fn on_arrival(&mut self, _sender: Node, _packet: &P, _now: Time) {}

    /// A packet leaves a node's discipline, which ends its sojourn time. The discipline does not see how long the packet then
    /// waits in the device.
    fn on_dequeue(&mut self, _sender: Node, _packet: &P, _now: Time) {}

    /// A packet has been received, and has left the receiver's reordering.
    fn on_departure(&mut self, _sender: Node, _packet: &P, _now: Time) {}

    /// A packet is dropped, and handed to the observer. `queued`: how long ago it arrived at the sender's queue.
    fn on_drop(&mut self, _sender: Node, _packet: P, _why: Loss, _queued: Duration, _now: Time) {}

    /// A transmission has ended. The transmissions of a collision are reported one after the other.
    fn on_air(&mut self, _transmitted: &Transmitted) {}
}

impl<P> Observer<P> for sojourn_path::NoObserver {}
