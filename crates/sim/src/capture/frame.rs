//! Writes the headers of a simulated packet as on the wire: Ethernet, IPv4, then TCP, UDP or ICMP.
//!
//! The payload is all zeros and is not captured; checksums include it.

use sojourn_aqm::{FlowKey, Packet};
use sojourn_tcp::Segment;
use sojourn_tcp::segment::Flags;
use sojourn_units::internet_checksum;

use crate::packet::{Kind, SimPacket};

const ETHERNET_BYTES: u32 = 14;
const IP_BYTES: u32 = 20;
const UDP_BYTES: u32 = 8;
const IPV4: u16 = 0x0800;
const DONT_FRAGMENT: u16 = 0x4000;
const HOPS: u8 = 64;
/// Windows are shifted right by this many bits (RFC 7323 §2.3): up to 64 MiB in steps of 1 KiB.
const WINDOW_SCALE: u8 = 10;
/// The timestamp option and its padding, present in every segment (RFC 7323 appendix A). The MSS in a SYN counts
/// payload and the options that reduce it (RFC 6691).
const TIMESTAMPS_BYTES: u16 = 12;

/// Appends the headers of a packet; `overhead` of its bytes are not IP. A SYN leaves room for `mss` bytes of payload.
/// Returns the length of the frame, payload included.
pub fn write(frame: &mut Vec<u8>, packet: &SimPacket, overhead: u32, mss: u16) -> u32 {
    let segment = packet.carried();
    let ip_bytes = segment.map_or(packet.bytes.saturating_sub(overhead), |segment| {
        segment.header_bytes() + u32::from(segment.len)
    });
    let key = packet.flow();
    ethernet(frame, &key);
    ip(frame, packet, &key, ip_bytes);
    let carried = ip_bytes.saturating_sub(IP_BYTES);
    match (packet.kind, segment) {
        (_, Some(segment)) => tcp(frame, &key, segment, carried, mss + TIMESTAMPS_BYTES),
        (Kind::Echo, None) => echo(frame, packet),
        (_, None) => udp(frame, &key, carried.max(UDP_BYTES)),
    }
    ETHERNET_BYTES + ip_bytes
}

fn ethernet(frame: &mut Vec<u8>, key: &FlowKey) {
    for address in [key.destination, key.source] {
        frame.extend([0x02, 0x00]); // locally administered, then the host's IP address
        frame.extend(address.to_be_bytes());
    }
    frame.extend(IPV4.to_be_bytes());
}

fn ip(frame: &mut Vec<u8>, packet: &SimPacket, key: &FlowKey, length: u32) {
    let begin = frame.len();
    frame.extend([0x45, packet.dscp() << 2 | packet.ecn.bits()]);
    frame.extend((length as u16).to_be_bytes());
    frame.extend(0_u16.to_be_bytes());
    frame.extend(DONT_FRAGMENT.to_be_bytes());
    frame.extend([HOPS, key.protocol]);
    frame.extend([0; 2]);
    frame.extend(key.source.to_be_bytes());
    frame.extend(key.destination.to_be_bytes());
    put_checksum(frame, begin, 10, 0);
}

fn tcp(frame: &mut Vec<u8>, key: &FlowKey, segment: &Segment, length: u32, mss: u16) {
    let is_syn = segment.flags.contains(Flags::SYN);
    let begin = frame.len();
    frame.extend(key.source_port.to_be_bytes());
    frame.extend(key.destination_port.to_be_bytes());
    frame.extend(segment.seq.0.to_be_bytes());
    frame.extend(segment.ack.0.to_be_bytes());
    let header = (segment.header_bytes() - IP_BYTES) as u8;
    let offset = u16::from(header / 4) << 12;
    frame.extend((offset | segment.flags.header_bits()).to_be_bytes());
    // The window of a SYN is never scaled (RFC 7323 §2.2).
    let window = segment.window >> if is_syn { 0 } else { WINDOW_SCALE };
    frame.extend((window.min(u32::from(u16::MAX)) as u16).to_be_bytes());
    frame.extend([0; 4]);
    if is_syn {
        syn_options(frame, segment, mss);
    } else if segment.has_timestamps() {
        frame.extend([1, 1]);
        timestamps(frame, segment);
    }
    let blocks = segment.sack_blocks();
    if let Some(fields) = segment.flags.accecn_fields() {
        accecn(frame, segment, fields);
    }
    // The blocks begin at a whole word, after the two bytes of their option.
    let last = if blocks.is_empty() { 0 } else { 2 };
    while (frame.len() - begin + last) % 4 != 0 {
        frame.push(1);
    }
    if !blocks.is_empty() {
        frame.extend([5, 2 + 8 * blocks.len() as u8]);
        for block in blocks {
            frame.extend(block.start.0.to_be_bytes());
            frame.extend(block.end.0.to_be_bytes());
        }
    }
    put_checksum(frame, begin, 16, pseudo_header(key, length));
}

