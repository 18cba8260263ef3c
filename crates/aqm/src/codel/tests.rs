//! RFC 8289 by hand, and its stated properties on any traffic.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::Datagram;

const CONFIG: Config = Config::new(1514);

const LINUX: Config = Config {
    variant: Variant::Linux,
    ..CONFIG
};

#[test]
fn the_default_is_for_frames_of_ethernet() {
    assert_eq!(Config::default(), CONFIG);
}

/// Two full frames behind the packet in question.
const LONG: Backlog = Backlog {
    packets: 2,
    bytes: 3028,
    ce_bytes: 0,
    qdisc_bytes: 3028,
};

fn asked(codel: &mut CoDel, ecn: Ecn, sojourn: Duration, backlog: Backlog, now: Time) -> Verdict {
    let mut packet = Datagram::new(0, 1514);
    packet.ecn = ecn;
    packet.enqueued = now.saturating_sub(sojourn);
    codel.on_dequeue(&packet, backlog, now, &mut Environment::new(0))
}

/// Milliseconds from `begin` at which a packet is dropped or marked, if one leaves every millisecond after a sojourn
/// of 10 ms.
fn hits(codel: &mut CoDel, ecn: Ecn, begin: Time, millis: u64) -> Vec<u64> {
    let mut hits = Vec::new();
    for ms in 0..millis {
        let now = begin + Duration::from_millis(ms);
        loop {
            match asked(codel, ecn, Duration::from_millis(10), LONG, now) {
                Verdict::Pass => break,
                Verdict::Mark => {
                    hits.push(ms);
                    break;
                }
                Verdict::Drop(_) => hits.push(ms),
            }
        }
    }
    hits
}

#[test]
fn drops_come_closer_with_the_square_root_of_the_count() {
    // 100 ms / sqrt(n) for perfect squares (RFC 8289 §5.6).
    let mut codel = CoDel::new(CONFIG);
    for (count, gap_ms) in [(1, 100), (4, 50), (16, 25), (25, 20), (100, 10)] {
        codel.count = count;
        assert_eq!(
            codel.control_law(7),
            7 + gap_ms * 1_000_000,
            "count {count}"
        );
    }
}

#[test]
fn linuxs_reciprocal_square_root_approaches_the_exact_one() {
    let mut codel = CoDel::new(LINUX);
    for count in 1..=400 {
        codel.set_count(count);
    }
    // 100 ms / sqrt(400) = 5 ms, in units of 1024 ns.
    let gap = codel.control_law(0) * 1024;
    assert!((4_990_000..5_010_000).contains(&gap), "{gap} ns");
}

#[test]
fn the_first_drop_comes_an_interval_after_the_crossing_then_ever_faster() {
    // Crossing at 0: first drop at 100 ms; then after 100, 70.7, 57.7, 50 and 44.7 ms: at 200, 270.7, 328.4,
    // 378.4, 423.2, seen at the next whole millisecond (RFC 8289 §5.6).
    let mut codel = CoDel::new(CONFIG);
    assert_eq!(
        hits(&mut codel, Ecn::NotEct, Time::from_secs(1), 424),
        [100, 200, 271, 329, 379]
    );
}

#[test]
fn ecn_capable_packets_are_marked_at_the_same_instants() {
    let mut codel = CoDel::new(Config {
        ecn: true,
        ..CONFIG
    });
    assert_eq!(
        hits(&mut codel, Ecn::Ect0, Time::from_secs(1), 424),
        [100, 200, 271, 329, 379]
    );
}

#[test]
fn a_sojourn_below_target_ends_the_dropping_state() {
    let mut codel = CoDel::new(CONFIG);
    hits(&mut codel, Ecn::NotEct, Time::from_secs(1), 280);
    assert!(codel.dropping);
    let now = Time::from_millis(1280);
    let verdict = asked(&mut codel, Ecn::NotEct, Duration::from_millis(4), LONG, now);
    assert_eq!(verdict, Verdict::Pass);
    assert!(!codel.dropping && codel.first_above_time.is_none());
}

