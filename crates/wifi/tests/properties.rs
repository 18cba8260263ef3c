//! Properties of every cell: packets are conserved and stay in order, airtime sums to the elapsed time, equal stations get
//! equal shares, and the same seed gives the same events.

mod cell;

use std::collections::HashMap;

use cell::{FULL, Packet, Seen, drop_tail, packet, ring, saturate};
use proptest::prelude::*;
use sojourn_units::{Duration, Time, Way};
use sojourn_wifi::phy::{Guard, Standard, Width};
use sojourn_wifi::queues::mac80211::{Amsdu, Settings};
use sojourn_wifi::{
    Aggregation, Cell, Departed, Fading, Medium, PriorityMap, Protection, Queueing, RateControl,
    Station, modes,
};

#[derive(Clone, Debug)]
struct Shape {
    standard: Standard,
    stations: u16,
    snr_db: Option<f64>,
    fading: bool,
    rate_control: u8,
    queueing: u8,
    /// None, as packets leave, or as they enter mac80211's queues.
    amsdu: u8,
    rts: bool,
    retry_limit: u8,
    beside_b: bool,
    seed: u64,
    /// Station, true for down, bytes, code point, µs since the packet before.
    packets: Vec<(u16, bool, u32, u8, u64)>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let standard = prop::sample::select(vec![Standard::B, Standard::G, Standard::N, Standard::Ac]);
    let bytes = prop_oneof![20 => 40_u32..1600, 1 => Just(0), 1 => Just(70_000)];
    let packet = (0_u16..6, any::<bool>(), bytes, 0_u8..64, 0_u64..3000);
    (
        (
            standard,
            1_u16..6,
            prop::option::of(-5.0..40.0),
            any::<bool>(),
            0_u8..3,
            0_u8..3,
        ),
        (0_u8..3, any::<bool>(), 1_u8..8, any::<bool>(), any::<u64>()),
        prop::collection::vec(packet, 0..400),
    )
        .prop_map(|(one, other, packets)| Shape {
            standard: one.0,
            stations: one.1,
            snr_db: one.2,
            fading: one.3,
            rate_control: one.4,
            queueing: one.5,
            amsdu: other.0,
            rts: other.1,
            retry_limit: other.2,
            beside_b: other.3,
            seed: other.4,
            packets,
        })
}

fn queueing(kind: u8, amsdu: u8) -> Queueing<Packet> {
    match kind {
        0 => Queueing::Ring {
            qdisc: drop_tail(50),
            packets: 8,
        },
        1 => {
            let mut settings = Settings::of_kernel(6, 1);
            settings.fq.amsdu = (amsdu == 2).then_some(Amsdu {
                bytes: 3839,
                packets: 5,
            });
            Queueing::Mac80211(settings)
        }
        _ => Queueing::PerStation(Settings::of_kernel(4, 11), Box::new(|| drop_tail(20))),
    }
}

fn medium(shape: &Shape) -> Medium<Packet> {
    let mut cell = Cell {
        seed: shape.seed,
        retry_limit: shape.retry_limit,
        aggregate_retry_limit: shape.retry_limit,
        ..Cell::new(shape.standard)
    };
    if shape.beside_b {
        cell = cell.beside_802_11b();
    }
    if shape.rts {
        cell.protection = Protection::RtsAbove(500);
    }
    if shape.amsdu > 0 {
        cell.aggregation = Aggregation {
            amsdu_bytes: 3839,
            ..cell.aggregation
        };
    }
    let stations = (0..shape.stations).map(|_| {
        let modes = modes(shape.standard, Width::Mhz20, 2, Guard::Short);
        Station {
            rate_control: match shape.rate_control {
                0 => RateControl::Fixed(modes[modes.len() / 2]),
                1 => RateControl::Ideal,
                _ => RateControl::Minstrel,
            },
            modes,
            snr_db: shape.snr_db,
            fading: shape.fading.then_some(Fading {
                coherence: Duration::from_millis(20),
                k: 1.0,
            }),
            queueing: queueing(shape.queueing, shape.amsdu),
        }
    });
    let stations = stations.collect();
    let access_point = queueing(shape.queueing, shape.amsdu);
    Medium::new(cell, access_point, stations)
}

