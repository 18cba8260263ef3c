//! PIE: proportional integral controller enhanced (RFC 8033; Pan et al. 2013).
//!
//! Drops or marks arrivals at random. Every `tupdate` the probability changes by `alpha (d - target) + beta (d -
//! d_old)`, where d is the queueing delay; the smaller the probability, the smaller the steps. A burst onto an idle
//! queue passes, and a short queue is left alone.
//!
//! | variant | who | delay measured by | target, tupdate, burst |
//! | --- | --- | --- | --- |
//! | `rfc8033` | RFC 8033 Appendix A; each addition of Appendix B is an option | time stamps | 15, 15, 150 ms |
//! | `linux` | Linux 6.1, bit for bit ([`linux`]) | time stamps | 15, 15, 150 ms |
//! | `2013` | the paper of 2013 and Linux up to 5.0 | departure rate | 20, 30, 100 ms |
//!
//! Departures from RFC 8033 Appendix A: the mean packet of the short-queue rule is a full frame; a separate timer
//! drives the update. Departures of `2013` from Linux up to 5.0: floating point instead of integers, `tupdate` is not
//! rounded to timer ticks, and ECN has no upper limit by default.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

use crate::aqm::{Algorithm, Aqm, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::settings::Settings;
use crate::single::Single;
use crate::verdict::Verdict;
use crate::{ce_exclude, choice, parameters};

pub mod departure;
pub mod float;
pub mod linux;

use float::Float;
use linux::Linux;

/// Above this delay CE-marked packets count in spite of `ce_exclude`; with the variants `linux` and `2013` the
/// probability also grows by a further 0.02 per update.
pub(crate) const HIGH_DELAY: Duration = Duration::from_millis(250);

parameters! {
    /// The parameters of PIE. [`Config::rfc8033`] and its siblings hold the defaults.
    pub struct Config {
        /// target queueing delay (QDELAY_REF)
        pub target: Duration,
        /// time between updates of the drop probability; linux rounds it up to its timer's ticks
        pub tupdate: Duration,
        /// gain on the delay's deviation from target, per second; linux: in sixteenths, as in tc
        pub alpha: f64,
        /// gain on the change of the delay, per second; linux: in sixteenths, as in tc
        pub beta: f64,
        /// duration of a burst onto an idle queue that passes (MAX_BURST)
        pub max_burst: Duration,
        /// mark ECN-capable packets up to this probability, drop them above it
        pub ecn_threshold: f64 as Probability,
        /// take smaller steps while the probability is small (auto-tuning, RFC 8033, section 4.2); always on in linux
        pub autotune: bool,
        /// spread drops evenly (RFC 8033, section 5.4); always on in linux
        pub derandomize: bool,
        /// limit a step to 0.02 once the probability is 0.1 (RFC 8033, section 5.5); always on in linux and 2013
        pub cap: bool,
        /// let the probability decay when the delay is below half the target, not only when it is zero (RFC 8033,
        /// appendix B)
        pub early_decay: bool,
        /// deactivate PIE while the queue is below a third of its limit and the delay is low (RFC 8033, section 5.3)
        pub rest: bool,
        /// scale the probability by packet size
        pub bytemode: bool,
        /// estimate the delay as backlog / departure rate instead of from time stamps
        pub dq_rate_estimator: bool,
        /// do not count CE-marked packets in the delay or queue length that drives drops
        pub ce_exclude: bool,
        /// RFC 8033, Linux 6.1's fixed point, or the algorithm of 2013
        pub variant: Variant,
    }
    besides {
        /// Time from the start until the first update.
        pub first_update: Duration,
        /// A full frame in bytes. A queue of up to two frames is short.
        pub mtu: u32,
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool,
        /// The queue's limit; with `rest`, PIE becomes active at a third of it.
        pub limit: Limit,
    }
}

choice! {
    /// Which specification or implementation to follow.
    pub enum Variant {
        /// RFC 8033 Appendix A, and B by option.
        Rfc8033 = "rfc8033",
        /// Linux 6.1.
        Linux = "linux",
        /// The paper of 2013 and Linux up to 5.0.
        Draft2013 = "2013",
    }
}

impl Config {
    /// The defaults of RFC 8033 (§4.2, §4.4, §5.1) for frames of `mtu` bytes, without Appendix B's options.
    pub const fn rfc8033(mtu: u32) -> Self {
        Self {
            variant: Variant::Rfc8033,
            target: Duration::from_millis(15),
            tupdate: Duration::from_millis(15),
            first_update: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Duration::from_millis(150),
            mtu,
            ecn: false,
            ecn_threshold: 0.1,
            autotune: true,
            derandomize: false,
            cap: false,
            early_decay: false,
            bytemode: false,
            dq_rate_estimator: false,
            rest: false,
            ce_exclude: false,
            limit: Limit::Packets(1000),
        }
    }

    /// The defaults of Linux 6.1 for frames of `mtu` bytes.
    pub const fn linux(mtu: u32) -> Self {
        Self {
            variant: Variant::Linux,
            alpha: 2.0,
            beta: 20.0,
            first_update: linux::first_update(Self::rfc8033(mtu).tupdate, Duration::ZERO),
            derandomize: true,
            cap: true,
            ..Self::rfc8033(mtu)
        }
    }

    /// The defaults of 2013 (Pan et al. 2013 §IV; Linux to 5.0) for frames of `mtu` bytes.
    pub const fn draft2013(mtu: u32) -> Self {
        Self {
            variant: Variant::Draft2013,
            target: Duration::from_millis(20),
            tupdate: Duration::from_millis(30),
            first_update: Duration::from_millis(30),
            max_burst: Duration::from_millis(100),
            ecn_threshold: 1.0,
            cap: true,
            dq_rate_estimator: true,
            ..Self::rfc8033(mtu)
        }
    }

    /// The defaults of a variant for frames of `mtu` bytes.
    pub const fn of(variant: Variant, mtu: u32) -> Self {
        match variant {
            Variant::Rfc8033 => Self::rfc8033(mtu),
            Variant::Linux => Self::linux(mtu),
            Variant::Draft2013 => Self::draft2013(mtu),
        }
    }
}

/// PIE for one queue.
#[derive(Clone)]
pub struct Pie {
    config: Config,
    next_update: Time,
    control: Control,
}

#[derive(Clone)]
enum Control {
    Float(Float),
    Linux(Linux),
}

impl Pie {
    /// A PIE before its first packet.
    pub fn new(config: Config) -> Self {
        Self {
            next_update: Time::ZERO + config.first_update,
            control: match config.variant {
                Variant::Linux => Control::Linux(Linux::new(config)),
                Variant::Rfc8033 | Variant::Draft2013 => Control::Float(Float::new(config)),
            },
            config,
        }
    }

    /// Its parameters.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Probability of a drop, 0 to 1.
    pub fn probability(&self) -> f64 {
        match &self.control {
            Control::Float(float) => float.probability(),
            Control::Linux(linux) => linux.probability(),
        }
    }

    /// The queueing delay at the last measurement.
    pub fn qdelay(&self) -> Duration {
        match &self.control {
            Control::Float(float) => float.qdelay(),
            Control::Linux(linux) => linux.qdelay(),
        }
    }

    /// The remaining burst allowance.
    pub fn burst_allowance(&self) -> Duration {
        match &self.control {
            Control::Float(float) => float.burst_allowance(),
            Control::Linux(linux) => linux.burst_allowance(),
        }
    }

    fn forget_accumulated(&mut self) {
        match &mut self.control {
            Control::Float(float) => float.forget_accumulated(),
            Control::Linux(linux) => linux.forget_accumulated(),
        }
    }
}

impl<P: Packet> Aqm<P> for Pie {
    #[inline(always)]
    fn on_enqueue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        _now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        let hit = match &mut self.control {
            Control::Float(float) => float.drop_early(packet.bytes(), backlog, env),
            Control::Linux(linux) => linux.drop_early(packet.bytes(), backlog, env),
        };
        if !hit {
            return Verdict::Pass;
        }
        let marks = self.probability() <= self.config.ecn_threshold;
        if self.config.ecn && marks && packet.ecn().is_capable() {
            return Verdict::Mark;
        }
        self.forget_accumulated();
        Verdict::DROP
    }

    fn on_dequeue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        _env: &mut Environment<P>,
    ) -> Verdict {
        let sojourn = now.saturating_since(packet.enqueued());
        let sojourn = if self.config.ce_exclude {
            ce_exclude::unmarked_delay(sojourn, backlog, HIGH_DELAY)
        } else {
            sojourn
        };
        match &mut self.control {
            Control::Float(float) => float.on_departure(packet.bytes(), sojourn, backlog, now),
            Control::Linux(linux) => linux.on_departure(packet.bytes(), sojourn, backlog, now),
        }
        Verdict::Pass
    }
}

