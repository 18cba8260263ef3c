//! A packet in the simulator: what it carries, and what a queue may know of it.

use sojourn_aqm::packet::AckView;
use sojourn_aqm::{Ecn, FlowKey, Packet};
use sojourn_experiment::applications::Side;
use sojourn_experiment::model::EchoProtocol;
use sojourn_tcp::Segment;
use sojourn_tcp::segment::Flags;
use sojourn_units::Time;

use crate::slab::Handle;

/// What a packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A TCP segment with data, SYN or FIN.
    Segment,
    /// A pure TCP acknowledgement.
    Ack,
    /// A pure TCP acknowledgement with a signal that must not be lost (ECE, CWR, RST, D-SACK).
    SignallingAck,
    /// A datagram.
    Datagram,
    /// An echo request or its reply, over ICMP.
    Echo,
    /// An echo request or its reply, over UDP.
    UdpEcho,
}

/// Which flow a packet belongs to, and on which side of it it travels.
#[derive(Clone, Copy, Debug)]
pub struct Membership {
    /// The flow, by number over all groups.
    pub flow: u32,
    /// The traffic group of the flow: its hosts.
    pub group: u16,
    /// Connections of one flow are numbered; each has a port of its own.
    pub connection: u32,
    /// The DiffServ code point.
    pub dscp: u8,
    /// True on the way back to the sender of the data.
    pub returning: bool,
}

/// A simulated packet. Moved by value; plain aligned words, so that moving it is two wide copies and one narrow one,
/// and the word that a queue writes lies apart from those.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SimPacket {
    /// Nanoseconds at which it was sent; of a segment: what it acknowledges, and if it has no data how many bytes beyond
    /// are sacked.
    detail: u64,
    /// Where its segment waits, or its number within the flow.
    tag: u32,
    /// The flow it belongs to, by number over all groups.
    pub flow: u32,
    /// Bytes on the link.
    pub bytes: u32,
    /// The connection within the flow.
    pub connection: u32,
    /// The traffic group of the flow: its hosts.
    pub group: u16,
    /// What it carries.
    pub kind: Kind,
    /// The DiffServ code point.
    pub dscp: u8,
    /// True on the way back to the sender of the data.
    pub returning: bool,
    /// The ECN field.
    pub ecn: Ecn,
    /// When it entered the queue it is in.
    pub enqueued: Time,
}

/// IP protocol numbers.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

impl SimPacket {
    const fn new(kind: Kind, of: Membership, bytes: u32, tag: u32, detail: u64) -> Self {
        Self {
            detail,
            tag,
            flow: of.flow,
            bytes,
            connection: of.connection,
            group: of.group,
            kind,
            dscp: of.dscp,
            returning: of.returning,
            ecn: Ecn::NotEct,
            enqueued: Time::ZERO,
        }
    }

    /// The segment that waits at `handle`, on a link that adds `overhead` bytes to an IP packet.
    pub(crate) fn segment(
        of: Membership,
        handle: Handle,
        segment: &Segment,
        overhead: u32,
    ) -> Self {
        let bytes = segment.header_bytes() + u32::from(segment.len) + overhead;
        let acknowledged = u64::from(segment.ack.0) << 32;
        if segment.len > 0 {
            return Self::new(Kind::Segment, of, bytes, handle.0, acknowledged);
        }
        let blocks = segment.sack_blocks();
        let kind = if segment.sequence_len() > 0 || !segment.flags.contains(Flags::ACK) {
            Kind::Segment
        } else {
            let signals = [Flags::ECE, Flags::CWR, Flags::RST];
            let signalling = signals.iter().any(|flag| segment.flags.contains(*flag));
            let repeats_old = blocks
                .first()
                .is_some_and(|block| !block.end.after(segment.ack));
            if signalling || repeats_old {
                Kind::SignallingAck
            } else {
                Kind::Ack
            }
        };
        let lengths = blocks.iter().map(|block| block.end.since(block.start));
        let sacked = lengths.fold(0, u32::saturating_add);
        Self::new(kind, of, bytes, handle.0, acknowledged | u64::from(sacked))
    }

    /// Datagram number `number` of its flow.
    pub fn datagram(of: Membership, number: u32, sent_at: Time, bytes: u32) -> Self {
        Self::new(Kind::Datagram, of, bytes, number, sent_at.as_nanos())
    }

