//! Impairments of a link in an experiment.

mod common;

use common::{flow, text};
use serde_json::to_value;
use sojourn_sim::RunResult;

/// 125 packets a second over a link with these keys.
fn call(keys: &str) -> RunResult {
    let delay = if keys.contains("delay") {
        ""
    } else {
        ", delay = '20 ms'"
    };
    text(&format!(
        "experiment = {{ duration = '200 s' }}
        link = {{ rate = '10 Mbit/s', burst = '1600 B' {delay} {keys} }}
        queue = [{{ aqm = 'pfifo' }}]
        [[traffic]]
        kind = 'cbr'
        rate = '1 Mbit/s'
        packet = '1000 B'
        rtt = '40 ms'
        jitter = '0 s'"
    ))
    .remove(0)
}

#[test]
fn what_the_wire_loses_is_counted_at_the_link_and_missing_at_the_receiver() {
    // 200 s of 125 packets: 25,000: 250 are lost in the mean, with a standard deviation of 16.
    for keys in [", loss = '1 %'", ", loss = 0.01", ", corrupt = '1 %'"] {
        let run = call(keys);
        let down = &run.bottleneck["down"];
        let lost = down.lost_packets.expect("the link is impaired");
        assert!((190..310).contains(&lost), "{keys}: {lost}");
        assert_eq!(flow(&run, 0).lost_packets, Some(lost), "{keys}");
        assert_eq!((down.dropped_aqm, down.dropped_overflow), (0, 0), "{keys}");
        // The way back has no queue: its losses are counted beside.
        assert_eq!(run.lost_packets.keys().collect::<Vec<_>>(), ["link/up"]);
    }
}

/// The reports of a video call are lost too, and are none of its packets.
#[test]
fn the_lost_packets_of_a_video_call_are_those_of_its_media() {
    let run = text(
        "experiment = { duration = '60 s' }
        link = { rate = '10 Mbit/s', delay = '20 ms', loss = '5 %' }
        queue = [{ aqm = 'pfifo' }]
        [[traffic]]
        kind = 'call'
        rtt = '40 ms'",
    )
    .remove(0);
    let media = flow(&run, 0);
    let share = media.lost_packets.expect("datagrams") as f64 / media.bottleneck_packets as f64;
    assert!((share - 0.05).abs() < 0.02, "{share}");
}

#[test]
fn bursts_are_lost_as_often_as_their_chain_says() {
    // 0.01 / (0.01 + 0.25) of the time in the bad state, where half of the packets are lost.
    let run = call(", loss = { enter = 0.01, leave = 0.25, bad = 0.5 }");
    let lost = run.bottleneck["down"]
        .lost_packets
        .expect("the link is impaired") as f64;
    assert!(
        (lost / 25_000.0 - 0.5 * 0.01 / 0.26).abs() < 0.004,
        "{lost}"
    );
}

#[test]
fn a_copy_is_counted_once_by_its_receiver() {
    let run = call(", duplicate = '10 %'");
    let down = &run.bottleneck["down"];
    assert!(
        down.duplicated_packets
            .is_some_and(|copies| (2200..2800).contains(&copies))
    );
    let (copied, plain) = (flow(&run, 0), &call("").flows[0]);
    assert_eq!(copied.lost_packets, plain.lost_packets);
    assert_eq!(copied.received_bytes, plain.received_bytes);
}

#[test]
fn the_delay_varies_as_the_file_says() {
    let one_way = |keys| {
        call(keys).flows[0]
            .one_way_ms
            .clone()
            .expect("datagrams have it")
    };
    let constant = one_way("").mean.expect("some arrive");
    let normal = one_way(", jitter = '1 ms'");
    assert!((normal.mean.expect("some arrive") - constant).abs() < 0.1);
    assert!(
        (normal.p95.expect("some arrive") - constant - 1.645).abs() < 0.1,
        "{normal:?}"
    );
    let uniform = one_way(", jitter = { mean = '3 ms', spread = '2 ms', shape = 'uniform' }");
    let range = (uniform.min.expect("some"), uniform.max.expect("some"));
    assert!((range.0 - constant - 1.0).abs() < 0.05, "{uniform:?}");
    assert!((range.1 - constant - 5.0).abs() < 0.05, "{uniform:?}");
    let steps = one_way(", delay = [['0 s', '20 ms'], ['100 s', '70 ms']]");
    assert!(
        (steps.mean.expect("some") - constant - 25.0).abs() < 1.0,
        "{steps:?}"
    );
}

#[test]
fn impairments_that_are_zero_change_no_byte() {
    let summary = |keys| {
        let mut json = to_value(call(keys)).expect("it serialises");
        json["wall_s"] = 0.into();
        json.to_string()
    };
    let none = summary("");
    assert!(!none.contains("lost_packets\":{"), "{none}");
    let zero = ", loss = 0, corrupt = '0 %', duplicate = 0, reorder = 0, jitter = '0 ms'";
    assert_eq!(summary(zero), none);
}

/// The windows of a flow whose packets are lost at random on an idle link, in segments.
fn window(tcp: &str, loss: f64) -> f64 {
    let of_seed = |seed| {
        text(&format!(
            "experiment = {{ duration = '320 s', warmup = '20 s', seed = {seed} }}
        link = {{ rate = '1 Gbit/s', loss = {loss}, up = {{ rate = '1 Gbit/s', loss = 0 }} }}
        queue = [{{ aqm = 'pfifo', limit = '10000 packets' }}]
        [[traffic]]
        kind = 'bulk'
        tcp = '{tcp}'
        rtt = '100 ms'"
        ))
        .remove(0)
    };
    let bps = (1..=3)
        .map(|seed| of_seed(seed).flows[0].goodput_bps)
        .sum::<f64>()
        / 3.0;
    bps * 0.1 / 8.0 / 1448.0
}

/// RFC 9438, table 1: average windows with an RTT of 0.1 s, of Reno and of CUBIC. They follow from one loss per 1/p packets; here
/// losses are independent, with which the mean window of Reno is 1.31/√p in place of 1.22/√p (Ott, Kemperman and Mathis 1996),
/// and recovery and timeouts take some of it. So the tolerance is 20 %.
#[test]
fn the_window_is_that_of_rfc_9438() {
    for (loss, reno, cubic) in [(1e-2, 12.0, 12.0), (1e-3, 38.0, 38.0), (1e-4, 120.0, 187.0)] {
        for (tcp, expected) in [("reno", reno), ("cubic", cubic)] {
            let is = window(tcp, loss);
            println!("{tcp} {loss}: {is:.1}, expected {expected}");
            assert!(
                (is / expected - 1.0).abs() < 0.2,
                "{tcp}, loss {loss}: {is}"
            );
        }
    }
}
