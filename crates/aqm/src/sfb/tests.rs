//! SFB by hand.

use super::*;
use crate::packet::Ecn;
use crate::{Datagram, FlowKey};

const QUICK: Config = Config {
    target: 5,
    max: 1000,
    increment: 0.1,
    decrement: 0.05,
    rehash: Duration::ZERO,
    db: Duration::ZERO,
    penalty_rate: 10.0,
    penalty_burst: 2.0,
    variant: Variant::Feng,
    ecn: true,
};

struct Rig {
    sfb: Sfb<Datagram<u64>>,
    env: Environment<Datagram<u64>>,
}

impl Rig {
    fn new(config: Config) -> Self {
        Self {
            sfb: Sfb::new(config, Limit::Packets(10_000)),
            env: Environment::new(5),
        }
    }

    /// Offers a packet; returns true if it was queued.
    fn offer(&mut self, flow: u32, ecn: Ecn, now: Time) -> bool {
        let packet = Datagram {
            flow: FlowKey::numbered(flow),
            ecn,
            ..Datagram::new(0, 1514)
        };
        self.sfb.enqueue(packet, now, &mut self.env);
        self.env.take_dropped().count() == 0
    }
}

#[test]
fn a_bins_probability_rises_at_target_and_falls_when_it_is_found_empty() {
    let mut rig = Rig::new(Config {
        penalty_burst: 0.0,
        ..QUICK
    });
    for _ in 0..5 {
        assert!(rig.offer(0, Ecn::Ect0, Time::ZERO));
    }
    assert_eq!(rig.sfb.last_probability, 0.0);
    rig.offer(0, Ecn::Ect0, Time::ZERO);
    assert!((rig.sfb.last_probability - 0.1).abs() < 1e-12);
    while rig.sfb.dequeue(Time::ZERO, &mut rig.env).is_some() {}
    rig.offer(0, Ecn::Ect0, Time::ZERO);
    assert!((rig.sfb.last_probability - 0.05).abs() < 1e-12);
}

#[test]
fn an_unresponsive_flow_ends_in_the_penalty_box_and_others_do_not() {
    let mut rig = Rig::new(QUICK);
    for _ in 0..100 {
        rig.offer(0, Ecn::Ect0, Time::ZERO);
    }
    assert_eq!(rig.sfb.last_probability, 1.0);
    // The burst of the penalty box is used up; it refills at 10 packets a second.
    let at = Time::from_millis;
    assert!(!rig.offer(0, Ecn::Ect0, at(50)));
    assert!(rig.offer(0, Ecn::Ect0, at(101)));
    assert!(!rig.offer(0, Ecn::Ect0, at(150)));
    let fine = (1..50)
        .filter(|flow| rig.offer(*flow, Ecn::NotEct, at(150)))
        .count();
    assert_eq!(fine, 49);
}

#[test]
fn ecn_capable_packets_are_only_marked_up_to_one_half_and_also_dropped_above() {
    for (p, may_drop) in [(0.5, false), (0.9, true)] {
        let mut rig = Rig::new(Config {
            increment: 0.0,
            decrement: 0.0,
            ..QUICK
        });
        rig.sfb.filters[0].bins = [[Bin {
            packets: 0,
            probability: p,
        }; BINS]; LEVELS];
        let dropped = (0..400)
            .filter(|_| !rig.offer(0, Ecn::Ect0, Time::ZERO))
            .count();
        assert!(rig.env.marked() > 0);
        assert_eq!(dropped > 0, may_drop, "p = {p}: {dropped}");
    }
}

#[test]
fn a_flow_with_max_packets_in_all_its_bins_loses_its_arrivals() {
    let mut rig = Rig::new(Config {
        max: 7,
        increment: 0.0,
        ..QUICK
    });
    let queued = (0..20)
        .filter(|_| rig.offer(3, Ecn::Ect0, Time::ZERO))
        .count();
    assert_eq!(queued, 7);
}

#[test]
fn a_rehash_moves_to_the_warmed_filter_and_forgets_the_old() {
    let mut rig = Rig::new(Config {
        rehash: Duration::from_secs(10),
        db: Duration::from_secs(1),
        ..QUICK
    });
    for ms in [0, 9_500, 9_600] {
        assert!(rig.offer(0, Ecn::Ect0, Time::from_millis(ms)));
    }
    let counted = |rig: &Rig, slot: usize| -> u64 {
        rig.sfb.filters[slot].bins[0]
            .iter()
            .map(|bin| bin.packets)
            .sum()
    };
    assert_eq!((counted(&rig, 0), counted(&rig, 1)), (3, 2));
    assert!(rig.offer(0, Ecn::Ect0, Time::from_millis(10_001)));
    assert_eq!(
        (rig.sfb.slot, counted(&rig, 0), counted(&rig, 1)),
        (1, 0, 3)
    );
    while rig.sfb.dequeue(Time::from_secs(11), &mut rig.env).is_some() {}
    assert_eq!((counted(&rig, 0), counted(&rig, 1)), (0, 0));
}

/// tc-sfb(8): increment defaults to 0.00050, decrement to 0.00005.
#[test]
fn variant_linux_has_the_defaults_of_tc() {
    let linux = Config::of(Variant::Linux);
    assert_eq!((linux.increment, linux.decrement), (0.000_5, 0.000_05));
    let others = (
        linux.target,
        linux.max,
        linux.penalty_rate,
        linux.penalty_burst,
    );
    assert_eq!(others, (20, 25, 10.0, 20.0));
}
