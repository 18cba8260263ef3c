//! Large frames: a host hands over many segments of TCP or datagrams of UDP as one, with their checksum left to do
//! (`IFF_VNET_HDR`, the header of virtio 1.2, section 5.1.6). They are cut here into the packets that a network card would send.

use std::net::IpAddr;

use crate::ip::{Headers, TCP, UDP, checksum_of_header};

/// Bytes of the header before every packet that is read or written.
pub const HEADER: usize = 10;

/// Flags: the checksum is to be completed.
const NEEDS_CSUM: u8 = 1;
/// Kinds of frames: TCP over IPv4 and over IPv6, and what may be added to either: its first segment has CWR; UDP over any.
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP_ANY: u8 = 5;
const WITH_ECN: u8 = 0x80;
/// Flags of TCP that only the last segment keeps, and only the first.
const FIN_PSH: u8 = 1 | 8;
const CWR: u8 = 128;
/// Bytes of UDP's header.
const UDP_HEADER: usize = 8;

/// A checksum that is to be completed: from which byte on, and where it is, counted from there.
pub type Partial = Option<(u16, u16)>;

/// The header before a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Meta {
    kind: u8,
    /// Bytes of data of a segment.
    size: u16,
    /// A checksum that is to be completed.
    pub checksum: Partial,
}

impl Meta {
    /// Reads it.
    pub fn read(bytes: &[u8; HEADER]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            kind: bytes[1] & !WITH_ECN,
            size: word(4),
            checksum: (bytes[0] & NEEDS_CSUM != 0).then(|| (word(6), word(8))),
        }
    }

    /// The header before a single packet.
    pub fn before(checksum: Partial) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        if let Some((start, offset)) = checksum {
            bytes[0] = NEEDS_CSUM;
            bytes[6..8].copy_from_slice(&start.to_ne_bytes());
            bytes[8..10].copy_from_slice(&offset.to_ne_bytes());
        }
        bytes
    }

    /// The header of the same frame without its first `bytes`.
    pub fn without(self, bytes: u16) -> Self {
        let checksum = self
            .checksum
            .and_then(|(start, offset)| Some((start.checked_sub(bytes)?, offset)));
        Self { checksum, ..self }
    }

    /// Hands the packets of a frame to `each`, in order, as they are on a wire but for the checksum. One that is not what its header
    /// says is lost.
    pub fn cut(&self, frame: &[u8], mut each: impl FnMut(&[u8])) {
        let protocol = match self.kind {
            TCP_V4 | TCP_V6 => TCP,
            UDP_ANY => UDP,
            _ => return each(frame),
        };
        let Some(headers) = Headers::read(frame).filter(|headers| headers.protocol == protocol)
        else {
            return;
        };
        let start = self.checksum.map_or(0, |(start, _)| usize::from(start));
        // The byte of TCP's data offset; UDP has one there, too, or is no large frame.
        let Some(offset) = frame
            .get(start + 12)
            .filter(|_| start >= 20 && self.size > 0)
        else {
            return;
        };
        let length = start
            + match protocol {
                TCP => usize::from(offset >> 4) * 4,
                _ => UDP_HEADER,
            };
        let Some((head, data)) = frame.split_at_checked(length) else {
            return;
        };
        let parts = data.chunks(usize::from(self.size));
        let last = parts.len().saturating_sub(1);
        let mut packet = Vec::with_capacity(length + usize::from(self.size));
        for (number, part) in parts.enumerate() {
            packet.clear();
            packet.extend_from_slice(head);
            packet.extend_from_slice(part);
            let carried = (packet.len() - start) as u16;
            let ends = (headers.source.ip(), headers.destination.ip());
            let sum = sum_of_pseudo_header(ends, protocol, carried).to_be_bytes();
            if protocol == TCP {
                let seq = u32::from_be_bytes([
                    head[start + 4],
                    head[start + 5],
                    head[start + 6],
                    head[start + 7],
                ]);
                let before = (number * usize::from(self.size)) as u32;
                packet[start + 4..start + 8]
                    .copy_from_slice(&seq.wrapping_add(before).to_be_bytes());
                packet[start + 13] &=
                    !(if number < last { FIN_PSH } else { 0 } | if number > 0 { CWR } else { 0 });
                packet[start + 16..start + 18].copy_from_slice(&sum);
            } else {
                packet[start + 4..start + 6].copy_from_slice(&carried.to_be_bytes());
                packet[start + 6..start + 8].copy_from_slice(&sum);
            }
            let total = packet.len() as u16;
            if headers.source.is_ipv4() {
                let id = u16::from_be_bytes([head[4], head[5]]).wrapping_add(number as u16);
                packet[2..4].copy_from_slice(&total.to_be_bytes());
                packet[4..6].copy_from_slice(&id.to_be_bytes());
                checksum_of_header(&mut packet[..start]);
            } else {
                packet[4..6].copy_from_slice(&(total - 40).to_be_bytes());
            }
            each(&packet);
        }
    }
}

