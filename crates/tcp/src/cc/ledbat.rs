//! LEDBAT (RFC 6817): yields to other traffic by keeping the queueing delay at a target.
//!
//! One-way delays come from the timestamp option, whose clock ticks in milliseconds (§3.4.1: the clocks need not be
//! synchronised). TARGET is 100 ms and GAIN 1, the largest values that §2.5 allows. The base delay is the minimum of
//! the last ten minutes, the current delay the minimum of four samples (§4.2). The window starts at the initial
//! window, without slow start, as in §2.4.2.

use sojourn_units::{Duration, Time};

use super::{AckEvent, Capabilities, CongestionControl, Sample, Signal, Window, fraction};

/// §2.5: 100 ms at most.
const TARGET_MS: i64 = 100;
/// BASE_HISTORY: minutes for which a minimum is remembered (§2.5).
const BASE_HISTORY: usize = 10;
/// CURRENT_FILTER: samples whose minimum is the current delay.
const CURRENT_FILTER: usize = 4;
/// ALLOWED_INCREASE beyond the data in flight, and MIN_CWND (§2.5), in segments.
const ALLOWED_INCREASE: u32 = 1;
const MIN_WINDOW: u32 = 2;
/// Growth is accumulated in these fractions of a segment.
const FRACTION: i64 = 1 << 16;

/// LEDBAT's state.
pub struct Ledbat {
    base: BaseDelays,
    current: [u32; CURRENT_FILTER],
    samples: usize,
    /// Growth below a whole segment, in [`FRACTION`]ths.
    growth: i64,
}

/// The least delay of each of the last minutes.
struct BaseDelays {
    minutes: [u32; BASE_HISTORY],
    minute: u64,
}

impl BaseDelays {
    fn update(&mut self, delay: u32, now: Time) {
        let minute = now.as_nanos() / Duration::from_secs(60).as_nanos();
        // Add an entry without a sample for each minute that has begun since.
        for begun in self.minute + 1..=minute.min(self.minute + BASE_HISTORY as u64) {
            self.minutes[begun as usize % BASE_HISTORY] = u32::MAX;
        }
        self.minute = minute;
        let minimum = &mut self.minutes[minute as usize % BASE_HISTORY];
        *minimum = delay.min(*minimum);
    }

    fn least(&self) -> u32 {
        self.minutes.into_iter().min().unwrap_or(u32::MAX)
    }
}

impl Ledbat {
    /// A LEDBAT without samples.
    pub const fn new() -> Self {
        Self {
            base: BaseDelays {
                minutes: [u32::MAX; BASE_HISTORY],
                minute: 0,
            },
            current: [u32::MAX; CURRENT_FILTER],
            samples: 0,
            growth: 0,
        }
    }

    /// The queueing delay in milliseconds (§2.4.2).
    fn queueing_delay(&self) -> i64 {
        let current = self.current.into_iter().min().unwrap_or(u32::MAX);
        i64::from(current) - i64::from(self.base.least())
    }

    /// §2.4.2: cwnd += GAIN · off_target · bytes_newly_acked · MSS / cwnd.
    fn adjust(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        let off_target = TARGET_MS - self.queueing_delay();
        self.growth +=
            off_target * FRACTION * i64::from(ack.delivered) / (TARGET_MS * i64::from(window.cwnd));
        let segments = self.growth.div_euclid(FRACTION);
        self.growth -= segments * FRACTION;
        let grown = (i64::from(window.cwnd) + segments).clamp(1, i64::from(u32::MAX)) as u32;
        let allowed = sample.prior_in_flight + ALLOWED_INCREASE;
        window.cwnd = if segments > 0 {
            grown.min(allowed.max(window.cwnd))
        } else {
            grown
        }
        .max(MIN_WINDOW);
    }
}

impl CongestionControl for Ledbat {
    fn name(&self) -> &'static str {
        "ledbat"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            samples: true,
            ..Capabilities::default()
        }
    }

    fn on_sample(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        if let Some(delay) = sample.one_way_ms {
            self.base.update(delay, ack.now);
            self.current[self.samples % CURRENT_FILTER] = delay;
            self.samples += 1;
        }
        let calm = sample.phase == super::RecoveryPhase::None;
        let returning = window.in_slow_start() && window.ssthresh < Window::INFINITE;
        if self.samples > 0 && calm && !returning && ack.delivered > 0 {
            self.adjust(ack, sample, window);
        }
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        // Slow start after a timeout; otherwise `on_sample` adjusts the window by the delay.
        if window.in_slow_start() && window.ssthresh < Window::INFINITE {
            window.slow_start(ack.delivered);
        }
    }

    /// §2.4.2: halve, at most once per round trip, which the sender ensures.
    fn on_congestion(&mut self, _signal: Signal, window: &Window) -> u32 {
        self.growth = 0;
        fraction(window.cwnd, 1, 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::Seq;

    /// A round at a window of 10: ten acknowledgements with a one-way delay of `delay_ms`.
    fn round(ledbat: &mut Ledbat, window: &mut Window, delay_ms: u32) {
        for _ in 0..10 {
            let ack = AckEvent {
                now: Time::from_secs(1),
                delivered: 1,
                acked: 1,
                marks: 0,
                rtt: None,
                una: Seq(0),
                next: Seq(0),
            };
            let sample = Sample {
                one_way_ms: Some(delay_ms),
                prior_in_flight: window.cwnd,
                ..Sample::default()
            };
            ledbat.on_sample(&ack, &sample, window);
        }
    }

    /// The full target below target: a segment per round (slightly less, since the window grows meanwhile).
    #[test]
    fn without_a_queue_the_window_grows_by_one_a_round() {
        let (mut ledbat, mut window) = (Ledbat::new(), Window::new(10));
        for _ in 0..2 {
            round(&mut ledbat, &mut window, 50);
        }
        assert_eq!(window.cwnd, 11);
    }

    #[test]
    fn at_the_target_it_stands_still_and_above_it_shrinks() {
        let (mut ledbat, mut window) = (Ledbat::new(), Window::new(10));
        round(&mut ledbat, &mut window, 50);
        window.cwnd = 10;
        ledbat.current = [150; 4];
        ledbat.growth = 0;
        for _ in 0..5 {
            round(&mut ledbat, &mut window, 150); // 100 ms queued
        }
        assert_eq!(window.cwnd, 10);
        ledbat.current = [250; 4];
        round(&mut ledbat, &mut window, 250); // twice the target: 10 − 1/10 − 9 · 1/9 = 8.9, rounded down
        assert_eq!(window.cwnd, 8);
    }

    #[test]
    fn the_least_of_four_samples_counts() {
        let (mut ledbat, mut window) = (Ledbat::new(), Window::new(10));
        round(&mut ledbat, &mut window, 50);
        for (minimum, delay) in ledbat.current.iter_mut().zip([90, 80, 300, 95]) {
            *minimum = delay;
        }
        assert_eq!(ledbat.queueing_delay(), 30);
    }

    #[test]
    fn a_base_delay_is_forgotten_after_ten_minutes() {
        let mut base = Ledbat::new().base;
        base.update(20, Time::from_secs(30));
        base.update(50, Time::from_secs(90));
        base.update(60, Time::from_secs(599));
        assert_eq!(base.least(), 20);
        base.update(60, Time::from_secs(601));
        assert_eq!(base.least(), 50);
        base.update(60, Time::from_secs(6000));
        assert_eq!(base.least(), 60);
    }
}
