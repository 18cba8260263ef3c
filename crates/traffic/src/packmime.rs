//! PackMime-HTTP: web traffic on a link, given by the rate of new connections (Cao et al. 2004), with the
//! parameters of its implementation in ns-2.35.
//!
//! Sizes of requests, validations and downloads are drawn from quantiles of that implementation. Between quantiles the
//! logarithm of the size is linear in the logit of the probability; the mean sizes agree within 2 %.

use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

use sojourn_units::Duration;

use crate::streams::Stream;

/// Quantiles: probability and bytes.
type Quantiles = &'static [(f64, f64)];

const REQUESTS: Quantiles = &[
    (0.01, 122.0),
    (0.05, 217.0),
    (0.10, 280.0),
    (0.25, 351.0),
    (0.50, 422.0),
    (0.75, 514.0),
    (0.90, 869.0),
    (0.95, 1062.0),
    (0.99, 3069.0),
    (0.999, 14_874.0),
];
const VALIDATIONS: Quantiles = &[
    (0.01, 22.0),
    (0.05, 64.0),
    (0.10, 75.0),
    (0.25, 119.0),
    (0.50, 141.0),
    (0.75, 197.0),
    (0.90, 249.0),
    (0.95, 267.0),
    (0.99, 272.0),
];
/// Validations are below this.
const LONGEST_VALIDATION: f64 = 274.0;
const DOWNLOADS: Quantiles = &[
    (0.01, 284.0),
    (0.05, 325.0),
    (0.10, 387.0),
    (0.25, 691.0),
    (0.50, 2254.0),
    (0.75, 8886.0),
    (0.90, 20_343.0),
    (0.95, 35_885.0),
    (0.99, 92_574.0),
    (0.999, 621_109.0),
];
/// The base-2 logarithm of the longest response.
const LONGEST_LOG2: f64 = 25.9;

/// Shares: connections with more than one exchange; of these, those with one page; pages with one object.
const PERSISTENT: f64 = 0.09;
const ONE_PAGE: f64 = 0.82;
const ONE_OBJECT: f64 = 0.69;
/// Mean number of further pages of a connection, and of further objects of a page.
const FURTHER_PAGES: f64 = 0.417;
const FURTHER_OBJECTS: f64 = 1.578;

/// A value whose base-2 logarithm is normal; each connection has its own location and spread.
struct Varying {
    location: (f64, f64),
    spread: f64,
    error: f64,
}

/// Seconds between pages, seconds between objects, and bytes of responses of persistent connections.
const BETWEEN_PAGES: Varying = Varying {
    location: (3.22, 0.73),
    spread: 1.85,
    error: 1.21,
};
const BETWEEN_OBJECTS: Varying = Varying {
    location: (-4.15, 3.12),
    spread: 2.35,
    error: 1.57,
};
const RESPONSES: Varying = Varying {
    location: (10.62, 0.94),
    spread: 3.22,
    error: 2.43,
};

impl Varying {
    /// Draws location and spread of a connection: the location is normal, the variance gamma with mean 1.
    fn of_connection(&self, draws: &mut Stream) -> (f64, f64) {
        let (mean, variance) = self.location;
        let location = mean + variance.sqrt() * draws.normal();
        let scale = draws.gamma(self.spread) / self.spread;
        (location, (scale * self.error).sqrt())
    }
}

/// A source of web connections.
#[derive(Debug)]
pub struct PackMime {
    /// New connections per second.
    rate: f64,
    gaps: Ranks,
    requests: Ranks,
    draws: Stream,
    /// The current kind of response, and how many more of that kind follow.
    run: (Response, u64),
}

/// A request and its response.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Exchange {
    /// Time from the end of the previous response, or from the opening of the connection, to the request.
    pub pause: Duration,
    /// Bytes of the request.
    pub request: u64,
    /// Time at the server from the end of the request to the beginning of the response.
    pub delay: Duration,
    /// Bytes of the response.
    pub response: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Response {
    Validation,
    Download,
}

