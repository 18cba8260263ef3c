//! Propagation that can change.

use sojourn_units::{Duration, Time};

/// Propagation whose delay can change while packets are on their way. They stay in order.
pub(crate) struct Wire {
    /// The delay of a packet that enters now.
    pub delay: Duration,
    /// When the last packet arrives.
    last: Time,
    /// The line, with a delay of zero, in which packets wait until they arrive.
    pub line: usize,
}

impl Wire {
    pub const fn new(delay: Duration, line: usize) -> Self {
        Self {
            delay,
            last: Time::ZERO,
            line,
        }
    }

    /// When a packet that enters now arrives.
    pub fn due(&mut self, now: Time) -> Time {
        self.last = self.last.max(now.saturating_add(self.delay));
        self.last
    }
}
