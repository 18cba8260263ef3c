//! CAKE on a device with several hardware queues: one CAKE per queue, which together keep to one rate (Linux's `cake_mq`,
//! since 7.0; tc-cake(8)).
//!
//! A flow's hash selects its hardware queue. The queues share nothing but the rate: a queue that is asked for a packet counts
//! the active ones, at most once per `sync_time`, and sends at an equal share. Active are itself, those with packets, and those
//! that have sent since it counted last. So flows are fair within a queue, not across queues, and the sum of the rates lags
//! behind what becomes active or idle.

use alloc::vec::Vec;

use sojourn_units::{Duration, Rate, Time};

use super::{Cake, Config};
use crate::environment::Environment;
use crate::limit::Limit;
use crate::packet::{Packet, mix};
use crate::qdisc::{InnerSettings, Qdisc};

/// How often a queue counts the active ones (Linux's sync_time).
pub(super) const SYNC_TIME: Duration = Duration::from_micros(200);

/// A hardware queue.
struct Hardware<P> {
    cake: Cake<P>,
    /// When it last sent a packet, and when it last counted the active queues.
    last_sent: Option<Time>,
    last_counted: Option<Time>,
    active: u64,
}

/// Several CAKEs with one rate.
pub struct HardwareQueues<P> {
    queues: Vec<Hardware<P>>,
    bandwidth: Option<Rate>,
    sync_time: Duration,
    /// The limit for all together, if one is given; each has its own limit of memory.
    limit: Option<Limit>,
    salt: Option<u64>,
    /// The queue that the device asks next.
    turn: usize,
}

impl<P: Packet> HardwareQueues<P> {
    /// `queues` empty CAKEs, at least one.
    pub fn new(config: Config, queues: u64, sync_time: Duration) -> Self {
        let one = |_| Hardware {
            cake: Cake::new(Config {
                limit: None,
                ..config
            }),
            last_sent: None,
            last_counted: None,
            active: 0,
        };
        Self {
            queues: (0..queues).map(one).collect(),
            bandwidth: config.bandwidth,
            sync_time,
            limit: config.limit,
            salt: None,
            turn: 0,
        }
    }

    fn is_over_limit(&self) -> bool {
        match self.limit {
            Some(Limit::Packets(limit)) => self.packets() > limit,
            Some(Limit::Bytes(limit)) => self.bytes() > limit,
            None => false,
        }
    }

    /// The hardware queue of a packet.
    fn queue_of(&mut self, packet: &P, env: &mut Environment<P>) -> usize {
        let salt = *self.salt.get_or_insert_with(|| env.random_u64());
        // Not the hash by which CAKE selects a queue: that would leave most of each CAKE's queues unused.
        let hash = mix(u64::from(packet.flow().hash(salt)), salt);
        (hash % self.queues.len() as u64) as usize
    }

    /// Counts the active queues from the view of queue `at`, if it is time to, and sets its share of the rate.
    fn count_active(&mut self, at: usize, now: Time) {
        let Some(bandwidth) = self.bandwidth else {
            return;
        };
        let since = self.queues[at].last_counted;
        if since.is_some_and(|since| now.saturating_since(since) < self.sync_time) {
            return;
        }
        let is_active = |other: &Hardware<P>| {
            let has_sent = other
                .last_sent
                .is_some_and(|sent| since.is_none_or(|since| sent > since));
            other.cake.packets() > 0 || has_sent
        };
        let others = self
            .queues
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != at);
        let active = 1 + others.filter(|(_, other)| is_active(other)).count() as u64;
        let share = Rate::from_bps((bandwidth.as_bps() / active).max(1)).unwrap_or(bandwidth);
        let queue = &mut self.queues[at];
        queue.cake.set_bandwidth(share);
        (queue.last_counted, queue.active) = (Some(now), active);
    }
}

