//! RED: random early detection (Floyd and Jacobson 1993; gentle slope: Floyd 2000).
//!
//! On arrival, an exponentially weighted average of the queue length decides: below `min` a packet
//! passes, between the thresholds it is dropped or marked with a probability that rises to
//! `probability`, at `max` (gentle: at twice `max`) every packet is.
//!
//! Two arithmetics behind one face: [`floyd`] as published, [`linux`] as Linux's sch_red with the
//! parameters that tc derives. [`crate::ared`] adapts `probability`.
//!
//! Departure from the paper: with `harddrop` off, ECN-capable packets are marked above `max` too, as
//! Linux does.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use sojourn_units::{Duration, Kind, Rate, Time, Value};

use crate::aqm::{Aqm, Backlog, Verdict};
use crate::catalogue::{Discipline, Key, SettingError, Settings};
use crate::ce_exclude;
use crate::packet::Packet;
use crate::qdisc::{Environment, Limit};
use crate::single::Single;

pub mod floyd;
pub mod linux;

use floyd::Floyd;
use linux::Linux;

/// The parameters of RED.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// What `min` and `max` count.
    pub unit: Unit,
    /// th_min: average below which nothing is dropped, in `unit`.
    pub min: u64,
    /// th_max: average at which the probability reaches `max_p`, in `unit`. Above `min`.
    pub max: u64,
    /// max_p: drop probability at `max`.
    pub max_p: f64,
    /// w_q: weight of the present queue length in the average, above 0 and at most 1.
    pub weight: f64,
    /// Let the probability rise from `max_p` at `max` to 1 at twice `max`, instead of jumping to 1.
    pub gentle: bool,
    /// Wait for 1/p packets before the next drop may come: gaps of 1/p to 2/p packets (ns-2's `wait_`)
    /// instead of 1 to 1/p.
    pub wait: bool,
    /// Scale the probability by packet size over `avpkt` (the paper's byte mode).
    pub bytemode: bool,
    /// Mean packet size in bytes.
    pub avpkt: u32,
    /// Rate by which idle time is counted in packets.
    pub bandwidth: Rate,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Where every packet is hit, drop ECN-capable ones as well.
    pub harddrop: bool,
    /// Leave CE-marked packets out of the average, unless the queue is above twice `max`.
    pub ce_exclude: bool,
    /// The arithmetic.
    pub variant: Variant,
}

/// What the thresholds count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// Whose RED.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// As published, in floating point.
    Floyd,
    /// Linux's fixed point; no gentle slope, no byte mode, thresholds in bytes.
    Linux,
}

/// What RED's rule asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    Pass,
    /// Hit by chance.
    Early,
    /// Hit because the average is too high for anything to pass.
    Forced,
}

/// RED for one queue.
pub struct Red {
    config: Config,
    pub(crate) rule: Rule,
}

pub(crate) enum Rule {
    Floyd(Floyd),
    // Its table of idle decay makes it large; there is one per queue, not per packet.
    Linux(Box<Linux>),
}

impl Red {
    /// A RED that has seen no packet.
    pub fn new(config: Config) -> Self {
        let rule = match config.variant {
            Variant::Floyd => Rule::Floyd(Floyd::new(config)),
            Variant::Linux => Rule::Linux(Box::new(Linux::new(config))),
        };
        Self { config, rule }
    }

    /// Its parameters.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The queue length that the average follows, in the thresholds' unit.
    fn measure(&self, backlog: Backlog) -> u64 {
        let queue = match self.config.unit {
            Unit::Packets => backlog.packets,
            Unit::Bytes => backlog.bytes,
        };
        if self.config.ce_exclude && queue <= self.config.max.saturating_mul(2) {
            ce_exclude::unmarked_part(queue, backlog)
        } else {
            queue
        }
    }

    /// The average queue length in the thresholds' unit.
    pub fn average(&self) -> f64 {
        match &self.rule {
            Rule::Floyd(floyd) => floyd.average(),
            Rule::Linux(linux) => linux.average(),
        }
    }

    /// max_p as it stands.
    pub fn max_p(&self) -> f64 {
        match &self.rule {
            Rule::Floyd(floyd) => floyd.max_p(),
            Rule::Linux(linux) => linux.max_p(),
        }
    }
}

impl Aqm for Red {
    fn on_enqueue<P: Packet>(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        let queue = self.measure(backlog);
        let decision = match &mut self.rule {
            Rule::Floyd(floyd) => {
                floyd.on_arrival(queue, packet.bytes(), now, &mut || env.uniform())
            }
            Rule::Linux(linux) => linux.on_arrival(queue, now, &mut || env.random_u64()),
        };
        let markable = self.config.ecn && packet.ecn().is_capable();
        match decision {
            Decision::Pass => Verdict::Pass,
            Decision::Forced if self.config.harddrop => Verdict::Drop,
            Decision::Early | Decision::Forced if markable => Verdict::Mark,
            Decision::Early | Decision::Forced => Verdict::Drop,
        }
    }

