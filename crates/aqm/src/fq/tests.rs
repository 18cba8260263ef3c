use alloc::collections::BTreeMap;
use alloc::vec;

use proptest::prelude::*;
use sojourn_units::Duration;

use super::*;
use crate::Datagram;
use crate::aqm::Algorithm;
use crate::codel::{self, CoDel};
use crate::fifo::DropTail;
use crate::packet::Ecn;
use crate::pie::{self, Pie};
use crate::single::Single;
use crate::testing::{Driven, packet};

const CONFIG: Config = Config {
    flows: 1024,
    hash: Hashing::Plain,
    quantum: 1000,
    limit: Limit::Packets(10_240),
    memory_limit: 32 << 20,
    overflow: Overflow::Fattest { batch: 64 },
    variant: Variant::Rfc8290,
};

fn fair(config: Config) -> Driven<Fair<Datagram<u64>, DropTail>> {
    Driven::new(Fair::new(config, || DropTail))
}

const CODEL: codel::Config = codel::Config {
    ecn: true,
    ..codel::Config::new(1514)
};

#[test]
fn state_per_queue_is_one_cache_line_besides_the_aqm() {
    assert!(size_of::<Flow<()>>() <= 64);
    assert!(size_of::<Flow<CoDel>>() <= 64 + size_of::<CoDel>());
}

#[test]
fn queues_take_turns_by_bytes() {
    // RFC 8290 §4.2, quantum 1000. Flow 1 sends 500-byte packets, flow 2 1000-byte ones: a credit of 1000 lets two
    // packets of flow 1 pass (1000, 500 > 0), one of flow 2.
    let mut queue = fair(CONFIG);
    for id in 0..4 {
        queue.enqueue(packet(1, 10 + id).with_bytes(500));
        queue.enqueue(packet(2, 20 + id));
    }
    assert_eq!(queue.ids(8), [10, 11, 20, 12, 13, 21, 22, 23]);
}

#[test]
fn a_queue_that_overdraws_its_credit_misses_turns() {
    // A credit of 1000 lets a 2500-byte packet pass and leaves -1500. The next two visits add 1000 each (-500, 500),
    // the third sends; flow 2 sends a packet between each.
    let mut queue = fair(CONFIG);
    for id in 0..2 {
        queue.enqueue(packet(1, 10 + id).with_bytes(2500));
    }
    for id in 0..5 {
        queue.enqueue(packet(2, 20 + id));
    }
    assert_eq!(queue.ids(7), [10, 20, 21, 11, 22, 23, 24]);
}

#[test]
fn a_sparse_flow_goes_before_the_old_queues() {
    let mut queue = fair(CONFIG);
    for id in 0..4 {
        queue.enqueue(packet(1, 10 + id));
    }
    assert_eq!(queue.ids(2), [10, 11]);
    queue.enqueue(packet(2, 20).with_bytes(100));
    assert_eq!(queue.ids(3), [20, 12, 13]);
}

#[test]
fn packets_are_sparse_as_long_as_their_queue_is_new() {
    // Credit 1000: flow 1's first packet uses it up, and the rest are served from the old list. Flow 2's only packet
    // is served from the new list.
    let mut queue = fair(CONFIG);
    for id in 0..3 {
        queue.enqueue(packet(1, 10 + id));
    }
    let mut next = || {
        let packet = queue.dequeue().expect("packets are queued");
        (packet.payload, packet.inner_queue)
    };
    let (sparse, bulk) = (Some(0), Some(1));
    assert_eq!([next(), next()], [(10, sparse), (11, bulk)]);
    queue.enqueue(packet(2, 20).with_bytes(100));
    let mut next = || {
        let packet = queue.dequeue().expect("packets are queued");
        (packet.payload, packet.inner_queue)
    };
    assert_eq!([next(), next()], [(20, sparse), (12, bulk)]);
    assert_eq!(queue.qdisc.inner_queues(), ["sparse", "bulk"]);
}

#[test]
fn an_overflow_drop_tells_the_list_of_its_queue() {
    let limit = Limit::Packets(2);
    let overflow = Overflow::Fattest { batch: 1 };
    let mut queue = fair(Config {
        limit,
        overflow,
        ..CONFIG
    });
    let dropped = |queue: &mut Driven<Fair<Datagram<u64>, DropTail>>| {
        let (packet, _) = queue.env.take_dropped().next().expect("it is full");
        packet.inner_queue
    };
    for id in 0..3 {
        queue.enqueue(packet(1, id));
    }
    assert_eq!(dropped(&mut queue), Some(0));
    queue.dequeue();
    queue.enqueue(packet(1, 3));
    // Its credit is used up: the next visit moves it to the old list.
    queue.dequeue();
    for id in 4..6 {
        queue.enqueue(packet(1, id));
    }
    assert_eq!(dropped(&mut queue), Some(1));
}

