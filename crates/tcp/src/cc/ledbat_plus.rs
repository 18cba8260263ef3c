//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus-01). It differs from LEDBAT in using round-trip times, which need no
//! clock; growing more slowly than Reno; decreasing multiplicatively beyond the target; and making slowdowns to
//! measure the path's own delay, so that later flows do not mistake the queue of earlier ones for the path (the
//! latecomer's advantage).

use sojourn_units::{Duration, Time};

use super::{
    AckEvent, Capabilities, CongestionControl, RecoveryPhase, Sample, Signal, Window, fraction,
};

/// §4.2: 60 ms.
const TARGET: Duration = Duration::from_millis(60);
/// §4.2: GAIN = 1 / min(16, ceil(2 · TARGET / base)).
const SLOWEST: u64 = 16;
/// §4.3: slow start ends at three quarters of the target.
const SLOW_START_EXIT: (u64, u64) = (3, 4);
/// §4.4: the window during a slowdown, which lasts two round trips. The first slowdown comes two round trips after
/// slow start, each further one after nine times the duration of the last.
const SLOW_WINDOW: u32 = 2;
const SLOW_ROUNDS: u64 = 2;
const BETWEEN: u64 = 9;
/// Samples whose minimum is the current RTT, and how long a base RTT is kept.
const CURRENT_FILTER: usize = 4;
const HISTORY: Duration = Duration::from_secs(600);
/// Growth is accumulated in these fractions of a segment.
const FRACTION: i64 = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Slow start. After a slowdown, `began` is when the slowdown began.
    SlowStart { began: Option<Time> },
    /// The delay governs the window; the next slowdown begins at `slowdown_at`.
    Avoidance { slowdown_at: Time },
    /// A window of two segments until `until`; the slowdown began at `began`.
    Slowdown { began: Time, until: Time },
}

/// LEDBAT++'s state.
pub struct LedbatPlus {
    phase: Phase,
    base: Option<(Duration, Time)>,
    current: [Duration; CURRENT_FILTER],
    samples: usize,
    growth: i64,
    repairing: bool,
}

impl LedbatPlus {
    /// A LEDBAT++ in its first slow start.
    pub const fn new() -> Self {
        Self {
            phase: Phase::SlowStart { began: None },
            base: None,
            current: [Duration::MAX; CURRENT_FILTER],
            samples: 0,
            growth: 0,
            repairing: false,
        }
    }

    fn take_rtt(&mut self, rtt: Duration, now: Time) {
        let stale = |at: Time| now.saturating_since(at) > HISTORY;
        if self.base.is_none_or(|(least, at)| rtt < least || stale(at)) {
            self.base = Some((rtt, now));
        }
        self.current[self.samples % CURRENT_FILTER] = rtt;
        self.samples += 1;
    }

    fn base_rtt(&self) -> Duration {
        self.base.map_or(TARGET, |(least, _)| least)
    }

    /// The queueing delay; zero before the first sample.
    fn queueing_delay(&self) -> Duration {
        match (self.base, self.current.into_iter().take(self.samples).min()) {
            (Some((least, _)), Some(current)) => current.saturating_sub(least),
            _ => Duration::ZERO,
        }
    }

    /// 1/GAIN (§4.2).
    fn inverse_gain(&self) -> u64 {
        let base = self.base_rtt().as_nanos().max(1);
        (2 * TARGET.as_nanos()).div_ceil(base).min(SLOWEST)
    }

    fn add(&mut self, growth: i64, window: &mut Window) {
        self.growth += growth;
        let segments = self.growth.div_euclid(FRACTION);
        self.growth -= segments * FRACTION;
        let grown = i64::from(window.cwnd) + segments;
        window.cwnd = grown.clamp(i64::from(SLOW_WINDOW), i64::from(u32::MAX)) as u32;
    }

    /// §4.2, per segment acknowledged: (GAIN − W · max(delay/TARGET − 1, 0)) / W, with the numerator at least −W/2.
    fn adjust(&mut self, acked: u32, window: &mut Window) {
        let cwnd = i64::from(window.cwnd);
        let over = self.queueing_delay().saturating_sub(TARGET);
        let excess = (over.as_micros() * FRACTION as u64 / TARGET.as_micros()) as i64;
        let per_round = FRACTION / self.inverse_gain() as i64 - cwnd * excess;
        let per_round = per_round.max(-cwnd * FRACTION / 2);
        self.add(per_round * i64::from(acked) / cwnd, window);
    }

    fn end_slow_start(&mut self, now: Time) {
        let rtt = self.base_rtt();
        let wait = match self.phase {
            Phase::SlowStart { began: Some(began) } => (now - began) * BETWEEN,
            _ => rtt * SLOW_ROUNDS,
        };
        self.phase = Phase::Avoidance {
            slowdown_at: now + wait,
        };
    }

    fn begin_slowdown(&mut self, now: Time, rtt: Duration, window: &mut Window) {
        window.ssthresh = window.cwnd.max(SLOW_WINDOW);
        window.cwnd = SLOW_WINDOW;
        self.growth = 0;
        self.phase = Phase::Slowdown {
            began: now,
            until: now + rtt * SLOW_ROUNDS,
        };
    }
}

