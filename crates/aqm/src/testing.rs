//! Disciplines driven by hand.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sojourn_units::Time;

use crate::environment::Environment;
use crate::qdisc::Qdisc;
use crate::verdict::DropReason;
use crate::{Datagram, FlowKey};

/// Packet `id` of flow `flow`, 1000 bytes, not ECN-capable.
pub(crate) fn packet(flow: u32, id: u64) -> Datagram<u64> {
    Datagram {
        bytes: 1000,
        flow: FlowKey::numbered(flow),
        ..Datagram::new(id, 1514)
    }
}

impl<T> Datagram<T> {
    pub(crate) fn with_bytes(self, bytes: u32) -> Self {
        Self { bytes, ..self }
    }
}

/// A discipline, its environment, and the instant of the next operation.
pub(crate) struct Driven<Q: ?Sized> {
    pub(crate) qdisc: Box<Q>,
    pub(crate) env: Environment<Datagram<u64>>,
    pub(crate) now: Time,
}

impl<Q: Qdisc<Datagram<u64>>> Driven<Q> {
    pub(crate) fn new(qdisc: Q) -> Self {
        Self::boxed(Box::new(qdisc))
    }
}

impl<Q: Qdisc<Datagram<u64>> + ?Sized> Driven<Q> {
    pub(crate) fn boxed(qdisc: Box<Q>) -> Self {
        Self {
            qdisc,
            // A seed that puts the few flows of the tests in queues of their own.
            env: Environment::new(2),
            now: Time::ZERO,
        }
    }

    pub(crate) fn enqueue(&mut self, packet: Datagram<u64>) {
        self.qdisc.enqueue(packet, self.now, &mut self.env);
    }

    pub(crate) fn dequeue(&mut self) -> Option<Datagram<u64>> {
        self.qdisc.dequeue(self.now, &mut self.env)
    }

    /// The numbers of the next `count` packets, fewer if it runs empty.
    pub(crate) fn ids(&mut self, count: usize) -> Vec<u64> {
        (0..count)
            .map_while(|_| self.dequeue())
            .map(|packet| packet.payload)
            .collect()
    }

    /// The numbers of the packets dropped since the last call, and why.
    pub(crate) fn dropped(&mut self) -> Vec<(u64, DropReason)> {
        self.env
            .take_dropped()
            .map(|(packet, reason)| (packet.payload, reason))
            .collect()
    }
}
