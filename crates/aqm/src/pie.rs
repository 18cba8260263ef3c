//! PIE: proportional integral controller enhanced (RFC 8033; Pan et al. 2013).
//!
//! Drops or marks arrivals at random. Every `tupdate` the probability moves by
//! `alpha (d - target) + beta (d - d_old)`, d the queueing delay, in steps that are smaller the smaller it
//! is. A burst onto an idle queue passes, and a short queue is left alone.
//!
//! | variant | who | delay measured by | target, tupdate, burst |
//! | --- | --- | --- | --- |
//! | `rfc8033` | RFC 8033 Appendix A; what Appendix B adds is an option each | time stamps | 15, 15, 150 ms |
//! | `linux` | Linux 6.1, bit for bit ([`linux`]) | time stamps | 15, 15, 150 ms |
//! | `2013` | the paper's and Linux's of 2013 (to 5.0) | departure rate | 20, 30, 100 ms |
//!
//! Departures from RFC 8033 Appendix A: the mean packet of the short-queue rule is a full frame; the
//! update is made by a timer of its own. From Linux to 5.0 in `2013`: floating point instead of its
//! integers, no rounding of `tupdate` to its timer's ticks, ECN without an upper limit by default.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use sojourn_units::{Duration, Kind, Time};

use crate::aqm::{Aqm, Backlog, Verdict};
use crate::catalogue::{Discipline, Key, SettingError, join_keys};
use crate::ce_exclude;
use crate::packet::Packet;
use crate::qdisc::{Environment, Limit};
use crate::settings::Settings;
use crate::single::Single;

pub mod departure;
pub mod float;
pub mod linux;

use float::Float;
use linux::Linux;

/// Delay from which on CE-marked packets count in spite of `ce_exclude`, and probability grows by an
/// extra 2 % per update in the Linux variants.
pub(crate) const HIGH_DELAY: Duration = Duration::from_millis(250);

/// The parameters of PIE. [`Config::rfc8033`] and its siblings hold the defaults.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Whose PIE.
    pub variant: Variant,
    /// QDELAY_REF: queueing delay to hold.
    pub target: Duration,
    /// T_UPDATE: time between updates of the probability.
    pub tupdate: Duration,
    /// Time from the start to the first update.
    pub first_update: Duration,
    /// Weight of the delay's distance from `target`, per second.
    pub alpha: f64,
    /// Weight of the delay's change, per second.
    pub beta: f64,
    /// MAX_BURST: how long a burst onto an idle queue passes.
    pub max_burst: Duration,
    /// A full frame in bytes; two of them are a short queue.
    pub mtu: u32,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// mark_ecnth: probability up to which that is done (RFC 8033 §5.1).
    pub ecn_threshold: f64,
    /// Auto-tuning: scale the step of the probability down while the probability is small (§4.2). The paper's Eq. 2
    /// has none.
    pub autotune: bool,
    /// Spread drops: none before the probabilities passed sum to 0.85, one for sure at 8.5 (§5.4).
    pub derandomize: bool,
    /// Let the probability grow by at most 0.02 an update once it is 0.1 (§5.5).
    pub cap: bool,
    /// Decay the probability while the delays are below half the target (Appendix B), not only at zero.
    pub early_decay: bool,
    /// Scale the probability by packet size over `mtu`.
    pub bytemode: bool,
    /// Estimate the delay as backlog over departure rate (§5.2) instead of by time stamps.
    pub dq_rate_estimator: bool,
    /// Rest while the queue is below a third of this limit and calm (§5.3).
    pub rest_below: Option<Limit>,
    /// Leave CE-marked packets out of the delay while it is below 250 ms.
    pub ce_exclude: bool,
}

