use alloc::collections::BTreeMap;

use proptest::prelude::*;
use sojourn_units::{Rate, Value};

use super::*;
use crate::Datagram;
use crate::testing::{Driven, packet};

/// McKenney's with a buffer of 1000 packets.
const CONFIG: Config = Config {
    divisor: 1024,
    flows: 1024,
    depth: u32::MAX,
    flow_limit: None,
    limit: Limit::Packets(1000),
    turn: Turn::Packet,
    perturb: None,
    end: End::Tail,
    renew_aqm: false,
};

fn sfq(config: Config) -> Driven<Sfq<Datagram<u64>, DropTail>> {
    Driven::new(Sfq::new(config, || DropTail))
}

fn linux() -> Config {
    let settings = Settings::new(Rate::from_mbps(10), 1514);
    config(&settings, Variant::Linux).expect("defaults")
}

#[test]
fn linux_defaults_are_those_of_tc() {
    // tc-sfq(8): 127 packets, 1024 buckets, 128 flows, depth 127, quantum one frame, no perturbation.
    let expected = Config {
        divisor: 1024,
        flows: 128,
        depth: 127,
        flow_limit: None,
        limit: Limit::Packets(127),
        turn: Turn::Bytes(1514),
        perturb: None,
        end: End::Tail,
        renew_aqm: false,
    };
    assert_eq!(linux(), expected);
}

/// Since Linux 6.1.129 the allotment counts bytes as they are. In units of 8, packets of 65 bytes counted as 72, and the
/// small flow got 0.907 of the other's bytes.
#[test]
fn a_flow_of_small_packets_gets_as_many_bytes_as_one_of_full_frames() {
    let mut queue = sfq(Config {
        depth: 100_000,
        limit: Limit::Packets(100_000),
        ..linux()
    });
    for id in 0..10_000 {
        queue.enqueue(packet(1, id).with_bytes(65));
    }
    for id in 0..500 {
        queue.enqueue(packet(2, 10_000 + id).with_bytes(1514));
    }
    let small = queue.ids(6_000).iter().filter(|id| **id < 10_000).count();
    let ratio = (small * 65) as f64 / ((6_000 - small) * 1514) as f64;
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
}

#[test]
fn linux_refuses_one_packet_and_buckets_that_are_no_power_of_two() {
    let refused = |limit, divisor: u64| {
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        settings.limit = Some(Limit::Packets(limit));
        settings
            .values
            .push(("divisor".into(), Value::Count(divisor)));
        config(&settings, Variant::Linux)
            .err()
            .map(|error| error.key)
    };
    assert_eq!(refused(1, 1024).as_deref(), Some("limit"));
    assert_eq!(refused(2, 1000).as_deref(), Some("divisor"));
    assert_eq!(refused(2, 1024), None);
}

#[test]
fn queues_send_a_packet_each_in_turn_whatever_its_size() {
    let mut queue = sfq(CONFIG);
    for id in 0..3 {
        queue.enqueue(packet(1, 10 + id).with_bytes(1514));
    }
    for id in 0..3 {
        queue.enqueue(packet(2, 20 + id).with_bytes(64));
    }
    assert_eq!(queue.ids(6), [10, 20, 11, 21, 12, 22]);
}

#[test]
fn a_queue_that_fills_joins_at_the_end_of_the_round() {
    let mut queue = sfq(CONFIG);
    for flow in [1, 2] {
        for id in 0..3 {
            queue.enqueue(packet(flow, u64::from(10 * flow) + id));
        }
    }
    assert_eq!(queue.ids(1), [10]);
    queue.enqueue(packet(4, 40));
    // Queue 2 was next. Queue 1 has had its turn and goes to the end, by then behind queue 4.
    assert_eq!(queue.ids(4), [20, 40, 11, 21]);
}

#[test]
fn linux_serves_a_quantum_of_bytes_per_turn() {
    // Of a frame's 1514 bytes 14 are left after 15 packets of 100; the 16th ends the turn.
    let mut queue = sfq(linux());
    for id in 0..40 {
        queue.enqueue(packet(1, id).with_bytes(100));
    }
    for id in 0..3 {
        queue.enqueue(packet(2, 100 + id).with_bytes(1514));
    }
    let mut expected: Vec<u64> = (0..16).collect();
    expected.push(100);
    // The first turn took 86 bytes too many: the next has 1428, which 15 packets use up.
    expected.extend(16..31);
    expected.push(101);
    assert_eq!(queue.ids(33), expected);
}

#[test]
fn a_full_buffer_drops_the_newest_packet_of_the_longest_queue() {
    let mut queue = sfq(Config {
        limit: Limit::Packets(6),
        ..CONFIG
    });
    for id in 0..4 {
        queue.enqueue(packet(1, 10 + id));
    }
    for id in 0..3 {
        queue.enqueue(packet(2, 20 + id));
    }
    assert_eq!(queue.dropped(), [(13, DropReason::Overflow)]);
    assert_eq!(queue.ids(6), [10, 20, 11, 21, 12, 22]);
}

#[test]
fn with_headdrop_the_oldest_packet_of_the_longest_queue_is_dropped() {
    let mut queue = sfq(Config {
        limit: Limit::Packets(3),
        end: End::Head,
        ..CONFIG
    });
    for id in 0..4 {
        queue.enqueue(packet(1, 10 + id));
    }
    assert_eq!(queue.dropped(), [(10, DropReason::Overflow)]);
    assert_eq!(queue.ids(3), [11, 12, 13]);
}

