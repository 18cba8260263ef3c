//! Westwood+ (Mascolo et al., "TCP Westwood: Bandwidth Estimation for Enhanced Transport over Wireless Links", MobiCom
//! 2001; Grieco and Mascolo, ACM CCR 34:2, 2004): on congestion the window becomes the estimated bandwidth times the
//! least RTT instead of a half.
//!
//! The filter and its times are Linux's. Linux reduces the window to a half during recovery and applies the estimate
//! at its end; here proportional rate reduction moves towards the estimate directly.

use sojourn_units::{Duration, Time};

use super::{AckEvent, CongestionControl, Signal, Window, reno};
use crate::seq::Seq;

/// The bandwidth is measured over a round trip, but at least over this time.
const SHORTEST: Duration = Duration::from_millis(50);

/// Bandwidths are segments per second, in 1024ths.
const SCALE: u128 = 1024;

/// Westwood's state.
pub struct Westwood {
    /// The bandwidth samples, filtered once and twice.
    filtered: u64,
    bandwidth: u64,
    /// The measurement under way.
    from: Option<Time>,
    delivered: u64,
    rtt: Duration,
    min_rtt: Option<Duration>,
}

impl Westwood {
    /// A Westwood without an estimate.
    pub const fn new() -> Self {
        Self {
            filtered: 0,
            bandwidth: 0,
            from: None,
            delivered: 0,
            rtt: Duration::ZERO,
            min_rtt: None,
        }
    }

    fn measure(&mut self, now: Time) {
        let from = *self.from.get_or_insert(now);
        let span = now.saturating_since(from);
        if self.rtt.is_zero() || span <= self.rtt.max(SHORTEST) {
            return;
        }
        let sample = (u128::from(self.delivered) * SCALE * 1_000_000_000
            / u128::from(span.as_nanos())) as u64;
        if self.bandwidth == 0 {
            self.filtered = sample;
            self.bandwidth = sample;
        } else {
            self.filtered = low_pass(self.filtered, sample);
            self.bandwidth = low_pass(self.bandwidth, self.filtered);
        }
        self.from = Some(now);
        self.delivered = 0;
    }

    /// The window that fills the path without a queue.
    fn fill(&self) -> u32 {
        let min_rtt = self.min_rtt.unwrap_or(Duration::ZERO);
        let segments = u128::from(self.bandwidth) * u128::from(min_rtt.as_nanos());
        (segments / (SCALE * 1_000_000_000)) as u32
    }
}

/// A low-pass filter: seven eighths of the old value, one eighth of the new.
const fn low_pass(old: u64, new: u64) -> u64 {
    (7 * old + new) >> 3
}

impl CongestionControl for Westwood {
    fn name(&self) -> &'static str {
        "westwood"
    }

    fn on_delivery(&mut self, ack: &AckEvent, _window: &mut Window) {
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt;
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        self.measure(ack.now);
        self.delivered += u64::from(ack.delivered);
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        reno::grow(ack, window);
    }

    /// ssthresh = BWE · RTTmin, never above the window.
    fn on_congestion(&mut self, _signal: Signal, window: &Window) -> u32 {
        self.fill().min(window.cwnd).max(2)
    }

    /// Discards the least RTT after a timeout, because the path may have changed.
    fn on_timeout(&mut self, _now: Time, _next: Seq) {
        self.min_rtt = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledge(westwood: &mut Westwood, at_ms: u64, delivered: u32, rtt_ms: u64) {
        let ack = AckEvent {
            now: Time::from_millis(at_ms),
            delivered,
            marks: 0,
            rtt: Some(Duration::from_millis(rtt_ms)),
            una: Seq(0),
            next: Seq(0),
        };
        westwood.on_delivery(&ack, &mut Window::new(10));
    }

    /// 10 segments every 100 ms are 100 per second; times 80 ms: 8, from a window of 20.
    #[test]
    fn a_loss_leaves_what_fills_the_path() {
        let mut westwood = Westwood::new();
        for n in 0..100 {
            acknowledge(&mut westwood, 100 * n, 10, 80);
        }
        assert_eq!(westwood.on_congestion(Signal::Loss, &Window::new(20)), 8);
        assert_eq!(westwood.on_congestion(Signal::Loss, &Window::new(5)), 5);
    }

    /// Each filter takes an eighth: from 800 to 1600 per second the first goes to 900, the second to 812.5.
    #[test]
    fn the_estimate_is_filtered_twice() {
        let mut westwood = Westwood::new();
        acknowledge(&mut westwood, 0, 80, 80);
        acknowledge(&mut westwood, 100, 160, 80);
        acknowledge(&mut westwood, 200, 1, 80);
        assert_eq!(u128::from(westwood.filtered), 900 * SCALE);
        assert_eq!(u128::from(westwood.bandwidth), 8125 * SCALE / 10);
    }

    /// Nothing is estimated within 50 ms, however short the RTT.
    #[test]
    fn a_short_path_is_measured_over_fifty_milliseconds() {
        let mut westwood = Westwood::new();
        acknowledge(&mut westwood, 0, 1, 1);
        acknowledge(&mut westwood, 50, 1, 1);
        assert_eq!(westwood.bandwidth, 0);
        acknowledge(&mut westwood, 51, 1, 1);
        assert!(westwood.bandwidth > 0);
    }
}
