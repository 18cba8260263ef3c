//! Reno: slow start and AIMD (RFC 5681 §3.1). With the sender's recovery it is NewReno (RFC 6582) or, with SACK,
//! Linux's reno. ABE (RFC 8511) is optional.

use super::backoff::{Backoff, Share};
use super::{AckEvent, CongestionControl, Signal, Window};
use crate::config::Config;

/// Half of the window on a loss (RFC 5681 equation 4).
pub(super) const BETA: Share = Share::new(1, 2);
/// RFC 8511 §3: 0.8 on a mark, with ABE.
pub(super) const BETA_ECN: Share = Share::new(4, 5);

/// Reno, which has no state beyond the window: only what it keeps of it.
pub struct Reno {
    backoff: Backoff,
}

impl Reno {
    /// A Reno with `beta` and `abe` of the endpoint's options.
    pub fn new(config: &Config) -> Self {
        Self {
            backoff: Backoff::new(config, BETA, BETA_ECN),
        }
    }
}

/// Slow start, then a segment per window. Shared by every congestion control that grows as Reno does.
pub(super) fn grow(ack: &AckEvent, window: &mut Window) {
    if !window.is_used() {
        return;
    }
    let mut acked = ack.delivered;
    if window.in_slow_start() {
        acked = window.slow_start(acked);
    }
    if acked > 0 {
        window.additive_increase(acked, window.cwnd);
    }
}

impl CongestionControl for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        grow(ack, window);
    }

    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32 {
        self.backoff.left(signal, window.cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Abe;
    use crate::seq::Seq;
    use sojourn_units::Time;

    fn plain() -> Reno {
        Reno::new(&Config::default())
    }

    fn ack(delivered: u32) -> AckEvent {
        AckEvent {
            now: Time::ZERO,
            delivered,
            acked: delivered,
            marks: 0,
            rtt: None,
            una: Seq(0),
            next: Seq(0),
        }
    }

    fn used(cwnd: u32, ssthresh: u32) -> Window {
        Window {
            ssthresh,
            limiting: true,
            ..Window::new(cwnd)
        }
    }

    /// RFC 5681 §3.1: the window doubles per window acknowledged.
    #[test]
    fn slow_start_grows_by_what_is_acknowledged() {
        let mut window = used(10, 100);
        plain().on_ack(&ack(2), &mut window);
        assert_eq!(window.cwnd, 12);
    }

    /// RFC 5681 §3.1 equation 3: one segment per round trip.
    #[test]
    fn congestion_avoidance_grows_by_one_per_window() {
        let mut window = used(20, 20);
        for _ in 0..10 {
            plain().on_ack(&ack(2), &mut window);
        }
        assert_eq!(window.cwnd, 21);
    }

    /// RFC 7661 §4: a window that is not used does not grow.
    #[test]
    fn an_unused_window_does_not_grow() {
        let mut window = Window {
            ssthresh: 20,
            ..Window::new(20)
        };
        for _ in 0..100 {
            plain().on_ack(&ack(2), &mut window);
        }
        assert_eq!(window.cwnd, 20);
    }

    /// RFC 5681 equation 4: half, and at least two; RFC 8511 §3: 0.8 on ECN.
    #[test]
    fn congestion_halves_and_abe_takes_a_fifth() {
        let window = used(50, 100);
        let left = |abe, signal| {
            let config = Config {
                abe,
                ..Config::default()
            };
            Reno::new(&config).on_congestion(signal, &window)
        };
        assert_eq!(left(Abe::Off, Signal::Loss), 25);
        assert_eq!(left(Abe::Off, Signal::EcnEcho), 25);
        assert_eq!(left(Abe::Recommended, Signal::EcnEcho), 40);
        assert_eq!(left(Abe::Recommended, Signal::Loss), 25);
        assert_eq!(plain().on_congestion(Signal::Loss, &used(3, 100)), 2);
    }
}
