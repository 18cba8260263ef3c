use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::Datagram;
use crate::packet::{AckView, Ecn, FlowKey};
use crate::testing::{Driven, packet};
use crate::verdict::DropReason;

/// Unlimited rate, one tin, a queue per flow.
const CONFIG: Config = Config {
    bandwidth: None,
    diffserv: DiffServ::BestEffort,
    isolation: Isolation::Flows,
    ack_filter: AckFilter::Off,
    overhead: None,
    mpu: 0,
    framing: Cells::None,
    rtt: Duration::from_millis(100),
    memlimit: Some(15 << 20),
    queues: 1,
    sync_time: None,
    limit: None,
    mtu: 1514,
    ecn: true,
    variant: cobalt::Variant::Published,
};

fn cake(config: Config) -> Driven<Cake<Datagram<u64>>> {
    Driven::new(Cake::new(config))
}

/// A packet of flow number `flow` of a pair of hosts.
fn between(source: u32, destination: u32, flow: u16) -> Datagram<u64> {
    Datagram {
        flow: FlowKey {
            source,
            destination,
            source_port: flow,
            destination_port: 80,
            protocol: 6,
        },
        ..packet(0, 0)
    }
}

fn dscp(dscp: u8) -> Datagram<u64> {
    Datagram {
        dscp,
        ..packet(u32::from(dscp), u64::from(dscp))
    }
}

#[test]
fn packets_tell_which_tin_they_leave() {
    let mut queue = cake(Config {
        diffserv: DiffServ::DiffServ4,
        ..CONFIG
    });
    // tc-cake(8), diffserv4: CS1 is bulk, AF41 video, EF voice.
    for (code_point, tin) in [(0, "besteffort"), (8, "bulk"), (34, "video"), (46, "voice")] {
        queue.enqueue(dscp(code_point));
        let left = queue.dequeue().expect("it is queued");
        let place = left.inner_queue.map(usize::from).expect("it was told");
        assert_eq!(queue.qdisc.inner_queues()[place], tin);
    }
}

/// A table of 1024 queues has 150 kB: 1 GB for a thousand subscribers, if every tin had one.
#[test]
fn only_tins_with_packets_have_tables() {
    let mut queue = cake(Config {
        diffserv: DiffServ::DiffServ4,
        ..CONFIG
    });
    let furnished = |queue: &Driven<Cake<Datagram<u64>>>| -> Vec<bool> {
        queue.qdisc.tins.iter().map(Tin::is_furnished).collect()
    };
    assert_eq!(furnished(&queue), [false; 4]);
    assert!(queue.dequeue().is_none());
    queue.enqueue(dscp(46));
    let voice = queue
        .qdisc
        .inner_queues()
        .iter()
        .position(|tin| *tin == "voice")
        .expect("it has one");
    let expected: Vec<bool> = (0..4).map(|tin| tin == voice).collect();
    assert_eq!(furnished(&queue), expected);
}

/// The bytes sent of each kind when `count` packets leave and each is replaced by another of its kind. Delays stay
/// short, so COBALT does not act.
fn shares(
    queue: &mut Driven<Cake<Datagram<u64>>>,
    kinds: &[Datagram<u64>],
    count: usize,
) -> Vec<f64> {
    for (id, kind) in kinds.iter().enumerate() {
        for _ in 0..4 {
            queue.enqueue(Datagram {
                payload: id as u64,
                ..*kind
            });
        }
    }
    let mut sent = alloc::vec![0_u64; kinds.len()];
    for _ in 0..count {
        if let Some(ready) = queue.qdisc.ready_at() {
            queue.now = queue.now.max(ready);
        }
        let packet = queue.dequeue().expect("always replaced");
        sent[packet.payload as usize] += u64::from(packet.bytes);
        queue.enqueue(packet);
    }
    let all: u64 = sent.iter().sum();
    sent.iter()
        .map(|&bytes| bytes as f64 / all as f64)
        .collect()
}

fn assert_near(shares: &[f64], expected: &[f64]) {
    for (share, expected) in shares.iter().zip(expected) {
        assert!(
            (share - expected).abs() < 0.01,
            "{shares:?}, not {expected:?}"
        );
    }
}

