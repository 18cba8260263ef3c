//! ARED: Adaptive RED (Floyd, Gummadi and Shenker 2001), which adapts RED's `max_p` to the load.
//!
//! Every `adapt_interval` the average is compared with a band around the middle of the thresholds. Above the band,
//! max_p grows by alpha = min(0.01, max_p / 4), unless it is above 0.5; below it, max_p is multiplied by beta = 0.9,
//! unless it is below 0.01.
//!
//! The thresholds are given as for [`crate::red`], or by a target delay: half and one and a half of the target queue,
//! at least one and two full frames (Khademi, Ros and Welzl 2013, §3).
//!
//! Departures from the report: its lower threshold is at least 5 packets, ours one; a timer compares the average, as
//! in Linux, not arrivals; the gentle slope follows max_p. `variant = "linux-3.10"` is sch_red's `adaptive` as its
//! code intends. `variant = "linux"` is the behaviour of Linux 6.1 with its tc: tc 5.6 and later pass the flag in a
//! new attribute, but the kernel starts the timer by the old one, so max_p never changes. Measured: `tc -s -d qdisc`
//! shows `adaptive`, and the probability stays constant.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use sojourn_units::{Duration, Rate, Time};

use crate::aqm::{Algorithm, Aqm, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::{Key, SettingError};
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters::Parameters as _;
use crate::red::{self, Red, Rule, Unit, linux::ONE_PERCENT};
use crate::settings::Settings;
use crate::single::Single;
use crate::verdict::Verdict;
use crate::{choice, parameters};

parameters! {
    /// Thresholds given as a delay.
    struct Target {
        /// target queueing delay; sets min and max if they are not given
        target: Option<Duration>,
    }
}

parameters! {
    /// The parameters of the adaptation.
    pub struct Adaptation {
        /// time between two adaptations of max_p
        pub adapt_interval: Duration,
        /// largest increase of max_p per interval (max_p / 4 if that is less)
        pub alpha: f64 as Probability,
        /// factor of a decrease of max_p
        pub beta: f64 as Probability,
    }
    besides {
        /// max_p is not raised while it is above this.
        pub top: f64,
        /// max_p is not lowered while it is below this.
        pub bottom: f64,
    }
}

parameters! {
    struct Which {
        /// as published, or Linux's fixed point with tc's derived parameters; linux itself never adapts
        variant: Variant,
    }
}

const WHICH: Which = Which {
    variant: Variant::Floyd,
};

choice! {
    /// Which adaptive RED to follow.
    pub enum Variant {
        /// As published, in floating point.
        Floyd = "floyd",
        /// Linux 6.1 with its tc, which never adapts.
        Linux = "linux",
        /// Linux's sch_red as its code intends.
        Linux310 = "linux-3.10",
    }
}

impl Variant {
    /// The variant of the underlying RED.
    const fn red(self) -> red::Variant {
        match self {
            Self::Floyd => red::Variant::Floyd,
            Self::Linux | Self::Linux310 => red::Variant::Linux,
        }
    }

    /// The default target delay, used if neither it nor the thresholds are given; tc has none.
    const fn target(self) -> Target {
        Target {
            target: match self {
                Self::Floyd => Some(Duration::from_millis(5)),
                Self::Linux | Self::Linux310 => None,
            },
        }
    }
}

impl Default for Adaptation {
    fn default() -> Self {
        Self {
            adapt_interval: Duration::from_millis(500),
            alpha: 0.01,
            beta: 0.9,
            top: 0.5,
            bottom: 0.01,
        }
    }
}

/// Adaptive RED for one queue.
pub struct Ared {
    red: Red,
    /// `None` if max_p never changes.
    adaptation: Option<Adaptation>,
    next: Option<Time>,
}

impl Ared {
    /// An adaptive RED before its first packet; `red.max_p` is the initial max_p.
    pub fn new(red: red::Config, adaptation: Option<Adaptation>) -> Self {
        Self {
            red: Red::new(red),
            next: adaptation.map(|adaptation| Time::ZERO + adaptation.adapt_interval),
            adaptation,
        }
    }

    /// The underlying RED.
    pub const fn red(&self) -> &Red {
        &self.red
    }

    fn adapt(&mut self, adaptation: Adaptation, now: Time) {
        let (min, max) = (self.red.config().min, self.red.config().max);
        let Adaptation {
            alpha,
            beta,
            top,
            bottom,
            ..
        } = adaptation;
        match &mut self.red.rule {
            Rule::Floyd(floyd) => {
                let average = floyd.average_at(now);
                let max_p = floyd.max_p();
                let part = |part: f64| min as f64 + part * (max - min) as f64;
                if average > part(0.6) && max_p <= top {
                    floyd.set_max_p((max_p + alpha.min(max_p / 4.0)).min(1.0));
                } else if average < part(0.4) && max_p >= bottom {
                    floyd.set_max_p(max_p * beta);
                }
            }
            // Whole bytes, fifths of the distance and tenths of max_p, as in the kernel.
            Rule::Linux(linux) => {
                let average = linux.average_bytes_at(now);
                let max_p = linux.max_p_fixed();
                let fifth = (max - min) / 5;
                if average > min + 3 * fifth && max_p <= 50 * ONE_PERCENT {
                    linux.set_max_p_fixed(max_p + ONE_PERCENT.min(max_p / 4));
                } else if average < min + 2 * fifth && max_p >= ONE_PERCENT {
                    linux.set_max_p_fixed(max_p / 10 * 9);
                }
            }
        }
    }
}

impl<P: Packet> Aqm<P> for Ared {
    fn on_enqueue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        self.red.on_enqueue(packet, backlog, now, env)
    }

    fn on_dequeue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        self.red.on_dequeue(packet, backlog, now, env)
    }
}