#[test]
fn when_every_queue_has_one_packet_the_next_in_turn_loses_it() {
    let mut queue = sfq(Config {
        limit: Limit::Packets(2),
        ..CONFIG
    });
    for flow in [1, 2, 4] {
        queue.enqueue(packet(flow, u64::from(flow)));
    }
    assert_eq!(queue.dropped(), [(1, DropReason::Overflow)]);
    assert_eq!(queue.ids(3), [2, 4]);
}

#[test]
fn linux_bounds_the_length_and_the_number_of_queues() {
    let mut queue = sfq(Config {
        limit: Limit::Packets(100_000),
        divisor: 65_536,
        ..linux()
    });
    for id in 0..130 {
        queue.enqueue(packet(1, id));
    }
    let dropped: Vec<u64> = queue.dropped().into_iter().map(|(id, _)| id).collect();
    assert_eq!(dropped, [127, 128, 129]);
    for flow in 2..=300 {
        queue.enqueue(packet(flow, 1000));
    }
    assert_eq!(queue.qdisc.active, 128);
    let queued = queue.qdisc.packets();
    assert_eq!(queued + queue.dropped().len() as u64, 127 + 299);
}

#[test]
fn an_aqm_drops_at_the_end_that_is_configured() {
    struct Always;
    impl<P: Packet> Aqm<P> for Always {
        fn on_enqueue(
            &mut self,
            _packet: &P,
            backlog: crate::aqm::Backlog,
            _now: Time,
            _env: &mut Environment<P>,
        ) -> Verdict {
            if backlog.packets == 0 {
                Verdict::Pass
            } else {
                Verdict::DROP
            }
        }
    }

    impl crate::Algorithm for Always {}
    for (end, dropped) in [(End::Tail, 11), (End::Head, 10)] {
        let mut queue = Driven::new(Sfq::new(Config { end, ..CONFIG }, || Always));
        queue.enqueue(packet(1, 10));
        queue.enqueue(packet(1, 11));
        assert_eq!(queue.dropped(), [(dropped, DropReason::Aqm)]);
        assert_eq!(queue.qdisc.packets(), 1);
    }
}

#[test]
fn perturbation_separates_flows_that_shared_a_queue_and_loses_nothing() {
    let mut queue = sfq(Config {
        divisor: 2,
        flows: 2,
        perturb: Some(Duration::from_secs(10)),
        ..CONFIG
    });
    for id in 0..20 {
        queue.enqueue(packet(1, 100 + id));
        queue.enqueue(packet(2, 200 + id));
    }
    // With two buckets, half of all new salts change whether two flows share one.
    let mut seen = [false; 2];
    for _ in 0..20 {
        let due = queue.qdisc.next_timer().expect("perturbation");
        assert_eq!(due, queue.now + Duration::from_secs(10));
        queue.now = due;
        queue.qdisc.on_timer(due, &mut queue.env);
        assert_eq!(queue.qdisc.packets(), 40);
        seen[queue.qdisc.active as usize - 1] = true;
    }
    assert_eq!(seen, [true, true]);
    let ids = queue.ids(40);
    for flow in [100, 200] {
        let of_flow: Vec<u64> = ids
            .iter()
            .copied()
            .filter(|id| id / 100 * 100 == flow)
            .collect();
        assert_eq!(of_flow, (flow..flow + 20).collect::<Vec<u64>>());
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_or_reordered_within_a_flow(
        limit in 0_u64..30,
        divisor in prop_oneof![Just(1_u32), Just(3), Just(1024)],
        flows in 1_u32..20,
        depth in prop_oneof![Just(1_u32), Just(4), Just(u32::MAX)],
        turn in prop_oneof![Just(Turn::Packet), Just(Turn::Bytes(700)), Just(Turn::Bytes(1514))],
        end in prop_oneof![Just(End::Head), Just(End::Tail)],
        steps in prop::collection::vec((0_u32..8, 40_u32..1514, 0_u8..10), 0..400),
    ) {
        let perturb = Some(Duration::from_millis(100));
        let limit = Limit::Packets(limit);
        let config = Config { divisor, flows, depth, flow_limit: None, limit, turn, perturb, end, renew_aqm: false };
        let mut queue = sfq(config);
        let (mut offered, mut sent, mut dropped) = (0, 0, 0);
        let mut last_sent = BTreeMap::new();
        for (flow, bytes, step) in steps {
            match step {
                0..5 => {
                    queue.enqueue(packet(flow, offered).with_bytes(bytes));
                    offered += 1;
                }
                5..9 => match queue.dequeue() {
                    Some(packet) => {
                        sent += 1;
                        let before = last_sent.insert(packet.flow.source, packet.payload);
                        prop_assert!(before.is_none_or(|before| before < packet.payload));
                    }
                    None => prop_assert_eq!(queue.qdisc.packets(), 0),
                },
                _ => {
                    queue.now += Duration::from_millis(100);
                    queue.qdisc.on_timer(queue.now, &mut queue.env);
                }
            }
            dropped += queue.dropped().len() as u64;
            prop_assert_eq!(offered, sent + dropped + queue.qdisc.packets());
            prop_assert!(!queue.qdisc.is_over_limit());
            prop_assert!(queue.qdisc.active <= flows);
        }
    }
}
