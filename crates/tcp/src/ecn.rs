//! Explicit congestion notification: how the endpoints negotiate it, and how the receiver reports marks. There are
//! three ways: RFC 3168, DCTCP's exact echo (RFC 8257 §3.2) and AccECN (RFC 9768), whose option has a module.

mod arrival;
mod option;

use crate::segment::Flags;

pub use arrival::{Arrival, EcnBytes};
pub(crate) use arrival::{OPTION_BYTES, option_bytes};
pub(crate) use option::{Counts, Reported, Told};

/// How a receiver reports marks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Feedback {
    /// Not at all: no ECN.
    #[default]
    None,
    /// ECE from a mark until CWR: once per window (RFC 3168 §6.1).
    Classic,
    /// ECE for exactly the segments that were marked (RFC 8257 §3.2); negotiated as [`Feedback::Classic`].
    Exact,
    /// A counter of marked packets in the ACE field (RFC 9768 §3.2.2).
    Accurate,
}

impl Feedback {
    /// The flags of a SYN that requests this feedback (RFC 3168 §6.1.1, RFC 9768 §3.1.1).
    pub const fn syn_flags(self) -> Flags {
        match self {
            Self::None => Flags::NONE,
            Self::Classic | Self::Exact => Flags::ECE.with(Flags::CWR),
            Self::Accurate => Flags::NONE.with_ace(0b111),
        }
    }

    /// The feedback to which a listener that wants this one agrees, given the flags of the SYN.
    pub const fn accept(self, syn: Flags) -> Self {
        match (self, syn.ace()) {
            (Self::None, _) => Self::None,
            (Self::Accurate, 0b111) => Self::Accurate,
            (Self::Accurate, 0b011) => Self::Classic,
            (_, 0b011 | 0b111) => self,
            _ => Self::None,
        }
    }

    /// The flags of the SYN-ACK that agrees to this feedback. With AccECN they report how the SYN arrived.
    pub const fn answer_flags(self, syn: Arrival) -> Flags {
        match self {
            Self::None => Flags::NONE,
            Self::Classic | Self::Exact => Flags::ECE,
            Self::Accurate => Flags::NONE.with_ace(setup_report(syn)),
        }
    }

    /// The negotiated feedback of an endpoint that requested this one, given the flags of the SYN-ACK (RFC 9768 §3.1.2,
    /// table 2). A peer without AccECN answers with RFC 3168's flags; a peer that reflects all flags has no ECN.
    pub const fn conclude(self, answer: Flags) -> Self {
        match (self, answer.ace()) {
            (Self::Accurate, 0b001 | 0b101) => Self::Classic,
            (Self::Accurate, 0b010 | 0b011 | 0b100 | 0b110) => Self::Accurate,
            (Self::Classic | Self::Exact, 0b001 | 0b101) => self,
            _ => Self::None,
        }
    }
}

/// The ACE field of the answer to a SYN or a SYN-ACK, which reports how that arrived (RFC 9768 §3.1.1, table 2, and
/// §3.2.2.1, table 3).
pub const fn setup_report(arrived: Arrival) -> u32 {
    match arrived {
        Arrival::NotEct => 0b010,
        Arrival::Ect1 => 0b011,
        Arrival::Ect0 => 0b100,
        Arrival::Ce => SETUP_MARKED as u32,
    }
}

/// The ACE field of the answer to a SYN or a SYN-ACK that arrived marked.
pub const SETUP_MARKED: u8 = 0b110;

/// Initial value of both counters of marked packets (RFC 9768 §3.2.1).
pub const FIRST_COUNT: u32 = 5;

/// The usual number of segments that an acknowledgement delivers: a moving average with weight 1/64, in 64ths (Linux's
/// pkts_acked_ewma).
#[derive(Clone, Copy, Default, Debug)]
pub struct AckSize(u32);

impl AckSize {
    /// Counts an acknowledgement that delivered this many segments.
    pub fn note(&mut self, delivered: u32) {
        self.0 = match self.0 {
            0 => delivered << 6,
            average => ((average << 6) - average + (delivered << 6)) >> 6,
        }
        .min(u32::from(u16::MAX));
    }

    /// True if acknowledgements usually cover more than four segments, because the receiver or the path thins them out.
    const fn is_large(self) -> bool {
        self.0 > 4 << 6
    }
}

/// The number of newly marked packets. `ace` is the field, `counted` the number so far, `delivered` the segments that
/// the acknowledgement delivers, `usual` the usual number of these, `bytes` what the option tells. If the field may have
/// wrapped and the bytes do not decide, the largest possible number is assumed (RFC 9768 §3.2.2.5.2, appendix A.2), or
/// as in Linux the smallest if large acknowledgements are usual.
pub(crate) const fn newly_marked(
    ace: u8,
    counted: u32,
    delivered: u32,
    usual: AckSize,
    bytes: Option<Reported>,
) -> u32 {
    let least = (ace as u32).wrapping_sub(counted) & 7;
    if delivered <= 7 {
        return least;
    }
    let most = delivered - ((delivered - least) & 7);
    match bytes {
        Some(bytes) => bytes.choose(least, most, delivered),
        None if usual.is_large() => least,
        None => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9768 §3.1: AccECN is used only if both endpoints have it.
    #[test]
    fn the_ends_agree_on_a_feedback_that_both_have() {
        use Feedback::{Accurate, Classic, Exact, None};
        for (client, server, agreed) in [
            (Accurate, Accurate, Accurate),
            (Accurate, Classic, Classic),
            (Classic, Accurate, Classic),
            (Exact, Exact, Exact),
            (Accurate, None, None),
            (None, Accurate, None),
        ] {
            let accepted = server.accept(client.syn_flags());
            assert_eq!(accepted, agreed, "{client:?} to {server:?}");
            for arrived in [Arrival::NotEct, Arrival::Ect0, Arrival::Ect1, Arrival::Ce] {
                assert_eq!(client.conclude(accepted.answer_flags(arrived)), agreed);
            }
        }
    }

    #[test]
    fn a_peer_that_reflects_all_flags_has_no_ecn() {
        for wanted in [Feedback::Classic, Feedback::Accurate] {
            assert_eq!(wanted.conclude(wanted.syn_flags()), Feedback::None);
        }
    }

    /// 13 were counted, which is 5 modulo 8, so ACE = 7 means two more. If 20 were delivered, it may also mean 18: 2 +
    /// 2·8.
    #[test]
    fn if_the_counter_may_have_wrapped_the_largest_number_is_assumed() {
        let small = AckSize::default();
        assert_eq!(newly_marked(7, 13, 2, small, None), 2);
        assert_eq!(newly_marked(5, 13, 2, small, None), 0);
        assert_eq!(newly_marked(7, 13, 20, small, None), 18);
    }

    /// From 4 on average, an acknowledgement of 65 adds (65 - 4) / 64: 4 · 64 + 61 = 317, which is 4.95.
    #[test]
    fn if_large_acknowledgements_are_usual_the_smallest_number_is_assumed() {
        let mut size = AckSize::default();
        size.note(4);
        assert_eq!(newly_marked(7, 13, 20, size, None), 18);
        size.note(65);
        assert_eq!(size.0, 317);
        assert_eq!(newly_marked(7, 13, 20, size, None), 2);
    }
}
