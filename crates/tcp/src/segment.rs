//! A segment: the TCP header fields that the model uses, and the payload length.

use std::fmt;

use crate::ecn::{EcnBytes, option_bytes};
use crate::seq::Seq;

/// The control bits of a segment, and which options it carries.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u16);

impl Flags {
    /// No flag at all.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(1);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(1 << 1);
    /// Reset the connection.
    pub const RST: Self = Self(1 << 2);
    /// Push: the end of a write or of a GSO burst.
    pub const PSH: Self = Self(1 << 3);
    /// The acknowledgement field is significant.
    pub const ACK: Self = Self(1 << 4);
    /// ECN echo (RFC 3168 §6.1).
    pub const ECE: Self = Self(1 << 6);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Self = Self(1 << 7);
    /// Accurate ECN; with CWR and ECE the ACE field (RFC 9768 §3.2).
    pub const AE: Self = Self(1 << 8);
    /// Option of a SYN: selective acknowledgements are permitted (RFC 2018 §2).
    pub const SACK_PERMITTED: Self = Self(1 << 9);
    /// The AccECN option (RFC 9768 §3.2.3), with the number of its fields in the next two bits.
    const ACCECN: Self = Self(1 << 10);

    /// True if all of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// True if some of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    /// This and `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// This, and `other` if `condition` holds.
    pub const fn with_if(self, other: Self, condition: bool) -> Self {
        if condition { self.with(other) } else { self }
    }
    /// The ACE field: AE, CWR and ECE as a number (RFC 9768 §3.2).
    pub const fn ace(self) -> u8 {
        ((self.0 >> 6) & 7) as u8
    }
    /// This with the last three bits of `count` in the ACE field.
    pub const fn with_ace(self, count: u32) -> Self {
        Self(self.0 & !(7 << 6) | ((count & 7) as u16) << 6)
    }
    /// This with the AccECN option, of so many fields of three.
    const fn with_accecn(self, fields: u8) -> Self {
        Self(self.0 & !(3 << 11) | Self::ACCECN.0 | ((fields & 3) as u16) << 11)
    }
    /// The fields of the AccECN option; `None` without it.
    pub const fn accecn_fields(self) -> Option<u8> {
        if self.contains(Self::ACCECN) {
            Some(((self.0 >> 11) & 3) as u8)
        } else {
            None
        }
    }
    /// The control bits as they stand in the header, from the bit after Rsrvd to FIN: AE, then the eight of RFC 9293
    /// (RFC 9768 §3.1).
    pub const fn header_bits(self) -> u16 {
        self.0 & 0x1ff
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::SYN, "SYN"),
            (Self::FIN, "FIN"),
            (Self::RST, "RST"),
            (Self::PSH, "PSH"),
            (Self::ACK, "ACK"),
            (Self::ECE, "ECE"),
            (Self::CWR, "CWR"),
            (Self::AE, "AE"),
            (Self::SACK_PERMITTED, "SACKOK"),
            (Self::ACCECN, "ACCECN"),
        ];
        let set: Vec<&str> = names
            .iter()
            .filter(|(flag, _)| self.contains(*flag))
            .map(|(_, name)| *name)
            .collect();
        f.write_str(&set.join("|"))
    }
}

/// A range of received bytes, `start` included, `end` not (RFC 2018 §3).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlock {
    /// First byte of the block.
    pub start: Seq,
    /// The byte after its last.
    pub end: Seq,
}

impl SackBlock {
    /// A block that reports nothing: an unused entry of [`Segment::sack`].
    pub const NONE: Self = Self {
        start: Seq(0),
        end: Seq(0),
    };

    /// True for an unused entry.
    pub const fn is_none(self) -> bool {
        self.start.0 == self.end.0
    }
    /// Bytes that it reports.
    pub const fn bytes(self) -> u32 {
        self.end.since(self.start)
    }
    /// True if `other` lies within this block.
    pub const fn covers(self, other: Self) -> bool {
        !other.start.before(self.start) && !other.end.after(self.end)
    }
    /// True if there is nothing between this block and `other`.
    pub const fn touches(self, other: Self) -> bool {
        !other.start.after(self.end) && !self.start.after(other.end)
    }
    /// This block with one that it touches.
    pub fn with(self, other: Self) -> Self {
        let start = if other.start.before(self.start) {
            other.start
        } else {
            self.start
        };
        Self {
            start,
            end: self.end.max(other.end),
        }
    }
}

