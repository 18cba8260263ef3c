//! Prague (draft-briscoe-iccrg-prague-congestion-control-04), the congestion control of L4S (RFC 9330, RFC 9331). It
//! responds to marks as DCTCP does, receives them by AccECN, sends ECT(1) and paces. On short paths it grows and backs off as
//! if the RTT were 25 ms, so that flows with different RTTs share equally (§2.4.4).
//!
//! Where the draft leaves a choice it does as version 0.7 of the module for Linux by its authors, and without RTT
//! independence as version 0.5, of 2020.
//!
//! The window keeps growing while it is reduced, and fractions of a segment are kept. Both matter with a mark in
//! nearly every round trip. For this, Prague sets the window itself. Losses halve the window at once.
//!
//! Not implemented: windows below two segments and smaller segments at low rates, the fallback for a queue with RFC 3168
//! marking, AccECN's byte counters. Without AccECN it behaves as Reno (§2.4.1).

use sojourn_units::{Duration, Rate, Time};

use super::{AckEvent, Capabilities, CongestionControl, RecoveryPhase, Sample, Signal, Window};
use crate::seq::Seq;

/// alpha is in 2^20ths.
const ALPHA_ONE: u64 = 1 << 20;
/// alpha's gain of 1/16, as a shift.
const GAIN_SHIFT: u32 = 4;
/// The window is kept in these fractions of a segment.
const FRACTION: u64 = 1 << 16;
/// The RTT that shorter ones are stretched to (§2.4.4), and that of a path without a sample.
const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// Rounds after slow start in which a short path still counts as short.
const TRANSITION: u32 = 4;

/// Bytes of a packet's headers, with timestamps. They count in the rate, although the pacer counts payload only: some 4 % more
/// than the window in an RTT, so that the window stays the limit, as growth needs (as in Linux).
const HEADERS: u64 = 52;

/// Prague's state.
pub struct Prague {
    /// Whether short paths count as longer ones.
    independent: bool,
    alpha: u64,
    accurate: bool,
    /// Whether a mark was seen. Only then alpha follows the marks, as before there may be no queue that sets any.
    is_marked: bool,
    /// The time of the acknowledgement.
    now: Time,
    /// The observation: when and where it ends, and its counts.
    from: Time,
    window_end: Option<Seq>,
    acked: u64,
    marked: u64,
    /// Observations after slow start.
    rounds: u32,
    /// When it last responded to a mark.
    responded: Option<Time>,
    rtt: Option<Duration>,
    rate: Option<Rate>,
    /// The share of the window to keep, in 2^20ths, while a response to congestion is pending.
    kept: Option<u64>,
    /// The window in [`FRACTION`]ths of a segment, and the whole segments that it set for it.
    fine: u64,
    whole: u32,
}

impl Prague {
    /// A Prague whose first mark halves the window. `rtt_independence`: short paths count as longer ones.
    pub const fn new(rtt_independence: bool) -> Self {
        Self {
            independent: rtt_independence,
            alpha: if rtt_independence { 0 } else { ALPHA_ONE },
            accurate: false,
            is_marked: false,
            now: Time::ZERO,
            from: Time::ZERO,
            window_end: None,
            acked: 0,
            marked: 0,
            rounds: 0,
            responded: None,
            rtt: None,
            rate: None,
            kept: None,
            fine: 0,
            whole: 0,
        }
    }

    /// alpha += (marked share − alpha) / 16 (§2.4.2).
    fn update_alpha(&mut self) {
        if self.is_marked {
            let share = self.marked.min(self.acked) * ALPHA_ONE / self.acked.max(1);
            self.alpha = self.alpha - (self.alpha >> GAIN_SHIFT) + (share >> GAIN_SHIFT);
        }
        self.acked = 0;
        self.marked = 0;
    }

    /// True once a short path counts as a longer one.
    const fn stretches(&self) -> bool {
        self.independent && self.rounds >= TRANSITION
    }

    /// The growth by so many segments, in [`FRACTION`]ths: a segment per window, times the square of RTT by stretched RTT.
    fn growth(&self, acked: u32, fine: u64) -> u64 {
        let rtt = self
            .rtt
            .unwrap_or(VIRTUAL_RTT)
            .max(Duration::from_micros(1));
        let least = if self.stretches() { VIRTUAL_RTT } else { rtt };
        let (rtt, stretched) = (
            u128::from(rtt.as_micros()),
            u128::from(rtt.max(least).as_micros()),
        );
        let by_window = u128::from(acked) * u128::from(FRACTION).pow(2) * rtt.pow(2);
        (by_window / (u128::from(fine.max(1)) * stretched.pow(2))) as u64
    }

