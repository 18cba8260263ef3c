//! Round-trip times: smoothed RTT, variance, retransmission timeout (RFC 6298) and minimum.
//!
//! Departures from RFC 6298 §2, as in Linux: RTTVAR rises at once to the largest mean deviation of the current round,
//! and at the end of a round falls by a quarter of its distance to that maximum. If the RTT falls, the mean deviation
//! rises at an eighth of the usual rate. The floor of 200 ms applies to the variance term, so that RTO ≥ SRTT + 200 ms.

use sojourn_units::{Duration, Time};

use crate::config::Clock;
use crate::seq::Seq;

/// RFC 6298 §2.1: RTO before the first measurement.
pub const INITIAL_RTO: Duration = Duration::from_secs(1);
/// RFC 6298 §5.7: RTO for data after a handshake without a measurement.
const FALLBACK_RTO: Duration = Duration::from_secs(3);
/// Linux's TCP_RTO_MAX.
const MAX_RTO: Duration = Duration::from_secs(120);
/// [`RttEstimator::range`] is a 256th of the smoothed RTT to both sides.
const RANGE_SHIFT: u32 = 8;
/// How long a minimum is kept (Linux's tcp_min_rtt_wlen).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

/// The smoothed RTT after the first sample.
pub fn smoothed_first(rtt: Duration) -> Duration {
    Duration::from_micros(rtt.as_micros().max(1))
}

/// The smoothed RTT, of eight times as many microseconds.
pub const fn smoothed(srtt_8: i64) -> Duration {
    Duration::from_nanos((srtt_8 as u64 * 1000) >> 3)
}

/// The RTT estimator of one connection. As in Linux, it works in microseconds.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    /// Floor of the variance term; 0 with RFC 6298's rules.
    variance_floor: i64,
    /// Floor of the timeout with RFC 6298's rules; 0 with Linux's.
    timeout_floor: i64,
    /// A sample takes the slow path if `srtt_8` is at most this. 0 with Linux's rules: only the first sample does.
    /// [`i64::MAX`] with RFC 6298's rules: every sample does. One comparison thus tests for both.
    slow_path_up_to: i64,
    /// RTO before the first sample.
    initial: Duration,
    /// Eight times the smoothed RTT; 0 before the first sample.
    srtt_8: i64,
    /// Four times the mean deviation.
    mdev_4: i64,
    /// The largest `mdev_4` of the current round, at least the floor.
    mdev_max: i64,
    /// Four times RTTVAR.
    rttvar_4: i64,
    /// SND.NXT when the round began.
    round_end: Seq,
    min: MinFilter,
    /// The timeout is a whole number of its ticks.
    clock: Clock,
}

impl RttEstimator {
    /// Linux's estimator, without samples. `rto_min` is the floor of the variance term.
    pub fn new(rto_min: Duration, clock: Clock) -> Self {
        Self {
            clock,
            variance_floor: rto_min.as_micros() as i64,
            timeout_floor: 0,
            slow_path_up_to: 0,
            initial: INITIAL_RTO,
            srtt_8: 0,
            mdev_4: 0,
            mdev_max: 0,
            rttvar_4: 0,
            round_end: Seq(0),
            min: MinFilter::new(),
        }
    }

    /// RFC 6298's estimator, without samples. `rto_min` is the floor of the timeout.
    pub fn rfc6298(rto_min: Duration, clock: Clock) -> Self {
        Self {
            variance_floor: 0,
            timeout_floor: rto_min.as_micros() as i64,
            slow_path_up_to: i64::MAX,
            ..Self::new(Duration::ZERO, clock)
        }
    }

