//! What holds of every network, whatever its links and routes: no packet is lost uncounted, packets of a route stay in order,
//! each takes at least its route's propagation, and the same packets come out at the same instants again.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use sojourn_aqm::fifo::DropTail;
use sojourn_aqm::{Datagram, DropReason, Limit, Single};
use sojourn_path::{Builder, LinkConfig, Observer, Route, Stage};
use sojourn_units::{Duration, Rate, Time};

/// The route, the number and the instant of sending.
type Packet = Datagram<(usize, usize, Time)>;

/// Counts drops, and that each packet that left a link had come to it.
#[derive(Clone, Default)]
struct Counts(Rc<RefCell<(u64, Vec<i64>)>>);

impl Observer<Packet> for Counts {
    fn on_arrival(&mut self, link: usize, _: &Packet, _: Time) {
        self.0.borrow_mut().1[link] += 1;
    }
    fn on_departure(&mut self, link: usize, _: &Packet, _: Time) {
        let queued = &mut self.0.borrow_mut().1[link];
        *queued -= 1;
        assert!(*queued >= 0, "more left link {link} than came to it");
    }
    fn on_drop(&mut self, link: usize, _: Packet, _: DropReason, _: Duration, _: Time) {
        let mut counts = self.0.borrow_mut();
        counts.0 += 1;
        counts.1[link] -= 1;
    }
}

/// A link: rate in Mbit/s, limit and device queue in packets, burst in bytes.
type Link = (u64, u64, u64, u64);
/// A route: its stages, each a link or a delay in microseconds.
type Stages = Vec<Result<prop::sample::Index, u64>>;

/// What came out, and how many were dropped and were left.
#[derive(Debug, PartialEq)]
struct Outcome {
    delivered: Vec<(usize, usize, Time)>,
    dropped: u64,
    left: u64,
}

fn run(
    links: &[Link],
    routes: &[Stages],
    sent: &[(prop::sample::Index, u64, u32)],
    until: Time,
) -> Outcome {
    let mut builder = Builder::new();
    for (mbps, limit, device_queue, burst) in links {
        let qdisc = Single::new(DropTail, Limit::Packets(*limit));
        let mut config = LinkConfig::of_rate(Rate::from_mbps(*mbps));
        config.burst = *burst;
        config.device_queue = *device_queue;
        builder.add_link(Box::new(qdisc), config);
    }
    let mut known: Vec<(Route, Duration)> = Vec::new();
    for stages in routes {
        let mut delay = Duration::ZERO;
        let stages: Vec<Stage> = stages
            .iter()
            .map(|stage| match stage {
                Ok(link) => Stage::Link(link.index(links.len())),
                Err(micros) => {
                    delay = delay + Duration::from_micros(*micros);
                    Stage::Delay(Duration::from_micros(*micros))
                }
            })
            .collect();
        known.push((builder.add_route(&stages), delay));
    }
    let counts = Counts::default();
    counts.0.borrow_mut().1 = vec![0; links.len()];
    let mut network = builder.build(counts.clone());
    let mut at = Time::ZERO;
    let mut delivered = Vec::new();
    let mut pending = sent.iter().enumerate().peekable();
    loop {
        let next_send = pending
            .peek()
            .map(|(_, (_, after, _))| at + Duration::from_micros(*after));
        let next = match (network.next_event(), next_send) {
            (None, None) => break,
            (event, send) => event
                .unwrap_or(Time::MAX)
                .max(at)
                .min(send.unwrap_or(Time::MAX)),
        };
        if next > until {
            break;
        }
        while let Some(packet) = network.poll(next) {
            let (route, number, sent) = packet.payload;
            assert!(next >= sent + known[route].1, "faster than its propagation");
            delivered.push((route, number, next));
        }
        if Some(next) == next_send {
            at = next;
            let (number, (route, _, bytes)) = pending.next().expect("it was there");
            let route = route.index(routes.len());
            let packet = Datagram::new((route, number, next), *bytes);
            network.send(packet, known[route].0, next);
        }
    }
    let sent = sent.len() - pending.count();
    let dropped = counts.0.borrow().0;
    let left = network.packets();
    assert_eq!(
        sent as u64,
        delivered.len() as u64 + dropped + left,
        "a packet is lost uncounted"
    );
    Outcome {
        delivered,
        dropped,
        left,
    }
}

proptest! {
    #[test]
    fn packets_are_counted_and_stay_in_order(
        links in proptest::collection::vec((1_u64..100, 1_u64..20, 0_u64..4, 0_u64..4000), 1..5),
        routes in proptest::collection::vec(
            proptest::collection::vec(
                prop_oneof![any::<prop::sample::Index>().prop_map(Ok), (0_u64..5000).prop_map(Err)],
                0..6,
            ),
            1..4,
        ),
        sent in proptest::collection::vec((any::<prop::sample::Index>(), 0_u64..300, 40_u32..1500), 0..200),
        until_ms in 1_u64..200,
    ) {
        let until = Time::from_millis(until_ms);
        let outcome = run(&links, &routes, &sent, until);
        // Queues and delays are first in, first out, so packets of a route cannot overtake each other.
        for route in 0..routes.len() {
            let numbers: Vec<usize> = outcome
                .delivered
                .iter()
                .filter(|(of, _, _)| *of == route)
                .map(|(_, number, _)| *number)
                .collect();
            prop_assert!(numbers.is_sorted(), "{:?}", numbers);
        }
        prop_assert_eq!(&outcome, &run(&links, &routes, &sent, until));
        // With time enough nothing stays behind.
        let in_the_end = run(&links, &routes, &sent, Time::from_secs(1000));
        prop_assert_eq!(in_the_end.left, 0);
    }
}
