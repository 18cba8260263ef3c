//! Disciplines of the experiment file as the kernel's netlink options, and the counters that it keeps of them.
//!
//! A table lists the keys that the kernel supports, with the attribute of each (linux/pkt_sched.h). A key that it does
//! not support is refused, unless its value is the kernel's fixed behaviour. Parameters that are not given are left to
//! the kernel, except where it has no default or the defaults are those of `tc`.

use sojourn_experiment::derived::Limit;
use sojourn_experiment::model::Queue;
use sojourn_units::{Rate, Value};

use crate::netlink::Attributes;

mod attributes;
mod counters;
mod fields;
mod options;
mod red;

use attributes::{Unit, encode, whole};
pub use counters::{Counters, counters};
use counters::{Overflow, Source, Statistics};
pub use options::{Leaf, Options, TICK_NS, ticks};

/// Why an arm cannot run on Linux.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The refused key, relative to the arm: `target`.
    pub key: String,
    /// The accepted values.
    pub must: String,
}

fn refuse<T>(key: &str, must: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        key: key.into(),
        must: must.into(),
    })
}

/// The unit of a qdisc's limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Packets,
    Bytes,
    Nothing,
}

/// How a key reaches the kernel.
#[derive(Clone, Copy)]
enum Parameter {
    /// As the attribute of this number, in this unit.
    Attribute(u16, Unit),
    /// The kernel's fixed behaviour. Only this value is accepted.
    Fixed(&'static str),
    /// By the discipline's own function, or without effect on the kernel.
    Elsewhere,
}
use Parameter::{Attribute, Elsewhere, Fixed};

/// A key and how it reaches the kernel.
type Key = (&'static str, Parameter);

/// The form of a discipline's options.
#[derive(Clone, Copy)]
enum Form {
    /// Attributes; the number of the limit's, if it has one.
    Attributes(Option<u16>),
    /// Made by a function from the arm, its limit and the link.
    Own(fn(&Queue, Option<u32>, &Line) -> Result<Options, Refusal>),
}

/// The link in front of which a discipline stands.
struct Line {
    /// Bytes of a full frame.
    frame: u32,
    rate: Rate,
}

struct Row {
    aqm: &'static str,
    qdisc: &'static str,
    module: &'static str,
    counts: Counts,
    form: Form,
    keys: &'static [Key],
    statistics: Statistics,
}

const VARIANT: Key = ("variant", Elsewhere);
const CE_EXCLUDE: Key = ("ce_exclude", Fixed("false"));
const RED_KEYS: &[Key] = &[
    ("ecn", Elsewhere),
    ("harddrop", Elsewhere),
    ("min", Elsewhere),
    ("max", Elsewhere),
    ("avpkt", Elsewhere),
    ("burst", Elsewhere),
    ("bandwidth", Elsewhere),
    ("target", Elsewhere),
    ("probability", Elsewhere),
    ("gentle", Fixed("false")),
    ("wait", Fixed("false")),
    ("bytemode", Fixed("false")),
    ("adapt_interval", Fixed("500 ms")),
    CE_EXCLUDE,
    VARIANT,
];
const PIE_KEYS: &[Key] = &[
    ("target", Attribute(1, Unit::Microseconds)),
    ("tupdate", Attribute(3, Unit::Microseconds)),
    ("alpha", Elsewhere),
    ("beta", Elsewhere),
    ("ecn", Attribute(6, Unit::Flag)),
    ("bytemode", Attribute(7, Unit::Flag)),
    ("dq_rate_estimator", Attribute(8, Unit::Flag)),
    ("max_burst", Fixed("150 ms")),
    ("ecn_threshold", Fixed("0.1")),
    ("autotune", Fixed("true")),
    ("derandomize", Fixed("true")),
    ("cap", Fixed("true")),
    ("early_decay", Fixed("false")),
    ("rest", Fixed("false")),
    CE_EXCLUDE,
    VARIANT,
];
const FQ_PIE_KEYS: &[Key] = &[
    ("flows", Attribute(2, Unit::Number)),
    ("target", Attribute(3, Unit::Microseconds)),
    ("tupdate", Attribute(4, Unit::Microseconds)),
    ("alpha", Elsewhere),
    ("beta", Elsewhere),
    ("quantum", Attribute(7, Unit::Number)),
    ("memory_limit", Attribute(8, Unit::Number)),
    ("ecn_threshold", Attribute(9, Unit::Percent)),
    ("ecn", Attribute(10, Unit::Flag)),
    ("bytemode", Attribute(11, Unit::Flag)),
    CE_EXCLUDE,
    VARIANT,
];
const CODEL_KEYS: &[Key] = &[
    ("target", Attribute(1, Unit::Microseconds)),
    ("interval", Attribute(3, Unit::Microseconds)),
    ("ecn", Attribute(4, Unit::Flag)),
    ("ce_threshold", Attribute(5, Unit::Microseconds)),
    ("ce_threshold_selector", Fixed("all")),
    CE_EXCLUDE,
    VARIANT,
];
const FQ_CODEL_KEYS: &[Key] = &[
    ("target", Attribute(FQ_CODEL_TARGET, Unit::Microseconds)),
    ("interval", Attribute(FQ_CODEL_INTERVAL, Unit::Microseconds)),
    ("ecn", Attribute(FQ_CODEL_ECN, Unit::Flag)),
    ("flows", Attribute(5, Unit::Number)),
    ("quantum", Attribute(6, Unit::Number)),
    ("ce_threshold", Attribute(7, Unit::Microseconds)),
    ("ce_threshold_selector", Elsewhere),
    ("drop_batch", Attribute(8, Unit::Number)),
    ("memory_limit", Attribute(9, Unit::Number)),
    CE_EXCLUDE,
    VARIANT,
];
const FQ_CODEL_TARGET: u16 = 1;
const FQ_CODEL_INTERVAL: u16 = 3;
const FQ_CODEL_ECN: u16 = 4;
const FQ_CODEL_SELECTOR: u16 = 10;
const FQ_CODEL_SELECTOR_MASK: u16 = 11;
const FQ_NOCODEL_KEYS: &[Key] = &[
    ("flows", Attribute(5, Unit::Number)),
    ("quantum", Attribute(6, Unit::Number)),
    ("drop_batch", Attribute(8, Unit::Number)),
    ("memory_limit", Attribute(9, Unit::Number)),
    ("ecn", Fixed("false")),
    VARIANT,
];
const FQ_KEYS: &[Key] = &[
    ("flows", Fixed("1024")),
    ("flow_limit", Attribute(2, Unit::Number)),
    ("quantum", Attribute(3, Unit::Number)),
    ("initial_quantum", Attribute(4, Unit::Number)),
    ("maxrate", Attribute(7, Unit::BytesPerSecond32)),
    ("refill_delay", Attribute(9, Unit::Microseconds)),
    ("low_rate_threshold", Attribute(11, Unit::BytesPerSecond32)),
    ("ce_threshold", Attribute(12, Unit::Microseconds)),
];
const HHF_KEYS: &[Key] = &[
    ("quantum", Attribute(2, Unit::Number)),
    ("hh_limit", Attribute(3, Unit::Number)),
    ("reset_timeout", Attribute(4, Unit::Microseconds)),
    ("admit_bytes", Attribute(5, Unit::Number)),
    ("evict_timeout", Attribute(6, Unit::Microseconds)),
    ("non_hh_weight", Attribute(7, Unit::Number)),
];
const SFQ_KEYS: &[Key] = &[
    ("flows", Elsewhere),
    ("depth", Elsewhere),
    ("divisor", Elsewhere),
    ("quantum", Elsewhere),
    ("perturb", Elsewhere),
    ("headdrop", Elsewhere),
    VARIANT,
];
const SFQ_RED_KEYS: &[Key] = &[
    ("flows", Elsewhere),
    ("depth", Elsewhere),
    ("divisor", Elsewhere),
    ("quantum", Elsewhere),
    ("perturb", Elsewhere),
    ("headdrop", Elsewhere),
    ("min", Elsewhere),
    ("max", Elsewhere),
    ("probability", Elsewhere),
    ("avpkt", Elsewhere),
    ("burst", Elsewhere),
    ("redflowlimit", Elsewhere),
    ("ecn", Elsewhere),
    ("harddrop", Elsewhere),
    ("gentle", Fixed("false")),
    CE_EXCLUDE,
    VARIANT,
];
const CHOKE_KEYS: &[Key] = &[
    ("min", Elsewhere),
    ("max", Elsewhere),
    ("avpkt", Elsewhere),
    ("burst", Elsewhere),
    ("bandwidth", Elsewhere),
    ("probability", Elsewhere),
    ("ecn", Elsewhere),
    VARIANT,
];
const CAKE_BANDWIDTH: u16 = 2;
const CAKE_TARGET: u16 = 8;
const CAKE_KEYS: &[Key] = &[
    ("bandwidth", Attribute(CAKE_BANDWIDTH, Unit::BytesPerSecond)),
    (
        "diffserv",
        Attribute(
            3,
            Unit::Words(&[
                "diffserv3",
                "diffserv4",
                "diffserv8",
                "besteffort",
                "precedence",
            ]),
        ),
    ),
    (
        "framing",
        Attribute(4, Unit::Words(&["noatm", "atm", "ptm"])),
    ),
    (
        "isolation",
        Attribute(
            5,
            Unit::Words(&[
                "flowblind",
                "srchost",
                "dsthost",
                "hosts",
                "flows",
                "dual-srchost",
                "dual-dsthost",
                "triple-isolate",
            ]),
        ),
    ),
    ("overhead", Attribute(6, Unit::Number)),
    ("rtt", Attribute(7, Unit::Microseconds)),
    ("memlimit", Attribute(10, Unit::Number)),
    ("mpu", Attribute(14, Unit::Number)),
    (
        "ack_filter",
        Attribute(
            16,
            Unit::Words(&["no-ack-filter", "ack-filter", "ack-filter-aggressive"]),
        ),
    ),
    ("ecn", Fixed("true")),
    // cake_mq has to be the root of a device; here CAKE is in a class of HTB.
    ("queues", Fixed("1")),
    VARIANT,
];
const SFB_KEYS: &[Key] = &[
    ("target", Elsewhere),
    ("max", Elsewhere),
    ("increment", Elsewhere),
    ("decrement", Elsewhere),
    ("rehash", Elsewhere),
    ("db", Elsewhere),
    ("penalty_rate", Elsewhere),
    ("penalty_burst", Elsewhere),
    ("ecn", Fixed("true")),
    VARIANT,
];
const DUALPI2_LIMIT: u16 = 1;
/// The kernel's default. It is always sent, because the kernel requires at least one attribute.
const DUALPI2_DEFAULT_LIMIT: u32 = 10_000;
const DUALPI2_KEYS: &[Key] = &[
    ("target", Attribute(3, Unit::Microseconds)),
    ("tupdate", Attribute(4, Unit::Microseconds)),
    ("alpha", Attribute(5, Unit::PerSecond256)),
    ("beta", Attribute(6, Unit::PerSecond256)),
    ("min_thresh", Attribute(8, Unit::Microseconds)),
    ("min_qlen_step", Attribute(9, Unit::Number)),
    ("coupling_factor", Attribute(10, Unit::Factor)),
    ("c_protection", Attribute(13, Unit::BytePercent)),
    ("range", Fixed("0 ms")),
    ("scheduler", Fixed("wrr")),
    ("nqb", Fixed("false")),
    ("queue_protection", Fixed("false")),
    VARIANT,
];

const FIFO: Row = Row {
    aqm: "pfifo",
    qdisc: "pfifo",
    module: "sch_fifo",
    counts: Counts::Packets,
    form: Form::Own(fields::fifo),
    keys: &[VARIANT],
    statistics: Statistics {
        source: Source::Application,
        marked: &[],
        overflow: Overflow::All,
        probability: None,
    },
};
const RED: Row = Row {
    aqm: "red",
    qdisc: "red",
    module: "sch_red",
    counts: Counts::Bytes,
    form: Form::Own(red::red),
    keys: RED_KEYS,
    statistics: counters::RED,
};
const PIE: Row = Row {
    aqm: "pie",
    qdisc: "pie",
    module: "sch_pie",
    counts: Counts::Packets,
    form: Form::Attributes(Some(2)),
    keys: PIE_KEYS,
    statistics: counters::PIE,
};
const FQ_CODEL: Row = Row {
    aqm: "fq_codel",
    qdisc: "fq_codel",
    module: "sch_fq_codel",
    counts: Counts::Packets,
    form: Form::Attributes(Some(2)),
    keys: FQ_CODEL_KEYS,
    statistics: counters::FQ_CODEL,
};
const SFQ: Row = Row {
    aqm: "sfq",
    qdisc: "sfq",
    module: "sch_sfq",
    counts: Counts::Packets,
    form: Form::Own(fields::sfq),
    keys: SFQ_KEYS,
    statistics: FIFO.statistics,
};

/// The disciplines available in a Linux kernel.
const ROWS: &[Row] = &[
    FIFO,
    Row {
        aqm: "bfifo",
        qdisc: "bfifo",
        counts: Counts::Bytes,
        ..FIFO
    },
    Row {
        aqm: "pfifo_head_drop",
        qdisc: "pfifo_head_drop",
        ..FIFO
    },
    RED,
    Row { aqm: "ared", ..RED },
    PIE,
    Row {
        aqm: "codel",
        qdisc: "codel",
        module: "sch_codel",
        counts: Counts::Packets,
        form: Form::Attributes(Some(2)),
        keys: CODEL_KEYS,
        statistics: counters::CODEL,
    },
    SFQ,
    Row {
        aqm: "sfq_red",
        form: Form::Own(red::sfq_red),
        keys: SFQ_RED_KEYS,
        statistics: counters::SFQ_RED,
        ..SFQ
    },
    FQ_CODEL,
    Row {
        aqm: "fq_nocodel",
        keys: FQ_NOCODEL_KEYS,
        ..FQ_CODEL
    },
    Row {
        aqm: "fq",
        qdisc: "fq",
        module: "sch_fq",
        counts: Counts::Packets,
        form: Form::Attributes(Some(1)),
        keys: FQ_KEYS,
        statistics: counters::FQ,
    },
    Row {
        aqm: "hhf",
        qdisc: "hhf",
        module: "sch_hhf",
        counts: Counts::Packets,
        form: Form::Attributes(Some(1)),
        keys: HHF_KEYS,
        statistics: counters::HHF,
    },
    Row {
        aqm: "fq_pie",
        qdisc: "fq_pie",
        module: "sch_fq_pie",
        form: Form::Attributes(Some(1)),
        keys: FQ_PIE_KEYS,
        statistics: counters::FQ_PIE,
        ..PIE
    },
    Row {
        aqm: "choke",
        qdisc: "choke",
        module: "sch_choke",
        counts: Counts::Packets,
        form: Form::Own(red::choke),
        keys: CHOKE_KEYS,
        statistics: counters::RED,
    },
    Row {
        aqm: "sfb",
        qdisc: "sfb",
        module: "sch_sfb",
        counts: Counts::Packets,
        form: Form::Own(fields::sfb),
        keys: SFB_KEYS,
        statistics: counters::SFB,
    },
    Row {
        aqm: "cake",
        qdisc: "cake",
        module: "sch_cake",
        counts: Counts::Nothing,
        form: Form::Attributes(None),
        keys: CAKE_KEYS,
        statistics: counters::CAKE,
    },
    Row {
        aqm: "dualpi2",
        qdisc: "dualpi2",
        module: "sch_dualpi2",
        counts: Counts::Packets,
        form: Form::Attributes(Some(DUALPI2_LIMIT)),
        keys: DUALPI2_KEYS,
        statistics: counters::DUALPI2,
    },
];

fn row(aqm: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.aqm == aqm)
}

/// The disciplines available in a Linux kernel, by their names in experiment files.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.aqm)
}

