//! RED by hand: Floyd and Jacobson 1993, tc and sch_red.

use alloc::vec::Vec;

use sojourn_units::Value;

use super::*;
use crate::Datagram;
use crate::limit::Limit;
use crate::packet::Ecn;
use crate::settings::Settings;

/// Thresholds of 10 and 30 packets, max_p a tenth, weight 1: the average is the queue length.
const PLAIN: Config = Config {
    unit: Unit::Packets,
    min: 10,
    max: 30,
    max_p: 0.1,
    weight: 1.0,
    gentle: false,
    wait: false,
    bytemode: false,
    avpkt: 1000,
    bandwidth: Rate::from_mbps(8),
    ecn: false,
    harddrop: false,
    ce_exclude: false,
    variant: Variant::Floyd,
};

/// The same in bytes for Linux, with packets of 1000 B.
const LINUX: Config = Config {
    unit: Unit::Bytes,
    min: 10_000,
    max: 30_000,
    variant: Variant::Linux,
    ..PLAIN
};

fn queue(packets: u64) -> Backlog {
    Backlog {
        packets,
        bytes: packets * 1000,
        ce_bytes: 0,
        qdisc_bytes: packets * 1000,
    }
}

fn arrivals(red: &mut Red, packet: &Datagram<u64>, backlog: Backlog, count: usize) -> Vec<Verdict> {
    let mut env = Environment::new(7);
    (0..count)
        .map(|_| red.on_enqueue(packet, backlog, Time::ZERO, &mut env))
        .collect()
}

/// Packets from one drop or mark to the next, counting the latter.
fn gaps(verdicts: &[Verdict]) -> Vec<usize> {
    verdicts
        .split(|verdict| *verdict != Verdict::Pass)
        .map(|passed| passed.len() + 1)
        .collect()
}

#[test]
fn below_min_everything_passes_and_at_max_nothing() {
    for config in [PLAIN, LINUX] {
        let mut red = Red::new(config);
        let packet = Datagram::new(0, 1514);
        let below = arrivals(&mut red, &packet, queue(9), 1000);
        assert!(below.iter().all(|verdict| *verdict == Verdict::Pass));
        let above = arrivals(&mut red, &packet, queue(60), 1000);
        let dropped = above
            .iter()
            .filter(|v| matches!(v, Verdict::Drop(_)))
            .count();
        // With Linux's weight of at most a half the average climbs over the thresholds first.
        assert!(dropped >= 990, "{dropped}");
    }
}

#[test]
fn half_way_between_the_thresholds_gaps_are_uniform_up_to_two_over_max_p() {
    // p_b = max_p/2 = 0.05 in the middle. The paper's count is 1 at the first packet after a drop, so p_a is 1 at the
    // 19th: uniform on 1..19 (§7). Linux passes its random threshold at the 20th at the latest.
    for (config, longest) in [(PLAIN, 19), (LINUX, 20)] {
        let mut red = Red::new(config);
        let verdicts = arrivals(&mut red, &Datagram::new(0, 1514), queue(20), 50_000);
        let gaps = gaps(&verdicts);
        // Leave out the first and the last gap, which are incomplete.
        let gaps = &gaps[1..gaps.len() - 1];
        assert!(gaps.iter().all(|gap| (1..=longest).contains(gap)));
        for length in 1..=longest {
            let share = gaps.iter().filter(|gap| **gap == length).count() as f64;
            assert!(share / gaps.len() as f64 > 0.035, "a gap of {length}");
        }
    }
}

#[test]
fn wait_keeps_drops_at_least_one_over_p_apart() {
    // ns-2: uniform on 1/p..2/p instead; p_b = 0.05.
    let mut red = Red::new(Config {
        wait: true,
        ..PLAIN
    });
    let verdicts = arrivals(&mut red, &Datagram::new(0, 1514), queue(20), 20_000);
    let gaps = gaps(&verdicts);
    assert!(
        gaps[1..gaps.len() - 1]
            .iter()
            .all(|gap| (20..=41).contains(gap))
    );
}

#[test]
fn with_gentle_the_probability_reaches_1_at_twice_max() {
    // At 1.1 x max: 0.1 + 0.9 x 0.1 = 0.19, so some pass; at twice max none.
    let mut red = Red::new(Config {
        gentle: true,
        ..PLAIN
    });
    let packet = Datagram::new(0, 1514);
    assert!(arrivals(&mut red, &packet, queue(33), 100).contains(&Verdict::Pass));
    let twice = arrivals(&mut red, &packet, queue(60), 100);
    assert!(twice.iter().all(|verdict| verdict.is_drop()));
}

