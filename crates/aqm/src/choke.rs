//! CHOKe: choose and keep or choose and kill (Pan, Prabhakar and Psounis 2000).
//!
//! If RED's average is above `min`, an arrival is compared with a packet drawn at random from the queue. If both
//! belong to the same flow, both are dropped; otherwise RED decides about the arrival. A flow that fills the queue is
//! drawn most often, so it loses most, without any state per flow.
//!
//! Departures from the paper: if the drawn position holds no packet any more, CHOKe draws again; after three such
//! draws it takes the head, as Linux does. Thresholds are in packets, as in Linux and tc. `variant = "linux"` selects
//! the Linux arithmetic of RED, which sch_choke shares with sch_red.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use sojourn_units::Time;

use crate::aqm::{Algorithm as _, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::{Packet, ce_bytes};
use crate::parameters::Parameters as _;
use crate::qdisc::Qdisc;
use crate::red::{self, Red, Unit};
use crate::settings::Settings;
use crate::verdict::{DropReason, Verdict};

const DRAWS: usize = 3;

/// A FIFO in which packets can be dropped anywhere.
pub struct Choke<P> {
    red: Red,
    limit: Limit,
    /// Holes are dropped packets; the first and last entries are never holes.
    queue: VecDeque<Option<P>>,
    backlog: Backlog,
}

impl<P: Packet> Choke<P> {
    /// An empty queue with this limit.
    pub fn new(red: red::Config, limit: Limit) -> Self {
        Self {
            red: Red::new(red),
            limit,
            queue: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// The index of a packet chosen at random; `None` if nothing is queued.
    fn draw(&self, env: &mut Environment<P>) -> Option<usize> {
        let slots = self.queue.len();
        if slots == 0 {
            return None;
        }
        (0..DRAWS)
            .map(|_| ((u128::from(env.random_u64()) * slots as u128) >> 64) as usize)
            .find(|slot| self.queue[*slot].is_some())
            .or(Some(0))
    }

    /// Drops a random packet if it belongs to `arrival`'s flow. Returns true if it dropped one.
    fn kill_companion(&mut self, arrival: &P, now: Time, env: &mut Environment<P>) -> bool {
        let Some(slot) = self.draw(env) else {
            return false;
        };
        let Some(drawn) = self.queue[slot].take_if(|drawn| drawn.flow() == arrival.flow()) else {
            return false;
        };
        self.removed(&drawn, now);
        self.trim();
        env.drop(drawn, DropReason::Aqm);
        true
    }

    /// Removes holes from both ends.
    fn trim(&mut self) {
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
        }
        while let Some(None) = self.queue.back() {
            self.queue.pop_back();
        }
    }

    fn removed(&mut self, packet: &P, now: Time) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.bytes());
        self.backlog.ce_bytes -= ce_bytes(packet);
        self.backlog.qdisc_bytes = self.backlog.bytes;
        self.red.on_departure(self.backlog, now);
    }

    fn above_min(&self) -> bool {
        self.red.average() > self.red.config().min as f64
    }
}

impl<P: Packet> Qdisc<P> for Choke<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        self.red.observe(self.backlog, now);
        if self.above_min() && self.kill_companion(&packet, now, env) {
            return env.drop(packet, DropReason::Aqm);
        }
        match self.red.decide(&packet, self.backlog, now, env) {
            Verdict::Drop(reason) => return env.drop(packet, reason),
            Verdict::Mark => env.mark(&mut packet),
            Verdict::Pass => {}
        }
        if !self
            .limit
            .has_room(self.backlog.packets, self.backlog.bytes, packet.bytes())
        {
            return env.drop(packet, DropReason::Overflow);
        }
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.bytes());
        self.backlog.ce_bytes += ce_bytes(&packet);
        self.backlog.qdisc_bytes = self.backlog.bytes;
        self.queue.push_back(Some(packet));
    }

    fn dequeue(&mut self, now: Time, _env: &mut Environment<P>) -> Option<P> {
        let Some(packet) = self.queue.pop_front().flatten() else {
            self.red.on_empty(now);
            return None;
        };
        self.removed(&packet, now);
        self.trim();
        Some(packet)
    }

    fn packets(&self) -> u64 {
        self.backlog.packets
    }

    fn bytes(&self) -> u64 {
        self.backlog.bytes
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.red.state(visit);
    }
}

fn config(settings: &Settings, limit: Limit) -> Result<red::Config, SettingError> {
    let variant = red::WHICH.given(settings)?.variant;
    let given = red::Parameters::read(settings, variant)?;
    let packets = |limit| red::bytes(limit, settings.mtu) / u64::from(settings.mtu).max(1);
    // tc's defaults: a quarter of the limit, and a third of that.
    let max = match (given.min, given.max) {
        (_, Some(max)) => packets(max),
        (Some(min), None) => packets(min).saturating_mul(3),
        (None, None) => packets(limit) / 4,
    };
    let min = given.min.map_or(max / 3, packets);
    given.require_order(Unit::Packets, min, max)?;
    given.config_between(settings, variant, Unit::Packets, min, max)
}

