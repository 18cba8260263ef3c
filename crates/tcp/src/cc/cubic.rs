//! CUBIC (RFC 9438), in the integer arithmetic and with the clock of Linux.
//!
//! Between two congestion events the window follows W(t) = C·(t − K)³ + W_max, or the window of a Reno with CUBIC's
//! decrease factor if that is larger. Departures from RFC 9438, all as in Linux: the decrease factor is 717/1024 and
//! is applied to cwnd, not to the flight size (§4.6); time runs in ticks of 4 ms; t leads by the minimum RTT (§4.2's
//! target at t + RTT); the window grows by at most one segment per two acknowledged; HyStart ends slow start (§4.10).
//! HyStart++ (RFC 9406) or neither can be chosen instead. ABE (RFC 8511) keeps 0.85 of the window on an ECN echo.
//!
//! The first CUBIC can also be chosen (Rhee and Xu, PFLDnet 2005; in ns-2, and in Linux until 2.6.24). It differs
//! where the code tests [`Version::Of2005`]: it keeps 0.8 of the window; past W_max it grows by at most 16 segments in
//! 100 ms (S_max); it may add a segment per segment acknowledged; only congestion ends its slow start.

use sojourn_units::{Duration, Time};

use super::backoff::{Backoff, Share};
use super::hystart::HyStart;
use super::hystart_plus_plus::HyStartPlusPlus;
use super::{AckEvent, CongestionControl, Signal, Window};
use crate::config::{Config, JIFFY};
use crate::seq::Seq;

const BETA_SCALE: u32 = 1024;
/// The decrease factor beta_cubic, in 1024ths: 0.7 (RFC 9438 §4.6).
const BETA: Share = Share::new(717, BETA_SCALE);
/// RFC 8511 §3: 0.85 on a mark, with ABE.
const BETA_ECN: Share = Share::new(17, 20);
/// C = 0.4 segments per cubed second (RFC 9438 §5), as 410/1024.
const C_SCALED: u64 = 410;
/// Binary digits of a second's fraction in which the cubic is computed.
const TIME_BITS: u32 = 10;
/// The decrease factor of 2005, in 1024ths: 0.8.
const BETA_2005: Share = Share::new(819, BETA_SCALE);
/// S_max of 2005: beyond W_max the window grows by at most this many segments in 100 ms.
const MOST_PER_100_MS: u64 = 16;
/// While the window stands still it is updated at most this often: 1/32 s.
const UPDATE_TICKS: u64 = 250 / 32;
/// The window grows by a segment per so many acknowledged segments at most.
const FEWEST_ACKS: u32 = 2;
/// RTT samples within this time after an epoch began reflect recovery, not the path: 1 s.
const SETTLE_TICKS: u64 = 250;

/// What ends slow start before the path overflows.
enum SlowStartExit {
    HyStart(HyStart),
    PlusPlus(HyStartPlusPlus),
    /// Neither: only a loss or a mark ends slow start.
    Congestion,
}

/// The document to follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    /// The current one.
    Rfc9438,
    /// The first (Rhee and Xu, PFLDnet 2005).
    Of2005,
}

/// CUBIC's state, with the names of RFC 9438 §4.1.
pub struct Cubic {
    backoff: Backoff,
    /// Acknowledged segments per segment of growth for a Reno with this beta (RFC 9438 §4.3), times 8: 8 / alpha with
    /// alpha = 3(1 − beta)/(1 + beta).
    reno_acks_per_segment_8: u32,
    /// Decides the growth.
    version: Version,
    exit: SlowStartExit,
    /// W_max; 0 before the first congestion event.
    w_max: u32,
    /// The window at the plateau of this epoch.
    origin: u32,
    /// K in 1024ths of a second.
    k: u64,
    /// When the epoch began, in ticks.
    epoch_start: Option<u64>,
    /// W_est, and segments acknowledged towards its next segment.
    w_est: u32,
    acked: u32,
    /// Segments to acknowledge per segment of growth.
    acks_per_segment: u32,
    last_cwnd: u32,
    last_update: u64,
    min_rtt: Option<Duration>,
}

impl Cubic {
    /// A CUBIC with `beta` and `abe` of the endpoint's options.
    pub fn new(config: &Config) -> Self {
        Self::keeping(Backoff::new(config, BETA, BETA_ECN))
    }

