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

use super::{AckEvent, Capabilities, CongestionControl, Signal, Window, fraction};

/// NewReno's state: only whether ABE is on.
pub struct NewReno {
    abe: bool,
}

impl NewReno {
    /// A NewReno. `abe`: keep 0.8 of the flight size on an ECN echo (RFC 8511 §3) instead of a half.
    pub const fn new(abe: bool) -> Self {
        Self { abe }
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
        match signal {
            Signal::EcnEcho if self.abe => fraction(window.flight_size, 4, 5),
            _ => fraction(window.flight_size, 1, 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            NewReno::new(false).on_ack(&ack_of_two(), &mut window);
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
        let left = |abe, signal| NewReno::new(abe).on_congestion(signal, &flying(50));
        assert_eq!(left(false, Signal::Loss), 25);
        assert_eq!(left(false, Signal::EcnEcho), 25);
        assert_eq!(left(true, Signal::EcnEcho), 40);
        assert_eq!(left(true, Signal::Loss), 25);
        let few = NewReno::new(false).on_congestion(Signal::Timeout, &flying(3));
        assert_eq!(few, 2);
    }
}
