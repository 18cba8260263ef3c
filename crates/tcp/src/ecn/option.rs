//! The AccECN option (RFC 9768 §3.2.3): the payload bytes that arrived with each codepoint. The order of its fields is
//! that of kind 174: ECT(1), CE, ECT(0). It has as many of them as fit, none, one, two or three.

use super::arrival::{Arrival, EcnBytes, option_bytes};
use crate::segment::{SackBlock, Segment};
use crate::seq::Seq;

/// Room for TCP options beside the timestamps, in bytes.
const ROOM: u32 = 40 - 12;

/// How many of so many SACK blocks stay and how many fields stand beside them, of at least `needed`; `None`: the option is
/// left out. SACK comes first, but for a third block (RFC 9768 §3.2.3.3; Linux's tcp_options_fit_accecn).
fn fit(blocks: u8, needed: u8) -> Option<(u8, u8)> {
    let sack = match blocks {
        0 => 0,
        blocks => 4 + 8 * u32::from(blocks),
    };
    let fields = (needed..=3)
        .rev()
        .find(|fields| sack + option_bytes(*fields, blocks > 0) <= ROOM);
    match fields {
        Some(fields) => Some((blocks, fields)),
        None if blocks > 2 && needed > 0 => fit(blocks - 1, needed),
        None => None,
    }
}

/// What a receiver tells by the option.
#[derive(Default, Debug)]
pub(crate) struct Told {
    bytes: EcnBytes,
    /// The fields that the next option must have, to tell what has come since the last.
    needed: u8,
    /// The beginning of the D-SACK that went with the last option.
    duplicate: Option<Seq>,
}

impl Told {
    /// Counts an arrival.
    pub(crate) fn count(&mut self, ecn: Arrival, bytes: u32) {
        self.needed = self.needed.max(self.bytes.count(ecn, bytes));
    }

    /// Writes the option, if it fits beside the SACK blocks.
    #[cold]
    #[inline(never)]
    pub(crate) fn write(&mut self, segment: &mut Segment) {
        let blocks = segment.sack_blocks();
        let first = blocks.first().map(|first| first.start);
        self.duplicate = None;
        if let Some((kept, fields)) = fit(blocks.len() as u8, self.needed) {
            self.duplicate = first.filter(|start| start.before(segment.ack));
            segment.sack[usize::from(kept)..].fill(SackBlock::NONE);
            segment.add_accecn(fields, self.bytes);
            self.needed = 0;
        }
    }

    /// True if the last option went with a D-SACK of this segment.
    pub(crate) fn has_reported(&self, segment: SackBlock) -> bool {
        self.duplicate == Some(segment.start)
    }
}

/// The bytes that the peer has reported.
#[derive(Clone, Default, Debug)]
pub(crate) struct Counts {
    fields: [u32; 3],
    /// The field that alone grew with the last option: without an option it is taken to grow by all that is delivered.
    grows: Option<usize>,
}

/// What an acknowledgement tells about bytes.
#[derive(Clone, Copy)]
pub(crate) struct Reported {
    /// Bytes that arrived marked.
    pub(crate) marked: u32,
    /// Bytes delivered.
    pub(crate) delivered: u32,
    /// Payload bytes of a full segment.
    pub(crate) mss: u32,
    /// The numbers of segments and of bytes delivered are exact.
    pub(crate) is_exact: bool,
}

impl Counts {
    /// Takes an acknowledgement that delivers so many bytes. Returns the bytes newly marked, if that is certain (Linux's
    /// tcp_accecn_process_option).
    pub(crate) fn take(&mut self, segment: &Segment, delivered: u32) -> Option<u32> {
        const CE: usize = 1;
        let before = self.fields[CE];
        let mut certain = self.grows.is_some();
        let Some(fields) = segment.flags.accecn_fields() else {
            if let Some(field) = self.grows {
                self.fields[field] = self.fields[field].wrapping_add(delivered);
            }
            return certain.then(|| self.fields[CE].wrapping_sub(before));
        };
        let expected = self.grows;
        let mut changed = false;
        let mut ambiguous = false;
        let reported = segment.ecn_bytes().fields;
        let reported = reported.iter().take(usize::from(fields));
        for (field, (known, reported)) in self.fields.iter_mut().zip(reported).enumerate() {
            // The difference of two counters of 24 bits, with its sign.
            let grown = (reported.wrapping_sub(*known) << 8) as i32 >> 8;
            *known = known.wrapping_add_signed(grown);
            ambiguous |= grown < 0;
            if grown != 0 && expected != Some(field) {
                if changed {
                    ambiguous = true;
                } else {
                    self.grows = Some(field);
                    changed = true;
                }
            }
        }
        if ambiguous {
            self.grows = None;
            certain = false;
        }
        certain.then(|| self.fields[CE].wrapping_sub(before))
    }
}