/// The kernel module of a discipline.
pub fn module(aqm: &str) -> Option<&'static str> {
    row(aqm).map(|row| row.module)
}

/// An arm as the kernel's options, on a link of `rate` with full frames of `frame` bytes.
///
/// # Errors
/// The kernel lacks the discipline, one of its keys, or its limit in that unit.
pub fn leaf(arm: &Queue, limit: Option<Limit>, frame: u32, rate: Rate) -> Result<Leaf, Refusal> {
    let Some(row) = row(&arm.aqm) else {
        let have: Vec<&str> = names().collect();
        return refuse(
            "aqm",
            format!(
                "must be one that Linux has ({}); \"{}\" runs on: sim, datapath",
                have.join(", "),
                arm.aqm
            ),
        );
    };
    let limit = kernel_limit(row, limit, frame)?;
    let given = given(row, arm)?;
    let options = match row.form {
        Form::Own(options) => options(arm, limit, &Line { frame, rate })?,
        Form::Attributes(number) => {
            let limit = number
                .zip(limit)
                .map_or_else(Attributes::new, |(number, limit)| {
                    Attributes::new().u32(number, limit)
                });
            Options::Attributes(limit.with(given).with(implied(row, arm)?))
        }
    };
    Ok(Leaf {
        kind: row.qdisc,
        options,
        module: row.module,
    })
}

