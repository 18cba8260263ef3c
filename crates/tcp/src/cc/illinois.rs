//! Illinois (Liu, Basar and Srikant, "TCP-Illinois: A Loss and Delay-Based Congestion Control Algorithm for High-Speed
//! Networks", Performance Evaluation 65, 2008): losses decide when to back off; the average queueing delay decides by
//! how much, and how fast to grow again.
//!
//! d_m is the largest delay seen, d_a the last round's average. alpha falls hyperbolically from 10 at d_a ≤ d_m/100 to
//! 0.3 at d_m; beta rises linearly from 1/8 at d_m/10 to 1/2 at 8·d_m/10. The fixed-point format and the wait of five
//! rounds before alpha returns to 10 are Linux's.

use sojourn_units::{Duration, Time};

use super::{AckEvent, CongestionControl, Signal, Window, less};
use crate::seq::Seq;

/// alpha is in 128ths of a segment per round, beta in 64ths of the window.
const ALPHA_ONE: u64 = 128;
const ALPHA_MIN: u64 = 3 * ALPHA_ONE / 10;
const ALPHA_MAX: u64 = 10 * ALPHA_ONE;
const BETA_ONE: u64 = 64;
const BETA_MIN: u64 = BETA_ONE / 8;
const BETA_MAX: u64 = BETA_ONE / 2;
/// Below this window it behaves as Reno (W_thresh).
const SMALL_WINDOW: u32 = 15;
/// Rounds of low delay before alpha returns to its maximum (theta).
const PATIENCE: u32 = 5;

/// Illinois's state.
pub struct Illinois {
    alpha: u64,
    beta: u64,
    base_rtt: Duration,
    max_rtt: Duration,
    /// The round under way: its end (`None` before the first), RTT samples and their sum in microseconds.
    round_end: Option<Seq>,
    samples: u64,
    sum_micros: u64,
    /// Whether the delay has been above d_1, and for how many rounds it has been below since.
    was_above: bool,
    rounds_below: u32,
    /// Segments acknowledged towards the next increase.
    acked: u64,
}

impl Illinois {
    /// An Illinois without samples: alpha 10, beta 1/2.
    pub const fn new() -> Self {
        Self {
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            base_rtt: Duration::MAX,
            max_rtt: Duration::ZERO,
            round_end: None,
            samples: 0,
            sum_micros: 0,
            was_above: false,
            rounds_below: 0,
            acked: 0,
        }
    }

    fn end_round(&mut self, cwnd: u32, next: Seq) {
        if cwnd < SMALL_WINDOW {
            self.alpha = ALPHA_ONE;
            self.beta = BETA_MAX;
        } else if let Some(average) = self.sum_micros.checked_div(self.samples) {
            let largest = self.max_rtt.saturating_sub(self.base_rtt).as_micros();
            let average = average.saturating_sub(self.base_rtt.as_micros());
            self.alpha = self.alpha_at(average, largest);
            self.beta = beta_at(average, largest);
        }
        self.begin_round(next);
    }

    fn begin_round(&mut self, next: Seq) {
        self.round_end = Some(next);
        self.samples = 0;
        self.sum_micros = 0;
    }

    /// Equation 4 of the paper, f_1.
    fn alpha_at(&mut self, average: u64, largest: u64) -> u64 {
        let d1 = largest / 100;
        if average <= d1 {
            if !self.was_above {
                return ALPHA_MAX;
            }
            self.rounds_below += 1;
            if self.rounds_below < PATIENCE {
                return self.alpha;
            }
            self.rounds_below = 0;
            self.was_above = false;
            return ALPHA_MAX;
        }
        self.was_above = true;
        let (average, largest) = (average - d1, largest - d1);
        largest * ALPHA_MAX / (largest + average * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN)
    }
}

/// Equation 4 of the paper, f_2.
const fn beta_at(average: u64, largest: u64) -> u64 {
    let (d2, d3) = (largest / 10, 8 * largest / 10);
    if average <= d2 {
        BETA_MIN
    } else if average >= d3 || d3 <= d2 {
        BETA_MAX
    } else {
        (BETA_MIN * (d3 - average) + BETA_MAX * (average - d2)) / (d3 - d2)
    }
}

