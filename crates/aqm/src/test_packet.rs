//! The packet that tests and benches queue.

use sojourn_aqm::{AckView, Ecn, FlowKey, Packet};
use sojourn_units::Time;

/// A packet of plain values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TestPacket {
    /// Its place in the order of arrival.
    pub id: u64,
    /// Bytes on the link.
    pub bytes: u32,
    /// The ECN field.
    pub ecn: Ecn,
    /// Which flow.
    pub flow: u32,
    /// When it entered the queue.
    pub enqueued: Time,
}

impl TestPacket {
    /// Packet `id` of flow 0: a full frame, not ECN-capable.
    pub fn new(id: u64) -> Self {
        Self {
            id,
            bytes: 1514,
            ecn: Ecn::NotEct,
            flow: 0,
            enqueued: Time::ZERO,
        }
    }
}

impl Packet for TestPacket {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        assert!(self.ecn.is_capable(), "marked a packet that cannot be");
        self.ecn = Ecn::Ce;
    }
    fn enqueued(&self) -> Time {
        self.enqueued
    }
    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }
    fn flow(&self) -> FlowKey {
        FlowKey {
            source: self.flow,
            protocol: 17,
            ..FlowKey::default()
        }
    }
    fn ack(&self) -> Option<AckView> {
        None
    }
}