#[test]
fn a_flow_that_refills_an_emptied_queue_cannot_keep_its_priority() {
    // §4.2: an emptied new queue moves to the old list. Quantum 3000: flow 1 sends three packets, becomes old, sends
    // one more and has 2000 left when flow 2's first packet overtakes. Flow 2 is found empty, so its second packet
    // waits until flow 1 has used up its credit.
    for variant in [Variant::Rfc8290, Variant::Linux] {
        let mut queue = fair(Config {
            variant,
            quantum: 3000,
            ..CONFIG
        });
        for id in 10..18 {
            queue.enqueue(packet(1, id));
        }
        assert_eq!(queue.ids(4), [10, 11, 12, 13]);
        queue.enqueue(packet(2, 20).with_bytes(100));
        assert_eq!(queue.ids(2), [20, 14], "{variant:?}");
        queue.enqueue(packet(2, 21).with_bytes(100));
        assert_eq!(queue.ids(3), [15, 21, 16], "{variant:?}");
    }
}

#[test]
fn an_emptied_new_queue_alone_stays_listed_by_the_rfc_and_not_in_linux() {
    // Flow 1 has sent everything, and flow 2 waits behind it in the new list. Flow 1 is found empty; then flow 2 sends
    // 1000 bytes and has used up its credit. By the RFC flow 1 waits in the old list, so its next packet finds flow 2
    // behind it there; flow 3, which is new, goes first. In Linux flow 1 is new again, before flow 3.
    for (variant, order) in [
        (Variant::Rfc8290, [30, 11, 21]),
        (Variant::Linux, [11, 30, 21]),
    ] {
        let mut queue = fair(Config { variant, ..CONFIG });
        queue.enqueue(packet(1, 10).with_bytes(100));
        queue.enqueue(packet(2, 20));
        queue.enqueue(packet(2, 21));
        assert_eq!(queue.ids(2), [10, 20]);
        queue.enqueue(packet(1, 11).with_bytes(100));
        queue.enqueue(packet(3, 30).with_bytes(100));
        assert_eq!(queue.ids(3), order, "{variant:?}");
    }
}

#[test]
fn overflow_drops_half_the_bytes_of_the_fattest_queue_from_its_head() {
    // §4.1. Limit 12: flow 1 has 10 packets and flow 2 two. The 13th packet belongs to flow 2, and flow 1 loses 5000
    // of 10000 bytes.
    let mut queue = fair(Config {
        limit: Limit::Packets(12),
        ..CONFIG
    });
    for id in 0..10 {
        queue.enqueue(packet(1, id));
    }
    for id in 20..23 {
        queue.enqueue(packet(2, id));
    }
    let expected: Vec<_> = (0..5).map(|id| (id, DropReason::Overflow)).collect();
    assert_eq!(queue.dropped(), expected);
    assert_eq!((queue.qdisc.packets(), queue.qdisc.bytes()), (8, 8000));
}

#[test]
fn overflow_drops_at_most_a_batch() {
    let mut queue = fair(Config {
        limit: Limit::Packets(200),
        ..CONFIG
    });
    for id in 0..201 {
        queue.enqueue(packet(1, id));
    }
    assert_eq!(queue.dropped().len(), 64);
    assert_eq!(queue.ids(1), [64]);
}

#[test]
fn the_memory_limit_counts_more_than_the_bytes() {
    // 10 packets of 1000 bytes take 10 × 1576 bytes; an eleventh is one too many.
    let mut queue = fair(Config {
        memory_limit: 15_760,
        ..CONFIG
    });
    for id in 0..10 {
        queue.enqueue(packet(1, id));
    }
    assert!(queue.dropped().is_empty());
    queue.enqueue(packet(1, 10));
    // Half of 11000 bytes: 6 packets, the first count that reaches 5500.
    assert_eq!(queue.dropped().len(), 6);
}

#[test]
fn with_arrival_drop_the_arrival_without_room_is_dropped() {
    let mut queue = fair(Config {
        limit: Limit::Packets(2),
        overflow: Overflow::Arrival,
        ..CONFIG
    });
    for id in 0..3 {
        queue.enqueue(packet(1, id));
    }
    assert_eq!(queue.dropped(), [(2, DropReason::Overflow)]);
    assert_eq!(queue.ids(3), [0, 1]);
}

