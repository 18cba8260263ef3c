//! The headers of an IP packet: what queues and measurements read, and the one field that queues change.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sojourn_aqm::packet::AckView;
use sojourn_aqm::{Ecn, FlowKey};
use sojourn_units::internet_checksum;

/// Protocol numbers.
const ICMP: u8 = 1;
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// Flags of TCP.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const ECE: u8 = 64;
const CWR: u8 = 128;
/// The kind of TCP's SACK option.
const SACK: u8 = 5;

/// Bytes of Ethernet's header.
pub const ETHERNET: usize = 14;
/// A header of Ethernet: receiver, sender, type. Zeros: the packet had none.
pub type Link = [u8; ETHERNET];

/// What a frame of Ethernet holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Above {
    /// A packet of IP; always without a header of Ethernet.
    Ip,
    /// A tag of a VLAN.
    Tag,
    /// Anything else, such as ARP.
    Other,
}

impl Above {
    /// As the type in a header says (IEEE 802.3, section 3.2.6).
    pub const fn of(link: &Link) -> Self {
        match u16::from_be_bytes([link[12], link[13]]) {
            0 | 0x0800 | 0x86dd => Self::Ip,
            0x8100 | 0x88a8 => Self::Tag,
            _ => Self::Other,
        }
    }
}

/// A packet without the bytes that fill a short frame. A large frame may have no length.
pub fn unpadded(packet: &[u8]) -> &[u8] {
    let given = |at: usize| word(packet, at).filter(|length| *length > 0);
    let length = match packet.first().map(|first| first >> 4) {
        Some(4) => given(2).map(usize::from),
        Some(6) => given(4).map(|payload| 40 + usize::from(payload)),
        _ => None,
    };
    length
        .and_then(|length| packet.get(..length))
        .unwrap_or(packet)
}

/// The headers of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Its sender; the port is 0 for protocols without ports.
    pub source: SocketAddr,
    /// Its receiver.
    pub destination: SocketAddr,
    /// The protocol above IP.
    pub protocol: u8,
    /// The DiffServ code point.
    pub dscp: u8,
    /// The ECN field.
    pub ecn: Ecn,
    /// What that protocol's header says.
    pub carried: Carried,
}

/// What a packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carried {
    /// A TCP segment.
    Segment {
        /// Its sequence number.
        seq: u32,
        /// Its bytes of data.
        payload: u32,
        /// Whether it opens a connection.
        syn: bool,
        /// The cumulative acknowledgement, if it has one.
        ack: Option<u32>,
        /// What an ACK filter needs, if it is a pure acknowledgement.
        pure: Option<AckView>,
    },
    /// An echo request or its reply.
    Echo {
        /// Whether it is a reply.
        reply: bool,
        /// The identifier of all echoes of one program.
        identifier: u16,
        /// The number of the request.
        sequence: u16,
        /// Its bytes beyond the header.
        payload: u32,
    },
    /// Anything else; UDP included.
    Datagram {
        /// Its bytes above UDP or above IP.
        payload: u32,
    },
}