/// MSS, SACK permitted (or two NOPs), timestamps, window scale: 20 bytes.
fn syn_options(frame: &mut Vec<u8>, segment: &Segment, mss: u16) {
    frame.extend([2, 4]);
    frame.extend(mss.to_be_bytes());
    let has_sack = segment.flags.contains(Flags::SACK_PERMITTED);
    frame.extend(if has_sack { [4, 2] } else { [1, 1] });
    timestamps(frame, segment);
    frame.extend([1, 3, 3, WINDOW_SCALE]);
}

/// AccECN's option of kind 174, with so many of the counters of bytes (RFC 9768 §3.2.3).
fn accecn(frame: &mut Vec<u8>, segment: &Segment, fields: u8) {
    frame.extend([174, 2 + 3 * fields]);
    for counter in &segment.ecn_bytes().on_the_wire()[..usize::from(fields)] {
        frame.extend(&counter.to_be_bytes()[1..]);
    }
}

fn timestamps(frame: &mut Vec<u8>, segment: &Segment) {
    frame.extend([8, 10]);
    frame.extend(segment.ts_val.to_be_bytes());
    frame.extend(segment.ts_ecr.to_be_bytes());
}

fn udp(frame: &mut Vec<u8>, key: &FlowKey, length: u32) {
    let begin = frame.len();
    frame.extend(key.source_port.to_be_bytes());
    frame.extend(key.destination_port.to_be_bytes());
    frame.extend((length as u16).to_be_bytes());
    frame.extend([0; 2]);
    put_checksum(frame, begin, 6, pseudo_header(key, length));
}

/// An echo request or reply (RFC 792). The identifier is the flow number; the sequence number is the request's send
/// time in milliseconds.
fn echo(frame: &mut Vec<u8>, packet: &SimPacket) {
    let begin = frame.len();
    frame.extend([if packet.returning { 0 } else { 8 }, 0, 0, 0]);
    frame.extend((packet.flow as u16).to_be_bytes());
    frame.extend(((packet.sent_at.as_nanos() / 1_000_000) as u16).to_be_bytes());
    put_checksum(frame, begin, 2, 0);
}

/// The sum over the pseudo-header (RFC 9293 §3.1). `length` covers header and payload.
fn pseudo_header(key: &FlowKey, length: u32) -> u32 {
    let halves = |word: u32| (word >> 16) + (word & 0xffff);
    halves(key.source) + halves(key.destination) + u32::from(key.protocol) + length
}

