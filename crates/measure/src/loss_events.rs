//! Loss events: the share of the flows on a link that lose packets at about the same time (RFC 7928 §2.4).
//!
//! An event begins with a drop and includes every drop within one round trip, the largest base RTT of the flows, so
//! that each flow can respond before the next event. Its share is that of the flows with a loss in it.

use sojourn_units::{Duration, Time};

/// The flows of a run that respond to losses on a link.
pub struct ResponsiveFlows {
    /// For each flow of the run, whether it responds to losses on this link.
    members: Vec<bool>,
    /// The largest base RTT of those flows.
    round_trip: Duration,
}

impl ResponsiveFlows {
    /// The flows that respond to losses on this link, of `flows` flows in the run: their numbers and base RTTs.
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

    /// The number of flows in the run, responsive or not.
    pub fn flows(&self) -> usize {
        self.members.len()
    }
}

/// The loss events of a link.
pub struct LossEvents {
    responsive: ResponsiveFlows,
    members: u64,
    /// When the current event began.
    began: Time,
    /// Events so far, the current one included.
    events: u64,
    /// The last event in which each flow lost a packet; 0 for none.
    last: Vec<u64>,
    /// Flows with losses, summed over the events.
    losers: u64,
}

impl LossEvents {
    /// A link before its first event.
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

    /// Counts a dropped packet of a flow's data.
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

    /// The number of events.
    pub const fn count(&self) -> u64 {
        self.events
    }

    /// The mean share of flows with a loss in an event; `None` if there were no events.
    pub fn synchronization(&self) -> Option<f64> {
        let chances = self.events * self.members;
        (chances > 0).then(|| self.losers as f64 / chances as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four flows of 100 ms: one event in which two lose, one in which one flow loses twice: (2/4 + 1/4) / 2.
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