impl Headers {
    /// Reads the headers of a packet; `None` if it is not IP or too short.
    pub fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::read_v4(packet),
            6 => Self::read_v6(packet),
            _ => None,
        }
    }

    fn read_v4(packet: &[u8]) -> Option<Self> {
        let header = packet.get(..20)?;
        let length = usize::from(header[0] & 15) * 4;
        let total = usize::from(word(packet, 2)?).min(packet.len());
        let later_fragment = word(packet, 6)? & 0x1fff != 0;
        let address = |at: usize| {
            let octets: Option<[u8; 4]> = packet.get(at..at + 4)?.try_into().ok();
            Some(IpAddr::V4(Ipv4Addr::from(octets?)))
        };
        let carried = packet.get(length..total)?;
        let addresses = (address(12)?, address(16)?);
        Self::with(header[1], addresses, header[9], carried, later_fragment)
    }

    fn read_v6(packet: &[u8]) -> Option<Self> {
        let header = packet.get(..40)?;
        let class = header[0] << 4 | header[1] >> 4;
        let total = (40 + usize::from(word(packet, 4)?)).min(packet.len());
        let address = |at: usize| {
            let octets: Option<[u8; 16]> = packet.get(at..at + 16)?.try_into().ok();
            Some(IpAddr::V6(Ipv6Addr::from(octets?)))
        };
        let (mut protocol, mut at, mut later_fragment) = (header[6], 40, false);
        // Hop-by-hop options, routing and destination options have their length; a fragment's header has eight bytes.
        while let 0 | 43 | 44 | 60 = protocol {
            let extension = packet.get(at..at + 8)?;
            let length = match protocol {
                44 => {
                    later_fragment = word(extension, 2)? & 0xfff8 != 0;
                    8
                }
                _ => 8 + 8 * usize::from(extension[1]),
            };
            (protocol, at) = (extension[0], at + length);
        }
        let carried = packet.get(at..total)?;
        let addresses = (address(8)?, address(24)?);
        Self::with(class, addresses, protocol, carried, later_fragment)
    }

    /// Completes the headers from what follows those of IP. Later fragments have no ports.
    fn with(
        class: u8,
        (source, destination): (IpAddr, IpAddr),
        protocol: u8,
        rest: &[u8],
        later_fragment: bool,
    ) -> Option<Self> {
        let none = Carried::Datagram {
            payload: rest.len() as u32,
        };
        let (ports, carried) = match protocol {
            _ if later_fragment => ((0, 0), none),
            TCP => ((word(rest, 0)?, word(rest, 2)?), segment(rest)?),
            UDP => {
                let payload = rest.len().saturating_sub(8) as u32;
                let ports = (word(rest, 0)?, word(rest, 2)?);
                (ports, Carried::Datagram { payload })
            }
            ICMP | ICMPV6 => ((0, 0), echo(protocol, rest).unwrap_or(none)),
            _ => ((0, 0), none),
        };
        Some(Self {
            source: SocketAddr::new(source, ports.0),
            destination: SocketAddr::new(destination, ports.1),
            protocol,
            dscp: class >> 2,
            ecn: Ecn::from_bits(class),
            carried,
        })
    }

    /// The key that disciplines hash.
    pub fn key(&self) -> FlowKey {
        FlowKey {
            protocol: self.protocol,
            ..FlowKey::from((self.source, self.destination))
        }
    }

    /// What an ACK filter needs, if it is a pure acknowledgement.
    pub const fn pure_ack(&self) -> Option<AckView> {
        match self.carried {
            Carried::Segment { pure, .. } => pure,
            _ => None,
        }
    }

    /// True if it is not for one host: a packet of the kernel's own discovery of neighbours and routers.
    pub fn is_multicast(&self) -> bool {
        self.destination.ip().is_multicast()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn segment(tcp: &[u8]) -> Option<Carried> {
    let header = usize::from(tcp.get(12)? >> 4) * 4;
    let flags = *tcp.get(13)?;
    let payload = tcp.len().checked_sub(header)? as u32;
    let ack = long(tcp, 8)?;
    let is_pure = payload == 0 && flags & (ACK | SYN | FIN) == ACK;
    let (sacked_bytes, repeats_old) = sacked(tcp.get(20..header)?, ack);
    Some(Carried::Segment {
        seq: long(tcp, 4)?,
        payload,
        syn: flags & SYN != 0,
        ack: (flags & ACK != 0).then_some(ack),
        pure: is_pure.then_some(AckView {
            ack,
            sacked_bytes,
            must_keep: flags & (ECE | CWR | RST) != 0 || repeats_old,
        }),
    })
}

/// Bytes that the SACK blocks among TCP's options report, and whether the first reports a duplicate (RFC 2883).
fn sacked(mut options: &[u8], ack: u32) -> (u32, bool) {
    while let Some((&kind, rest)) = options.split_first() {
        match kind {
            0 => break,
            1 => options = rest,
            _ => {
                let Some(length) = rest.first().map(|length| usize::from(*length)) else {
                    break;
                };
                let Some(content) = options.get(2..length) else {
                    break;
                };
                if kind == SACK {
                    let edges = content.chunks_exact(8);
                    let blocks = edges.filter_map(|edges| Some((long(edges, 0)?, long(edges, 4)?)));
                    let lengths = blocks.clone().map(|(left, right)| right.wrapping_sub(left));
                    let first = blocks.clone().next();
                    let is_old = first.is_some_and(|(_, right)| {
                        let beyond = right.wrapping_sub(ack) as i32;
                        beyond <= 0
                    });
                    return (lengths.fold(0, u32::saturating_add), is_old);
                }
                options = &options[length..];
            }
        }
    }
    (0, false)
}

fn echo(protocol: u8, icmp: &[u8]) -> Option<Carried> {
    let reply = match (protocol, *icmp.first()?) {
        (ICMP, 8) | (ICMPV6, 128) => false,
        (ICMP, 0) | (ICMPV6, 129) => true,
        _ => return None,
    };
    Some(Carried::Echo {
        reply,
        identifier: word(icmp, 4)?,
        sequence: word(icmp, 6)?,
        payload: icmp.len().checked_sub(8)? as u32,
    })
}

/// Sets Congestion Experienced in a packet's IP header. The header checksum of IPv4 is updated by the difference (RFC 1624,
/// equation 3); IPv6 has none.
pub fn set_ce(packet: &mut [u8]) {
    match packet {
        [first, class, .., _] if *first >> 4 == 4 && packet.len() >= 20 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 3;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            // HC' = ~(~HC + ~m + m')
            let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        }
        [first, class, ..] if *first >> 4 == 6 => *class |= 3 << 4,
        _ => {}
    }
}

