//! The packet that tests, benches and fuzz targets queue.

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
    /// Its flow.
    pub flow: FlowKey,
    /// The DiffServ code point.
    pub dscp: u8,
    /// What it acknowledges, if it is a pure acknowledgement.
    pub ack: Option<AckView>,
    /// When it entered the queue.
    pub enqueued: Time,
    /// The inner queue that it left or was dropped from, if the discipline set one.
    pub inner_queue: Option<u8>,
}

/// The key of flow number `flow`: hosts of their own, so that host fairness changes nothing.
pub const fn flow_key(flow: u32) -> FlowKey {
    FlowKey {
        source: 1000 + flow,
        destination: 5000 + flow,
        source_port: 1,
        destination_port: 2,
        protocol: 6,
    }
}

impl TestPacket {
    /// Packet `id` of flow 0: a full frame, not ECN-capable.
    pub const fn new(id: u64) -> Self {
        Self {
            id,
            bytes: 1514,
            ecn: Ecn::NotEct,
            flow: flow_key(0),
            dscp: 0,
            ack: None,
            enqueued: Time::ZERO,
            inner_queue: None,
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
        self.flow
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
    fn set_inner_queue(&mut self, number: u8) {
        self.inner_queue = Some(number);
    }
    fn ack(&self) -> Option<AckView> {
        self.ack
    }
}