    fn on_overflow(&mut self, backlog: Backlog, now: Time) {
        let queue = self.measure(backlog);
        match &mut self.rule {
            Rule::Floyd(floyd) => floyd.on_overflow(queue, now),
            Rule::Linux(linux) => linux.on_overflow(queue, now),
        }
    }

    fn on_empty(&mut self, now: Time) {
        match &mut self.rule {
            Rule::Floyd(floyd) => floyd.on_empty(now),
            Rule::Linux(linux) => linux.on_empty(now),
        }
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("avg", self.average());
        visit("max_p", self.max_p());
    }
}

/// The keys of RED, which sfq_red and ared share.
pub(crate) const KEYS: &[Key] = &[
    Key {
        name: "min",
        kind: Kind::Size,
        default: "5 packets; linux: max / 3",
        doc: "average queue below which nothing is dropped",
    },
    Key {
        name: "max",
        kind: Kind::Size,
        default: "3 x min; linux: limit / 4 if min is not given either",
        doc: "average queue at which the drop probability reaches `probability`",
    },
    Key {
        name: "probability",
        kind: Kind::Probability,
        default: "0.1; linux: 0.02",
        doc: "drop probability at max (max_p)",
    },
    Key {
        name: "weight",
        kind: Kind::Probability,
        default: "0.002; linux: from burst",
        doc: "weight of the present queue in the average (w_q)",
    },
    Key {
        name: "burst",
        kind: Kind::Count,
        default: "linux: (2 x min + max) / (3 x avpkt)",
        doc: "packets of a burst to let pass; tc derives the weight from it",
    },
    Key {
        name: "avpkt",
        kind: Kind::Bytes,
        default: "a full frame; linux: 1000 B",
        doc: "mean packet size",
    },
    Key {
        name: "bandwidth",
        kind: Kind::Rate,
        default: "the link's rate; linux: 10 Mbit/s",
        doc: "rate by which idle time is counted in packets",
    },
    Key {
        name: "gentle",
        kind: Kind::Flag,
        default: "true; linux: false and nothing else",
        doc: "above max, raise the probability to 1 at twice max instead of at once",
    },
    Key {
        name: "wait",
        kind: Kind::Flag,
        default: "false",
        doc: "space drops by at least 1/p packets (ns-2)",
    },
    Key {
        name: "bytemode",
        kind: Kind::Flag,
        default: "false",
        doc: "scale the probability by packet size / avpkt",
    },
    Key {
        name: "harddrop",
        kind: Kind::Flag,
        default: "false",
        doc: "where every packet is hit, drop ECN-capable ones too",
    },
    ce_exclude::KEY,
    Key {
        name: "variant",
        kind: Kind::Choice(&["floyd", "linux"]),
        default: "floyd",
        doc: "as published, or Linux's fixed point with tc's derived parameters",
    },
];

pub(crate) fn error(key: &'static str, message: String) -> SettingError {
    SettingError { key, message }
}

/// The variant that the settings ask for.
pub(crate) fn variant(settings: &Settings) -> Variant {
    if settings.word("variant", "floyd") == "linux" {
        Variant::Linux
    } else {
        Variant::Floyd
    }
}

/// min and max with their unit. One of them given without the other is a third or three times it.
fn thresholds(settings: &Settings, limit: Limit) -> Result<(Unit, u64, u64), SettingError> {
    let linux = variant(settings) == Variant::Linux;
    let given_as = |name: &str, is: fn(&Value) -> bool| {
        settings
            .values
            .iter()
            .any(|(key, value)| key == name && is(value))
    };
    let in_packets = |key| given_as(key, |value| matches!(value, Value::Packets(_)));
    let in_bytes = |key| given_as(key, |value| matches!(value, Value::Bytes(_)));
    if !linux && (in_packets("min") && in_bytes("max") || in_bytes("min") && in_packets("max")) {
        return Err(error(
            "max",
            "must be in the unit of min: both in packets, or both in bytes".into(),
        ));
    }
    let unit = if linux || in_bytes("min") || in_bytes("max") {
        Unit::Bytes
    } else {
        Unit::Packets
    };
    let frame = match unit {
        Unit::Bytes => 1,
        Unit::Packets => u64::from(settings.mtu),
    };
    let given = |key| {
        settings
            .has(key)
            .then(|| settings.bytes(key, 0) / frame.max(1))
    };
    let (min, max) = match (given("min"), given("max")) {
        (Some(min), Some(max)) => (min, max),
        (Some(min), None) => (min, min.saturating_mul(3)),
        (None, Some(max)) => (max / 3, max),
        (None, None) if linux => {
            let bytes = match limit {
                Limit::Bytes(bytes) => bytes,
                Limit::Packets(packets) => packets.saturating_mul(u64::from(settings.mtu)),
            };
            (bytes / 12, bytes / 4)
        }
        (None, None) => (5, 15),
    };
    if min >= max {
        let unit = match unit {
            Unit::Packets => "packets",
            Unit::Bytes => "B",
        };
        return Err(error(
            if settings.has("max") { "max" } else { "min" },
            format!("got min {min} {unit} and max {max} {unit}; max must be above min"),
        ));
    }
    Ok((unit, min, max))
}

