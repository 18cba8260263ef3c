//! HyStart++ (RFC 9406): leaves slow start in two steps, so that jitter does not end it. When the RTT of a round
//! exceeds the last round's by an eighth, conservative slow start begins, which grows at a quarter of the pace. Slow
//! start ends after five such rounds without a lower RTT. Applies to the first slow start only (§4.3). No departures.

use sojourn_units::Duration;

use super::{AckEvent, Window};
use crate::seq::Seq;

/// §4.2: RttThresh is lastRoundMinRTT / MIN_RTT_DIVISOR, from MIN_RTT_THRESH to MAX_RTT_THRESH.
const MIN_RTT_DIVISOR: u64 = 8;
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// N_RTT_SAMPLE: samples of a round before it is judged.
const N_RTT_SAMPLE: u32 = 8;
/// The divisor of growth in conservative slow start, and its duration in rounds.
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;
/// L: most segments of growth per acknowledgement, without pacing.
const L: u32 = 8;

/// The detector's state.
#[derive(Clone, Debug)]
pub struct HyStartPlusPlus {
    /// windowEnd; `None` before the first round.
    round_end: Option<Seq>,
    samples: u32,
    /// currentRoundMinRTT and lastRoundMinRTT.
    current: Duration,
    last: Duration,
    conservative: Option<Conservative>,
    /// Segments acknowledged in conservative slow start and not yet counted.
    remainder: u32,
    finished: bool,
}

#[derive(Clone, Debug)]
struct Conservative {
    /// cssBaselineMinRtt.
    baseline: Duration,
    rounds: u32,
}

impl HyStartPlusPlus {
    /// A detector at the beginning of the first round.
    pub const fn new() -> Self {
        Self {
            round_end: None,
            samples: 0,
            current: Duration::MAX,
            last: Duration::MAX,
            conservative: None,
            remainder: 0,
            finished: false,
        }
    }

    /// Ends the detection after a timeout: the first slow start is over.
    pub const fn finish(&mut self) {
        self.finished = true;
        self.conservative = None;
    }

    /// Takes an RTT sample. Sets the threshold to the window when slow start should end.
    pub fn on_sample(&mut self, rtt: Duration, ack: &AckEvent, window: &mut Window) {
        if self.finished || !window.in_slow_start() {
            return;
        }
        if self.round_end.is_none_or(|end| !ack.una.before(end)) {
            self.end_round(ack, window);
        }
        self.current = self.current.min(rtt);
        self.samples += 1;
        if self.samples < N_RTT_SAMPLE || self.last == Duration::MAX {
            return;
        }
        match &self.conservative {
            None => {
                let thresh = (self.last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current >= self.last + thresh {
                    self.conservative = Some(Conservative {
                        baseline: self.current,
                        rounds: 0,
                    });
                }
            }
            Some(css) if self.current < css.baseline => self.conservative = None,
            Some(_) => {}
        }
    }

    /// Ends a round. The round in which conservative slow start began counts as one of its rounds (§4.2).
    fn end_round(&mut self, ack: &AckEvent, window: &mut Window) {
        if let Some(css) = &mut self.conservative {
            css.rounds += 1;
            if css.rounds >= CSS_ROUNDS {
                window.ssthresh = window.cwnd;
                self.finish();
            }
        }
        self.round_end = Some(ack.next);
        self.last = self.current;
        self.current = Duration::MAX;
        self.samples = 0;
    }

    /// The growth of the window for `acked` segments.
    pub fn growth(&mut self, acked: u32) -> u32 {
        let acked = acked.min(L);
        if self.conservative.is_none() {
            return acked;
        }
        self.remainder += acked;
        let growth = self.remainder / CSS_GROWTH_DIVISOR;
        self.remainder %= CSS_GROWTH_DIVISOR;
        growth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::Time;

    /// Rounds of ten samples, each with one RTT; the window at its end.
    fn rounds(detector: &mut HyStartPlusPlus, window: &mut Window, first: u32, rtts_ms: &[u64]) {
        for (round, &rtt_ms) in (first..).zip(rtts_ms) {
            for n in 0..10 {
                let rtt = Duration::from_millis(rtt_ms);
                let ack = AckEvent {
                    now: Time::ZERO,
                    delivered: 1,
                    acked: 1,
                    marks: 0,
                    rtt: Some(rtt),
                    una: Seq(10 * round + n),
                    next: Seq(10 * round + n + 10),
                };
                detector.on_sample(rtt, &ack, window);
            }
        }
    }

    /// 100 ms, then 113: more than 100 + 12.5.
    #[test]
    fn an_eighth_more_rtt_begins_conservative_slow_start() {
        let (mut detector, mut window) = (HyStartPlusPlus::new(), Window::new(10));
        rounds(&mut detector, &mut window, 1, &[100, 112]);
        assert!(detector.conservative.is_none());
        rounds(&mut detector, &mut window, 3, &[126]);
        assert!(detector.conservative.is_some());
        assert!(window.in_slow_start());
    }

    /// At least 4 ms, at most 16.
    #[test]
    fn the_threshold_is_bounded() {
        for (last, current, begins) in [
            (10, 13, false),
            (10, 14, true),
            (400, 415, false),
            (400, 416, true),
        ] {
            let (mut detector, mut window) = (HyStartPlusPlus::new(), Window::new(10));
            rounds(&mut detector, &mut window, 1, &[last, current]);
            assert_eq!(
                detector.conservative.is_some(),
                begins,
                "{last} to {current} ms"
            );
        }
    }

    #[test]
    fn five_conservative_rounds_end_slow_start() {
        let (mut detector, mut window) = (HyStartPlusPlus::new(), Window::new(40));
        rounds(
            &mut detector,
            &mut window,
            1,
            &[100, 120, 120, 120, 120, 120],
        );
        assert!(window.in_slow_start());
        rounds(&mut detector, &mut window, 7, &[120]);
        assert_eq!(window.ssthresh, 40);
    }

    #[test]
    fn a_lower_rtt_resumes_slow_start() {
        let (mut detector, mut window) = (HyStartPlusPlus::new(), Window::new(40));
        rounds(&mut detector, &mut window, 1, &[100, 120, 119]);
        assert!(detector.conservative.is_none());
        assert_eq!(detector.growth(2), 2);
    }

    /// A quarter of the pace; before that at most eight per acknowledgement.
    #[test]
    fn growth_is_limited_per_acknowledgement_and_then_quartered() {
        let (mut detector, mut window) = (HyStartPlusPlus::new(), Window::new(40));
        assert_eq!(detector.growth(20), 8);
        rounds(&mut detector, &mut window, 1, &[100, 120]);
        let grown: u32 = (0..10).map(|_| detector.growth(2)).sum();
        assert_eq!(grown, 5);
    }
}
