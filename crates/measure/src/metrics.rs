//! The registry of metrics: the name, unit, description and key in the summary of every number of a result.
//!
//! Tables, figures, stores and pages read it; a new metric is declared here and nowhere else, and if its number is new, that as a
//! field of the result. The units of names are those of the summary; people see `unit`.

use serde::Serialize;

/// The element of a run that a metric is a number of.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// The run: [`RunResult`](crate::result::RunResult).
    Run,
    /// All flows in a direction: the sum over them, each a [`Flow`](crate::result::Flow).
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

const MS: (&str, f64) = ("ms", 1.0);
const MBIT_PER_S: (&str, f64) = ("Mbit/s", 1e6);
const PERCENT: (&str, f64) = ("%", 0.01);
const NUMBER: (&str, f64) = ("", 1.0);

const fn metric(
    over: Over,
    name: &'static str,
    at: &'static [&'static str],
    head: &'static str,
    (unit, per): (&'static str, f64),
    digits: u8,
    words: &'static str,
) -> Metric {
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
        metric(Queue, "sojourn_p50_ms", &["sojourn_ms.p50"], "p50", MS, 2, "median sojourn time"),
        metric(Queue, "sojourn_p95_ms", &["sojourn_ms.p95"], "p95", MS, 2, "p95 of the sojourn time"),
        metric(Queue, "sojourn_mean_ms", &["sojourn_ms.mean"], "mean", MS, 2, "mean sojourn time"),
        metric(Direction, "goodput_bps", &["goodput_bps"], "goodput", MBIT_PER_S, 2, "goodput"),
        metric(Queue, "utilization", &["utilization"], "util.", PERCENT, 1, "utilization"),
        metric(Queue, "dropped_packets", &["dropped_aqm", "dropped_overflow"], "drops", NUMBER, 0, "dropped packets"),
        metric(Queue, "marked_packets", &["marked"], "marks", NUMBER, 0, "marked packets"),
        metric(Queue, "lost_packets", &["lost_packets"], "lost", NUMBER, 0, "packets lost on the wire"),
        metric(Run, "jain_goodput", &["jain_goodput"], "Jain", NUMBER, 2, "Jain's index over goodput"),
        detail(metric(Queue, "sojourn_p99_ms", &["sojourn_ms.p99"], "p99", MS, 2, "p99 of the sojourn time")),
        detail(metric(Queue, "startup_peak_ms", &["startup_peak_ms"], "start-up", MS, 2, "longest sojourn time of the warm-up")),
        detail(metric(Queue, "dropped_aqm", &["dropped_aqm"], "by the AQM", NUMBER, 0, "packets dropped by the algorithm")),
        detail(metric(Queue, "dropped_overflow", &["dropped_overflow"], "overflow", NUMBER, 0, "packets dropped for lack of room")),
        detail(metric(Queue, "delivered_packets", &["delivered_packets"], "packets", NUMBER, 0, "delivered packets")),
        detail(metric(Queue, "delivered_bytes", &["delivered_bytes"], "bytes", NUMBER, 0, "delivered bytes")),
        detail(metric(Queue, "loss_synchronization", &["loss_synchronization"], "synchronization", NUMBER, 2, "loss synchronization")),
        detail(metric(Direction, "sent_bytes", &["sent_bytes"], "sent", NUMBER, 0, "payload sent, in bytes")),
        detail(metric(Direction, "received_bytes", &["received_bytes"], "received", NUMBER, 0, "payload received, in bytes")),
        detail(metric(Direction, "retransmits", &["retransmits"], "retransmits", NUMBER, 0, "segments retransmitted")),
        detail(metric(Direction, "flow_dropped_packets", &["dropped_packets"], "flows' drops", NUMBER, 0, "packets of data dropped anywhere on their route")),
        detail(metric(Run, "timeouts", &["timeouts"], "timeouts", NUMBER, 0, "retransmission timeouts")),
        detail(metric(Run, "jain_drop_share", &["jain_drop_share"], "Jain of drops", NUMBER, 2, "Jain's index over drop shares")),
        detail(metric(Run, "power_bps_per_s", &["power_bps_per_s"], "power", NUMBER, 0, "network power, in bit/s per second")),
        detail(metric(Run, "transferred_kilobytes", &["transferred_kilobytes"], "transferred", NUMBER, 0, "payload received, in units of 1000 bytes")),

        metric(InnerQueue, "sojourn_p50_ms", &["sojourn_ms.p50"], "p50", MS, 2, "median sojourn time"),
        metric(InnerQueue, "sojourn_p95_ms", &["sojourn_ms.p95"], "p95", MS, 2, "p95 of the sojourn time"),
        metric(InnerQueue, "delivered_packets", &["delivered_packets"], "packets", NUMBER, 0, "delivered packets"),
        metric(InnerQueue, "dropped_packets", &["dropped_packets"], "drops", NUMBER, 0, "dropped packets"),
        metric(InnerQueue, "marked_packets", &["marked"], "marks", NUMBER, 0, "marked packets"),
        metric(InnerQueue, "threshold_bps", &["threshold_bps"], "threshold", MBIT_PER_S, 2, "rate above which a tin yields"),
        metric(InnerQueue, "target_ms", &["target_ms"], "target", MS, 2, "target of a tin"),
        metric(InnerQueue, "interval_ms", &["interval_ms"], "interval", MS, 1, "interval of a tin"),

        Metric {
            not_of: Some("ping"),
            ..metric(Group, "goodput_bps", &["goodput_bps"], "goodput", MBIT_PER_S, 2, "goodput")
        },
        metric(Group, "jain_goodput", &["jain_goodput"], "Jain", NUMBER, 2, "Jain's index over goodput"),
        metric(Group, "rtt_p50_ms", &["rtt_ms.p50"], "RTT p50", MS, 2, "median RTT"),
        metric(Group, "rtt_p95_ms", &["rtt_ms.p95"], "RTT p95", MS, 2, "p95 of the RTT"),
        metric(Group, "one_way_p95_ms", &["one_way_ms.p95"], "one-way p95", MS, 2, "p95 of the one-way delay"),
        metric(Group, "lost_packets", &["lost_packets"], "lost", NUMBER, 0, "lost packets"),
        Metric {
            scale: Some((1.0, 4.5)),
            ..perceived(metric(Group, "mos", &["mos"], "MOS", ("1–4.5", 1.0), 2, "call quality: MOS"))
        },
        Metric {
            scale: Some((0.0, 100.0)),
            ..perceived(metric(Group, "qoo", &["qoo"], "QoO", ("0–100", 1.0), 0, "Quality of Outcome"))
        },
        time(metric(Group, "page_load_p50_ms", &["page_load_ms.p50"], "page p50", MS, 2, "median page load time"), "page_load_n"),
        time(metric(Group, "page_load_p95_ms", &["page_load_ms.p95"], "page p95", MS, 2, "p95 of the page load time"), "page_load_n"),
        count(metric(Group, "page_load_n", &["page_load_ms.n"], "pages", NUMBER, 0, "finished pages")),
        time(metric(Group, "completion_p50_ms", &["completion_ms.p50"], "file p50", MS, 2, "median completion time"), "completion_n"),
        time(metric(Group, "completion_p95_ms", &["completion_ms.p95"], "file p95", MS, 2, "p95 of the completion time"), "completion_n"),
        count(metric(Group, "completion_n", &["completion_ms.n"], "files", NUMBER, 0, "finished files")),
        perceived(metric(Group, "frame_p50_ms", &["frame_ms.p50"], "frame p50", MS, 2, "median delay of video frames")),
        perceived(metric(Group, "frame_p95_ms", &["frame_ms.p95"], "frame p95", MS, 2, "p95 of the delay of video frames")),
        perceived(metric(Group, "video_rate_bps", &["video.media_rate_bps"], "video", MBIT_PER_S, 2, "video's media rate")),
        perceived(metric(Group, "video_stalled_ms", &["video.stalled_ms"], "stalled", MS, 2, "time of stalls")),

        metric(Station, "airtime_share", &["airtime_share"], "airtime", PERCENT, 1, "share of the airtime"),
        metric(Station, "down_goodput_bps", &["down.goodput_bps"], "down", MBIT_PER_S, 2, "IP packets to the station"),
        metric(Station, "up_goodput_bps", &["up.goodput_bps"], "up", MBIT_PER_S, 2, "IP packets from the station"),
        metric(Station, "down_aggregate_frames", &["down.aggregate_frames"], "frames down", NUMBER, 1, "frames per transmission to the station"),
        metric(Station, "up_aggregate_frames", &["up.aggregate_frames"], "frames up", NUMBER, 1, "frames per transmission from the station"),
        metric(Station, "retries", &["retries"], "retries", NUMBER, 0, "retransmissions on the air"),
        metric(Station, "lost_packets", &["lost_packets"], "lost", NUMBER, 0, "packets lost on the air"),
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

    /// The unit of a name is that of the summary, and `per` converts it to the unit that people see.
    #[test]
    fn units_follow_from_names() {
        for metric in METRICS {
            let of_name = [("_ms", MS), ("_bps", MBIT_PER_S)]
                .into_iter()
                .find(|(suffix, _)| metric.name.ends_with(suffix));
            match of_name {
                Some((_, unit)) => assert_eq!((metric.unit, metric.per), unit, "{}", metric.name),
                None => assert!(!["ms", "Mbit/s"].contains(&metric.unit), "{}", metric.name),
            }
        }
    }
}