/// `choke`.
pub fn choke<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "choke",
        summary: "RED that drops an arrival together with a queued packet of its flow",
        source: "Pan, Prabhakar and Psounis 2000",
        keys: Box::new(|| {
            [
                red::keys_but(&[("min", "max / 3"), ("max", "limit / 4; with min: 3 x min")]),
                red::WHICH.keys(),
            ]
            .concat()
        }),
        make: Box::new(|settings| {
            let limit = settings.limit_or(Limit::Packets(1000));
            Ok(Box::new(Choke::new(config(settings, limit)?, limit)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::red::Variant;
    use crate::{Datagram, FlowKey};
    use alloc::vec::Vec;
    use sojourn_units::{Rate, Value};

    /// Compares from 3 packets on, with weight 1; RED itself drops nothing below 1000.
    fn config(variant: Variant) -> red::Config {
        red::Config {
            unit: Unit::Packets,
            min: 3,
            max: 1000,
            max_p: 0.0,
            weight: 1.0,
            gentle: false,
            wait: false,
            bytemode: false,
            avpkt: 1000,
            bandwidth: Rate::from_mbps(10),
            ecn: false,
            harddrop: false,
            ce_exclude: false,
            variant,
        }
    }

    fn offer(
        choke: &mut Choke<Datagram<u64>>,
        env: &mut Environment<Datagram<u64>>,
        id: u64,
        flow: u32,
    ) {
        let mut packet = Datagram::new(id, 1514);
        packet.flow = FlowKey::numbered(flow);
        choke.enqueue(packet, Time::ZERO, env);
    }

    #[test]
    fn a_flow_alone_above_min_loses_the_arrival_and_a_queued_packet() {
        let mut env = Environment::new(1);
        let mut choke = Choke::new(config(Variant::Floyd), Limit::Packets(100));
        for id in 0..4 {
            offer(&mut choke, &mut env, id, 0);
        }
        assert_eq!(choke.packets(), 4);
        // The fifth arrival finds four packets, above three: it and one of them are dropped.
        offer(&mut choke, &mut env, 4, 0);
        let lost: Vec<u64> = env
            .take_dropped()
            .map(|(packet, _)| packet.payload)
            .collect();
        assert_eq!((choke.packets(), lost.len()), (3, 2));
        assert_eq!(lost[1], 4);
        let left: Vec<u64> = core::iter::from_fn(|| choke.dequeue(Time::ZERO, &mut env))
            .map(|packet| packet.payload)
            .collect();
        assert!(left.is_sorted() && !left.contains(&lost[0]));
    }

    #[test]
    fn flows_of_one_packet_each_are_not_hit() {
        for variant in [Variant::Floyd, Variant::Linux] {
            let mut env = Environment::new(1);
            let mut choke = Choke::new(
                red::Config {
                    weight: 0.5,
                    ..config(variant)
                },
                Limit::Packets(100),
            );
            for id in 0..100 {
                offer(&mut choke, &mut env, id, id as u32);
            }
            assert_eq!(choke.packets(), 100, "{variant:?}");
        }
    }

    #[test]
    fn a_flow_with_most_of_the_queue_loses_most() {
        let mut env = Environment::new(1);
        let mut choke = Choke::new(config(Variant::Floyd), Limit::Packets(1000));
        let mut lost = [0, 0];
        for id in 0..50_000 {
            // One arrival in ten belongs to flow 1; the link takes half of the arrivals.
            offer(&mut choke, &mut env, id, u32::from(id % 10 == 0));
            for (packet, _) in env.take_dropped() {
                lost[(packet.flow.source - FlowKey::numbered(0).source) as usize] += 1;
            }
            if id % 2 == 0 {
                choke.dequeue(Time::ZERO, &mut env);
            }
        }
        let share = |flow: usize, offered: i32| f64::from(lost[flow]) / f64::from(offered);
        assert!(share(0, 45_000) > 2.0 * share(1, 5_000), "{lost:?}");
    }

    #[test]
    fn thresholds_default_to_tcs_shares_of_the_limit() {
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        let given = |settings: &Settings| {
            super::config(settings, Limit::Packets(120)).map(|config| (config.min, config.max))
        };
        assert_eq!(given(&settings), Ok((10, 30)));
        settings.values.push(("min".into(), Value::Packets(20)));
        assert_eq!(given(&settings), Ok((20, 60)));
        settings.values.push(("max".into(), Value::Packets(20)));
        assert_eq!(given(&settings).unwrap_err().key, "max");
    }

    #[test]
    fn the_weight_is_the_one_tc_derives() {
        // tc: choke limit 1000 min 17 max 50 avpkt 1500 burst 34 bandwidth 10Mbit, which tc turns into a
        // weight of 1/32: 35 - 17 = 18; 16 (1 - 0.9375^34) = 14.2, too little; 32 (1 - 0.96875^34) = 21.1.
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        settings.values = Vec::from([
            ("min".into(), Value::Packets(17)),
            ("max".into(), Value::Packets(50)),
            ("avpkt".into(), Value::Bytes(1500)),
            ("burst".into(), Value::Packets(34)),
            ("bandwidth".into(), Value::Rate(Rate::from_mbps(10))),
            ("variant".into(), Value::Word("linux".into())),
        ]);
        let config = super::config(&settings, Limit::Packets(1000)).unwrap();
        assert_eq!((config.min, config.max), (17, 50));
        assert_eq!((config.weight, config.max_p), (1.0 / 32.0, 0.02));
    }
}
