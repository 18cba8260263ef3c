//! RFC 9332 Appendix A by hand.

use super::*;
use crate::Datagram;
use crate::packet::Ecn;
use alloc::vec::Vec;
use proptest::prelude::*;

/// A step at 1 ms.
const STEP: Config = Config {
    min_thresh: Duration::from_millis(1),
    range: Duration::ZERO,
    ..Config::of(Variant::Rfc9332)
};

/// Two queues at p', with a sufficient limit.
fn at(p_prime: f64, config: Config) -> DualPi2<Datagram<u64>> {
    let mut dual = DualPi2::new(config, Limit::Packets(1_000_000));
    // One update from zero: (alpha + beta) d - alpha target = p'.
    let Control {
        alpha,
        beta,
        target,
        ..
    } = config.control;
    let delay = (p_prime + alpha * target.as_secs_f64()) / (alpha + beta);
    dual.controller.update(Duration::from_secs_f64(delay));
    assert!((dual.controller.p() - p_prime).abs() < 1e-6);
    dual
}

fn fill(
    dual: &mut DualPi2<Datagram<u64>>,
    ecn: Ecn,
    count: u64,
    env: &mut Environment<Datagram<u64>>,
) {
    for id in 0..count {
        let packet = Datagram {
            ecn,
            ..Datagram::new(id, 1514)
        };
        dual.enqueue(packet, Time::ZERO, env);
    }
}

#[test]
fn packets_tell_which_of_the_two_queues_they_leave() {
    let mut env = Environment::new(0);
    let mut dual = at(0.0, Config::default());
    for (ecn, queue) in [
        (Ecn::Ect1, "l"),
        (Ecn::Ce, "l"),
        (Ecn::Ect0, "c"),
        (Ecn::NotEct, "c"),
    ] {
        fill(&mut dual, ecn, 1, &mut env);
        let left = dual.dequeue(Time::ZERO, &mut env).expect("it is queued");
        let index = left.inner_queue.map(usize::from).expect("it was told");
        assert_eq!(dual.inner_queues()[index], queue, "{ecn:?}");
    }
}

#[test]
fn classic_signals_are_the_square_and_l4s_marks_k_times_p_prime() {
    // p' = 0.2: p_C = 0.04, p_CL = 0.4.
    for (ecn, marks, drops) in [
        (Ecn::NotEct, 0, 40),
        (Ecn::Ect0, 40, 0),
        (Ecn::Ect1, 400, 0),
    ] {
        let mut env = Environment::new(0);
        let mut dual = at(0.2, Config::default());
        fill(&mut dual, ecn, 1000, &mut env);
        while dual.dequeue(Time::ZERO, &mut env).is_some() {}
        let near = |got: u64, expected: u64| got.abs_diff(expected) <= 1;
        assert!(
            near(env.marked(), marks),
            "{ecn:?}: {} marked",
            env.marked()
        );
        assert!(near(env.take_dropped().count() as u64, drops), "{ecn:?}");
    }
}

#[test]
fn in_overload_both_queues_drop_and_every_l4s_packet_is_marked() {
    // p' = 0.5: p_CL = 1, p_C = 0.25.
    for (ecn, marked) in [(Ecn::Ect0, 0), (Ecn::Ect1, 750)] {
        let mut env = Environment::new(0);
        let mut dual = at(0.5001, Config::default());
        fill(&mut dual, ecn, 1000, &mut env);
        while dual.dequeue(Time::ZERO, &mut env).is_some() {}
        let dropped = env.take_dropped().count();
        assert!((249..=251).contains(&dropped), "{ecn:?}: {dropped}");
        assert!(env.marked().abs_diff(marked) <= 1);
    }
}

#[test]
fn the_l_queues_own_marking_is_a_ramp_or_a_step() {
    let micros = Duration::from_micros;
    let ramp = at(0.0, Config::default());
    for (delay, p) in [(800, 0.0), (1000, 0.5), (1100, 0.75), (1200, 1.0)] {
        assert!((ramp.native(micros(delay)) - p).abs() < 1e-12, "{delay} us");
    }
    let step = at(0.0, STEP);
    assert_eq!(step.native(micros(1000)), 0.0);
    assert_eq!(step.native(micros(1001)), 1.0);
}

#[test]
fn a_lone_l4s_packet_is_not_marked_for_its_own_delay() {
    // A likelihood of 1 accumulates: 1, not above 1, at the first packet of a backlog, then a mark at each packet but
    // the last, which is alone.
    let mut env = Environment::new(0);
    let mut dual = DualPi2::new(STEP, Limit::Packets(10));
    let now = Time::from_millis(5);
    fill(&mut dual, Ecn::Ect1, 1, &mut env);
    while dual.dequeue(now, &mut env).is_some() {}
    assert_eq!(env.marked(), 0);
    fill(&mut dual, Ecn::Ect1, 4, &mut env);
    while dual.dequeue(now, &mut env).is_some() {}
    assert_eq!(env.marked(), 2);
}

