//! Disciplines of the experiment file as `tc` arguments or netlink attributes, and their counters in `tc -s`.
//!
//! A table lists the keys that the kernel supports, with their `tc` arguments. A key that it does not support is refused,
//! unless its value is the kernel's fixed behaviour. Parameters that are not given are left to the kernel, except
//! where `tc` has no default or derives one from a different link.

use sojourn_experiment::derived::Limit;
use sojourn_experiment::model::Queue;
use sojourn_units::{Duration, Kind, Rate, Value};

mod attributes;
mod counters;
mod derived;

use attributes::{DUALPI2_ATTRIBUTES, attributes};
pub use counters::{Counters, counters};
use derived::{choke_arguments, perturb_argument, pie_arguments, red_arguments, sfb_arguments};

/// A discipline to add to a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// How it is passed to the kernel.
    pub encoding: Encoding,
    /// The kernel module of the discipline.
    pub module: String,
}

/// A discipline and its parameters as the kernel gets them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// Arguments of `tc qdisc add … parent …` from the qdisc's name on: `codel limit 1000 target 5000us`.
    TcArguments(String),
    /// Its name, and its netlink attributes with their values.
    Attributes(String, Vec<(u16, Vec<u8>)>),
}

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

/// How a key becomes `tc` arguments.
#[derive(Clone, Copy)]
enum Argument {
    /// This name, followed by the value.
    Value(&'static str),
    /// The first word if true, the second (if not empty) if false.
    Flag(&'static str, &'static str),
    /// The value itself.
    Itself,
    /// The kernel's fixed behaviour. Only this value is accepted.
    Fixed(&'static str),
    /// Handled by the discipline's own function, or without effect on the kernel.
    Elsewhere,
}

/// How to obtain the number of overflow drops from the counters.
#[derive(Clone, Copy)]
enum Overflow {
    /// All drops are overflow drops.
    All,
    /// The sum of these counters.
    Counted(&'static [&'static str]),
    /// All drops except those in these counters.
    AllBut(&'static [&'static str]),
}

struct Row {
    aqm: &'static str,
    qdisc: &'static str,
    module: &'static str,
    counts: Counts,
    keys: &'static [(&'static str, Argument)],
    /// The counters of marks; none if `tc` does not show them.
    marked: &'static [&'static str],
    overflow: Overflow,
}

/// A key with the same name in `tc`.
const fn value(key: &'static str) -> (&'static str, Argument) {
    (key, Argument::Value(key))
}

/// A flag: a key that `tc` has without a value.
const fn flag(key: &'static str) -> (&'static str, Argument) {
    (key, Argument::Flag(key, ""))
}