#[test]
fn byte_mode_hits_small_packets_in_proportion() {
    let mut red = Red::new(Config {
        bytemode: true,
        ..PLAIN
    });
    let mut small = Datagram::new(0, 1514);
    small.bytes = 100;
    let hits = |verdicts: &[Verdict]| {
        verdicts
            .iter()
            .filter(|v| matches!(v, Verdict::Drop(_)))
            .count()
    };
    // p_b = 0.05 x 100/1000 = 0.005: gaps uniform on 1..199, 100 on average.
    let dropped = hits(&arrivals(&mut red, &small, queue(20), 100_000));
    assert!((900..1100).contains(&dropped), "{dropped}");
}

#[test]
fn the_average_moves_by_its_weight() {
    // 0 + 0.25 x 16 = 4, then 4 + 0.25 x (16 - 4) = 7.
    for (config, unit) in [(PLAIN, 1.0), (LINUX, 1000.0)] {
        let mut red = Red::new(Config {
            weight: 0.25,
            ..config
        });
        for expected in [4.0, 7.0] {
            arrivals(&mut red, &Datagram::new(0, 1514), queue(16), 1);
            assert_eq!(red.average(), expected * unit);
        }
    }
}

#[test]
fn idle_time_counts_as_arrivals_at_an_empty_queue() {
    // Paper, §4: avg (1-w)^m, m packets of 1000 B at 8 Mbit/s are 1 ms each: 3 ms halve three times,
    // 16 -> 2, then the arrival itself: 1.
    let mut red = Red::new(Config {
        weight: 0.5,
        ..PLAIN
    });
    for _ in 0..60 {
        arrivals(&mut red, &Datagram::new(0, 1514), queue(16), 1);
    }
    assert!((red.average() - 16.0).abs() < 1e-9);
    let mut env = Environment::new(1);
    for (ms, left) in [(8, 1), (10, 0)] {
        red.on_dequeue(
            &Datagram::new(0, 1514),
            queue(left),
            Time::from_millis(ms),
            &mut env,
        );
    }
    // Whether or not a packet is requested from the empty queue: it has been idle since its last departure.
    red.on_empty(Time::from_millis(12));
    red.on_enqueue(
        &Datagram::new(0, 1514),
        Backlog::default(),
        Time::from_millis(13),
        &mut env,
    );
    assert!((red.average() - 1.0).abs() < 1e-9, "{}", red.average());
}

/// Figure 2: idle time ends with a packet that is queued, not with one that is dropped. Weight 1/2, slots of 1 ms
/// (1000 B at 8 Mbit/s), an average of 320 packets when the queue empties. A packet after 1 ms finds 160 and, as an
/// arrival at an empty queue, leaves 80, so it is dropped; the next, 1 ms later, finds 40 and leaves 20.
#[test]
fn a_dropped_arrival_does_not_end_the_idle_time() {
    let mut env = Environment::new(7);
    let packet = Datagram::new(0, 1514);
    let mut red = Red::new(Config {
        weight: 0.5,
        ..PLAIN
    });
    arrivals(&mut red, &packet, queue(320), 60);
    red.on_dequeue(&packet, queue(0), Time::ZERO, &mut env);
    let first = red.on_enqueue(&packet, queue(0), Time::from_millis(1), &mut env);
    assert_eq!((red.average().round(), first), (80.0, Verdict::DROP));
    red.on_enqueue(&packet, queue(0), Time::from_millis(2), &mut env);
    assert!((red.average() - 20.0).abs() < 1e-9, "{}", red.average());
}

#[test]
fn in_linux_idle_time_shifts_the_average_by_tcs_table() {
    // w = 1/2, 1000 B at 8 Mbit/s: 15625 ticks; ln 2 / 15625 = 4.436e-5; 31 / that = 698 802 / 2^11 < 512. Entry 12
    // holds 12 x 2048 x 4.436e-5 = 1.09: a shift by one after 24 576 us, slightly more than 15.6 times a packet's 1
    // ms.
    let mut red = Red::new(Config {
        weight: 0.5,
        ..LINUX
    });
    for _ in 0..60 {
        arrivals(&mut red, &Datagram::new(0, 1514), queue(8), 1);
    }
    let before = red.average();
    assert!((before - 8000.0).abs() < 2.0);
    let mut env = Environment::new(1);
    red.on_empty(Time::ZERO);
    red.on_enqueue(
        &Datagram::new(0, 1514),
        Backlog::default(),
        Time::from_micros(24_576),
        &mut env,
    );
    assert!((red.average() - before / 2.0).abs() < 1.0);
}

