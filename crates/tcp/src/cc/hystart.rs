//! HyStart: leaves slow start before it overflows the queue (Ha and Rhee 2011), as in Linux's CUBIC.
//!
//! From a window of 16 on, slow start ends when the acknowledgements of a round arrive as a train longer than half the
//! minimum RTT, or when the least RTT of the round's first eight samples exceeds the minimum by an eighth (at least 4
//! ms, at most 16 ms).

use sojourn_units::{Duration, Time};

use super::{AckEvent, Window};
use crate::seq::Seq;

/// Below this window nothing is detected, but rounds are still tracked.
const LOW_WINDOW: u32 = 16;
/// Acknowledgements no further apart than this belong to one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// RTT samples per round before their minimum is judged.
const MIN_SAMPLES: u32 = 8;
/// Bounds of the RTT increase that ends slow start.
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);
/// Linux extends the train by the duration of the largest pacing burst, at most 1 ms.
const TRAIN_ALLOWANCE: Duration = Duration::from_millis(1);

/// The detector's state within a round.
#[derive(Clone, Debug)]
pub struct HyStart {
    found: bool,
    round_start: Time,
    last_ack: Time,
    round_end: Option<Seq>,
    samples: u32,
    least: Duration,
}

impl HyStart {
    /// A detector at the beginning of the first round.
    pub const fn new() -> Self {
        Self {
            found: false,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            round_end: None,
            samples: 0,
            least: Duration::MAX,
        }
    }

    /// Starts again for a new slow start after a timeout.
    pub fn restart(&mut self, now: Time, next: Seq) {
        self.found = false;
        self.start_round(now, next);
    }

    fn start_round(&mut self, now: Time, next: Seq) {
        self.round_start = now;
        self.last_ack = now;
        self.round_end = Some(next);
        self.samples = 0;
        self.least = Duration::MAX;
    }

    /// Takes an RTT sample. Sets the threshold to the window when slow start should end.
    pub fn on_sample(
        &mut self,
        rtt: Duration,
        min_rtt: Duration,
        ack: &AckEvent,
        window: &mut Window,
    ) {
        if self.found || !window.in_slow_start() {
            return;
        }
        if self.round_end.is_none_or(|end| ack.una.after(end)) {
            self.start_round(ack.now, ack.next);
        }
        if window.cwnd < LOW_WINDOW {
            return;
        }
        if ack.now.saturating_since(self.last_ack) <= TRAIN_GAP {
            self.last_ack = ack.now;
            let longest = (min_rtt + TRAIN_ALLOWANCE) / 2;
            if ack.now.saturating_since(self.round_start) > longest {
                self.found = true;
            }
        }
        self.least = self.least.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else if self.least > min_rtt + (min_rtt / 8).clamp(DELAY_MIN, DELAY_MAX) {
            self.found = true;
        }
        if self.found {
            window.ssthresh = window.cwnd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn window(cwnd: u32) -> Window {
        Window::new(cwnd)
    }

    fn ack(now_ms: u64) -> AckEvent {
        AckEvent {
            now: Time::from_millis(now_ms),
            delivered: 1,
            acked: 1,
            marks: 0,
            rtt: Some(RTT),
            una: Seq(1),
            next: Seq(100_000),
        }
    }

    /// Half of 100 ms and the allowance of 1 ms: a train longer than 50.5 ms ends slow start.
    #[test]
    fn a_train_longer_than_half_the_rtt_ends_slow_start() {
        let (mut hystart, mut window) = (HyStart::new(), window(20));
        for now in 1000..=1050 {
            hystart.on_sample(RTT, RTT, &ack(now), &mut window);
            assert_eq!(window.ssthresh, Window::INFINITE, "at {now} ms");
        }
        hystart.on_sample(RTT, RTT, &ack(1051), &mut window);
        assert_eq!(window.ssthresh, 20);
    }

    #[test]
    fn a_gap_of_more_than_two_milliseconds_ends_the_train() {
        let (mut hystart, mut window) = (HyStart::new(), window(20));
        for now in (1000..1200).step_by(3) {
            hystart.on_sample(RTT, RTT, &ack(now), &mut window);
        }
        assert_eq!(window.ssthresh, Window::INFINITE);
    }

    /// An eighth of 100 ms is 12.5 ms: a round whose least sample is 112 ms stays in slow start, 113 ms leaves it.
    #[test]
    fn a_rise_of_an_eighth_over_eight_samples_ends_slow_start() {
        for (rtt_ms, leaves) in [(112, false), (113, true)] {
            let (mut hystart, mut window) = (HyStart::new(), window(20));
            for n in 0..9 {
                assert_eq!(window.ssthresh, Window::INFINITE, "sample {n}");
                hystart.on_sample(
                    Duration::from_millis(rtt_ms),
                    RTT,
                    &ack(1000 + 3 * n),
                    &mut window,
                );
            }
            assert_eq!(window.ssthresh == 20, leaves, "{rtt_ms} ms");
        }
    }

    #[test]
    fn nothing_is_detected_below_16_segments() {
        let (mut hystart, mut window) = (HyStart::new(), window(15));
        for n in 0..100 {
            hystart.on_sample(Duration::from_millis(200), RTT, &ack(1000 + n), &mut window);
        }
        assert_eq!(window.ssthresh, Window::INFINITE);
    }
}