/// What a checksum that is to be completed begins with (RFC 9293, section 3.1), not complemented.
fn sum_of_pseudo_header((source, destination): (IpAddr, IpAddr), protocol: u8, length: u16) -> u16 {
    let of = |address: IpAddr| -> u32 {
        let words = |octets: &[u8]| -> u32 {
            let pairs = octets.chunks_exact(2);
            pairs
                .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
                .sum()
        };
        match address {
            IpAddr::V4(address) => words(&address.octets()),
            IpAddr::V6(address) => words(&address.octets()),
        }
    };
    let mut sum = of(source) + of(destination) + u32::from(protocol) + u32::from(length);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Internet checksum (RFC 1071) over bytes, not complemented.
    fn sum(bytes: &[u8]) -> u16 {
        let words = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    const FLAGS: u8 = 0x10 | FIN_PSH | CWR;

    /// A TCP frame with this much data, whose bytes count up.
    fn frame(version: u8, data: usize) -> (Vec<u8>, Meta) {
        let (mut packet, kind) = match version {
            4 => {
                let mut header = vec![0x45, 2, 0, 0, 0xff, 0xff, 0x40, 0, 64, TCP, 0, 0];
                header.extend([10, 0, 0, 1, 10, 0, 0, 2]);
                (header, TCP_V4)
            }
            _ => {
                let mut header = vec![0x60, 0, 0, 0, 0, 0, TCP, 64];
                header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
                header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
                (header, TCP_V6)
            }
        };
        let start = packet.len();
        packet.extend([
            0, 80, 0x12, 0x34, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 1, 0x50, FLAGS, 1, 0, 0, 0, 0, 0,
        ]);
        packet.extend((0..data).map(|n| n as u8));
        let total = packet.len();
        match version {
            4 => packet[2..4].copy_from_slice(&(total as u16).to_be_bytes()),
            _ => packet[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes()),
        }
        let meta = Meta {
            kind,
            size: 1448,
            checksum: Some((start as u16, 16)),
        };
        (packet, meta)
    }

    fn cut(frame: &[u8], meta: &Meta) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        meta.cut(frame, |packet| all.push(packet.to_vec()));
        all
    }

    #[test]
    fn a_frame_becomes_the_segments_of_a_network_card() {
        for version in [4, 6] {
            let (frame, meta) = frame(version, 4000);
            let start = if version == 4 { 20 } else { 40 };
            let all = cut(&frame, &meta);
            let data: Vec<u8> = all
                .iter()
                .flat_map(|one| one[start + 20..].to_vec())
                .collect();
            assert_eq!(data, frame[start + 20..]);
            assert_eq!(
                all.iter().map(Vec::len).collect::<Vec<_>>(),
                [1448, 1448, 1104].map(|n| n + start + 20)
            );
            for (number, mut one) in all.into_iter().enumerate() {
                let headers = Headers::read(&one).expect("a packet");
                let crate::ip::Carried::Segment { seq, payload, .. } = headers.carried else {
                    panic!("not TCP");
                };
                // The sequence numbers wrap around.
                assert_eq!(seq, 0xffff_ff00_u32.wrapping_add(1448 * number as u32));
                assert_eq!(payload, if number < 2 { 1448 } else { 1104 });
                let flags = one[start + 13];
                assert_eq!(flags & FIN_PSH != 0, number == 2);
                assert_eq!(flags & CWR != 0, number == 0);
                if version == 4 {
                    assert_eq!(sum(&one[..20]), 0xffff);
                    assert_eq!(
                        u16::from_be_bytes([one[4], one[5]]),
                        0xffff_u16.wrapping_add(number as u16)
                    );
                }
                // Completed as the receiving kernel would, the checksum is right.
                let complete = !sum(&one[start..]);
                one[start + 16..start + 18].copy_from_slice(&complete.to_be_bytes());
                let ends = (headers.source.ip(), headers.destination.ip());
                let pseudo = sum_of_pseudo_header(ends, TCP, (one.len() - start) as u16);
                let all = u32::from(pseudo) + u32::from(sum(&one[start..]));
                assert_eq!((all & 0xffff) + (all >> 16), 0xffff);
            }
        }
    }

    #[test]
    fn a_frame_of_udp_becomes_datagrams() {
        let mut frame = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, UDP, 0, 0];
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 0x12, 0x34, 0, 0, 0, 0]);
        frame.extend((0..2500).map(|n| n as u8));
        let total = frame.len() as u16;
        frame[2..4].copy_from_slice(&total.to_be_bytes());
        let meta = Meta {
            kind: UDP_ANY,
            size: 1200,
            checksum: Some((20, 6)),
        };
        let all = cut(&frame, &meta);
        assert_eq!(
            all.iter().map(Vec::len).collect::<Vec<_>>(),
            [1228, 1228, 128]
        );
        for one in &all {
            let length = (one.len() - 20) as u16;
            assert_eq!(one[24..26], length.to_be_bytes());
            assert_eq!(one[2..4], (one.len() as u16).to_be_bytes());
            assert_eq!(sum(&one[..20]), 0xffff);
            // What is to be completed begins with the sum over addresses, protocol and length.
            let pseudo = 2 * 0x0a00 + 1 + 2 + u16::from(UDP) + length;
            assert_eq!(one[26..28], pseudo.to_be_bytes());
        }
        let data: Vec<u8> = all.iter().flat_map(|one| one[28..].to_vec()).collect();
        assert_eq!(data, frame[28..]);
    }

    #[test]
    fn other_packets_stay_whole_and_wrong_headers_lose_theirs() {
        let (packet, meta) = frame(4, 100);
        assert_eq!(
            cut(&packet, &Meta::default()),
            std::slice::from_ref(&packet)
        );
        assert_eq!(cut(&packet, &meta).len(), 1);
        let wrong = [
            Meta { size: 0, ..meta },
            Meta {
                checksum: None,
                ..meta
            },
            Meta {
                checksum: Some((9000, 16)),
                ..meta
            },
        ];
        for meta in wrong {
            assert!(cut(&packet, &meta).is_empty());
        }
    }

    #[test]
    fn the_header_is_read_as_it_is_written() {
        for checksum in [None, Some((20, 16)), Some((40, 6))] {
            let meta = Meta::read(&Meta::before(checksum));
            assert_eq!((meta.kind, meta.checksum), (0, checksum));
            // Before Ethernet's header it counts from there.
            let whole = Meta::before(checksum.map(|(start, offset)| (start + 14, offset)));
            assert_eq!(Meta::read(&whole).without(14).checksum, checksum);
        }
    }
}
