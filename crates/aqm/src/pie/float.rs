//! PIE in floating point: RFC 8033 Appendices A and B, and the algorithm of 2013.

use sojourn_units::{Duration, Time};

use super::departure::DepartureRate;
use super::{Config, HIGH_DELAY, Variant};
use crate::aqm::Backlog;
use crate::ce_exclude;
use crate::environment::Environment;
use crate::limit::Limit;
use crate::packet::Packet;

/// No drop until the probabilities of the packets passed sum to this (RFC 8033 §5.4).
pub(crate) const ACCU_LOW: f64 = 0.85;
/// A certain drop when they sum to this.
pub(crate) const ACCU_HIGH: f64 = 8.5;

/// Divisors of a step by the probability (RFC 8033 §4.2): an upper bound of the probability, and the divisor below it.
pub(crate) const STEPS_RFC8033: &[(f64, f64)] = &[
    (0.000_001, 2048.0),
    (0.000_01, 512.0),
    (0.000_1, 128.0),
    (0.001, 32.0),
    (0.01, 8.0),
    (0.1, 2.0),
];
/// The same in Linux up to 5.0.
const STEPS_2013: &[(f64, f64)] = &[(0.01, 8.0), (0.1, 2.0)];

/// The divisor of a step from probability `p`; 1 above the last bound.
pub(crate) fn divisor(steps: &[(f64, f64)], p: f64) -> f64 {
    steps
        .iter()
        .find(|(bound, _)| p < *bound)
        .map_or(1.0, |(_, divisor)| *divisor)
}

/// The state of PIE, with the RFC's names.
#[derive(Clone)]
pub struct Float {
    config: Config,
    drop_prob: f64,
    accu_prob: f64,
    /// Sojourn time of the last packet that left; zero if the queue is empty since.
    last_sojourn: Duration,
    departure: Option<DepartureRate>,
    current_qdelay: Duration,
    qdelay_old: Duration,
    burst_allowance: Duration,
    active: bool,
}

impl Float {
    /// Changes the parameters; the probability is kept.
    pub const fn change(&mut self, config: Config) {
        self.config = config;
    }

    /// A PIE before its first packet.
    pub fn new(config: Config) -> Self {
        Self {
            drop_prob: 0.0,
            accu_prob: 0.0,
            last_sojourn: Duration::ZERO,
            departure: config.dq_rate_estimator.then_some(match config.variant {
                Variant::Draft2013 => DepartureRate::DRAFT_2013,
                Variant::Rfc8033 | Variant::Linux => DepartureRate::RFC8033,
            }),
            current_qdelay: Duration::ZERO,
            qdelay_old: Duration::ZERO,
            burst_allowance: config.max_burst,
            active: !config.rest,
            config,
        }
    }

    pub(super) const fn probability(&self) -> f64 {
        self.drop_prob
    }

    pub(super) const fn qdelay(&self) -> Duration {
        self.current_qdelay
    }

    pub(super) const fn burst_allowance(&self) -> Duration {
        self.burst_allowance
    }

    pub(super) const fn forget_accumulated(&mut self) {
        self.accu_prob = 0.0;
    }

    /// True if an arriving packet of `bytes` is to be dropped or marked.
    #[inline(never)]
    pub(super) fn drop_early<P: Packet>(
        &mut self,
        bytes: u32,
        backlog: Backlog,
        env: &mut Environment<P>,
    ) -> bool {
        if !self.active && !self.wakes(backlog) {
            return false;
        }
        if !self.burst_allowance.is_zero() {
            return false;
        }
        // The RFC compares the delay of the last update, Linux the newest; with the rate estimator both are the same.
        if self.qdelay_old < self.config.target / 2 && self.drop_prob < 0.2 {
            return false;
        }
        if backlog.bytes <= 2 * u64::from(self.config.mtu) {
            return false;
        }
        let p = if self.config.bytemode {
            (self.drop_prob * f64::from(bytes) / f64::from(self.config.mtu)).min(1.0)
        } else {
            self.drop_prob
        };
        if self.config.derandomize {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += p;
            if self.accu_prob < ACCU_LOW {
                return false;
            }
            if self.accu_prob >= ACCU_HIGH {
                self.accu_prob = 0.0;
                return true;
            }
        }
        if env.uniform() >= p {
            return false;
        }
        self.accu_prob = 0.0;
        true
    }

