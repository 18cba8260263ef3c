//! Disciplines of the experiment file as the kernel is told of them, and their counters in `tc -s`.
//!
//! A table lists the keys that the kernel supports, with their `tc` words. A key that it does not support is refused,
//! unless its value is the kernel's fixed behaviour. Parameters that are not given are left to the kernel, except
//! where `tc` has no default or derives one from a different link.

use sojourn_experiment::derived::Limit;
use sojourn_experiment::model::Queue;
use sojourn_units::{Duration, Rate, Value};

mod attributes;
mod counters;
mod derived;

use attributes::{DUALPI2_ATTRIBUTES, attributes};
pub use counters::{Counters, counters};
use derived::{choke_words, perturb_words, pie_words, red_words, sfb_words};

/// A discipline to add to a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// What the kernel is told.
    pub how: How,
    /// The kernel module of the discipline.
    pub module: String,
}

/// How the kernel is told of a discipline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// Arguments of `tc qdisc add … parent …` from the qdisc's name on: `codel limit 1000 target 5000us`.
    Words(String),
    /// Its name, and its attributes with their values.
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
enum Word {
    /// `word value`.
    Value(&'static str),
    /// The first word if true, the second (if not empty) if false.
    Flag(&'static str, &'static str),
    /// The value is the word.
    Itself,
    /// The kernel's fixed behaviour. Only this value is accepted.
    Always(&'static str),
    /// Handled by the discipline's own function, or without effect on the kernel.
    Apart,
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
    keys: &'static [(&'static str, Word)],
    /// The counters of marks; none if `tc` does not show them.
    marked: &'static [&'static str],
    overflow: Overflow,
}

/// A key with the same name in `tc`.
const fn value(key: &'static str) -> (&'static str, Word) {
    (key, Word::Value(key))
}

/// A key that `tc` has as a word without a value.
const fn flag(key: &'static str) -> (&'static str, Word) {
    (key, Word::Flag(key, ""))
}