    /// Responds to congestion, and grows by the unmarked segments (§2.4.3).
    fn adjust(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        let mut fine = if window.cwnd == self.whole {
            self.fine
        } else {
            u64::from(window.cwnd) * FRACTION // the sender has set another
        };
        if let Some(kept) = self.kept.take() {
            fine = (u128::from(fine) * u128::from(kept) / u128::from(ALPHA_ONE)) as u64;
        } else if sample.phase != RecoveryPhase::Recovery && window.is_used() {
            let acked = ack.delivered.saturating_sub(ack.marks);
            let slow = if window.in_slow_start() {
                acked.min(window.ssthresh - window.cwnd)
            } else {
                0
            };
            fine += u64::from(slow) * FRACTION;
            fine += self.growth(acked - slow, fine);
        }
        let least = if sample.phase == RecoveryPhase::Timeout {
            1
        } else {
            2
        };
        self.fine = fine.max(least * FRACTION);
        self.whole = if self.independent {
            self.fine.div_ceil(FRACTION) as u32
        } else {
            (self.fine / FRACTION) as u32
        };
        window.cwnd = self.whole;
    }

    /// Paces a window per smoothed RTT, twice that far below the slow start threshold.
    fn pace(&mut self, sample: &Sample, window: &Window) {
        let Some(rtt) = self.rtt else { return };
        let gain = if window.cwnd < window.ssthresh / 2 {
            2
        } else {
            1
        };
        let segments = (self.fine / FRACTION).max(u64::from(sample.in_flight));
        let bits = u128::from(segments) * u128::from(u64::from(sample.mss) + HEADERS) * 8;
        let bps = bits * gain * 1_000_000_000 / u128::from(rtt.as_nanos().max(1));
        self.rate = Rate::from_bps(bps as u64);
    }
}

impl CongestionControl for Prague {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            short_bursts: true,
            ..Capabilities::RATE_BASED
        }
    }

    fn on_delivery(&mut self, ack: &AckEvent, window: &mut Window) {
        self.now = ack.now;
        let stretches = self.stretches() && !window.in_slow_start();
        let elapsed = !stretches || ack.now.saturating_since(self.from) >= VIRTUAL_RTT;
        if self
            .window_end
            .is_none_or(|end| elapsed && !ack.una.before(end))
        {
            if self.window_end.is_some() {
                self.update_alpha();
            }
            self.window_end = Some(ack.next);
            self.from = ack.now;
            if !window.in_slow_start() {
                self.rounds = self.rounds.saturating_add(1);
            }
        }
    }

    fn on_sample(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        self.accurate = sample.accurate;
        self.rtt = sample.smoothed_rtt;
        self.acked += u64::from(ack.delivered);
        self.marked += u64::from(ack.marks);
        self.is_marked |= ack.marks > 0;
        self.adjust(ack, sample, window);
        self.pace(sample, window);
    }

    fn on_ack(&mut self, _ack: &AckEvent, _window: &mut Window) {}

    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32 {
        let kept = match signal {
            Signal::EcnEcho if self.accurate => self.kept_of_marks(window),
            _ => ALPHA_ONE / 2,
        };
        // After a timeout the window restarts from one segment.
        self.kept = (signal != Signal::Timeout && kept < ALPHA_ONE).then_some(kept);
        let left = u64::from(window.cwnd) * kept / ALPHA_ONE;
        (left as u32).max(2)
    }

    fn on_timeout(&mut self, _now: Time, _next: Seq) {
        self.whole = 0;
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }
}

