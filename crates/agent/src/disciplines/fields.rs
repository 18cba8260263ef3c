//! Disciplines whose options are a C structure of the kernel (linux/pkt_sched.h): FIFO, SFQ and SFB.

use sojourn_experiment::model::Queue;
use sojourn_units::Value;

use super::{Line, Options, Refusal, refuse, setting, whole};
use crate::netlink::Attributes;

/// Numbers of four bytes, one after the other.
pub(super) fn numbers(fields: &[u32]) -> Vec<u8> {
    fields
        .iter()
        .flat_map(|field| field.to_ne_bytes())
        .collect()
}

/// A size, with a packet counted as a full frame.
pub(super) fn bytes(arm: &Queue, key: &str, frame: u32) -> Option<u64> {
    match setting(arm, key)? {
        Value::Bytes(bytes) => Some(*bytes),
        Value::Packets(packets) => Some(packets * u64::from(frame)),
        _ => None,
    }
}

/// A number, or the default.
pub(super) fn count(arm: &Queue, key: &str, default: u64) -> u64 {
    match setting(arm, key) {
        Some(Value::Count(count) | Value::Packets(count) | Value::Bytes(count)) => *count,
        _ => default,
    }
}

/// True if a flag is set.
pub(super) fn flag(arm: &Queue, key: &str) -> bool {
    setting(arm, key) == Some(&Value::Flag(true))
}

/// A number of four bytes.
///
/// # Errors
/// Four bytes cannot hold it.
pub(super) fn fitting(value: u64, key: &str) -> Result<u32, Refusal> {
    whole(value as f64, key)
}

/// tc_fifo_qopt: the limit, in packets or bytes.
pub(super) fn fifo(_: &Queue, limit: Option<u32>, _: &Line) -> Result<Options, Refusal> {
    Ok(limit.map_or_else(
        || Options::Attributes(Attributes::new()),
        |limit| Options::Fields(numbers(&[limit])),
    ))
}

/// tc_sfq_qopt_v1 without the part of RED.
pub(super) fn sfq(arm: &Queue, limit: Option<u32>, _: &Line) -> Result<Options, Refusal> {
    Ok(Options::Fields(numbers(
        &[&sfq_fields(arm, limit)?[..], &[0; 11]].concat(),
    )))
}

/// The fields of tc_sfq_qopt_v1 before those of RED: quantum, perturb_period, limit, divisor, flows, depth, headdrop. Zero
/// leaves a field to the kernel.
pub(super) fn sfq_fields(arm: &Queue, limit: Option<u32>) -> Result<[u32; 7], Refusal> {
    let perturb = match setting(arm, "perturb") {
        Some(Value::Duration(span)) if span.as_nanos() % 1_000_000_000 != 0 => {
            return refuse("perturb", "must be whole seconds, as Linux's sfq requires");
        }
        Some(Value::Duration(span)) => span.as_nanos() / 1_000_000_000,
        _ => 0,
    };
    let field = |key| fitting(count(arm, key, 0), key);
    Ok([
        field("quantum")?,
        fitting(perturb, "perturb")?,
        limit.unwrap_or(0),
        field("divisor")?,
        field("flows")?,
        field("depth")?,
        u32::from(flag(arm, "headdrop")),
    ])
}

/// Probability 1 of SFB (SFB_MAX_PROB).
const SFB_ONE: f64 = 65_535.0;
/// TCA_SFB_PARMS.
const SFB_PARAMETERS: u16 = 1;

/// tc_sfb_qopt. What a file leaves out has the defaults of tc-sfb(8), but the steps: with `variant = "linux"` those of tc,
/// otherwise the simulator's.
pub(super) fn sfb(arm: &Queue, limit: Option<u32>, _: &Line) -> Result<Options, Refusal> {
    let steps = match setting(arm, "variant") {
        Some(Value::Word(word)) if word == "linux" => [0.0005, 0.00005],
        _ => [0.001, 0.001 / 6.0],
    };
    let step = |key, default: f64| {
        let step = match setting(arm, key) {
            Some(Value::Number(step)) => *step,
            _ => default,
        };
        (step * SFB_ONE).round() as u32
    };
    let millis = |key, default| match setting(arm, key) {
        Some(Value::Duration(span)) => fitting(span.as_nanos() / 1_000_000, key),
        _ => Ok(default),
    };
    // Without a bound of a bin's length, tc takes 25 packets, and a target of four fifths of the bound.
    let max = match (count(arm, "max", 0), count(arm, "target", 0)) {
        (0, 0) => 25,
        (0, target) => (target * 5 + 1) / 4,
        (max, _) => max,
    };
    let target = match count(arm, "target", 0) {
        0 => (max * 4 + 3) / 5,
        target => target,
    };
    let fields = [
        millis("rehash", 600_000)?,
        millis("db", 60_000)?,
        fitting(max, "max")?,
        fitting(target, "target")?,
        step("increment", steps[0]),
        step("decrement", steps[1]),
        limit.unwrap_or(0),
        fitting(count(arm, "penalty_rate", 10), "penalty_rate")?,
        fitting(count(arm, "penalty_burst", 20), "penalty_burst")?,
    ];
    Ok(Options::Attributes(
        Attributes::new().put(SFB_PARAMETERS, &numbers(&fields)),
    ))
}
