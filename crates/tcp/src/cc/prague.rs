//! Prague (draft-briscoe-iccrg-prague-congestion-control-04), the congestion control of L4S (RFC 9330, RFC 9331). It
//! responds to marks as DCTCP does, receives them by AccECN, sends ECT(1) and paces. On short paths it grows as if the
//! RTT were 25 ms, so that flows with different RTTs share equally (§2.4.4); the first versions for Linux (2020) did not.
//!
//! The window keeps growing while it is reduced, and fractions of a segment are kept. Both matter with a mark in
//! nearly every round trip. For this, Prague sets the window itself. Losses halve the window at once.
//!
//! Not implemented: windows below two segments, the fallback for a queue with RFC 3168 marking, AccECN's byte
//! counters. Without AccECN it behaves as Reno (§2.4.1).

use sojourn_units::{Duration, Rate, Time};

use super::{AckEvent, Capabilities, CongestionControl, RecoveryPhase, Sample, Signal, Window};
use crate::seq::Seq;

/// alpha is in 2^20ths; it begins at 1.
const ALPHA_ONE: u64 = 1 << 20;
/// alpha's gain of 1/16, as a shift.
const GAIN_SHIFT: u32 = 4;
/// The window is kept in these fractions of a segment.
const FRACTION: u64 = 1 << 16;
/// The RTT that shorter ones are stretched to (§2.4.4), and that of a path without a sample.
const VIRTUAL_RTT: Duration = Duration::from_millis(25);

/// Prague's state.
pub struct Prague {
    /// The least RTT by which it grows; zero without RTT independence.
    least_rtt: Duration,
    alpha: u64,
    accurate: bool,
    /// The observation: when and where it ends, and its counts.
    from: Time,
    window_end: Option<Seq>,
    acked: u64,
    marked: u64,
    rtt: Option<Duration>,
    rate: Option<Rate>,
    /// The share of the window to keep, in 2^20ths, while a response to congestion is pending.
    kept: Option<u64>,
    /// The fraction of a segment in the window, in [`FRACTION`]ths.
    fraction: u64,
}

impl Prague {
    /// A Prague that treats the first mark as full congestion. `rtt_independence`: short paths count as longer ones.
    pub const fn new(rtt_independence: bool) -> Self {
        Self {
            least_rtt: if rtt_independence {
                VIRTUAL_RTT
            } else {
                Duration::ZERO
            },
            alpha: ALPHA_ONE,
            accurate: false,
            from: Time::ZERO,
            window_end: None,
            acked: 0,
            marked: 0,
            rtt: None,
            rate: None,
            kept: None,
            fraction: 0,
        }
    }

    /// alpha += (marked share − alpha) / 16 (§2.4.2).
    fn update_alpha(&mut self) {
        let share = self.marked.min(self.acked) * ALPHA_ONE / self.acked.max(1);
        self.alpha = self.alpha - (self.alpha >> GAIN_SHIFT) + (share >> GAIN_SHIFT);
        self.acked = 0;
        self.marked = 0;
    }

    /// Segments to acknowledge per segment of growth: the window times the square of the factor that stretches the
    /// RTT.
    fn acks_per_segment(&self, cwnd: u32) -> u32 {
        let rtt = self.rtt.unwrap_or(VIRTUAL_RTT).as_micros().max(1);
        let stretched = rtt.max(self.least_rtt.as_micros());
        let acks = u128::from(cwnd) * u128::from(stretched).pow(2) / u128::from(rtt).pow(2);
        acks.min(u128::from(u32::MAX / 2)) as u32
    }

    /// Responds to congestion, and grows by the unmarked segments (§2.4.3).
    fn adjust(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        let mut fine = u64::from(window.cwnd) * FRACTION + self.fraction;
        if let Some(kept) = self.kept.take() {
            fine = (u128::from(fine) * u128::from(kept) / u128::from(ALPHA_ONE)) as u64;
        } else if sample.phase != RecoveryPhase::Recovery && window.is_used() {
            let acked = ack.delivered.saturating_sub(ack.marks);
            let slow = if window.in_slow_start() {
                acked.min(window.ssthresh - window.cwnd)
            } else {
                0
            };
            let steady = u64::from(acked - slow) * FRACTION;
            fine += u64::from(slow) * FRACTION;
            fine += steady / u64::from(self.acks_per_segment(window.cwnd).max(1));
        }
        let least = if sample.phase == RecoveryPhase::Timeout {
            1
        } else {
            2
        };
        fine = fine.max(least * FRACTION);
        window.cwnd = (fine / FRACTION) as u32;
        self.fraction = fine % FRACTION;
    }

