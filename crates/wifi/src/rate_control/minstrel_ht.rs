//! Minstrel-HT for 802.11n and ac (Linux since 5.12). Rates of equal streams, guard interval and width form a group.
//! Throughput is estimated with the mean length of aggregates. There is at most one probe per 20 ms.
//!
//! There are three kinds of probes, in the ratio of three to two to one: the next faster rate of a group than the best; any
//! faster rate; and a slower rate that is not known to be good. Departures: a probe is chosen when it is due, where Linux
//! chooses five ahead; rates within a group are drawn at random, where Linux has a table; and 802.11b and g rates are
//! left out.

use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

use super::statistics::{Rate, best_first, bits};
use super::{Chain, Outcome};
use crate::frames;
use crate::phy::{Guard, Mode, Timing, Width};
use crate::random::Stream;

/// The time between updates (HZ / 10 since January 2021).
const UPDATE: Duration = Duration::from_millis(100);
/// The least time between probes (MINSTREL_SAMPLE_INTERVAL).
const PROBE: Duration = Duration::from_millis(20);
/// Rates above this success probability compete for `safest` by throughput.
const SAFE: f64 = 0.75;
/// Above this success probability, a slower rate is not probed.
const GOOD: f64 = 0.95;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The slowest rate that is faster than the best.
    Step,
    /// Any rate faster than the best, the second and the safest.
    Jump,
    /// A rate that is slower than the fastest of these three, faster than the slowest, and not known to be good.
    Slow,
}

/// The order of the kinds of probes (`minstrel_sample_seq`).
const KINDS: [Kind; 6] = [
    Kind::Step,
    Kind::Jump,
    Kind::Step,
    Kind::Jump,
    Kind::Step,
    Kind::Slow,
];

pub(crate) struct MinstrelHt {
    rates: Vec<Rate>,
    /// The group of each rate, and the number of groups.
    groups: Vec<usize>,
    group_count: usize,
    overhead: Duration,
    timing: Timing,
    random: Stream,
    best: usize,
    second: usize,
    safest: usize,
    updated: Time,
    probed: Time,
    next_kind: usize,
    next_group: usize,
    /// Frames and transmissions since the last update.
    frames: u32,
    transmissions: u32,
    /// The moving average of frames per transmission; 0: none yet (Linux: `avg_ampdu_len`).
    ampdu_len: f64,
}

impl MinstrelHt {
    /// `modes` is not empty.
    pub(crate) fn new(modes: &[Mode], timing: Timing, random: Stream) -> Self {
        let mut modes = modes.to_vec();
        modes.sort_by_key(|mode| mode.rate());
        let mut known: Vec<(u8, Width, Guard)> = Vec::new();
        let groups = modes.iter().map(|mode| {
            let group = (mode.streams(), mode.width(), mode.guard());
            known
                .iter()
                .position(|other| *other == group)
                .unwrap_or_else(|| {
                    known.push(group);
                    known.len() - 1
                })
        });
        let groups = groups.collect();
        let answer = timing.airtime(timing.lowest, frames::ACK);
        let preamble = timing.airtime(modes[0], 0);
        Self {
            rates: modes.into_iter().map(Rate::new).collect(),
            groups,
            group_count: known.len(),
            overhead: timing.sifs + answer + preamble,
            timing,
            random,
            best: 0,
            second: 0,
            safest: 0,
            updated: Time::ZERO,
            probed: Time::ZERO,
            next_kind: 0,
            next_group: 0,
            frames: 0,
            transmissions: 0,
            ampdu_len: 0.0,
        }
    }

    /// The mean number of frames per transmission. Before the first update it is the kernel's guess by the best rate.
    fn ampdu_len(&self) -> f64 {
        if self.ampdu_len > 0.0 {
            return self.ampdu_len;
        }
        match self.rates[self.best].duration.as_micros() {
            401.. => 2.0,
            251..=400 => 4.0,
            151..=250 => 8.0,
            _ => 16.0,
        }
    }

