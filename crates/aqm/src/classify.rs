//! Maps flows to a discipline's queues.

use alloc::vec;
use alloc::vec::Vec;

use crate::choice;
use crate::environment::Environment;
use crate::packet::{FlowKey, Packet};

/// Queues per set: the associativity of CAKE's hash.
pub const WAYS: u32 = 8;

/// Flows whose hashes are kept by their numbers.
const SLOTS: usize = 256;

/// Stands for no number.
const NO_NUMBER: u64 = u64::MAX;

choice! {
    /// How the hash of a flow selects a queue.
    pub enum Hashing {
        /// The hash decides (RFC 8290 §4.1): flows of the same value share a queue.
        Plain = "plain",
        /// The hash decides on a set of 8 queues, and a flow takes any that is its own or idle: flows
        /// share only once all 8 are taken (Høiland-Jørgensen, Täht and Morton 2018). A flow that has
        /// shared and then finds a queue of its own may be reordered.
        SetAssociative = "set_associative",
    }
}

/// Maps flows to queues by a hash, which is salted from the queue's own random stream.
pub struct Classifier {
    hashing: Hashing,
    queues: u32,
    salt: Option<u64>,
    /// The last key and its hash, for packets without a number: packets of a flow often follow each other.
    last: Option<(FlowKey, u32)>,
    /// The hashes of flows by [`Packet::flow_number`], each in the slot that its number selects; empty before the first.
    numbered: Vec<(u64, u32)>,
    /// The full hash of the last flow in each queue; empty with plain hashing.
    tags: Vec<u32>,
}

impl Classifier {
    /// A classifier for `queues` queues, at least one.
    pub fn new(hashing: Hashing, queues: u32) -> Self {
        let tags = match hashing {
            Hashing::Plain => Vec::new(),
            Hashing::SetAssociative => vec![0; queues as usize],
        };
        Self {
            hashing,
            queues,
            salt: None,
            last: None,
            numbered: Vec::new(),
            tags,
        }
    }

    /// Draws a new salt before the next packet, so that flows that shared a queue probably no longer do.
    pub fn perturb(&mut self) {
        self.salt = None;
        self.last = None;
        self.numbered.clear();
    }

    /// The queue for a packet: by its flow, unless its bucket is known. `is_idle` tells whether a queue is empty and inactive.
    #[inline]
    pub fn queue_of<P: Packet>(
        &mut self,
        packet: &P,
        is_idle: impl Fn(u32) -> bool,
        env: &mut Environment<P>,
    ) -> u32 {
        if let Some(bucket) = packet.bucket() {
            return bucket % self.queues;
        }
        let number = packet.flow_number().unwrap_or(NO_NUMBER);
        match self.numbered.get(number as usize % SLOTS) {
            Some((known, hash)) if *known == number && number != NO_NUMBER => {
                self.queue_of_hash(*hash, is_idle)
            }
            _ => self.queue_of_new(packet, number, is_idle, env),
        }
    }

    /// As [`Classifier::queue_of`], of a flow whose hash is not known by its number.
    #[inline(never)]
    fn queue_of_new<P: Packet>(
        &mut self,
        packet: &P,
        number: u64,
        is_idle: impl Fn(u32) -> bool,
        env: &mut Environment<P>,
    ) -> u32 {
        let hash = self.hash(&packet.flow(), env);
        if number != NO_NUMBER {
            self.numbered.resize(SLOTS, (NO_NUMBER, 0));
            self.numbered[number as usize % SLOTS] = (number, hash);
        }
        self.queue_of_hash(hash, is_idle)
    }

    /// As [`Classifier::queue_of`], for a key that was derived from the flow's key.
    pub fn queue_of_key<P: Packet>(
        &mut self,
        flow: &FlowKey,
        bucket: Option<u32>,
        is_idle: impl Fn(u32) -> bool,
        env: &mut Environment<P>,
    ) -> u32 {
        if let Some(bucket) = bucket {
            return bucket % self.queues;
        }
        let hash = self.hash(flow, env);
        self.queue_of_hash(hash, is_idle)
    }

    fn hash<P: Packet>(&mut self, flow: &FlowKey, env: &mut Environment<P>) -> u32 {
        match self.last {
            Some((last, hash)) if last == *flow => hash,
            _ => {
                let salt = *self.salt.get_or_insert_with(|| env.random_u64());
                let hash = flow.hash(salt);
                self.last = Some((*flow, hash));
                hash
            }
        }
    }

    #[inline]
    fn queue_of_hash(&mut self, hash: u32, is_idle: impl Fn(u32) -> bool) -> u32 {
        // hash · queues / 2^32: as uniform as a remainder, without a division.
        let direct = ((u64::from(hash) * u64::from(self.queues)) >> 32) as u32;
        match self.hashing {
            Hashing::Plain => direct,
            Hashing::SetAssociative => self.associate(hash, direct, is_idle),
        }
    }

