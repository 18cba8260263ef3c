//! Values of the experiment file as values of the kernel's netlink attributes.

use sojourn_units::{Duration, Value};

use super::{Refusal, refuse};

/// How the kernel counts a parameter.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Microseconds, in four bytes.
    Microseconds,
    /// Per second, in 256ths, in four bytes.
    PerSecond256,
    /// A number, in four bytes.
    Number,
    /// 1 or 0, in four bytes.
    Flag,
    /// Bytes a second, in eight bytes.
    BytesPerSecond,
    /// The same in four bytes.
    BytesPerSecond32,
    /// A word's index in this list, in four bytes.
    Words(&'static [&'static str]),
    /// A whole number from 1 to 255, in a byte.
    Factor,
    /// Hundredths, in four bytes.
    Percent,
    /// Hundredths, in a byte.
    BytePercent,
}

/// A key's value as the kernel's `qdisc` takes it.
///
/// # Errors
/// The kernel's unit cannot hold it.
pub fn encode(qdisc: &str, key: &str, value: &Value, unit: Unit) -> Result<Vec<u8>, Refusal> {
    let number = match value {
        Value::Duration(span) => microseconds(*span) as f64,
        Value::Number(number) => *number,
        Value::Count(count) | Value::Packets(count) | Value::Bytes(count) => *count as f64,
        Value::Flag(flag) => f64::from(u8::from(*flag)),
        Value::Rate(_) | Value::Word(_) | Value::File(_) => 0.0,
    };
    Ok(match (unit, value) {
        (Unit::BytesPerSecond, Value::Rate(rate)) => (rate.as_bps() / 8).to_ne_bytes().into(),
        (Unit::BytesPerSecond32, Value::Rate(rate)) => {
            whole(rate.as_bps() as f64 / 8.0, key)?.to_ne_bytes().into()
        }
        (Unit::Words(words), Value::Word(word)) => {
            let index = words.iter().position(|known| known == word);
            (index.unwrap_or(0) as u32).to_ne_bytes().into()
        }
        (Unit::PerSecond256, _) => whole(number * 256.0, key)?.max(1).to_ne_bytes().into(),
        (Unit::Factor, _) if number.fract() == 0.0 && (1.0..=255.0).contains(&number) => {
            vec![number as u8]
        }
        (Unit::Factor, _) => {
            return refuse(
                key,
                format!("must be a whole number from 1 to 255, as Linux's {qdisc} requires"),
            );
        }
        (Unit::Percent, _) => whole(number * 100.0, key)?.to_ne_bytes().into(),
        (Unit::BytePercent, _) => vec![(number * 100.0).round() as u8],
        _ => whole(number, key)?.to_ne_bytes().into(),
    })
}

/// The nearest whole number.
///
/// # Errors
/// Four bytes cannot hold it.
pub fn whole(number: f64, key: &str) -> Result<u32, Refusal> {
    let rounded = number.round();
    if rounded <= f64::from(u32::MAX) {
        return Ok(rounded as u32);
    }
    refuse(
        key,
        "must be below 4294967296 in the kernel's unit, which is as far as it counts",
    )
}

/// The nearest whole number of microseconds.
pub const fn microseconds(span: Duration) -> u64 {
    (span.as_nanos() + 500) / 1000
}