/// The attributes of the keys that an arm gives.
fn given(row: &Row, arm: &Queue) -> Result<Attributes, Refusal> {
    let mut attributes = Attributes::new();
    for (key, value) in &arm.settings {
        let Some((_, parameter)) = row.keys.iter().find(|(known, _)| known == key) else {
            return refuse(
                key,
                format!("is not a key of Linux's {}: leave it out", row.qdisc),
            );
        };
        match parameter {
            Elsewhere => {}
            Fixed(fixed) if in_file(value) == *fixed => {}
            Fixed(fixed) => {
                return refuse(
                    key,
                    format!("must be {fixed}, which Linux's {} fixes", row.qdisc),
                );
            }
            Attribute(number, unit) => {
                attributes = attributes.put(*number, &encode(row.qdisc, key, value, *unit)?);
            }
        }
    }
    Ok(attributes)
}

/// Attributes that no single key gives.
fn implied(row: &Row, arm: &Queue) -> Result<Attributes, Refusal> {
    let none = Attributes::new();
    Ok(match row.aqm {
        "pie" => pie(arm, [1, 3, 4, 5], Some(8))?,
        "fq_pie" => pie(arm, [3, 4, 5, 6], None)?,
        "fq_codel" => match setting(arm, "ce_threshold_selector") {
            // The ECN field, and a mask that leaves it of the DS field.
            Some(Value::Word(word)) if word == "ect1" => none
                .put(FQ_CODEL_SELECTOR, &[0x01])
                .put(FQ_CODEL_SELECTOR_MASK, &[0x03]),
            _ => none,
        },
        // A target that no packet reaches disables CoDel.
        "fq_nocodel" => none
            .u32(FQ_CODEL_TARGET, NEVER_US)
            .u32(FQ_CODEL_INTERVAL, NEVER_US)
            .u32(FQ_CODEL_ECN, 0),
        "cake" => {
            // The link's shaper sets the rate.
            let unlimited = setting(arm, "bandwidth").is_none();
            let none = if unlimited {
                none.u64(CAKE_BANDWIDTH, 0)
            } else {
                none
            };
            // From another rtt, tc derives another target.
            match setting(arm, "rtt") {
                Some(Value::Duration(rtt)) => none.u32(
                    CAKE_TARGET,
                    whole(rtt.as_nanos() as f64 / 20e3, "rtt")?.max(1),
                ),
                _ => none,
            }
        }
        _ => none,
    })
}

