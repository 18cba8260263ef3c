//! Tins: maps DiffServ code points to tins and assigns each tin a share of the rate (tc-cake(8), "Priority queue
//! parameters"; code points by RFC 2474, 2597, 3246, 5865, 8622).

use crate::choice;

/// The indices of best effort and bulk among the tins of diffserv3 and diffserv4.
const BEST_EFFORT: usize = 0;
const BULK: usize = 1;

choice! {
    /// How code points are sorted into tins.
    pub enum DiffServ {
        /// One tin for all.
        BestEffort = "besteffort",
        /// Eight tins by IP precedence, each entitled to 7/8 of the one before.
        Precedence = "precedence",
        /// Bulk, best effort, latency-sensitive.
        DiffServ3 = "diffserv3",
        /// Bulk, best effort, streaming media, latency-sensitive.
        DiffServ4 = "diffserv4",
        /// Eight tins, each entitled to 7/8 of the one before.
        DiffServ8 = "diffserv8",
    }
}

/// The share of the rate in which a tin has priority over lower ones, and its weight if there is no rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Numerator of the part.
    pub of: u64,
    /// Denominator of the part.
    pub out_of: u64,
    /// Bytes of credit per round of the tins.
    pub quantum: u32,
}

impl DiffServ {
    /// The tins' names by number, as tc prints them; empty for a single tin.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::BestEffort => &[],
            Self::DiffServ3 => &["besteffort", "bulk", "voice"],
            Self::DiffServ4 => &["besteffort", "bulk", "video", "voice"],
            Self::Precedence | Self::DiffServ8 => &[
                "tin0", "tin1", "tin2", "tin3", "tin4", "tin5", "tin6", "tin7",
            ],
        }
    }

    /// The number of tins.
    pub const fn tins(self) -> usize {
        match self {
            Self::BestEffort => 1,
            Self::DiffServ3 => 3,
            Self::DiffServ4 => 4,
            Self::Precedence | Self::DiffServ8 => 8,
        }
    }

    /// The tin for a code point from 0 to 63. A tin with a higher number has priority while within its share.
    pub const fn tin_of(self, dscp: u8) -> usize {
        match self {
            Self::BestEffort => 0,
            Self::Precedence => (dscp >> 3 & 7) as usize,
            Self::DiffServ3 => match dscp {
                LE | CS1 => BULK,
                TOS4 | VA | EF | CS6 | CS7 => 2,
                _ => BEST_EFFORT,
            },
            Self::DiffServ4 => match dscp {
                LE | CS1 => BULK,
                TOS4 | CS2 | AF21 | AF22 | AF23 | CS3 | AF31 | AF32 | AF33 | AF41 | AF42 | AF43 => {
                    2
                }
                CS4 | CS5 | VA | EF | CS6 | CS7 => 3,
                _ => BEST_EFFORT,
            },
            Self::DiffServ8 => match dscp {
                LE => 0,
                TOS2 | CS1 | AF11 | AF12 | AF13 => 1,
                CS3 | AF31 | AF32 | AF33 | AF41 | AF42 | AF43 => 3,
                TOS4 | AF21 | AF22 | AF23 => 4,
                CS2 => 5,
                CS4 | CS5 | VA | EF => 6,
                CS6 | CS7 => 7,
                _ => 2,
            },
        }
    }

    /// The share of tin number `tin`.
    pub fn share(self, tin: usize) -> Share {
        let (of, out_of) = match (self, tin) {
            (Self::BestEffort, _) => (1, 1),
            (Self::Precedence | Self::DiffServ8, tin) => {
                (7_u64.pow(tin as u32), 8_u64.pow(tin as u32))
            }
            (_, BEST_EFFORT) => (1, 1),
            (_, BULK) => (1, 16),
            (Self::DiffServ4, 2) => (1, 2),
            _ => (1, 4),
        };
        let whole = match self {
            Self::BestEffort => 65_535,
            Self::Precedence | Self::DiffServ8 => 256,
            Self::DiffServ3 | Self::DiffServ4 => 1024,
        };
        Share {
            of,
            out_of,
            quantum: (whole * of / out_of) as u32,
        }
    }
}

const LE: u8 = 1;
const TOS2: u8 = 2;
const TOS4: u8 = 4;
const CS1: u8 = 8;
const AF11: u8 = 10;
const AF12: u8 = 12;
const AF13: u8 = 14;
const CS2: u8 = 16;
const AF21: u8 = 18;
const AF22: u8 = 20;
const AF23: u8 = 22;
const CS3: u8 = 24;
const AF31: u8 = 26;
const AF32: u8 = 28;
const AF33: u8 = 30;
const CS4: u8 = 32;
const AF41: u8 = 34;
const AF42: u8 = 36;
const AF43: u8 = 38;
const CS5: u8 = 40;
const VA: u8 = 44;
const EF: u8 = 46;
const CS6: u8 = 48;
const CS7: u8 = 56;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_go_where_the_manual_says() {
        // tc-cake(8): LE and CS1 are bulk; EF, VA, CS6, CS7 and TOS4 latency-sensitive; and so on.
        for (dscp, in_3, in_4, in_8) in [
            (0, 0, 0, 2),
            (LE, 1, 1, 0),
            (CS1, 1, 1, 1),
            (AF11, 0, 0, 1),
            (CS2, 0, 2, 5),
            (AF21, 0, 2, 4),
            (AF31, 0, 2, 3),
            (AF41, 0, 2, 3),
            (CS4, 0, 3, 6),
            (EF, 2, 3, 6),
            // NQB (RFC 9956), unknown to CAKE: with best effort, whose queues by flow give it what its own queue would.
            (45, 0, 0, 2),
            (CS7, 2, 3, 7),
            (63, 0, 0, 2),
        ] {
            assert_eq!(DiffServ::DiffServ3.tin_of(dscp), in_3, "{dscp}");
            assert_eq!(DiffServ::DiffServ4.tin_of(dscp), in_4, "{dscp}");
            assert_eq!(DiffServ::DiffServ8.tin_of(dscp), in_8, "{dscp}");
            assert_eq!(DiffServ::BestEffort.tin_of(dscp), 0);
        }
        assert_eq!(DiffServ::Precedence.tin_of(EF), 5);
    }

    #[test]
    fn every_code_point_has_a_tin() {
        for &(word, mode) in DiffServ::ALL {
            assert!(mode.tins() == 1 || mode.names().len() == mode.tins());
            for dscp in 0..64 {
                assert!(mode.tin_of(dscp) < mode.tins(), "{word} {dscp}");
            }
        }
    }

    #[test]
    fn shares_are_those_of_the_manual() {
        let parts = |mode: DiffServ| -> alloc::vec::Vec<(u64, u64)> {
            (0..mode.tins())
                .map(|tin| mode.share(tin))
                .map(|s| (s.of, s.out_of))
                .collect()
        };
        assert_eq!(parts(DiffServ::DiffServ3), [(1, 1), (1, 16), (1, 4)]);
        assert_eq!(
            parts(DiffServ::DiffServ4),
            [(1, 1), (1, 16), (1, 2), (1, 4)]
        );
        assert_eq!(parts(DiffServ::DiffServ8)[..3], [(1, 1), (7, 8), (49, 64)]);
        // 256 · 49/64.
        assert_eq!(DiffServ::Precedence.share(2).quantum, 196);
    }
}
