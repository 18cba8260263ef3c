//! 802.11n: high throughput, mixed format (IEEE 802.11-2020 clause 19).

use sojourn_units::{Duration, Rate};

use super::ofdm::{SERVICE_BITS, TAIL_BITS};
use super::{Code, Guard, MCS, Modulation, Width, data_bits, training_fields};

/// An MCS with equal modulation on 1 to 4 streams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ht {
    mcs: u8,
    streams: u8,
    width: Width,
    guard: Guard,
}

impl Ht {
    /// MCS 0 to 7 on 1 to 4 streams, at 20 or 40 MHz; `None` if out of range. The standard's number is
    /// `mcs + 8 * (streams - 1)`.
    pub fn new(mcs: u8, streams: u8, width: Width, guard: Guard) -> Option<Self> {
        let exists = mcs <= 7 && (1..=4).contains(&streams) && width != Width::Mhz80;
        exists.then_some(Self {
            mcs,
            streams,
            width,
            guard,
        })
    }

    /// MCS 0 to 7, as on one stream.
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
        let bits = self.bits_per_symbol() * 1_000_000_000;
        match Rate::from_bps(bits / self.guard.symbol_nanos()) {
            Some(rate) => rate,
            None => unreachable!(),
        }
    }

    const fn bits_per_symbol(self) -> u64 {
        data_bits(self.mcs, self.streams, self.width) as u64
    }

    /// Encoders in parallel: two if the rate with this guard interval is above 300 Mbit/s (§19.3.11.4).
    const fn encoders(self) -> u64 {
        if self.rate().as_bps() > 300_000_000 {
            2
        } else {
            1
        }
    }

    /// The duration of a PPDU in mixed format, without a signal extension (equation 19-90): L-STF 8, L-LTF 8, L-SIG 4,
    /// HT-SIG 8, HT-STF 4 and 4 µs for each HT-LTF, then the data.
    pub const fn duration(self, psdu_bytes: u32) -> Duration {
        let preamble = 32 + 4 * training_fields(self.streams);
        let bits = SERVICE_BITS + 8 * psdu_bytes as u64 + TAIL_BITS * self.encoders();
        let data = self.guard.symbols(bits.div_ceil(self.bits_per_symbol()));
        Duration::from_micros(preamble + data.as_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ht(mcs: u8, streams: u8, width: Width, guard: Guard) -> Ht {
        Ht::new(mcs, streams, width, guard).expect("exists")
    }

    #[test]
    fn rates_are_those_of_the_tables() {
        // Tables 19-27 to 19-34, in kbit/s.
        let one_stream = [6500, 13000, 19500, 26000, 39000, 52000, 58500, 65000];
        let wide = [13500, 27000, 40500, 54000, 81000, 108000, 121500, 135000];
        for mcs in 0..8 {
            let kbps = |width| ht(mcs, 1, width, Guard::Long).rate().as_bps() / 1000;
            assert_eq!(kbps(Width::Mhz20), one_stream[usize::from(mcs)]);
            assert_eq!(kbps(Width::Mhz40), wide[usize::from(mcs)]);
        }
        let rate = |streams, width, guard| ht(7, streams, width, guard).rate().as_bps();
        assert_eq!(rate(2, Width::Mhz20, Guard::Short), 144_444_444);
        assert_eq!(rate(4, Width::Mhz40, Guard::Short), 600_000_000);
    }

    #[test]
    fn a_frame_takes_preamble_and_whole_symbols() {
        // 1538 bytes: 12304 + 22 bits at 260 per symbol are 47.4, so 48 symbols of 4 µs after 36 µs.
        let long = ht(7, 1, Width::Mhz20, Guard::Long);
        assert_eq!(long.duration(1538).as_micros(), 36 + 192);
        // 48 symbols of 3.6 µs are 172.8 µs, to the next multiple of 4: 176.
        let short = ht(7, 1, Width::Mhz20, Guard::Short);
        assert_eq!(short.duration(1538).as_micros(), 36 + 176);
        // Two streams at 40 MHz: 1080 bits per symbol, 12 symbols, two training fields.
        let fast = ht(7, 2, Width::Mhz40, Guard::Long);
        assert_eq!(fast.duration(1538).as_micros(), 40 + 48);
    }

    #[test]
    fn a_second_encoder_adds_a_second_tail() {
        // Four streams at 40 MHz: 540 Mbit/s, 2160 bits per symbol. 267 bytes are 2136 bits: with 16 + 6 they would fit in one
        // symbol (2158), with 16 + 12 they need two.
        let fastest = ht(7, 4, Width::Mhz40, Guard::Long);
        assert_eq!(fastest.duration(267).as_micros(), 48 + 8);
    }

    #[test]
    fn only_combinations_that_exist_can_be_made() {
        assert!(Ht::new(8, 1, Width::Mhz20, Guard::Long).is_none());
        assert!(Ht::new(0, 5, Width::Mhz20, Guard::Long).is_none());
        assert!(Ht::new(0, 1, Width::Mhz80, Guard::Long).is_none());
    }
}