const ECN: (&str, Argument) = ("ecn", Argument::Flag("ecn", "noecn"));
const VARIANT: (&str, Argument) = ("variant", Argument::Elsewhere);
const CE_EXCLUDE: (&str, Argument) = ("ce_exclude", Argument::Fixed("false"));
const RED_KEYS: &[(&str, Argument)] = &[
    flag("ecn"),
    flag("harddrop"),
    ("min", Argument::Elsewhere),
    ("max", Argument::Elsewhere),
    ("avpkt", Argument::Elsewhere),
    ("burst", Argument::Elsewhere),
    ("bandwidth", Argument::Elsewhere),
    ("target", Argument::Elsewhere),
    value("probability"),
    ("gentle", Argument::Fixed("false")),
    ("wait", Argument::Fixed("false")),
    ("bytemode", Argument::Fixed("false")),
    ("adapt_interval", Argument::Fixed("500ms")),
    CE_EXCLUDE,
    VARIANT,
];
const PIE_KEYS: &[(&str, Argument)] = &[
    ECN,
    ("bytemode", Argument::Flag("bytemode", "nobytemode")),
    (
        "dq_rate_estimator",
        Argument::Flag("dq_rate_estimator", "no_dq_rate_estimator"),
    ),
    value("target"),
    value("tupdate"),
    ("alpha", Argument::Elsewhere),
    ("beta", Argument::Elsewhere),
    ("max_burst", Argument::Fixed("150ms")),
    ("ecn_threshold", Argument::Fixed("0.1")),
    ("autotune", Argument::Fixed("true")),
    ("derandomize", Argument::Fixed("true")),
    ("cap", Argument::Fixed("true")),
    ("early_decay", Argument::Fixed("false")),
    ("rest", Argument::Fixed("false")),
    CE_EXCLUDE,
    VARIANT,
];
const CODEL_KEYS: &[(&str, Argument)] = &[
    ECN,
    value("target"),
    value("interval"),
    value("ce_threshold"),
    CE_EXCLUDE,
    VARIANT,
];
const FQ_CODEL_KEYS: &[(&str, Argument)] = &[
    ECN,
    value("target"),
    value("interval"),
    value("ce_threshold"),
    value("flows"),
    value("quantum"),
    value("memory_limit"),
    value("drop_batch"),
    CE_EXCLUDE,
    VARIANT,
];
const SFQ_KEYS: &[(&str, Argument)] = &[
    value("flows"),
    value("depth"),
    value("divisor"),
    value("quantum"),
    ("perturb", Argument::Elsewhere),
    flag("headdrop"),
    VARIANT,
];
const SFQ_RED_KEYS: &[(&str, Argument)] = &[
    value("flows"),
    value("depth"),
    value("divisor"),
    value("quantum"),
    ("perturb", Argument::Elsewhere),
    flag("headdrop"),
    value("min"),
    value("max"),
    value("probability"),
    value("avpkt"),
    value("burst"),
    value("redflowlimit"),
    flag("ecn"),
    flag("harddrop"),
    ("gentle", Argument::Fixed("false")),
    CE_EXCLUDE,
    VARIANT,
];
const CHOKE_KEYS: &[(&str, Argument)] = &[
    ("min", Argument::Elsewhere),
    ("max", Argument::Elsewhere),
    value("avpkt"),
    value("burst"),
    value("bandwidth"),
    value("probability"),
    flag("ecn"),
    VARIANT,
];
const CAKE_KEYS: &[(&str, Argument)] = &[
    value("bandwidth"),
    value("rtt"),
    ("diffserv", Argument::Itself),
    ("isolation", Argument::Itself),
    ("ack_filter", Argument::Itself),
    value("overhead"),
    value("mpu"),
    ("framing", Argument::Itself),
    value("memlimit"),
    ("ecn", Argument::Fixed("true")),
    VARIANT,
];
const SFB_KEYS: &[(&str, Argument)] = &[
    value("target"),
    value("max"),
    ("increment", Argument::Elsewhere),
    ("decrement", Argument::Elsewhere),
    ("rehash", Argument::Elsewhere),
    ("db", Argument::Elsewhere),
    value("penalty_rate"),
    value("penalty_burst"),
    ("ecn", Argument::Fixed("true")),
    VARIANT,
];
const DUALPI2_KEYS: &[(&str, Argument)] = &[
    ("target", Argument::Elsewhere),
    ("tupdate", Argument::Elsewhere),
    ("alpha", Argument::Elsewhere),
    ("beta", Argument::Elsewhere),
    ("coupling_factor", Argument::Elsewhere),
    ("min_thresh", Argument::Elsewhere),
    ("min_qlen_step", Argument::Elsewhere),
    ("c_protection", Argument::Elsewhere),
    ("range", Argument::Fixed("0ms")),
    ("scheduler", Argument::Fixed("wrr")),
    VARIANT,
];