/// Computes the Internet checksum from `begin` to the end of the frame and stores it at `begin + offset`.
/// `also` is added to the sum, such as that of a pseudo-header.
fn put_checksum(frame: &mut [u8], begin: usize, offset: usize, also: u32) {
    let checksum = internet_checksum(&frame[begin..], also);
    frame[begin + offset..begin + offset + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Membership;
    use sojourn_tcp::ecn::EcnBytes;
    use sojourn_tcp::segment::SackBlock;
    use sojourn_tcp::seq::Seq;

    const BACK: Membership = Membership {
        flow: 3,
        hosts: [0x0a01_0101, 0x0a02_0101],
        connection: 0,
        returning: true,
        dscp: 46,
    };

    const MSS: u16 = 536;

    fn of_segment(segment: &Segment) -> (Vec<u8>, u32) {
        let packet = SimPacket::with_segment(BACK, *segment, 14);
        let mut frame = Vec::new();
        let length = write(&mut frame, &packet, 14, MSS);
        (frame, length)
    }

    #[test]
    fn an_acknowledgement_carries_its_sack_blocks() {
        let block = SackBlock {
            start: Seq(0x0102_0304),
            end: Seq(0x0102_0504),
        };
        let segment = Segment {
            seq: Seq(7),
            ack: Seq(9),
            flags: Flags::ACK.with(Flags::ECE),
            window: 64 << 10,
            ts_val: 5,
            ts_ecr: 6,
            sack: [block, SackBlock::NONE, SackBlock::NONE],
            ..Segment::default()
        };
        let (frame, length) = of_segment(&segment);
        // 14 + 20 + 20 + 12 (timestamps) + 12 (one SACK block).
        assert_eq!((frame.len(), length), (78, 78));
        assert_eq!(frame[26..34], [10, 2, 1, 1, 10, 1, 1, 1], "addresses");
        assert_eq!(frame[38..42], 7_u32.to_be_bytes());
        assert_eq!(frame[42..46], 9_u32.to_be_bytes());
        assert_eq!(frame[46..50], [0xb0, 0x50, 0, 64], "11 words, ACK and ECE");
        assert_eq!(frame[54..66], [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6]);
        assert_eq!(frame[66..70], [1, 1, 5, 10]);
        assert_eq!(frame[70..78], [1, 2, 3, 4, 1, 2, 5, 4]);
    }

    /// RFC 9768 §3.2.3: kind 174 and the counters of ECT(1), CE and ECT(0), 24 bits each. The blocks of SACK begin at a whole word.
    #[test]
    fn accecns_option_stands_before_the_sack_blocks() {
        let with_option = |fields: u8, sack: [SackBlock; 3]| {
            let mut segment = Segment {
                flags: Flags::ACK,
                sack,
                ..Segment::default()
            };
            let counters = [0x1_0203, 0x0405, 0x06];
            segment.add_accecn(fields, EcnBytes { fields: counters });
            let (frame, length) = of_segment(&segment);
            assert_eq!(
                (frame.len() as u32, frame[46] >> 4),
                (length, (frame.len() as u8 - 34) / 4)
            );
            frame[66..].to_vec()
        };
        let none = [SackBlock::NONE; 3];
        let block = SackBlock {
            start: Seq(0x0708_090a),
            end: Seq(0x0b0c_0d0e),
        };
        let one = [block, SackBlock::NONE, SackBlock::NONE];
        let option = [174, 11, 1, 2, 4, 0, 4, 5, 0, 0, 7];
        let blocks = [7, 8, 9, 10, 11, 12, 13, 14];
        assert_eq!(with_option(3, none), [&option[..], &[1]].concat());
        let whole = [&option[..], &[1, 1, 1, 5, 10], &blocks].concat();
        assert_eq!(with_option(3, one), whole);
        let of_two = [&[174, 8, 1, 2, 4, 0, 4, 5, 1, 1, 5, 10], &blocks[..]].concat();
        assert_eq!(with_option(2, one), of_two);
        let of_none = [&[174, 2, 5, 10], &blocks[..]].concat();
        assert_eq!(with_option(0, one), of_none, "in the padding");
        assert_eq!(with_option(0, none), [174, 2, 1, 1]);
    }

    #[test]
    fn a_syn_carries_the_connections_options() {
        let segment = Segment {
            flags: Flags::SYN.with(Flags::SACK_PERMITTED),
            window: 65_535,
            ..Segment::default()
        };
        let (frame, length) = of_segment(&segment);
        assert_eq!((frame.len(), length), (74, 74));
        assert_eq!(frame[46..50], [0xa0, 0x02, 0xff, 0xff]);
        // 536 bytes of payload and 12 of timestamps.
        assert_eq!(frame[54..60], [2, 4, 0x02, 0x24, 4, 2]);
        assert_eq!(frame[70..74], [1, 3, 3, 10]);
    }

    #[test]
    fn payload_is_counted_but_not_captured() {
        let segment = Segment {
            len: 1448,
            flags: Flags::ACK,
            ..Segment::default()
        };
        let (frame, length) = of_segment(&segment);
        assert_eq!((frame.len(), length), (66, 1514));
        assert_eq!(frame[16..18], 1500_u16.to_be_bytes());
    }

    /// RFC 9768 §3.1: AE, CWR and ECE are bits 7 to 9 of the thirteenth and fourteenth byte.
    #[test]
    fn a_syn_that_asks_for_accecn_has_all_three_flags() {
        let segment = Segment {
            flags: Flags::SYN.with_ace(0b111),
            ..Segment::default()
        };
        let (frame, _) = of_segment(&segment);
        assert_eq!((frame[46] & 0x0f, frame[47]), (0b0001, 0b1100_0010));
    }

    #[test]
    fn a_ce_mark_is_in_the_ip_header() {
        let mut packet = SimPacket::datagram(BACK, 242);
        packet.set_ce();
        let mut frame = Vec::new();
        assert_eq!(write(&mut frame, &packet, 14, MSS), 242);
        assert_eq!(
            (frame[15], frame[23]),
            (46 << 2 | 0b11, 17),
            "EF and CE; UDP"
        );
        assert_eq!(
            frame[38..40],
            208_u16.to_be_bytes(),
            "UDP: 242 - 14 - 20 bytes"
        );
    }
}
