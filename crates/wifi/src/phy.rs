//! The physical layer: which modes there are, how fast each is and how long a frame takes.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`timing`] | slot, SIFS and what follows from them, per standard and band |
//! | [`dsss`] | 802.11b: 1 to 11 Mbit/s |
//! | [`ofdm`] | 802.11g (and a): 6 to 54 Mbit/s |
//! | [`ht`] | 802.11n: MCS 0 to 7 on 1 to 4 streams |
//! | [`vht`] | 802.11ac: MCS 0 to 9 on 1 to 4 streams |
//! | [`error`] | how likely a frame is received at a signal-to-noise ratio |

pub mod dsss;
pub mod error;
pub mod ht;
pub mod ofdm;
pub mod timing;
pub mod vht;

use sojourn_units::{Duration, Rate};

pub use dsss::{Dsss, Preamble};
pub use ht::Ht;
pub use ofdm::Ofdm;
pub use timing::{Band, Standard, Timing};
pub use vht::Vht;

/// The width of the channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Width {
    /// 20 MHz.
    #[default]
    Mhz20,
    /// 40 MHz.
    Mhz40,
    /// 80 MHz.
    Mhz80,
}

impl Width {
    /// Subcarriers that carry data (IEEE 802.11-2020 tables 19-6 and 21-5).
    pub const fn data_subcarriers(self) -> u32 {
        match self {
            Self::Mhz20 => 52,
            Self::Mhz40 => 108,
            Self::Mhz80 => 234,
        }
    }

    /// In MHz.
    pub const fn mhz(self) -> u32 {
        match self {
            Self::Mhz20 => 20,
            Self::Mhz40 => 40,
            Self::Mhz80 => 80,
        }
    }
}

/// The guard interval between symbols.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Guard {
    /// 800 ns: a symbol takes 4 µs.
    #[default]
    Long,
    /// 400 ns: a symbol takes 3.6 µs.
    Short,
}

impl Guard {
    /// The duration of so many symbols. With the short guard interval it is rounded up to a multiple of 4 µs (equations 19-90,
    /// 21-109).
    const fn symbols(self, symbols: u64) -> Duration {
        match self {
            Self::Long => Duration::from_micros(4 * symbols),
            Self::Short => Duration::from_micros(4 * (9 * symbols).div_ceil(10)),
        }
    }

    const fn symbol_nanos(self) -> u64 {
        match self {
            Self::Long => 4_000,
            Self::Short => 3_600,
        }
    }
}

/// The modulation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Modulation {
    /// 1 bit per subcarrier.
    Bpsk,
    /// 2 bits.
    Qpsk,
    /// 4 bits.
    Qam16,
    /// 6 bits.
    Qam64,
    /// 8 bits.
    Qam256,
}

impl Modulation {
    /// Coded bits per subcarrier.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bpsk => 1,
            Self::Qpsk => 2,
            Self::Qam16 => 4,
            Self::Qam64 => 6,
            Self::Qam256 => 8,
        }
    }
}

/// The rate of the convolutional code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// 1/2.
    Half,
    /// 2/3.
    TwoThirds,
    /// 3/4.
    ThreeQuarters,
    /// 5/6.
    FiveSixths,
}

impl Code {
    /// Information bits and coded bits.
    pub const fn fraction(self) -> (u32, u32) {
        match self {
            Self::Half => (1, 2),
            Self::TwoThirds => (2, 3),
            Self::ThreeQuarters => (3, 4),
            Self::FiveSixths => (5, 6),
        }
    }
}

/// Modulation and code of HT and VHT by the number of the MCS on one stream (tables 19-27, 21-30).
const MCS: [(Modulation, Code); 10] = [
    (Modulation::Bpsk, Code::Half),
    (Modulation::Qpsk, Code::Half),
    (Modulation::Qpsk, Code::ThreeQuarters),
    (Modulation::Qam16, Code::Half),
    (Modulation::Qam16, Code::ThreeQuarters),
    (Modulation::Qam64, Code::TwoThirds),
    (Modulation::Qam64, Code::ThreeQuarters),
    (Modulation::Qam64, Code::FiveSixths),
    (Modulation::Qam256, Code::ThreeQuarters),
    (Modulation::Qam256, Code::FiveSixths),
];

/// Coded bits per symbol of an MCS on so many streams.
const fn coded_bits(mcs: u8, streams: u8, width: Width) -> u32 {
    MCS[mcs as usize].0.bits() * width.data_subcarriers() * streams as u32
}

/// What an OFDM symbol of an MCS carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Symbol {
    /// Information bits.
    pub bits: u32,
    /// Those of MCS 0 with the same width and number of streams.
    pub slowest_bits: u32,
    /// The guard interval before it.
    pub guard: Guard,
}

