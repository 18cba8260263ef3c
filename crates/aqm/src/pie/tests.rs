//! RFC 8033 and Linux's PIE, by hand.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::Datagram;
use crate::packet::Ecn;

const MTU: u32 = 1514;
/// Ten full frames: enough that the short-queue rule does not apply.
const LONG: Backlog = Backlog {
    packets: 10,
    bytes: 15_140,
    ce_bytes: 0,
    qdisc_bytes: 15_140,
};

fn env() -> Environment<Datagram<u64>> {
    Environment::new(1)
}

/// Notifies `pie` of a packet that left at `now` after `sojourn`, with more queued behind it.
fn departs(pie: &mut Pie, sojourn: Duration, now: Time) {
    let mut packet = Datagram::new(0, 1514);
    packet.enqueued = now.saturating_sub(sojourn);
    assert_eq!(
        pie.on_dequeue(&packet, LONG, now, &mut env()),
        Verdict::Pass
    );
}

/// Updates with a constant delay until the probability is at least `p`. Returns the time reached.
fn raise_to(pie: &mut Pie, p: f64, delay: Duration) -> Time {
    for _ in 0..100_000 {
        let now = pie.next_timer().unwrap();
        departs(pie, delay, now);
        pie.on_timer(LONG, now);
        if pie.probability() >= p {
            return now;
        }
    }
    panic!("stays at {}", pie.probability());
}

#[test]
fn a_step_is_scaled_by_the_probability_it_starts_from() {
    // RFC 8033 §4.2: first step with p = 0, divisor 2048: 0.125 x (30 - 15) ms + 1.25 x 30 ms
    // = 0.001875 + 0.0375 = 0.039375; /2048 = 1.92261e-5. Second: p below 1e-4, divisor 128, no change of
    // delay: 0.001875/128 = 1.46484e-5.
    let mut pie = Pie::new(Config::rfc8033(MTU));
    let mut now = Time::from_secs(1);
    departs(&mut pie, Duration::from_millis(30), now);
    pie.on_timer(LONG, now);
    assert!((pie.probability() - 1.922_607e-5).abs() < 1e-10);
    now = pie.next_timer().unwrap();
    assert_eq!(now, Time::from_millis(1015));
    pie.on_timer(LONG, now);
    assert!((pie.probability() - (1.922_607e-5 + 1.464_844e-5)).abs() < 1e-10);
}

#[test]
fn at_one_percent_and_twice_the_target_a_step_is_half_of_alpha_times_target() {
    // Divisor 2 from 0.01 to 0.1: 0.125 x 15 ms / 2 = 0.0009375.
    let mut pie = Pie::new(Config::rfc8033(MTU));
    let now = raise_to(&mut pie, 0.01, Duration::from_millis(30));
    let before = pie.probability();
    pie.on_timer(LONG, now + Duration::from_millis(15));
    assert!((pie.probability() - before - 0.000_937_5).abs() < 1e-12);
}

#[test]
fn without_auto_tuning_a_step_has_the_gains_as_they_are() {
    // From idle, Eq. 2 of Pan et al. 2013 with alpha = 2 and beta = 20 per second: 2 x (25 - 20) ms + 20 x 25 ms.
    let mut pie = Pie::new(Config {
        alpha: 2.0,
        beta: 20.0,
        autotune: false,
        cap: false,
        dq_rate_estimator: false,
        ..Config::draft2013(MTU)
    });
    let now = pie.next_timer().unwrap();
    departs(&mut pie, Duration::from_millis(25), now);
    pie.on_timer(LONG, now);
    assert!((pie.probability() - 0.51).abs() < 1e-12);
}

#[test]
fn the_cap_limits_a_step_to_two_per_cent_once_p_is_a_tenth() {
    // 1.25 x 200 ms of change alone would be 0.25.
    for (cap, at_least, at_most) in [(true, 0.02, 0.02), (false, 0.2, 1.0)] {
        let mut pie = Pie::new(Config {
            cap,
            ..Config::rfc8033(MTU)
        });
        let now = raise_to(&mut pie, 0.1, Duration::from_millis(40)) + Duration::from_millis(15);
        let before = pie.probability();
        departs(&mut pie, Duration::from_millis(240), now);
        pie.on_timer(LONG, now);
        let step = pie.probability() - before;
        assert!(step > at_least - 1e-12 && step < at_most + 1e-12, "{step}");
    }
}

