//! A burst that travels as one object does what its packets do one by one.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use sojourn_aqm::codel::CoDel;
use sojourn_aqm::fifo::DropTail;
use sojourn_aqm::pie::Pie;
use sojourn_aqm::{Limit, Single, codel, pie};
use sojourn_path::link::BoxedQdisc;
use sojourn_path::{
    Builder, DropReason, Ecn, FlowKey, Hosts, LinkConfig, Network, Observer, Packet, Route, Stage,
};
use sojourn_units::{Duration, Rate, Time};

/// Packets of these numbers.
#[derive(Clone, Debug)]
struct Burst {
    first: u32,
    followers: u32,
    bytes: u32,
    is_capable: bool,
    enqueued: Time,
    hop: u32,
    is_marked: bool,
}

impl sojourn_aqm::Packet for Burst {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn ecn(&self) -> Ecn {
        match (self.is_capable, self.is_marked) {
            (false, _) => Ecn::NotEct,
            (true, false) => Ecn::Ect0,
            (true, true) => Ecn::Ce,
        }
    }
    fn set_ce(&mut self) {
        self.is_marked = true;
    }
    fn enqueued(&self) -> Time {
        self.enqueued
    }
    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }
    fn flow(&self) -> FlowKey {
        FlowKey::default()
    }
    fn followers(&self) -> u32 {
        self.followers
    }
}

impl Packet for Burst {
    fn hop(&self) -> u32 {
        self.hop
    }
    fn set_hop(&mut self, hop: u32) {
        self.hop = hop;
    }
    fn change_bytes(&mut self, by: i32) {
        self.bytes = self.bytes.saturating_add_signed(by);
    }
}

impl Burst {
    fn advance(&mut self, by: u32) {
        self.first += by;
        self.followers -= by;
    }
}