/// Information bits per symbol of an MCS on so many streams.
const fn data_bits(mcs: u8, streams: u8, width: Width) -> u32 {
    let (information, coded) = MCS[mcs as usize].1.fraction();
    coded_bits(mcs, streams, width) * information / coded
}

/// Long training fields for so many streams (tables 19-13, 21-13).
const fn training_fields(streams: u8) -> u64 {
    match streams {
        0 | 1 => 1,
        2 => 2,
        _ => 4,
    }
}

/// The mode of a frame: standard, rate, width, streams and guard interval.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// 802.11b.
    Dsss(Dsss, Preamble),
    /// 802.11g.
    Ofdm(Ofdm),
    /// 802.11n.
    Ht(Ht),
    /// 802.11ac.
    Vht(Vht),
}

impl Mode {
    /// Bits per second.
    pub fn rate(self) -> Rate {
        match self {
            Self::Dsss(dsss, _) => dsss.rate(),
            Self::Ofdm(ofdm) => ofdm.rate(),
            Self::Ht(ht) => ht.rate(),
            Self::Vht(vht) => vht.rate(),
        }
    }

    /// The duration of a PPDU with so many bytes from the MAC, without the signal extension of the 2.4 GHz band.
    pub const fn duration(self, psdu_bytes: u32) -> Duration {
        match self {
            Self::Dsss(dsss, preamble) => dsss.duration(psdu_bytes, preamble),
            Self::Ofdm(ofdm) => ofdm.duration(psdu_bytes),
            Self::Ht(ht) => ht.duration(psdu_bytes),
            Self::Vht(vht) => vht.duration(psdu_bytes),
        }
    }

    /// True if it may carry an A-MPDU.
    pub const fn can_aggregate(self) -> bool {
        matches!(self, Self::Ht(_) | Self::Vht(_))
    }

    /// The symbols of 802.11n and 802.11ac.
    pub(crate) const fn symbol(self) -> Option<Symbol> {
        let (mcs, width, guard) = match self {
            Self::Dsss(..) | Self::Ofdm(_) => return None,
            Self::Ht(ht) => (ht.mcs(), ht.width(), ht.guard()),
            Self::Vht(vht) => (vht.mcs(), vht.width(), vht.guard()),
        };
        Some(Symbol {
            bits: data_bits(mcs, self.streams(), width),
            slowest_bits: data_bits(0, self.streams(), width),
            guard,
        })
    }

    /// Spatial streams.
    pub const fn streams(self) -> u8 {
        match self {
            Self::Dsss(..) | Self::Ofdm(_) => 1,
            Self::Ht(ht) => ht.streams(),
            Self::Vht(vht) => vht.streams(),
        }
    }

    /// Channel width.
    pub const fn width(self) -> Width {
        match self {
            Self::Dsss(..) | Self::Ofdm(_) => Width::Mhz20,
            Self::Ht(ht) => ht.width(),
            Self::Vht(vht) => vht.width(),
        }
    }

    /// The guard interval; long where there is no choice.
    pub const fn guard(self) -> Guard {
        match self {
            Self::Dsss(..) | Self::Ofdm(_) => Guard::Long,
            Self::Ht(ht) => ht.guard(),
            Self::Vht(vht) => vht.guard(),
        }
    }

    /// The mode of the answer to a frame in this mode: the highest basic rate that is not above the frame's rate. An HT or VHT
    /// mode counts as the OFDM rate of its modulation and code (IEEE 802.11-2020 §10.6.6.5.2, table 10-8). The basic rates
    /// are those in common use: 1 and 2 Mbit/s for DSSS; 6, 12 and 24 Mbit/s for OFDM.
    pub const fn response(self) -> Self {
        let (modulation, code) = match self {
            Self::Dsss(dsss, preamble) => {
                // There is no short preamble at 1 Mbit/s.
                return match dsss {
                    Dsss::R1 => Self::Dsss(Dsss::R1, Preamble::Long),
                    _ => Self::Dsss(Dsss::R2, preamble),
                };
            }
            Self::Ofdm(ofdm) => ofdm.constellation(),
            Self::Ht(ht) => ht.constellation(),
            Self::Vht(vht) => vht.constellation(),
        };
        Self::Ofdm(match (modulation, code) {
            (Modulation::Bpsk, _) => Ofdm::R6,
            (Modulation::Qpsk, _) => Ofdm::R12,
            _ => Ofdm::R24,
        })
    }

    /// The lowest basic rate of DSSS or OFDM. EIFS assumes an acknowledgement at this rate.
    pub const fn lowest(self) -> Self {
        match self {
            Self::Dsss(..) => Self::Dsss(Dsss::R1, Preamble::Long),
            _ => Self::Ofdm(Ofdm::R6),
        }
    }
}