/// Runs until the cell is empty. Checks after every event that packets are conserved and airtime sums to the elapsed time.
fn run(shape: &Shape) -> (Vec<(Time, Departed<Packet>)>, Seen) {
    let mut medium = medium(shape);
    let mut seen = Seen {
        keep_log: true,
        ..Seen::default()
    };
    let mut received = Vec::new();
    let mut act = |medium: &mut Medium<Packet>, seen: &mut Seen, until: Time| {
        while medium.next_event() <= until && medium.next_event() < Time::MAX {
            let now = medium.next_event();
            medium.act(now, seen);
            while let Some(departed) = medium.poll() {
                received.push((now, departed));
            }
            let airtime = medium.airtime();
            assert_eq!(airtime.total(), airtime.until() - Time::ZERO);
            let gone = seen.departed + seen.lost + seen.dropped;
            assert_eq!(seen.arrived, gone + medium.packets(), "at {now:?}");
        }
    };
    let mut now = Time::ZERO;
    for (number, &(station, down, bytes, dscp, after)) in shape.packets.iter().enumerate() {
        now += Duration::from_micros(after);
        act(&mut medium, &mut seen, now);
        let station = station % shape.stations;
        let way = if down { Way::Down } else { Way::Up };
        // A flow stays in its user priority.
        let priority = PriorityMap::Rfc8325.priority(dscp).number();
        let flow = u32::from(station) * 16 + u32::from(down) * 8 + u32::from(priority);
        let packet = packet(flow, number as u64, bytes).with_dscp(dscp);
        medium.enqueue(packet, station, way, now, &mut seen);
    }
    act(&mut medium, &mut seen, now + Duration::from_secs(100_000));
    assert_eq!(medium.packets(), 0, "all has been sent or dropped");
    (received, seen)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn packets_are_conserved_and_stay_in_order(shape in shapes()) {
        let (received, seen) = run(&shape);
        prop_assert_eq!(received.len() as u64, seen.departed);
        let mut last: HashMap<(u16, Way, u32), u64> = HashMap::new();
        for (_, Departed { station, way, packet }) in &received {
            let before = last.insert((*station, *way, packet.flow.source), packet.payload);
            // In mac80211, as in the kernel, packets of a flow may be reordered if another station held its queue.
            let in_order = before.is_none_or(|before| before < packet.payload);
            prop_assert!(in_order || shape.queueing == 1, "{station} {way:?} {packet:?}");
        }
        if shape.snr_db.is_none() && shape.retry_limit >= 7 {
            prop_assert!(seen.lost <= seen.collided, "only collisions lose frames");
        }
    }

    #[test]
    fn frames_of_several_packets_keep_the_order_of_a_flow(shape in shapes()) {
        let mut shape = Shape { queueing: 1, amsdu: 2, stations: 1, ..shape };
        for packet in &mut shape.packets {
            (packet.1, packet.3) = (true, 0);
        }
        let (received, _) = run(&shape);
        prop_assert!(received.is_sorted_by_key(|(_, departed)| departed.packet.payload));
    }

    #[test]
    fn no_transmission_starts_during_another(shape in shapes()) {
        let (_, seen) = run(&shape);
        let mut end = Time::ZERO;
        for pair in seen.log.windows(2) {
            // The transmissions of a collision begin together. All others begin after the end of all before.
            end = end.max(pair[0].end);
            prop_assert!(pair[1].start == pair[0].start || pair[1].start >= end, "{pair:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_events(shape in shapes()) {
        prop_assert_eq!(run(&shape), run(&shape));
    }
}

#[test]
fn equal_stations_get_equal_shares() {
    for (standard, way, seconds) in [
        (Standard::B, Way::Up, 100),
        (Standard::G, Way::Up, 30),
        (Standard::N, Way::Up, 300),
        (Standard::Ac, Way::Up, 300),
        (Standard::G, Way::Down, 10),
        (Standard::N, Way::Down, 10),
    ] {
        let cell = Cell::new(standard);
        let mode = *modes(standard, Width::Mhz20, 1, Guard::Long)
            .last()
            .expect("modes");
        let stations = (0..10).map(|_| cell::station(mode)).collect();
        let mut medium = Medium::new(cell, ring(), stations);
        let loads: Vec<_> = (0..10).map(|number| (number, way, 40, FULL, 0)).collect();
        let until = Time::from_secs(seconds);
        let received = saturate(&mut medium, &loads, until, &mut Seen::default());
        let mut shares = [0_u64; 10];
        for departed in &received {
            shares[usize::from(departed.station)] += 1;
        }
        let mean = received.len() as f64 / 10.0;
        for share in shares {
            assert!(
                (share as f64 / mean - 1.0).abs() < 0.1,
                "{standard:?} {way:?}: {shares:?}"
            );
        }
    }
}