/// Whose PIE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// RFC 8033 Appendix A, and B by option.
    Rfc8033,
    /// Linux 6.1.
    Linux,
    /// The paper of 2013 and Linux to 5.0.
    Draft2013,
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
            rest_below: None,
            ce_exclude: false,
        }
    }

    /// The defaults of Linux 6.1 for frames of `mtu` bytes.
    pub const fn linux(mtu: u32) -> Self {
        Self {
            variant: Variant::Linux,
            first_update: Duration::from_millis(500),
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
}

/// PIE for one queue.
pub struct Pie {
    config: Config,
    next_update: Time,
    control: Control,
}

enum Control {
    Float(Float),
    Linux(Linux),
}

impl Pie {
    /// A PIE that has seen no packet.
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

    /// The queueing delay by the last measurement.
    pub fn qdelay(&self) -> Duration {
        match &self.control {
            Control::Float(float) => float.qdelay(),
            Control::Linux(linux) => linux.qdelay(),
        }
    }

    /// What is left of the burst that passes.
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

impl Aqm for Pie {
    fn on_enqueue<P: Packet>(
        &mut self,
        packet: &P,
        backlog: Backlog,
        _now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        let hit = match &mut self.control {
            Control::Float(float) => {
                float.drop_early(packet.bytes(), backlog, &mut || env.uniform())
            }
            Control::Linux(linux) => {
                linux.drop_early(packet.bytes(), backlog, &mut || env.random_u64())
            }
        };
        if !hit {
            return Verdict::Pass;
        }
        let marks = self.probability() <= self.config.ecn_threshold;
        if self.config.ecn && marks && packet.ecn().is_capable() {
            return Verdict::Mark;
        }
        self.forget_accumulated();
        Verdict::Drop
    }

    fn on_dequeue<P: Packet>(
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

    fn on_overflow(&mut self, _backlog: Backlog, _now: Time) {
        self.forget_accumulated();
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.next_update)
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

/// PIE's `variant` with its default, which differs between pie and madpie.
pub(crate) const fn variant_key(default: &'static str) -> Key {
    Key {
        name: "variant",
        kind: Kind::Choice(&["rfc8033", "linux", "2013"]),
        default,
        doc: "RFC 8033, Linux 6.1's fixed point, or the algorithm of 2013",
    }
}

pub(crate) const KEYS: &[Key] =
    &join_keys::<{ SHARED_KEYS.len() + 1 }>(&[SHARED_KEYS, &[variant_key("rfc8033")]]);

/// The keys of PIE but for `variant`, which madpie and fq_pie share.
pub(crate) const SHARED_KEYS: &[Key] = &[
    Key {
        name: "target",
        kind: Kind::Duration,
        default: "15 ms; 2013: 20 ms",
        doc: "queueing delay to hold (QDELAY_REF)",
    },
    Key {
        name: "tupdate",
        kind: Kind::Duration,
        default: "15 ms; 2013: 30 ms",
        doc: "time between updates of the drop probability; linux rounds it up to its timer's ticks",
    },
    Key {
        name: "alpha",
        kind: Kind::Number,
        default: "0.125; linux: 2 (sixteenths)",
        doc: "weight of the delay's distance from target, per second",
    },
    Key {
        name: "beta",
        kind: Kind::Number,
        default: "1.25; linux: 20 (sixteenths)",
        doc: "weight of the delay's change, per second",
    },
    Key {
        name: "max_burst",
        kind: Kind::Duration,
        default: "150 ms; 2013: 100 ms",
        doc: "how long a burst onto an idle queue passes (MAX_BURST)",
    },
    Key {
        name: "ecn_threshold",
        kind: Kind::Probability,
        default: "0.1; 2013: 1",
        doc: "probability up to which ECN-capable packets are marked, above it dropped",
    },
    Key {
        name: "autotune",
        kind: Kind::Flag,
        default: "true",
        doc: "scale the steps of the probability down while it is small (auto-tuning, RFC 8033, section 4.2); false: alpha and beta as they are; linux: true and nothing else",
    },
    Key {
        name: "derandomize",
        kind: Kind::Flag,
        default: "false; linux: true and nothing else",
        doc: "spread drops evenly (RFC 8033, section 5.4)",
    },
    Key {
        name: "cap",
        kind: Kind::Flag,
        default: "false; linux, 2013: true and nothing else",
        doc: "limit a step to 0.02 once the probability is 0.1 (RFC 8033, section 5.5)",
    },
    Key {
        name: "early_decay",
        kind: Kind::Flag,
        default: "false",
        doc: "let the probability decay below half the target, not only at zero delay (RFC 8033, appendix B)",
    },
    Key {
        name: "rest",
        kind: Kind::Flag,
        default: "false",
        doc: "be inactive while the queue is short and calm (RFC 8033, section 5.3)",
    },
    Key {
        name: "bytemode",
        kind: Kind::Flag,
        default: "false",
        doc: "scale the probability by packet size",
    },
    Key {
        name: "dq_rate_estimator",
        kind: Kind::Flag,
        default: "false; 2013: true",
        doc: "measure delay as backlog over departure rate instead of by time stamps",
    },
    ce_exclude::KEY,
];

fn error(key: &'static str, message: String) -> SettingError {
    SettingError { key, message }
}

/// Reads PIE's keys. `variant` is the default of that key, `limit` what the queue may hold.
pub(crate) fn config(
    settings: &Settings,
    variant: &str,
    limit: Limit,
) -> Result<Config, SettingError> {
    let default = match settings.word("variant", variant) {
        "linux" => Config::linux(settings.mtu),
        "2013" => Config::draft2013(settings.mtu),
        _ => Config::rfc8033(settings.mtu),
    };
    let target = settings.duration("target", default.target);
    let tupdate = settings.duration("tupdate", default.tupdate);
    for (key, span) in [("target", target), ("tupdate", tupdate)] {
        if span.is_zero() || span > Duration::from_secs(10) {
            return Err(error(
                key,
                format!("got \"{span}\"; must be above 0 and at most 10 s"),
            ));
        }
    }
    let linux = default.variant == Variant::Linux;
    // tc gives them in sixteenths.
    let unit = if linux { 16.0 } else { 1.0 };
    let gains = [
        ("alpha", settings.number("alpha", default.alpha * unit)),
        ("beta", settings.number("beta", default.beta * unit)),
    ];
    for (key, gain) in gains {
        if linux && !((0.0..=32.0).contains(&gain) && gain == libm::trunc(gain)) {
            return Err(error(
                key,
                format!("got {gain}; must be a whole number from 0 to 32, in sixteenths as in tc"),
            ));
        }
        if !(0.0..=1000.0).contains(&gain) {
            return Err(error(key, format!("got {gain}; must be from 0 to 1000")));
        }
    }
    for (key, fixed) in [
        ("autotune", linux.then_some(true)),
        ("derandomize", linux.then_some(true)),
        ("cap", (default.variant != Variant::Rfc8033).then_some(true)),
        (
            "early_decay",
            (default.variant != Variant::Rfc8033).then_some(false),
        ),
        (
            "rest",
            (default.variant != Variant::Rfc8033).then_some(false),
        ),
    ] {
        if let Some(fixed) = fixed.filter(|&fixed| settings.flag(key, fixed) != fixed) {
            return Err(error(
                key,
                format!("got {}; this variant has it {fixed}", !fixed),
            ));
        }
    }
    Ok(Config {
        target,
        tupdate,
        first_update: if linux { default.first_update } else { tupdate },
        alpha: gains[0].1 / unit,
        beta: gains[1].1 / unit,
        max_burst: settings.duration("max_burst", default.max_burst),
        ecn: settings.flag("ecn", false),
        ecn_threshold: settings.number("ecn_threshold", default.ecn_threshold),
        autotune: settings.flag("autotune", true),
        derandomize: settings.flag("derandomize", default.derandomize),
        cap: settings.flag("cap", default.cap),
        early_decay: settings.flag("early_decay", false),
        bytemode: settings.flag("bytemode", false),
        dq_rate_estimator: settings.flag("dq_rate_estimator", default.dq_rate_estimator),
        rest_below: settings.flag("rest", false).then_some(limit),
        ce_exclude: settings.flag("ce_exclude", false),
        ..default
    })
}

/// `pie`.
pub fn pie<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "pie",
        summary: "PI controller enhanced: drops on arrival to hold the queueing delay",
        source: "RFC 8033",
        keys: KEYS,
        build: Box::new(|settings| {
            let limit = settings.limit_or(Limit::Packets(1000));
            let config = config(settings, "rfc8033", limit)?;
            Ok(Box::new(Single::new(Pie::new(config), limit)))
        }),
    }
}

#[cfg(test)]
mod tests;
