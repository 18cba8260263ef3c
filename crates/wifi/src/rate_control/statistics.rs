//! The success probability and throughput of a rate.

use sojourn_units::Duration;

use crate::phy::{Mode, Timing};

/// The packet for which throughput is estimated (AVG_PKT_SIZE of Minstrel).
const PACKET_BYTES: u32 = 1200;
/// The longest duration of one stage of a retry chain (`segment_size`).
const SEGMENT: Duration = Duration::from_micros(6_000);
/// Tries per stage.
const TRIES: core::ops::RangeInclusive<u8> = 2..=7;

/// A mode, and how often it was tried and acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Rate {
    pub mode: Mode,
    /// The duration of a packet without a preamble. The preamble is in the overhead.
    pub duration: Duration,
    /// Attempts and successes since the last update.
    pub attempts: u32,
    pub successes: u32,
    /// The number of updates with attempts.
    pub tried: u64,
    /// The moving average of the success probability.
    pub probability: f64,
    /// Its value before the last update.
    previous: f64,
}

impl Rate {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            mode,
            duration: mode.rate().tx_time(u64::from(PACKET_BYTES)),
            attempts: 0,
            successes: 0,
            tried: 0,
            probability: 0.0,
            previous: 0.0,
        }
    }

    pub(super) fn count(&mut self, attempts: u32, successes: u32) {
        self.attempts += attempts;
        self.successes += successes;
    }

    /// Updates the average with what was counted since the last update. The exponential filter keeps 3/4 (EWMA_LEVEL 96 of
    /// 128).
    pub(super) fn update_ewma(&mut self) {
        let Some(now) = self.take() else {
            return;
        };
        self.probability = if self.tried == 0 {
            now
        } else {
            0.75 * self.probability + 0.25 * now
        };
        self.tried += 1;
    }

    /// The same with the second-order filter of Linux since 5.10 (`minstrel_filter_avg_add`): 12-bit coefficients.
    pub(super) fn update_filtered(&mut self) {
        const OLD: f64 = 5273.0 / 4096.0;
        const OLDER: f64 = -2350.0 / 4096.0;
        const NEW: f64 = 1.0 - OLD - OLDER;
        let Some(now) = self.take() else {
            return;
        };
        let (old, older) = (self.probability, self.previous);
        let next = if self.tried == 0 {
            now
        } else {
            NEW * now + OLD * old + OLDER * older
        };
        self.previous = if self.tried == 0 { now } else { old };
        self.probability = next.clamp(0.0, 1.0);
        self.tried += 1;
    }

    fn take(&mut self) -> Option<f64> {
        let (attempts, successes) = (self.attempts, self.successes);
        (self.attempts, self.successes) = (0, 0);
        (attempts > 0).then(|| f64::from(successes.min(attempts)) / f64::from(attempts))
    }

    /// Packets per second that the rate delivers in transmissions of `ampdu_len` packets with this overhead. It is zero if the
    /// success probability is below 0.1. A probability above 0.9 counts as 0.9, which allows for collisions.
    pub(super) fn throughput(&self, overhead: Duration, ampdu_len: f64) -> f64 {
        if self.probability < 0.1 {
            return 0.0;
        }
        let span = overhead.as_secs_f64() / ampdu_len.max(1.0) + self.duration.as_secs_f64();
        self.probability.min(0.9) / span
    }

    /// The number of tries that fit in a stage, with the kernel's estimate of back-off.
    pub(super) fn tries(&self, overhead: Duration, ampdu_len: f64, timing: &Timing) -> u8 {
        let data =
            Duration::from_nanos((self.duration.as_nanos() as f64 * ampdu_len.max(1.0)) as u64);
        let slots = |window: u64| Duration::from_nanos(timing.slot.as_nanos() * window / 2);
        let (mut window, mut tries) = (15, *TRIES.start());
        let mut span = (overhead + data) * 2 + slots(window) + slots(2 * window + 1);
        window = 4 * window + 3;
        while tries < *TRIES.end() {
            span = span + overhead + data + slots(window);
            if span >= SEGMENT {
                break;
            }
            window = (2 * window + 1).min(1023);
            tries += 1;
        }
        tries
    }
}

/// Bits per second, from packets per second.
pub(super) fn bits(packets_per_second: f64) -> u64 {
    (packets_per_second * f64::from(PACKET_BYTES) * 8.0) as u64
}

/// Indices of the rates, best first by `worth`. Equal rates are ordered by success probability, then by index.
pub(super) fn best_first(rates: &[Rate], worth: impl Fn(&Rate) -> f64) -> alloc::vec::Vec<usize> {
    let mut indices: alloc::vec::Vec<(f64, usize)> = rates.iter().map(worth).zip(0..).collect();
    indices.sort_by(|&(worth, one), &(of_other, other)| {
        (of_other.total_cmp(&worth))
            .then(rates[other].probability.total_cmp(&rates[one].probability))
            .then(one.cmp(&other))
    });
    indices.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{Band, Ofdm, Standard};

    #[test]
    fn averages_agree_with_the_sum_by_hand() {
        let mut rate = Rate::new(Mode::Ofdm(Ofdm::R54));
        rate.count(10, 8);
        rate.update_ewma();
        assert_eq!(rate.probability, 0.8);
        rate.count(4, 0);
        rate.update_ewma();
        assert!((rate.probability - 0.6).abs() < 1e-12);
        rate.update_ewma();
        assert!((rate.probability - 0.6).abs() < 1e-12, "nothing new");
        // Second order, from 1 to 0: 5273/4096 - 2350/4096 = 2923/4096 = 0.71362, then 1.28735 · 0.71362 - 0.57373 = 0.34495.
        let mut rate = Rate::new(Mode::Ofdm(Ofdm::R54));
        let mut update = |successes| {
            rate.count(1, successes);
            rate.update_filtered();
            rate.probability
        };
        assert_eq!(update(1), 1.0);
        assert!((update(0) - 0.713_62).abs() < 1e-4);
        assert!((update(0) - 0.344_95).abs() < 1e-4);
    }

    #[test]
    fn throughput_counts_overhead_once_per_aggregate() {
        let mut rate = Rate::new(Mode::Ofdm(Ofdm::R48));
        rate.probability = 0.95;
        // 1200 bytes at 48 Mbit/s: 200 µs. With 100 µs: 0.9 / 300 µs; in aggregates of ten 0.9 / 210 µs.
        let overhead = Duration::from_micros(100);
        assert!((rate.throughput(overhead, 1.0) - 3000.0).abs() < 1e-6);
        assert!((rate.throughput(overhead, 10.0) - 0.9 / 210e-6).abs() < 1e-6);
        rate.probability = 0.09;
        assert_eq!(rate.throughput(overhead, 1.0), 0.0);
    }

    #[test]
    fn slow_rates_are_tried_less_often() {
        let timing = Timing::new(Standard::G, Band::Ghz2);
        let overhead = Duration::from_micros(100);
        let tries = |rate| Rate::new(Mode::Ofdm(rate)).tries(overhead, 1.0, &timing);
        // 6 Mbit/s: 1600 µs each, two are 3400 and 202.5 of back-off; a third would be 283.5 more: 5586, a fourth too long.
        assert_eq!(tries(Ofdm::R6), 3);
        // 54 Mbit/s: 277.8 each, two with back-off 762.6; then 1323.8, 2173.1, 3598.4 with five, and 6175.7 is too long.
        assert_eq!(tries(Ofdm::R54), 5);
    }
}
