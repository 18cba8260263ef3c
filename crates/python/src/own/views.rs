//! A packet and a queue for algorithms in Python. Times are in seconds.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use sojourn_aqm::{Backlog, Ecn, Environment, FlowKey, Packet};
use sojourn_units::Time;

/// A packet in a queue.
#[pyclass(frozen, name = "Packet", module = "sojourn", from_py_object)]
#[derive(Clone, Copy)]
pub struct PacketView {
    bytes: u32,
    ecn: Ecn,
    enqueued: Time,
    flow: FlowKey,
    dscp: u8,
}

impl PacketView {
    /// The view of a packet.
    pub fn of(packet: &impl Packet) -> Self {
        Self {
            bytes: packet.bytes(),
            ecn: packet.ecn(),
            enqueued: packet.enqueued(),
            flow: packet.flow(),
            dscp: packet.dscp(),
        }
    }
}

#[pymethods]
impl PacketView {
    /// Bytes on the link, link header included.
    #[getter]
    fn bytes(&self) -> u32 {
        self.bytes
    }

    /// When it entered the queue, in seconds of the run.
    #[getter]
    fn enqueued_s(&self) -> f64 {
        self.enqueued.as_secs_f64()
    }

    /// The ECN field: "not-ect", "ect0", "ect1" or "ce".
    #[getter]
    fn ecn(&self) -> &'static str {
        match self.ecn {
            Ecn::NotEct => "not-ect",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Ce => "ce",
        }
    }

    /// The DiffServ code point, 0 to 63.
    #[getter]
    fn dscp(&self) -> u8 {
        self.dscp
    }

    /// (source, destination, source port, destination port, protocol).
    #[getter]
    fn flow(&self) -> (u32, u32, u16, u16, u8) {
        let flow = &self.flow;
        (
            flow.source,
            flow.destination,
            flow.source_port,
            flow.destination_port,
            flow.protocol,
        )
    }
}

/// Lets the algorithms in Rust be called with it.
impl Packet for PacketView {
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
}

/// Random numbers for Python: during a call, those of the queue's own stream.
#[pyclass(frozen)]
pub struct Chance(Mutex<Environment<PacketView>>);

impl Chance {
    pub fn new() -> Self {
        Self(Mutex::new(Environment::new(0)))
    }

    /// The environment for calling an algorithm in Rust.
    pub fn environment(&self) -> MutexGuard<'_, Environment<PacketView>> {
        // A poisoned lock means that another thread panicked; a stream of random numbers is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queued packets, without the one to be decided about.
#[pyclass(frozen, name = "Queue", module = "sojourn")]
pub struct QueueView {
    pub backlog: Backlog,
    pub chance: Py<Chance>,
}

#[pymethods]
impl QueueView {
    /// Packets queued.
    #[getter]
    fn packets(&self) -> u64 {
        self.backlog.packets
    }

    /// Bytes queued.
    #[getter]
    fn bytes(&self) -> u64 {
        self.backlog.bytes
    }

    /// The part of ``bytes`` in CE-marked packets.
    #[getter]
    fn ce_bytes(&self) -> u64 {
        self.backlog.ce_bytes
    }

    /// A uniform random number in [0, 1), from the run's seed. With other sources, runs would not be reproducible.
    fn random(&self) -> f64 {
        self.chance.get().environment().uniform()
    }
}
