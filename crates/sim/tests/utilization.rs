//! The used share of a link's capacity: bits on the link after the warm-up.

mod common;

use common::runs;

const BULK: &str = "kind = 'bulk'\nflows = 2\nrtt = '20 ms'\n";

#[test]
fn the_utilization_of_a_busy_link_is_near_one_and_never_above() {
    // A full segment takes three hours at 1 bit/s, 12 s at 1 kbit/s, and 121 ns at 100 Gbit/s.
    for (rate, duration, least) in [
        ("1 bit/s", "60 s", 0.999),
        ("1 kbit/s", "60 s", 0.999),
        ("10 Mbit/s", "20 s", 0.99),
        ("100 Gbit/s", "20 ms", 0.0),
    ] {
        let run = runs(duration, rate, "{ aqm = 'pfifo' }", BULK, "").remove(0);
        let used = run.bottleneck["down"].utilization;
        assert!((least..=1.0).contains(&used), "{rate}: {used}");
    }
}

#[test]
fn packets_in_a_device_queue_are_not_sent_yet() {
    // Of 120 ms at 1 Mbit/s: twenty packets of 12 ms each arrive at once, and the device queue takes them all.
    let rate = "1 Mbit/s', device_queue = '256 packets";
    let run = runs("120 ms", rate, "{ aqm = 'pfifo' }", BULK, "").remove(0);
    let used = run.bottleneck["down"].utilization;
    assert!((0.7..=1.0).contains(&used), "{used}");
}