#[test]
fn the_weighted_round_robin_leaves_classic_a_tenth() {
    let mut env = Environment::new(0);
    let mut dual = at(0.0, Config::default());
    fill(&mut dual, Ecn::NotEct, 1000, &mut env);
    fill(&mut dual, Ecn::Ect1, 1000, &mut env);
    let classic = (0..1000)
        .filter_map(|_| dual.dequeue(Time::ZERO, &mut env))
        .filter(|packet| packet.ecn == Ecn::NotEct)
        .count();
    assert!((99..=101).contains(&classic), "{classic}");
}

#[test]
fn the_time_shifted_fifo_serves_l4s_until_classic_has_waited_longer_by_the_shift() {
    let mut env = Environment::new(0);
    let shift = Duration::from_millis(50);
    let mut dual = at(
        0.0,
        Config {
            scheduler: Scheduler::TimeShifted,
            t_shift: Some(shift),
            ..Config::default()
        },
    );
    let mut offered = |ecn, ms| {
        let packet = Datagram {
            ecn,
            ..Datagram::new(ms, 1514)
        };
        dual.enqueue(packet, Time::from_millis(ms), &mut env);
    };
    offered(Ecn::NotEct, 0);
    offered(Ecn::Ect1, 50);
    offered(Ecn::Ect1, 51);
    let order: Vec<u64> = (0..3)
        .filter_map(|_| dual.dequeue(Time::from_millis(60), &mut env))
        .map(|packet| packet.payload)
        .collect();
    assert_eq!(order, [50, 0, 51]);
}

proptest! {
    #[test]
    fn classic_probability_is_the_square_of_the_coupled_one_over_k(
        delays in proptest::collection::vec(0_u64..500_000, 1..100),
        k in 1_u32..5,
    ) {
        // RFC 9332 §2.1: p_C = (p_CL / k)^2, whatever the delays.
        let default = Config::default();
        let control = Control { coupling_factor: f64::from(k), ..default.control };
        let mut dual: DualPi2<Datagram<u64>> = DualPi2::new(
            Config { control, ..default },
            Limit::Packets(10),
        );
        for delay in delays {
            dual.controller.update(Duration::from_micros(delay));
            let coupled = dual.p_cl() / f64::from(k);
            prop_assert!((dual.p_c() - coupled * coupled).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&dual.p_c()));
        }
    }
}

/// RFC 9956: NQB traffic (DSCP 45) need not be ECN-capable. It shares the low-latency queue, which cannot mark it and does
/// not drop it instead, unless there is overload (RFC 9332 §4.2.3).
#[test]
fn nqb_goes_to_the_low_latency_queue_and_is_not_dropped() {
    let mut env = Environment::new(0);
    for (nqb, dscp, queue) in [(true, 45, "l"), (true, 46, "c"), (false, 45, "c")] {
        let config = Config { nqb, ..STEP };
        let mut dual = at(0.2, config);
        for id in 0..100 {
            let packet = Datagram {
                dscp,
                ..Datagram::new(id, 1514)
            };
            dual.enqueue(packet, Time::ZERO, &mut env);
        }
        let left = dual.dequeue(Time::from_millis(9), &mut env);
        let left = left.expect("it is queued");
        let index = left.inner_queue.map(usize::from).expect("it was told");
        assert_eq!(dual.inner_queues()[index], queue, "{dscp}");
        if queue == "l" {
            while dual.dequeue(Time::from_millis(9), &mut env).is_some() {}
            assert!(!env.has_dropped());
            assert_eq!(env.marked(), 0);
        }
    }
}

/// RFC 9957 §4.2: at 50 Mbit/s 40 frames at once of a flow are too many for L; another one's packet stays there. What is sent
/// to C keeps its ECN field, and C serves it by its own rules.
#[test]
fn a_flow_that_builds_the_low_latency_queue_is_sent_to_the_classic_one() {
    let mut env = Environment::new(0);
    let config = Config {
        queue_protection: true,
        ..Config::default()
    };
    let rate = Rate::from_mbps(50);
    let mut dual = DualPi2::new(config, Limit::Packets(1000)).protected(rate, 1514);
    let mut queue_of = |dual: &mut DualPi2<Datagram<u64>>, flow: u32| {
        let packet = Datagram {
            ecn: Ecn::Ect1,
            flow: crate::FlowKey::numbered(flow),
            ..Datagram::new(0, 1514)
        };
        let before = dual.low_latency.packets.len();
        dual.enqueue(packet, Time::ZERO, &mut env);
        dual.low_latency.packets.len() > before
    };
    let burst: Vec<bool> = (0..40).map(|_| queue_of(&mut dual, 1)).collect();
    // A frame adds 0.242 ms of delay, and 2.89 ms of score if it is certain to be marked. The fifth finds 0.97 ms, 42 % of the
    // ramp from 0.8 to 1.2 ms; the sixth 1.21 ms, and has a score of 4.1 ms: 1.21 x 4.1 is more than 1.2 x 4.
    assert_eq!(burst.iter().position(|stays| !stays), Some(5));
    assert!(burst[5..].iter().all(|stays| !stays));
    assert!(queue_of(&mut dual, 2), "1.21 x 2.89 is less");
    assert_eq!(dual.classic.packets.len(), 35);
    assert!(
        dual.classic
            .packets
            .iter()
            .all(|packet| packet.ecn == Ecn::Ect1)
    );
}