/// A target and interval that no packet reaches.
const NEVER_US: u32 = 1_000_000_000;

/// PIE's variant and gains, by the numbers of target, period and gains and of the rate estimator. The kernel counts
/// gains in sixteenths; a file does so only with `variant = "linux"`.
fn pie(arm: &Queue, numbers: [u16; 4], estimator: Option<u16>) -> Result<Attributes, Refusal> {
    let [target, tupdate, alpha, beta] = numbers;
    let variant = match setting(arm, "variant") {
        Some(Value::Word(word)) => word.as_str(),
        _ => "rfc8033",
    };
    let mut attributes = Attributes::new();
    if variant == "2013" {
        for (key, number, default_us) in [("target", target, 20_000), ("tupdate", tupdate, 30_000)]
        {
            if setting(arm, key).is_none() {
                attributes = attributes.u32(number, default_us);
            }
        }
        if let (Some(number), None) = (estimator, setting(arm, "dq_rate_estimator")) {
            attributes = attributes.u32(number, 1);
        }
    }
    let sixteenths = if variant == "linux" { 1.0 } else { 16.0 };
    for (key, number) in [("alpha", alpha), ("beta", beta)] {
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
            attributes = attributes.u32(number, gain as u32);
        }
    }
    Ok(attributes)
}