    fn throughput(&self, rate: &Rate) -> f64 {
        rate.throughput(self.overhead, self.ampdu_len())
    }

    pub(crate) fn best(&self) -> Mode {
        self.rates[self.best].mode
    }

    pub(crate) fn expected_bps(&self) -> u64 {
        bits(self.throughput(&self.rates[self.best]))
    }

    /// The most bytes of an A-MSDU (`minstrel_ht_get_max_amsdu_len`): less at rates below one stream's MCS 1, 3 and 7 over 20 MHz, and
    /// none if not even the safest rate works.
    pub(crate) fn most_amsdu_bytes(&self) -> u32 {
        let safest = &self.rates[self.safest];
        match safest.mode.rate().as_bps() {
            _ if safest.probability < 0.5 => 1,
            ..13_000_000 => 500,
            13_000_000..26_000_000 => 1_600,
            26_000_000..65_000_000 => 3_200,
            _ if self.rates[self.best].probability < SAFE => 3_200,
            // The longest frame of an 802.11n aggregate (`IEEE80211_MAX_MPDU_LEN_HT_BA`).
            _ if matches!(safest.mode, Mode::Ht(_)) => 4_095,
            _ => u32::MAX,
        }
    }

    pub(crate) fn chain(&mut self, now: Time) -> Chain {
        if now >= self.updated + UPDATE {
            self.update(now);
        }
        let ampdu_len = self.ampdu_len();
        let of = |index: usize| {
            let rate = &self.rates[index];
            (
                rate.mode,
                rate.tries(self.overhead, ampdu_len, &self.timing),
            )
        };
        let ((best, tries), (second, second_tries)) = (of(self.best), of(self.second));
        let (safest, safest_tries) = of(self.safest);
        if now >= self.probed + PROBE {
            self.probed = now;
            if let Some(probe) = self.next_probe() {
                let mut chain = Chain::of(self.rates[probe].mode, 1).then(best, tries);
                chain.is_probe = true;
                return chain.then(safest, safest_tries);
            }
        }
        Chain::of(best, tries)
            .then(second, second_tries)
            .then(safest, safest_tries)
    }

    fn next_probe(&mut self) -> Option<usize> {
        let kind = KINDS[self.next_kind];
        self.next_kind = (self.next_kind + 1) % KINDS.len();
        let chosen = [self.best, self.second, self.safest].map(|index| self.rates[index].duration);
        let fastest = chosen.into_iter().min()?;
        let slowest = chosen.into_iter().max()?;
        let best = self.rates[self.best].duration;
        for _ in 0..self.group_count {
            self.next_group = (self.next_group + 1) % self.group_count;
            let is_wanted = |index: &usize| {
                let rate = &self.rates[*index];
                self.groups[*index] == self.next_group
                    && match kind {
                        Kind::Step => rate.duration < best,
                        Kind::Jump => rate.duration < fastest,
                        Kind::Slow => {
                            rate.duration > fastest
                                && rate.duration < slowest
                                && rate.probability <= GOOD
                        }
                    }
            };
            let wanted: Vec<usize> = (0..self.rates.len()).filter(is_wanted).collect();
            if let Some(most) = wanted.len().checked_sub(1) {
                // Rates are sorted, so the first of the faster ones is the next step.
                let drawn = if kind == Kind::Step {
                    0
                } else {
                    self.random.up_to(most as u32) as usize
                };
                return Some(wanted[drawn]);
            }
        }
        None
    }

    pub(crate) fn report(&mut self, chain: &Chain, outcome: Outcome) {
        self.frames += u32::from(outcome.frames);
        self.transmissions += 1;
        let mut tried = chain.split(outcome.tries).peekable();
        while let Some((mode, tries)) = tried.next() {
            let is_last = tried.peek().is_none();
            let delivered = if is_last {
                u32::from(outcome.delivered)
            } else {
                0
            };
            if let Some(rate) = self.rates.iter_mut().find(|rate| rate.mode == mode) {
                rate.count(u32::from(tries) * u32::from(outcome.frames), delivered);
            }
        }
    }

