//! RED's rule as in Linux (sch_red, 6.1) and the parameters that tc derives for it.
//!
//! The average is kept in bytes with `weight_log` binary places, and its weight is 2^-`weight_log`. One random number
//! is drawn per gap between drops and compared with the count times the excess over `min`. At `max` every packet is
//! dropped or marked; there is no gentle slope.
//!
//! tc computes the table of idle decay in scheduler ticks of 64 ns, but the kernel reads it in microseconds. Therefore
//! an idle queue's average decays 15.625 times more slowly than in the published rule. This behaviour is kept.

use sojourn_units::Time;

use super::{Config, Decision, slot};

/// Scheduler ticks, the unit of tc's transmission times.
const TICK_NANOS: f64 = 64.0;
/// The table's largest shift: a larger one would leave nothing of the average.
const STAB_MAX: f64 = 31.0;
/// Probabilities are in 2^-32.
const ONE: f64 = 4_294_967_296.0;
/// One per cent in 2^-32, the unit and lower bound of the adaptation.
pub(crate) const ONE_PERCENT: u32 = 42_949_673;

/// The state of Linux's rule.
pub struct Linux {
    min: u64,
    max: u64,
    weight_log: u8,
    max_p: u32,
    /// max_p divided by the distance of the thresholds: probability per byte of excess, in 2^-32.
    max_p_delta: u32,
    cell_log: u8,
    stab: [u8; 256],
    /// The average in bytes times 2^`weight_log`.
    qavg: u64,
    count: i64,
    /// Bytes of excess times packets at which the next drop is due.
    random: u64,
    idle_since: Option<Time>,
}

impl Linux {
    /// The rule before its first packet. `config.weight` is rounded to the nearest power of two.
    pub fn new(config: Config) -> Self {
        let weight_log = (-libm::log2(config.weight) + 0.5).clamp(0.0, 31.0) as u8;
        let (cell_log, stab) = idle_table(weight_log, slot(&config).as_nanos() as f64 / TICK_NANOS);
        let mut rule = Self {
            min: config.min,
            max: config.max,
            weight_log,
            max_p: 0,
            max_p_delta: 1,
            cell_log,
            stab,
            qavg: 0,
            count: -1,
            random: 0,
            idle_since: None,
        };
        rule.max_p = (config.max_p * ONE) as u32;
        // Division truncates here and rounds in `set_max_p`, as in Linux.
        rule.max_p_delta = (rule.max_p / rule.distance()).max(1);
        rule
    }

    fn distance(&self) -> u32 {
        (self.max - self.min).clamp(1, u64::from(u32::MAX)) as u32
    }

    /// The average queue length in bytes.
    pub fn average(&self) -> f64 {
        self.qavg as f64 / (1_u64 << self.weight_log) as f64
    }

    /// The probability at the upper threshold.
    pub fn max_p(&self) -> f64 {
        f64::from(self.max_p) / ONE
    }

    /// The average at `now` without an arrival, in whole bytes.
    pub(crate) fn average_bytes_at(&self, now: Time) -> u64 {
        self.decayed(now) >> self.weight_log
    }

    pub(crate) const fn max_p_fixed(&self) -> u32 {
        self.max_p
    }

    pub(crate) fn set_max_p_fixed(&mut self, max_p: u32) {
        self.max_p = max_p;
        let distance = u64::from(self.distance());
        self.max_p_delta = ((u64::from(max_p) + distance / 2) / distance).max(1) as u32;
    }

    /// Updates the average at an arrival. After idle time it only decays; the empty queue itself is not averaged in.
    pub(crate) fn observe(&mut self, queue: u64, now: Time) {
        if self.idle_since.is_some() {
            self.qavg = self.decayed(now);
            self.idle_since = None;
        } else {
            self.qavg = self.qavg - (self.qavg >> self.weight_log) + queue.min(u64::from(u32::MAX));
        }
    }