    /// An echo request sent at `sent_at`, or its reply.
    pub fn echo(of: Membership, protocol: EchoProtocol, sent_at: Time, bytes: u32) -> Self {
        let kind = match protocol {
            EchoProtocol::Icmp => Kind::Echo,
            EchoProtocol::Udp => Kind::UdpEcho,
        };
        Self::new(kind, of, bytes, 0, sent_at.as_nanos())
    }

    /// Where its segment waits; `None` if it carries none.
    pub(crate) const fn handle(&self) -> Option<Handle> {
        match self.kind {
            Kind::Segment | Kind::Ack | Kind::SignallingAck => Some(Handle(self.tag)),
            Kind::Datagram | Kind::Echo | Kind::UdpEcho => None,
        }
    }

    /// The host that it is for.
    pub const fn reaches(&self) -> Side {
        if self.returning {
            Side::Sending
        } else {
            Side::Receiving
        }
    }

    /// When a datagram or echo request was sent.
    pub const fn sent_at(&self) -> Time {
        Time::from_nanos(self.detail)
    }

    /// A datagram's number within its flow; wraps.
    pub const fn number(&self) -> u32 {
        self.tag
    }
}

impl Packet for SimPacket {
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

    fn dscp(&self) -> u8 {
        self.dscp
    }

    /// Every group has a sending and a receiving host of its own; its flows differ in their ports.
    fn flow(&self) -> FlowKey {
        let sending = 0x0a01_0001 | u32::from(self.group) << 8;
        let receiving = 0x0a02_0001 | u32::from(self.group) << 8;
        // Linux's range of ephemeral ports; connections of one flow take ports far apart.
        let number = u64::from(self.flow) + 4_507 * u64::from(self.connection);
        let port = 32_768 + (number % 28_232) as u16;
        let (protocol, source_port, destination_port) = match self.kind {
            Kind::Segment | Kind::Ack | Kind::SignallingAck => (TCP, port, 5201),
            Kind::Datagram | Kind::UdpEcho => (UDP, port, 5201),
            Kind::Echo => (ICMP, 0, 0),
        };
        if self.returning {
            FlowKey {
                source: receiving,
                destination: sending,
                source_port: destination_port,
                destination_port: source_port,
                protocol,
            }
        } else {
            FlowKey {
                source: sending,
                destination: receiving,
                source_port,
                destination_port,
                protocol,
            }
        }
    }

    fn ack(&self) -> Option<AckView> {
        matches!(self.kind, Kind::Ack | Kind::SignallingAck).then_some(AckView {
            ack: (self.detail >> 32) as u32,
            sacked_bytes: self.detail as u32,
            must_keep: self.kind == Kind::SignallingAck,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_tcp::seq::Seq;

    const THERE: Membership = Membership {
        flow: 3,
        group: 1,
        connection: 0,
        dscp: 0,
        returning: false,
    };

    fn carrying(segment: &Segment) -> SimPacket {
        SimPacket::segment(THERE, Handle(0), segment, 14)
    }

    #[test]
    fn a_packet_is_small_enough_to_be_moved() {
        assert_eq!(size_of::<SimPacket>(), 40);
    }

    #[test]
    fn both_ways_of_a_flow_are_told_apart() {
        let there = carrying(&Segment::default());
        let back = SimPacket {
            returning: true,
            ..there
        };
        assert_eq!(there.flow().source, back.flow().destination);
        assert_eq!(there.flow().source_port, back.flow().destination_port);
        assert_ne!(there.flow(), back.flow());
    }

    #[test]
    fn an_ack_filter_sees_pure_acknowledgements_and_which_must_stay() {
        let data = Segment {
            len: 1448,
            flags: Flags::ACK,
            ..Segment::default()
        };
        assert_eq!(carrying(&data).ack(), None);
        let ack = Segment {
            ack: Seq(77),
            flags: Flags::ACK,
            ..Segment::default()
        };
        let seen = carrying(&ack).ack().expect("it is a pure acknowledgement");
        assert_eq!((seen.ack, seen.must_keep), (77, false));
        let echo = Segment {
            flags: Flags::ACK.with(Flags::ECE),
            ..ack
        };
        assert!(
            carrying(&echo)
                .ack()
                .expect("a pure acknowledgement")
                .must_keep
        );
    }
}
