//! NewReno with growth and decrease exactly as in RFC 5681, as in ns-3. It differs from [`super::Reno`], which follows
//! Linux, in three rules:
//!
//! - §3.1, equations 2 and 3: the window grows per acknowledgement, not per byte: by a segment in slow start and by
//!   1/cwnd of one afterwards. A receiver that acknowledges every second segment therefore halves the growth.
//! - The window grows whether or not the application uses it; window validation (RFC 2861, RFC 7661) came later.
//! - Equation 4: congestion halves the flight size, not the window.
//!
//! The sender provides loss recovery (proportional rate reduction and RACK with SACK, otherwise RFC 6582) and the
//! restart after idleness (§4.1), as for every congestion control. ns-2 halves the lesser of cwnd and the receive
//! window instead of the flight size. ABE (RFC 8511) is optional.

use super::backoff::Backoff;
use super::reno::{BETA, BETA_ECN};
use super::{AckEvent, Capabilities, CongestionControl, Signal, Window};
use crate::config::Config;

/// NewReno, which has no state beyond the window: only what it keeps of the flight size.
pub struct NewReno {
    backoff: Backoff,
}

impl NewReno {
    /// A NewReno with `beta` and `abe` of the endpoint's options.
    pub fn new(config: &Config) -> Self {
        Self {
            backoff: Backoff::new(config, BETA, BETA_ECN),
        }
    }
}

impl CongestionControl for NewReno {
    fn name(&self) -> &'static str {
        "newreno"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            keeps_unused: true,
            ..Capabilities::default()
        }
    }

    fn on_ack(&mut self, _: &AckEvent, window: &mut Window) {
        if window.in_slow_start() {
            window.slow_start(1);
        } else {
            window.additive_increase(1, window.cwnd);
        }
    }

    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32 {
        self.backoff.left(signal, window.flight_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Abe;
    use crate::seq::Seq;
    use sojourn_units::Time;

    fn ack_of_two() -> AckEvent {
        AckEvent {
            now: Time::ZERO,
            delivered: 2,
            acked: 2,
            marks: 0,
            rtt: None,
            una: Seq(0),
            next: Seq(0),
        }
    }

    fn after(acks: u32, mut window: Window) -> u32 {
        for _ in 0..acks {
            NewReno::new(&Config::default()).on_ack(&ack_of_two(), &mut window);
        }
        window.cwnd
    }

    /// RFC 5681 §3.1 equation 2: at most a segment per acknowledgement, whether or not the window is used.
    #[test]
    fn slow_start_grows_by_a_segment_per_acknowledgement() {
        assert_eq!(after(5, Window::new(10)), 15);
    }

    /// Equation 3, at 20 segments: each acknowledgement adds a twentieth of a segment, however much it acknowledges.
    #[test]
    fn congestion_avoidance_takes_a_window_of_acknowledgements() {
        let window = Window {
            ssthresh: 20,
            ..Window::new(20)
        };
        assert_eq!(after(19, window.clone()), 20);
        assert_eq!(after(20, window), 21);
    }

    /// Equation 4: half of what is in flight, at least two segments; RFC 8511 §3: 0.8 of it on ECN.
    #[test]
    fn congestion_halves_the_flight_size() {
        let flying = |segments| Window {
            flight_size: segments,
            ..Window::new(1000)
        };
        let left = |abe, signal, segments| {
            let config = Config {
                abe,
                ..Config::default()
            };
            NewReno::new(&config).on_congestion(signal, &flying(segments))
        };
        assert_eq!(left(Abe::Off, Signal::Loss, 50), 25);
        assert_eq!(left(Abe::Off, Signal::EcnEcho, 50), 25);
        assert_eq!(left(Abe::Recommended, Signal::EcnEcho, 50), 40);
        assert_eq!(left(Abe::Recommended, Signal::Loss, 50), 25);
        assert_eq!(left(Abe::Off, Signal::Timeout, 3), 2);
    }
}
