//! Random streams: one per purpose and number of node or link, so that the draws of one do not change those of another.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a stream is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A node's back-off.
    Backoff = 1,
    /// Which of a link's frames are received.
    Reception = 2,
    /// How a link's signal fades.
    Fading = 3,
    /// Which rates a link probes.
    Probing = 4,
    /// Random decisions of a node's queue disciplines.
    Queue = 5,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

/// The seed of a stream, from the seed of the run.
pub(crate) fn seed(run: u64, purpose: Purpose, number: usize) -> u64 {
    let mut z = run ^ ((purpose as u64) << 56) ^ ((number as u64) << 24);
    // The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    pub(crate) fn new(run: u64, purpose: Purpose, number: usize) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed(
            run, purpose, number,
        )))
    }

    /// Uniform in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A uniform integer from 0 to `most`.
    pub(crate) fn up_to(&mut self, most: u32) -> u32 {
        let count = u64::from(most) + 1;
        (((self.0.next_u64() >> 32) * count) >> 32) as u32
    }

    /// Two independent standard normal numbers (Box and Muller 1958).
    pub(crate) fn normals(&mut self) -> (f64, f64) {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        let angle = core::f64::consts::TAU * self.uniform();
        (radius * libm::cos(angle), radius * libm::sin(angle))
    }
}