    const fn keeping(backoff: Backoff) -> Self {
        let beta = beta_of(backoff);
        Self {
            backoff,
            reno_acks_per_segment_8: 8 * (BETA_SCALE + beta) / 3 / (BETA_SCALE - beta),
            version: Version::Rfc9438,
            exit: SlowStartExit::HyStart(HyStart::new()),
            w_max: 0,
            origin: 0,
            k: 0,
            epoch_start: None,
            w_est: 0,
            acked: 0,
            acks_per_segment: FEWEST_ACKS,
            last_cwnd: 0,
            last_update: 0,
            min_rtt: None,
        }
    }

    /// A CUBIC that leaves slow start by HyStart++ (RFC 9406).
    pub fn with_hystart_plus_plus(config: &Config) -> Self {
        Self {
            exit: SlowStartExit::PlusPlus(HyStartPlusPlus::new()),
            ..Self::new(config)
        }
    }

    /// A CUBIC that leaves slow start only on a loss or a mark.
    pub fn without_hystart(config: &Config) -> Self {
        Self {
            exit: SlowStartExit::Congestion,
            ..Self::new(config)
        }
    }

    /// The CUBIC of 2005 (Rhee and Xu, PFLDnet), in Linux until 2.6.24 and in ns-2: it keeps 0.8 of the window, limits
    /// growth beyond W_max, and leaves slow start on congestion.
    pub fn of_2005(config: &Config) -> Self {
        Self {
            version: Version::Of2005,
            exit: SlowStartExit::Congestion,
            ..Self::keeping(Backoff::new(config, BETA_2005, BETA_ECN))
        }
    }

    #[cold]
    #[inline(never)]
    fn start_epoch(&mut self, now: u64, cwnd: u32, acked: u32) {
        self.epoch_start = Some(now);
        self.acked = acked;
        self.w_est = cwnd;
        if self.w_max <= cwnd {
            self.k = 0;
            self.origin = cwnd;
        } else {
            // K = cbrt((W_max − cwnd) / C), in 1024ths of a second.
            self.k =
                cube_root(u64::from(self.w_max - cwnd) * ((1 << (10 + 3 * TIME_BITS)) / C_SCALED));
            self.origin = self.w_max;
        }
    }

    /// Grows with `acked` segments: sets how many must be acknowledged per segment of growth for the window to follow W(t).
    #[inline(always)]
    fn grow_with(&mut self, ticks: u64, acked: u32, window: &mut Window) {
        self.acked += acked;
        if self.last_cwnd != window.cwnd || ticks - self.last_update > UPDATE_TICKS {
            if self.epoch_start.is_none() || ticks != self.last_update {
                return self.grow_anew(ticks, acked, window);
            }
            self.follow_reno(window.cwnd);
        }
        window.additive_increase(acked, self.acks_per_segment);
    }

    /// The same at a new instant.
    #[inline(never)]
    fn grow_anew(&mut self, ticks: u64, acked: u32, window: &mut Window) {
        self.last_cwnd = window.cwnd;
        self.last_update = ticks;
        if self.epoch_start.is_none() {
            self.start_epoch(ticks, window.cwnd, acked);
        }
        self.follow_cubic(ticks, window.cwnd);
        self.follow_reno(window.cwnd);
        window.additive_increase(acked, self.acks_per_segment);
    }

    /// Sets how many segments must be acknowledged per segment of growth.
    fn grow_per(&mut self, acks: u32) {
        let fewest = if self.version == Version::Of2005 {
            1
        } else {
            FEWEST_ACKS
        };
        self.acks_per_segment = acks.max(fewest);
    }

