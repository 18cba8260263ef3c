//! DCTCP (RFC 8257): reduces the window by half the smoothed share of marked bytes. As in Linux, it counts in segments
//! and 1024ths. Losses halve the window (§3.5); otherwise it grows as Reno does. The receiver's exact echo (§3.2) is
//! in `receiver.rs`.
//!
//! All packets are ECN-capable, including the handshake, retransmissions and pure acknowledgements (as Linux; §3.4
//! leaves it open).

use super::{AckEvent, CongestionControl, Signal, Window, fraction, less, reno};
use crate::seq::Seq;

/// DCTCP.Alpha is in 1024ths; it begins at 1 (§4.2).
const ALPHA_ONE: u32 = 1024;
/// g = 1/16 (§4.2).
const GAIN_SHIFT: u32 = 4;

/// DCTCP's state.
pub struct Dctcp {
    /// DCTCP.Alpha: the smoothed share of marked segments.
    alpha: u32,
    /// DCTCP.WindowEnd; `None` before the first acknowledgement, which ends a window of its own (§3.3: WindowEnd begins
    /// at SND.UNA).
    window_end: Option<Seq>,
    /// Segments acknowledged in this observation window, and those of them acknowledged with ECE.
    acked: u32,
    marked: u32,
}

impl Dctcp {
    /// A DCTCP that treats the first mark as full congestion.
    pub const fn new() -> Self {
        Self {
            alpha: ALPHA_ONE,
            window_end: None,
            acked: 0,
            marked: 0,
        }
    }

    /// §3.3 steps 5 to 8: Alpha = Alpha · (1 − g) + g · M. Below 1/64 the integer decay would stop, so Alpha becomes
    /// zero.
    fn update_alpha(&mut self) {
        let decay = self.alpha >> GAIN_SHIFT;
        self.alpha -= if decay == 0 { self.alpha } else { decay };
        if self.marked > 0 {
            let share =
                (u64::from(self.marked) << (10 - GAIN_SHIFT)) / u64::from(self.acked.max(1));
            self.alpha = (self.alpha + share as u32).min(ALPHA_ONE);
        }
        self.acked = 0;
        self.marked = 0;
    }
}

impl CongestionControl for Dctcp {
    fn name(&self) -> &'static str {
        "dctcp"
    }

    /// §3.3: an acknowledgement that ends an observation window belongs to it (steps 1 to 4), and Alpha is updated
    /// before it reduces the window. Linux does so since 6.16; before, it counted for the next observation window.
    fn on_delivery(&mut self, ack: &AckEvent, _window: &mut Window) {
        self.acked += ack.delivered;
        self.marked += ack.marks;
        if self.window_end.is_none_or(|end| !ack.una.before(end)) {
            self.update_alpha();
            self.window_end = Some(ack.next);
        }
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        reno::grow(ack, window);
    }

    /// §3.3 step 9: cwnd · (1 − Alpha / 2), with the reduction rounded down to whole segments.
    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32 {
        match signal {
            Signal::EcnEcho => less(window.cwnd, self.alpha, 2 * ALPHA_ONE),
            Signal::Loss | Signal::Timeout => fraction(window.cwnd, 1, 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::{Duration, Time};

    /// A window of 100 segments of which the first `marked` are echoed; the last acknowledgement ends it.
    fn observe(dctcp: &mut Dctcp, round: u32, marked: u32) {
        let mut window = Window::new(100);
        for n in 0..100 {
            let ack = AckEvent {
                now: Time::ZERO,
                delivered: 1,
                acked: 1,
                marks: u32::from(n < marked),
                rtt: Some(Duration::from_millis(1)),
                una: Seq(100 * round + n + 1),
                next: Seq(100 * round + n + 101),
            };
            dctcp.on_delivery(&ack, &mut window);
        }
    }

    /// RFC 8257 §3.3 step 9 with Alpha = 1.
    #[test]
    fn full_marking_halves_the_window() {
        assert_eq!(
            Dctcp::new().on_congestion(Signal::EcnEcho, &Window::new(100)),
            50
        );
    }

    /// A quarter marked, from Alpha = 1: 1 · 15/16 + 1/4 · 1/16 = 0.953; in 1024ths 960 + 16.
    #[test]
    fn alpha_moves_a_sixteenth_towards_the_marked_share() {
        let mut dctcp = Dctcp::new();
        observe(&mut dctcp, 0, 25);
        observe(&mut dctcp, 1, 25);
        assert_eq!(dctcp.alpha, 976);
    }

    /// RFC 8257 §3.3 counts before it updates: half of 100 segments, all reported at the end, were marked; 1024 ·
    /// 15/16 + 1024 / 2 / 16.
    #[test]
    fn the_acknowledgement_that_ends_a_window_belongs_to_it() {
        let mut dctcp = Dctcp::new();
        let ack = |delivered, marks, una| AckEvent {
            now: Time::ZERO,
            delivered,
            acked: delivered,
            marks,
            rtt: None,
            una: Seq(una),
            next: Seq(101),
        };
        dctcp.on_delivery(&ack(100, 50, 101), &mut Window::new(100));
        assert_eq!(dctcp.alpha, 992);
    }

    /// In the long run Alpha is the share itself: 10 % marked reduce the window by 5 %.
    #[test]
    fn steady_marking_takes_half_of_its_share() {
        let mut dctcp = Dctcp::new();
        for round in 0..200 {
            observe(&mut dctcp, round, 10);
        }
        let window = dctcp.on_congestion(Signal::EcnEcho, &Window::new(1000));
        assert!((945..=956).contains(&window), "{window}");
    }

    /// 8 segments with Alpha = 0.2: the reduction would be 0.8 segments.
    #[test]
    fn a_small_window_with_few_marks_stays_as_it_is() {
        let mut dctcp = Dctcp::new();
        dctcp.alpha = ALPHA_ONE / 5;
        assert_eq!(dctcp.on_congestion(Signal::EcnEcho, &Window::new(8)), 8);
        assert_eq!(dctcp.on_congestion(Signal::EcnEcho, &Window::new(11)), 10);
    }

    #[test]
    fn a_loss_halves_the_window_whatever_alpha_is() {
        let mut dctcp = Dctcp::new();
        dctcp.alpha = 0;
        assert_eq!(dctcp.on_congestion(Signal::EcnEcho, &Window::new(100)), 100);
        assert_eq!(dctcp.on_congestion(Signal::Loss, &Window::new(100)), 50); // §3.5
    }
}
