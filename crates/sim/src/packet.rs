//! A packet in the simulator: what it carries, and what a queue may know of it.

use sojourn_aqm::packet::AckView;
use sojourn_aqm::{Ecn, FlowKey, Packet};
use sojourn_tcp::Segment;
use sojourn_tcp::segment::Flags;
use sojourn_units::Time;

use crate::slab::{Handle, Segments};

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A TCP segment.
    Tcp(SegmentView),
    /// A datagram: its number within the flow and when it was sent.
    Udp {
        /// Number within the flow, from 0; wraps.
        number: u32,
        /// When it was sent.
        sent_at: Time,
    },
    /// An echo request or its reply: when the request was sent.
    Echo {
        /// When the request was sent.
        sent_at: Time,
    },
}

/// A TCP segment in a packet: where it waits, and what an ACK filter may know of it.
#[derive(Clone, Copy, Debug)]
pub struct SegmentView {
    pub(crate) handle: Handle,
    ack: u32,
    sacked_bytes: u32,
    role: Role,
}

/// What a segment is to an ACK filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// It carries data, SYN or FIN, or acknowledges nothing.
    Data,
    /// A pure acknowledgement.
    Ack,
    /// A pure acknowledgement that carries a signal which must not be lost.
    SignallingAck,
}

impl Body {
    /// A segment as the body of a packet; it waits in `segments` until it arrives or is dropped.
    pub(crate) fn of_segment(segment: Segment, segments: &mut Segments) -> Self {
        let blocks = segment.sack_blocks();
        let role = if segment.sequence_len() > 0 || !segment.flags.contains(Flags::ACK) {
            Role::Data
        } else {
            let signals = [Flags::ECE, Flags::CWR, Flags::RST];
            let signalling = signals.iter().any(|flag| segment.flags.contains(*flag));
            let repeats_old = blocks
                .first()
                .is_some_and(|block| !block.end.after(segment.ack));
            if signalling || repeats_old {
                Role::SignallingAck
            } else {
                Role::Ack
            }
        };
        let lengths = blocks.iter().map(|block| block.end.since(block.start));
        Self::Tcp(SegmentView {
            ack: segment.ack.0,
            sacked_bytes: lengths.fold(0, u32::saturating_add),
            role,
            handle: segments.insert(segment),
        })
    }
}

/// A simulated packet. Moved by value: it is smaller than a cache line.
#[derive(Clone, Copy, Debug)]
pub struct SimPacket {
    /// What it carries.
    pub body: Body,
    /// The flow it belongs to, by number over all groups.
    pub flow: u32,
    /// The traffic group of the flow: its hosts.
    pub group: u16,
    /// Connections of one flow are numbered, so that a late segment finds its connection gone.
    pub generation: u16,
    /// True on the way back to the sender of the data.
    pub returning: bool,
    /// The ECN field.
    pub ecn: Ecn,
    /// Bytes on the link.
    pub bytes: u32,
    /// When it entered the queue it is in.
    pub enqueued: Time,
}

/// IP protocol numbers.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

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

    /// Every group has a sending and a receiving host of its own; its flows differ in their ports.
    fn flow(&self) -> FlowKey {
        let sending = 0x0a01_0001 | u32::from(self.group) << 8;
        let receiving = 0x0a02_0001 | u32::from(self.group) << 8;
        let (protocol, source_port, destination_port) = match self.body {
            Body::Tcp(_) => (TCP, 32_768 + (self.flow % 28_232) as u16, 5201),
            Body::Udp { .. } => (UDP, 32_768 + (self.flow % 28_232) as u16, 5201),
            Body::Echo { .. } => (ICMP, 0, 0),
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
        match self.body {
            Body::Tcp(view) if view.role != Role::Data => Some(AckView {
                ack: view.ack,
                sacked_bytes: view.sacked_bytes,
                must_keep: view.role == Role::SignallingAck,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_small_enough_to_be_moved() {
        assert!(size_of::<SimPacket>() <= 48, "{}", size_of::<SimPacket>());
    }

    #[test]
    fn both_ways_of_a_flow_are_told_apart() {
        let there = SimPacket {
            body: Body::of_segment(Segment::default(), &mut Segments::default()),
            flow: 3,
            group: 1,
            generation: 0,
            returning: false,
            ecn: Ecn::NotEct,
            bytes: 1514,
            enqueued: Time::ZERO,
        };
        let back = SimPacket {
            returning: true,
            ..there
        };
        assert_eq!(there.flow().source, back.flow().destination);
        assert_eq!(there.flow().source_port, back.flow().destination_port);
        assert_ne!(there.flow(), back.flow());
    }
}