    /// Activates PIE once the queue has reached a third of its limit (§5.3).
    fn wakes(&mut self, backlog: Backlog) -> bool {
        self.active = match self.config.limit {
            Limit::Packets(limit) => backlog.packets >= limit.div_ceil(3),
            Limit::Bytes(limit) => backlog.bytes >= limit.div_ceil(3),
        };
        if self.active {
            self.qdelay_old = Duration::ZERO;
            self.drop_prob = 0.0;
            self.accu_prob = 0.0;
            self.burst_allowance = self.config.max_burst;
        }
        self.active
    }

    pub(super) fn on_departure(
        &mut self,
        bytes: u32,
        sojourn: Duration,
        backlog: Backlog,
        now: Time,
    ) {
        let Some(departure) = &mut self.departure else {
            let emptied = backlog.packets == 0;
            self.last_sojourn = if emptied { Duration::ZERO } else { sojourn };
            return;
        };
        if let Some(cycle) = departure.on_departure(bytes, backlog.bytes, now) {
            if self.config.variant == Variant::Draft2013 {
                self.burst_allowance = self.burst_allowance.saturating_sub(cycle);
            }
        }
    }

    /// Measures the present queueing delay.
    fn measure(&self, backlog: Backlog) -> Duration {
        let Some(departure) = &self.departure else {
            return self.last_sojourn;
        };
        let delay = departure.delay(backlog.bytes).unwrap_or(Duration::ZERO);
        if self.config.ce_exclude {
            ce_exclude::unmarked_delay(delay, backlog, HIGH_DELAY)
        } else {
            delay
        }
    }

    /// The periodic update of the probability.
    pub(super) fn update(&mut self, backlog: Backlog) {
        if !self.active {
            return;
        }
        let Config {
            target, variant, ..
        } = self.config;
        self.current_qdelay = self.measure(backlog);
        let (delay, old) = (self.current_qdelay, self.qdelay_old);
        self.drop_prob += self.step(delay, old);
        let idle = match variant {
            // Without an estimate, a delay of zero does not mean an empty queue.
            Variant::Draft2013 => delay.is_zero() && old.is_zero() && backlog.bytes == 0,
            _ if self.config.early_decay => delay < target / 2 && old < target / 2,
            _ => delay.is_zero() && old.is_zero(),
        };
        if idle {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = delay;
        self.renew_burst_allowance(delay, old);
    }

    fn step(&self, delay: Duration, old: Duration) -> f64 {
        let Config {
            alpha,
            beta,
            target,
            ..
        } = self.config;
        let delay_s = delay.as_secs_f64();
        let step = alpha * (delay_s - target.as_secs_f64()) + beta * (delay_s - old.as_secs_f64());
        let steps = match self.config.variant {
            Variant::Draft2013 => STEPS_2013,
            Variant::Rfc8033 | Variant::Linux => STEPS_RFC8033,
        };
        let mut step = match self.config.autotune {
            true => step / divisor(steps, self.drop_prob),
            false => step,
        };
        if self.config.cap && self.drop_prob >= 0.1 {
            step = step.min(0.02);
        }
        if self.config.variant == Variant::Draft2013 && delay > HIGH_DELAY {
            step += 0.02;
        }
        step
    }

    fn renew_burst_allowance(&mut self, delay: Duration, old: Duration) {
        let half = self.config.target / 2;
        let calm = self.drop_prob == 0.0 && delay < half && old < half;
        match self.config.variant {
            Variant::Draft2013 => {
                let measured = self.departure.is_some_and(|rate| rate.delay(0).is_some());
                if calm && (measured || self.departure.is_none()) {
                    self.burst_allowance = self.config.max_burst;
                    if let Some(departure) = &mut self.departure {
                        departure.restart();
                    }
                } else if self.departure.is_none() {
                    self.burst_allowance = self.burst_allowance.saturating_sub(self.config.tupdate);
                }
            }
            Variant::Rfc8033 | Variant::Linux => {
                self.burst_allowance = if calm {
                    self.config.max_burst
                } else {
                    self.burst_allowance.saturating_sub(self.config.tupdate)
                };
                self.active = !(calm && self.config.rest);
            }
        }
    }
}
