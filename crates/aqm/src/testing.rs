//! A packet for tests, and disciplines driven by hand.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sojourn_units::Time;

use crate::packet::{AckView, Ecn, FlowKey, Packet};
use crate::qdisc::{DropReason, Environment, Qdisc};

/// A packet known by its flow and its number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct TestPacket {
    pub(crate) id: u64,
    pub(crate) bytes: u32,
    pub(crate) ecn: Ecn,
    pub(crate) flow: FlowKey,
    pub(crate) dscp: u8,
    pub(crate) ack: Option<AckView>,
    pub(crate) enqueued: Time,
}

/// The key of flow number `flow`: hosts of their own, so that host fairness changes nothing.
pub(crate) fn flow_key(flow: u32) -> FlowKey {
    FlowKey {
        source: 1000 + flow,
        destination: 5000 + flow,
        source_port: 1,
        destination_port: 2,
        protocol: 6,
    }
}

/// Packet `id` of flow `flow`, 1000 bytes, not ECN-capable.
pub(crate) fn packet(flow: u32, id: u64) -> TestPacket {
    TestPacket {
        id,
        bytes: 1000,
        ecn: Ecn::NotEct,
        flow: flow_key(flow),
        dscp: 0,
        ack: None,
        enqueued: Time::ZERO,
    }
}

impl TestPacket {
    pub(crate) fn bytes(self, bytes: u32) -> Self {
        Self { bytes, ..self }
    }

    pub(crate) fn ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
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
    fn ack(&self) -> Option<AckView> {
        self.ack
    }
}

/// A discipline, its environment, and the instant of the next operation.
pub(crate) struct Driven<Q: ?Sized> {
    pub(crate) qdisc: Box<Q>,
    pub(crate) env: Environment<TestPacket>,
    pub(crate) now: Time,
}

impl<Q: Qdisc<TestPacket>> Driven<Q> {
    pub(crate) fn new(qdisc: Q) -> Self {
        Self::boxed(Box::new(qdisc))
    }
}

impl<Q: Qdisc<TestPacket> + ?Sized> Driven<Q> {
    pub(crate) fn boxed(qdisc: Box<Q>) -> Self {
        Self {
            qdisc,
            // A seed that puts the few flows of the tests in queues of their own.
            env: Environment::new(2),
            now: Time::ZERO,
        }
    }

    pub(crate) fn enqueue(&mut self, packet: TestPacket) {
        self.qdisc.enqueue(packet, self.now, &mut self.env);
    }

    pub(crate) fn dequeue(&mut self) -> Option<TestPacket> {
        self.qdisc.dequeue(self.now, &mut self.env)
    }

    /// The numbers of the next `count` packets, fewer if it runs empty.
    pub(crate) fn ids(&mut self, count: usize) -> Vec<u64> {
        (0..count)
            .map_while(|_| self.dequeue())
            .map(|packet| packet.id)
            .collect()
    }

    /// The numbers of the packets given up since last asked, and why.
    pub(crate) fn dropped(&mut self) -> Vec<(u64, DropReason)> {
        self.env
            .take_dropped()
            .map(|(packet, reason)| (packet.id, reason))
            .collect()
    }
}