impl<P: Packet> Qdisc<P> for HardwareQueues<P> {
    fn enqueue(&mut self, packet: P, now: Time, env: &mut Environment<P>) {
        let at = self.queue_of(&packet, env);
        self.queues[at].cake.enqueue(packet, now, env);
        while self.is_over_limit() {
            // Packets may have no bytes: only a queue that has some can make room.
            let longest = (self.queues.iter_mut())
                .filter(|queue| queue.cake.packets() > 0)
                .max_by_key(|queue| queue.cake.bytes());
            if let Some(queue) = longest {
                queue.cake.make_room(now, env);
            }
        }
    }

    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        for tried in 0..self.queues.len() {
            let at = (self.turn + tried) % self.queues.len();
            if self.queues[at].cake.packets() == 0 {
                continue;
            }
            self.count_active(at, now);
            if let Some(packet) = self.queues[at].cake.dequeue(now, env) {
                self.queues[at].last_sent = Some(now);
                self.turn = (at + 1) % self.queues.len();
                return Some(packet);
            }
        }
        None
    }

    fn packets(&self) -> u64 {
        self.queues.iter().map(|queue| queue.cake.packets()).sum()
    }

    fn bytes(&self) -> u64 {
        self.queues.iter().map(|queue| queue.cake.bytes()).sum()
    }

    fn ready_at(&self) -> Option<Time> {
        let ready = self.queues.iter().filter(|queue| queue.cake.packets() > 0);
        ready.filter_map(|queue| queue.cake.ready_at()).min()
    }

    fn inner_queues(&self) -> &'static [&'static str] {
        self.queues[0].cake.inner_queues()
    }

    fn inner_settings(&self, place: usize) -> Option<InnerSettings> {
        self.queues[0].cake.inner_settings(place)
    }

    /// Reports the numbers of flows in all queues, and the most active queues that one of them counted last.
    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let mut flows = [("bulk_flows", 0.0), ("sparse_flows", 0.0)];
        for queue in &self.queues {
            queue.cake.state(&mut |name, value| {
                for (known, sum) in &mut flows {
                    if *known == name {
                        *sum += value;
                    }
                }
            });
        }
        for (name, sum) in flows {
            visit(name, sum);
        }
        let active = self.queues.iter().map(|queue| queue.active).max();
        visit("active_queues", active.unwrap_or(0) as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cake::diffserv::DiffServ;
    use crate::testing::{Driven, packet};

    const MS: fn(u64) -> Time = Time::from_millis;

    /// Queues at 8 Mbit/s: a packet of 1000 bytes takes 1 ms.
    fn queues(count: u64) -> Driven<HardwareQueues<crate::Datagram<u64>>> {
        let config = Config {
            bandwidth: Some(Rate::from_mbps(8)),
            diffserv: DiffServ::BestEffort,
            overhead: Some(0),
            ..Config::new(1500)
        };
        Driven::new(HardwareQueues::new(config, count, SYNC_TIME))
    }

    /// Flows of queues 0, 1, …: one each.
    fn one_flow_per_queue(driven: &mut Driven<HardwareQueues<crate::Datagram<u64>>>) -> Vec<u32> {
        let count = driven.qdisc.queues.len();
        let found = (0..count).map(|queue| {
            (0..1000)
                .find(|flow| driven.qdisc.queue_of(&packet(*flow, 0), &mut driven.env) == queue)
                .expect("a flow with this hash")
        });
        found.collect()
    }

    /// Packets of each flow that leave until then; every flow always has some.
    fn left(
        driven: &mut Driven<HardwareQueues<crate::Datagram<u64>>>,
        flows: &[u32],
        until: Time,
    ) -> Vec<u64> {
        let mut left = alloc::vec![0; flows.len()];
        let mut waiting = alloc::vec![0; flows.len()];
        while driven.now < until {
            for (number, flow) in flows.iter().enumerate() {
                while waiting[number] < 3 {
                    driven.enqueue(packet(*flow, number as u64));
                    waiting[number] += 1;
                }
            }
            match driven.dequeue() {
                Some(packet) => {
                    left[packet.payload as usize] += 1;
                    waiting[packet.payload as usize] -= 1;
                }
                None => {
                    let ready = driven.qdisc.ready_at().expect("packets wait");
                    driven.now = ready.max(driven.now);
                }
            }
            for (number, _) in driven.dropped() {
                waiting[number as usize] -= 1;
            }
        }
        left
    }

    #[test]
    fn one_flow_has_the_whole_rate_whatever_the_number_of_queues() {
        for count in [1, 4, 8] {
            let mut driven = queues(count);
            let [sent] = left(&mut driven, &[7], MS(1000))[..] else {
                unreachable!("one flow");
            };
            assert!((998..=1002).contains(&sent), "{count} queues: {sent}");
        }
    }

    /// Of queues with equally many bytes, none, only that with packets can make room.
    #[test]
    fn packets_without_bytes_make_room_too() {
        for flow in 0..8 {
            let config = Config {
                limit: Some(Limit::Packets(1)),
                ..Config::new(1500)
            };
            let mut driven = Driven::new(HardwareQueues::new(config, 4, SYNC_TIME));
            for number in 0..2 {
                driven.enqueue(crate::Datagram {
                    bytes: 0,
                    ..packet(flow, number)
                });
            }
            assert_eq!(driven.qdisc.packets(), 1);
            assert_eq!(driven.dropped().len(), 1);
        }
    }

    #[test]
    fn active_queues_share_the_rate_equally() {
        let mut driven = queues(4);
        let flows = one_flow_per_queue(&mut driven);
        let sent = left(&mut driven, &flows, MS(1000));
        assert!(
            sent.iter().all(|packets| (245..=255).contains(packets)),
            "{sent:?}"
        );
    }

    /// Three flows of one queue and one of another: a sixth each, and a half.
    #[test]
    fn fairness_ends_at_the_hardware_queue() {
        let mut driven = queues(2);
        let mut of_first = Vec::new();
        let mut of_second = Vec::new();
        for flow in 0..100 {
            match driven.qdisc.queue_of(&packet(flow, 0), &mut driven.env) {
                0 => of_first.push(flow),
                _ => of_second.push(flow),
            }
        }
        let flows = [of_first[0], of_first[1], of_first[2], of_second[0]];
        let sent = left(&mut driven, &flows, MS(1200));
        assert!(
            sent[..3]
                .iter()
                .all(|packets| (190..=210).contains(packets)),
            "{sent:?}"
        );
        assert!((590..=610).contains(&sent[3]), "{sent:?}");
    }

    /// A queue that becomes active is counted by another at its next count, at most 200 µs and a packet later; one that has
    /// become idle counts until the count after that.
    #[test]
    fn the_count_lags_by_the_sync_time() {
        let mut driven = queues(2);
        let flows = one_flow_per_queue(&mut driven);
        for id in 0..5 {
            driven.enqueue(packet(flows[0], id));
        }
        assert!(driven.dequeue().is_some());
        assert_eq!(driven.qdisc.queues[0].active, 1);
        driven.now = Time::from_micros(100);
        driven.enqueue(packet(flows[1], 9));
        assert!(
            driven.dequeue().is_some(),
            "the second queue's shaper is free"
        );
        assert_eq!(driven.qdisc.queues[1].active, 2);
        assert_eq!(driven.qdisc.queues[0].active, 1);
        // The first counts again at 1 ms: the second has sent since its count at 0.
        driven.now = MS(1);
        assert!(driven.dequeue().is_some());
        assert_eq!(driven.qdisc.queues[0].active, 2);
        // At half of the rate the next is due 2 ms later; by then the second has been idle.
        assert_eq!(driven.qdisc.ready_at(), Some(MS(3)));
        driven.now = MS(3);
        assert!(driven.dequeue().is_some());
        assert_eq!(driven.qdisc.queues[0].active, 1);
    }
}
