//! Slot, SIFS and the intervals that follow from them.

use sojourn_units::Duration;

use super::{Dsss, Mode, Ofdm, Preamble};
use crate::frames;

/// The 802.11 standard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Standard {
    /// 802.11b: DSSS and CCK at 2.4 GHz.
    B,
    /// 802.11g: OFDM at 2.4 GHz.
    G,
    /// 802.11n.
    N,
    /// 802.11ac.
    Ac,
}

impl Standard {
    /// True if stations use EDCA instead of DCF, and Block Ack: 802.11n and later.
    pub const fn has_qos(self) -> bool {
        matches!(self, Self::N | Self::Ac)
    }

    /// The default band. 802.11n exists in both.
    pub const fn usual_band(self) -> Band {
        match self {
            Self::B | Self::G | Self::N => Band::Ghz2,
            Self::Ac => Band::Ghz5,
        }
    }
}

/// The band. SIFS and the signal extension of OFDM differ between the bands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Band {
    /// 2.4 GHz.
    Ghz2,
    /// 5 GHz.
    Ghz5,
}

/// The time constants of a cell, in the standard's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// aSlotTime.
    pub slot: Duration,
    /// aSIFSTime.
    pub sifs: Duration,
    /// Silence that counts as part of an OFDM frame at 2.4 GHz (aSignalExtension, §18.3.2.4).
    pub signal_extension: Duration,
    /// From the start of a frame until the receiver detects it (aRxPHYStartDelay).
    pub rx_start_delay: Duration,
    /// aCWmin.
    pub cw_min: u32,
    /// aCWmax.
    pub cw_max: u32,
    /// The lowest basic rate, at which EIFS assumes an acknowledgement.
    pub lowest: Mode,
}

impl Timing {
    /// The constants of a cell without older stations (IEEE 802.11-2020 tables 16-4, 17-21, 18-5, 19-25, 21-29).
    pub const fn new(standard: Standard, band: Band) -> Self {
        const fn micros(micros: u64) -> Duration {
            Duration::from_micros(micros)
        }
        if matches!(standard, Standard::B) {
            return Self {
                slot: micros(20),
                sifs: micros(10),
                signal_extension: Duration::ZERO,
                rx_start_delay: micros(192),
                cw_min: 31,
                cw_max: 1023,
                lowest: Mode::Dsss(Dsss::R1, Preamble::Long),
            };
        }
        let (sifs, signal_extension) = match band {
            Band::Ghz2 => (micros(10), micros(6)),
            Band::Ghz5 => (micros(16), Duration::ZERO),
        };
        Self {
            slot: micros(9),
            sifs,
            signal_extension,
            rx_start_delay: micros(20),
            cw_min: 15,
            cw_max: 1023,
            lowest: Mode::Ofdm(Ofdm::R6),
        }
    }

    /// The same in a cell with 802.11b stations, with their slot and their aCWmin (§18.4.5, table 18-5).
    pub const fn beside_802_11b(self) -> Self {
        Self {
            slot: Duration::from_micros(20),
            cw_min: 31,
            ..self
        }
    }

    /// AIFS of so many slots; two of them are DIFS (§10.3.2.3.6).
    pub fn aifs(&self, slots: u32) -> Duration {
        self.sifs + self.slot * u64::from(slots)
    }

    /// DIFS.
    pub fn difs(&self) -> Duration {
        self.aifs(2)
    }

    /// How long a frame occupies the medium. For OFDM at 2.4 GHz this includes the signal extension.
    pub fn airtime(&self, mode: Mode, psdu_bytes: u32) -> Duration {
        let duration = mode.duration(psdu_bytes);
        match mode {
            Mode::Dsss(..) => duration,
            _ => duration + self.signal_extension,
        }
    }

    /// What EIFS adds to DIFS or AIFS after a frame that could not be decoded: SIFS and an acknowledgement at the lowest basic
    /// rate (§10.3.2.3.7).
    pub fn eifs_extra(&self) -> Duration {
        self.sifs + self.airtime(self.lowest, frames::ACK)
    }

    /// How long a sender waits, after the end of its frame, for the start of the answer (§10.3.2.11).
    pub fn response_timeout(&self) -> Duration {
        self.sifs + self.slot + self.rx_start_delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(timing: &Timing) -> [u64; 5] {
        [
            timing.sifs,
            timing.slot,
            timing.difs(),
            timing.aifs(3),
            timing.difs() + timing.eifs_extra(),
        ]
        .map(Duration::as_micros)
    }

    #[test]
    fn intervals_follow_from_sifs_and_slot() {
        // EIFS of 802.11b: 10 + (192 + 112) + 50. OFDM: SIFS + 44 (+ 6 signal extension) + DIFS.
        let b = Timing::new(Standard::B, Band::Ghz2);
        assert_eq!(micros(&b), [10, 20, 50, 70, 364]);
        let g = Timing::new(Standard::G, Band::Ghz2);
        assert_eq!(micros(&g), [10, 9, 28, 37, 88]);
        let ac = Timing::new(Standard::Ac, Band::Ghz5);
        assert_eq!(micros(&ac), [16, 9, 34, 43, 94]);
        let mixed = g.beside_802_11b();
        assert_eq!(micros(&mixed), [10, 20, 50, 70, 110]);
        assert_eq!(mixed.cw_min, 31);
    }

    #[test]
    fn only_ofdm_at_2_4_ghz_has_a_signal_extension() {
        let g = Timing::new(Standard::G, Band::Ghz2);
        let slow = Mode::Dsss(Dsss::R1, Preamble::Long);
        assert_eq!(g.airtime(Mode::Ofdm(Ofdm::R24), 14).as_micros(), 34);
        assert_eq!(g.airtime(slow, 14).as_micros(), 304);
        let ac = Timing::new(Standard::Ac, Band::Ghz5);
        assert_eq!(ac.airtime(Mode::Ofdm(Ofdm::R24), 14).as_micros(), 28);
    }
}
