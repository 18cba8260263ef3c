//! PIE as Linux 6.1 computes it (sch_pie), bit for bit.
//!
//! Time is in scheduler ticks of 64 ns, the probability in 2^-56. `tupdate` is rounded up to timer ticks of 4 ms (250
//! Hz). The timer wheel never fires early and adds one more tick: 15 ms become 20 ms. The burst allowance decreases as
//! packets leave, by the time since the last departure.

use sojourn_units::{Duration, Time};

use super::{Config, HIGH_DELAY};
use crate::aqm::Backlog;
use crate::ce_exclude;
use crate::environment::Environment;
use crate::packet::Packet;

/// The probability 1. Probabilities are fractions of it.
const MAX_PROB: u64 = u64::MAX >> 8;
const TICK_SHIFT: u32 = 6;
const TICKS_PER_SEC: u64 = 1_000_000_000 >> TICK_SHIFT;
/// The kernel's timer tick at 250 Hz.
const JIFFY: Duration = Duration::from_millis(4);
/// Time in the kernel from the set-up of the discipline to its first update.
const SET_UP: Duration = Duration::from_millis(500);
/// Bytes per cycle of the departure rate, and binary places of the rate.
const QUEUE_THRESHOLD: u64 = 16_384;
const RATE_SCALE: u32 = 8;
/// The divisor of a step quadruples with each power of ten by which the probability is below 1 %.
const SMALLEST_BOUND: u64 = 1_000_000;

/// The state of Linux's PIE.
#[derive(Clone)]
pub struct Linux {
    target: u64,
    alpha: u64,
    beta: u64,
    max_burst: u64,
    mtu: u64,
    bytemode: bool,
    dq_rate_estimator: bool,
    ce_exclude: bool,
    period: Duration,
    prob: u64,
    accu_prob: u64,
    qdelay: u64,
    qdelay_old: u64,
    burst_time: u64,
    /// When the last packet left, or the current cycle began; `None` after a restart.
    dq_tstamp: Option<u64>,
    dq_count: Option<u64>,
    avg_dq_rate: u64,
}

const fn ticks(span: Duration) -> u64 {
    span.as_nanos() >> TICK_SHIFT
}

/// The actual time between two updates.
const fn period(tupdate: Duration) -> Duration {
    let jiffies = tupdate.as_nanos().div_ceil(JIFFY.as_nanos()) + 1;
    Duration::from_nanos(JIFFY.as_nanos() * jiffies)
}

/// The time of the first update of a discipline that was set up `age` before the start, at a tick. The kernel's first
/// update is 500 ms after set-up, but on Linux a discipline is set up long before the first packet. So updates run from
/// the start, even if `age` is less.
pub(super) const fn first_update(tupdate: Duration, age: Duration) -> Duration {
    let period = period(tupdate).as_nanos();
    let passed = age.as_nanos() / JIFFY.as_nanos() * JIFFY.as_nanos() % period;
    let first = (SET_UP.as_nanos() + period - passed) % period;
    Duration::from_nanos(if first == 0 { period } else { first })
}

impl Linux {
    /// A PIE before its first packet.
    pub fn new(config: Config) -> Self {
        let gain = |sixteenths: f64| (sixteenths as u64 * (MAX_PROB / TICKS_PER_SEC)) >> 4;
        Self {
            target: ticks(config.target),
            alpha: gain(config.alpha),
            beta: gain(config.beta),
            max_burst: ticks(config.max_burst),
            mtu: u64::from(config.mtu),
            bytemode: config.bytemode,
            dq_rate_estimator: config.dq_rate_estimator,
            ce_exclude: config.ce_exclude,
            period: period(config.tupdate),
            prob: 0,
            accu_prob: 0,
            qdelay: 0,
            qdelay_old: 0,
            burst_time: ticks(config.max_burst),
            dq_tstamp: None,
            dq_count: None,
            avg_dq_rate: 0,
        }
    }

    /// The actual time between two updates.
    pub const fn period(&self) -> Duration {
        self.period
    }

    pub(super) fn probability(&self) -> f64 {
        (self.prob as f64 / MAX_PROB as f64).min(1.0)
    }

    pub(super) const fn qdelay(&self) -> Duration {
        Duration::from_nanos(self.qdelay << TICK_SHIFT)
    }

    pub(super) const fn burst_allowance(&self) -> Duration {
        Duration::from_nanos(self.burst_time << TICK_SHIFT)
    }

    pub(super) const fn forget_accumulated(&mut self) {
        self.accu_prob = 0;
    }

    /// True if an arriving packet of `bytes` is to be dropped or marked.
    #[inline(never)]
    pub(super) fn drop_early<P: Packet>(
        &mut self,
        bytes: u32,
        backlog: Backlog,
        env: &mut Environment<P>,
    ) -> bool {
        let calm = self.qdelay < self.target / 2 && self.prob < MAX_PROB / 5;
        if self.burst_time > 0 || calm || backlog.bytes < 2 * self.mtu {
            return false;
        }
        let bytes = u64::from(bytes);
        let p = if self.bytemode && bytes <= self.mtu && self.mtu > 0 {
            bytes * (self.prob / self.mtu)
        } else {
            self.prob
        };
        self.accu_prob = if p == 0 {
            0
        } else {
            self.accu_prob.wrapping_add(p)
        };
        if self.accu_prob < MAX_PROB / 100 * 85 {
            return false;
        }
        if self.accu_prob >= MAX_PROB / 2 * 17 {
            return true;
        }
        if env.random_u64() >> 8 < p {
            self.accu_prob = 0;
            return true;
        }
        false
    }

