//! Rate control: the mode in which a frame is sent.
//!
//! | module | what is there |
//! | --- | --- |
//! | `ideal` | the fastest mode that the signal carries, as if the sender knew the signal |
//! | `minstrel` | Linux's Minstrel for 802.11b and g, which learns from acknowledgements |
//! | `minstrel_ht` | Linux's Minstrel-HT for 802.11n and ac |
//! | `statistics` | success and throughput of a rate, for both |

mod ideal;
mod minstrel;
mod minstrel_ht;
mod statistics;

use alloc::boxed::Box;

use sojourn_units::Time;

use crate::phy::error::Snr;
use crate::phy::{Mode, Timing};
use crate::random::Stream;

/// How a sender chooses among its modes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateControl {
    /// Always this one.
    Fixed(Mode),
    /// The fastest mode in which at least nine of ten full frames are received at the present signal.
    Ideal,
    /// Minstrel for 802.11b and g, Minstrel-HT for 802.11n and ac.
    Minstrel,
}

/// A mode and its number of tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stage {
    pub mode: Mode,
    pub tries: u8,
}

/// The most stages of a multi-rate retry chain.
pub(crate) const STAGES: usize = 4;

/// A multi-rate retry chain: the modes in which a frame is tried, one stage after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chain {
    stages: [Stage; STAGES],
    len: u8,
    /// True if it probes a rate. Its transmission is a single frame.
    pub is_probe: bool,
}

impl Chain {
    pub(crate) const fn of(mode: Mode, tries: u8) -> Self {
        Self {
            stages: [Stage { mode, tries }; STAGES],
            len: 1,
            is_probe: false,
        }
    }

    /// The chain with another stage, if there is room.
    pub(crate) fn then(mut self, mode: Mode, tries: u8) -> Self {
        if let Some(stage) = self.stages.get_mut(usize::from(self.len)) {
            *stage = Stage { mode, tries };
            self.len += 1;
        }
        self
    }

    /// The mode of the first try.
    pub(crate) const fn first(&self) -> Mode {
        self.stages[0].mode
    }

    /// The number of the stage and its mode after so many failed tries; `None`: no more tries.
    pub(crate) fn after(&self, tries: u8) -> Option<(usize, Mode)> {
        let mut left = tries;
        for (number, stage) in self.stages[..usize::from(self.len)].iter().enumerate() {
            if left < stage.tries {
                return Some((number, stage.mode));
            }
            left -= stage.tries;
        }
        None
    }

    /// The slowest mode, which bounds how long an aggregate may last.
    pub(crate) fn slowest(&self) -> Mode {
        let stages = &self.stages[..usize::from(self.len)];
        if let [only] = stages {
            return only.mode;
        }
        let slowest = stages.iter().min_by_key(|stage| stage.mode.rate());
        slowest.map_or(self.stages[0].mode, |stage| stage.mode)
    }

    /// The tries made in each stage, given the number of all tries.
    pub(crate) fn split(&self, tries: u8) -> impl Iterator<Item = (Mode, u8)> {
        let mut left = tries;
        let stages = self.stages[..usize::from(self.len)].iter();
        stages.map_while(move |stage| {
            let made = left.min(stage.tries);
            left -= made;
            (made > 0).then_some((stage.mode, made))
        })
    }
}

/// The outcome of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// Times it was sent.
    pub tries: u8,
    /// Frames in it.
    pub frames: u16,
    /// Frames acknowledged after the last try.
    pub delivered: u16,
}

/// The rate control of one sender towards one receiver.
pub(crate) enum Controller {
    Fixed(Chain),
    Ideal(ideal::Ideal),
    Minstrel(Box<minstrel::Minstrel>),
    MinstrelHt(Box<minstrel_ht::MinstrelHt>),
}

impl Controller {
    /// For a sender with these modes. `tries` applies to fixed and ideal rates; Minstrel sets its own.
    pub(crate) fn new(
        how: RateControl,
        modes: &[Mode],
        tries: u8,
        timing: Timing,
        random: Stream,
    ) -> Self {
        match how {
            RateControl::Fixed(mode) => Self::Fixed(Chain::of(mode, tries)),
            RateControl::Ideal => Self::Ideal(ideal::Ideal::new(modes, tries)),
            RateControl::Minstrel if modes[0].can_aggregate() => {
                let minstrel = minstrel_ht::MinstrelHt::new(modes, timing, random);
                Self::MinstrelHt(Box::new(minstrel))
            }
            RateControl::Minstrel => {
                let minstrel = minstrel::Minstrel::new(modes, timing, random);
                Self::Minstrel(Box::new(minstrel))
            }
        }
    }

    /// The retry chain of the next transmission.
    pub(crate) fn chain(&mut self, snr: Option<Snr>, now: Time) -> Chain {
        match self {
            Self::Fixed(chain) => *chain,
            Self::Ideal(ideal) => ideal.chain(snr),
            Self::Minstrel(minstrel) => minstrel.chain(now),
            Self::MinstrelHt(minstrel) => minstrel.chain(now),
        }
    }

    /// The mode in use, or the best one that is known.
    pub(crate) fn estimate(&self) -> Mode {
        match self {
            Self::Fixed(chain) => chain.first(),
            Self::Ideal(ideal) => ideal.last(),
            Self::Minstrel(minstrel) => minstrel.best(),
            Self::MinstrelHt(minstrel) => minstrel.best(),
        }
    }

    /// The expected throughput in bits per second, by which the kernel finds slow stations.
    pub(crate) fn expected_bps(&self) -> u64 {
        match self {
            Self::Fixed(chain) => chain.first().rate().as_bps(),
            Self::Ideal(ideal) => ideal.last().rate().as_bps(),
            Self::Minstrel(minstrel) => minstrel.expected_bps(),
            Self::MinstrelHt(minstrel) => minstrel.expected_bps(),
        }
    }

    /// The most bytes of an A-MSDU; none to a station without 802.11n.
    pub(crate) fn most_amsdu_bytes(&self) -> u32 {
        match self {
            Self::Minstrel(_) => 0,
            Self::Fixed(_) | Self::Ideal(_) if !self.estimate().can_aggregate() => 0,
            Self::Fixed(_) | Self::Ideal(_) => u32::MAX,
            Self::MinstrelHt(minstrel) => minstrel.most_amsdu_bytes(),
        }
    }

    /// Learns from the outcome of a transmission.
    pub(crate) fn report(&mut self, chain: &Chain, outcome: Outcome) {
        match self {
            Self::Fixed(_) | Self::Ideal(_) => {}
            Self::Minstrel(minstrel) => minstrel.report(chain, outcome),
            Self::MinstrelHt(minstrel) => minstrel.report(chain, outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::phy::Ofdm;

    #[test]
    fn a_chain_is_tried_stage_by_stage() {
        let [fast, middle, slow] = [Ofdm::R54, Ofdm::R24, Ofdm::R6].map(Mode::Ofdm);
        let chain = Chain::of(fast, 2).then(middle, 1).then(slow, 3);
        let tried: Vec<_> = (0..8)
            .map(|tries| chain.after(tries).map(|stage| stage.1))
            .collect();
        let expected = [fast, fast, middle, slow, slow, slow].map(Some);
        assert_eq!(tried, [&expected[..], &[None, None]].concat());
        assert_eq!(chain.slowest(), slow);
        let split: Vec<_> = chain.split(4).collect();
        assert_eq!(split, [(fast, 2), (middle, 1), (slow, 1)]);
    }
}
