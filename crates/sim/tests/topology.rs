//! Runs over several links.

mod common;

use std::path::Path;

use common::{column, text};
use sojourn_sim::RunResult;
use sojourn_sim::result::Bottleneck;

fn queue<'r>(run: &'r RunResult, link: &str, way: &str) -> &'r Bottleneck {
    &run.links[link][way]
}

/// Three links of 5, 10 and 20 ms with different headers.
const CHAIN: &str = r#"
experiment = { duration = "20 s", warmup = "1 s" }
queue = [{ aqm = "pfifo" }]
[[link]]
name = "one"
from = "a"
to = "b"
rate = "100 Mbit/s"
delay = "5 ms"
[[link]]
name = "two"
from = "c"
to = "b"
rate = "100 Mbit/s"
delay = "10 ms"
overhead = "100 B"
up = { rate = "100 Mbit/s" }
[[link]]
name = "three"
from = "c"
to = "d"
rate = "100 Mbit/s"
delay = "20 ms"
"#;

/// A ping meets no queue, and a burst of 1600 bytes lets its 98 bytes leave every link at once: its RTT is exactly the
/// base RTT.
#[test]
fn a_round_trip_takes_the_base_rtt() {
    let pings =
        "[[traffic]]\nkind = 'ping'\nfrom = 'a'\nto = 'd'\nrtt = '100 ms'\ninterval = '100 ms'\n";
    let run = &text(&format!("{CHAIN}{pings}"))[0];
    let rtt = run.flows[0].rtt_ms;
    assert_eq!((rtt.n, rtt.min, rtt.max), (190, Some(100.0), Some(100.0)));
    let passed = |link, way| queue(run, link, way).delivered_packets;
    assert_eq!((passed("one", "down"), passed("three", "down")), (200, 200));
    // Requests pass the second link upwards, replies downwards.
    assert_eq!((passed("two", "up"), passed("two", "down")), (200, 200));
}

/// 84 bytes of IP, plus 14 bytes on the first and the third link and 100 on the second.
#[test]
fn every_link_counts_its_own_headers() {
    let pings =
        "[[traffic]]\nkind = 'ping'\nfrom = 'a'\nto = 'd'\nrtt = '100 ms'\ninterval = '100 ms'\n";
    let run = &text(&format!("{CHAIN}{pings}"))[0];
    let bytes = |link, way| {
        let figures = queue(run, link, way);
        figures.delivered_bytes / figures.delivered_packets
    };
    assert_eq!((bytes("one", "down"), bytes("three", "down")), (98, 98));
    assert_eq!((bytes("two", "up"), bytes("two", "down")), (184, 184));
}

/// Arrivals at each link are the deliveries of the previous one, less the packets in flight; the flows' counts are
/// those of the first queue and of all queues.
#[test]
fn packets_are_conserved_over_links_in_a_row() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/parking-lot.toml");
    for run in common::file_with(
        &file,
        &[
            ("experiment.duration", "20 s"),
            ("experiment.warmup", "5 s"),
        ],
    ) {
        let long = &run.flows[0];
        let links = ["west", "middle", "east"];
        let dropped: u64 = links
            .iter()
            .map(|link| queue(&run, link, "down"))
            .map(|figures| figures.dropped_aqm + figures.dropped_overflow)
            .sum();
        let of_flows: u64 = run.flows.iter().map(|flow| flow.dropped_packets).sum();
        assert_eq!(of_flows, dropped, "{}", run.label);
        assert_eq!(
            run.bottleneck["down"].delivered_packets,
            queue(&run, "west", "down").delivered_packets
        );
        // The long flow loses packets at three queues and is not starved.
        assert!(
            long.goodput_bps > 0.5e6,
            "{}: {}",
            run.label,
            long.goodput_bps
        );
        for link in links {
            let share = queue(&run, link, "down").utilization;
            assert!(share > 0.9, "{} {link}: {share}", run.label);
        }
    }
}

/// A modem's queue of 256 packets takes up to 310 ms at 10 Mbit/s. It stays empty if the router before it shapes below
/// that rate, and fills otherwise.
#[test]
fn shaping_below_the_modems_rate_keeps_its_queue_empty() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/modem.toml");
    let p95 = |rate: &str| {
        let set = [
            ("link.router.rate", rate),
            ("experiment.duration", "20 s"),
            ("experiment.warmup", "5 s"),
        ];
        let runs = common::file_with(&file, &set);
        runs.iter()
            .map(|run| {
                queue(run, "line", "down")
                    .sojourn_ms
                    .p95
                    .expect("packets passed")
            })
            .fold(0.0, f64::max)
    };
    let (below, above) = (p95("9.5 Mbit/s"), p95("100 Mbit/s"));
    assert!(below < 3.0, "{below} ms");
    assert!(above > 150.0, "{above} ms");
}

/// The recorded tables name the queue of each row.
#[test]
fn rows_name_their_link_and_direction() {
    let pings = "[[traffic]]\nkind = 'ping'\nfrom = 'a'\nto = 'd'\nrtt = '100 ms'\n[record]\npackets = true\nseries = '1 s'\n";
    let run = &text(&format!("{CHAIN}{pings}"))[0];
    let queues = |table: &sojourn_sim::result::Table| {
        let rows = column(table, "link")
            .into_iter()
            .zip(column(table, "direction"));
        let mut seen: Vec<(u8, u8)> = rows.map(|(link, way)| (link as u8, way as u8)).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    };
    let all = [(0, 0), (1, 0), (1, 1), (2, 0)];
    assert_eq!(queues(run.packets.as_ref().expect("recorded")), all);
    assert_eq!(queues(run.queue_series.as_ref().expect("recorded")), all);
    assert_eq!(queues(run.histogram.as_ref().expect("always there")), all);
}