    /// Takes a sample. Its segment was sent only once, or its timestamp tells which transmission was acknowledged
    /// (Karn's algorithm, RFC 6298 §3). `una` and `next` are SND.UNA and SND.NXT, which separate the rounds.
    #[inline(always)]
    pub fn sample(&mut self, rtt: Duration, now: Time, una: Seq, next: Seq) {
        let micros = (rtt.as_micros() as i64).max(1);
        self.min.update(rtt, now);
        if self.srtt_8 <= self.slow_path_up_to {
            self.sample_slow_path(micros, next);
            return;
        }
        let error = micros - (self.srtt_8 >> 3);
        self.srtt_8 += error;
        let mut change = error.abs() - (self.mdev_4 >> 2);
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev_4 += change;
        if self.mdev_4 > self.mdev_max {
            self.mdev_max = self.mdev_4;
            self.rttvar_4 = self.rttvar_4.max(self.mdev_max);
        }
        if una.after(self.round_end) {
            if self.mdev_max < self.rttvar_4 {
                self.rttvar_4 -= (self.rttvar_4 - self.mdev_max) >> 2;
            }
            self.round_end = next;
            self.mdev_max = self.variance_floor;
        }
    }

    /// Takes the first sample, or with RFC 6298's rules any sample (RFC 6298 §2.3, §2.4).
    #[cold]
    #[inline(never)]
    fn sample_slow_path(&mut self, micros: i64, next: Seq) {
        if self.srtt_8 == 0 {
            self.begin(micros, next);
        } else {
            let error = micros - (self.srtt_8 >> 3);
            self.srtt_8 += error;
            self.mdev_4 += error.abs() - (self.mdev_4 >> 2);
            self.rttvar_4 = self.mdev_4;
        }
        if self.timeout_floor > 0 {
            self.rttvar_4 = self.rttvar_4.max(self.timeout_floor - (self.srtt_8 >> 3));
        }
    }

    /// Takes the first sample (RFC 6298 §2.2).
    fn begin(&mut self, micros: i64, next: Seq) {
        self.srtt_8 = micros << 3;
        self.mdev_4 = micros << 1;
        self.rttvar_4 = self.mdev_4.max(self.variance_floor);
        self.mdev_max = self.rttvar_4;
        self.round_end = next;
    }

    /// Notes that the handshake has ended without a sample.
    pub const fn handshake_gave_none(&mut self) {
        self.initial = FALLBACK_RTO;
    }

    /// The smoothed RTT; `None` before the first sample.
    pub const fn smoothed(&self) -> Option<Duration> {
        if self.srtt_8 == 0 {
            None
        } else {
            Some(smoothed(self.srtt_8))
        }
    }

    /// A range of `srtt_8` near its value, for [`RttEstimator::smoothed_within`]; `None` before the first sample.
    pub fn range(&self) -> Option<(i64, i64)> {
        let margin = self.srtt_8 >> RANGE_SHIFT;
        (self.srtt_8 > 0).then_some((self.srtt_8 - margin, self.srtt_8 + margin))
    }

    /// The smoothed RTT, if it is in this range.
    #[inline(always)]
    pub fn smoothed_within(&self, (least, most): (i64, i64)) -> Option<Duration> {
        (self.srtt_8 >= least && self.srtt_8 <= most).then(|| smoothed(self.srtt_8))
    }

    /// The retransmission timeout by Linux's rules is no less than this while `srtt_8` is no less.
    pub fn least_rto(&self, srtt_8: i64) -> Duration {
        Duration::from_micros(((srtt_8 >> 3) + self.variance_floor) as u64).min(MAX_RTO)
    }

    /// The smallest RTT of the last five minutes; `None` before the first sample.
    pub const fn min(&self) -> Option<Duration> {
        self.min.get()
    }

    /// The retransmission timeout, not backed off.
    pub fn rto(&self) -> Duration {
        if self.srtt_8 == 0 {
            return self.initial;
        }
        let timeout = Duration::from_micros(((self.srtt_8 >> 3) + self.rttvar_4) as u64);
        self.clock.kept(timeout).min(MAX_RTO)
    }

    /// The timeout doubled `backoff` times (RFC 6298 §5.5), at most 120 s.
    pub fn backed_off_rto(&self, backoff: u32) -> Duration {
        if backoff == 0 {
            return self.rto(); // the usual case
        }
        self.rto().saturating_mul(1 << backoff.min(20)).min(MAX_RTO)
    }
}

/// A minimum over the last [`MIN_RTT_WINDOW`].
#[derive(Clone, Debug)]
struct MinFilter {
    /// The minimum, with the time of its sample.
    current: (Duration, Time),
    /// The smallest later sample, which becomes the minimum when `current` has expired.
    next: (Duration, Time),
}

