//! `tc` arguments that need more than a table of keys: `tc` has no default, derives it from a different link, or counts in
//! another unit.

use sojourn_experiment::model::Queue;
use sojourn_units::{Duration, Rate, Value};

use super::{Refusal, refuse, setting};

fn bytes(arm: &Queue, key: &str, frame: u32) -> Option<u64> {
    match setting(arm, key)? {
        Value::Bytes(bytes) => Some(*bytes),
        Value::Packets(packets) => Some(packets * u64::from(frame)),
        _ => None,
    }
}

/// RED's thresholds, average and adaptation, for which tc has no defaults or derives them from a different link.
pub(super) fn red_arguments(arm: &Queue, frame: u32, rate: Rate) -> Result<Vec<String>, Refusal> {
    let target = match setting(arm, "target") {
        Some(Value::Duration(span)) => Some(*span),
        _ if arm.aqm == "ared" => Some(Duration::from_millis(5)),
        _ => None,
    };
    let (min, max) = match (bytes(arm, "min", frame), bytes(arm, "max", frame), target) {
        (Some(min), Some(max), _) => (min, max),
        (Some(min), None, _) => (min, 3 * min),
        (None, Some(max), _) => (max / 3, max),
        // 0.5 and 1.5 times the target queue (Floyd, Gummadi, Shenker 2001, section 4).
        (None, None, Some(target)) => {
            let queue = rate.bytes_in(target);
            let frame = u64::from(frame);
            ((queue / 2).max(frame), (queue / 2 * 3).max(2 * frame))
        }
        (None, None, None) => (5 * u64::from(frame), 15 * u64::from(frame)),
    };
    let avpkt = bytes(arm, "avpkt", frame).unwrap_or(1000).max(1);
    let burst = match setting(arm, "burst") {
        Some(Value::Count(packets)) => *packets,
        _ => ((2 * min + max) / (3 * avpkt)).max(min / avpkt + 1),
    };
    let bandwidth = match setting(arm, "bandwidth") {
        Some(Value::Rate(rate)) => *rate,
        _ => rate,
    };
    if setting(arm, "weight").is_some() {
        return refuse(
            "weight",
            "must be given as burst and avpkt, from which tc derives it",
        );
    }
    if max <= min {
        return refuse("max", format!("must be above min (\"{min} B\")"));
    }
    let mut arguments = vec![format!(
        "min {min} max {max} avpkt {avpkt} burst {burst} bandwidth {}bit",
        bandwidth.as_bps()
    )];
    if arm.aqm == "ared" {
        arguments.push("adaptive".into());
    }
    Ok(arguments)
}

/// CHOKe's thresholds, which tc takes in packets, and the rate, for which it has no default.
pub(super) fn choke_arguments(arm: &Queue, frame: u32, rate: Rate) -> Vec<String> {
    let packets = |key| bytes(arm, key, frame).map(|bytes| (bytes / u64::from(frame)).max(1));
    let thresholds = ["min", "max"].into_iter();
    let mut arguments: Vec<String> = thresholds
        .filter_map(|key| packets(key).map(|packets| format!("{key} {packets}")))
        .collect();
    if setting(arm, "bandwidth").is_none() {
        arguments.push(format!("bandwidth {}bit", rate.as_bps()));
    }
    arguments
}

/// PIE's variant and gains. The kernel counts gains in sixteenths; a file does so only with `variant = "linux"`.
pub(super) fn pie_arguments(arm: &Queue) -> Result<Vec<String>, Refusal> {
    let variant = match setting(arm, "variant") {
        Some(Value::Word(word)) => word.as_str(),
        _ => "rfc8033",
    };
    let mut arguments = Vec::new();
    if variant == "2013" {
        for (key, default) in [("target", "target 20ms"), ("tupdate", "tupdate 30ms")] {
            if setting(arm, key).is_none() {
                arguments.push(default.into());
            }
        }
        if arm.aqm == "pie" && setting(arm, "dq_rate_estimator").is_none() {
            arguments.push("dq_rate_estimator".into());
        }
    }
    let sixteenths = if variant == "linux" { 1.0 } else { 16.0 };
    for key in ["alpha", "beta"] {
        if let Some(Value::Number(gain)) = setting(arm, key) {
            let gain = gain * sixteenths;
            if gain.fract() != 0.0 || !(0.0..=32.0).contains(&gain) {
                let most = 32.0 / sixteenths;
                return refuse(
                    key,
                    format!(
                        "must be from 0 to {most} in whole sixteenths, as Linux's {} requires",
                        arm.aqm
                    ),
                );
            }
            arguments.push(format!("{key} {gain}"));
        }
    }
    if arm.aqm == "fq_pie" {
        if let Some(Value::Number(threshold)) = setting(arm, "ecn_threshold") {
            arguments.push(format!("ecn_prob {}", (threshold * 100.0).round()));
        }
    }
    Ok(arguments)
}

/// SFQ's perturbation, which tc takes in seconds.
pub(super) fn perturb_argument(arm: &Queue) -> Result<Option<String>, Refusal> {
    let Some(Value::Duration(span)) = setting(arm, "perturb") else {
        return Ok(None);
    };
    if span.as_nanos() % 1_000_000_000 != 0 {
        return refuse("perturb", "must be whole seconds, as Linux's sfq requires");
    }
    Ok(Some(format!("perturb {}", span.as_secs_f64())))
}

/// SFB's steps and times. With `variant = "linux"` the default steps are those of tc; the others have to be given to tc.
/// tc takes times in milliseconds.
pub(super) fn sfb_arguments(arm: &Queue) -> Vec<String> {
    let defaults = match setting(arm, "variant") {
        Some(Value::Word(word)) if word == "linux" => [None; 2],
        _ => [Some(0.001), Some(0.001 / 6.0)],
    };
    let steps = ["increment", "decrement"].into_iter().zip(defaults);
    let steps = steps.filter_map(|(key, default)| match setting(arm, key) {
        Some(Value::Number(step)) => Some(format!("{key} {step}")),
        _ => default.map(|step| format!("{key} {step}")),
    });
    let times = ["rehash", "db"]
        .into_iter()
        .filter_map(|key| match setting(arm, key)? {
            Value::Duration(span) => Some(format!("{key} {}", span.as_nanos() / 1_000_000)),
            _ => None,
        });
    steps.chain(times).collect()
}
