//! DualPI2's parameters as the kernel's netlink attributes (linux/pkt_sched.h).

use sojourn_experiment::derived::Limit;
use sojourn_experiment::model::Queue;
use sojourn_units::Value;

use super::{Refusal, refuse, setting};

/// How the kernel counts a parameter.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Microseconds, in four bytes.
    Microseconds,
    /// Per second, in 256ths, in four bytes.
    PerSecond256,
    /// A number, in four bytes.
    Number,
    /// A whole number from 1 to 255, in a byte.
    Factor,
    /// Hundredths, in a byte.
    Percent,
}

/// TCA_DUALPI2_LIMIT, and its value if the file has no limit: the kernel's default. It is always sent, because the kernel
/// requires at least one attribute.
const LIMIT: u16 = 1;
const DEFAULT_LIMIT: u64 = 10_000;

/// Keys of DualPI2, the kernel's number of each, and its unit.
pub const DUALPI2_ATTRIBUTES: &[(&str, u16, Unit)] = &[
    ("target", 3, Unit::Microseconds),
    ("tupdate", 4, Unit::Microseconds),
    ("alpha", 5, Unit::PerSecond256),
    ("beta", 6, Unit::PerSecond256),
    ("min_thresh", 8, Unit::Microseconds),
    ("min_qlen_step", 9, Unit::Number),
    ("coupling_factor", 10, Unit::Factor),
    ("c_protection", 13, Unit::Percent),
];

/// The attributes of an arm: its limit in packets, and the keys that it gives.
///
/// # Errors
/// The kernel's unit cannot hold a value.
pub fn attributes(
    arm: &Queue,
    limit: Option<Limit>,
    known: &[(&str, u16, Unit)],
) -> Result<Vec<(u16, Vec<u8>)>, Refusal> {
    let packets = match limit {
        Some(Limit::Packets(packets)) => packets,
        _ => DEFAULT_LIMIT,
    };
    let limit = whole(packets as f64, "limit")?;
    let mut attributes = vec![(LIMIT, limit.to_ne_bytes().to_vec())];
    for (key, number, unit) in known {
        if let Some(value) = setting(arm, key) {
            attributes.push((*number, bytes(key, value, *unit)?));
        }
    }
    Ok(attributes)
}

fn bytes(key: &str, value: &Value, unit: Unit) -> Result<Vec<u8>, Refusal> {
    let number = match value {
        Value::Duration(span) => span.as_nanos() as f64 / 1e3,
        Value::Number(number) => *number,
        Value::Count(count) | Value::Packets(count) | Value::Bytes(count) => *count as f64,
        Value::Rate(_) | Value::Flag(_) | Value::Word(_) => 0.0,
    };
    Ok(match unit {
        Unit::Microseconds | Unit::Number => whole(number, key)?.to_ne_bytes().into(),
        Unit::PerSecond256 => whole(number * 256.0, key)?.max(1).to_ne_bytes().into(),
        Unit::Factor if number.fract() == 0.0 && (1.0..=255.0).contains(&number) => {
            vec![number as u8]
        }
        Unit::Factor => {
            return refuse(
                key,
                "must be a whole number from 1 to 255, as Linux's dualpi2 requires",
            );
        }
        Unit::Percent => vec![(number * 100.0).round() as u8],
    })
}

/// The nearest whole number.
fn whole(number: f64, key: &str) -> Result<u32, Refusal> {
    let rounded = number.round();
    if rounded <= f64::from(u32::MAX) {
        return Ok(rounded as u32);
    }
    refuse(
        key,
        "must be below 4294967296 in the kernel's unit, which is as far as it counts",
    )
}