/// Reads RED's keys; `limit` is what the queue may hold.
pub(crate) fn config(settings: &Settings, limit: Limit) -> Result<Config, SettingError> {
    let (unit, min, max) = thresholds(settings, limit)?;
    config_between(settings, unit, min, max)
}

/// Reads RED's keys but for the thresholds.
pub(crate) fn config_between(
    settings: &Settings,
    unit: Unit,
    min: u64,
    max: u64,
) -> Result<Config, SettingError> {
    let variant = variant(settings);
    let linux = variant == Variant::Linux;
    let avpkt = settings.bytes("avpkt", if linux { 1000 } else { settings.mtu.into() });
    if avpkt == 0 || avpkt > 1 << 20 {
        return Err(error(
            "avpkt",
            format!("got \"{avpkt} B\"; must be from 1 B to 1 MiB"),
        ));
    }
    if linux && max >= 1 << 31 {
        return Err(error(
            "max",
            format!("got \"{max} B\"; must be below 2 GiB with variant \"linux\""),
        ));
    }
    if linux {
        for key in ["gentle", "wait", "bytemode"] {
            if settings.flag(key, false) {
                let key = KEYS.iter().find(|known| known.name == key);
                return Err(error(
                    key.map_or("variant", |key| key.name),
                    "got true; Linux has no such mode: leave it out, or leave out variant = \"linux\""
                        .into(),
                ));
            }
        }
    }
    let derived = if linux || settings.has("burst") {
        let bytes = |queue: u64| match unit {
            Unit::Bytes => queue,
            Unit::Packets => queue.saturating_mul(avpkt),
        };
        let default = bytes(min.saturating_mul(2).saturating_add(max)) / (3 * avpkt);
        let burst = settings.count("burst", default);
        linux::weight_log(bytes(min), burst, avpkt)
            .map(|log| libm::ldexp(1.0, -i32::from(log)))
            .ok_or_else(|| {
                let least = (bytes(min) / avpkt).saturating_add(1);
                error(
                    "burst",
                    format!("got {burst}; must be about min / avpkt or more, here {least}"),
                )
            })
    } else {
        Ok(0.002)
    };
    let weight = if settings.has("weight") {
        settings.number("weight", 0.002)
    } else {
        derived?
    };
    if weight <= 0.0 {
        return Err(error(
            "weight",
            "got 0; must be above 0 and at most 1".into(),
        ));
    }
    Ok(Config {
        unit,
        min,
        max,
        max_p: settings.number("probability", if linux { 0.02 } else { 0.1 }),
        weight,
        gentle: !linux && settings.flag("gentle", true),
        wait: settings.flag("wait", false),
        bytemode: settings.flag("bytemode", false),
        avpkt: avpkt as u32,
        bandwidth: settings.rate(
            "bandwidth",
            if linux {
                Rate::from_mbps(10)
            } else {
                settings.rate
            },
        ),
        ecn: settings.flag("ecn", false),
        harddrop: settings.flag("harddrop", false),
        ce_exclude: settings.flag("ce_exclude", false),
        variant,
    })
}

/// What the queue of `red` and `ared` may hold unless it is given.
pub(crate) fn default_limit(settings: &Settings) -> Limit {
    settings.limit.unwrap_or(Limit::Packets(1000))
}

/// `red`.
pub fn red<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "red",
        summary: "random early detection: drops on arrival by the average queue length",
        source: "Floyd and Jacobson 1993",
        keys: KEYS,
        build: |settings| {
            let limit = default_limit(settings);
            Ok(Box::new(Single::new(
                Red::new(config(settings, limit)?),
                limit,
            )))
        },
    }
}

/// Time on the link of one packet of mean size.
pub(crate) fn slot(config: &Config) -> Duration {
    config.bandwidth.tx_time(u64::from(config.avpkt))
}

#[cfg(test)]
mod tests;
