//! A packet that is ready to use.

use sojourn_units::Time;

use crate::packet::{AckView, Ecn, FlowKey, Packet};

/// A packet of plain values that carries anything. It suits programs and tests that have no packet type of their own; one
/// that has implements [`Packet`] for it instead.
///
/// ```
/// use std::net::SocketAddr;
///
/// use sojourn_aqm::{Datagram, Ecn, FlowKey};
///
/// let server: SocketAddr = "[2001:db8::1]:443".parse()?;
/// let client: SocketAddr = "[2001:db8::2]:50000".parse()?;
/// let packet = Datagram::new(vec![0_u8; 1200], 1262)
///     .with_ecn(Ecn::Ect0)
///     .with_flow((server, client));
/// assert_eq!((packet.payload.len(), packet.bytes), (1200, 1262));
/// assert_ne!(packet.flow, FlowKey::from((client, server)));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Datagram<T = ()> {
    /// What it carries. Queues do not look at it.
    pub payload: T,
    /// Bytes on the link, all headers included.
    pub bytes: u32,
    /// The ECN field.
    pub ecn: Ecn,
    /// Its flow.
    pub flow: FlowKey,
    /// The queue that the flow's hash selects, if it is known; see [`Packet::bucket`].
    pub bucket: Option<u32>,
    /// The DiffServ code point, 0 to 63.
    pub dscp: u8,
    /// What it acknowledges, if it is a pure TCP acknowledgement.
    pub ack: Option<AckView>,
    /// When it entered its last queue.
    pub enqueued: Time,
    /// The inner queue that it left or was dropped from, if the discipline set one.
    pub inner_queue: Option<u8>,
    /// Its next hop, noted by the network that carries it.
    pub hop: u32,
    /// The number of the impairment that damaged it, noted by the network that carries it.
    pub damaged: Option<u16>,
    /// Its station, noted by the Wi-Fi cell that carries it.
    pub station: u16,
}

impl<T> Datagram<T> {
    /// A packet of flow 0 that takes so many bytes on the link, headers included, and is not ECN-capable.
    pub const fn new(payload: T, bytes: u32) -> Self {
        Self {
            payload,
            bytes,
            ecn: Ecn::NotEct,
            flow: FlowKey::numbered(0),
            bucket: None,
            dscp: 0,
            ack: None,
            enqueued: Time::ZERO,
            inner_queue: None,
            hop: 0,
            damaged: None,
            station: 0,
        }
    }

    /// The same packet with this ECN field.
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }

    /// The same packet of this flow: a [`FlowKey`], or the addresses of its sender and receiver.
    pub fn with_flow(self, flow: impl Into<FlowKey>) -> Self {
        Self {
            flow: flow.into(),
            ..self
        }
    }

    /// The same packet with this DiffServ code point, 0 to 63.
    pub fn with_dscp(self, dscp: u8) -> Self {
        Self { dscp, ..self }
    }

    /// The same packet as a pure TCP acknowledgement.
    pub fn with_ack(self, ack: impl Into<Option<AckView>>) -> Self {
        Self {
            ack: ack.into(),
            ..self
        }
    }

    /// The same packet with another payload.
    pub fn map<U>(self, payload: impl FnOnce(T) -> U) -> Datagram<U> {
        Datagram {
            payload: payload(self.payload),
            bytes: self.bytes,
            ecn: self.ecn,
            flow: self.flow,
            bucket: self.bucket,
            dscp: self.dscp,
            ack: self.ack,
            enqueued: self.enqueued,
            inner_queue: self.inner_queue,
            hop: self.hop,
            damaged: self.damaged,
            station: self.station,
        }
    }
}

impl<T> Packet for Datagram<T> {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        debug_assert!(self.ecn.is_capable(), "marked a packet that cannot be");
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
    fn bucket(&self) -> Option<u32> {
        self.bucket
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
