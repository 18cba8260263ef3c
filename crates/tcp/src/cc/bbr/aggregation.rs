//! Aggregation of acknowledgements (Wi-Fi, cable): enlarges the window by the data acknowledged beyond the estimated
//! bandwidth (Linux 5.1's extra_acked; later draft-cardwell-iccrg-bbr-congestion-control-02 §4.5.5).

use sojourn_units::{Duration, Time};

use super::{Bandwidth, delivered_in};
use crate::cc::AckEvent;

/// The maximum is over five to ten rounds: two windows of five.
const ROUNDS: u32 = 5;
/// At most the data that the bandwidth delivers in this time.
const MOST: Duration = Duration::from_millis(100);
/// An epoch ends after this many segments at the latest.
const EPOCH_SEGMENTS: u64 = 1 << 20;

/// Data acknowledged beyond the bandwidth.
#[derive(Debug)]
pub(super) struct Aggregation {
    epoch_start: Time,
    epoch_acked: u64,
    extra: [u32; 2],
    current: usize,
    rounds: u32,
}

impl Aggregation {
    pub(super) const fn new() -> Self {
        Self {
            epoch_start: Time::ZERO,
            epoch_acked: 0,
            extra: [0; 2],
            current: 0,
            rounds: 0,
        }
    }

    /// Begins a new epoch after an idle time.
    pub(super) const fn restart(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    pub(super) fn update(
        &mut self,
        bandwidth: Bandwidth,
        round_start: bool,
        ack: &AckEvent,
        cwnd: u32,
    ) {
        if ack.delivered == 0 {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.current = 1 - self.current;
                self.extra[self.current] = 0;
            }
        }
        let acked = u64::from(ack.delivered);
        let mut expected = delivered_in(bandwidth, ack.now.saturating_since(self.epoch_start));
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_SEGMENTS {
            self.restart(ack.now);
            expected = 0;
        }
        self.epoch_acked += acked;
        let extra = (self.epoch_acked - expected).min(u64::from(cwnd)) as u32;
        self.extra[self.current] = self.extra[self.current].max(extra);
    }

    /// The segments by which to enlarge the window.
    pub(super) fn window(&self, bandwidth: Bandwidth) -> u32 {
        let most = delivered_in(bandwidth, MOST) as u32;
        self.extra[0].max(self.extra[1]).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr::bandwidth;

    fn ack(now_ms: u64, delivered: u32) -> AckEvent {
        AckEvent {
            now: Time::from_millis(now_ms),
            delivered,
            acked: delivered,
            marks: 0,
            rtt: None,
            una: crate::seq::Seq(0),
            next: crate::seq::Seq(0),
        }
    }

    /// A segment per millisecond. After 10 ms of silence 10 arrive at once, and 5 more a millisecond later: 15 in a
    /// millisecond in which one is expected.
    #[test]
    fn aggregated_acknowledgements_enlarge_the_window() {
        let bandwidth = bandwidth(1, Duration::from_millis(1));
        let mut aggregation = Aggregation::new();
        aggregation.update(bandwidth, false, &ack(10, 10), 100);
        aggregation.update(bandwidth, false, &ack(11, 5), 100);
        assert_eq!(aggregation.window(bandwidth), 14);
    }

    #[test]
    fn aggregation_is_forgotten_after_ten_rounds() {
        let bandwidth = bandwidth(1, Duration::from_millis(1));
        let mut aggregation = Aggregation::new();
        aggregation.update(bandwidth, false, &ack(10, 30), 100);
        for round in 1..=10 {
            aggregation.update(bandwidth, true, &ack(10 + 100 * round, 1), 100);
        }
        assert_eq!(aggregation.window(bandwidth), 1);
    }
}
