//! Loss events: how many of the flows that share a link lose at about the same time (RFC 7928 §2.4).
//!
//! An event begins with a drop and takes in every drop within one round trip, the largest base RTT of the flows, so
//! that each can have answered before the next event. Its share is that of the flows that lose in it.

use sojourn_units::{Duration, Time};

use crate::derived;
use crate::model::{Experiment, Hop};

/// The flows that share a link.
pub struct Population {
    /// For each flow of the run, whether it is one that answers losses on this link.
    members: Vec<bool>,
    /// The largest base RTT of those that do.
    round_trip: Duration,
}

impl Population {
    /// Nobody among so many flows.
    pub fn of(flows: usize) -> Self {
        Self {
            members: vec![false; flows],
            round_trip: Duration::ZERO,
        }
    }

    /// The TCP flows of a run that send their data through a queue.
    pub fn of_queue(experiment: &Experiment, queue: Hop, seed: u64) -> Self {
        let flows: Vec<derived::Flow<'_>> = derived::flows(experiment, seed).collect();
        let mut population = Self::of(flows.len());
        for flow in flows {
            let passes = || flow.traffic.route.hops(flow.way).contains(&queue);
            if flow.traffic.kind.tcp().is_some() && passes() {
                population.add(flow.number, flow.traffic.rtt);
            }
        }
        population
    }

    /// A flow with this base RTT answers losses.
    pub fn add(&mut self, flow: u32, rtt: Duration) {
        self.members[flow as usize] = true;
        self.round_trip = self.round_trip.max(rtt);
    }

    /// Flows of the run, members or not.
    pub fn flows(&self) -> usize {
        self.members.len()
    }
}

/// The loss events of a link.
pub struct LossEvents {
    population: Population,
    members: u64,
    /// The event under way began then.
    began: Time,
    /// Events so far, the one under way included.
    events: u64,
    /// The last event in which each flow lost; 0: none.
    last: Vec<u64>,
    /// Flows that lost, summed over the events.
    losers: u64,
}

impl LossEvents {
    /// No events yet.
    pub fn new(population: Population) -> Self {
        Self {
            members: population.members.iter().filter(|member| **member).count() as u64,
            last: vec![0; population.flows()],
            population,
            began: Time::ZERO,
            events: 0,
            losers: 0,
        }
    }

    /// A packet of a flow's data is dropped.
    pub fn on_drop(&mut self, flow: u32, now: Time) {
        let flow = flow as usize;
        if !self.population.members[flow] {
            return;
        }
        if self.events == 0 || now - self.began >= self.population.round_trip {
            self.events += 1;
            self.began = now;
        }
        if self.last[flow] != self.events {
            self.last[flow] = self.events;
            self.losers += 1;
        }
    }

    /// How many there were.
    pub const fn count(&self) -> u64 {
        self.events
    }

    /// The mean share of flows that lose in an event; `None` without events.
    pub fn synchronization(&self) -> Option<f64> {
        let chances = self.events * self.members;
        (chances > 0).then(|| self.losers as f64 / chances as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four flows of 100 ms: one event in which two lose, one in which one does twice: (2/4 + 1/4) / 2.
    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut population = Population::of(5);
        for flow in 0..4 {
            population.add(flow, Duration::from_millis(25 * u64::from(flow + 1)));
        }
        let mut events = LossEvents::new(population);
        assert_eq!(events.synchronization(), None);
        let drops = [
            (0, 10),
            (1, 60),
            (0, 109),
            (4, 109),
            (3, 110),
            (3, 209),
            (4, 500),
        ];
        for (flow, ms) in drops {
            events.on_drop(flow, Time::from_millis(ms));
        }
        assert_eq!((events.count(), events.synchronization()), (2, Some(0.375)));
    }
}
