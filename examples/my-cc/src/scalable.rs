//! Scalable TCP (Kelly 2003): grows by 0.01 segments per segment acknowledged, gives up an eighth of its window.
//!
//! A departure: below 100 segments it grows as Reno does, which is faster there; Kelly has 16.

use sojourn_tcp::cc::{AckEvent, Algorithm, CongestionControl, Signal, Window};

/// Segments acknowledged per segment of growth: 1 / 0.01.
const PER_SEGMENT: u32 = 100;

struct Scalable;

impl CongestionControl for Scalable {
    fn name(&self) -> &'static str {
        "scalable"
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        if !window.is_used() {
            return;
        }
        let mut acked = ack.delivered;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
        }
        window.additive_increase(acked, window.cwnd.min(PER_SEGMENT));
    }

    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32 {
        let left = match signal {
            Signal::Loss | Signal::EcnEcho => window.cwnd - window.cwnd / 8,
            Signal::Timeout => window.cwnd / 2,
        };
        left.max(2)
    }
}

/// `scalable`, to be added to a catalogue.
pub fn scalable() -> Algorithm {
    Algorithm::new("scalable", "grows by a share of its window", "Kelly 2003", |_| Box::new(Scalable))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(cwnd: u32) -> Window {
        let mut window = Window::new(cwnd);
        (window.ssthresh, window.limiting) = (2, true);
        window
    }

    /// 7/8 of 800 segments.
    #[test]
    fn a_loss_costs_an_eighth() {
        assert_eq!(Scalable.on_congestion(Signal::Loss, &window(800)), 700);
        assert_eq!(Scalable.on_congestion(Signal::Loss, &window(2)), 2);
    }

    /// ln(8/7) / ln(1.01) is 13.4: the window is back after 14 round trips, whether it was 800 segments or 8000.
    #[test]
    fn it_recovers_in_fourteen_round_trips_at_any_window() {
        for before in [800, 8000] {
            let mut window = window(Scalable.on_congestion(Signal::Loss, &window(before)));
            let mut rounds = 0;
            while window.cwnd < before {
                window.additive_increase(window.cwnd, window.cwnd.min(PER_SEGMENT));
                rounds += 1;
            }
            assert_eq!(rounds, 14, "{before}");
        }
    }
}
