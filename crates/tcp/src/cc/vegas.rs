//! Vegas (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC 13:8,
//! 1995), as in Linux: once per round trip it adjusts the window so that between alpha and beta segments are queued.
//!
//! Departures from the paper, as in Linux: slow start grows on every acknowledgement; the round's least RTT is
//! compared; after a loss Reno applies until recovery is over; there are no fine-grained timeouts.

use sojourn_units::{Duration, Time};

use super::{
    AckEvent, Capabilities, CongestionControl, RecoveryPhase, Sample, Signal, Window, fraction,
    reno,
};
use crate::seq::Seq;

/// Segments to keep queued: the minimum and the maximum; and the number that ends slow start.
const ALPHA: u64 = 2;
const BETA: u64 = 4;
const GAMMA: u64 = 1;
/// A round with no more RTT samples than this grows as Reno: two may both be delayed acknowledgements.
const FEW_SAMPLES: u32 = 2;

/// Vegas's state.
pub struct Vegas {
    base_rtt: Option<Duration>,
    /// The round under way: `None` while Reno applies.
    round: Option<Round>,
    repairing: bool,
}

struct Round {
    end: Seq,
    samples: u32,
    least: Duration,
}

impl Vegas {
    /// A Vegas without samples.
    pub const fn new() -> Self {
        Self {
            base_rtt: None,
            round: None,
            repairing: false,
        }
    }

    fn begin_round(&mut self, next: Seq) {
        self.round = Some(Round {
            end: next,
            samples: 0,
            least: Duration::MAX,
        });
    }

    /// Adjusts the window at the end of a round whose least RTT was `least`.
    fn judge(&self, least: Duration, ack: &AckEvent, window: &mut Window) {
        let base = self.base_rtt.unwrap_or(least).as_nanos().max(1);
        let cwnd = u64::from(window.cwnd);
        let queued =
            (u128::from(cwnd) * u128::from(least.as_nanos() - base) / u128::from(base)) as u64;
        if window.in_slow_start() {
            if queued > GAMMA {
                // Reduce to the segments that fill the path, plus one.
                let fill = (u128::from(cwnd) * u128::from(base)
                    / u128::from(least.as_nanos().max(1))) as u32;
                window.cwnd = window.cwnd.min(fill + 1);
                lower_threshold(window);
            } else {
                window.slow_start(ack.delivered);
            }
        } else if queued > BETA {
            window.cwnd -= 1;
            lower_threshold(window);
        } else if queued < ALPHA {
            window.cwnd += 1;
        }
        window.cwnd = window.cwnd.max(2);
    }
}

/// Lowers the threshold so that slow start is not entered again.
fn lower_threshold(window: &mut Window) {
    window.ssthresh = window.ssthresh.min(window.cwnd.saturating_sub(1)).max(2);
}

impl CongestionControl for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            samples: true,
            ..Capabilities::default()
        }
    }

    /// Every sample counts, also one of an exchange before the data, when the flow has no queue of its own yet.
    fn on_delivery(&mut self, ack: &AckEvent, _window: &mut Window) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
        }
    }

    fn on_sample(&mut self, ack: &AckEvent, sample: &Sample, _window: &mut Window) {
        self.repairing = sample.phase != RecoveryPhase::None;
        let Some(rtt) = ack.rtt else { return };
        if let Some(round) = &mut self.round {
            round.least = round.least.min(rtt);
            round.samples += 1;
        }
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        if self.repairing {
            self.round = None;
            reno::grow(ack, window);
            return;
        }
        match &self.round {
            Some(round) if ack.una.after(round.end) => {
                if round.samples <= FEW_SAMPLES {
                    reno::grow(ack, window);
                } else {
                    self.judge(round.least, ack, window);
                }
                self.begin_round(ack.next);
            }
            Some(_) if window.in_slow_start() => {
                window.slow_start(ack.delivered);
            }
            Some(_) => {}
            None => {
                self.begin_round(ack.next);
                reno::grow(ack, window);
            }
        }
    }

    fn on_congestion(&mut self, _signal: Signal, window: &Window) -> u32 {
        self.round = None;
        fraction(window.cwnd, 1, 2)
    }

    /// Starts again after an idle time, because the path may have changed.
    fn on_restart(&mut self, _idle: Duration, _now: Time) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round at `cwnd` with an RTT of `least_ms` over a path of 100 ms; the window after it.
    fn after_round(cwnd: u32, ssthresh: u32, least_ms: u64) -> Window {
        let vegas = Vegas {
            base_rtt: Some(Duration::from_millis(100)),
            ..Vegas::new()
        };
        let mut window = Window {
            ssthresh,
            limiting: true,
            ..Window::new(cwnd)
        };
        let ack = AckEvent {
            now: Time::ZERO,
            delivered: 1,
            acked: 1,
            marks: 0,
            rtt: None,
            una: Seq(1),
            next: Seq(2),
        };
        vegas.judge(Duration::from_millis(least_ms), &ack, &mut window);
        window
    }

    /// 20 segments, diff = 20 · (RTT − 100)/100: 105 ms queue 1, 115 ms 3, 130 ms 6.
    #[test]
    fn between_alpha_and_beta_segments_are_kept_queued() {
        assert_eq!(after_round(20, 10, 105).cwnd, 21);
        assert_eq!(after_round(20, 10, 115).cwnd, 20);
        assert_eq!(after_round(20, 10, 130).cwnd, 19);
    }

    /// 20 · 0.1 = 2 > gamma: down to 20 · 100/110 = 18, plus one; slow start is over.
    #[test]
    fn a_queue_of_more_than_gamma_ends_slow_start() {
        let window = after_round(20, Window::INFINITE, 110);
        assert_eq!((window.cwnd, window.ssthresh), (19, 18));
        assert!(!window.in_slow_start());
    }

    #[test]
    fn a_round_with_few_samples_grows_as_reno() {
        let mut vegas = Vegas::new();
        let mut window = Window {
            ssthresh: 10,
            limiting: true,
            ..Window::new(10)
        };
        vegas.begin_round(Seq(0));
        let ack = AckEvent {
            now: Time::ZERO,
            delivered: 10,
            acked: 10,
            marks: 0,
            rtt: Some(Duration::from_millis(100)),
            una: Seq(1),
            next: Seq(2),
        };
        vegas.on_sample(&ack, &Sample::default(), &mut window);
        vegas.on_ack(&ack, &mut window);
        assert_eq!(window.cwnd, 11); // a window acknowledged: one more
    }
    #[test]
    fn the_exchange_before_the_data_gives_the_least_rtt() {
        let mut vegas = Vegas::new();
        for rtt_ms in [50, 80] {
            let ack = AckEvent {
                now: Time::ZERO,
                delivered: 1,
                acked: 1,
                marks: 0,
                rtt: Some(Duration::from_millis(rtt_ms)),
                una: Seq(1),
                next: Seq(1),
            };
            vegas.on_delivery(&ack, &mut Window::new(10));
        }
        assert_eq!(vegas.base_rtt, Some(Duration::from_millis(50)));
    }
}