/// What happens to each packet: where, what, its number, when.
type Told = (usize, &'static str, u32, Time, Duration);

/// Notes what happens.
struct Log {
    takes_bursts: bool,
    arrived: Vec<Told>,
    left: Vec<Told>,
    /// Objects that were split.
    splits: Rc<RefCell<u32>>,
}

impl Observer<Burst> for Log {
    fn on_arrival(&mut self, link: usize, packet: &Burst, now: Time) {
        self.arrived
            .push((link, "came", packet.first, now, Duration::ZERO));
    }
    fn takes_bursts(&self, _: usize) -> bool {
        self.takes_bursts
    }
    fn on_arrivals(&mut self, link: usize, packet: &Burst, count: u32, now: Time) {
        for number in packet.first..packet.first + count {
            self.arrived
                .push((link, "came", number, now, Duration::ZERO));
        }
    }
    fn on_dequeue(&mut self, link: usize, packet: &mut Burst, now: Time) {
        let sojourn = now - packet.enqueued;
        self.left
            .push((link, "dequeued", packet.first, now, sojourn));
    }
    fn on_departure(&mut self, link: usize, packet: &Burst, now: Time) {
        let what = if packet.is_marked { "marked" } else { "left" };
        self.left
            .push((link, what, packet.first, now, Duration::ZERO));
    }
    fn on_drop(
        &mut self,
        link: usize,
        packet: Burst,
        reason: DropReason,
        queued: Duration,
        now: Time,
    ) {
        assert_eq!(packet.followers, 0, "a packet alone is dropped");
        let why = match reason {
            DropReason::Overflow => "no room",
            _ => "dropped",
        };
        self.left.push((link, why, packet.first, now, queued));
    }
    fn split(&mut self, burst: &mut Burst, count: u32) -> Burst {
        assert!(0 < count && count <= burst.followers);
        *self.splits.borrow_mut() += 1;
        let first = Burst {
            followers: count - 1,
            ..burst.clone()
        };
        burst.advance(count);
        first
    }
}

/// A host that answers every third packet over the same route.
struct Host {
    arrived: Vec<(u32, Time)>,
    route: Route,
}

impl Hosts<Burst, Log> for Host {
    fn deliver(&mut self, packet: Burst, now: Time, network: &mut Network<Burst, Log>) {
        assert!(self.deliver_first(packet, now, network).is_none());
    }

    fn deliver_first(
        &mut self,
        mut packet: Burst,
        now: Time,
        network: &mut Network<Burst, Log>,
    ) -> Option<Burst> {
        self.arrived.push((packet.first, now));
        if packet.first % 3 == 0 && packet.first < ANSWERS {
            let answer = Burst {
                first: packet.first + ANSWERS,
                followers: 0,
                ..packet.clone()
            };
            network.send(answer, self.route, now);
        }
        if packet.followers == 0 {
            return None;
        }
        packet.advance(1);
        Some(packet)
    }
}

/// The answers' numbers are larger.
const ANSWERS: u32 = 1_000_000;

#[derive(Clone, Copy, Debug)]
enum Discipline {
    DropTail,
    Pie,
    Codel,
}

impl Discipline {
    fn build(self, limit: Limit) -> BoxedQdisc<Burst> {
        match self {
            Self::DropTail => Box::new(Single::new(DropTail, limit)),
            Self::Pie => {
                let config = pie::Config {
                    target: Duration::from_millis(2),
                    tupdate: Duration::from_millis(3),
                    max_burst: Duration::ZERO,
                    ..pie::Config::rfc8033(1500)
                };
                Box::new(Single::new(Pie::new(config), limit))
            }
            Self::Codel => {
                let config = codel::Config {
                    target: Duration::from_millis(1),
                    interval: Duration::from_millis(4),
                    ..codel::Config::new(1500)
                };
                Box::new(Single::new(CoDel::new(config), limit))
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Scenario {
    discipline: Discipline,
    limit: Limit,
    burst: u64,
    device_queue: u64,
    /// What is behind the link: nothing, a delay, another link.
    behind: u8,
    /// Gap in microseconds, packets, their bytes, whether they are ECN-capable.
    sends: Vec<(u64, u32, u32, bool)>,
}

#[derive(PartialEq, Debug)]
struct Ran {
    arrived: Vec<(u32, Time)>,
    came: Vec<Told>,
    left: Vec<Told>,
    /// Packets and bytes at the link, and packets in the network, at each sending.
    backlogs: Vec<(u64, u64, u64)>,
    events: u64,
}

/// What happens, and how many objects were split.
fn run(scenario: &Scenario, takes_bursts: bool) -> (Ran, u32) {
    let mut builder = Builder::new();
    let mut config = LinkConfig::of_rate(Rate::from_mbps(10));
    config.burst = scenario.burst;
    config.device_queue = scenario.device_queue;
    config.seed = 7;
    let qdisc = scenario.discipline.build(scenario.limit);
    let mut stages = vec![Stage::Link(builder.add_link(qdisc, config.clone()))];
    if scenario.behind > 0 {
        stages.push(Stage::Delay(Duration::from_micros(700)));
    }
    if scenario.behind > 1 {
        let qdisc = Discipline::DropTail.build(Limit::Packets(20));
        stages.push(Stage::Link(builder.add_link(qdisc, config)));
    }
    let route = builder.add_route(&stages);
    let splits = Rc::new(RefCell::new(0));
    let mut network = builder.build(Log {
        takes_bursts,
        arrived: Vec::new(),
        left: Vec::new(),
        splits: Rc::clone(&splits),
    });
    let mut host = Host {
        arrived: Vec::new(),
        route,
    };
    let (mut now, mut number, mut events, mut backlogs) = (Time::ZERO, 0, 0, Vec::new());
    let end = [(1_000_000, 0, 0, false)];
    for (gap, packets, bytes, is_capable) in scenario.sends.iter().copied().chain(end) {
        now += Duration::from_micros(gap);
        while let (Some(source), due) = network.next_before(now) {
            network.act(source, due, &mut host);
            events += 1;
        }
        let qdisc = network.links()[0].qdisc();
        backlogs.push((qdisc.packets(), qdisc.bytes(), network.packets()));
        if packets > 0 {
            let burst = Burst {
                first: number,
                followers: packets - 1,
                bytes,
                is_capable,
                enqueued: now,
                hop: 0,
                is_marked: false,
            };
            number += packets;
            network.send_burst(burst, route, now);
        }
    }
    let splits = *splits.borrow();
    let ran = Ran {
        arrived: host.arrived,
        came: network.observer.arrived,
        left: network.observer.left,
        backlogs,
        events,
    };
    (ran, splits)
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let gap = prop_oneof![3 => 0_u64..4_000, 1 => 0_u64..40_000];
    let bytes = prop::sample::select(vec![100_u32, 1250, 1500]);
    let sends = prop::collection::vec((gap, 1_u32..12, bytes, prop::bool::weighted(0.2)), 1..120);
    let limit = prop_oneof![
        (1_u64..60).prop_map(Limit::Packets),
        (3_000_u64..60_000).prop_map(Limit::Bytes)
    ];
    let discipline = prop::sample::select(vec![
        Discipline::DropTail,
        Discipline::Pie,
        Discipline::Codel,
    ]);
    let burst = prop::sample::select(vec![0_u64, 1600, 9000]);
    let device_queue = prop::sample::select(vec![0_u64, 0, 0, 2]);
    (discipline, limit, burst, device_queue, 0_u8..3, sends).prop_map(
        |(discipline, limit, burst, device_queue, behind, sends)| Scenario {
            discipline,
            limit,
            burst,
            device_queue,
            behind,
            sends,
        },
    )
}

proptest! {
    /// The same happens to each packet at the same time, with as many events.
    #[test]
    fn a_burst_is_its_packets(scenario in scenario()) {
        prop_assert_eq!(run(&scenario, true).0, run(&scenario, false).0);
    }
}

/// Ten packets queue as one object at a link that is busy, and leave it to the host without being taken apart.
#[test]
fn a_burst_that_queues_is_not_split() {
    let scenario = Scenario {
        discipline: Discipline::DropTail,
        limit: Limit::Packets(100),
        burst: 0,
        device_queue: 0,
        behind: 0,
        sends: vec![(0, 1, 1250, false), (500, 10, 1250, false)],
    };
    let (ran, splits) = run(&scenario, true);
    assert_eq!(splits, 0);
    let numbers = ran.arrived.iter().map(|(number, _)| *number);
    assert!(numbers.filter(|number| *number < ANSWERS).eq(0..11));
    assert_eq!(run(&scenario, false).1, 9);
}
