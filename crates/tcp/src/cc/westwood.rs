//! Westwood+ (Mascolo et al., "TCP Westwood: Bandwidth Estimation for Enhanced Transport over Wireless Links", MobiCom
//! 2001; Grieco and Mascolo, ACM CCR 34:2, 2004): on congestion the window becomes the estimated bandwidth times the
//! least RTT instead of a half.
//!
//! The filter and its times are Linux's at 250 Hz: times are counted in ticks of 4 ms, and an RTT is rounded up to a
//! tick. On a short path that leaves up to one tick's worth of queue. As in Linux, recovery aims at half of the window,
//! and the estimate replaces the window when recovery ends.

use sojourn_units::{Duration, Time};

use super::{AckEvent, CongestionControl, Signal, Window, fraction, reno};

/// Length of a tick.
const TICK: Duration = Duration::from_millis(4);

/// The bandwidth is measured over a round trip, but at least over this many ticks: a twentieth of 250.
const SHORTEST: u64 = 12;

/// Bandwidths are in segments per tick, times this.
const SCALE: u64 = 1 << 20;

/// Westwood's state. Times are in ticks.
pub struct Westwood {
    /// The bandwidth samples, filtered once and twice.
    filtered: u64,
    bandwidth: u64,
    /// The measurement under way.
    from: Option<u64>,
    delivered: u64,
    rtt: u64,
    min_rtt: Option<u64>,
}

impl Westwood {
    /// A Westwood without an estimate.
    pub const fn new() -> Self {
        Self {
            filtered: 0,
            bandwidth: 0,
            from: None,
            delivered: 0,
            rtt: 0,
            min_rtt: None,
        }
    }

    fn measure(&mut self, now: Time) {
        let now = now.as_nanos() / TICK.as_nanos();
        let span = now - *self.from.get_or_insert(now);
        if self.rtt == 0 || span <= self.rtt.max(SHORTEST) {
            return;
        }
        let sample = self.delivered * SCALE / span;
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

    /// BWE · RTTmin: the window that fills the path without a queue.
    fn fill(&self) -> u32 {
        let segments = self.bandwidth.saturating_mul(self.min_rtt.unwrap_or(0)) / SCALE;
        u32::try_from(segments)
            .unwrap_or(Window::INFINITE)
            .clamp(2, Window::INFINITE)
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
            self.rtt = rtt.as_nanos().div_ceil(TICK.as_nanos());
            self.min_rtt = Some(self.min_rtt.map_or(self.rtt, |least| least.min(self.rtt)));
        }
        self.measure(ack.now);
        self.delivered += u64::from(ack.delivered);
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        reno::grow(ack, window);
    }

    /// After a timeout, ssthresh = BWE · RTTmin; the least RTT is then discarded, because the path may have changed.
    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32 {
        match signal {
            Signal::Timeout => {
                let fill = self.fill();
                self.min_rtt = None;
                fill
            }
            Signal::Loss | Signal::EcnEcho => fraction(window.cwnd, 1, 2),
        }
    }

    /// ssthresh = cwnd = BWE · RTTmin.
    fn on_recovered(&mut self, window: &mut Window) {
        window.ssthresh = self.fill();
        window.cwnd = window.ssthresh;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::Seq;

    fn acknowledge(westwood: &mut Westwood, at_ms: u64, delivered: u32, rtt_ms: u64) {
        let ack = AckEvent {
            now: Time::from_millis(at_ms),
            delivered,
            acked: delivered,
            marks: 0,
            rtt: Some(Duration::from_millis(rtt_ms)),
            una: Seq(0),
            next: Seq(0),
        };
        westwood.on_delivery(&ack, &mut Window::new(10));
    }

    /// 10 segments every 100 ms are 100 per second; times 84 ms: 8.4, whatever the window was.
    #[test]
    fn recovery_ends_with_the_window_that_fills_the_path() {
        let mut westwood = Westwood::new();
        for n in 0..100 {
            acknowledge(&mut westwood, 100 * n, 10, 84);
        }
        assert_eq!(westwood.on_congestion(Signal::Loss, &Window::new(20)), 10);
        let mut window = Window::new(10);
        westwood.on_recovered(&mut window);
        assert_eq!((window.cwnd, window.ssthresh), (8, 8));
        assert_eq!(westwood.on_congestion(Signal::Timeout, &Window::new(5)), 8);
    }

    /// 5 ticks of 4 ms are 20 ms; a round trip of 20.1 ms counts as 6.
    #[test]
    fn round_trip_times_are_rounded_up_to_a_tick() {
        let rate_times_rtt = |rtt_us: u64| {
            let mut westwood = Westwood::new();
            for n in 0..100 {
                let ack = AckEvent {
                    now: Time::from_millis(100 * n),
                    delivered: 100,
                    acked: 100,
                    marks: 0,
                    rtt: Some(Duration::from_micros(rtt_us)),
                    una: Seq(0),
                    next: Seq(0),
                };
                westwood.on_delivery(&ack, &mut Window::new(10));
            }
            westwood.fill()
        };
        assert_eq!(rate_times_rtt(20_000), 20);
        assert_eq!(rate_times_rtt(20_100), 24);
    }

    /// Each filter takes an eighth: from 800 to 1600 per second the first goes to 900, the second to 812.5.
    #[test]
    fn the_estimate_is_filtered_twice() {
        let mut westwood = Westwood::new();
        acknowledge(&mut westwood, 0, 80, 80);
        acknowledge(&mut westwood, 100, 160, 80);
        acknowledge(&mut westwood, 200, 1, 80);
        let per_second = |parts: u64| (parts * 250) as f64 / SCALE as f64;
        assert!((per_second(westwood.filtered) - 900.0).abs() < 0.01);
        assert!((per_second(westwood.bandwidth) - 812.5).abs() < 0.01);
    }

    /// Nothing is estimated within 12 ticks, however short the RTT.
    #[test]
    fn a_short_path_is_measured_over_twelve_ticks() {
        let mut westwood = Westwood::new();
        acknowledge(&mut westwood, 0, 1, 1);
        acknowledge(&mut westwood, 51, 1, 1);
        assert_eq!(westwood.bandwidth, 0);
        acknowledge(&mut westwood, 52, 1, 1);
        assert!(westwood.bandwidth > 0);
    }
}