    fn follow_cubic(&mut self, ticks: u64, cwnd: u32) {
        let lead = self
            .min_rtt
            .unwrap_or(Duration::ZERO)
            .as_nanos()
            .div_ceil(JIFFY);
        let elapsed = ticks - self.epoch_start.unwrap_or(ticks) + lead;
        let t = (elapsed << TIME_BITS) / 250;
        let offset = t.abs_diff(self.k);
        let change =
            ((C_SCALED as u128 * u128::from(offset).pow(3)) >> (10 + 3 * TIME_BITS)) as u64;
        let target = if t < self.k {
            u64::from(self.origin).saturating_sub(change)
        } else {
            u64::from(self.origin) + change
        };
        let cwnd = u64::from(cwnd);
        let mut acks = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            100 * cwnd
        } as u32;
        if self.version == Version::Of2005 && t >= self.k {
            let rtt_ms = self.min_rtt.unwrap_or(Duration::ZERO).as_micros() / 1000;
            let least = 100 * cwnd / (MOST_PER_100_MS * rtt_ms.max(1));
            acks = acks.max(least as u32);
        }
        if self.w_max == 0 {
            // Before the first congestion event: grow by at least 5 % per round trip.
            acks = acks.min(20);
        }
        self.grow_per(acks);
    }

    /// RFC 9438 §4.3: do not grow more slowly than Reno would.
    fn follow_reno(&mut self, cwnd: u32) {
        let per_segment =
            ((u64::from(cwnd) * u64::from(self.reno_acks_per_segment_8)) >> 3).max(1) as u32;
        if self.acked > per_segment {
            let segments = (self.acked - 1) / per_segment;
            self.acked -= segments * per_segment;
            self.w_est += segments;
        }
        if self.w_est > cwnd {
            self.grow_per(self.acks_per_segment.min(cwnd / (self.w_est - cwnd)));
        }
    }

    /// Takes the RTT of what was delivered.
    #[inline(always)]
    fn learn(&mut self, ticks: u64, ack: &AckEvent, window: &mut Window) {
        let Some(rtt) = ack.rtt else { return };
        if self
            .epoch_start
            .is_some_and(|start| ticks - start < SETTLE_TICKS)
        {
            return;
        }
        let min_rtt = self.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.min_rtt = Some(min_rtt);
        match &mut self.exit {
            SlowStartExit::HyStart(detector) => detector.on_sample(rtt, min_rtt, ack, window),
            SlowStartExit::PlusPlus(detector) => detector.on_sample(rtt, ack, window),
            SlowStartExit::Congestion => {}
        }
    }

    /// Lets the window grow if it is used.
    #[inline(always)]
    fn grow(&mut self, ticks: u64, ack: &AckEvent, window: &mut Window) {
        if !window.is_used() {
            return;
        }
        let mut acked = ack.delivered;
        if window.in_slow_start() {
            if let SlowStartExit::PlusPlus(detector) = &mut self.exit {
                acked = detector.growth(acked);
            }
            acked = window.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        self.grow_with(ticks, acked, window);
    }
}

/// The kernel's clock.
const fn ticks(now: Time) -> u64 {
    now.as_nanos() / JIFFY
}

/// The decrease factor on a loss, in 1024ths.
const fn beta_of(backoff: Backoff) -> u32 {
    let Share {
        numerator,
        denominator,
    } = backoff.on_loss;
    numerator / (denominator / BETA_SCALE)
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        match self.exit {
            SlowStartExit::HyStart(_) => "cubic",
            SlowStartExit::PlusPlus(_) => "cubic-hystart++",
            SlowStartExit::Congestion if self.version == Version::Of2005 => "cubic-2005",
            SlowStartExit::Congestion => "cubic-nohystart",
        }
    }

    fn on_delivery(&mut self, ack: &AckEvent, window: &mut Window) {
        self.learn(ticks(ack.now), ack, window);
    }

    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window) {
        self.grow(ticks(ack.now), ack, window);
    }

    fn on_progress(&mut self, ack: &AckEvent, window: &mut Window) {
        let ticks = ticks(ack.now);
        self.learn(ticks, ack, window);
        self.grow(ticks, ack, window);
    }

    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32 {
        self.epoch_start = None;
        // Fast convergence (RFC 9438 §4.7).
        self.w_max = if window.cwnd < self.w_max {
            (u64::from(window.cwnd) * u64::from(BETA_SCALE + beta_of(self.backoff))
                / u64::from(2 * BETA_SCALE)) as u32
        } else {
            window.cwnd
        };
        self.backoff.left(signal, window.cwnd)
    }

    fn on_timeout(&mut self, now: Time, next: Seq) {
        let mut exit = std::mem::replace(&mut self.exit, SlowStartExit::Congestion);
        match &mut exit {
            SlowStartExit::HyStart(detector) => detector.restart(now, next),
            SlowStartExit::PlusPlus(detector) => detector.finish(),
            SlowStartExit::Congestion => {}
        }
        *self = Self {
            exit,
            version: self.version,
            ..Self::keeping(self.backoff)
        };
    }

    /// Excludes the time without anything in flight from W(t) (RFC 9438 §5.8).
    fn on_restart(&mut self, idle: Duration, now: Time) {
        if let Some(start) = &mut self.epoch_start {
            *start = (*start + idle.as_nanos() / JIFFY).min(now.as_nanos() / JIFFY);
        }
    }
}