/// SACK blocks that fit beside the timestamp option (RFC 2018 §3).
pub const MAX_SACK_BLOCKS: usize = 3;

/// A TCP segment. The payload itself is not modelled, only its length.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Segment {
    /// Sequence number of the first payload byte (or of SYN or FIN).
    pub seq: Seq,
    /// Next byte expected, if [`Flags::ACK`].
    pub ack: Seq,
    /// Timestamp value, milliseconds of the sender's clock (RFC 7323 §3).
    pub ts_val: u32,
    /// Timestamp echo reply.
    pub ts_ecr: u32,
    /// Receive window in bytes, scaling undone (RFC 7323 §2).
    pub window: u32,
    /// Payload bytes.
    pub len: u16,
    /// Control bits and options.
    pub flags: Flags,
    /// SACK blocks, the most recent first; unused entries are [`SackBlock::NONE`]. The counters of AccECN's option stand in
    /// those for which it leaves no room: see [`Segment::sack_blocks`] and [`Segment::ecn_bytes`].
    pub sack: [SackBlock; MAX_SACK_BLOCKS],
}

impl Segment {
    /// Sequence space that the segment occupies: the payload, and one each for SYN and FIN.
    pub const fn sequence_len(&self) -> u32 {
        self.len as u32
            + self.flags.contains(Flags::SYN) as u32
            + self.flags.contains(Flags::FIN) as u32
    }
    /// The sequence number after the segment's last.
    pub fn end(&self) -> Seq {
        self.seq + self.sequence_len()
    }
    /// The SACK blocks in use.
    pub fn sack_blocks(&self) -> &[SackBlock] {
        if self.sack[0].is_none() {
            return &[];
        }
        let blocks = &self.sack[..Self::most_blocks(self.flags)];
        let used = blocks.iter().position(|block| block.is_none());
        &blocks[..used.unwrap_or(blocks.len())]
    }
    /// The SACK blocks for which AccECN's option has room, beside the timestamps.
    fn most_blocks(flags: Flags) -> usize {
        match flags.accecn_fields() {
            None | Some(0) => MAX_SACK_BLOCKS,
            Some(1 | 2) => 2,
            Some(_) => 1,
        }
    }
    /// The counters of the AccECN option; those that it does not have are 0.
    pub fn ecn_bytes(&self) -> EcnBytes {
        let [_, second, third] = self.sack;
        let fields = match Self::most_blocks(self.flags) {
            MAX_SACK_BLOCKS => [0; 3],
            2 => [third.start.0, third.end.0, 0],
            _ => [third.start.0, third.end.0, second.start.0],
        };
        EcnBytes { fields }
    }
    /// Adds the AccECN option, with so many of the counters, in place of the SACK blocks for which it leaves no room.
    pub fn add_accecn(&mut self, fields: u8, bytes: EcnBytes) {
        let [ect1, marked, ect0] = bytes.fields.map(Seq);
        self.flags = self.flags.with_accecn(fields);
        let most = Self::most_blocks(self.flags);
        if most < MAX_SACK_BLOCKS {
            self.sack[2] = SackBlock {
                start: ect1,
                end: marked,
            };
        }
        if most < 2 {
            self.sack[1] = SackBlock {
                start: ect0,
                end: ect0,
            };
        }
    }
    /// False for a reset that answers a segment: it has no timestamps.
    pub const fn has_timestamps(&self) -> bool {
        !self.flags.contains(Flags::RST) || self.ts_val != 0
    }
    /// Bytes of IP and TCP header: 20 + 20, timestamps 12, on a pure ACK 4 + 8 per SACK block, and at most 12 of AccECN's
    /// option.
    #[inline(always)]
    pub fn header_bytes(&self) -> u32 {
        const LONGER: Flags = Flags::SYN.with(Flags::RST).with(Flags::ACCECN);
        if self.sack[0].is_none() && !self.flags.intersects(LONGER) {
            return 52;
        }
        self.longer_header_bytes()
    }