#[test]
fn packets_leave_at_the_bandwidth_and_no_burst_goes_ahead() {
    // 8 Mbit/s: 1000 bytes take 1 ms.
    let mut queue = cake(Config {
        bandwidth: Some(Rate::from_mbps(8)),
        ..CONFIG
    });
    queue.now = Time::from_millis(50);
    for id in 0..3 {
        queue.enqueue(packet(1, id));
    }
    for (millis, id) in [(50, 0), (51, 1), (52, 2)] {
        let due = Time::from_millis(millis);
        assert_eq!(queue.qdisc.ready_at(), Some(due));
        if queue.now < due {
            queue.now = due.saturating_sub(Duration::from_nanos(1));
            assert_eq!(queue.dequeue(), None);
        }
        queue.now = due;
        assert_eq!(queue.ids(1), [id]);
    }
    assert_eq!(queue.qdisc.ready_at(), None);
}

#[test]
fn the_shaper_counts_what_the_link_adds() {
    // 1000 bytes with a header of 14 are 986 of IP; with an overhead of 38 they are 1024, which take 1.024 ms at 8
    // Mbit/s.
    let mut queue = cake(Config {
        bandwidth: Some(Rate::from_mbps(8)),
        overhead: Some(38),
        ..CONFIG
    });
    queue.enqueue(packet(1, 0));
    queue.enqueue(packet(1, 1));
    queue.dequeue();
    assert_eq!(queue.qdisc.ready_at(), Some(Time::from_micros(1024)));
}

#[test]
fn isolation_decides_who_shares_equally() {
    // Host 1 has four flows to host 9, host 2 one.
    let kinds: Vec<Datagram<u64>> = (0..4)
        .map(|flow| between(1, 9, flow))
        .chain([between(2, 9, 7)])
        .collect();
    let fifth = [0.2; 5];
    let half = [0.125, 0.125, 0.125, 0.125, 0.5];
    for (isolation, expected) in [
        (Isolation::Flows, fifth),
        (Isolation::DualSrcHost, half),
        // All go to one host, so all are equal there.
        (Isolation::DualDstHost, fifth),
        (Isolation::SrcHost, half),
        (Isolation::Hosts, half),
    ] {
        let mut queue = cake(Config {
            isolation,
            ..CONFIG
        });
        assert_near(&shares(&mut queue, &kinds, 20_000), &expected);
    }
}

#[test]
fn triple_isolation_counts_the_busier_end_of_a_flow() {
    // Host 1 sends four flows to four hosts, host 2 one flow to a fifth: host 1 is the busier end of the four.
    let kinds: Vec<Datagram<u64>> = (0..4)
        .map(|flow| between(1, 10 + u32::from(flow), flow))
        .chain([between(2, 20, 7)])
        .collect();
    let isolation = Isolation::TripleIsolate;
    let mut queue = cake(Config {
        isolation,
        ..CONFIG
    });
    let expected = [0.125, 0.125, 0.125, 0.125, 0.5];
    assert_near(&shares(&mut queue, &kinds, 20_000), &expected);
}

#[test]
fn tins_with_a_shaper_get_their_share_first_and_best_effort_the_rest() {
    // diffserv3: latency-sensitive 1/4, bulk 1/16, the rest for best effort.
    let mut queue = cake(Config {
        bandwidth: Some(Rate::from_mbps(8)),
        diffserv: DiffServ::DiffServ3,
        ..CONFIG
    });
    let kinds = [dscp(0), dscp(8), dscp(46)];
    assert_near(&shares(&mut queue, &kinds, 20_000), &[0.6875, 0.0625, 0.25]);
}

#[test]
fn a_tin_alone_gets_the_whole_rate() {
    let mut queue = cake(Config {
        bandwidth: Some(Rate::from_mbps(8)),
        diffserv: DiffServ::DiffServ4,
        ..CONFIG
    });
    shares(&mut queue, &[dscp(8)], 1000);
    // 1000 packets of 1 ms each, the first sent at once.
    assert_eq!(queue.now, Time::from_millis(999));
}

#[test]
fn tins_without_a_shaper_share_by_their_quanta() {
    // 1024 : 64 : 256.
    let mut queue = cake(Config {
        diffserv: DiffServ::DiffServ3,
        ..CONFIG
    });
    let kinds = [dscp(0), dscp(8), dscp(46)];
    let all = 1344.0;
    let expected = [1024.0 / all, 64.0 / all, 256.0 / all];
    assert_near(&shares(&mut queue, &kinds, 20_000), &expected);
}