    pub(crate) fn decide(&mut self, random: &mut dyn FnMut() -> u64) -> Decision {
        if self.qavg < self.min << self.weight_log {
            self.count = -1;
            return Decision::Pass;
        }
        if self.qavg >= self.max << self.weight_log {
            self.count = -1;
            return Decision::Forced;
        }
        self.count += 1;
        if self.count > 0 {
            let excess = (self.qavg - (self.min << self.weight_log)) >> self.weight_log;
            if excess.saturating_mul(self.count as u64) < self.random {
                return Decision::Pass;
            }
            self.count = 0;
            self.random = self.draw(random);
            return Decision::Early;
        }
        self.random = self.draw(random);
        Decision::Pass
    }

    /// A 32-bit random number divided by the probability per byte: uniform on [0, 1/p) in units of excess.
    fn draw(&self, random: &mut dyn FnMut() -> u64) -> u64 {
        (random() >> 32) / u64::from(self.max_p_delta)
    }

    pub(crate) fn on_empty(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    fn decayed(&self, now: Time) -> u64 {
        let Some(since) = self.idle_since else {
            return self.qavg;
        };
        let longest = 255_u64 << self.cell_log;
        let micros = now.saturating_since(since).as_micros().min(longest);
        let shift = self.stab[(micros >> self.cell_log) as usize & 255];
        if shift > 0 {
            self.qavg >> shift
        } else {
            // Interpolate the first step of the table, which starts at a shift of zero.
            let part = ((u128::from(self.qavg) * u128::from(micros)) >> self.cell_log) as u64;
            self.qavg - part.min(self.qavg / 2)
        }
    }
}

/// tc's weight as the exponent of a half, 1 to 31: the largest weight at which a burst of `burst` packets onto an
/// empty queue leaves the average below `min`. `None` if there is none.
pub(crate) fn weight_log(min: u64, burst: u64, avpkt: u64) -> Option<u8> {
    let excess = burst as f64 + 1.0 - min as f64 / avpkt as f64;
    if excess < 1.0 {
        return None;
    }
    (1..32).find(|&log| {
        let weight = libm::ldexp(1.0, -i32::from(log));
        excess <= (1.0 - libm::pow(1.0 - weight, burst as f64)) / weight
    })
}

/// tc's table of shifts by idle time: entry i holds -ln(1-w) x (i << cell_log) / slot, at most 31.
fn idle_table(weight_log: u8, slot_ticks: f64) -> (u8, [u8; 256]) {
    let weight = libm::ldexp(1.0, -i32::from(weight_log));
    let decay = -libm::log1p(-weight.min(0.999_999)) / slot_ticks.max(1e-9);
    let longest = STAB_MAX / decay;
    let cell_log = (0..31)
        .find(|&log| longest / f64::from(1_u32 << log) < 512.0)
        .unwrap_or(31);
    let mut stab = [0; 256];
    for (cell, shift) in stab.iter_mut().enumerate() {
        *shift = (libm::ldexp(cell as f64, i32::from(cell_log)) * decay).min(STAB_MAX) as u8;
    }
    stab[255] = STAB_MAX as u8;
    (cell_log, stab)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tc_derives_a_sixteenth_from_burst_21() {
        // min 12.5 mean packets: 22 - 12.5 = 9.5. w = 1/8: 8 x (1 - 0.875^21) = 7.5, too little;
        // w = 1/16: 16 x (1 - 0.9375^21) = 11.9, enough.
        assert_eq!(weight_log(12_500, 21, 1000), Some(4));
    }

    #[test]
    fn a_burst_shorter_than_min_has_no_weight() {
        assert_eq!(weight_log(12_500, 11, 1000), None);
    }

    #[test]
    fn the_idle_table_is_the_one_tc_sends() {
        // As sent by tc 6.1 for avpkt 1000 bandwidth 10Mbit, weight 1/16 (800 us are 12500 ticks): cell_log 14; twelve
        // zeros, then ones, 21 at entry 254 and 31 at the last.
        let (cell_log, stab) = idle_table(4, 12_500.0);
        assert_eq!(cell_log, 14);
        assert_eq!((stab[11], stab[12], stab[23], stab[24]), (0, 1, 1, 2));
        assert_eq!((stab[254], stab[255]), (21, 31));
    }
}
