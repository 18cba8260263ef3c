//! The channel between a station and the access point: its signal-to-noise ratio, which may fade, and whether frames are
//! received. The ratio is the same in both directions.

use sojourn_units::{Duration, Time};

use crate::phy::Mode;
use crate::phy::error::{Snr, ln_success_per_byte};
use crate::random::{Purpose, Stream, stream};

/// How the signal changes over time: Rician fading, the power of a complex gain whose scattered part is a Gauss-Markov process
/// (its correlation falls to 1/e within the coherence time).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fading {
    /// The coherence time: how long the channel stays about the same.
    pub coherence: Duration,
    /// The K factor: the power of the direct path divided by that of the scattered paths; 0 is Rayleigh fading.
    pub k: f64,
}

/// The channel between a station and the access point.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// `None`: every frame that does not collide is received.
    mean: Option<Snr>,
    fading: Option<Faded>,
    now: Snr,
    random: Stream,
    /// The last mode, and the logarithm of a byte's success probability in it. Most frames have the mode of the one before.
    last: Option<(Mode, f64)>,
}

#[derive(Clone, Debug)]
struct Faded {
    fading: Fading,
    /// The scattered part of the gain: real and imaginary part, each with a variance of 1/2.
    gain: (f64, f64),
    at: Time,
    random: Stream,
}

impl Channel {
    pub(crate) fn new(
        snr_db: Option<f64>,
        fading: Option<Fading>,
        seed: u64,
        number: usize,
    ) -> Self {
        let mean = snr_db.map(Snr::from_db);
        let mut channel = Self {
            mean,
            fading: fading.map(|fading| {
                let mut random = stream(seed, Purpose::Fading, number);
                let (x, y) = random.normals();
                Faded {
                    fading,
                    gain: (
                        x * core::f64::consts::FRAC_1_SQRT_2,
                        y * core::f64::consts::FRAC_1_SQRT_2,
                    ),
                    at: Time::ZERO,
                    random,
                }
            }),
            now: mean.unwrap_or(Snr::from_db(0.0)),
            random: stream(seed, Purpose::Reception, number),
            last: None,
        };
        channel.fade(Time::ZERO);
        channel
    }

    /// The ratio now; `None`: the channel loses no frame.
    pub(crate) fn snr(&mut self, now: Time) -> Option<Snr> {
        self.fade(now);
        self.mean.map(|_| self.now)
    }

    /// Draws whether a frame is received, at the ratio of the last call of [`Channel::snr`].
    pub(crate) fn receives(&mut self, mode: Mode, bytes: u32) -> bool {
        if self.mean.is_none() {
            return true;
        }
        let per_byte = match self.last {
            Some((last, per_byte)) if last == mode => per_byte,
            _ => {
                let per_byte = ln_success_per_byte(mode, self.now);
                self.last = Some((mode, per_byte));
                per_byte
            }
        };
        self.random.uniform() < libm::exp(per_byte * f64::from(bytes))
    }

    fn fade(&mut self, now: Time) {
        let (Some(mean), Some(faded)) = (self.mean, &mut self.fading) else {
            return;
        };
        let elapsed = now.saturating_since(faded.at).as_secs_f64();
        if elapsed > 0.0 {
            let kept = libm::exp(-elapsed / faded.fading.coherence.as_secs_f64().max(1e-9));
            let fresh = libm::sqrt((1.0 - kept * kept) / 2.0);
            let (x, y) = faded.random.normals();
            faded.gain = (
                kept * faded.gain.0 + fresh * x,
                kept * faded.gain.1 + fresh * y,
            );
            faded.at = now;
        }
        let k = faded.fading.k.max(0.0);
        let direct = libm::sqrt(k / (k + 1.0));
        let scattered = libm::sqrt(1.0 / (k + 1.0));
        let (re, im) = (direct + scattered * faded.gain.0, scattered * faded.gain.1);
        self.now = mean.scaled(re * re + im * im);
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::phy::Ofdm;

    fn powers(k: f64, step: Duration, steps: u64) -> Vec<f64> {
        let fading = Fading {
            coherence: Duration::from_millis(10),
            k,
        };
        let mut channel = Channel::new(Some(0.0), Some(fading), 7, 0);
        (0..steps)
            .map(|n| channel.snr(Time::ZERO + step * n).expect("an SNR"))
            .map(|snr| libm::pow(10.0, snr.db() / 10.0))
            .collect()
    }

    fn mean_and_variance(powers: &[f64]) -> (f64, f64) {
        let mean = powers.iter().sum::<f64>() / powers.len() as f64;
        let variance = powers.iter().map(|p| (p - mean) * (p - mean)).sum::<f64>();
        (mean, variance / powers.len() as f64)
    }

    #[test]
    fn rayleigh_power_is_exponential_and_a_direct_path_reduces_its_variance() {
        // Exponential: mean 1 and variance 1. Rician: variance (1 + 2K) / (1 + K)², 7/16 for K = 3.
        let apart = Duration::from_millis(100);
        let (mean, variance) = mean_and_variance(&powers(0.0, apart, 40_000));
        assert!(
            (mean - 1.0).abs() < 0.03 && (variance - 1.0).abs() < 0.1,
            "{mean} {variance}"
        );
        let (mean, variance) = mean_and_variance(&powers(3.0, apart, 40_000));
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
        assert!((variance - 7.0 / 16.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn fading_is_correlated_within_the_coherence_time() {
        // Power correlates as the square of the gain: exp(-2 · 1/10) after 1 ms of 10.
        let powers = powers(0.0, Duration::from_millis(1), 200_000);
        let (mean, variance) = mean_and_variance(&powers);
        let pairs = powers
            .windows(2)
            .map(|pair| (pair[0] - mean) * (pair[1] - mean));
        let correlation = pairs.sum::<f64>() / powers.len() as f64 / variance;
        assert!(
            (correlation - libm::exp(-0.2)).abs() < 0.02,
            "{correlation}"
        );
    }

    #[test]
    fn the_share_of_lost_frames_is_that_of_the_error_model() {
        let (mode, bytes) = (Mode::Ofdm(Ofdm::R54), 1500);
        for db in [22.0, 22.5, 23.0] {
            let expected = crate::phy::error::success(mode, Snr::from_db(db), bytes);
            let mut channel = Channel::new(Some(db), None, 1, 0);
            let received = (0..20_000)
                .filter(|_| channel.receives(mode, bytes))
                .count();
            let measured = received as f64 / 20_000.0;
            assert!(expected > 0.01 && expected < 0.99, "{db} {expected}");
            assert!(
                (measured - expected).abs() < 0.012,
                "{db} {measured} {expected}"
            );
        }
        let mut perfect = Channel::new(None, None, 1, 0);
        assert!((0..1000).all(|_| perfect.receives(mode, 65_535)));
    }
}