impl Algorithm for Ared {
    fn on_overflow(&mut self, backlog: Backlog, now: Time) {
        self.red.on_overflow(backlog, now);
    }

    fn on_empty(&mut self, now: Time) {
        self.red.on_empty(now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.next
    }

    fn on_timer(&mut self, _backlog: Backlog, now: Time) {
        if let Some(adaptation) = self.adaptation {
            self.adapt(adaptation, now);
            self.next = Some(now.saturating_add(adaptation.adapt_interval));
        }
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.red.state(visit);
    }
}

pub(crate) fn keys() -> Vec<Key> {
    let targets: Vec<_> = Variant::ALL
        .iter()
        .map(|(word, variant)| (*word, variant.target()))
        .collect();
    let target = Target::keys_by_variant(&targets);
    let weight = "1 - exp(-1 / packets per second); linux: from burst";
    let red = red::keys_but(&[
        ("min", "by target; linux: max / 3"),
        ("max", "by target; linux: limit / 4"),
        ("weight", weight),
    ]);
    [target, Adaptation::default().keys(), WHICH.keys(), red].concat()
}

/// th_min and th_max in bytes for a target delay at a rate: half and one and a half of the target queue, at least one
/// and two frames of `mtu` bytes.
pub fn thresholds(rate: Rate, target: Duration, mtu: u32) -> (u64, u64) {
    let mtu = u64::from(mtu);
    let queue = rate.bytes_in(target);
    let min = (queue / 2).max(mtu);
    let max = (queue / 2).saturating_mul(3).max(2 * mtu);
    (min, max)
}

/// w_q = 1 - exp(-1/C), where C is the link's rate in packets per second (Floyd et al. 2001, §5).
fn automatic_weight(bandwidth: Rate, avpkt: u64) -> f64 {
    let packets_per_sec = bandwidth.bytes_per_sec() / avpkt as f64;
    -libm::expm1(-1.0 / packets_per_sec)
}

/// Reads the keys of the underlying RED; `limit` is the queue's limit.
pub(crate) fn config(settings: &Settings, limit: Limit) -> Result<red::Config, SettingError> {
    let variant = WHICH.given(settings)?.variant;
    let mut red = red::Parameters::read(settings, variant.red())?;
    let asked = Target { target: None }.given(settings)?;
    let (rate, mtu) = (settings.rate, settings.mtu);
    let thresholds_given = red.min.is_some() || red.max.is_some();
    // A resolved experiment holds both, so they are accepted together if they agree.
    let agrees = |target| {
        let (min, max) = thresholds(rate, target, mtu);
        let is =
            |given: Option<Limit>, wanted| given.is_none_or(|it| red::bytes(it, mtu) == wanted);
        is(red.min, min) && is(red.max, max)
    };
    if thresholds_given && !asked.target.is_none_or(agrees) {
        let message = "excludes min and max, which it would set: give one or the other";
        return Err(SettingError::new("target", message));
    }
    if variant == Variant::Floyd && red.weight.is_none() && red.burst.is_none() {
        red.weight = Some(automatic_weight(red.bandwidth, red.avpkt));
    }
    let target = asked.target.or(variant.target().target);
    match target.filter(|_| !thresholds_given) {
        Some(target) => {
            let (min, max) = thresholds(rate, target, mtu);
            Target {
                target: Some(target),
            }
            .note(settings);
            red.config_between(settings, variant.red(), Unit::Bytes, min, max)
        }
        None => red.config(settings, variant.red(), limit),
    }
}

/// Reads the keys of the adaptation; `None` if the variant does not adapt.
pub(crate) fn adaptation(settings: &Settings) -> Result<Option<Adaptation>, SettingError> {
    let variant = WHICH.given(settings)?.variant;
    let default = Adaptation::default();
    let given = default.given(settings)?;
    if given.adapt_interval.is_zero() {
        let message = format!("got \"{}\"; must be above 0", given.adapt_interval);
        return Err(SettingError::new("adapt_interval", message));
    }
    for (key, given, fixed) in [
        ("alpha", given.alpha, default.alpha),
        ("beta", given.beta, default.beta),
    ] {
        if variant != Variant::Floyd && given != fixed {
            let message = format!("is fixed at {fixed} in Linux's variants: omit this or variant");
            return Err(SettingError::new(key, message));
        }
    }
    if variant == Variant::Linux {
        given.forget(settings);
        return Ok(None);
    }
    Ok(Some(given))
}

/// `ared`.
pub fn ared<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "ared",
        summary: "adaptive RED: RED whose drop probability follows the load",
        source: "Floyd, Gummadi and Shenker 2001",
        keys: Box::new(keys),
        make: Box::new(|settings| {
            let limit = settings.limit_or(Limit::Packets(1000));
            let ared = Ared::new(config(settings, limit)?, adaptation(settings)?);
            Ok(Box::new(Single::new(ared, limit)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;
    use sojourn_units::Value;

    /// An ARED of one variant with thresholds of 10 and 30 kB and weight 1, whose average was set by arrivals at
    /// `queue` bytes.
    fn at(variant: red::Variant, max_p: f64, queue: u64) -> Ared {
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        settings.values = Vec::from([
            ("min".into(), Value::Bytes(10_000)),
            ("max".into(), Value::Bytes(30_000)),
            ("weight".into(), Value::Number(0.5)),
            ("probability".into(), Value::Number(max_p)),
        ]);
        if variant == red::Variant::Linux {
            settings
                .values
                .push(("variant".into(), Value::Word("linux".into())));
        }
        let config = config(&settings, Limit::Bytes(100_000)).unwrap();
        let mut ared = Ared::new(config, Some(Adaptation::default()));
        let backlog = Backlog {
            packets: queue / 1000,
            bytes: queue,
            ce_bytes: 0,
            qdisc_bytes: queue,
        };
        for _ in 0..100 {
            let mut env = Environment::new(1);
            ared.on_enqueue(&Datagram::new(0, 1514), backlog, Time::ZERO, &mut env);
        }
        ared
    }

    fn max_p_after_one_interval(mut ared: Ared) -> f64 {
        let due = ared.next_timer().unwrap();
        assert_eq!(due, Time::from_millis(500));
        ared.on_timer(Backlog::default(), due);
        assert_eq!(ared.next_timer(), Some(Time::from_secs(1)));
        ared.red().max_p()
    }

    #[test]
    fn max_p_rises_above_the_band_falls_below_it_and_is_kept_within() {
        // The band is 18 to 22 kB. Up by min(0.01, max_p/4), down to nine tenths (Floyd et al. 2001, §4).
        for variant in [red::Variant::Floyd, red::Variant::Linux] {
            for (queue, before, after) in [
                (25_000, 0.1, 0.11),
                (25_000, 0.02, 0.025),
                (15_000, 0.1, 0.09),
                (20_000, 0.1, 0.1),
                (25_000, 0.6, 0.6),
                (15_000, 0.005, 0.005),
            ] {
                let max_p = max_p_after_one_interval(at(variant, before, queue));
                assert!(
                    (max_p - after).abs() < 1e-6,
                    "{variant:?} at {queue} B: {before} -> {max_p}"
                );
            }
        }
    }

    /// Linux 6.1 with tc 6.1: `adaptive` is accepted and shown, but nothing adapts.
    #[test]
    fn linux_6_1_never_changes_max_p() {
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        settings.values = Vec::from([("variant".into(), Value::Word("linux".into()))]);
        assert_eq!(adaptation(&settings).unwrap(), None);
        settings.values = Vec::from([("variant".into(), Value::Word("linux-3.10".into()))]);
        assert_eq!(adaptation(&settings).unwrap(), Some(Adaptation::default()));
    }

    #[test]
    fn thresholds_follow_the_target_delay_down_to_one_and_two_frames() {
        // Khademi et al. 2013: 10 Mbit/s x 5 ms = 6250 B; 10 Mbit/s x 1 ms = 1250 B, below a frame.
        let rate = Rate::from_mbps(10);
        let at = |ms| thresholds(rate, Duration::from_millis(ms), 1514);
        assert_eq!(at(5), (3125, 9375));
        assert_eq!(at(30), (18_750, 56_250));
        assert_eq!(at(1), (1514, 3028));
    }

    #[test]
    fn the_automatic_weight_is_that_of_one_second_of_packets() {
        // 10 Mbit/s in packets of 1250 B are 1000 a second: 1 - exp(-1/1000) = 0.00099950.
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        settings.values = Vec::from([("avpkt".into(), Value::Bytes(1250))]);
        let config = config(&settings, Limit::Packets(1000)).unwrap();
        assert!((config.weight - 0.000_999_500_2).abs() < 1e-10);
    }

    #[test]
    fn the_weight_is_the_one_tc_derives() {
        // tc: red limit 150000 min 12500 max 37500 avpkt 1000 burst 21 bandwidth 10Mbit adaptive, which tc
        // turns into a weight of 1/16.
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        settings.values = Vec::from([
            ("min".into(), Value::Bytes(12_500)),
            ("max".into(), Value::Bytes(37_500)),
            ("avpkt".into(), Value::Bytes(1000)),
            ("burst".into(), Value::Packets(21)),
            ("bandwidth".into(), Value::Rate(Rate::from_mbps(10))),
            ("variant".into(), Value::Word("linux".into())),
        ]);
        let config = config(&settings, Limit::Bytes(150_000)).unwrap();
        assert_eq!((config.min, config.max), (12_500, 37_500));
        assert_eq!((config.weight, config.max_p), (1.0 / 16.0, 0.02));
    }

    #[test]
    fn without_thresholds_linux_takes_them_from_the_limit() {
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        settings.values = Vec::from([("variant".into(), Value::Word("linux".into()))]);
        let tcs = config(&settings, Limit::Bytes(120_000)).unwrap();
        assert_eq!((tcs.min, tcs.max), (10_000, 30_000));
        let target = Value::Duration(Duration::from_millis(5));
        settings.values.push(("target".into(), target));
        let ours = config(&settings, Limit::Bytes(120_000)).unwrap();
        assert_eq!((ours.min, ours.max), (3125, 9375));
    }

    #[test]
    fn a_target_beside_thresholds_is_refused() {
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        settings.values = Vec::from([
            ("min".into(), Value::Bytes(12_500)),
            ("target".into(), Value::Duration(Duration::from_millis(5))),
        ]);
        assert_eq!(
            config(&settings, Limit::Packets(100)).unwrap_err().key,
            "target"
        );
    }
}
