//! A random stream per purpose: adding a flow or a probe never shifts another's draws.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The seed of the stream called `name` in the run seeded `run_seed`. The hash is ours (FNV-1a, 64 bits), so
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
    /// The stream called `name` in the run seeded `run_seed`.
    pub fn new(run_seed: u64, name: &str) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed(run_seed, name)))
    }

    /// A random word.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below `bound`, which is above 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
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
        // FNV-1a of eight zero bytes and "a", so that results do not move with a library.
        assert_eq!(seed(0, "a"), 0xe604_613a_248f_f1ac);
    }

    #[test]
    fn an_exponential_has_its_mean() {
        let mut stream = Stream::new(7, "mean");
        let mean = (0..100_000).map(|_| stream.exponential()).sum::<f64>() / 100_000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }
}