    #[cold]
    #[inline(never)]
    fn longer_header_bytes(&self) -> u32 {
        if !self.has_timestamps() {
            return 40;
        }
        let syn = 8 * u32::from(self.flags.contains(Flags::SYN));
        let sack = match self.sack_blocks().len() as u32 {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        let accecn =
            (self.flags.accecn_fields()).map_or(0, |fields| option_bytes(fields, sack > 0));
        52 + syn + sack + accecn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9768 §3.2: AE is the most significant bit, ECE the least.
    #[test]
    fn the_ace_field_is_ae_cwr_and_ece() {
        assert_eq!(Flags::AE.ace(), 4);
        assert_eq!(Flags::ECE.with(Flags::ACK).ace(), 1);
        let flags = Flags::ACK.with(Flags::ECE).with_ace(14);
        assert_eq!(flags, Flags::ACK.with(Flags::AE).with(Flags::CWR));
        assert_eq!(flags.ace(), 6);
    }

    #[test]
    fn syn_and_fin_take_sequence_space() {
        let fin = Segment {
            len: 100,
            flags: Flags::FIN.with(Flags::ACK),
            ..Segment::default()
        };
        assert_eq!(fin.sequence_len(), 101);
        assert_eq!(fin.end(), Seq(101));
    }

    /// RFC 2018 §3: 8n + 2 bytes of option, padded; RFC 7323 appendix A: 12 bytes of timestamps.
    #[test]
    fn a_full_segment_fills_an_mtu_of_1500() {
        let data = Segment {
            len: 1448,
            ..Segment::default()
        };
        assert_eq!(data.header_bytes() + 1448, 1500);
        let block = SackBlock {
            start: Seq(1),
            end: Seq(2),
        };
        let ack = Segment {
            sack: [block, block, SackBlock::NONE],
            ..Segment::default()
        };
        assert_eq!(ack.header_bytes(), 52 + 20);
        let with_option = |fields, mut segment: Segment| {
            segment.add_accecn(fields, EcnBytes { fields: [1, 2, 3] });
            segment
        };
        let shorter = Segment { len: 1436, ..data };
        assert_eq!(with_option(3, shorter).header_bytes() + 1436, 1500);
        assert_eq!(with_option(2, ack).header_bytes(), 52 + 20 + 8);
        assert_eq!(
            with_option(0, ack).header_bytes(),
            52 + 20,
            "in the padding"
        );
    }

    /// As they fit beside the timestamps.
    #[test]
    fn counters_and_sack_blocks_stand_beside_each_other() {
        let block = |start| SackBlock {
            start: Seq(start),
            end: Seq(start + 1),
        };
        let blocks = [block(1), block(5), block(9)];
        for (fields, kept) in [(3, 0), (3, 1), (2, 2), (1, 2), (0, 3)] {
            let mut segment = Segment::default();
            segment.sack[..kept].copy_from_slice(&blocks[..kept]);
            let counters = [7, 0xff_ffff, 1 << 31];
            segment.add_accecn(fields, EcnBytes { fields: counters });
            assert_eq!(segment.sack_blocks(), &blocks[..kept]);
            let told = usize::from(fields);
            assert_eq!(segment.ecn_bytes().fields[..told], counters[..told]);
        }
        assert_eq!(Segment::default().ecn_bytes(), EcnBytes::default());
    }

    #[test]
    fn the_number_of_fields_is_kept_beside_the_flags() {
        for fields in 0..=3 {
            let flags = Flags::ACK.with_accecn(3).with_accecn(fields);
            assert_eq!(flags.accecn_fields(), Some(fields));
            assert_eq!(flags.header_bits(), Flags::ACK.header_bits());
        }
        assert_eq!(Flags::ACK.accecn_fields(), None);
    }
}