#[test]
fn a_sparse_flow_goes_before_the_bulk_flows() {
    let mut queue = cake(CONFIG);
    for id in 0..6 {
        queue.enqueue(packet(1, id));
    }
    // The quantum of 1514 bytes lets two packets pass, then flow 1 is a bulk flow.
    assert_eq!(queue.ids(3), [0, 1, 2]);
    queue.enqueue(packet(2, 20).with_bytes(100));
    assert_eq!(queue.ids(2), [20, 3]);
}

#[test]
fn overflow_drops_the_head_of_the_fattest_queue_of_any_tin() {
    let mut queue = cake(Config {
        diffserv: DiffServ::DiffServ3,
        limit: Some(Limit::Packets(5)),
        ..CONFIG
    });
    for id in 0..4 {
        queue.enqueue(Datagram {
            dscp: 8,
            ..packet(1, id)
        });
    }
    queue.enqueue(packet(2, 20));
    queue.enqueue(packet(4, 40));
    assert_eq!(queue.dropped(), [(0, DropReason::Overflow)]);
}

#[test]
fn redundant_acknowledgements_are_dropped_if_ack_filter_is_set() {
    let ack = |id: u64| Datagram {
        ack: Some(AckView {
            ack: 1000 * id as u32,
            sacked_bytes: 0,
            must_keep: false,
        }),
        ..packet(1, id)
    };
    for (ack_filter, left) in [(AckFilter::Off, 4), (AckFilter::Conservative, 2)] {
        let mut queue = cake(Config {
            ack_filter,
            ..CONFIG
        });
        for id in 0..4 {
            queue.enqueue(ack(id));
        }
        assert_eq!(queue.qdisc.packets(), left);
        assert_eq!(queue.dropped().len() as u64, 4 - left);
        assert_eq!(queue.ids(4).len() as u64, left);
    }
}

#[test]
fn memory_defaults_to_four_bandwidth_delay_products() {
    let memory = |bandwidth| {
        Config {
            bandwidth,
            ..Config::new(1514)
        }
        .memory_limit()
    };
    // 200 Mbit/s × 0.4 s = 10 MB; 10 Mbit/s × 0.4 s = 500 kB, so 4 MiB; 1 Gbit/s × 0.4 s is above
    // 10240 frames.
    for (mbps, expected) in [(200, 10_000_000), (10, 4 << 20), (1000, 10_240 * 1514)] {
        assert_eq!(memory(Some(Rate::from_mbps(mbps))), expected);
    }
    assert_eq!(memory(None), 10_240 * 1514);
}

proptest! {
    #[test]
    fn nothing_is_lost_reordered_within_a_flow_or_kept_above_the_limits(
        (diffserv, isolation) in (
            prop::sample::select(DiffServ::ALL),
            prop::sample::select(Isolation::ALL),
        ),
        shaped in any::<bool>(),
        limit in 0_u64..40,
        steps in prop::collection::vec((0_u32..3, 0_u16..4, 0_u8..4, 40_u32..1514, 0_u8..12), 0..500),
    ) {
        let config = Config {
            bandwidth: shaped.then(|| Rate::from_mbps(1)),
            diffserv: diffserv.1,
            isolation: isolation.1,
            limit: Some(Limit::Packets(limit)),
            ..CONFIG
        };
        let mut queue = cake(config);
        let (mut id, mut sent, mut dropped) = (0, 0, 0);
        let mut last_sent = BTreeMap::new();
        for (host, flow, class, bytes, step) in steps {
            match step {
                0..6 => {
                    let ecn = if flow == 0 { Ecn::Ect0 } else { Ecn::NotEct };
                    let packet = Datagram { payload: id, bytes, ecn, dscp: class * 18, ..between(host, 9, flow) };
                    queue.enqueue(packet);
                    id += 1;
                }
                6..11 => {
                    if let Some(ready) = queue.qdisc.ready_at() {
                        queue.now = queue.now.max(ready);
                    }
                    match queue.dequeue() {
                        Some(packet) => {
                            sent += 1;
                            let flow = (packet.flow.source, packet.flow.source_port, packet.dscp);
                            let before = last_sent.insert(flow, packet.payload);
                            prop_assert!(before.is_none_or(|before| before < packet.payload));
                        }
                        None => prop_assert_eq!(queue.qdisc.packets(), 0),
                    }
                }
                _ => queue.now += Duration::from_millis(u64::from(bytes)),
            }
            dropped += queue.dropped().len() as u64;
            prop_assert_eq!(id, sent + dropped + queue.qdisc.packets());
            prop_assert!(!queue.qdisc.is_over_limit());
        }
    }
}
