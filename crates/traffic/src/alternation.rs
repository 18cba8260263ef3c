//! The on and off times of a flow.

use sojourn_units::{Duration, Time};

use crate::application::Identity;
use crate::kind::{OnOff, Times};
use crate::streams::Stream;

/// The on and off times of a flow, beginning with on.
pub struct Alternation {
    on: Duration,
    off: Duration,
    times: Times,
    draws: Stream,
    next: Time,
}

impl Alternation {
    /// The times of a flow from its start.
    pub fn new(identity: &Identity, config: &OnOff, seed: u64) -> Self {
        Self {
            on: config.on,
            off: config.off,
            times: config.times,
            draws: Stream::new(seed, &format!("flow/{}/onoff", identity.flow)),
            next: identity.start,
        }
    }

    /// The next on time: its start and its end.
    pub fn next_on(&mut self) -> (Time, Time) {
        let from = self.next;
        if self.off.is_zero() {
            return (from, Time::MAX);
        }
        let until = from.saturating_add(self.times.draw(self.on, &mut self.draws));
        self.next = until.saturating_add(self.times.draw(self.off, &mut self.draws));
        (from, until)
    }
}