impl Algorithm for Pie {
    fn change(&mut self, settings: &Settings, limit: Limit) -> Result<(), SettingError> {
        let now = &self.config;
        let new = config(settings, now.variant, limit)?;
        for (key, stays) in [
            ("variant", new.variant == now.variant),
            (
                "dq_rate_estimator",
                new.dq_rate_estimator == now.dq_rate_estimator,
            ),
            ("rest", new.rest == now.rest),
        ] {
            if !stays {
                return Err(SettingError::fixed(key));
            }
        }
        match &mut self.control {
            Control::Float(float) => float.change(new),
            Control::Linux(_) => return Err(SettingError::unchangeable()),
        }
        self.config = new;
        Ok(())
    }

    fn on_overflow(&mut self, _backlog: Backlog, _now: Time) {
        self.forget_accumulated();
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn keeps_timer(&self) -> bool {
        true
    }

    fn on_timer(&mut self, backlog: Backlog, now: Time) {
        let period = match &mut self.control {
            Control::Float(float) => {
                float.update(backlog);
                self.config.tupdate
            }
            Control::Linux(linux) => {
                linux.update(backlog);
                linux.period()
            }
        };
        self.next_update = now.saturating_add(period);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("probability", self.probability());
        visit("qdelay_ms", self.qdelay().as_millis_f64());
        visit("burst_allowance_ms", self.burst_allowance().as_millis_f64());
    }
}

/// The defaults of all variants, beginning with the default variant.
pub(crate) fn defaults(first: Variant) -> Vec<(&'static str, Config)> {
    let mut variants = Vec::from(Variant::ALL);
    variants.sort_by_key(|(_, variant)| *variant != first);
    let variants = variants.into_iter();
    variants
        .map(|(word, variant)| (word, Config::of(variant, 0)))
        .collect()
}

/// Reads the keys. `variant` is the default of that key, `limit` the queue's limit.
pub(crate) fn config(
    settings: &Settings,
    variant: Variant,
    limit: Limit,
) -> Result<Config, SettingError> {
    let default = Config::of(settings.variant_or(variant)?, settings.mtu);
    let config = default.given(settings)?;
    config.check(&default)?;
    Ok(Config {
        first_update: match config.variant {
            Variant::Linux => linux::first_update(config.tupdate, settings.age),
            Variant::Rfc8033 | Variant::Draft2013 => config.tupdate,
        },
        ecn: settings.ecn_or(default.ecn)?,
        limit,
        ..config
    })
}

impl Config {
    /// # Errors
    /// A parameter is out of range, or this variant fixes it to another value.
    fn check(&self, default: &Self) -> Result<(), SettingError> {
        for (key, span) in [("target", self.target), ("tupdate", self.tupdate)] {
            if span.is_zero() || span > Duration::from_secs(10) {
                let message = format!("got \"{span}\"; must be above 0 and at most 10 s");
                return Err(SettingError::new(key, message));
            }
        }
        let linux = self.variant == Variant::Linux;
        for (key, gain) in [("alpha", self.alpha), ("beta", self.beta)] {
            if linux && !((0.0..=32.0).contains(&gain) && gain == libm::trunc(gain)) {
                let message = format!(
                    "got {gain}; must be a whole number from 0 to 32, in sixteenths as in tc"
                );
                return Err(SettingError::new(key, message));
            }
            if !(0.0..=1000.0).contains(&gain) {
                let message = format!("got {gain}; must be from 0 to 1000");
                return Err(SettingError::new(key, message));
            }
        }
        let rfc = self.variant == Variant::Rfc8033;
        for (key, free, given, fixed) in [
            ("autotune", !linux, self.autotune, default.autotune),
            ("derandomize", !linux, self.derandomize, default.derandomize),
            ("cap", rfc, self.cap, default.cap),
            ("early_decay", rfc, self.early_decay, default.early_decay),
            ("rest", rfc, self.rest, default.rest),
        ] {
            if !free && given != fixed {
                let message = format!("got {given}; this variant has it {fixed}");
                return Err(SettingError::new(key, message));
            }
        }
        Ok(())
    }
}

/// `pie`.
pub fn pie<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "pie",
        summary: "PI controller enhanced: drops on arrival to hold the queueing delay",
        source: "RFC 8033",
        keys: Box::new(|| Config::keys_by_variant(&defaults(Variant::Rfc8033))),
        make: Box::new(|settings| {
            let limit = settings.limit_or(Limit::Packets(1000));
            let config = config(settings, Variant::Rfc8033, limit)?;
            Ok(Box::new(Single::new(Pie::new(config), limit)))
        }),
    }
}

#[cfg(test)]
mod tests;
