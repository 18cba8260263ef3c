//! 802.11g, and 802.11a at 5 GHz: OFDM at 20 MHz (IEEE 802.11-2020 clauses 17 and 18).

use sojourn_units::{Duration, Rate};

use super::{Code, Modulation};

/// A rate of 802.11g.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ofdm {
    /// 6 Mbit/s.
    R6,
    /// 9 Mbit/s.
    R9,
    /// 12 Mbit/s.
    R12,
    /// 18 Mbit/s.
    R18,
    /// 24 Mbit/s.
    R24,
    /// 36 Mbit/s.
    R36,
    /// 48 Mbit/s.
    R48,
    /// 54 Mbit/s.
    R54,
}

/// Training fields 16 µs, SIGNAL 4 µs (table 17-5).
const PREAMBLE_US: u64 = 20;
/// SERVICE field before the data, and tail bits after them (§17.3.2).
pub(super) const SERVICE_BITS: u64 = 16;
pub(super) const TAIL_BITS: u64 = 6;

impl Ofdm {
    /// All, slowest first.
    pub const ALL: [Self; 8] = [
        Self::R6,
        Self::R9,
        Self::R12,
        Self::R18,
        Self::R24,
        Self::R36,
        Self::R48,
        Self::R54,
    ];

    /// Modulation and code (table 17-4).
    pub const fn constellation(self) -> (Modulation, Code) {
        match self {
            Self::R6 => (Modulation::Bpsk, Code::Half),
            Self::R9 => (Modulation::Bpsk, Code::ThreeQuarters),
            Self::R12 => (Modulation::Qpsk, Code::Half),
            Self::R18 => (Modulation::Qpsk, Code::ThreeQuarters),
            Self::R24 => (Modulation::Qam16, Code::Half),
            Self::R36 => (Modulation::Qam16, Code::ThreeQuarters),
            Self::R48 => (Modulation::Qam64, Code::TwoThirds),
            Self::R54 => (Modulation::Qam64, Code::ThreeQuarters),
        }
    }

    /// Information bits of a symbol of 4 µs on 48 subcarriers: N_DBPS of table 17-4.
    pub const fn bits_per_symbol(self) -> u32 {
        let (modulation, code) = self.constellation();
        let (information, coded) = code.fraction();
        48 * modulation.bits() * information / coded
    }

    /// Bits per second.
    pub const fn rate(self) -> Rate {
        match Rate::from_bps(self.bits_per_symbol() as u64 * 250_000) {
            Some(rate) => rate,
            None => unreachable!(),
        }
    }

    /// The duration of a PPDU, without a signal extension (equation 17-29).
    pub const fn duration(self, psdu_bytes: u32) -> Duration {
        let bits = SERVICE_BITS + 8 * psdu_bytes as u64 + TAIL_BITS;
        Duration::from_micros(PREAMBLE_US + 4 * bits.div_ceil(self.bits_per_symbol() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_control_frames_are_those_of_the_standard() {
        let mbps = [6, 9, 12, 18, 24, 36, 48, 54];
        // An ACK: 16 + 112 + 6 = 134 bits are 6 symbols of 24 bits, 4 of 36, 3 of 48, 2 of 72, 2 of 96, 1 of 144 and more.
        let ack = [44, 36, 32, 28, 28, 24, 24, 24];
        // An RTS of 20 bytes is 182 bits, a compressed BlockAck of 32 bytes 278.
        let rts = [52, 44, 36, 32, 28, 28, 24, 24];
        let block_ack = [68, 52, 44, 36, 32, 28, 28, 28];
        for (number, rate) in Ofdm::ALL.into_iter().enumerate() {
            assert_eq!(rate.rate(), Rate::from_mbps(mbps[number]));
            assert_eq!(rate.duration(14).as_micros(), ack[number]);
            assert_eq!(rate.duration(20).as_micros(), rts[number]);
            assert_eq!(rate.duration(32).as_micros(), block_ack[number]);
        }
    }

    #[test]
    fn a_full_frame_at_54_megabit_takes_248_microseconds() {
        // 1500 + 8 LLC + 24 header + 4 FCS = 1536 bytes: 12288 + 22 bits are 57 symbols of 216 bits. 20 + 228 µs.
        assert_eq!(Ofdm::R54.duration(1536).as_micros(), 248);
        // At 6 Mbit/s 513 symbols: 20 + 2052.
        assert_eq!(Ofdm::R6.duration(1536).as_micros(), 2_072);
    }
}
