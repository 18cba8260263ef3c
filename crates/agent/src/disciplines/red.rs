//! RED's options, which CHOKe and SFQ with RED share: thresholds, and the kernel's form of the average's weight, of the
//! probability's slope and of the decay while the queue is idle. `tc` computes these forms; here we do
//! (tc_red_qopt of linux/pkt_sched.h, net/red.h).

use sojourn_experiment::model::Queue;
use sojourn_units::{Duration, Rate, Value};

use super::fields::{bytes, count, fitting, flag, numbers, sfq_fields};
use super::{Line, Options, Refusal, refuse, setting, ticks};
use crate::netlink::Attributes;

/// TCA_RED_PARMS, TCA_RED_STAB and TCA_RED_MAX_P; those of CHOKe have the same numbers.
const PARAMETERS: u16 = 1;
const DECAY: u16 = 2;
const MAX_PROBABILITY: u16 = 3;
/// TCA_RED_FLAGS, which CHOKe does not have, and the flags that it sets or clears.
const FLAGS: u16 = 4;
const ALL_FLAGS: u8 = 15;
/// TC_RED_ECN, TC_RED_HARDDROP and TC_RED_ADAPTATIVE.
const ECN: u8 = 1;
const HARD_DROP: u8 = 2;
const ADAPTIVE: u8 = 4;

/// Packets that SFQ holds unless the file says otherwise (SFQ_DEFAULT_DEPTH).
const DEFAULT_LIMIT: u32 = 127;

/// What the thresholds and the average are computed from.
struct Average {
    /// Thresholds in bytes.
    min: u64,
    max: u64,
    /// An average packet, in bytes.
    avpkt: u64,
    /// Packets that the average lets pass at once.
    burst: u64,
    probability: f64,
}

impl Average {
    /// Wlog: the average's weight is 2^−Wlog, the largest with which `burst` packets that arrive at an empty queue lift the
    /// average no higher than `min` (Floyd and Jacobson 1993, section 6, equation 3).
    fn weight_log(&self) -> Result<u8, Refusal> {
        let burst = self.burst as f64;
        let allowed = burst + 1.0 - self.min as f64 / self.avpkt as f64;
        if allowed < 1.0 {
            return refuse("burst", "must be at least min / avpkt packets");
        }
        let fits = |log: &u8| {
            let weight = 0.5_f64.powi(i32::from(*log));
            allowed <= (1.0 - libm::pow(1.0 - weight, burst)) / weight
        };
        (1..32).find(fits).map_or_else(
            || {
                refuse(
                    "burst",
                    "must be less: the kernel's average has no such weight",
                )
            },
            Ok,
        )
    }

    /// Plog: the probability rises by 2^−Plog per byte, the smallest step that is no less than probability / (max − min).
    fn slope_log(&self) -> Result<u8, Refusal> {
        let span = self.max.saturating_sub(self.min);
        if span == 0 {
            return Ok(0);
        }
        let slope = self.probability / span as f64;
        (0..32)
            .find(|log| slope * 2_f64.powi(i32::from(*log)) > 1.0)
            .map_or_else(
                || {
                    refuse(
                        "probability",
                        "must be larger, or max nearer to min: the kernel has no such slope",
                    )
                },
                Ok,
            )
    }

    /// max_P: the probability at `max`, where 2^32 is 1.
    fn max_probability(&self) -> u32 {
        (self.probability * 2_f64.powi(32)) as u32
    }
}

/// Scell_log, and the decay of the average by the time that the queue was idle, in cells of 2^Scell_log ticks: the
/// number of halvings after a cell, at most 31.
fn decay(weight_log: u8, avpkt: u64, rate: Rate) -> (u8, Vec<u8>) {
    let packet = f64::from(ticks(rate, avpkt));
    let per_tick = -libm::log(1.0 - 0.5_f64.powi(i32::from(weight_log))) / packet;
    let longest = 31.0 / per_tick;
    let log = (0..31)
        .find(|log| longest / 2_f64.powi(*log) < 512.0)
        .unwrap_or(31);
    let halvings = |cell: u64| (((cell << log) as f64 * per_tick) as u64).min(31) as u8;
    let mut table: Vec<u8> = (0..255).map(halvings).collect();
    table.push(31);
    (log as u8, table)
}

fn probability(arm: &Queue) -> f64 {
    match setting(arm, "probability") {
        Some(Value::Number(probability)) => *probability,
        _ => 0.02,
    }
}

fn bandwidth(arm: &Queue, line: &Line) -> Rate {
    match setting(arm, "bandwidth") {
        Some(Value::Rate(rate)) => *rate,
        _ => line.rate,
    }
}

fn flags(arm: &Queue) -> u8 {
    let adaptive = if arm.aqm == "ared" { ADAPTIVE } else { 0 };
    let ecn = if flag(arm, "ecn") { ECN } else { 0 };
    let hard_drop = if flag(arm, "harddrop") { HARD_DROP } else { 0 };
    adaptive | ecn | hard_drop
}

/// Thresholds in bytes of a queue that holds `limit` bytes, by the simulator's rules where the file gives none.
fn thresholds(arm: &Queue, limit: u64, line: &Line) -> (u64, u64) {
    let frame = line.frame;
    let variant = setting(arm, "variant");
    let is_linux = matches!(variant, Some(Value::Word(word)) if word.starts_with("linux"));
    let target = match setting(arm, "target") {
        Some(Value::Duration(span)) => Some(*span),
        _ if arm.aqm == "ared" && !is_linux => Some(Duration::from_millis(5)),
        _ => None,
    };
    match (bytes(arm, "min", frame), bytes(arm, "max", frame), target) {
        (Some(min), Some(max), _) => (min, max),
        (Some(min), None, _) => (min, 3 * min),
        (None, Some(max), _) => (max / 3, max),
        // 0.5 and 1.5 times the target queue (Floyd, Gummadi, Shenker 2001, section 4).
        (None, None, Some(target)) => {
            let queue = line.rate.bytes_in(target);
            let frame = u64::from(frame);
            ((queue / 2).max(frame), (queue / 2 * 3).max(2 * frame))
        }
        // As tc-red(8) derives them.
        (None, None, None) if is_linux => (limit / 12, limit / 4),
        (None, None, None) => (5 * u64::from(frame), 15 * u64::from(frame)),
    }
}