impl Reported {
    /// Whether the ACE field has wrapped: the number of packets newly marked, `least` if it has not, `most` if it has
    /// as often as it may (Linux's __tcp_accecn_process; RFC 9768 appendix A.2.2).
    pub(crate) const fn choose(&self, least: u32, most: u32, delivered: u32) -> u32 {
        if self.marked == 0 {
            return least;
        }
        if delivered >= 16 && self.is_exact {
            if self.delivered <= self.marked {
                return most;
            }
            let product = self.marked as u64 * delivered as u64;
            let packets = product.div_ceil(self.delivered as u64) as u32;
            let estimate = least + (packets & !7);
            return if estimate < most { estimate } else { most };
        }
        if self.marked > least * self.mss {
            most
        } else if self.marked < (most * self.mss) >> 1 {
            least
        } else {
            most
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Flags;

    /// Linux's tcp_options_fit_accecn: 28 bytes beside the timestamps; a SACK option of n blocks takes 4 + 8n.
    #[test]
    fn the_option_gives_way_to_sack_blocks_but_the_third() {
        assert_eq!(fit(0, 3), Some((0, 3)));
        assert_eq!(fit(1, 3), Some((1, 3)), "12 + 12");
        assert_eq!(fit(2, 3), None, "20 + 12");
        assert_eq!(fit(2, 2), Some((2, 2)), "20 + 8");
        assert_eq!(fit(3, 3), None);
        assert_eq!(fit(3, 1), Some((2, 2)));
        assert_eq!(fit(3, 0), Some((3, 0)), "in the padding of SACK");
        for blocks in 0..=3 {
            for needed in 0..=3 {
                let Some((kept, fields)) = fit(blocks, needed) else {
                    continue;
                };
                let sack = if kept > 0 { 4 + 8 * u32::from(kept) } else { 0 };
                assert!(fields >= needed && sack + option_bytes(fields, kept > 0) <= 28);
            }
        }
    }

    fn report(fields: u8, counters: [u32; 3]) -> Segment {
        let mut segment = Segment {
            flags: Flags::ACK,
            ..Segment::default()
        };
        segment.add_accecn(fields, EcnBytes { fields: counters });
        segment
    }

    #[test]
    fn bytes_are_certain_once_one_counter_has_grown_alone() {
        let mut counts = Counts::default();
        assert_eq!(counts.take(&report(3, [0, 0, 1000]), 1000), None);
        assert_eq!(counts.take(&report(3, [0, 0, 3000]), 2000), Some(0));
        assert_eq!(counts.take(&report(3, [0, 500, 3000]), 500), Some(500));
        // Without an option all that is delivered is taken to be marked, as the last was.
        assert_eq!(counts.take(&Segment::default(), 700), Some(700));
        // Two others have grown: it is not known which of them goes on.
        assert_eq!(counts.take(&report(3, [9, 1200, 4000]), 1009), None);
        assert_eq!(counts.take(&Segment::default(), 700), None);
    }

    #[test]
    fn counters_of_24_bits_wrap_and_may_go_back() {
        let mut counts = Counts::default();
        counts.take(&report(3, [0, 0, 0xff_fff0]), 1);
        assert_eq!(
            counts.fields[2],
            0xff_fff0_u32 | 0xff00_0000,
            "it went back by 16"
        );
        counts.take(&report(3, [0, 0, 0x10]), 1);
        assert_eq!(counts.fields[2], 0x10);
    }

    const FULL: Reported = Reported {
        marked: 0,
        delivered: 20_000,
        mss: 1000,
        is_exact: true,
    };

    /// Of 20 segments 2 or, if the field has wrapped twice, 18 are marked.
    #[test]
    fn bytes_tell_whether_the_field_has_wrapped() {
        let chosen = |marked| Reported { marked, ..FULL }.choose(2, 18, 20);
        assert_eq!(chosen(0), 2);
        assert_eq!(chosen(2_000), 2);
        assert_eq!(chosen(10_000), 10);
        assert_eq!(chosen(18_000), 18);
        assert_eq!(chosen(20_000), 18);
    }

    /// Of 10 segments 1 or 9: more bytes than one segment has are more segments.
    #[test]
    fn below_16_segments_the_bytes_of_the_least_number_decide() {
        let chosen = |marked| {
            let delivered = 10_000;
            Reported {
                marked,
                delivered,
                ..FULL
            }
            .choose(1, 9, 10)
        };
        assert_eq!(chosen(900), 1);
        assert_eq!(chosen(1_001), 9);
    }
}