    /// Paces a window per smoothed RTT, twice that in slow start.
    fn pace(&mut self, sample: &Sample, window: &Window) {
        let Some(rtt) = self.rtt else { return };
        let gain = if window.in_slow_start() { 2 } else { 1 };
        let bits = u128::from(window.cwnd.max(sample.in_flight)) * u128::from(sample.mss) * 8;
        let bps = bits * gain * 1_000_000_000 / u128::from(rtt.as_nanos().max(1));
        self.rate = Rate::from_bps(bps as u64);
    }
}

impl CongestionControl for Prague {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::RATE_BASED
    }

    fn on_delivery(&mut self, ack: &AckEvent, _window: &mut Window) {
        let period = self.rtt.unwrap_or(VIRTUAL_RTT).max(self.least_rtt);
        let elapsed = ack.now.saturating_since(self.from) >= period;
        if self
            .window_end
            .is_none_or(|end| elapsed && !ack.una.before(end))
        {
            if self.window_end.is_some() {
                self.update_alpha();
            }
            self.window_end = Some(ack.next);
            self.from = ack.now;
        }
    }

    fn on_sample(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        self.accurate = sample.accurate;
        self.rtt = sample.smoothed_rtt;
        self.acked += u64::from(ack.delivered);
        self.marked += u64::from(ack.marks);
        self.adjust(ack, sample, window);
        self.pace(sample, window);
    }

    fn on_ack(&mut self, _ack: &AckEvent, _window: &mut Window) {}

    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32 {
        let kept = match signal {
            Signal::EcnEcho if self.accurate => ALPHA_ONE - self.alpha / 2,
            _ => ALPHA_ONE / 2,
        };
        // After a timeout the window restarts from one segment.
        self.kept = (signal != Signal::Timeout).then_some(kept);
        let left = u64::from(window.cwnd) * kept / ALPHA_ONE;
        (left as u32).max(2)
    }

    fn on_timeout(&mut self, _now: Time, _next: Seq) {
        self.fraction = 0;
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
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
            mss: 1250,
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

    /// §2.4.4: at 5 ms growth is (5/25)² of Reno's; from 25 ms on it is Reno's.
    #[test]
    fn short_paths_grow_as_if_they_were_longer() {
        let mut prague = Prague::new(true);
        for (rtt_ms, acks) in [(5, 2500), (25, 100), (100, 100)] {
            prague.rtt = Some(Duration::from_millis(rtt_ms));
            assert_eq!(prague.acks_per_segment(100), acks, "{rtt_ms} ms");
        }
    }

    /// Without RTT independence growth is Reno's at any RTT.
    #[test]
    fn without_rtt_independence_every_path_grows_by_a_segment_per_round_trip() {
        let mut prague = Prague::new(false);
        for rtt_ms in [5, 25, 100] {
            prague.rtt = Some(Duration::from_millis(rtt_ms));
            assert_eq!(prague.acks_per_segment(100), 100, "{rtt_ms} ms");
        }
    }

    /// 100 segments of 10 000 bit in 100 ms; twice that in slow start.
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
            ..Prague::new(true)
        };
        let mut window = Window {
            ssthresh: 2,
            limiting: true,
            ..Window::new(10)
        };
        window.ssthresh = prague.on_congestion(Signal::EcnEcho, &window);
        prague.on_sample(&ack(1, 1, 1), &sample(100), &mut window);
        assert_eq!((window.cwnd, prague.fraction >> 8), (9, 128)); // 9.5
        for n in 2..12 {
            prague.on_sample(&ack(n, 0, 2), &sample(100), &mut window);
        }
        assert_eq!(window.cwnd, 10);
    }
}
