//! A packet on its way, with its bytes.

use std::sync::Arc;

use sojourn_aqm::{Datagram, Ecn};
use sojourn_units::Time;

use crate::gso::Partial;
use crate::ip::{self, Carried, Headers, Link};

/// A packet on its way.
pub type Packet = Datagram<Frame>;

/// A packet's bytes, and where it belongs.
#[derive(Clone, Debug)]
pub struct Frame {
    /// From the IP header on. A copy that a wire makes shares them.
    pub bytes: Arc<[u8]>,
    /// Its header of Ethernet.
    pub link: Link,
    /// Its checksum, if that is to be completed.
    pub checksum: Partial,
    /// What it carries.
    pub carried: Carried,
    /// When it was read.
    pub sent: Time,
    /// The number of its flow.
    pub flow: u32,
    /// True if it travels towards the sender of the flow's data.
    pub returning: bool,
    /// The port by which it leaves.
    pub port: u16,
    /// True if a queue has captured it.
    pub captured: bool,
}

/// A packet that was read at `now` and that belongs to a flow. `overhead`: bytes that the hosts' link adds.
pub fn packet(
    (link, bytes, checksum): (Link, &[u8], Partial),
    headers: &Headers,
    (flow, returning, port): (u32, bool, u16),
    overhead: u32,
    now: Time,
) -> Packet {
    let frame = Frame {
        bytes: bytes.into(),
        link,
        checksum,
        carried: headers.carried,
        sent: now,
        flow,
        returning,
        port,
        captured: false,
    };
    let mut packet = Datagram::new(frame, bytes.len() as u32 + overhead)
        .with_ecn(headers.ecn)
        .with_flow(headers.key())
        .with_dscp(headers.dscp)
        .with_ack(headers.pure_ack());
    packet.enqueued = now;
    packet
}

/// The bytes of a packet that has arrived. If a queue marked it, its header says so.
pub fn arrived(packet: &mut Packet) -> &[u8] {
    if packet.ecn == Ecn::Ce {
        let bytes = &mut packet.payload.bytes;
        if Headers::read(bytes).is_some_and(|headers| headers.ecn != Ecn::Ce) {
            let mut marked = bytes.to_vec();
            ip::set_ce(&mut marked);
            *bytes = marked.into();
        }
    }
    &packet.payload.bytes
}
