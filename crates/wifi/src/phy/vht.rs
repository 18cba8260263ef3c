//! 802.11ac: very high throughput (IEEE 802.11-2020 clause 21).

use sojourn_units::{Duration, Rate};

use super::ofdm::{SERVICE_BITS, TAIL_BITS};
use super::{Code, Guard, MCS, Modulation, Width, coded_bits, data_bits, training_fields};

/// An MCS on 1 to 4 streams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Vht {
    mcs: u8,
    streams: u8,
    width: Width,
    guard: Guard,
}

impl Vht {
    /// MCS 0 to 9 on 1 to 4 streams; `None` if out of range, or if the standard leaves the combination out (tables 21-30 to
    /// 21-53) because an encoder would not get a whole number of bits.
    pub fn new(mcs: u8, streams: u8, width: Width, guard: Guard) -> Option<Self> {
        if mcs > 9 || !(1..=4).contains(&streams) {
            return None;
        }
        let vht = Self {
            mcs,
            streams,
            width,
            guard,
        };
        vht.is_in_tables().then_some(vht)
    }

    /// Each encoder gets a whole number of coded and of information bits per symbol (§21.5).
    const fn is_in_tables(self) -> bool {
        let (information, coded) = self.constellation().1.fraction();
        let bits = coded_bits(self.mcs, self.streams, self.width);
        let encoders = self.encoders() as u32;
        bits % (coded * encoders) == 0 && (bits * information / coded) % encoders == 0
    }

    /// MCS 0 to 9.
    pub const fn mcs(self) -> u8 {
        self.mcs
    }

    /// Spatial streams.
    pub const fn streams(self) -> u8 {
        self.streams
    }

    /// Channel width.
    pub const fn width(self) -> Width {
        self.width
    }

    /// Guard interval.
    pub const fn guard(self) -> Guard {
        self.guard
    }

    /// Modulation and code.
    pub const fn constellation(self) -> (Modulation, Code) {
        MCS[self.mcs as usize]
    }

    /// Bits per second.
    pub const fn rate(self) -> Rate {
        match Rate::from_bps(self.bits_per_symbol() * 1_000_000_000 / self.guard.symbol_nanos()) {
            Some(rate) => rate,
            None => unreachable!(),
        }
    }

    const fn bits_per_symbol(self) -> u64 {
        data_bits(self.mcs, self.streams, self.width) as u64
    }

    /// Encoders in parallel: one per 2160 bits per symbol, which are 600 Mbit/s with the short guard interval.
    const fn encoders(self) -> u64 {
        self.bits_per_symbol().div_ceil(2160)
    }

    /// The duration of a PPDU (equation 21-109): legacy preamble 20, VHT-SIG-A 8, VHT-STF 4, 4 for each VHT-LTF and
    /// VHT-SIG-B 4 µs, then the data.
    pub const fn duration(self, psdu_bytes: u32) -> Duration {
        let preamble = 36 + 4 * training_fields(self.streams);
        let bits = SERVICE_BITS + 8 * psdu_bytes as u64 + TAIL_BITS * self.encoders();
        let data = self.guard.symbols(bits.div_ceil(self.bits_per_symbol()));
        Duration::from_micros(preamble + data.as_micros())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const WIDTHS: [Width; 3] = [Width::Mhz20, Width::Mhz40, Width::Mhz80];

    #[test]
    fn rates_are_those_of_the_tables() {
        // Tables 21-30, 21-38 and 21-46, one stream, long guard interval, in kbit/s; MCS 9 at 20 MHz does not exist.
        let tables: [&[u64]; 3] = [
            &[6500, 13000, 19500, 26000, 39000, 52000, 58500, 65000, 78000],
            &[
                13500, 27000, 40500, 54000, 81000, 108000, 121500, 135000, 162000, 180000,
            ],
            &[
                29250, 58500, 87750, 117000, 175500, 234000, 263250, 292500, 351000, 390000,
            ],
        ];
        for (width, table) in WIDTHS.into_iter().zip(tables) {
            let rates: Vec<u64> = (0..10)
                .filter_map(|mcs| Vht::new(mcs, 1, width, Guard::Long))
                .map(|vht| vht.rate().as_bps() / 1000)
                .collect();
            assert_eq!(rates, table);
        }
    }

    #[test]
    fn the_combinations_that_the_standard_leaves_out_are_missing() {
        let mut missing = Vec::new();
        for width in WIDTHS {
            for streams in 1..=4 {
                for mcs in 0..10 {
                    if Vht::new(mcs, streams, width, Guard::Long).is_none() {
                        missing.push((width.mhz(), streams, mcs));
                    }
                }
            }
        }
        assert_eq!(missing, [(20, 1, 9), (20, 2, 9), (20, 4, 9), (80, 3, 6)]);
    }

    #[test]
    fn a_frame_takes_preamble_and_whole_symbols() {
        // MCS 9 on two streams at 80 MHz: 234 · 8 · 5/6 · 2 = 3120 bits per symbol and two encoders. 10000 bytes:
        // (80000 + 16 + 12) / 3120 = 25.65, so 26 symbols; short guard interval: 93.6 µs, to 96. Preamble 36 + 8.
        let long = Vht::new(9, 2, Width::Mhz80, Guard::Long).expect("exists");
        assert_eq!(long.duration(10_000).as_micros(), 44 + 104);
        let short = Vht::new(9, 2, Width::Mhz80, Guard::Short).expect("exists");
        assert_eq!(short.duration(10_000).as_micros(), 44 + 96);
    }
}
