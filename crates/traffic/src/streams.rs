//! A random stream per purpose: adding a flow or a probe never changes another's draws.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The seed of the stream called `name` in the run with seed `run_seed`. The hash (FNV-1a, 64 bits) is our own, so
/// that it is the same on every machine and in every version.
pub fn seed(run_seed: u64, name: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in run_seed.to_le_bytes().into_iter().chain(name.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// A stream of random numbers.
#[derive(Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `name` in the run with seed `run_seed`.
    pub fn new(run_seed: u64, name: &str) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed(run_seed, name)))
    }

    /// A random 64-bit word.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A uniform whole number below `bound`, which must be above 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.uniform())
    }

    /// Normally distributed with mean 0 and variance 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Weibull-distributed.
    pub fn weibull(&mut self, shape: f64, scale: f64) -> f64 {
        scale * libm::pow(self.exponential(), 1.0 / shape)
    }

    /// Gamma-distributed with this shape, at least 1, and scale 1 (Marsaglia and Tsang 2000).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let root = 1.0 + c * x;
            let v = root * root * root;
            if v > 0.0 && -self.exponential() < x * x / 2.0 + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }

    /// Extreme-value-distributed (Gumbel) with this location and scale.
    pub fn extreme(&mut self, location: f64, scale: f64) -> f64 {
        location - scale * libm::log(self.exponential())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_and_seed_give_the_same_draws_and_others_do_not() {
        let draw = |seed, name| Stream::new(seed, name).word();
        assert_eq!(draw(1, "queue/down"), draw(1, "queue/down"));
        assert_ne!(draw(1, "queue/down"), draw(1, "queue/up"));
        assert_ne!(draw(1, "queue/down"), draw(2, "queue/down"));
    }

    #[test]
    fn the_seed_is_a_fixed_function_of_its_name() {
        // FNV-1a of eight zero bytes and "a": results do not depend on the version of a library.
        assert_eq!(seed(0, "a"), 0xe604_613a_248f_f1ac);
    }

    #[test]
    fn an_exponential_has_its_mean() {
        let mut stream = Stream::new(7, "mean");
        let mean = (0..100_000).map(|_| stream.exponential()).sum::<f64>() / 100_000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }

    /// Mean and variance of 100 000 draws.
    fn moments(mut draw: impl FnMut(&mut Stream) -> f64) -> (f64, f64) {
        let mut stream = Stream::new(7, "moments");
        let draws: Vec<f64> = (0..100_000).map(|_| draw(&mut stream)).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
        (mean, variance)
    }

    #[test]
    fn distributions_have_their_means_and_variances() {
        let has = |name: &str, (mean, variance): (f64, f64), expected: (f64, f64)| {
            let (expected_mean, expected_variance) = expected;
            let tolerance = 0.01 * expected_variance.max(1.0);
            assert!((mean - expected_mean).abs() < tolerance, "{name}: {mean}");
            let ratio = variance / expected_variance;
            assert!((ratio - 1.0).abs() < 0.03, "{name}: {variance}");
        };
        has("normal", moments(Stream::normal), (0.0, 1.0));
        // Shape 2, scale 1: Γ(1.5) = √π/2, variance 1 − π/4.
        has(
            "weibull",
            moments(|s| s.weibull(2.0, 1.0)),
            (0.8862, 0.2146),
        );
        // Mean and variance of a gamma of scale 1 are its shape.
        has("gamma", moments(|s| s.gamma(2.35)), (2.35, 2.35));
        // Location 55, scale 6: 55 + 0.5772 · 6; variance π²/6 · 36.
        has("extreme", moments(|s| s.extreme(55.0, 6.0)), (58.46, 59.22));
    }
}