const FIFO: Row = Row {
    aqm: "pfifo",
    qdisc: "pfifo",
    module: "sch_fifo",
    counts: Counts::Packets,
    keys: &[VARIANT],
    marked: &[],
    overflow: Overflow::All,
};
const RED: Row = Row {
    aqm: "red",
    qdisc: "red",
    module: "sch_red",
    counts: Counts::Bytes,
    keys: RED_KEYS,
    marked: &["marked"],
    overflow: Overflow::Counted(&["pdrop"]),
};
const PIE: Row = Row {
    aqm: "pie",
    qdisc: "pie",
    module: "sch_pie",
    counts: Counts::Packets,
    keys: PIE_KEYS,
    marked: &["ecn_mark"],
    overflow: Overflow::Counted(&["overlimit"]),
};
const FQ_CODEL: Row = Row {
    aqm: "fq_codel",
    qdisc: "fq_codel",
    module: "sch_fq_codel",
    counts: Counts::Packets,
    keys: FQ_CODEL_KEYS,
    marked: &["ecn_mark", "ce_mark"],
    overflow: Overflow::Counted(&["drop_overlimit"]),
};
const SFQ: Row = Row {
    aqm: "sfq",
    qdisc: "sfq",
    module: "sch_sfq",
    counts: Counts::Packets,
    keys: SFQ_KEYS,
    marked: &[],
    overflow: Overflow::All,
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
        keys: CODEL_KEYS,
        marked: &["ecn_mark", "ce_mark"],
        overflow: Overflow::Counted(&["drop_overlimit"]),
    },
    SFQ,
    Row {
        aqm: "sfq_red",
        keys: SFQ_RED_KEYS,
        marked: &["prob_mark", "forced_mark"],
        overflow: Overflow::AllBut(&["prob_drop", "forced_drop"]),
        ..SFQ
    },
    FQ_CODEL,
    Row {
        aqm: "fq_nocodel",
        keys: &[
            value("flows"),
            value("quantum"),
            value("memory_limit"),
            value("drop_batch"),
            ("ecn", Argument::Fixed("false")),
            VARIANT,
        ],
        ..FQ_CODEL
    },
    Row {
        aqm: "fq_pie",
        qdisc: "fq_pie",
        module: "sch_fq_pie",
        keys: &[
            ECN,
            ("bytemode", Argument::Flag("bytemode", "nobytemode")),
            value("target"),
            value("tupdate"),
            ("alpha", Argument::Elsewhere),
            ("beta", Argument::Elsewhere),
            value("flows"),
            value("quantum"),
            value("memory_limit"),
            ("ecn_threshold", Argument::Elsewhere),
            CE_EXCLUDE,
            VARIANT,
        ],
        ..PIE
    },
    Row {
        aqm: "choke",
        qdisc: "choke",
        module: "sch_choke",
        counts: Counts::Packets,
        keys: CHOKE_KEYS,
        marked: &["marked"],
        overflow: Overflow::Counted(&["pdrop"]),
    },
    Row {
        aqm: "sfb",
        qdisc: "sfb",
        module: "sch_sfb",
        counts: Counts::Packets,
        keys: SFB_KEYS,
        marked: &["marked"],
        overflow: Overflow::Counted(&["queuedrop", "childdrop"]),
    },
    Row {
        aqm: "cake",
        qdisc: "cake",
        module: "sch_cake",
        counts: Counts::Nothing,
        keys: CAKE_KEYS,
        marked: &["marks"],
        overflow: Overflow::Counted(&[]),
    },
    Row {
        aqm: "dualpi2",
        qdisc: "dualpi2",
        module: "sch_dualpi2",
        counts: Counts::Packets,
        keys: DUALPI2_KEYS,
        marked: &[],
        overflow: Overflow::Counted(&["overlimits"]),
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

/// An arm as `tc` arguments, on a link of `rate` with full frames of `frame` bytes.
///
/// # Errors
/// The kernel lacks the discipline, one of its keys, or its limit in that unit.
pub fn leaf(arm: &Queue, limit: Option<Limit>, frame: u32, rate: Rate) -> Result<Leaf, Refusal> {
    let Some(row) = row(&arm.aqm) else {
        let have: Vec<&str> = names().collect();
        return refuse(
            "aqm",
            format!(
                "must be one that Linux has ({}); \"{}\" runs on: sim",
                have.join(", "),
                arm.aqm
            ),
        );
    };
    let mut arguments = vec![row.qdisc.to_owned()];
    arguments.extend(limit_argument(row, limit, frame)?);
    match row.aqm {
        "red" | "ared" => arguments.extend(red_arguments(arm, frame, rate)?),
        "pie" | "fq_pie" => arguments.extend(pie_arguments(arm)?),
        // A target that no packet reaches disables CoDel.
        "fq_nocodel" => arguments.push("target 1000s interval 1000s noecn".into()),
        "choke" => arguments.extend(choke_arguments(arm, frame, rate)),
        "sfb" => arguments.extend(sfb_arguments(arm)),
        "sfq" | "sfq_red" => arguments.extend(perturb_argument(arm)?),
        // The link's shaper sets the rate.
        "cake" if setting(arm, "bandwidth").is_none() => arguments.push("unlimited".into()),
        _ => {}
    }
    for (key, value) in &arm.settings {
        let Some((_, argument)) = row.keys.iter().find(|(known, _)| known == key) else {
            return refuse(
                key,
                format!("is not a key of Linux's {}: leave it out", row.qdisc),
            );
        };
        arguments.extend(key_argument(row, key, *argument, value)?);
    }
    let encoding = match row.aqm {
        // tc and the kernel have it since 6.17; the tc of many distributions is older.
        "dualpi2" => Encoding::Attributes(
            row.qdisc.into(),
            attributes(arm, limit, DUALPI2_ATTRIBUTES)?,
        ),
        _ => Encoding::TcArguments(arguments.join(" ")),
    };
    Ok(Leaf {
        encoding,
        module: row.module.into(),
    })
}

fn limit_argument(row: &Row, limit: Option<Limit>, frame: u32) -> Result<Option<String>, Refusal> {
    let given = match (row.counts, limit) {
        (Counts::Nothing, _) => return Ok(None),
        // tc has no default for these limits; the experiment's is 1000 packets.
        (Counts::Bytes, None) => 1000 * u64::from(frame),
        (_, None) if row.qdisc == "choke" => 1000,
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
    if given > u64::from(u32::MAX) {
        return refuse(
            "limit",
            "must be below 4294967296, which is as far as tc counts",
        );
    }
    Ok(Some(format!("limit {given}")))
}

fn key_argument(
    row: &Row,
    key: &str,
    argument: Argument,
    value: &Value,
) -> Result<Option<String>, Refusal> {
    Ok(match (argument, value) {
        (Argument::Elsewhere, _) => None,
        (Argument::Flag(yes, _), Value::Flag(true)) => Some(yes.into()),
        (Argument::Flag(_, no), _) => (!no.is_empty()).then(|| no.into()),
        (Argument::Itself, Value::Word(word)) => Some(word.clone()),
        (Argument::Fixed(fixed), value) if tc_value(value) == fixed => None,
        (Argument::Fixed(fixed), _) => {
            let fixed = as_in_file(fixed);
            return refuse(
                key,
                format!("must be {fixed}, which Linux's {} fixes", row.qdisc),
            );
        }
        (Argument::Value(word), value) => Some(format!("{word} {}", tc_value(value))),
        (Argument::Itself, _) => None,
    })
}

/// A fixed value in the notation of an experiment file: `150 ms` for `150ms`.
fn as_in_file(fixed: &str) -> String {
    match Kind::Duration.parse(fixed) {
        Ok(Value::Duration(span)) => span.to_string(),
        _ => fixed.into(),
    }
}

/// A value in `tc` notation.
fn tc_value(value: &Value) -> String {
    match value {
        Value::Duration(span) => tc_time(*span),
        Value::Rate(rate) => format!("{}bit", rate.as_bps()),
        Value::Bytes(count) | Value::Packets(count) | Value::Count(count) => count.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Word(word) => word.clone(),
    }
}

/// A time in `tc` notation: whole milliseconds, otherwise microseconds.
pub fn tc_time(span: Duration) -> String {
    let nanos = span.as_nanos();
    if nanos % 1_000_000 == 0 {
        format!("{}ms", nanos / 1_000_000)
    } else {
        format!("{}us", (nanos + 500) / 1000)
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