    fn update(&mut self, now: Time) {
        self.updated = now;
        if self.transmissions > 0 {
            let length = f64::from(self.frames) / f64::from(self.transmissions);
            // As in the kernel, the average starts at zero and keeps 3/4 of its value.
            self.ampdu_len = 0.75 * self.ampdu_len + 0.25 * length;
            (self.frames, self.transmissions) = (0, 0);
        }
        // A rate that was never tried gets the highest success probability of the faster rates in its group.
        let mut known = alloc::vec![0.0_f64; self.group_count];
        for index in (0..self.rates.len()).rev() {
            let rate = &mut self.rates[index];
            rate.update_filtered();
            let known = &mut known[self.groups[index]];
            if rate.tried > 0 {
                *known = known.max(rate.probability);
            } else {
                rate.probability = known.max(rate.probability);
            }
        }
        let order = best_first(&self.rates, |rate| self.throughput(rate));
        let safe = |rate: &Rate| {
            if rate.probability > SAFE {
                1.0 + self.throughput(rate)
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
    use crate::cell::modes;
    use crate::phy::{Band, Standard};
    use crate::random::{Purpose, stream};

    fn minstrel() -> MinstrelHt {
        let modes = modes(Standard::N, Width::Mhz20, 2, Guard::Long);
        let timing = Timing::new(Standard::N, Band::Ghz2);
        MinstrelHt::new(&modes, timing, stream(1, Purpose::Probing, 0))
    }

    /// Sends an aggregate of 16 per 2 ms over a channel that carries rates up to `most_kbps`. Returns the number of probes.
    fn drive(minstrel: &mut MinstrelHt, most_kbps: u64, from_ms: u64, count: u64) -> u64 {
        let mut probes = 0;
        for number in 0..count {
            let chain = minstrel.chain(Time::from_millis(from_ms + 2 * number));
            probes += u64::from(chain.is_probe);
            let carried = |mode: Mode| mode.rate().as_bps() <= most_kbps * 1000;
            let tries =
                (0..).find(|&tries| chain.after(tries).is_none_or(|(_, mode)| carried(mode)));
            let tries: u8 = tries.expect("ends");
            let answered = chain.after(tries).is_some();
            let frames = if chain.is_probe { 1 } else { 16 };
            let outcome = Outcome {
                tries: tries + u8::from(answered),
                frames,
                delivered: if answered { frames } else { 0 },
            };
            minstrel.report(&chain, outcome);
        }
        probes
    }

    #[test]
    fn it_finds_the_best_rate_of_all_groups_and_leaves_it_when_it_fails() {
        let mut minstrel = minstrel();
        drive(&mut minstrel, 130_000, 0, 3_000);
        assert_eq!(minstrel.best().rate().as_bps(), 130_000_000);
        assert_eq!(minstrel.best().streams(), 2);
        drive(&mut minstrel, 60_000, 6_000, 3_000);
        // 58.5 Mbit/s on one stream is the fastest rate that the channel still carries.
        assert_eq!(minstrel.best().rate().as_bps(), 58_500_000);
    }

    #[test]
    fn packets_are_merged_less_at_slow_rates() {
        for (carries_kbps, most) in [
            (130_000, 4_095),
            (60_000, 3_200),
            (26_000, 3_200),
            (20_000, 1_600),
            (7_000, 500),
            (0, 1),
        ] {
            let mut minstrel = minstrel();
            assert_eq!(minstrel.most_amsdu_bytes(), 1, "nothing is known");
            drive(&mut minstrel, carries_kbps, 0, 3_000);
            assert_eq!(minstrel.most_amsdu_bytes(), most, "{carries_kbps}");
        }
    }

    #[test]
    fn there_is_at_most_a_probe_per_20_ms() {
        // 10 s are 500 times 20 ms. If the best rate is in the middle, nearly every kind of probe finds a rate.
        let probes = drive(&mut minstrel(), 39_000, 0, 5_000);
        assert!((350..=500).contains(&probes), "{probes}");
    }
}
