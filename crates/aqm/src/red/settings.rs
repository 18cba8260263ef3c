//! RED's keys, and how they become its parameters: defaults, tc's derivations, refusals.

use alloc::format;
use alloc::string::String;

use sojourn_units::{Kind, Rate, Value};

use super::{Config, Unit, Variant, linux};
use crate::catalogue::{Key, SettingError};
use crate::ce_exclude;
use crate::qdisc::Limit;
use crate::settings::Settings;

/// The keys of RED, which sfq_red and ared share.
pub(crate) const KEYS: &[Key] = &[
    Key {
        name: "min",
        kind: Kind::Size,
        default: "5 packets; linux, choke: max / 3; ared: by target",
        doc: "average queue below which nothing is dropped",
    },
    Key {
        name: "max",
        kind: Kind::Size,
        default: "3 x min; linux, choke without min: limit / 4; ared: by target",
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
        default: "0.002; ared: 1 - exp(-1 / packets per second); linux: from burst",
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
    if settings.word("variant", "floyd").starts_with("linux") {
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
    require_order(settings, unit, min, max)?;
    Ok((unit, min, max))
}

/// # Errors
/// `min` is not below `max`.
pub(crate) fn require_order(
    settings: &Settings,
    unit: Unit,
    min: u64,
    max: u64,
) -> Result<(), SettingError> {
    if min < max {
        return Ok(());
    }
    let unit = match unit {
        Unit::Packets => "packets",
        Unit::Bytes => "B",
    };
    Err(error(
        if settings.has("max") { "max" } else { "min" },
        format!("got min {min} {unit} and max {max} {unit}; max must be above min"),
    ))
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
            format!("got {max}; must be below 2^31 with variant \"linux\""),
        ));
    }
    if linux {
        for key in ["gentle", "wait", "bytemode"] {
            if settings.flag(key, false) {
                return Err(error(
                    key,
                    "got true; Linux has no such mode: leave out this or variant = \"linux\""
                        .into(),
                ));
            }
        }
    }
    let in_bytes = |queue: u64| match unit {
        Unit::Bytes => queue,
        Unit::Packets => queue.saturating_mul(avpkt),
    };
    let threshold = |queue| match unit {
        Unit::Bytes => Value::Bytes(queue),
        Unit::Packets => Value::Packets(queue),
    };
    settings.take("min", Some(threshold(min)));
    settings.take("max", Some(threshold(max)));
    let weight = if settings.has("weight") {
        settings.number("weight", 0.0)
    } else if linux || settings.has("burst") {
        weight_of_burst(settings, in_bytes(min), in_bytes(max), avpkt)?
    } else {
        0.002
    };
    settings.take("weight", Some(Value::Number(weight)));
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

/// The weight that tc derives from `burst`; thresholds in bytes.
fn weight_of_burst(
    settings: &Settings,
    min: u64,
    max: u64,
    avpkt: u64,
) -> Result<f64, SettingError> {
    let default = min.saturating_mul(2).saturating_add(max) / (3 * avpkt);
    let burst = settings.count("burst", default);
    linux::weight_log(min, burst, avpkt)
        .map(|log| libm::ldexp(1.0, -i32::from(log)))
        .ok_or_else(|| {
            let least = min.div_ceil(avpkt);
            error(
                "burst",
                format!(
                    "got {burst} packets; must be at least min / avpkt (here {least}) and at most 10^9"
                ),
            )
        })
}

/// What the queue of `red` and `ared` may hold unless it is given.
pub(crate) fn default_limit(settings: &Settings) -> Limit {
    settings.limit_or(Limit::Packets(1000))
}