    fn associate(&mut self, hash: u32, direct: u32, is_idle: impl Fn(u32) -> bool) -> u32 {
        let first = direct - direct % WAYS;
        let ways = WAYS.min(self.queues - first);
        let way = |offset: u32| first + (direct - first + offset) % ways;
        let own = (0..ways)
            .map(way)
            .find(|&queue| self.tags[queue as usize] == hash);
        let chosen = own
            .or_else(|| (0..ways).map(way).find(|&queue| is_idle(queue)))
            .unwrap_or(direct);
        self.tags[chosen as usize] = hash;
        chosen
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use sojourn_units::Time;

    use super::*;
    use crate::{Datagram, Ecn};

    /// A packet of the flow with its number, which it knows or not.
    struct Numbered(u32, bool);

    impl Packet for Numbered {
        fn bytes(&self) -> u32 {
            100
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }
        fn set_ce(&mut self) {}
        fn enqueued(&self) -> Time {
            Time::ZERO
        }
        fn set_enqueued(&mut self, _: Time) {}
        fn flow(&self) -> FlowKey {
            FlowKey::numbered(self.0)
        }
        fn flow_number(&self) -> Option<u64> {
            self.1.then_some(self.0.into())
        }
    }

    proptest! {
        /// Flows share slots of numbers; the salt changes now and then, and some packets know no number.
        #[test]
        fn a_flow_that_is_known_by_its_number_has_the_queue_of_its_hash(
            arrivals in prop::collection::vec((0_u32..1000, prop::bool::weighted(0.05), prop::bool::weighted(0.9)), 1..400),
            hashing in prop::sample::select(vec![Hashing::Plain, Hashing::SetAssociative]),
        ) {
            let queues = [true, false].map(|are_known| {
                let mut env = Environment::<Numbered>::new(1);
                let mut classifier = Classifier::new(hashing, 64);
                let mut queue_of = |(flow, perturbs, knows): &(u32, bool, bool)| {
                    if *perturbs {
                        classifier.perturb();
                    }
                    let packet = Numbered(flow * 64, *knows && are_known);
                    classifier.queue_of(&packet, |at| at % 3 == 0, &mut env)
                };
                arrivals.iter().map(&mut queue_of).collect::<Vec<u32>>()
            });
            prop_assert_eq!(&queues[0], &queues[1]);
        }
    }

    /// The queues of flows 0 to `flows` - 1, if none becomes idle again.
    fn queues(hashing: Hashing, queues: u32, flows: u32, seed: u64) -> Vec<u32> {
        let mut env = Environment::<Datagram<u64>>::new(seed);
        let mut classifier = Classifier::new(hashing, queues);
        let mut taken = vec![false; queues as usize];
        (0..flows)
            .map(|flow| {
                let is_idle = |at: u32| !taken[at as usize];
                let queue =
                    classifier.queue_of_key(&FlowKey::numbered(flow), None, is_idle, &mut env);
                taken[queue as usize] = true;
                queue
            })
            .collect()
    }

    #[test]
    fn a_hundred_flows_collide_as_often_as_chance_says() {
        // RFC 8290 §5.3: one flow among 100 is alone in 1024 queues with (1 - 1/1024)^99 = 0.9078.
        // With 8 ways it practically always is.
        for (hashing, low, high) in [
            (Hashing::Plain, 0.89, 0.925),
            (Hashing::SetAssociative, 0.999, 1.0),
        ] {
            let mut alone = 0;
            for seed in 0..100 {
                let queues = queues(hashing, 1024, 100, seed);
                let is_alone =
                    |queue: &u32| queues.iter().filter(|other| *other == queue).count() == 1;
                alone += queues.iter().filter(|queue| is_alone(queue)).count();
            }
            let share = f64::from(alone as u32) / 10_000.0;
            assert!((low..=high).contains(&share), "{hashing:?}: {share}");
        }
    }

    #[test]
    fn eight_flows_fill_a_set_of_eight_ways_and_a_ninth_shares() {
        let queues = queues(Hashing::SetAssociative, WAYS, 9, 1);
        let mut first = queues[..8].to_vec();
        first.sort_unstable();
        assert_eq!(first, (0..8).collect::<Vec<u32>>());
        assert!(queues[8] < 8);
    }

    #[test]
    fn a_flow_keeps_its_queue_until_the_hash_is_perturbed() {
        for hashing in [Hashing::Plain, Hashing::SetAssociative] {
            let mut env = Environment::<Datagram<u64>>::new(1);
            let mut classifier = Classifier::new(hashing, 1024);
            let mut queue_of = |classifier: &mut Classifier, flow| {
                classifier.queue_of_key(&FlowKey::numbered(flow), None, |_| false, &mut env)
            };
            let before: Vec<u32> = (0..8).map(|flow| queue_of(&mut classifier, flow)).collect();
            let again: Vec<u32> = (0..8).map(|flow| queue_of(&mut classifier, flow)).collect();
            assert_eq!(before, again);
            classifier.perturb();
            let after: Vec<u32> = (0..8).map(|flow| queue_of(&mut classifier, flow)).collect();
            assert_ne!(before, after);
        }
    }
}