const ECN: (&str, Word) = ("ecn", Word::Flag("ecn", "noecn"));
const VARIANT: (&str, Word) = ("variant", Word::Apart);
const CE_EXCLUDE: (&str, Word) = ("ce_exclude", Word::Always("false"));
const RED_KEYS: &[(&str, Word)] = &[
    flag("ecn"),
    flag("harddrop"),
    ("min", Word::Apart),
    ("max", Word::Apart),
    ("avpkt", Word::Apart),
    ("burst", Word::Apart),
    ("bandwidth", Word::Apart),
    ("target", Word::Apart),
    value("probability"),
    ("gentle", Word::Always("false")),
    ("wait", Word::Always("false")),
    ("bytemode", Word::Always("false")),
    ("adapt_interval", Word::Always("500ms")),
    CE_EXCLUDE,
    VARIANT,
];
const PIE_KEYS: &[(&str, Word)] = &[
    ECN,
    ("bytemode", Word::Flag("bytemode", "nobytemode")),
    (
        "dq_rate_estimator",
        Word::Flag("dq_rate_estimator", "no_dq_rate_estimator"),
    ),
    value("target"),
    value("tupdate"),
    ("alpha", Word::Apart),
    ("beta", Word::Apart),
    ("max_burst", Word::Always("150ms")),
    ("ecn_threshold", Word::Always("0.1")),
    ("autotune", Word::Always("true")),
    ("derandomize", Word::Always("true")),
    ("cap", Word::Always("true")),
    ("early_decay", Word::Always("false")),
    ("rest", Word::Always("false")),
    CE_EXCLUDE,
    VARIANT,
];
const CODEL_KEYS: &[(&str, Word)] = &[
    ECN,
    value("target"),
    value("interval"),
    value("ce_threshold"),
    CE_EXCLUDE,
    VARIANT,
];
const FQ_CODEL_KEYS: &[(&str, Word)] = &[
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
const SFQ_KEYS: &[(&str, Word)] = &[
    value("flows"),
    value("depth"),
    value("divisor"),
    value("quantum"),
    ("perturb", Word::Apart),
    flag("headdrop"),
    VARIANT,
];
const SFQ_RED_KEYS: &[(&str, Word)] = &[
    value("flows"),
    value("depth"),
    value("divisor"),
    value("quantum"),
    ("perturb", Word::Apart),
    flag("headdrop"),
    value("min"),
    value("max"),
    value("probability"),
    value("avpkt"),
    value("burst"),
    value("redflowlimit"),
    flag("ecn"),
    flag("harddrop"),
    ("gentle", Word::Always("false")),
    CE_EXCLUDE,
    VARIANT,
];
const CHOKE_KEYS: &[(&str, Word)] = &[
    ("min", Word::Apart),
    ("max", Word::Apart),
    value("avpkt"),
    value("burst"),
    value("bandwidth"),
    value("probability"),
    flag("ecn"),
    VARIANT,
];
const CAKE_KEYS: &[(&str, Word)] = &[
    value("bandwidth"),
    value("rtt"),
    ("diffserv", Word::Itself),
    ("isolation", Word::Itself),
    ("ack_filter", Word::Itself),
    value("overhead"),
    value("mpu"),
    ("framing", Word::Itself),
    value("memlimit"),
    ("ecn", Word::Always("true")),
    VARIANT,
];
const SFB_KEYS: &[(&str, Word)] = &[
    value("target"),
    value("max"),
    ("increment", Word::Apart),
    ("decrement", Word::Apart),
    ("rehash", Word::Apart),
    ("db", Word::Apart),
    value("penalty_rate"),
    value("penalty_burst"),
    ("ecn", Word::Always("true")),
    VARIANT,
];
const DUALPI2_KEYS: &[(&str, Word)] = &[
    ("target", Word::Apart),
    ("tupdate", Word::Apart),
    ("alpha", Word::Apart),
    ("beta", Word::Apart),
    ("coupling_factor", Word::Apart),
    ("min_thresh", Word::Apart),
    ("min_qlen_step", Word::Apart),
    ("c_protection", Word::Apart),
    ("range", Word::Always("0ms")),
    ("scheduler", Word::Always("wrr")),
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
            ("ecn", Word::Always("false")),
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
            ("bytemode", Word::Flag("bytemode", "nobytemode")),
            value("target"),
            value("tupdate"),
            ("alpha", Word::Apart),
            ("beta", Word::Apart),
            value("flows"),
            value("quantum"),
            value("memory_limit"),
            ("ecn_threshold", Word::Apart),
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
    let mut words = vec![row.qdisc.to_owned()];
    words.extend(limit_words(row, limit, frame)?);
    match row.aqm {
        "red" | "ared" => words.extend(red_words(arm, frame, rate)?),
        "pie" | "fq_pie" => words.extend(pie_words(arm)?),
        // A target that no packet reaches disables CoDel.
        "fq_nocodel" => words.push("target 1000s interval 1000s noecn".into()),
        "choke" => words.extend(choke_words(arm, frame, rate)),
        "sfb" => words.extend(sfb_words(arm)),
        "sfq" | "sfq_red" => words.extend(perturb_words(arm)?),
        // The link's shaper sets the rate.
        "cake" if setting(arm, "bandwidth").is_none() => words.push("unlimited".into()),
        _ => {}
    }
    for (key, value) in &arm.settings {
        let Some((_, word)) = row.keys.iter().find(|(known, _)| known == key) else {
            return refuse(
                key,
                format!("is not a key of Linux's {}: leave it out", row.qdisc),
            );
        };
        words.extend(key_words(row, key, *word, value)?);
    }
    let how = match row.aqm {
        // tc knows it since 6.17, as the kernel does; many distributions have an older one.
        "dualpi2" => How::Attributes(
            row.qdisc.into(),
            attributes(arm, limit, DUALPI2_ATTRIBUTES)?,
        ),
        _ => How::Words(words.join(" ")),
    };
    Ok(Leaf {
        how,
        module: row.module.into(),
    })
}

fn limit_words(row: &Row, limit: Option<Limit>, frame: u32) -> Result<Option<String>, Refusal> {
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

fn key_words(row: &Row, key: &str, word: Word, value: &Value) -> Result<Option<String>, Refusal> {
    Ok(match (word, value) {
        (Word::Apart, _) => None,
        (Word::Flag(yes, _), Value::Flag(true)) => Some(yes.into()),
        (Word::Flag(_, no), _) => (!no.is_empty()).then(|| no.into()),
        (Word::Itself, Value::Word(word)) => Some(word.clone()),
        (Word::Always(always), value) if plain(value) == always => None,
        (Word::Always(always), _) => {
            return refuse(
                key,
                format!("must be {always}, as Linux's {} has it", row.qdisc),
            );
        }
        (Word::Value(word), value) => Some(format!("{word} {}", plain(value))),
        (Word::Itself, _) => None,
    })
}

/// A value in `tc` notation.
fn plain(value: &Value) -> String {
    match value {
        Value::Duration(span) => span_words(*span),
        Value::Rate(rate) => format!("{}bit", rate.as_bps()),
        Value::Bytes(count) | Value::Packets(count) | Value::Count(count) => count.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Word(word) => word.clone(),
    }
}

/// A time in `tc` notation: whole milliseconds, otherwise microseconds.
pub fn span_words(span: Duration) -> String {
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