#[test]
fn in_linux_a_queue_is_idle_only_after_a_dequeue_found_it_empty() {
    // Without idle time an empty queue is averaged in like any other: half of 8000 B.
    let mut red = Red::new(Config {
        weight: 0.5,
        ..LINUX
    });
    for _ in 0..60 {
        arrivals(&mut red, &Datagram::new(0, 1514), queue(8), 1);
    }
    let mut env = Environment::new(1);
    red.on_dequeue(&Datagram::new(0, 1514), queue(0), Time::ZERO, &mut env);
    red.on_enqueue(
        &Datagram::new(0, 1514),
        queue(0),
        Time::from_secs(1),
        &mut env,
    );
    assert!((red.average() - 4000.0).abs() < 2.0, "{}", red.average());
}

#[test]
fn ecn_capable_packets_are_marked_and_above_max_too_unless_harddrop() {
    let mut ect = Datagram::new(0, 1514);
    ect.ecn = Ecn::Ect0;
    for config in [PLAIN, LINUX] {
        for (harddrop, above_max) in [(false, Verdict::Mark), (true, Verdict::DROP)] {
            let mut red = Red::new(Config {
                ecn: true,
                harddrop,
                ..config
            });
            let early = arrivals(&mut red, &ect, queue(20), 1000);
            assert!(early.contains(&Verdict::Mark) && !early.contains(&Verdict::DROP));
            arrivals(&mut red, &ect, queue(90), 100);
            assert_eq!(arrivals(&mut red, &ect, queue(90), 1), [above_max]);
        }
    }
}

#[test]
fn ce_exclude_averages_unmarked_bytes_up_to_twice_max() {
    let mut red = Red::new(Config {
        ce_exclude: true,
        ..LINUX
    });
    let marked = |packets: u64| Backlog {
        ce_bytes: packets * 500,
        ..queue(packets)
    };
    for (packets, average) in [(40, 20_000.0), (60, 30_000.0), (61, 61_000.0)] {
        for _ in 0..100 {
            arrivals(&mut red, &Datagram::new(0, 1514), marked(packets), 1);
        }
        assert!((red.average() - average).abs() < 2.0, "{packets} packets");
    }
}

fn settings(keys: &[(&str, Value)]) -> Settings {
    let mut settings = Settings::new(Rate::from_mbps(10), 1514);
    settings.values = keys
        .iter()
        .map(|(key, value)| ((*key).into(), value.clone()))
        .collect();
    settings
}

#[test]
fn linux_defaults_are_tcs() {
    // limit 120 kB: max a quarter, min a twelfth; burst (2 x 10 + 30)/3 = 16: 17 - 10 = 7;
    // w = 1/8: 8 (1 - 0.875^16) = 7.06, enough. probability 0.02.
    let config = config(&settings(&[]), Variant::Linux, Limit::Bytes(120_000)).unwrap();
    assert_eq!((config.min, config.max), (10_000, 30_000));
    assert_eq!((config.weight, config.max_p), (0.125, 0.02));
}

#[test]
fn bad_combinations_name_the_key() {
    let limit = Limit::Bytes(100_000);
    let packets = |n| Value::Packets(n);
    for (keys, key) in [
        (
            settings(&[("min", packets(5)), ("max", Value::Bytes(9000))]),
            "max",
        ),
        (settings(&[("min", packets(5)), ("max", packets(5))]), "max"),
        (settings(&[("min", packets(0))]), "min"),
        (settings(&[("weight", Value::Number(0.0))]), "weight"),
        (settings(&[("burst", Value::Packets(1))]), "burst"),
        (settings(&[("avpkt", Value::Bytes(0))]), "avpkt"),
    ] {
        assert_eq!(config(&keys, Variant::Floyd, limit).unwrap_err().key, key);
    }
    let only_min = settings(&[("min", Value::Bytes(0))]);
    let refused = config(&only_min, Variant::Floyd, limit).unwrap_err();
    assert_eq!(refused.message, "got 0 B; must be above 0");
    let gentle = settings(&[("gentle", Value::Flag(true))]);
    assert_eq!(
        config(&gentle, Variant::Linux, limit).unwrap_err().key,
        "gentle"
    );
}