impl CongestionControl for LedbatPlus {
    fn name(&self) -> &'static str {
        "ledbat++"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            samples: true,
            ..Capabilities::default()
        }
    }

    fn on_sample(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        if let Some(rtt) = ack.rtt {
            self.take_rtt(rtt, ack.now);
        }
        self.repairing = sample.phase != RecoveryPhase::None;
        if self.repairing || ack.delivered == 0 {
            return;
        }
        match self.phase {
            Phase::SlowStart { .. } => {
                let (part, whole) = SLOW_START_EXIT;
                if self.queueing_delay() > TARGET * part / whole {
                    window.ssthresh = window.cwnd;
                }
                if window.in_slow_start() {
                    let growth = FRACTION / self.inverse_gain() as i64;
                    self.add(growth * i64::from(ack.delivered), window);
                    window.cwnd = window.cwnd.min(window.ssthresh);
                } else {
                    self.end_slow_start(ack.now);
                }
            }
            Phase::Avoidance { slowdown_at } if ack.now >= slowdown_at => {
                let rtt = sample.smoothed_rtt.unwrap_or(self.base_rtt());
                self.begin_slowdown(ack.now, rtt, window);
            }
            Phase::Avoidance { .. } => self.adjust(ack.delivered, window),
            Phase::Slowdown { began, until } if ack.now >= until => {
                self.phase = Phase::SlowStart { began: Some(began) };
            }
            Phase::Slowdown { .. } => {}
        }
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        // Slow start after a timeout; otherwise `on_sample` adjusts the window by the delay.
        if self.repairing && window.in_slow_start() {
            window.slow_start(ack.delivered);
        }
    }

    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32 {
        self.growth = 0;
        if signal == Signal::Timeout {
            self.phase = Phase::SlowStart { began: None };
        }
        fraction(window.cwnd, 1, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::Seq;

    fn acknowledge(ledbat: &mut LedbatPlus, window: &mut Window, now_ms: u64, rtt_ms: u64) {
        let ack = AckEvent {
            now: Time::from_millis(now_ms),
            delivered: 1,
            acked: 1,
            marks: 0,
            rtt: Some(Duration::from_millis(rtt_ms)),
            una: Seq(0),
            next: Seq(0),
        };
        let sample = Sample {
            smoothed_rtt: Some(Duration::from_millis(rtt_ms)),
            ..Sample::default()
        };
        ledbat.on_sample(&ack, &sample, window);
    }

    /// §4.2: 2 · 60 / 100 rounds up to 2; 2 · 60 / 5 = 24 is capped at 16.
    #[test]
    fn the_gain_falls_on_short_paths() {
        for (rtt_ms, inverse) in [(120, 1), (100, 2), (5, 16)] {
            let mut ledbat = LedbatPlus::new();
            ledbat.take_rtt(Duration::from_millis(rtt_ms), Time::ZERO);
            assert_eq!(ledbat.inverse_gain(), inverse, "{rtt_ms} ms");
        }
    }

    /// At 1.5 times the target a round reduces the window by W · 0.5 less the gain, never by more than half.
    #[test]
    fn beyond_the_target_the_decrease_is_multiplicative() {
        let mut ledbat = LedbatPlus::new();
        ledbat.take_rtt(Duration::from_millis(120), Time::ZERO);
        ledbat.current = [Duration::from_millis(120 + 66); 4]; // 10 % over
        let mut window = Window::new(100);
        for _ in 0..100 {
            ledbat.adjust(1, &mut window);
        }
        // dW per segment is 0.01 − 0.1: 100 · 0.1 − 1 = 9 less.
        assert_eq!(window.cwnd, 91);
        ledbat.current = [Duration::from_millis(500); 4];
        ledbat.growth = 0;
        ledbat.adjust(1, &mut window);
        assert_eq!(window.cwnd, 90); // half of the window per round, a half per segment, rounded down
    }

    /// §4.3, §4.4: slow start ends at 45 ms of queue; the slowdown follows two round trips later, for two.
    #[test]
    fn slow_start_is_followed_by_a_slowdown() {
        let (mut ledbat, mut window) = (LedbatPlus::new(), Window::new(10));
        acknowledge(&mut ledbat, &mut window, 0, 120);
        assert_eq!(window.cwnd, 11);
        for now in 1..=4 {
            acknowledge(&mut ledbat, &mut window, now, 170);
        }
        assert!(!window.in_slow_start());
        assert!(matches!(ledbat.phase, Phase::Avoidance { .. }));
        let cwnd = window.cwnd;
        acknowledge(&mut ledbat, &mut window, 245, 150);
        assert_eq!((window.cwnd, window.ssthresh), (2, cwnd));
        acknowledge(&mut ledbat, &mut window, 540, 120);
        assert_eq!(window.cwnd, 2);
        acknowledge(&mut ledbat, &mut window, 546, 120);
        assert!(matches!(ledbat.phase, Phase::SlowStart { began: Some(_) }));
    }
}
