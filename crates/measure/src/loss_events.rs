//! Loss events: how many of the flows that share a link lose at about the same time (RFC 7928 §2.4).
//!
//! An event begins with a drop and takes in every drop within one round trip, the largest base RTT of the flows, so
//! that each can have answered before the next event. Its share is that of the flows that lose in it.

use sojourn_units::{Duration, Time};

/// The flows of a run that answer losses on a link.
pub struct ResponsiveFlows {
    /// For each flow of the run, whether it is one that answers losses on this link.
    members: Vec<bool>,
    /// The largest base RTT of those that do.
    round_trip: Duration,
}

impl ResponsiveFlows {
    /// Of `flows` flows in the run, those that answer losses on this link: their numbers and base RTTs.
    pub fn new(flows: usize, responsive: impl IntoIterator<Item = (u32, Duration)>) -> Self {
        let mut found = Self {
            members: vec![false; flows],
            round_trip: Duration::ZERO,
        };
        for (flow, rtt) in responsive {
            found.members[flow as usize] = true;
            found.round_trip = found.round_trip.max(rtt);
        }
        found
    }

    /// Flows of the run, members or not.
    pub fn flows(&self) -> usize {
        self.members.len()
    }
}

/// The loss events of a link.
pub struct LossEvents {
    responsive: ResponsiveFlows,
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
    pub fn new(responsive: ResponsiveFlows) -> Self {
        Self {
            members: responsive.members.iter().filter(|member| **member).count() as u64,
            last: vec![0; responsive.flows()],
            responsive,
            began: Time::ZERO,
            events: 0,
            losers: 0,
        }
    }

    /// A packet of a flow's data is dropped.
    pub fn on_drop(&mut self, flow: u32, now: Time) {
        let flow = flow as usize;
        if !self.responsive.members[flow] {
            return;
        }
        if self.events == 0 || now - self.began >= self.responsive.round_trip {
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
        let rtt = |flow| Duration::from_millis(25 * u64::from(flow + 1));
        let responsive = ResponsiveFlows::new(5, (0..4).map(|flow| (flow, rtt(flow))));
        let mut events = LossEvents::new(responsive);
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
