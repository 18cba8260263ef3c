//! 802.11b: direct sequence spread spectrum, with and without CCK (IEEE 802.11-2020 clauses 15 and 16).

use sojourn_units::{Duration, Rate};

/// A rate of 802.11b.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Dsss {
    /// 1 Mbit/s, DBPSK.
    R1,
    /// 2 Mbit/s, DQPSK.
    R2,
    /// 5.5 Mbit/s, CCK.
    R5_5,
    /// 11 Mbit/s, CCK.
    R11,
}

/// Preamble and header before the data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Preamble {
    /// 144 µs and 48 µs, at 1 Mbit/s (§16.2.2.2).
    #[default]
    Long,
    /// 72 µs at 1 Mbit/s and 24 µs at 2 Mbit/s; not with 1 Mbit/s data (§16.2.2.3).
    Short,
}

impl Preamble {
    /// The duration of preamble and header.
    pub const fn duration(self) -> Duration {
        match self {
            Self::Long => Duration::from_micros(192),
            Self::Short => Duration::from_micros(96),
        }
    }
}

impl Dsss {
    /// All, slowest first.
    pub const ALL: [Self; 4] = [Self::R1, Self::R2, Self::R5_5, Self::R11];

    /// Bits per second.
    pub const fn rate(self) -> Rate {
        let bps = match self {
            Self::R1 => 1_000_000,
            Self::R2 => 2_000_000,
            Self::R5_5 => 5_500_000,
            Self::R11 => 11_000_000,
        };
        match Rate::from_bps(bps) {
            Some(rate) => rate,
            None => unreachable!(),
        }
    }

    /// How long a PPDU lasts. The LENGTH field counts whole microseconds, rounded up (§16.2.3.5).
    pub const fn duration(self, psdu_bytes: u32, preamble: Preamble) -> Duration {
        let preamble = match self {
            Self::R1 => Preamble::Long,
            _ => preamble,
        };
        let micros = (psdu_bytes as u64 * 8_000_000).div_ceil(self.rate().as_bps());
        Duration::from_micros(preamble.duration().as_micros() + micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_agree_with_the_arithmetic() {
        // 1536 bytes are 12288 bits: 12288 µs at 1 Mbit/s; at 5.5 Mbit/s 2234.2, at 11 Mbit/s 1117.1.
        for (rate, micros) in [
            (Dsss::R1, 12_288),
            (Dsss::R2, 6_144),
            (Dsss::R5_5, 2_235),
            (Dsss::R11, 1_118),
        ] {
            assert_eq!(
                rate.duration(1536, Preamble::Long),
                Duration::from_micros(192 + micros)
            );
        }
        assert_eq!(
            Dsss::R11.duration(1536, Preamble::Short),
            Duration::from_micros(96 + 1_118)
        );
    }

    #[test]
    fn there_is_no_short_preamble_at_1_megabit() {
        // An ACK of 14 bytes at 1 Mbit/s: 192 + 112 µs; at 2 Mbit/s 192 + 56 or 96 + 56.
        let ack = |rate: Dsss, preamble| rate.duration(14, preamble).as_micros();
        assert_eq!(ack(Dsss::R1, Preamble::Long), 304);
        assert_eq!(ack(Dsss::R1, Preamble::Short), 304);
        assert_eq!(ack(Dsss::R2, Preamble::Long), 248);
        assert_eq!(ack(Dsss::R2, Preamble::Short), 152);
    }
}