impl CongestionControl for Illinois {
    fn name(&self) -> &'static str {
        "illinois"
    }

    fn on_delivery(&mut self, ack: &AckEvent, _window: &mut Window) {
        let Some(rtt) = ack.rtt else { return };
        self.base_rtt = self.base_rtt.min(rtt);
        self.max_rtt = self.max_rtt.max(rtt);
        self.samples += 1;
        self.sum_micros += rtt.as_micros();
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        match self.round_end {
            None => self.begin_round(ack.next),
            Some(end) if ack.una.after(end) => self.end_round(window.cwnd, ack.next),
            Some(_) => {}
        }
        if !window.is_used() {
            return;
        }
        if window.in_slow_start() {
            window.slow_start(ack.delivered);
            return;
        }
        // As in Linux, the acknowledgement that ends a recovery also counts the segments that SACKs reported before.
        self.acked += u64::from(ack.acked);
        let segments = self.acked * self.alpha / ALPHA_ONE;
        if segments >= u64::from(window.cwnd) {
            window.cwnd += (segments / u64::from(window.cwnd)) as u32;
            self.acked = 0;
        }
    }

    fn on_congestion(&mut self, _signal: Signal, window: &Window) -> u32 {
        self.acked = 0;
        less(window.cwnd, self.beta as u32, BETA_ONE as u32)
    }

    fn on_timeout(&mut self, _now: Time, next: Seq) {
        self.alpha = ALPHA_ONE;
        self.beta = BETA_MAX;
        self.was_above = false;
        self.rounds_below = 0;
        self.acked = 0;
        self.begin_round(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// d_m = 10 100 µs, d_1 = 101. At the full remaining 9 999 µs: 1280 / (1 + 1242/38) = 38; at none: 1280.
    #[test]
    fn alpha_falls_from_ten_to_three_tenths_with_the_delay() {
        let mut illinois = Illinois::new();
        assert_eq!(illinois.alpha_at(101, 10_100), ALPHA_MAX);
        let largest = illinois.alpha_at(10_100, 10_100);
        assert!((37..=39).contains(&largest), "{largest}"); // 0.3 · 128 = 38.4
        // Half of it: 9 999 · 1280 / (9 999 + 4 999 · 32.7) = 74, 0.58 segments.
        let half = illinois.alpha_at(5_100, 10_100);
        assert!((73..=76).contains(&half), "{half}");
    }

    /// d_2 = 1 000, d_3 = 8 000; half way between: (1/8 + 1/2)/2 = 20/64.
    #[test]
    fn beta_rises_from_an_eighth_to_a_half_with_the_delay() {
        assert_eq!(beta_at(1_000, 10_000), 8);
        assert_eq!(beta_at(4_500, 10_000), 20);
        assert_eq!(beta_at(8_000, 10_000), 32);
    }

    #[test]
    fn alpha_returns_to_its_maximum_after_five_calm_rounds() {
        let mut illinois = Illinois::new();
        illinois.alpha = illinois.alpha_at(10_000, 10_000);
        for round in 1..=4 {
            assert!(illinois.alpha_at(0, 10_000) < ALPHA_MAX, "round {round}");
        }
        assert_eq!(illinois.alpha_at(0, 10_000), ALPHA_MAX);
    }

    /// Wherever the sequence numbers begin: rounds of 20 segments with delays of 0 and 100 ms alternating; the second
    /// round has an average of 50 of 100 ms.
    #[test]
    fn rounds_are_judged_across_the_wrap() {
        for first in [0, u32::MAX / 2 + 10, u32::MAX - 30] {
            let mut illinois = Illinois::new();
            let mut window = Window::new(20);
            for n in 0..60 {
                let ack = AckEvent {
                    now: Time::ZERO,
                    delivered: 1,
                    acked: 1,
                    marks: 0,
                    rtt: Some(Duration::from_millis(100 + 100 * u64::from(n % 2))),
                    una: Seq(first) + n,
                    next: Seq(first) + (n + 20),
                };
                illinois.on_delivery(&ack, &mut window);
                illinois.on_ack(&ack, &mut window);
            }
            // (8 · 30 + 32 · 40) / 70 = 21.7; a round of 21 samples has one more of either delay.
            let beta = illinois.beta;
            assert!((20..=23).contains(&beta), "{beta} from {first}");
        }
    }

    /// Ten segments per round: 10 of 100 acknowledged make one.
    #[test]
    fn without_delay_the_window_grows_by_ten_a_round() {
        let mut illinois = Illinois::new();
        let mut window = Window {
            ssthresh: 100,
            limiting: true,
            ..Window::new(100)
        };
        let ack = AckEvent {
            now: Time::ZERO,
            delivered: 1,
            acked: 1,
            marks: 0,
            rtt: None,
            una: Seq(0),
            next: Seq(0),
        };
        for _ in 0..100 {
            illinois.on_ack(&ack, &mut window);
        }
        assert_eq!(window.cwnd, 109); // the last steps take eleven: the window has grown meanwhile
        assert_eq!(illinois.on_congestion(Signal::Loss, &Window::new(100)), 50);
    }

    /// tcp_illinois_cong_avoid and tcp_init_cwnd_reduction: with alpha 1, a window of 20 grows after 20 segments are
    /// acknowledged, though only one is newly delivered. A loss discards what was counted.
    #[test]
    fn segments_reported_by_sacks_count_and_a_loss_begins_anew() {
        let mut illinois = Illinois::new();
        illinois.alpha = ALPHA_ONE;
        illinois.round_end = Some(Seq(1000));
        let mut window = Window {
            ssthresh: 10,
            limiting: true,
            ..Window::new(20)
        };
        let ack = |acked| AckEvent {
            now: Time::ZERO,
            delivered: 1,
            acked,
            marks: 0,
            rtt: None,
            una: Seq(0),
            next: Seq(0),
        };
        illinois.on_ack(&ack(19), &mut window);
        illinois.on_congestion(Signal::Loss, &window);
        illinois.on_ack(&ack(19), &mut window);
        assert_eq!(window.cwnd, 20);
        illinois.on_ack(&ack(1), &mut window);
        assert_eq!(window.cwnd, 21);
    }
}