impl MinFilter {
    /// Stands for no sample: none is larger.
    const NONE: (Duration, Time) = (Duration::MAX, Time::ZERO);

    const fn new() -> Self {
        Self {
            current: Self::NONE,
            next: Self::NONE,
        }
    }

    #[inline(always)]
    fn update(&mut self, rtt: Duration, now: Time) {
        if rtt <= self.current.0 {
            self.current = (rtt, now);
            self.next = Self::NONE;
            return;
        }
        if rtt <= self.next.0 {
            self.next = (rtt, now);
        }
        if now.saturating_since(self.current.1) > MIN_RTT_WINDOW {
            self.current = std::mem::replace(&mut self.next, Self::NONE);
        }
    }

    const fn get(&self) -> Option<Duration> {
        match self.current.0 {
            Duration::MAX => None,
            least => Some(least),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(Duration::from_millis(200), Clock::Exact)
    }

    #[test]
    fn before_a_sample_the_rto_is_a_second() {
        assert_eq!(estimator().rto(), Duration::from_secs(1)); // RFC 6298 §2.1
    }

    /// RFC 6298 §2.2: SRTT = R, RTTVAR = R/2, RTO = R + 4·R/2: 500 ms give 500 + 1000.
    #[test]
    fn the_first_sample_gives_three_times_itself() {
        let mut rtt = estimator();
        rtt.sample(Duration::from_millis(500), Time::ZERO, Seq(0), Seq(100));
        assert_eq!(rtt.rto(), Duration::from_millis(1500));
    }

    /// Linux applies the floor of 200 ms to the variance term: 50 + max(100, 200).
    #[test]
    fn the_floor_is_on_the_variance() {
        let mut rtt = estimator();
        rtt.sample(Duration::from_millis(50), Time::ZERO, Seq(0), Seq(100));
        assert_eq!(rtt.rto(), Duration::from_millis(250));
    }

    /// RFC 6298 §2.3 with alpha 1/8: 100 ms then 180 ms give 110 ms.
    #[test]
    fn an_eighth_of_the_error_moves_the_smoothed_rtt() {
        let mut rtt = estimator();
        rtt.sample(Duration::from_millis(100), Time::ZERO, Seq(0), Seq(100));
        rtt.sample(Duration::from_millis(180), Time::ZERO, Seq(10), Seq(100));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(110)));
        assert_eq!(rtt.min(), Some(Duration::from_millis(100)));
    }

    /// Linux keeps the timeout in ticks (usecs_to_jiffies in __tcp_set_rto) and doubles these: 79 + 200 ms are 70 ticks of
    /// 4 ms, doubled twice 280, where 1116 ms would be 279.
    #[test]
    fn ticks_are_doubled() {
        let mut rtt = RttEstimator::new(Duration::from_millis(200), Clock::Jiffies);
        rtt.sample(Duration::from_millis(79), Time::ZERO, Seq(0), Seq(100));
        assert_eq!(rtt.rto(), Duration::from_millis(280));
        assert_eq!(rtt.backed_off_rto(2), Duration::from_millis(1120));
    }

    /// RFC 6298 §5.5 and Linux's ceiling of 120 s.
    #[test]
    fn back_off_doubles_up_to_two_minutes() {
        let rtt = estimator();
        assert_eq!(rtt.backed_off_rto(3), Duration::from_secs(8));
        assert_eq!(rtt.backed_off_rto(30), Duration::from_secs(120));
    }

    #[test]
    fn an_old_minimum_is_forgotten() {
        let mut rtt = estimator();
        rtt.sample(Duration::from_millis(10), Time::ZERO, Seq(0), Seq(1));
        rtt.sample(
            Duration::from_millis(30),
            Time::from_secs(299),
            Seq(0),
            Seq(1),
        );
        assert_eq!(rtt.min(), Some(Duration::from_millis(10)));
        rtt.sample(
            Duration::from_millis(40),
            Time::from_secs(301),
            Seq(0),
            Seq(1),
        );
        assert_eq!(rtt.min(), Some(Duration::from_millis(30)));
    }
}