impl Prague {
    /// The share of the window that a mark leaves: half at the first one; later 1 − alpha / 2, all if the last response is
    /// less than a stretched RTT ago (§2.4.3, §2.4.4).
    fn kept_of_marks(&mut self, window: &Window) -> u64 {
        if !self.is_marked {
            self.responded = Some(self.now);
            return ALPHA_ONE / 2;
        }
        let stretches = self.stretches() && !window.in_slow_start();
        let is_soon = |then: Time| self.now.saturating_since(then) < VIRTUAL_RTT;
        if stretches && self.responded.is_some_and(is_soon) {
            return ALPHA_ONE;
        }
        self.responded = Some(self.now);
        ALPHA_ONE - self.alpha / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(n: u32, marks: u32, now_ms: u64) -> AckEvent {
        AckEvent {
            now: Time::from_millis(now_ms),
            delivered: 1,
            acked: 1,
            marks,
            rtt: None,
            una: Seq(n),
            next: Seq(n + 100),
        }
    }

    fn sample(rtt_ms: u64) -> Sample {
        Sample {
            accurate: true,
            smoothed_rtt: Some(Duration::from_millis(rtt_ms)),
            mss: 1250 - HEADERS as u32,
            ..Sample::default()
        }
    }

    /// §2.4.2: with a tenth marked in the long run, the reduction is 5 % of the window.
    #[test]
    fn steady_marking_takes_half_of_its_share() {
        let mut prague = Prague::new(true);
        let mut window = Window::new(1000);
        for n in 1..20_000 {
            let ack = ack(n, u32::from(n % 10 == 0), u64::from(n));
            prague.on_delivery(&ack, &mut window);
            prague.on_sample(&ack, &sample(100), &mut window);
        }
        let left = prague.on_congestion(Signal::EcnEcho, &window);
        assert!((948..=952).contains(&left), "{left}");
        assert_eq!(prague.on_congestion(Signal::Loss, &window), 500);
    }

    /// §2.4.4: at 5 ms growth is (5/25)² of Reno's; from 25 ms on it is Reno's, as in the first rounds and without RTT
    /// independence.
    #[test]
    fn short_paths_grow_as_if_they_were_longer() {
        let growth = |independent, rounds, rtt_ms| {
            let rtt = Some(Duration::from_millis(rtt_ms));
            let prague = Prague {
                rounds,
                rtt,
                ..Prague::new(independent)
            };
            prague.growth(100, 100 * FRACTION)
        };
        for (rtt_ms, parts) in [(5, 25), (25, 1), (100, 1)] {
            assert_eq!(
                growth(true, TRANSITION, rtt_ms),
                FRACTION / parts,
                "{rtt_ms} ms"
            );
            assert_eq!(
                growth(true, TRANSITION - 1, rtt_ms),
                FRACTION,
                "{rtt_ms} ms"
            );
            assert_eq!(growth(false, TRANSITION, rtt_ms), FRACTION, "{rtt_ms} ms");
        }
    }

    /// The first mark halves, whenever it comes; alpha follows the marks from then on, without RTT independence from 1.
    #[test]
    fn the_first_mark_halves_the_window() {
        for (independent, alpha) in [(true, 0), (false, ALPHA_ONE)] {
            let mut prague = Prague::new(independent);
            let mut window = Window::new(100);
            for n in 1..2000 {
                prague.on_delivery(&ack(n, 0, u64::from(n)), &mut window);
                prague.on_sample(&ack(n, 0, u64::from(n)), &sample(10), &mut window);
            }
            assert_eq!(prague.alpha, alpha);
            let window = Window::new(100);
            assert_eq!(prague.on_congestion(Signal::EcnEcho, &window), 50);
        }
    }

    /// §2.4.4: within 25 ms a further mark reduces nothing, once the path counts as one of 25 ms; a loss always does.
    #[test]
    fn short_paths_respond_once_in_a_stretched_round_trip() {
        let reductions = |independent, every_ms| {
            let mut prague = Prague {
                accurate: true,
                alpha: ALPHA_ONE / 2,
                is_marked: true,
                rounds: TRANSITION,
                ..Prague::new(independent)
            };
            let mut window = Window {
                ssthresh: 2,
                ..Window::new(100)
            };
            let mut reduced = 0;
            for n in 1..=20 {
                prague.on_delivery(&ack(n, 1, 1000 + every_ms * u64::from(n)), &mut window);
                reduced += u32::from(prague.on_congestion(Signal::EcnEcho, &window) < 100);
            }
            assert_eq!(prague.on_congestion(Signal::Loss, &window), 50);
            reduced
        };
        assert_eq!(reductions(true, 10), 7); // every third, at 30 ms
        assert_eq!(reductions(true, 25), 20);
        assert_eq!(reductions(false, 10), 20);
    }

    /// 100 packets of 10 000 bit in 100 ms; twice that below half of the slow start threshold.
    #[test]
    fn a_window_is_paced_over_a_round_trip() {
        let mut prague = Prague::new(true);
        let mut window = Window::new(100);
        prague.on_sample(&ack(1, 0, 1), &sample(100), &mut window);
        assert_eq!(prague.pacing_rate(), Some(Rate::from_mbps(20)));
        window.ssthresh = 100;
        prague.on_sample(&ack(2, 0, 2), &sample(100), &mut window);
        assert_eq!(prague.pacing_rate(), Some(Rate::from_mbps(10)));
    }

    #[test]
    fn marked_segments_do_not_let_the_window_grow() {
        let mut prague = Prague::new(true);
        let mut window = Window {
            limiting: true,
            ..Window::new(10)
        };
        prague.on_sample(&ack(1, 1, 1), &sample(100), &mut window);
        assert_eq!(window.cwnd, 10);
        prague.on_sample(&ack(2, 0, 2), &sample(100), &mut window);
        assert_eq!(window.cwnd, 11); // slow start
    }

    /// The reduction is half of alpha, a tenth: 0.05 · 10 segments leave 9.5; a window acknowledged makes it 10.5.
    #[test]
    fn fractions_of_a_segment_survive_a_reduction() {
        let mut prague = Prague {
            accurate: true,
            alpha: ALPHA_ONE / 10,
            is_marked: true,
            ..Prague::new(true)
        };
        let mut window = Window {
            ssthresh: 2,
            limiting: true,
            ..Window::new(10)
        };
        window.ssthresh = prague.on_congestion(Signal::EcnEcho, &window);
        prague.on_sample(&ack(1, 1, 1), &sample(100), &mut window);
        assert_eq!((window.cwnd, prague.fine * 2 / FRACTION), (10, 19)); // 9.5, rounded up
        for n in 2..12 {
            prague.on_sample(&ack(n, 0, 2), &sample(100), &mut window);
        }
        assert_eq!((window.cwnd, prague.fine * 2 / FRACTION), (11, 21)); // 10.5
    }
}
