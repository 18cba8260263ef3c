//! The fastest mode that the present signal carries, as if the receiver reported the signal at no cost.

use alloc::vec::Vec;

use super::Chain;
use crate::phy::Mode;
use crate::phy::error::{Snr, success};

/// The frame for which modes are compared.
const FRAME_BYTES: u32 = 1536;
/// The share of these frames that must be received.
const SUCCESS: f64 = 0.9;

pub(crate) struct Ideal {
    /// Modes and the signal in dB that each needs, fastest first.
    modes: Vec<(Mode, f64)>,
    last: Mode,
    tries: u8,
}

impl Ideal {
    /// `modes` is not empty.
    pub(crate) fn new(modes: &[Mode], tries: u8) -> Self {
        let mut modes: Vec<(Mode, f64)> =
            modes.iter().map(|&mode| (mode, needed_db(mode))).collect();
        modes.sort_by_key(|(mode, _)| core::cmp::Reverse(mode.rate()));
        let last = modes[0].0;
        Self { modes, last, tries }
    }

    pub(crate) const fn last(&self) -> Mode {
        self.last
    }

    pub(crate) fn chain(&mut self, snr: Option<Snr>) -> Chain {
        let carried = |db: f64| self.modes.iter().find(|(_, needed)| *needed <= db);
        // If the signal carries no mode, the mode that needs the least signal is chosen.
        let least = || {
            self.modes
                .iter()
                .min_by(|one, other| one.1.total_cmp(&other.1))
        };
        let chosen = match snr {
            Some(snr) => carried(snr.db()).or_else(least),
            None => self.modes.first(),
        };
        self.last = chosen.map_or(self.last, |(mode, _)| *mode);
        Chain::of(self.last, self.tries)
    }
}

/// The least signal at which enough frames are received, in dB.
fn needed_db(mode: Mode) -> f64 {
    let (mut low, mut high) = (-20.0, 80.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if success(mode, Snr::from_db(middle), FRAME_BYTES) < SUCCESS {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::Ofdm;

    #[test]
    fn it_takes_the_fastest_that_the_signal_carries() {
        let mut ideal = Ideal::new(&Ofdm::ALL.map(Mode::Ofdm), 7);
        let mut at = |db: f64| ideal.chain(Some(Snr::from_db(db))).first();
        assert_eq!(at(40.0), Mode::Ofdm(Ofdm::R54));
        assert_eq!(at(-10.0), Mode::Ofdm(Ofdm::R6));
        for db in [5.0, 10.0, 15.0, 20.0, 25.0] {
            let chosen = at(db);
            assert!(
                success(chosen, Snr::from_db(db), FRAME_BYTES) >= SUCCESS || chosen == at(-10.0)
            );
            let faster = Ofdm::ALL
                .into_iter()
                .map(Mode::Ofdm)
                .filter(|mode| mode.rate() > chosen.rate());
            for mode in faster {
                assert!(
                    success(mode, Snr::from_db(db), FRAME_BYTES) < SUCCESS,
                    "{db} dB {mode:?}"
                );
            }
        }
    }
}
