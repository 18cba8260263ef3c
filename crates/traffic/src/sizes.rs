//! Distributions of the sizes of files and objects.

use serde::{Deserialize, Serialize};

use crate::streams::Stream;

/// The largest size drawn: a terabyte, which is also the largest size in an experiment file.
pub const LARGEST: u64 = 1_000_000_000_000;

/// A distribution of sizes in bytes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Sizes {
    /// One of these with equal probability.
    OneOf(Vec<u64>),
    /// Uniform in this range.
    Uniform {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: u64,
    },
    /// Pareto. The lower the shape, the heavier the tail.
    Pareto {
        /// The mean.
        mean: u64,
        /// The exponent of the tail, above 1.
        shape: f64,
    },
    /// Lognormal.
    Lognormal {
        /// The median.
        median: u64,
        /// The standard deviation of the natural logarithm.
        sigma: f64,
    },
}

impl Sizes {
    /// The mean size, before rounding and before [`LARGEST`] cuts it.
    pub fn mean(&self) -> f64 {
        match self {
            Self::OneOf(sizes) => {
                let sum: f64 = sizes.iter().map(|size| *size as f64).sum();
                sum / sizes.len() as f64
            }
            Self::Uniform { min, max } => f64::midpoint(*min as f64, *max as f64),
            Self::Exponential { mean } | Self::Pareto { mean, .. } => *mean as f64,
            Self::Lognormal { median, sigma } => *median as f64 * libm::exp(sigma * sigma / 2.0),
        }
    }

    /// Draws a size, at least 1 byte and at most a terabyte.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        let size = match self {
            Self::OneOf(sizes) => return sizes[stream.below(sizes.len() as u64) as usize],
            Self::Uniform { min, max } => return min + stream.below(max - min + 1),
            Self::Exponential { mean } => *mean as f64 * stream.exponential(),
            Self::Pareto { mean, shape } => {
                let smallest = *mean as f64 * (shape - 1.0) / shape;
                smallest * libm::exp(stream.exponential() / shape)
            }
            Self::Lognormal { median, sigma } => {
                *median as f64 * libm::exp(sigma * stream.normal())
            }
        };
        (size.round() as u64).clamp(1, LARGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn draws(sizes: &Sizes) -> Vec<u64> {
        let mut stream = Stream::new(1, "sizes");
        let mut draws: Vec<u64> = (0..DRAWS).map(|_| sizes.draw(&mut stream)).collect();
        draws.sort_unstable();
        draws
    }

    fn near(got: f64, expected: f64, tolerance: f64) {
        assert!(
            (got / expected - 1.0).abs() < tolerance,
            "{got} for {expected}"
        );
    }

    fn mean(draws: &[u64]) -> f64 {
        draws.iter().sum::<u64>() as f64 / DRAWS as f64
    }

    #[test]
    fn one_of_four_sizes_has_their_mean() {
        // (15 + 44 + 73 + 102) / 4 = 58.5 kB
        let drawn = draws(&Sizes::OneOf(vec![15_000, 44_000, 73_000, 102_000]));
        near(mean(&drawn), 58_500.0, 0.01);
    }

    #[test]
    fn a_uniform_size_reaches_both_ends() {
        let drawn = draws(&Sizes::Uniform { min: 10, max: 20 });
        assert_eq!((drawn[0], drawn[DRAWS - 1]), (10, 20));
        near(mean(&drawn), 15.0, 0.01);
    }

    #[test]
    fn an_exponential_size_has_its_mean_and_median() {
        let drawn = draws(&Sizes::Exponential { mean: 100_000 });
        near(mean(&drawn), 100_000.0, 0.01);
        near(drawn[DRAWS / 2] as f64, 69_315.0, 0.01); // mean × ln 2
    }

    /// Mean 30 kB and shape 2.5: smallest 30 · 1.5/2.5 = 18 kB, median 18 · 2^(1/2.5) = 23.751 kB.
    #[test]
    fn a_pareto_size_has_its_mean_smallest_and_median() {
        let drawn = draws(&Sizes::Pareto {
            mean: 30_000,
            shape: 2.5,
        });
        near(mean(&drawn), 30_000.0, 0.02);
        near(drawn[0] as f64, 18_000.0, 0.001);
        near(drawn[DRAWS / 2] as f64, 23_751.0, 0.01);
    }

    /// 84.13 % lie below the median times e^sigma.
    #[test]
    fn a_lognormal_size_has_its_median_and_spread() {
        let drawn = draws(&Sizes::Lognormal {
            median: 10_000,
            sigma: 1.0,
        });
        near(drawn[DRAWS / 2] as f64, 10_000.0, 0.01);
        near(drawn[DRAWS * 8413 / 10_000] as f64, 27_183.0, 0.02);
    }

    #[test]
    fn the_mean_is_that_of_many_draws() {
        let all = [
            Sizes::OneOf(vec![15_000, 102_000]),
            Sizes::Uniform { min: 10, max: 2000 },
            Sizes::Exponential { mean: 100_000 },
            Sizes::Pareto {
                mean: 30_000,
                shape: 2.5,
            },
            Sizes::Lognormal {
                median: 10_000,
                sigma: 1.0,
            },
        ];
        for sizes in all {
            near(mean(&draws(&sizes)), sizes.mean(), 0.02);
        }
    }
}