/// RED's options.
pub(super) fn red(arm: &Queue, limit: Option<u32>, line: &Line) -> Result<Options, Refusal> {
    let frame = line.frame;
    let (min, max) = thresholds(arm, limit.unwrap_or(0).into(), line);
    let avpkt = bytes(arm, "avpkt", frame).unwrap_or(1000).max(1);
    // As tc-red(8) recommends.
    let recommended = ((2 * min + max) / (3 * avpkt)).max(min / avpkt + 1);
    if setting(arm, "weight").is_some() {
        return refuse(
            "weight",
            "must be given as burst and avpkt, from which it is derived",
        );
    }
    if max <= min {
        return refuse("max", format!("must be above min (\"{min} B\")"));
    }
    let average = Average {
        min,
        max,
        avpkt,
        burst: count(arm, "burst", recommended),
        probability: probability(arm),
    };
    // As tc since 5.6 sends the flags. The kernel then never starts the timer of the adaptation, which it starts only for
    // a flag in the structure: whoever uses tc has a RED that does not adapt.
    let flags = [flags(arm), 0, 0, 0, ALL_FLAGS, 0, 0, 0];
    let options = options(
        [
            limit.unwrap_or(0),
            fitting(min, "min")?,
            fitting(max, "max")?,
        ],
        0,
        &average,
        bandwidth(arm, line),
    )?;
    Ok(Options::Attributes(options.put(FLAGS, &flags)))
}

/// CHOKe's options: thresholds in packets, by the rules of tc-choke(8) where the file gives none.
pub(super) fn choke(arm: &Queue, limit: Option<u32>, line: &Line) -> Result<Options, Refusal> {
    let frame = u64::from(line.frame);
    let packets = |key| bytes(arm, key, line.frame).map(|bytes| (bytes / frame).max(1));
    let max = packets("max").unwrap_or_else(|| u64::from(limit.unwrap_or(0)) / 4);
    let min = packets("min").unwrap_or(max / 3);
    let avpkt = bytes(arm, "avpkt", line.frame).unwrap_or(1000).max(1);
    if max <= min {
        return refuse("max", format!("must be above min (\"{min} packets\")"));
    }
    let average = Average {
        min: min * avpkt,
        max: max * avpkt,
        avpkt,
        burst: count(arm, "burst", (2 * min + max) / 3),
        probability: probability(arm),
    };
    let fields = [
        limit.unwrap_or(0),
        fitting(min, "min")?,
        fitting(max, "max")?,
    ];
    options(fields, flags(arm), &average, bandwidth(arm, line)).map(Options::Attributes)
}

/// tc_red_qopt (limit, thresholds, flags) with its tables.
fn options(
    fields: [u32; 3],
    flags: u8,
    average: &Average,
    rate: Rate,
) -> Result<Attributes, Refusal> {
    let weight_log = average.weight_log()?;
    let (cell_log, decay) = decay(weight_log, average.avpkt, rate);
    let mut bytes = numbers(&fields);
    bytes.extend([weight_log, average.slope_log()?, cell_log, flags]);
    Ok(Attributes::new()
        .put(PARAMETERS, &bytes)
        .put(DECAY, &decay)
        .u32(MAX_PROBABILITY, average.max_probability()))
}

/// tc_sfq_qopt_v1 with RED on every flow's queue, by the rules of tc-sfq(8) where the file gives no values.
pub(super) fn sfq_red(arm: &Queue, limit: Option<u32>, line: &Line) -> Result<Options, Refusal> {
    let size = |key| {
        bytes(arm, key, line.frame).or_else(|| Some(count(arm, key, 0)).filter(|size| *size > 0))
    };
    // The kernel receives the limit but does not enforce it.
    let (hard_limit, min, max) = match size("redflowlimit") {
        Some(hard_limit) => {
            let max = size("max").unwrap_or(hard_limit / 4);
            (hard_limit, size("min").unwrap_or(max / 3), max)
        }
        None => {
            let packets = u64::from(limit.unwrap_or(DEFAULT_LIMIT));
            let (min, max) = thresholds(arm, packets * u64::from(line.frame), line);
            (4 * max, min, max)
        }
    };
    let avpkt = size("avpkt").unwrap_or(1000);
    if max > hard_limit {
        return refuse(
            "max",
            format!("must be at most redflowlimit (\"{hard_limit} B\")"),
        );
    }
    if max <= min {
        return refuse("max", format!("must be above min (\"{min} B\")"));
    }
    let average = Average {
        min,
        max,
        avpkt,
        burst: count(arm, "burst", (2 * min + max) / (3 * avpkt)),
        probability: probability(arm),
    };
    let mut fields = numbers(&sfq_fields(arm, limit)?);
    fields.extend(numbers(&[
        fitting(hard_limit, "redflowlimit")?,
        fitting(min, "min")?,
        fitting(max, "max")?,
    ]));
    fields.extend([average.weight_log()?, average.slope_log()?, 0, flags(arm)]);
    fields.extend(numbers(&[average.max_probability(), 0, 0, 0, 0, 0, 0]));
    Ok(Options::Fields(fields))
}
