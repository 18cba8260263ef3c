//! A packet for tests.

use sojourn_aqm::{Ecn, FlowKey};
use sojourn_units::Time;

/// A packet of a flow.
#[derive(Clone, Debug)]
pub struct TestPacket {
    pub flow: u32,
    bytes: u32,
    enqueued: Time,
}

impl TestPacket {
    pub const fn new(flow: u32, bytes: u32) -> Self {
        Self {
            flow,
            bytes,
            enqueued: Time::ZERO,
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
        FlowKey {
            source: self.flow,
            ..FlowKey::default()
        }
    }
}

impl sojourn_path::Packet for TestPacket {
    fn hop(&self) -> u32 {
        0
    }
    fn set_hop(&mut self, _hop: u32) {}
    fn change_bytes(&mut self, _by: i32) {}
}

impl crate::Packet for TestPacket {
    fn station(&self) -> u16 {
        0
    }
    fn set_station(&mut self, _station: u16) {}
}
