//! DOCSIS-PIE: PIE for cable modems (RFC 8034 Appendix A).
//!
//! Differences from [`crate::pie`] other than parameters: the delay is the backlog divided by the modem's known rate;
//! probabilities are per mean packet and scaled by size, so they may exceed 1; the table of gains continues above 1;
//! below 5 ms the probability decays, above 200 ms it grows by an extra 2 %; drops are always spread evenly; the
//! algorithm is inactive until the buffer is a third full.
//!
//! Departure from the RFC: the link's rate serves as both its maximum sustained and its peak rate, so there is no
//! token bucket. DOCSIS-PIE has no ECN; `ecn = true` marks instead of dropping.

use alloc::boxed::Box;
use alloc::format;

use sojourn_units::{Duration, Rate, Time};

use crate::aqm::{Algorithm, Aqm, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters;
use crate::parameters::Parameters;
use crate::pie::float::{ACCU_HIGH, ACCU_LOW, STEPS_RFC8033, divisor};
use crate::single::Single;
use crate::verdict::Verdict;

/// INTERVAL: time between updates.
const INTERVAL: Duration = Duration::from_millis(16);
/// A, B: the gains, per second.
const ALPHA: f64 = 0.25;
const BETA: f64 = 2.5;
/// The probability decays when two delays in a row are below this.
const LATENCY_LOW: Duration = Duration::from_millis(5);
/// The probability grows faster when the delay is above this.
const LATENCY_HIGH: Duration = Duration::from_millis(200);
/// How long nothing is dropped after the algorithm becomes active.
const MAX_BURST: Duration = Duration::from_millis(142);
/// How long the queue must be quiet before the algorithm becomes inactive.
const BURST_RESET_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes of the mean and of the smallest packet.
const MEAN_PKTSIZE: f64 = 1024.0;
const MIN_PKTSIZE: f64 = 64.0;
/// Divisors above 1/10, following those of RFC 8033: the probability may exceed 1.
const STEPS_HIGH: &[(f64, f64)] = &[(1.0, 0.5), (10.0, 0.125), (f64::MAX, 0.031_25)];

parameters! {
    /// The parameters of DOCSIS-PIE. [`Config::new`] holds the defaults.
    pub struct Config {
        /// target queueing delay (LATENCY_TARGET)
        pub target: Duration,
        /// the modem's upstream rate, from which the delay is computed
        pub msr: Rate = "the link's rate",
    }
    besides {
        /// BUFFER_SIZE: the algorithm becomes active at a third of it.
        pub buffer: Limit,
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool,
    }
}

impl Config {
    /// The defaults of RFC 8034 for a link of this rate.
    pub const fn new(rate: Rate) -> Self {
        Self {
            target: Duration::from_millis(10),
            msr: rate,
            buffer: Limit::Packets(1000),
            ecn: false,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The queue was short for long enough: nothing is dropped.
    Inactive,
    /// Active, but quiet for this long.
    Quiescent(Duration),
    Active,
}

/// DOCSIS-PIE for one queue.
pub struct DocsisPie {
    config: Config,
    state: State,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: Duration,
    burst_allowance: Duration,
    next_update: Time,
}

impl DocsisPie {
    /// A DOCSIS-PIE before its first packet.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            state: State::Inactive,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: Duration::ZERO,
            burst_allowance: Duration::ZERO,
            next_update: Time::ZERO + INTERVAL,
        }
    }

    fn wake_if_third_full(&mut self, backlog: Backlog) {
        let third_full = match self.config.buffer {
            Limit::Packets(limit) => backlog.packets >= limit.div_ceil(3),
            Limit::Bytes(limit) => backlog.bytes >= limit.div_ceil(3),
        };
        if self.state == State::Inactive && third_full {
            self.state = State::Active;
            self.burst_allowance = MAX_BURST;
            self.qdelay_old = Duration::ZERO;
            self.drop_prob = 0.0;
            self.accu_prob = 0.0;
        }
    }

    fn drop_early<P: Packet>(
        &mut self,
        packet: &P,
        backlog: Backlog,
        env: &mut Environment<P>,
    ) -> bool {
        let half = self.config.target / 2;
        if self.state == State::Inactive
            || !self.burst_allowance.is_zero()
            || (self.qdelay_old < half && self.drop_prob < 0.2)
            || backlog.bytes as f64 <= 2.0 * MEAN_PKTSIZE
        {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        let p = (self.drop_prob * f64::from(packet.bytes()) / MEAN_PKTSIZE).min(ACCU_LOW);
        self.accu_prob += p;
        let hit = self.accu_prob >= ACCU_LOW && (self.accu_prob >= ACCU_HIGH || env.uniform() < p);
        if hit {
            self.accu_prob = 0.0;
        }
        hit
    }

    fn update_probability(&mut self, delay: Duration) {
        let (now, old) = (delay.as_secs_f64(), self.qdelay_old.as_secs_f64());
        let step = ALPHA * (now - self.config.target.as_secs_f64()) + BETA * (now - old);
        let steps = if self.drop_prob < 0.1 {
            STEPS_RFC8033
        } else {
            STEPS_HIGH
        };
        let mut step = step / divisor(steps, self.drop_prob);
        if self.drop_prob >= 0.1 {
            step = step.min(0.02);
        }
        self.drop_prob += step;
        if delay < LATENCY_LOW && self.qdelay_old < LATENCY_LOW {
            self.drop_prob *= 0.98;
        } else if delay > LATENCY_HIGH {
            self.drop_prob += 0.02;
        }
        let most = ACCU_LOW * MEAN_PKTSIZE / MIN_PKTSIZE;
        self.drop_prob = self.drop_prob.clamp(0.0, most);
    }

    fn update_state(&mut self, delay: Duration) {
        let half = self.config.target / 2;
        let quiet = delay < half
            && self.qdelay_old < half
            && self.drop_prob == 0.0
            && self.burst_allowance.is_zero();
        self.state = match self.state {
            State::Inactive => State::Inactive,
            State::Active | State::Quiescent(_) if !quiet => State::Active,
            State::Active => State::Quiescent(Duration::ZERO),
            State::Quiescent(so_far) if so_far + INTERVAL > BURST_RESET_TIMEOUT => State::Inactive,
            State::Quiescent(so_far) => State::Quiescent(so_far + INTERVAL),
        };
    }
}

impl<P: Packet> Aqm<P> for DocsisPie {
    fn on_enqueue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        _now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        self.wake_if_third_full(backlog);
        if !self.drop_early(packet, backlog, env) {
            Verdict::Pass
        } else if self.config.ecn && packet.ecn().is_capable() {
            Verdict::Mark
        } else {
            Verdict::DROP
        }
    }
}

impl Algorithm for DocsisPie {
    fn on_overflow(&mut self, backlog: Backlog, _now: Time) {
        self.wake_if_third_full(backlog);
        self.accu_prob = 0.0;
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_timer(&mut self, backlog: Backlog, now: Time) {
        self.next_update = now.saturating_add(INTERVAL);
        let delay = self.config.msr.tx_time(backlog.bytes);
        if self.burst_allowance.is_zero() {
            self.update_probability(delay);
        } else {
            self.drop_prob = 0.0;
            self.burst_allowance = self.burst_allowance.saturating_sub(INTERVAL);
        }
        self.update_state(delay);
        self.qdelay_old = delay;
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("drop_prob", self.drop_prob);
        visit("qdelay_ms", self.qdelay_old.as_millis_f64());
        visit("burst_allowance_ms", self.burst_allowance.as_millis_f64());
    }
}

/// `docsis_pie`.
pub fn docsis_pie<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "docsis_pie",
        summary: "PIE for cable modems",
        source: "RFC 8034",
        keys: Box::new(|| Config::new(Rate::from_mbps(10)).keys()),
        make: Box::new(|settings| {
            let config = Config::new(settings.rate).given(settings)?;
            let target = config.target;
            if target.is_zero() || target > Duration::from_secs(10) {
                let message = format!("got \"{target}\"; must be above 0 and at most 10 s");
                return Err(SettingError::new("target", message));
            }
            let config = Config {
                buffer: settings.limit_or(config.buffer),
                ecn: settings.ecn_or(config.ecn)?,
                ..config
            };
            let limit = config.buffer;
            Ok(Box::new(Single::new(DocsisPie::new(config), limit)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;

    /// 1 MB/s: a byte takes a microsecond.
    fn pie() -> DocsisPie {
        DocsisPie::new(Config {
            target: Duration::from_millis(10),
            msr: Rate::from_mbps(8),
            buffer: Limit::Bytes(300_000),
            ecn: false,
        })
    }

    fn queue(bytes: u64) -> Backlog {
        Backlog {
            packets: bytes / 1000,
            bytes,
            ce_bytes: 0,
            qdisc_bytes: bytes,
        }
    }

    fn arrival(pie: &mut DocsisPie, bytes: u64) -> Verdict {
        pie.on_enqueue(
            &Datagram::new(0, 1514),
            queue(bytes),
            Time::ZERO,
            &mut Environment::new(0),
        )
    }

    fn update(pie: &mut DocsisPie, bytes: u64) {
        let due = pie.next_timer().unwrap();
        pie.on_timer(queue(bytes), due);
        assert_eq!(pie.next_timer(), Some(due + INTERVAL));
    }

    #[test]
    fn it_is_inactive_until_the_buffer_is_a_third_full_and_then_lets_a_burst_pass() {
        let mut pie = pie();
        arrival(&mut pie, 99_999);
        assert_eq!(pie.state, State::Inactive);
        arrival(&mut pie, 100_000);
        assert_eq!((pie.state, pie.burst_allowance), (State::Active, MAX_BURST));
        // 142 ms are nine updates of 16 ms.
        for _ in 0..9 {
            assert!(!pie.burst_allowance.is_zero());
            update(&mut pie, 200_000);
            assert_eq!(pie.drop_prob, 0.0);
        }
        assert!(pie.burst_allowance.is_zero());
    }

    #[test]
    fn the_probability_moves_by_a_quarter_and_two_and_a_half_per_second() {
        // 0.25 x (30 - 10) ms + 2.5 x (30 - 20) ms = 0.005 + 0.025 = 0.03; /2048 below 1e-6, /2 below 0.1.
        for (before, after) in [(0.0, 0.03 / 2048.0), (0.05, 0.05 + 0.015), (0.5, 0.52)] {
            let mut pie = pie();
            pie.qdelay_old = Duration::from_millis(20);
            pie.drop_prob = before;
            update(&mut pie, 30_000);
            assert!(
                (pie.drop_prob - after).abs() < 1e-12,
                "{before}: {}",
                pie.drop_prob
            );
        }
    }

    #[test]
    fn the_probability_decays_below_5_ms_and_grows_faster_above_200() {
        let mut low = pie();
        low.drop_prob = 0.5;
        low.qdelay_old = Duration::from_millis(4);
        // Above 1/10 steps count twice: 0.25 x -6 ms x 2 = -0.003; then 0.98.
        update(&mut low, 4_000);
        assert!((low.drop_prob - 0.497 * 0.98).abs() < 1e-12);
        let mut high = pie();
        high.drop_prob = 0.5;
        high.qdelay_old = Duration::from_millis(201);
        update(&mut high, 201_000);
        assert!((high.drop_prob - 0.54).abs() < 1e-12);
    }

    #[test]
    fn after_a_quiet_second_it_becomes_inactive() {
        let mut pie = pie();
        pie.state = State::Active;
        // The first quiet update starts the clock; 63 of 16 ms are above one second.
        for _ in 0..63 {
            update(&mut pie, 0);
            assert_ne!(pie.state, State::Inactive);
        }
        update(&mut pie, 0);
        assert_eq!(pie.state, State::Inactive);
    }
}
