//! Minstrel for 802.11b and g (Linux `rc80211_minstrel`, until 5.10). It estimates a success probability per rate from
//! acknowledgements, and every tenth frame probes another rate.
//!
//! Departure: the rate to probe is drawn uniformly, where Linux has a random table of ten columns. A probe of a rate slower
//! than the best always comes second, after the best rate has failed.

use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

use super::statistics::{Rate, best_first, bits};
use super::{Chain, Outcome};
use crate::frames;
use crate::phy::{Mode, Timing};
use crate::random::Stream;

/// The time between updates.
const UPDATE: Duration = Duration::from_millis(100);
/// The frames of a hundred that probe another rate (`lookaround_rate_mrr`).
const LOOKAROUND: u64 = 10;
/// Rates with at least this success probability compete for `safest` by throughput.
const SAFE: f64 = 0.95;

pub(crate) struct Minstrel {
    rates: Vec<Rate>,
    timing: Timing,
    random: Stream,
    /// Indices of the two best rates by throughput, and of the most reliable rate (Linux: `max_prob_rate`).
    best: usize,
    second: usize,
    safest: usize,
    updated: Time,
    frames: u64,
    probes: u64,
}

impl Minstrel {
    /// `modes` is not empty.
    pub(crate) fn new(modes: &[Mode], timing: Timing, random: Stream) -> Self {
        let mut rates: Vec<Rate> = modes.iter().map(|&mode| Rate::new(mode)).collect();
        rates.sort_by_key(|rate| rate.mode.rate());
        Self {
            rates,
            timing,
            random,
            best: 0,
            second: 0,
            safest: 0,
            updated: Time::ZERO,
            frames: 0,
            probes: 0,
        }
    }

    /// The overhead of one frame: DIFS, the preamble, SIFS and the acknowledgement.
    fn overhead(&self, mode: Mode) -> Duration {
        let answer = self.timing.airtime(mode.response(), frames::ACK);
        self.timing.difs() + self.timing.airtime(mode, 0) + self.timing.sifs + answer
    }

    fn tries(&self, index: usize) -> u8 {
        let rate = &self.rates[index];
        rate.tries(self.overhead(rate.mode), 1.0, &self.timing)
    }

    pub(crate) fn best(&self) -> Mode {
        self.rates[self.best].mode
    }

    pub(crate) fn expected_bps(&self) -> u64 {
        let rate = &self.rates[self.best];
        bits(rate.throughput(self.overhead(rate.mode), 1.0))
    }

    pub(crate) fn chain(&mut self, now: Time) -> Chain {
        if now >= self.updated + UPDATE {
            self.update(now);
        }
        self.frames += 1;
        let mode = |index: usize| self.rates[index].mode;
        let of = |index: usize| (mode(index), self.tries(index));
        let ((best, tries), (second, second_tries)) = (of(self.best), of(self.second));
        let (safest, safest_tries) = of(self.safest);
        let usual = Chain::of(best, tries);
        let due = self.rates.len() > 1 && self.frames * LOOKAROUND / 100 > self.probes;
        let chain = if due {
            self.probes += 1;
            let other = self.random.up_to(self.rates.len() as u32 - 2) as usize;
            let probe = &self.rates[if other < self.best { other } else { other + 1 }];
            if probe.duration < self.rates[self.best].duration {
                Chain::of(probe.mode, 1).then(best, tries)
            } else {
                // A slower rate is tried only if the best fails.
                usual.then(probe.mode, 1)
            }
        } else {
            usual.then(second, second_tries)
        };
        chain
            .then(safest, safest_tries)
            .then(mode(0), self.tries(0))
    }

    pub(crate) fn report(&mut self, chain: &Chain, outcome: Outcome) {
        let mut tried = chain.split(outcome.tries).peekable();
        while let Some((mode, tries)) = tried.next() {
            let is_last = tried.peek().is_none();
            let delivered = if is_last {
                u32::from(outcome.delivered.min(1))
            } else {
                0
            };
            if let Some(rate) = self.rates.iter_mut().find(|rate| rate.mode == mode) {
                rate.count(u32::from(tries), delivered);
            }
        }
    }

    fn update(&mut self, now: Time) {
        self.updated = now;
        for rate in &mut self.rates {
            rate.update_ewma();
        }
        let throughput = |rate: &Rate| rate.throughput(self.overhead(rate.mode), 1.0);
        let order = best_first(&self.rates, throughput);
        let safe = |rate: &Rate| {
            if rate.probability >= SAFE {
                1.0 + throughput(rate)
            } else {
                rate.probability
            }
        };
        let safest = best_first(&self.rates, safe)[0];
        let second = *order.get(1).unwrap_or(&order[0]);
        (self.best, self.second, self.safest) = (order[0], second, safest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{Band, Ofdm, Standard};
    use crate::random::{Purpose, stream};

    /// Sends a frame per ms over a channel that carries rates up to `most`. Returns how many were first tried at each rate.
    fn drive(minstrel: &mut Minstrel, most: Ofdm, from_ms: u64, frames: u64) -> [u64; 8] {
        let mut first = [0; 8];
        for number in 0..frames {
            let chain = minstrel.chain(Time::from_millis(from_ms + number));
            let index = Ofdm::ALL
                .iter()
                .position(|&rate| Mode::Ofdm(rate) == chain.first());
            first[index.expect("a rate")] += 1;
            let carried = |mode: Mode| mode.rate() <= most.rate();
            let tries =
                (0..).find(|&tries| chain.after(tries).is_none_or(|(_, mode)| carried(mode)));
            let tries: u8 = tries.expect("ends");
            let delivered = u16::from(chain.after(tries).is_some());
            let outcome = Outcome {
                tries: tries + delivered as u8,
                frames: 1,
                delivered,
            };
            minstrel.report(&chain, outcome);
        }
        first
    }

    #[test]
    fn it_finds_the_fastest_working_rate_and_follows_it_down() {
        let timing = Timing::new(Standard::G, Band::Ghz2);
        let modes = Ofdm::ALL.map(Mode::Ofdm);
        let mut minstrel = Minstrel::new(&modes, timing, stream(1, Purpose::Probing, 0));
        drive(&mut minstrel, Ofdm::R36, 0, 2_000);
        assert_eq!(minstrel.best(), Mode::Ofdm(Ofdm::R36));
        let first = drive(&mut minstrel, Ofdm::R36, 2_000, 10_000);
        // A tenth of the frames are probes. Two of the seven other rates are faster; slower ones come second in their chains.
        let faster: u64 = first[6..].iter().sum();
        assert!(
            first[5] > 9_000 && (200..=400).contains(&faster),
            "{first:?}"
        );
        drive(&mut minstrel, Ofdm::R12, 12_000, 2_000);
        assert_eq!(minstrel.best(), Mode::Ofdm(Ofdm::R12));
    }
}