#[test]
fn each_queue_has_a_codel_of_its_own() {
    // Flow 1 has a standing queue for more than an interval, flow 2 sends now and then. One packet leaves per 10 ms;
    // only flow 1 loses packets.
    let mut queue = Driven::new(Fair::new(CONFIG, || {
        CoDel::new(codel::Config {
            ecn: false,
            ..CODEL
        })
    }));
    let mut id = 0;
    for step in 0..100 {
        queue.now = Time::from_millis(10 * step);
        for _ in 0..2 {
            queue.enqueue(packet(1, id));
            id += 1;
        }
        if step % 4 == 0 {
            queue.enqueue(packet(2, 1_000_000 + step));
        }
        queue.dequeue();
    }
    let dropped = queue.dropped();
    assert!(dropped.len() > 3);
    assert!(
        dropped
            .iter()
            .all(|&(id, reason)| id < 1_000_000 && reason == DropReason::Aqm)
    );
}

#[test]
fn linux_spares_the_last_frame_of_the_discipline_and_the_rfc_that_of_the_queue() {
    // Flow 1's CoDel sees packet 10 leave after 200 ms with 2000 bytes behind it and, an interval and 1 ms later,
    // packet 11 with 1000 bytes in its queue and 3000 in all. The frame is 1514 bytes: by the RFC packet 11 is kept.
    for (variant, codel, left, dropped) in [
        (Variant::Rfc8290, codel::Variant::Rfc8289, [20, 11], None),
        (Variant::Linux, codel::Variant::Linux, [20, 12], Some(11)),
    ] {
        let config = Config { variant, ..CONFIG };
        let codel = codel::Config {
            ecn: false,
            variant: codel,
            ..CODEL
        };
        let mut queue = Driven::new(Fair::new(config, || CoDel::new(codel)));
        for id in 0..3 {
            queue.enqueue(packet(1, 10 + id));
        }
        for id in 0..3 {
            queue.enqueue(packet(2, 20 + id));
        }
        queue.now = Time::from_millis(200);
        assert_eq!(queue.ids(1), [10]);
        queue.now = Time::from_millis(301);
        assert_eq!(queue.ids(2), left, "{variant:?}");
        let expected: Vec<_> = dropped
            .map(|id| (id, DropReason::Aqm))
            .into_iter()
            .collect();
        assert_eq!(queue.dropped(), expected, "{variant:?}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Enqueue { flow: u32, bytes: u32, ecn: Ecn },
    Dequeue,
    Wait { millis: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ce)];
    prop::collection::vec(
        prop_oneof![
            4 => (0_u32..12, 40_u32..1514, ecn).prop_map(|(flow, bytes, ecn)| Step::Enqueue { flow, bytes, ecn }),
            3 => Just(Step::Dequeue),
            1 => (0_u64..60).prop_map(|millis| Step::Wait { millis }),
        ],
        0..600,
    )
}

fn configs() -> impl Strategy<Value = Config> {
    (
        prop_oneof![Just(1_u64), Just(4), Just(1024)],
        prop_oneof![Just(Hashing::Plain), Just(Hashing::SetAssociative)],
        prop_oneof![Just(300_u64), Just(1514), Just(20_000)],
        prop_oneof![
            Just(Limit::Packets(0)),
            Just(Limit::Packets(20)),
            Just(Limit::Bytes(20_000)),
            Just(Limit::Packets(10_240))
        ],
        prop_oneof![Just(40_000_u64), Just(32 << 20)],
        prop_oneof![
            Just(Overflow::Arrival),
            Just(Overflow::Fattest { batch: 1 }),
            Just(Overflow::Fattest { batch: 64 })
        ],
        prop_oneof![Just(Variant::Rfc8290), Just(Variant::Linux)],
    )
        .prop_map(
            |(flows, hash, quantum, limit, memory_limit, overflow, variant)| Config {
                flows,
                hash,
                quantum,
                limit,
                memory_limit,
                overflow,
                variant,
            },
        )
}

proptest! {
    #[test]
    fn nothing_is_lost_reordered_within_a_flow_or_kept_above_the_limits(
        config in configs(), steps in steps()
    ) {
        let mut queue = Driven::new(Fair::new(config, || CoDel::new(CODEL)));
        let (mut id, mut sent, mut dropped) = (0, 0, 0);
        let (mut queued_bytes, mut last_sent) = (0_u64, BTreeMap::new());
        for step in steps {
            match step {
                Step::Enqueue { flow, bytes, ecn } => {
                    queue.enqueue(packet(flow, id).with_bytes(bytes).with_ecn(ecn));
                    id += 1;
                    queued_bytes += u64::from(bytes);
                }
                Step::Dequeue => {
                    match queue.dequeue() {
                        Some(packet) => {
                            sent += 1;
                            queued_bytes -= u64::from(packet.bytes);
                            let before = last_sent.insert(packet.flow.source, packet.payload);
                            // 12 flows in 4 queues: flows that lose their tag to another may be reordered.
                            let ordered = config.hash == Hashing::Plain || config.flows != 4;
                            prop_assert!(!ordered || before.is_none_or(|before| before < packet.payload));
                        }
                        None => prop_assert_eq!(queue.qdisc.packets(), 0),
                    }
                }
                Step::Wait { millis } => queue.now += Duration::from_millis(millis),
            }
            for (packet, _) in queue.env.take_dropped() {
                dropped += 1;
                queued_bytes -= u64::from(packet.bytes);
            }
            prop_assert_eq!(id, sent + dropped + queue.qdisc.packets());
            prop_assert_eq!(queue.qdisc.bytes(), queued_bytes);
            prop_assert!(!queue.qdisc.is_over_limit());
        }
    }

    #[test]
    fn backlogged_flows_get_the_same_bytes_to_within_a_quantum_and_a_packet(
        sizes in prop::collection::vec(40_u32..1514, 2..6), quantum in 300_u64..3000
    ) {
        // DRR (Shreedhar and Varghese 1996): over any busy period the bytes sent from two backlogged queues differ by
        // less than a quantum plus a largest packet each.
        let mut queue = fair(Config { quantum, hash: Hashing::SetAssociative, ..CONFIG });
        for id in 0..200 {
            for (flow, &bytes) in sizes.iter().enumerate() {
                queue.enqueue(packet(flow as u32, id).with_bytes(bytes));
            }
        }
        let mut served = vec![0_i64; sizes.len()];
        for _ in 0..150 {
            let packet = queue.dequeue().expect("200 packets per flow");
            served[(packet.flow.source - 1000) as usize] += i64::from(packet.bytes);
            let gap = served.iter().max().unwrap() - served.iter().min().unwrap();
            prop_assert!(gap <= quantum as i64 + 2 * 1514, "{:?}", served);
        }
    }

    #[test]
    fn with_one_queue_it_is_codel(steps in steps()) {
        let limit = Limit::Packets(10_240);
        let mut fair = Driven::new(Fair::new(Config { flows: 1, ..CONFIG }, || CoDel::new(CODEL)));
        let mut single = Driven::new(Single::new(CoDel::new(CODEL), limit));
        for (id, step) in steps.into_iter().enumerate() {
            match step {
                Step::Enqueue { bytes, ecn, .. } => {
                    fair.enqueue(packet(0, id as u64).with_bytes(bytes).with_ecn(ecn));
                    single.enqueue(packet(0, id as u64).with_bytes(bytes).with_ecn(ecn));
                }
                Step::Dequeue => {
                    // A single queue reports no inner queues.
                    let told = |packet| Datagram { inner_queue: None, ..packet };
                    prop_assert_eq!(fair.dequeue().map(told), single.dequeue());
                }
                Step::Wait { millis } => {
                    fair.now += Duration::from_millis(millis);
                    single.now = fair.now;
                }
            }
            prop_assert_eq!(fair.dropped(), single.dropped());
        }
    }
}

#[test]
fn queues_are_made_with_the_first_packet_as_if_they_had_been_there() {
    let pie = pie::Config::rfc8033(1514);
    let mut queue = Driven::new(Fair::new(CONFIG, || Pie::new(pie)));
    // Updates of the empty queues for a second.
    let arrival = Time::from_millis(1000);
    while let Some(timer) = queue.qdisc.next_timer().filter(|&timer| timer <= arrival) {
        queue.qdisc.on_timer(timer, &mut queue.env);
    }
    assert_eq!(queue.qdisc.flows.len(), 1);
    queue.now = arrival;
    queue.enqueue(packet(1, 0));
    assert_eq!(queue.qdisc.flows.len() as u64, CONFIG.flows);
    let next = queue.qdisc.next_timer();
    assert!(next > Some(arrival));
    let mut flows = queue.qdisc.flows.iter();
    assert!(flows.all(|flow| Algorithm::next_timer(&flow.aqm) == next));
}