/// Writes the checksum of a header of IPv4 (RFC 1071).
pub fn checksum_of_header(header: &mut [u8]) {
    header[10..12].fill(0);
    let checksum = internet_checksum(header, 0);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Internet checksum (RFC 1071) over all words; 0xffff over a header with a correct checksum.
    fn sum(bytes: &[u8]) -> u16 {
        let words = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let sum: u32 = words.sum();
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    /// A header of IPv4 from 10.0.0.1 to 10.0.0.2, with its checksum, and what follows it.
    fn v4(class: u8, protocol: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![
            0x45,
            class,
            0,
            20 + rest.len() as u8,
            7,
            9,
            0x40,
            0,
            64,
            protocol,
            0,
            0,
        ];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        let checksum = !sum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(rest);
        packet
    }

    fn tcp(flags: u8, options: &[u8], payload: usize) -> Vec<u8> {
        let mut segment = vec![0x14, 0x51, 0xc3, 0x50]; // 5201 to 50000
        segment.extend([0, 0, 0, 100, 0, 0, 1, 0]); // sequence 100, acknowledgement 256
        segment.extend([
            ((20 + options.len()) as u8 / 4) << 4,
            flags,
            0,
            0,
            0,
            0,
            0,
            0,
        ]);
        segment.extend(options);
        segment.resize(segment.len() + payload, 0);
        segment
    }

    #[test]
    fn a_frame_is_told_by_its_type_and_loses_its_padding() {
        let of = |kind: u16| {
            let mut link = Link::default();
            link[12..].copy_from_slice(&kind.to_be_bytes());
            Above::of(&link)
        };
        assert_eq!([0, 0x0800, 0x86dd].map(of), [Above::Ip; 3]);
        assert_eq!([0x8100, 0x88a8].map(of), [Above::Tag; 2]);
        assert_eq!(of(0x0806), Above::Other);
        // The least frame has 46 bytes behind its header.
        let mut packet = v4(0, TCP, &tcp(ACK, &[], 0));
        packet.resize(46, 0);
        assert_eq!(unpadded(&packet).len(), 40);
        assert_eq!(unpadded(&packet[..40]).len(), 40);
        // A length beyond the frame, or none.
        assert_eq!(unpadded(&packet[..30]).len(), 30);
        packet[2..4].fill(0);
        assert_eq!(unpadded(&packet).len(), 46);
    }

    #[test]
    fn a_marked_header_has_a_correct_checksum() {
        for class in (0..=255).filter(|class| class & 3 != 0) {
            let mut packet = v4(class, TCP, &tcp(ACK, &[], 4));
            assert_eq!(sum(&packet[..20]), 0xffff);
            set_ce(&mut packet);
            assert_eq!(sum(&packet[..20]), 0xffff, "class {class}");
            let headers = Headers::read(&packet).expect("a packet");
            assert_eq!((headers.ecn, headers.dscp), (Ecn::Ce, class >> 2));
        }
    }

    /// RFC 1624 section 4: with a checksum of 0xdd2f, a word that changes from 0x5555 to 0x3285 makes it 0x0000.
    #[test]
    fn the_checksum_is_updated_as_in_the_example_of_the_rfc() {
        let (checksum, before, after) = (0xdd2f_u16, 0x5555_u16, 0x3285_u16);
        let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
        let folded = (sum & 0xffff) + (sum >> 16);
        assert_eq!(!(folded as u16), 0);
    }

    #[test]
    fn ipv6_is_marked_and_read_behind_its_extensions() {
        let segment = tcp(SYN, &[], 0);
        let mut packet = vec![0x60, 0x20, 0, 0, 0, 8 + segment.len() as u8, 60, 64];
        packet.extend([0x20; 16]);
        packet.extend([0x30; 16]);
        packet.extend([TCP, 0, 1, 4, 0, 0, 0, 0]); // destination options: padding
        packet.extend(segment);
        set_ce(&mut packet);
        let headers = Headers::read(&packet).expect("a packet");
        assert_eq!((headers.ecn, headers.dscp), (Ecn::Ce, 0));
        assert_eq!((headers.source.port(), headers.protocol), (5201, TCP));
        assert!(matches!(
            headers.carried,
            Carried::Segment { syn: true, .. }
        ));
    }

    #[test]
    fn a_segment_is_read_with_its_selective_acknowledgements() {
        // Two NOPs, SACK of 1000 to 1500 and 300 to 310.
        let mut options = vec![1, 1, SACK, 18];
        for edge in [1000_u32, 1500, 300, 310] {
            options.extend(edge.to_be_bytes());
        }
        let headers = Headers::read(&v4(2, TCP, &tcp(ACK, &options, 0))).expect("a packet");
        assert_eq!(
            (headers.ecn, headers.destination.port()),
            (Ecn::Ect0, 50_000)
        );
        let seen = headers.pure_ack().expect("a pure acknowledgement");
        assert_eq!(
            (seen.ack, seen.sacked_bytes, seen.must_keep),
            (256, 510, false)
        );
        let data = Headers::read(&v4(0, TCP, &tcp(ACK, &[], 9))).expect("a packet");
        assert_eq!(data.pure_ack(), None);
        assert!(matches!(
            data.carried,
            Carried::Segment {
                seq: 100,
                payload: 9,
                ..
            }
        ));
    }

    #[test]
    fn an_acknowledgement_that_reports_a_duplicate_is_kept() {
        let mut options = vec![SACK, 10];
        options.extend([200_u32, 250].map(u32::to_be_bytes).concat());
        options.extend([1, 1]);
        let headers = Headers::read(&v4(0, TCP, &tcp(ACK, &options, 0))).expect("a packet");
        assert!(headers.pure_ack().expect("pure").must_keep);
    }

    #[test]
    fn echoes_have_an_identifier_and_later_fragments_no_ports() {
        let headers =
            Headers::read(&v4(0, ICMP, &[8, 0, 0, 0, 1, 2, 0, 7, 9, 9])).expect("a packet");
        let echo = Carried::Echo {
            reply: false,
            identifier: 0x102,
            sequence: 7,
            payload: 2,
        };
        assert_eq!(headers.carried, echo);
        let mut fragment = v4(0, UDP, &[1, 2, 3, 4]);
        fragment[7] = 185;
        let headers = Headers::read(&fragment).expect("a packet");
        assert_eq!(
            (headers.source.port(), headers.carried),
            (0, Carried::Datagram { payload: 4 })
        );
    }

    #[test]
    fn other_bytes_are_no_packet() {
        assert_eq!(Headers::read(&[]), None);
        assert_eq!(Headers::read(&[0x45; 19]), None);
        assert_eq!(Headers::read(&[0x60; 39]), None);
        assert_eq!(Headers::read(&v4(0, TCP, &[0; 10])), None);
    }
}