impl PackMime {
    /// A source of `rate` new connections per second, with random streams named under `name`.
    pub fn new(rate: f64, run_seed: u64, name: &str) -> Self {
        let stream = |what: &str| Stream::new(run_seed, &format!("{name}/{what}"));
        let log_rate = libm::log2(rate);
        Self {
            rate,
            gaps: Ranks::new(
                0.33,
                1000,
                logistic(0.333 + 0.414 * log_rate),
                stream("gaps"),
            ),
            requests: Ranks::new(
                0.31,
                5000,
                logistic(0.123 + 0.494 * log_rate),
                stream("requests"),
            ),
            draws: stream("web"),
            run: (Response::Validation, 0),
        }
    }

    /// Draws the time to the next connection: Weibull with mean 1/rate, long-range dependent.
    pub fn gap(&mut self) -> Duration {
        let shape = logistic(0.352 + 0.388 * libm::log2(self.rate));
        let scale = 1.0 / (self.rate * gamma_function(1.0 + 1.0 / shape));
        let above = 1.0 - self.gaps.next();
        Duration::from_secs_f64(scale * libm::pow(-libm::log(above), 1.0 / shape))
    }

    /// Draws the exchanges of a connection, at least one.
    pub fn connection(&mut self) -> Vec<Exchange> {
        if self.draws.uniform() >= PERSISTENT {
            let response = self.response();
            return vec![self.exchange(Duration::ZERO, response)];
        }
        let between_pages = BETWEEN_PAGES.of_connection(&mut self.draws);
        let between_objects = BETWEEN_OBJECTS.of_connection(&mut self.draws);
        let responses = RESPONSES.of_connection(&mut self.draws);
        let mut exchanges = Vec::new();
        for page in 0..self.one_or_more(ONE_PAGE, FURTHER_PAGES) {
            for object in 0..self.one_or_more(ONE_OBJECT, FURTHER_OBJECTS) {
                let pause = match (page, object) {
                    (0, 0) => 0.0,
                    (_, 0) => self.power_of_two(between_pages),
                    _ => self.power_of_two(between_objects),
                };
                let response = self.power_of_two(responses);
                exchanges.push(self.exchange(Duration::from_secs_f64(pause), response));
            }
        }
        exchanges
    }

    fn exchange(&mut self, pause: Duration, response: f64) -> Exchange {
        let request = quantile(REQUESTS, self.requests.next());
        let delay = 1.0 / self.draws.weibull(0.63, 305.0).max(10.0);
        Exchange {
            pause,
            request: bytes(request),
            delay: Duration::from_secs_f64(delay),
            response: bytes(response),
        }
    }

    /// Draws the bytes of a response: runs of cache validations alternate with runs of downloads.
    fn response(&mut self) -> f64 {
        if self.run.1 == 0 {
            let log_rate = libm::log2(self.rate);
            let (kind, shape, scale) = match self.run.0 {
                Response::Download => (Response::Validation, 0.718 + 0.357 * log_rate, 0.775),
                Response::Validation => (Response::Download, 1.293 + 0.316 * log_rate, 3.11),
            };
            let length = self.draws.weibull(logistic(shape), scale).ceil();
            self.run = (kind, length.max(1.0) as u64);
        }
        self.run.1 -= 1;
        let rank = self.draws.uniform();
        match self.run.0 {
            Response::Validation => quantile(VALIDATIONS, rank).min(LONGEST_VALIDATION),
            Response::Download => quantile(DOWNLOADS, rank),
        }
    }

    /// Draws 1 with probability `one`, otherwise 1 plus an exponential number of further ones, at least one.
    fn one_or_more(&mut self, one: f64, further: f64) -> u64 {
        if self.draws.uniform() < one {
            1
        } else {
            1 + (further * self.draws.exponential()).ceil() as u64
        }
    }

    fn power_of_two(&mut self, (location, spread): (f64, f64)) -> f64 {
        libm::exp2((location + spread * self.draws.normal()).min(LONGEST_LOG2))
    }
}