#[test]
fn re_entry_within_sixteen_intervals_resumes_near_the_last_rate() {
    // RFC 8289 §5.5: count - lastcount if that is above 1, else 1. The code of May 2012: count - 1.
    for (variant, pause_ms, count) in [
        (Variant::Rfc8289, 500, 4),
        (Variant::Rfc8289, 1700, 1),
        (Variant::Published2012, 1700, 1),
    ] {
        let mut codel = CoDel::new(Config { variant, ..CONFIG });
        // Drops at 100, 200, 271, 329, 379 ms: count 5, lastcount 1, drop_next 423 ms.
        hits(&mut codel, Ecn::NotEct, Time::from_secs(1), 400);
        assert_eq!((codel.count, codel.lastcount), (5, 1));
        let now = Time::from_millis(1400);
        asked(&mut codel, Ecn::NotEct, Duration::ZERO, LONG, now);
        let begin = now + Duration::from_millis(pause_ms);
        assert_eq!(hits(&mut codel, Ecn::NotEct, begin, 101), [100]);
        assert_eq!(codel.count, count, "after {pause_ms} ms");
    }
}

#[test]
fn a_second_re_entry_tells_the_rules_apart() {
    // After the drops above (count 5) and one re-entry with a single drop, the RFC counts one drop and restarts at 1;
    // the rule of 2012 counts down one at a time, 4 then 3.
    for (variant, first, second) in [(Variant::Rfc8289, 4, 1), (Variant::Published2012, 4, 3)] {
        let mut codel = CoDel::new(Config { variant, ..CONFIG });
        hits(&mut codel, Ecn::NotEct, Time::from_secs(1), 400);
        for (begin_ms, count) in [(1500, first), (1700, second)] {
            let begin = Time::from_millis(begin_ms);
            asked(&mut codel, Ecn::NotEct, Duration::ZERO, LONG, begin);
            hits(&mut codel, Ecn::NotEct, begin, 101);
            assert_eq!(codel.count, count);
        }
    }
}

#[test]
fn ce_threshold_marks_by_sojourn_alone() {
    let mut codel = CoDel::new(Config {
        ce_threshold: Some(Duration::from_millis(1)),
        ..CONFIG
    });
    let now = Time::from_secs(1);
    for (ecn, sojourn_us, verdict) in [
        (Ecn::Ect1, 1001, Verdict::Mark),
        (Ecn::Ect1, 1000, Verdict::Pass),
        (Ecn::NotEct, 1001, Verdict::Pass),
    ] {
        let sojourn = Duration::from_micros(sojourn_us);
        assert_eq!(asked(&mut codel, ecn, sojourn, LONG, now), verdict);
    }
}

/// tc(8)'s `ce_threshold_selector 0x01/0x03`: packets with ECT(1) alone are marked.
#[test]
fn ce_threshold_marks_those_that_are_selected() {
    let mut codel = CoDel::new(Config {
        ce_threshold: Some(Duration::from_millis(1)),
        ce_threshold_selector: Selector::Ect1,
        ..CONFIG
    });
    let (sojourn, now) = (Duration::from_millis(2), Time::from_secs(1));
    for (ecn, verdict) in [(Ecn::Ect0, Verdict::Pass), (Ecn::Ect1, Verdict::Mark)] {
        assert_eq!(asked(&mut codel, ecn, sojourn, LONG, now), verdict);
    }
}

#[test]
fn drops_by_the_scheduler_count_in_linux_only() {
    for (config, count) in [(CONFIG, 0), (LINUX, 9)] {
        let mut codel = CoDel::new(config);
        codel.on_head_drops(9);
        assert_eq!(codel.count, count);
    }
}

