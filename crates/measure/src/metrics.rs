//! The registry of metrics: the name, unit, description and key in the summary of every number of a result.
//!
//! Tables, figures, stores and pages read it; a new metric is declared here and nowhere else, and if its number is new, that as a
//! field of the result. A name ends in the unit of the summary, and [`UNITS`] has what people see of it.

use serde::Serialize;

/// The element of a run that a metric is a number of.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// The run: [`RunResult`](crate::result::RunResult).
    Run,
    /// All flows in a direction: the sum over them, each a [`Flow`](crate::flow::Flow).
    Direction,
    /// A queue: a [`Bottleneck`](crate::result::Bottleneck).
    Queue,
    /// A queue of a discipline that has several: an [`InnerQueue`](crate::result::InnerQueue).
    InnerQueue,
    /// A traffic group in a direction: a [`Group`](crate::groups::Group).
    Group,
    /// A Wi-Fi station: a [`Station`](crate::cell::Station).
    Station,
}

/// A number of a result.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Metric {
    /// Its name, with the unit of the summary as suffix; unique per element.
    pub name: &'static str,
    /// The element that has it.
    pub over: Over,
    /// The keys of the element that it is the sum of, dotted: `sojourn_ms.p95`.
    pub at: &'static [&'static str],
    /// The head of a column, without the unit.
    pub head: &'static str,
    /// The unit that people see; empty for a bare number.
    pub unit: &'static str,
    /// The size of `unit` in the summary's unit.
    pub per: f64,
    /// Decimal places in a table.
    pub digits: u8,
    /// Its description, for an axis.
    pub words: &'static str,
    /// Whether a user of the application perceives it.
    pub of_application: bool,
    /// The ends of its scale, if that does not begin at zero.
    pub scale: Option<(f64, f64)>,
    /// The metric with the number of values, for a quantile that may have few.
    pub counted_by: Option<&'static str>,
    /// A kind of traffic that has no such figure, although the summary has a number.
    pub not_of: Option<&'static str>,
    /// Whether zero means that there is no figure.
    pub zero_is_none: bool,
    /// Whether tables and comparisons leave it out, so that only files, frames, studies and whoever names it have it.
    pub detail: bool,
}

/// The unit of numbers whose key, or the name of a metric, ends so.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Unit {
    /// The end, or the whole key.
    pub ending: &'static str,
    /// The unit in the summary.
    pub unit: &'static str,
    /// The unit that people see; empty for a bare number.
    pub shown: &'static str,
    /// The size of `shown` in `unit`.
    pub per: f64,
}

const fn unit(ending: &'static str, unit: &'static str, shown: &'static str, per: f64) -> Unit {
    Unit {
        ending,
        unit,
        shown,
        per,
    }
}

/// The units of a result, the longer one of two endings first.
#[rustfmt::skip]
pub const UNITS: &[Unit] = &[
    unit("power_bps_per_s", "bit/s²", "", 1.0),
    unit("_ms", "ms", "ms", 1.0),
    unit("_s", "s", "s", 1.0),
    unit("_bps", "bit/s", "Mbit/s", 1e6),
    unit("jain_drop_share", "1", "", 1.0),
    unit("_share", "1", "%", 0.01),
    unit("utilization", "1", "%", 0.01),
    unit("_kilobytes", "kB", "kB", 1.0),
    unit("_bytes", "B", "kB", 1e3),
    unit("_packets", "packets", "", 1.0),
    unit("_frames", "frames", "", 1.0),
    unit("dropped_aqm", "packets", "", 1.0),
    unit("dropped_overflow", "packets", "", 1.0),
    unit("marked", "packets", "", 1.0),
    unit("retransmits", "segments", "", 1.0),
    unit("mos", "1 to 4.5", "1–4.5", 1.0),
    unit("qoo", "0 to 100", "0–100", 1.0),
    unit("jain_goodput", "1", "", 1.0),
    unit("loss_synchronization", "1", "", 1.0),
];

/// The unit of a name; a bare number if it has no ending of [`UNITS`].
pub const fn unit_of(name: &str) -> Unit {
    let mut at = 0;
    while at < UNITS.len() {
        if ends_with(name.as_bytes(), UNITS[at].ending.as_bytes()) {
            return UNITS[at];
        }
        at += 1;
    }
    unit("", "", "", 1.0)
}

const fn ends_with(text: &[u8], end: &[u8]) -> bool {
    match text.len().checked_sub(end.len()) {
        None => false,
        Some(before) => {
            let mut at = 0;
            while at < end.len() && text[before + at] == end[at] {
                at += 1;
            }
            at == end.len()
        }
    }
}