fn bytes(size: f64) -> u64 {
    size.min(libm::exp2(LONGEST_LOG2)).round().max(1.0) as u64
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// The size at a probability. Its logarithm is linear in the logit between the quantiles and beyond the last; the
/// first quantile is the smallest size.
fn quantile(quantiles: Quantiles, probability: f64) -> f64 {
    let logit = |p: f64| libm::log(p / (1.0 - p));
    let above = quantiles.partition_point(|(p, _)| *p < probability);
    let upper = above.clamp(1, quantiles.len() - 1);
    let ((p0, s0), (p1, s1)) = (quantiles[upper - 1], quantiles[upper]);
    let share = (logit(probability.clamp(p0, 1.0 - 1e-9)) - logit(p0)) / (logit(p1) - logit(p0));
    s0 * libm::pow(s1 / s0, share)
}

/// Uniform ranks with long-range dependence: a fractional ARIMA process (0, d, 0), computed as a sum over a number of
/// past innovations, plus white noise (Hosking 1981).
#[derive(Debug)]
struct Ranks {
    weights: Vec<f64>,
    innovations: Vec<f64>,
    newest: usize,
    /// Amplitudes of the process and of the noise; their variances add up to 1.
    process: f64,
    noise: f64,
    draws: Stream,
}

impl Ranks {
    fn new(d: f64, terms: usize, noise_share: f64, mut draws: Stream) -> Self {
        let mut weights = vec![1.0];
        for j in 1..terms {
            let j = j as f64;
            weights.push(weights[weights.len() - 1] * (j - 1.0 + d) / j);
        }
        let variance: f64 = weights.iter().map(|weight| weight * weight).sum();
        Self {
            innovations: (0..terms).map(|_| draws.normal()).collect(),
            newest: 0,
            process: ((1.0 - noise_share) / variance).sqrt(),
            noise: noise_share.sqrt(),
            weights,
            draws,
        }
    }

    /// The next rank, inside (0, 1).
    fn next(&mut self) -> f64 {
        self.newest = self.newest.checked_sub(1).unwrap_or(self.weights.len() - 1);
        self.innovations[self.newest] = self.draws.normal();
        let (later, earlier) = self.innovations.split_at(self.newest);
        let by_age = earlier.iter().chain(later);
        let process: f64 = by_age
            .zip(&self.weights)
            .map(|(x, weight)| x * weight)
            .sum();
        let z = self.process * process + self.noise * self.draws.normal();
        normal_distribution(z).clamp(1e-9, 1.0 - 1e-9)
    }
}

/// The standard normal distribution function at `z`, by the series of the error function for small |z| and its
/// continued fraction for large (Abramowitz and Stegun 7.1.6 and 7.1.14).
fn normal_distribution(z: f64) -> f64 {
    let x = z.abs() * FRAC_1_SQRT_2;
    let upper_tail = if x < 2.0 {
        let mut term = x;
        let mut sum = x;
        for n in 1..40 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        0.5 - sum * libm::exp(-x * x) / PI.sqrt()
    } else {
        let mut fraction = x;
        for n in (1..30).rev() {
            fraction = x + f64::from(n) / 2.0 / fraction;
        }
        libm::exp(-x * x) / (2.0 * PI.sqrt() * fraction)
    };
    if z < 0.0 {
        upper_tail
    } else {
        1.0 - upper_tail
    }
}

/// Γ(x) for x above 0, by Stirling's series and the recurrence (Abramowitz and Stegun 6.1.15, 6.1.37).
fn gamma_function(x: f64) -> f64 {
    let mut product = 1.0;
    let mut y = x;
    while y < 12.0 {
        product *= y;
        y += 1.0;
    }
    let series = 1.0 + 1.0 / (12.0 * y) + 1.0 / (288.0 * y * y) - 139.0 / (51_840.0 * (y * y * y));
    SQRT_2 * PI.sqrt() * libm::pow(y, y - 0.5) * libm::exp(-y) * series / product
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64, tolerance: f64, what: &str) {
        assert!(
            (got / expected - 1.0).abs() < tolerance,
            "{what}: {got} for {expected}"
        );
    }

    fn at(mut sizes: Vec<f64>, probability: f64) -> f64 {
        sizes.sort_by(f64::total_cmp);
        sizes[(probability * sizes.len() as f64) as usize]
    }

    #[test]
    fn connections_arrive_at_their_rate() {
        for rate in [5.0, 40.0] {
            let mut source = PackMime::new(rate, 1, "flow/0");
            let seconds: f64 = (0..50_000).map(|_| source.gap().as_secs_f64()).sum();
            near(50_000.0 / seconds, rate, 0.1, "rate"); // long-range dependence keeps the mean unsteady
        }
    }

    /// From ns-2.35's implementation at 10 connections/s: the share of downloads is 0.722.
    #[test]
    fn responses_are_validations_and_downloads_in_their_shares() {
        let mut source = PackMime::new(10.0, 1, "flow/0");
        let responses: Vec<f64> = (0..100_000).map(|_| source.response()).collect();
        let downloads: Vec<f64> = responses
            .iter()
            .copied()
            .filter(|size| *size > LONGEST_VALIDATION)
            .collect();
        near(
            downloads.len() as f64 / 1e5,
            0.722,
            0.01,
            "share of downloads",
        );
        near(at(downloads.clone(), 0.5), 2254.0, 0.05, "median download");
        near(at(downloads, 0.9), 20_343.0, 0.05, "p90 download");
        let validations = responses
            .iter()
            .copied()
            .filter(|size| *size <= LONGEST_VALIDATION);
        near(
            at(validations.collect(), 0.5),
            141.0,
            0.02,
            "median validation",
        );
    }

    #[test]
    fn requests_and_server_delays_are_distributed_as_the_model_says() {
        let mut source = PackMime::new(10.0, 3, "flow/0");
        let exchanges: Vec<Exchange> = (0..50_000).flat_map(|_| source.connection()).collect();
        let count = exchanges.len() as f64;
        let mean = |of: fn(&Exchange) -> f64| exchanges.iter().map(of).sum::<f64>() / count;
        near(
            mean(|exchange| exchange.request as f64),
            580.0,
            0.05,
            "request",
        );
        // 1 over the median of the Weibull variable, 305 · (ln 2)^(1/0.63) = 170.5 per second.
        let delays = exchanges
            .iter()
            .map(|exchange| exchange.delay.as_secs_f64());
        near(
            at(delays.collect(), 0.5),
            0.005_866,
            0.02,
            "median server delay",
        );
        // Exchanges per connection: objects 1 + 0.31·E⌈X⌉ with X exponential of mean 1.578, E⌈X⌉ = 1/(1 − e^(−1/1.578))
        // = 2.131: 1.661; pages 1 + 0.18/(1 − e^(−1/0.417)) = 1.198; 0.91 + 0.09 · 1.661 · 1.198 = 1.089.
        near(count / 50_000.0, 1.089, 0.01, "exchanges per connection");
    }

    /// About 8.1 kB of responses per connection at 5/s: 0.32 Mbit/s offered. The tail is heavy, so the mean of many
    /// draws still varies.
    #[test]
    fn a_connection_carries_eight_kilobytes_of_responses() {
        let mut source = PackMime::new(5.0, 2, "flow/0");
        let bytes: u64 = (0..200_000)
            .flat_map(|_| source.connection())
            .map(|exchange| exchange.response)
            .sum();
        near(bytes as f64 / 2e5, 8_100.0, 0.15, "bytes per connection");
    }

    #[test]
    fn neighbouring_ranks_are_correlated_and_all_are_uniform() {
        let mut ranks = Ranks::new(0.33, 1000, 0.5, Stream::new(1, "ranks"));
        let drawn: Vec<f64> = (0..50_000).map(|_| ranks.next()).collect();
        let below = |p: f64| drawn.iter().filter(|rank| **rank < p).count() as f64 / 5e4;
        for p in [0.1, 0.5, 0.9] {
            assert!((below(p) - p).abs() < 0.05, "{p}: {}", below(p));
        }
        // A fractional process with d = 0.33 has correlation d/(1 − d) = 0.49 at lag 1, halved by the noise.
        let products = drawn
            .windows(2)
            .map(|pair| (pair[0] - 0.5) * (pair[1] - 0.5));
        let correlation = 12.0 * products.sum::<f64>() / 5e4;
        assert!((0.19..0.30).contains(&correlation), "{correlation}");
    }

    #[test]
    fn special_functions_have_their_values() {
        for (z, below) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746),
            (-1.96, 0.024_997_895),
            (4.0, 0.999_968_329),
        ] {
            assert!((normal_distribution(z) - below).abs() < 1e-9, "{z}");
        }
        // Γ(5) = 24, Γ(1/2) = √π.
        assert!((gamma_function(5.0) - 24.0).abs() < 1e-4);
        assert!((gamma_function(0.5) - PI.sqrt()).abs() < 1e-6);
    }
}
