//! A token bucket and what arrives together at it.

mod common;

use common::{flow, text};

/// Ten packets at once: the bucket holds a hundred, the queue five, and none is dropped.
#[test]
fn a_burst_that_the_bucket_holds_needs_no_room_in_the_queue() {
    let run = text(
        "experiment = { duration = '0.2 s' }
        link = { rate = '10 Mbit/s', burst = '151400 B', buffer = '5 packets' }
        queue = [{ aqm = 'pfifo' }]
        [[traffic]]
        kind = 'bulk'
        rtt = '100 ms'",
    )
    .remove(0);
    let down = &run.bottleneck["down"];
    assert_eq!((down.dropped_overflow, down.dropped_aqm), (0, 0));
    assert_eq!(down.sojourn_ms.max, Some(0.0));
}

/// As on Linux 7.3, with an HTB class of this burst: datagrams of 60 kB, 41 packets each, on a line that is used to
/// 0.3 % lose none.
#[test]
fn large_datagrams_through_a_large_bucket_lose_nothing() {
    for aqm in ["'pfifo'", "'red', variant = 'linux'", "'pie'"] {
        let run = text(&format!(
            "experiment = {{ duration = '20 s' }}
            link = {{ rate = '100 Mbit/s', burst = '1 MB', buffer = '60 packets' }}
            queue = [{{ aqm = {aqm}, limit = '60 packets' }}]
            [[traffic]]
            kind = 'cbr'
            rate = '300 kbit/s'
            packet = '60 kB'
            mtu = '1500 B'
            rtt = '20 ms'"
        ))
        .remove(0);
        let down = &run.bottleneck["down"];
        assert_eq!((down.dropped_overflow, down.dropped_aqm), (0, 0), "{aqm}");
    }
}

/// A policer: a bucket of 100 kB at 100 Mbit/s and hardly a queue behind it. Measured on Linux 7.3, Mbit/s. CUBIC at 100 ms
/// varies with the RTT: see below.
#[test]
fn a_policer_lets_through_what_linux_lets_through() {
    for (tcp, rtt, linux) in [
        ("cubic", 10, 86.0),
        ("cubic", 40, 24.3),
        ("bbr", 10, 94.4),
        ("bbr", 40, 94.0),
        ("bbr", 100, 91.9),
    ] {
        let run = text(&format!(
            "experiment = {{ duration = '20 s', warmup = '5 s' }}
            link = {{ rate = '100 Mbit/s', burst = '100 kB', buffer = '1 packets' }}
            queue = [{{ aqm = 'pfifo' }}]
            [[traffic]]
            kind = 'bulk'
            tcp = '{tcp}'
            rtt = '{rtt} ms'"
        ))
        .remove(0);
        let ours = flow(&run, 0).goodput_bps / 1e6;
        let deviation = ours / linux - 1.0;
        assert!(deviation.abs() < 0.15, "{tcp}, {rtt} ms: {ours} Mbit/s");
    }
}

/// The same with CUBIC, on the mean of paths of about 100 ms, 30 s of which the first 5 do not count: 13.9 on Linux 6.12 and 7.3,
/// and 12.2 on 6.12 where a read of the clock takes no time, as here. Its bursts arrive at once, and one acknowledgement
/// goes when they are read. With one for each two segments the mean is 14.9.
#[test]
fn what_a_policer_lets_through_at_once_is_acknowledged_at_once() {
    let runs = text(
        "experiment = { duration = '30 s', warmup = '5 s', kernel = '6.12' }
        link = { rate = '100 Mbit/s', burst = '100 kB', buffer = '1 packets' }
        queue = [{ aqm = 'pfifo' }]
        sweep = { 'traffic.0.rtt' = ['90 ms', '92.5 ms', '95 ms', '97.5 ms', '100 ms', '102.5 ms', '105 ms', '107.5 ms', '110 ms'] }
        [[traffic]]
        kind = 'bulk'
        tcp = 'cubic'
        rtt = '100 ms'",
    );
    let sum: f64 = runs.iter().map(|run| flow(run, 0).goodput_bps).sum();
    let ours = sum / runs.len() as f64 / 1e6;
    for linux in [12.2, 13.9] {
        assert!((ours / linux - 1.0).abs() < 0.15, "{ours} Mbit/s");
    }
}

/// At about 40 ms, of which the link has 10, so that what is sent at one instant also arrives at one: 31.0 on Linux 7.3, and
/// 33.3 where a read of its clock takes no time, as here.
#[test]
fn policed_bursts_that_arrive_at_once_are_as_on_linux() {
    let rtts: Vec<String> = (0..17)
        .map(|step| format!("'{} us'", 36_000 + 500 * step))
        .collect();
    let runs = text(&format!(
        "experiment = {{ duration = '30 s', warmup = '5 s', kernel = '7.3' }}
        link = {{ rate = '100 Mbit/s', burst = '100 kB', buffer = '1 packets', delay = '10 ms' }}
        queue = [{{ aqm = 'pfifo' }}]
        sweep = {{ 'traffic.0.rtt' = [{}] }}
        [[traffic]]
        kind = 'bulk'
        tcp = 'cubic'
        rtt = '40 ms'",
        rtts.join(", ")
    ));
    let sum: f64 = runs.iter().map(|run| flow(run, 0).goodput_bps).sum();
    let ours = sum / runs.len() as f64 / 1e6;
    for linux in [31.0, 33.3] {
        assert!((ours / linux - 1.0).abs() < 0.15, "{ours} Mbit/s");
    }
}