/// The limit in the kernel's unit; `None` leaves it to the kernel.
fn kernel_limit(row: &Row, limit: Option<Limit>, frame: u32) -> Result<Option<u32>, Refusal> {
    let given = match (row.counts, limit) {
        (Counts::Nothing, _) => return Ok(None),
        // These have no default; the experiment's is 1000 packets.
        (Counts::Bytes, None) => 1000 * u64::from(frame),
        (_, None) if row.qdisc == "choke" => 1000,
        (_, None) if row.qdisc == "dualpi2" => u64::from(DUALPI2_DEFAULT_LIMIT),
        (_, None) => return Ok(None),
        (Counts::Packets, Some(Limit::Packets(packets))) => packets,
        (Counts::Bytes, Some(Limit::Bytes(bytes))) => bytes,
        (Counts::Bytes, Some(Limit::Packets(packets))) => packets * u64::from(frame),
        (Counts::Packets, Some(Limit::Bytes(_))) => {
            return refuse(
                "limit",
                format!("must be in packets, as Linux's {} counts", row.qdisc),
            );
        }
    };
    u32::try_from(given).map(Some).or_else(|_| {
        refuse(
            "limit",
            "must be below 4294967296, which is as far as the kernel counts",
        )
    })
}

/// A value in the notation of an experiment file.
fn in_file(value: &Value) -> String {
    match value {
        Value::Duration(span) => span.to_string(),
        Value::Rate(rate) => rate.to_string(),
        Value::Bytes(count) | Value::Packets(count) | Value::Count(count) => count.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Word(word) => word.clone(),
        Value::File(file) => file.name.clone(),
    }
}

fn setting<'a>(arm: &'a Queue, key: &str) -> Option<&'a Value> {
    arm.settings
        .iter()
        .find(|(known, _)| known == key)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
