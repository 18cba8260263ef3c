//! A packet for tests.

use sojourn_aqm::{Ecn, FlowKey};
use sojourn_units::Time;

/// A packet with a number.
#[derive(Clone, Debug)]
pub struct TestPacket {
    pub flow: u32,
    bytes: u32,
    enqueued: Time,
    hop: u32,
}

impl TestPacket {
    pub const fn new(flow: u32, bytes: u32) -> Self {
        Self {
            flow,
            bytes,
            enqueued: Time::ZERO,
            hop: 0,
        }
    }
}

impl sojourn_aqm::Packet for TestPacket {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn set_ce(&mut self) {}
    fn enqueued(&self) -> Time {
        self.enqueued
    }
    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }
    fn flow(&self) -> FlowKey {
        FlowKey::default()
    }
}

impl crate::Packet for TestPacket {
    fn hop(&self) -> u32 {
        self.hop
    }
    fn set_hop(&mut self, hop: u32) {
        self.hop = hop;
    }
    fn change_bytes(&mut self, by: i32) {
        self.bytes = self.bytes.saturating_add_signed(by);
    }
}