/// The cube root as Linux finds it: one step of Newton's method from a first value for the leading three to six binary
/// digits. It may be off by 0.2 %.
fn cube_root(value: u64) -> u64 {
    let digits = u64::BITS - value.leading_zeros();
    if digits < 7 {
        return (u64::from(FIRST_ROOTS[value as usize]) + 35) >> 6;
    }
    // A third of the digits, less one: what the root's digits exceed those of the first value.
    let shift = ((digits * 84) >> 8) - 1;
    let first = u64::from(FIRST_ROOTS[(value >> (3 * shift)) as usize]) + 10;
    let root = (first << shift) >> 6;
    // Newton: (2x + value / x²) / 3, with x(x − 1) for x² and 341/1024 for a third.
    ((2 * root + value / (root * (root - 1))) * 341) >> 10
}

/// First values of the cube roots of 0 to 63, in 64ths: the constants of Linux's CUBIC.
const FIRST_ROOTS: [u8; 64] = [
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156, 157, 161, 164, 168,
    170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199, 200, 202, 204, 206, 209, 211, 213,
    215, 217, 219, 221, 222, 224, 225, 227, 229, 231, 232, 234, 236, 237, 239, 240, 242, 244, 245,
    246, 248, 250, 251, 252, 254,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Abe;

    fn used(cwnd: u32, ssthresh: u32) -> Window {
        Window {
            ssthresh,
            limiting: true,
            ..Window::new(cwnd)
        }
    }

    fn plain() -> Cubic {
        Cubic::new(&Config::default())
    }

    /// RFC 9438 §4.6: 0.7 of the window, at least 2; RFC 8511 §3: 0.85 on ECN.
    #[test]
    fn congestion_takes_three_tenths_and_abe_half_of_that() {
        let window = used(1000, 1000);
        let left = |abe, signal| {
            let config = Config {
                abe,
                ..Config::default()
            };
            Cubic::new(&config).on_congestion(signal, &window)
        };
        assert_eq!(left(Abe::Off, Signal::Loss), 700);
        assert_eq!(left(Abe::Recommended, Signal::EcnEcho), 850);
        assert_eq!(left(Abe::Recommended, Signal::Loss), 700);
        assert_eq!(plain().on_congestion(Signal::Loss, &used(2, 2)), 2);
    }

    /// With beta 0.5: half of the window is kept, W_max is 0.75 of a window that did not reach it (RFC 9438 §4.7), and
    /// Reno's alpha is 3·0.5/1.5 = 1, a segment per segment acknowledged and window: 8 eighths (§4.3).
    #[test]
    fn another_beta_changes_the_growth_too() {
        let config = Config {
            beta: Some(0.5),
            ..Config::default()
        };
        let mut cubic = Cubic::new(&config);
        assert_eq!(cubic.on_congestion(Signal::Loss, &used(2000, 2000)), 1000);
        assert_eq!(cubic.on_congestion(Signal::Loss, &used(1000, 1000)), 500);
        assert_eq!(cubic.w_max, 750);
        assert_eq!(cubic.reno_acks_per_segment_8, 8);
        cubic.on_timeout(Time::ZERO, Seq(0));
        assert_eq!(cubic.on_congestion(Signal::Loss, &used(1000, 1000)), 500);
    }

    /// RFC 9438 §4.7: if the window did not reach W_max, W_max becomes (1 + beta)/2 of the window: 1000·0.85 = 850.
    #[test]
    fn fast_convergence_lowers_w_max() {
        let mut cubic = plain();
        cubic.on_congestion(Signal::Loss, &used(2000, 2000));
        cubic.on_congestion(Signal::Loss, &used(1000, 1000));
        assert_eq!(cubic.w_max, 850);
    }

    /// RFC 9438 §4.2: K = cbrt(W_max·(1 − beta)/C) = cbrt(1000·0.3/0.4) = 9.086 s; there W = W_max.
    #[test]
    fn the_window_is_back_at_its_maximum_after_k() {
        let mut cubic = plain();
        let ssthresh = cubic.on_congestion(Signal::Loss, &used(1000, 1000));
        let mut window = used(ssthresh, ssthresh);
        cubic.start_epoch(0, 700, 1);
        assert_eq!(cubic.k, 9294); // 9.086 s · 1024 is 9304; 410/1024 is more than 0.4, and the root is Linux's
        // An RTT of 100 ms, a window acknowledged in each, for 9.1 s.
        cubic.min_rtt = Some(Duration::from_millis(100));
        for round in 0..91_u64 {
            let cwnd = window.cwnd;
            for n in 0..cwnd {
                let now =
                    Time::from_micros(round * 100_000 + u64::from(n) * 100_000 / u64::from(cwnd));
                let ack = AckEvent {
                    now,
                    delivered: 1,
                    acked: 1,
                    marks: 0,
                    rtt: None,
                    una: Seq(0),
                    next: Seq(0),
                };
                cubic.on_ack(&ack, &mut window);
            }
        }
        assert!((990..=1000).contains(&window.cwnd), "{}", window.cwnd);
    }

    /// RFC 9438 §4.3: on a short path the window follows Reno's: alpha = 3·0.3/1.7 = 0.53 segments per round.
    #[test]
    fn on_a_short_path_it_grows_as_reno_does() {
        let mut cubic = plain();
        let ssthresh = cubic.on_congestion(Signal::Loss, &used(20, 20));
        let mut window = used(ssthresh, ssthresh);
        cubic.min_rtt = Some(Duration::from_millis(20));
        for n in 0..551 {
            let ack = AckEvent {
                now: Time::from_micros(n * 1000),
                delivered: 1,
                acked: 1,
                marks: 0,
                rtt: None,
                una: Seq(0),
                next: Seq(0),
            };
            cubic.on_ack(&ack, &mut window);
        }
        // dW/dn = 0.53/W from 14: W² = 196 + 2·0.533·551 = 783, W = 28.
        assert!((27..=29).contains(&window.cwnd), "{}", window.cwnd);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "within a tolerance")]
    fn the_cube_root_is_within_a_fifth_of_a_percent() {
        for segments in 1..100_000_u64 {
            let value = segments * ((1 << 40) / C_SCALED);
            let exact = (value as f64).cbrt();
            let error = (cube_root(value) as f64 - exact) / exact;
            assert!(error.abs() < 0.002, "{segments}: {error}");
        }
        // Of 300 segments: 9.083 s · 1024 is 9301 rounded down.
        assert_eq!(cube_root(300 * ((1 << 40) / C_SCALED)), 9294);
        for small in 0..64_u64 {
            let exact = (small as f64).cbrt().round() as u64;
            assert!(cube_root(small).abs_diff(exact) <= 1, "{small}");
        }
    }

    /// Delays that rise by half of the path's 40 ms in a round end slow start with HyStart (Ha and Rhee 2011 §4.1: an
    /// eighth is enough). Without it only congestion does.
    #[test]
    fn without_hystart_delay_does_not_end_slow_start() {
        let ends = |mut cubic: Cubic| {
            let mut window = used(100, Window::INFINITE);
            for (n, rtt) in [40, 60].into_iter().flat_map(|rtt| [rtt; 20]).enumerate() {
                let at = |segment| Seq(1000 * segment);
                let ack = AckEvent {
                    now: Time::from_millis(2000 + 5 * n as u64),
                    delivered: 1,
                    acked: 1,
                    marks: 0,
                    rtt: Some(Duration::from_millis(rtt)),
                    una: at(n as u32),
                    next: at(n as u32 + 20),
                };
                cubic.on_delivery(&ack, &mut window);
            }
            !window.in_slow_start()
        };
        assert!(ends(plain()));
        assert!(!ends(Cubic::without_hystart(&Config::default())));
    }

    /// Rhee and Xu 2005: 0.8 of the window is kept. Ten seconds past W_max, C·t³ is 400 segments above the window;
    /// S_max allows 16 of them in 100 ms: with that RTT and a window of 1001, one per 62 acknowledged.
    #[test]
    fn the_cubic_of_2005_keeps_more_and_grows_with_a_bound() {
        let mut cubic = Cubic::of_2005(&Config::default());
        let ssthresh = cubic.on_congestion(Signal::Loss, &used(1000, 1000));
        assert_eq!(ssthresh, 799); // 1000 · 819 / 1024
        cubic.min_rtt = Some(Duration::from_millis(100));
        for (seconds, cwnd) in [(1, 1000), (11, 1001)] {
            cubic.grow_with(ticks(Time::from_secs(seconds)), 1, &mut used(cwnd, 1000));
        }
        assert_eq!(cubic.acks_per_segment, 100 * 1001 / 1600);
    }
}
