//! Streams of random numbers. Each purpose has one of its own, so that the draws of one do not change those of another.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

/// The seed of a stream, from the seed of the run, what the stream is for, and the number of the node or link that has it.
pub fn seed(run: u64, purpose: u8, number: usize) -> u64 {
    let mut z = run ^ (u64::from(purpose) << 56) ^ ((number as u64) << 24);
    // The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A uniform integer from 0 to `most`.
    pub fn up_to(&mut self, most: u32) -> u32 {
        let count = u64::from(most) + 1;
        (((self.0.next_u64() >> 32) * count) >> 32) as u32
    }

    /// Two independent standard normal numbers (Box and Muller 1958).
    pub fn normals(&mut self) -> (f64, f64) {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        let angle = core::f64::consts::TAU * self.uniform();
        (radius * libm::cos(angle), radius * libm::sin(angle))
    }
}