#[test]
fn nothing_is_dropped_while_burst_allowance_is_left() {
    // RFC 8033 §4.4: 150 ms are ten updates of 15 ms.
    for config in [
        Config::rfc8033(MTU),
        Config {
            dq_rate_estimator: false,
            max_burst: Duration::from_millis(300),
            ..Config::draft2013(MTU)
        },
    ] {
        let mut pie = Pie::new(config);
        for update in 1..=10 {
            let now = pie.next_timer().unwrap();
            for _ in 0..100 {
                let verdict = pie.on_enqueue(&Datagram::new(0, 1514), LONG, now, &mut env());
                assert_eq!(verdict, Verdict::Pass, "update {update}");
            }
            departs(&mut pie, Duration::from_secs(3), now);
            pie.on_timer(LONG, now);
        }
        assert!(pie.burst_allowance().is_zero());
        let mut env = env();
        let drops = (0..1000)
            .filter(|_| {
                pie.on_enqueue(&Datagram::new(0, 1514), LONG, Time::from_secs(1), &mut env)
                    == Verdict::DROP
            })
            .count();
        assert!(drops > 0);
    }
}

#[test]
fn nothing_is_dropped_from_a_queue_of_two_frames() {
    // RFC 8033 §4.1: no drop at or below twice the mean packet; Linux: below twice the MTU.
    let two = Backlog {
        packets: 2,
        bytes: 3028,
        ce_bytes: 0,
        qdisc_bytes: 3028,
    };
    let just_less = Backlog { bytes: 3027, ..two };
    for (config, short, enough) in [
        (Config::rfc8033(MTU), two, LONG),
        (Config::linux(MTU), just_less, two),
    ] {
        let mut pie = Pie::new(config);
        let now = raise_to(&mut pie, 0.9, Duration::from_millis(400));
        let mut env = env();
        let mut drops = |backlog| {
            (0..100)
                .filter(|_| {
                    pie.on_enqueue(&Datagram::new(0, 1514), backlog, now, &mut env) == Verdict::DROP
                })
                .count()
        };
        assert_eq!(drops(short), 0, "{:?}", config.variant);
        assert!(drops(enough) > 50, "{:?}", config.variant);
    }
}

#[test]
fn a_delay_below_half_the_target_shields_while_p_is_below_a_fifth() {
    // RFC 8033 §4.1. At 7 ms of 15 the probability falls slowly: 0.125 x -8 ms = -0.001 an update.
    let mut pie = Pie::new(Config {
        max_burst: Duration::ZERO,
        ..Config::rfc8033(MTU)
    });
    let now = raise_to(&mut pie, 0.15, Duration::from_millis(60)) + Duration::from_millis(15);
    departs(&mut pie, Duration::from_millis(7), now);
    pie.on_timer(LONG, now);
    assert!(pie.probability() < 0.2);
    let mut env = env();
    for _ in 0..1000 {
        assert_eq!(
            pie.on_enqueue(&Datagram::new(0, 1514), LONG, now, &mut env),
            Verdict::Pass
        );
    }
}

#[test]
fn an_idle_queue_brings_the_probability_to_zero_and_the_burst_allowance_back() {
    for config in [
        Config::rfc8033(MTU),
        Config::linux(MTU),
        Config {
            dq_rate_estimator: false,
            ..Config::draft2013(MTU)
        },
    ] {
        let mut pie = Pie::new(config);
        let mut now = raise_to(&mut pie, 0.5, Duration::from_millis(100));
        pie.on_dequeue(&Datagram::new(0, 1514), Backlog::default(), now, &mut env());
        let mut last = pie.probability();
        for _ in 0..3000 {
            now = pie.next_timer().unwrap();
            pie.on_timer(Backlog::default(), now);
            assert!(pie.probability() <= last);
            last = pie.probability();
        }
        assert_eq!(last, 0.0, "{:?}", config.variant);
        assert_eq!(
            pie.burst_allowance().as_millis(),
            config.max_burst.as_millis()
        );
    }
}