    pub(super) fn on_departure(
        &mut self,
        bytes: u32,
        sojourn: Duration,
        backlog: Backlog,
        now: Time,
    ) {
        let now = now.as_nanos() >> TICK_SHIFT;
        let elapsed = if self.dq_rate_estimator {
            self.measure_rate(bytes, backlog.bytes, now)
        } else {
            self.qdelay = if backlog.bytes == 0 {
                0
            } else {
                ticks(sojourn)
            };
            self.dq_tstamp.replace(now).map_or(0, |last| now - last)
        };
        self.burst_time = self.burst_time.saturating_sub(elapsed);
    }

    /// Updates the departure rate in bytes per 256 ticks; returns the length of a cycle that ended.
    fn measure_rate(&mut self, bytes: u32, backlog: u64, now: u64) -> u64 {
        if backlog >= QUEUE_THRESHOLD && self.dq_count.is_none() {
            self.dq_count = Some(0);
            self.dq_tstamp = Some(now);
        }
        let Some(count) = &mut self.dq_count else {
            return 0;
        };
        *count += u64::from(bytes);
        let span = now - self.dq_tstamp.unwrap_or(now);
        if *count < QUEUE_THRESHOLD || span == 0 {
            return 0;
        }
        let rate = (*count << RATE_SCALE) / span;
        self.avg_dq_rate = if self.avg_dq_rate == 0 {
            rate
        } else {
            self.avg_dq_rate - (self.avg_dq_rate >> 3) + (rate >> 3)
        };
        if backlog < QUEUE_THRESHOLD {
            self.dq_count = None;
        } else {
            self.dq_count = Some(0);
            self.dq_tstamp = Some(now);
        }
        span
    }

    /// The periodic update of the probability.
    pub(super) fn update(&mut self, backlog: Backlog) {
        if self.dq_rate_estimator {
            self.qdelay_old = self.qdelay;
            let delay = (backlog.bytes << RATE_SCALE)
                .checked_div(self.avg_dq_rate)
                .unwrap_or(0);
            self.qdelay = if self.ce_exclude && delay <= ticks(HIGH_DELAY) {
                ce_exclude::unmarked_part(delay, backlog)
            } else {
                delay
            };
        }
        let (delay, old) = (self.qdelay, self.qdelay_old);
        // With packets queued, a delay of zero is too short to measure and does not mean an idle queue.
        let idle = delay == 0 && old == 0 && backlog.bytes == 0;
        let step = self.step(delay, old);
        let raised = i128::from(self.prob) + i128::from(step);
        // Only a sum beyond 64 bits is cut to MAX_PROB: until then prob may exceed it, as in the kernel.
        let overflowed = raised > i128::from(u64::MAX);
        self.prob = if overflowed {
            MAX_PROB
        } else {
            raised.max(0) as u64
        };
        if idle && !overflowed {
            self.prob -= self.prob / 64;
        }
        let half = self.target / 2;
        let measured = !self.dq_rate_estimator || self.avg_dq_rate > 0;
        if delay < half && self.qdelay_old < half && self.prob == 0 && measured {
            self.restart();
        }
        if !self.dq_rate_estimator {
            self.qdelay_old = delay;
        }
    }

    fn step(&self, delay: u64, old: u64) -> i64 {
        let (mut alpha, mut beta) = (self.alpha, self.beta);
        if self.prob < MAX_PROB / 10 {
            let mut shift = 1;
            let mut bound = 100;
            while bound <= SMALLEST_BOUND && self.prob < MAX_PROB / bound {
                shift += 2;
                bound *= 10;
            }
            alpha >>= shift;
            beta >>= shift;
        }
        // Use wide sums and then truncate: real delays never reach the kernel's wrap at 64 bits.
        let away = i128::from(delay) - i128::from(self.target);
        let change = i128::from(delay) - i128::from(old);
        let step = i128::from(alpha) * away + i128::from(beta) * change;
        let mut step = step.clamp(i128::from(i64::MIN) / 2, i128::from(i64::MAX) / 2) as i64;
        if self.prob >= MAX_PROB / 10 && step > (MAX_PROB / 50) as i64 {
            step = (MAX_PROB / 100 * 2) as i64;
        }
        if delay > ticks(HIGH_DELAY) {
            step += (MAX_PROB / 50) as i64;
        }
        step
    }

    /// Resets all state except the delays; the probability is zero.
    fn restart(&mut self) {
        self.burst_time = self.max_burst;
        self.accu_prob = 0;
        self.dq_tstamp = None;
        self.dq_count = None;
        self.avg_dq_rate = 0;
    }
}
