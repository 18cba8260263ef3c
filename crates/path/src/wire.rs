//! Propagation that can change, and that packets may not survive.

use sojourn_units::{Duration, Time};

/// Propagation whose delay can change while packets are on their way. They stay in order, unless an impairment lets them
/// overtake.
pub(crate) struct Wire {
    /// The delay of a packet that enters now.
    pub delay: Duration,
    /// The number of its impairment.
    pub impairment: Option<usize>,
    /// For packets in order, and for those that overtake.
    lanes: [Lane; 2],
}

/// Packets that stay in order.
#[derive(Clone, Copy)]
struct Lane {
    /// The line, with a delay of zero, in which packets wait until they arrive.
    line: usize,
    /// When the last packet arrives.
    last: Time,
}

impl Wire {
    /// A wire with the lines of packets in order and of those that overtake.
    pub fn new(delay: Duration, impairment: Option<usize>, lines: [usize; 2]) -> Self {
        Self {
            delay,
            impairment,
            lanes: lines.map(|line| Lane {
                line,
                last: Time::ZERO,
            }),
        }
    }

    /// The line of a packet that enters now, and when it arrives.
    pub fn enter(&mut self, overtakes: bool, delay: Duration, now: Time) -> (usize, Time) {
        let lane = &mut self.lanes[usize::from(overtakes)];
        lane.last = lane.last.max(now.saturating_add(delay));
        (lane.line, lane.last)
    }
}