#[test]
fn ecn_capable_packets_are_marked_up_to_a_tenth_and_dropped_above() {
    // RFC 8033 §5.1.
    let mut ect = Datagram::new(0, 1514);
    ect.ecn = Ecn::Ect0;
    for (p, expected) in [(0.05, Verdict::Mark), (0.3, Verdict::DROP)] {
        let mut pie = Pie::new(Config {
            ecn: true,
            ..Config::rfc8033(MTU)
        });
        let now = raise_to(&mut pie, p, Duration::from_millis(25));
        let mut env = env();
        let hits: Vec<Verdict> = (0..200)
            .map(|_| pie.on_enqueue(&ect, LONG, now, &mut env))
            .filter(|verdict| *verdict != Verdict::Pass)
            .collect();
        assert!(!hits.is_empty());
        assert!(hits.iter().all(|verdict| *verdict == expected), "p = {p}");
    }
}

#[test]
fn derandomised_drops_are_neither_close_nor_far() {
    // RFC 8033 §5.4: no drop before the sum of p is 0.85, one at 8.5: with p = 0.1 gaps of 9 to 85.
    for config in [
        Config {
            derandomize: true,
            ..Config::rfc8033(MTU)
        },
        Config::linux(MTU),
    ] {
        let mut pie = Pie::new(config);
        let now = raise_to(&mut pie, 0.1, Duration::from_millis(25));
        let p = pie.probability();
        let mut env = env();
        let mut gap = 0;
        let mut gaps = Vec::new();
        for _ in 0..20_000 {
            gap += 1;
            if pie.on_enqueue(&Datagram::new(0, 1514), LONG, now, &mut env) == Verdict::DROP {
                gaps.push(gap);
                gap = 0;
            }
        }
        let (least, most) = ((0.85 / p).floor() as i32, (8.5 / p).ceil() as i32);
        assert!(gaps.len() > 100);
        assert!(
            gaps.iter().all(|gap| (least..=most).contains(gap)),
            "{least}..{most}"
        );
        assert!(
            gaps.iter().any(|gap| *gap < 2 * least),
            "spread down to the least"
        );
    }
}

#[test]
fn an_inactive_pie_becomes_active_at_a_third_of_the_limit() {
    // RFC 8033 §5.3.
    let mut pie = Pie::new(Config {
        rest: true,
        limit: Limit::Packets(30),
        max_burst: Duration::ZERO,
        ..Config::rfc8033(MTU)
    });
    let update = |pie: &mut Pie| {
        let now = pie.next_timer().unwrap();
        departs(pie, Duration::from_secs(1), now);
        pie.on_timer(LONG, now);
    };
    let nine = Backlog { packets: 9, ..LONG };
    pie.on_enqueue(&Datagram::new(0, 1514), nine, Time::ZERO, &mut env());
    update(&mut pie);
    assert_eq!(pie.probability(), 0.0);
    pie.on_enqueue(&Datagram::new(0, 1514), LONG, Time::ZERO, &mut env());
    update(&mut pie);
    assert!(pie.probability() > 0.0);
}

#[test]
fn linux_rounds_the_update_period_up_to_ticks_and_adds_one() {
    // 250 Hz: 15 ms are 4 ticks, 30 ms are 8; the wheel fires one later.
    for (tupdate_ms, period_ms) in [(15, 20), (16, 20), (30, 36), (1, 8)] {
        let mut pie = Pie::new(Config {
            tupdate: Duration::from_millis(tupdate_ms),
            ..Config::linux(MTU)
        });
        let first = pie.next_timer().unwrap();
        pie.on_timer(LONG, first);
        assert_eq!(
            pie.next_timer().unwrap() - first,
            Duration::from_millis(period_ms)
        );
    }
}

/// Updates run from the start, at the instants that follow from the set-up: with periods of 20 and 36 ms, 500 ms are 25
/// periods, and 13 and 32 ms. Each of the nine phases of 36 ms is as likely as the others.
#[test]
fn linux_updates_from_the_beginning() {
    let ms = Duration::from_millis;
    for (tupdate_ms, age_ms, first_ms) in [(15, 0, 20), (30, 0, 32), (30, 4, 28), (30, 36, 32)] {
        let first = linux::first_update(ms(tupdate_ms), ms(age_ms));
        assert_eq!(first, ms(first_ms));
    }
    let firsts: Vec<_> = (0..9)
        .map(|ticks| linux::first_update(ms(30), ms(4 * ticks)).as_nanos() / 1_000_000)
        .collect();
    assert_eq!(firsts, [32, 28, 24, 20, 16, 12, 8, 4, 36]);
    assert_eq!(Config::linux(MTU).first_update, ms(20));
}