const fn metric(
    over: Over,
    name: &'static str,
    at: &'static [&'static str],
    head: &'static str,
    digits: u8,
    words: &'static str,
) -> Metric {
    let Unit {
        shown: unit, per, ..
    } = unit_of(name);
    Metric {
        name,
        over,
        at,
        head,
        unit,
        per,
        digits,
        words,
        of_application: false,
        scale: None,
        counted_by: None,
        not_of: None,
        zero_is_none: false,
        detail: false,
    }
}

const fn detail(mut figure: Metric) -> Metric {
    figure.detail = true;
    figure
}

/// A quantile of the times of an application, of which there may be few.
const fn time(mut quantile: Metric, counted_by: &'static str) -> Metric {
    quantile.of_application = true;
    quantile.counted_by = Some(counted_by);
    quantile
}

const fn perceived(mut figure: Metric) -> Metric {
    figure.of_application = true;
    figure
}

const fn count(mut figure: Metric) -> Metric {
    figure.zero_is_none = true;
    figure
}

/// All metrics, in the order of tables.
#[rustfmt::skip]
pub const METRICS: &[Metric] = {
    use Over::{Direction, Group, InnerQueue, Queue, Run, Station};
    &[
        metric(Queue, "sojourn_p50_ms", &["sojourn_ms.p50"], "p50", 2, "median sojourn time"),
        metric(Queue, "sojourn_p95_ms", &["sojourn_ms.p95"], "p95", 2, "p95 of the sojourn time"),
        metric(Queue, "sojourn_mean_ms", &["sojourn_ms.mean"], "mean", 2, "mean sojourn time"),
        metric(Direction, "goodput_bps", &["goodput_bps"], "goodput", 2, "goodput"),
        metric(Queue, "utilization", &["utilization"], "util.", 1, "utilization"),
        metric(Queue, "dropped_packets", &["dropped_aqm", "dropped_overflow"], "drops", 0, "dropped packets"),
        metric(Queue, "marked_packets", &["marked"], "marks", 0, "marked packets"),
        metric(Queue, "lost_packets", &["lost_packets"], "lost", 0, "packets lost on the wire"),
        metric(Run, "jain_goodput", &["jain_goodput"], "Jain", 2, "Jain's index over goodput"),
        detail(metric(Queue, "sojourn_p99_ms", &["sojourn_ms.p99"], "p99", 2, "p99 of the sojourn time")),
        detail(metric(Queue, "sojourn_p99_9_ms", &["sojourn_ms.p99_9"], "p99.9", 2, "p99.9 of the sojourn time")),
        detail(metric(Queue, "startup_peak_ms", &["startup_peak_ms"], "start-up", 2, "longest sojourn time of the warm-up")),
        detail(metric(Queue, "dropped_aqm", &["dropped_aqm"], "by the AQM", 0, "packets dropped by the algorithm")),
        detail(metric(Queue, "dropped_overflow", &["dropped_overflow"], "overflow", 0, "packets dropped for lack of room")),
        detail(metric(Queue, "delivered_packets", &["delivered_packets"], "packets", 0, "delivered packets")),
        detail(metric(Queue, "delivered_bytes", &["delivered_bytes"], "data", 0, "delivered data")),
        detail(metric(Queue, "loss_synchronization", &["loss_synchronization"], "synchronization", 2, "loss synchronization")),
        detail(metric(Direction, "sent_bytes", &["sent_bytes"], "sent", 0, "payload sent")),
        detail(metric(Direction, "received_bytes", &["received_bytes"], "received", 0, "payload received")),
        detail(metric(Direction, "retransmits", &["retransmits"], "retransmits", 0, "segments retransmitted")),
        detail(metric(Direction, "flow_dropped_packets", &["dropped_packets"], "flows' drops", 0, "packets of data dropped anywhere on their route")),
        detail(metric(Run, "timeouts", &["timeouts"], "timeouts", 0, "retransmission timeouts")),
        detail(metric(Run, "jain_drop_share", &["jain_drop_share"], "Jain of drops", 2, "Jain's index over drop shares")),
        detail(metric(Run, "power_bps_per_s", &["power_bps_per_s"], "power", 0, "network power, in bit/s per second")),
        detail(metric(Run, "transferred_kilobytes", &["transferred_kilobytes"], "transferred", 0, "payload that all flows received")),

        metric(InnerQueue, "sojourn_p50_ms", &["sojourn_ms.p50"], "p50", 2, "median sojourn time"),
        metric(InnerQueue, "sojourn_p95_ms", &["sojourn_ms.p95"], "p95", 2, "p95 of the sojourn time"),
        metric(InnerQueue, "delivered_packets", &["delivered_packets"], "packets", 0, "delivered packets"),
        metric(InnerQueue, "dropped_packets", &["dropped_packets"], "drops", 0, "dropped packets"),
        metric(InnerQueue, "marked_packets", &["marked"], "marks", 0, "marked packets"),
        metric(InnerQueue, "threshold_bps", &["threshold_bps"], "threshold", 2, "rate above which a tin yields"),
        metric(InnerQueue, "target_ms", &["target_ms"], "target", 2, "target of a tin"),
        metric(InnerQueue, "interval_ms", &["interval_ms"], "interval", 1, "interval of a tin"),

        Metric {
            not_of: Some("ping"),
            ..metric(Group, "goodput_bps", &["goodput_bps"], "goodput", 2, "goodput")
        },
        metric(Group, "jain_goodput", &["jain_goodput"], "Jain", 2, "Jain's index over goodput"),
        metric(Group, "rtt_p50_ms", &["rtt_ms.p50"], "RTT p50", 2, "median RTT"),
        metric(Group, "rtt_p95_ms", &["rtt_ms.p95"], "RTT p95", 2, "p95 of the RTT"),
        metric(Group, "one_way_p95_ms", &["one_way_ms.p95"], "one-way p95", 2, "p95 of the one-way delay"),
        metric(Group, "lost_packets", &["lost_packets"], "lost", 0, "lost packets"),
        Metric {
            scale: Some((1.0, 4.5)),
            ..perceived(metric(Group, "mos", &["mos"], "MOS", 2, "call quality: MOS"))
        },
        Metric {
            scale: Some((0.0, 100.0)),
            ..perceived(metric(Group, "qoo", &["qoo"], "QoO", 0, "Quality of Outcome"))
        },
        time(metric(Group, "page_load_p50_ms", &["page_load_ms.p50"], "page p50", 2, "median page load time"), "page_load_n"),
        time(metric(Group, "page_load_p95_ms", &["page_load_ms.p95"], "page p95", 2, "p95 of the page load time"), "page_load_n"),
        count(metric(Group, "page_load_n", &["page_load_ms.n"], "pages", 0, "finished pages")),
        time(metric(Group, "completion_p50_ms", &["completion_ms.p50"], "file p50", 2, "median completion time"), "completion_n"),
        time(metric(Group, "completion_p95_ms", &["completion_ms.p95"], "file p95", 2, "p95 of the completion time"), "completion_n"),
        count(metric(Group, "completion_n", &["completion_ms.n"], "files", 0, "finished files")),
        perceived(metric(Group, "frame_p50_ms", &["frame_ms.p50"], "frame p50", 2, "median delay of video frames")),
        perceived(metric(Group, "frame_p95_ms", &["frame_ms.p95"], "frame p95", 2, "p95 of the delay of video frames")),
        perceived(metric(Group, "video_rate_bps", &["video.media_rate_bps"], "video", 2, "video's media rate")),
        perceived(metric(Group, "video_stalled_ms", &["video.stalled_ms"], "stalled", 2, "time of stalls")),

        metric(Station, "airtime_share", &["airtime_share"], "airtime", 1, "share of the airtime"),
        metric(Station, "down_goodput_bps", &["down.goodput_bps"], "down", 2, "IP packets to the station"),
        metric(Station, "up_goodput_bps", &["up.goodput_bps"], "up", 2, "IP packets from the station"),
        metric(Station, "down_aggregate_frames", &["down.aggregate_frames"], "frames down", 1, "frames per transmission to the station"),
        metric(Station, "up_aggregate_frames", &["up.aggregate_frames"], "frames up", 1, "frames per transmission from the station"),
        metric(Station, "retries", &["retries"], "retries", 0, "retransmissions on the air"),
        metric(Station, "lost_packets", &["lost_packets"], "lost", 0, "packets lost on the air"),
    ]
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_per_element() {
        let names: BTreeSet<_> = METRICS
            .iter()
            .map(|metric| (format!("{:?}", metric.over), metric.name))
            .collect();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            let counter = |name| {
                let mut all = METRICS.iter();
                all.any(|one| (one.over, one.name) == (metric.over, name))
            };
            assert!(metric.counted_by.is_none_or(counter), "{}", metric.name);
        }
    }

    /// A longer ending would not be found behind a shorter one that it ends in.
    #[test]
    fn every_unit_is_found_by_its_ending() {
        for unit in UNITS {
            assert_eq!(unit_of(unit.ending).ending, unit.ending);
        }
        assert_eq!(
            (unit_of("sojourn_p50_ms").shown, unit_of("goodput_bps").per),
            ("ms", 1e6)
        );
        assert_eq!(unit_of("timeouts").unit, "");
    }
}