#[test]
fn ce_exclude_leaves_out_what_marked_packets_took() {
    // Four packets follow a packet; the first is already marked, the second is not. The third waited for both, so half
    // of its 8 ms count, which is below target.
    let leaves = |codel: &mut CoDel, ecn, sojourn_ms| {
        asked(
            codel,
            ecn,
            Duration::from_millis(sojourn_ms),
            LONG,
            Time::from_secs(1),
        );
        codel.first_above_time.is_some()
    };
    for (ce_exclude, third_is_above) in [(true, false), (false, true)] {
        let mut codel = CoDel::new(Config {
            ce_exclude,
            ..CONFIG
        });
        for id in 0..3 {
            let mut env = Environment::new(0);
            codel.on_enqueue(&Datagram::new(id, 1514), LONG, Time::ZERO, &mut env);
        }
        leaves(&mut codel, Ecn::Ce, 0);
        leaves(&mut codel, Ecn::NotEct, 4);
        assert_eq!(leaves(&mut codel, Ecn::NotEct, 8), third_is_above);
    }
}

#[test]
fn other_parameters_hold_from_the_next_packet_on() {
    let mut codel = CoDel::new(CONFIG);
    let sojourn = Duration::from_millis(30);
    asked(&mut codel, Ecn::NotEct, sojourn, LONG, Time::from_secs(1));
    assert!(codel.first_above_time.is_some(), "30 ms are above 5 ms");
    codel.reconfigure(Config {
        target: Duration::from_millis(50),
        ..CONFIG
    });
    asked(&mut codel, Ecn::NotEct, sojourn, LONG, Time::from_secs(2));
    assert!(codel.first_above_time.is_none(), "30 ms are below 50 ms");
}

proptest! {
    #[test]
    fn with_one_frame_or_less_behind_it_nothing_is_dropped(
        steps in proptest::collection::vec((0_u64..1_000_000_000, 0_u64..5_000_000_000, 0_u64..=1514), 1..200),
        linux: bool,
    ) {
        // RFC 8289 §5.6.
        let mut codel = CoDel::new(if linux { LINUX } else { CONFIG });
        let mut now = Time::from_secs(10);
        for (pause, sojourn, behind) in steps {
            now += Duration::from_nanos(pause);
            let backlog = Backlog { packets: 1, bytes: behind, ce_bytes: 0, qdisc_bytes: behind };
            let verdict = asked(&mut codel, Ecn::NotEct, Duration::from_nanos(sojourn), backlog, now);
            prop_assert_eq!(verdict, Verdict::Pass);
        }
    }

    #[test]
    fn in_the_dropping_state_gaps_follow_the_control_law(
        interval_ms in 1_u64..1000,
        drops in 2_usize..200,
    ) {
        // RFC 8289 §5.6: with continuous requests, drop n+1 follows drop n by interval / sqrt(n).
        let config = Config { interval: Duration::from_millis(interval_ms), ..CONFIG };
        let mut codel = CoDel::new(config);
        let mut now = Time::from_secs(1);
        let long_ago = Duration::from_secs(1);
        asked(&mut codel, Ecn::NotEct, long_ago, LONG, now);
        now += config.interval;
        prop_assert_eq!(asked(&mut codel, Ecn::NotEct, long_ago, LONG, now), Verdict::DROP);
        asked(&mut codel, Ecn::NotEct, long_ago, LONG, now);
        // Each gap is rounded down to a nanosecond.
        let mut due = now.as_nanos() as f64;
        for n in 1..drops {
            due += interval_ms as f64 * 1e6 / (n as f64).sqrt();
            let early = Time::from_nanos(due as u64 - n as u64 - 1);
            let late = Time::from_nanos(due as u64 + 1);
            prop_assert_eq!(asked(&mut codel, Ecn::NotEct, long_ago, LONG, early), Verdict::Pass);
            prop_assert_eq!(asked(&mut codel, Ecn::NotEct, long_ago, LONG, late), Verdict::DROP);
            prop_assert_eq!(asked(&mut codel, Ecn::NotEct, long_ago, LONG, late), Verdict::Pass);
        }
    }
}
