//! A packet in the simulator: what it carries, and what a queue may know of it.

use sojourn_aqm::packet::AckView;
use sojourn_aqm::{Ecn, FlowKey, Packet};
use sojourn_tcp::Segment;
use sojourn_tcp::segment::Flags;
use sojourn_units::Time;

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A TCP segment.
    Tcp(Segment),
    /// A datagram: its number within the flow and when it was sent.
    Udp {
        /// Number within the flow, from 0.
        number: u64,
        /// When it was sent.
        sent_at: Time,
    },
    /// An echo request or its reply: when the request was sent, and whether it is UDP, with ports, or ICMP.
    Echo {
        /// When the request was sent.
        sent_at: Time,
        /// It is UDP.
        has_ports: bool,
    },
}

/// A simulated packet. Moved by value: it is little more than a cache line.
#[derive(Clone, Copy, Debug)]
pub struct SimPacket {
    /// What it carries.
    pub body: Body,
    /// The flow it belongs to, by number over all groups.
    pub flow: u32,
    /// The traffic group of the flow: its hosts.
    pub group: u16,
    /// Connections of one flow are numbered; each has a port of its own.
    pub connection: u32,
    /// True on the way back to the sender of the data.
    pub returning: bool,
    /// The ECN field.
    pub ecn: Ecn,
    /// The DiffServ code point.
    pub dscp: u8,
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
        let (protocol, source_port, destination_port) = match self.body {
            Body::Tcp(_) => (TCP, port, 5201),
            Body::Udp { .. }
            | Body::Echo {
                has_ports: true, ..
            } => (UDP, port, 5201),
            Body::Echo {
                has_ports: false, ..
            } => (ICMP, 0, 0),
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
        let Body::Tcp(segment) = self.body else {
            return None;
        };
        if segment.sequence_len() > 0 || !segment.flags.contains(Flags::ACK) {
            return None;
        }
        let signals = [Flags::ECE, Flags::CWR, Flags::RST]
            .iter()
            .any(|flag| segment.flags.contains(*flag));
        let blocks = segment.sack_blocks();
        let repeats_old = blocks
            .first()
            .is_some_and(|block| !block.end.after(segment.ack));
        Some(AckView {
            ack: segment.ack.0,
            sacked_bytes: blocks
                .iter()
                .map(|block| block.end.since(block.start))
                .fold(0, u32::saturating_add),
            must_keep: signals || repeats_old,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_small_enough_to_be_moved() {
        assert!(size_of::<SimPacket>() <= 96, "{}", size_of::<SimPacket>());
    }

    #[test]
    fn both_ways_of_a_flow_are_told_apart() {
        let there = SimPacket {
            body: Body::Tcp(Segment::default()),
            flow: 3,
            group: 1,
            connection: 0,
            returning: false,
            ecn: Ecn::NotEct,
            dscp: 0,
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