#[test]
fn linux_adds_two_per_cent_above_a_quarter_of_a_second() {
    // At p >= 0.1 the step is capped at 0.02; 251 ms add another 0.02.
    let mut pie = Pie::new(Config::linux(MTU));
    let now = raise_to(&mut pie, 0.1, Duration::from_millis(40)) + Duration::from_millis(20);
    let before = pie.probability();
    departs(&mut pie, Duration::from_millis(251), now);
    pie.on_timer(LONG, now);
    assert!((pie.probability() - before - 0.04).abs() < 1e-9);
}

#[test]
fn half_a_queue_of_marked_packets_halves_the_delay_with_ce_exclude() {
    // 30 280 B are queued and leave at one frame a millisecond: 20 ms by either measure, 10 ms without the marked
    // packets. Linux's departure rate is a whole number of bytes per 256 ticks, 24.8 here, so a deviation of a tenth
    // is allowed.
    let marked = Backlog {
        packets: 20,
        bytes: 30_280,
        ce_bytes: 15_140,
        qdisc_bytes: 30_280,
    };
    for config in [Config::rfc8033(MTU), Config::linux(MTU)] {
        for dq_rate_estimator in [false, true] {
            for (ce_exclude, micros) in [(true, 10_000), (false, 20_000)] {
                let mut pie = Pie::new(Config {
                    ce_exclude,
                    dq_rate_estimator,
                    ..config
                });
                let mut now = Time::from_secs(1);
                for _ in 0..400 {
                    now += Duration::from_millis(1);
                    let mut packet = Datagram::new(0, 1514);
                    packet.enqueued = now.saturating_sub(Duration::from_millis(20));
                    pie.on_dequeue(&packet, marked, now, &mut env());
                }
                pie.on_timer(marked, now);
                let off = pie.qdelay().as_micros().abs_diff(micros);
                assert!(off < micros / 10, "{:?}: {off} us", pie.config());
            }
        }
    }
}

#[test]
fn settings_out_of_range_name_the_key() {
    let with = |key: &str, value: Value| {
        let mut settings = Settings::new(sojourn_units::Rate::from_mbps(10), MTU);
        settings.values.push((key.into(), value));
        settings
    };
    use sojourn_units::Value;
    let limit = Limit::Packets(1000);
    let error = config(
        &with("target", Value::Duration(Duration::ZERO)),
        Variant::Rfc8033,
        limit,
    );
    assert_eq!(error.unwrap_err().key, "target");
    let error = config(&with("alpha", Value::Number(0.125)), Variant::Linux, limit);
    assert_eq!(error.unwrap_err().key, "alpha");
    let error = config(
        &with("derandomize", Value::Flag(false)),
        Variant::Linux,
        limit,
    );
    assert_eq!(error.unwrap_err().key, "derandomize");
    let sixteenths = config(&with("alpha", Value::Number(4.0)), Variant::Linux, limit).unwrap();
    assert_eq!(sixteenths.alpha, 4.0);
}

proptest! {
    #[test]
    fn the_probability_stays_within_bounds_and_bursts_pass(
        delays in proptest::collection::vec((0_u64..2_000_000, 0_u64..200_000), 1..300),
        which in 0_usize..3,
    ) {
        let config = [
            Config::rfc8033(MTU),
            Config::linux(MTU),
            Config { dq_rate_estimator: false, ..Config::draft2013(MTU) },
        ][which];
        let mut pie = Pie::new(config);
        let mut env = env();
        let mut packet = Datagram::new(0, 1514);
        let mut now = Time::from_secs(1);
        for (delay, pause) in delays {
            now += Duration::from_micros(pause);
            packet.enqueued = now.saturating_sub(Duration::from_micros(delay));
            pie.on_dequeue(&packet, LONG, now, &mut env);
            let due = pie.next_timer().unwrap();
            if due <= now {
                pie.on_timer(LONG, now);
            }
            prop_assert!((0.0..=1.0).contains(&pie.probability()));
            let allowance = pie.burst_allowance();
            let verdict = pie.on_enqueue(&packet, LONG, now, &mut env);
            prop_assert!(allowance.is_zero() || verdict == Verdict::Pass);
        }
    }
}
