//! Pacing: segments leave at the congestion control's rate. As in Linux's TCP without the fq discipline, they leave in
//! bursts: what the rate sends in about a millisecond, at least two segments.

use sojourn_units::{Rate, Time, cold_path};

/// Fewest segments of a burst (Linux's tcp_min_tso_segs).
const MIN_BURST: u64 = 2;
/// Below this rate a burst may be a single segment (BBR's min_tso_segs).
const SINGLE_BELOW_BPS: u64 = 1_200_000;
/// Short bursts are what the rate sends in a second divided by two to the power of this, 244 µs (Prague's prague_burst_shift).
const SHORT_BURST_SHIFT: u8 = 12;
/// Most bytes of a burst: those of a GSO packet.
pub(super) const MAX_BURST_BYTES: u64 = 65_536;
/// Bursts that end before this segment of a connection do not delay later ones (Linux's TCP).
const FIRST_PACED: u64 = 10;

/// Decides when segments may leave.
#[derive(Debug)]
pub(super) struct Pacer {
    /// See [`crate::Config::pacing_shift`].
    shift: u8,
    /// Fewest segments of a burst.
    least: u64,
    rate: Option<Rate>,
    /// No new burst leaves before this time. Each transmission advances it.
    release: Time,
    /// When the last burst began, and how much may still leave with it.
    burst_at: Time,
    burst_bytes: u64,
    /// Later bursts wait for the last one.
    is_waited_for: bool,
    /// Segments sent so far.
    segments: u64,
    /// When the host's own queue is short enough again.
    queue_short: Time,
}

impl Pacer {
    /// Without a rate.
    pub(super) const fn new(shift: u8) -> Self {
        Self {
            shift,
            least: MIN_BURST,
            rate: None,
            release: Time::ZERO,
            burst_at: Time::ZERO,
            burst_bytes: 0,
            is_waited_for: false,
            segments: 0,
            queue_short: Time::ZERO,
        }
    }

    /// If `wanted`, bursts are short: at least one segment ([`crate::cc::Capabilities::short_bursts`]).
    pub(super) const fn with_short_bursts(self, wanted: bool) -> Self {
        if !wanted {
            return self;
        }
        Self {
            shift: SHORT_BURST_SHIFT,
            least: 1,
            ..self
        }
    }

    /// See [`crate::Config::pacing_shift`].
    #[inline(always)]
    pub(super) const fn shift(&self) -> u32 {
        self.shift as u32
    }

    /// Sets the rate; `None` for no pacing. Segments sent before there was a rate do not delay later ones.
    pub(super) fn set_rate(&mut self, rate: Option<Rate>, now: Time) {
        if self.rate.is_none() {
            self.release = now;
        }
        self.rate = rate;
    }

    /// When the rate allows the next burst.
    pub(super) const fn paced_until(&self) -> Time {
        self.release
    }

    /// When the next segment may leave.
    pub(super) fn release(&self) -> Time {
        self.release.max(self.queue_short)
    }

    /// True if segments must wait at `now`.
    pub(super) fn holds(&self, now: Time) -> bool {
        if self.release.max(self.queue_short) <= now {
            return false;
        }
        cold_path(); // most congestion controls do not pace
        let is_paced = self.release > now && (self.burst_bytes == 0 || self.burst_at != now);
        is_paced || self.queue_short > now
    }

    /// Sends no burst before `until`, when the host's own queue is short enough again.
    pub(super) const fn hold_back(&mut self, until: Time) {
        self.queue_short = until;
    }

    /// Accounts for a segment with `bytes` of payload. `burst`: the number of segments that leave together, if that is
    /// already decided.
    pub(super) fn on_send(&mut self, bytes: u32, mss: u32, burst: Option<u32>, now: Time) {
        let Some(rate) = self.rate else { return };
        cold_path(); // most congestion controls do not pace
        if self.burst_bytes == 0 || self.burst_at != now {
            self.begin_burst(rate, u64::from(mss), burst, now);
        }
        let bytes = u64::from(bytes);
        self.burst_bytes = self.burst_bytes.saturating_sub(bytes.max(1));
        self.segments += 1;
        if self.is_waited_for {
            self.release += rate.tx_time(bytes);
        }
    }

    /// Segments that leave together; `None` without pacing.
    pub(super) fn burst_segments(&self, mss: u64) -> Option<u32> {
        self.rate.map(|rate| {
            cold_path();
            self.segments_at(rate, mss) as u32
        })
    }

    /// How many of `most` segments leave at one instant: a burst, or the first ones of a connection, which do not wait.
    pub(super) fn at_once(&self, most: u32, mss: u64) -> u32 {
        let Some(rate) = self.rate else { return most };
        let burst = self.segments_at(rate, mss);
        let bursts = FIRST_PACED
            .saturating_sub(self.segments)
            .div_ceil(burst)
            .max(1);
        most.min((bursts * burst) as u32)
    }

    fn segments_at(&self, rate: Rate, mss: u64) -> u64 {
        let at_least = if rate.as_bps() < SINGLE_BELOW_BPS {
            1
        } else {
            self.least
        };
        let bytes = self.share(rate).min(MAX_BURST_BYTES);
        (bytes / mss.max(1)).max(at_least)
    }

    /// Bytes that this rate sends in the time of a burst.
    const fn share(&self, rate: Rate) -> u64 {
        (rate.as_bps() / 8) >> self.shift()
    }

    /// The same of the rate; `None` without pacing.
    pub(super) fn paced_share(&self) -> Option<u64> {
        self.rate.map(|rate| self.share(rate))
    }

    #[inline(never)]
    fn begin_burst(&mut self, rate: Rate, mss: u64, burst: Option<u32>, now: Time) {
        let segments = burst.map_or_else(|| self.segments_at(rate, mss), u64::from);
        // A burst that leaves late may make up for half of its own duration (Linux's credit for late timers).
        let late = now.saturating_since(self.release);
        let credit = late.min(rate.tx_time(segments * mss) / 2);
        self.release = self.release.max(now);
        self.is_waited_for = self.segments + segments >= FIRST_PACED;
        if self.is_waited_for {
            self.release = self.release.saturating_sub(credit);
        }
        self.burst_at = now;
        self.burst_bytes = segments * mss;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// A pacer at 16 Mbit/s, 0.5 ms per segment of 1000 bytes, that has sent its first segments.
    fn pacer() -> Pacer {
        let mut pacer = Pacer {
            segments: FIRST_PACED,
            ..Pacer::new(10)
        };
        pacer.set_rate(Some(Rate::from_mbps(16)), Time::from_millis(10));
        pacer
    }

    /// 49 Mbit/s are 1495 bytes in a 4096th of a second: a segment leaves every 0.16 ms. At 99 Mbit/s there are three.
    #[test]
    fn short_bursts_may_be_of_one_segment() {
        let at = |mbps| {
            let mut pacer = Pacer::new(10).with_short_bursts(true);
            pacer.set_rate(Some(Rate::from_mbps(mbps)), Time::ZERO);
            pacer.burst_segments(u64::from(MSS))
        };
        assert_eq!((at(2), at(49), at(99)), (Some(1), Some(1), Some(3)));
    }

    /// 16 Mbit/s are 1953 bytes in a 1024th of a second, which is less than two segments. So two segments leave, and
    /// the next burst a millisecond later.
    #[test]
    fn the_next_burst_leaves_after_the_time_that_the_last_takes_at_the_rate() {
        let mut pacer = pacer();
        let start = Time::from_millis(10);
        pacer.on_send(MSS, MSS, None, start);
        assert!(!pacer.holds(start));
        pacer.on_send(MSS, MSS, None, start);
        assert!(pacer.holds(start));
        assert_eq!(pacer.release(), Time::from_millis(11));
        assert!(!pacer.holds(Time::from_millis(11)));
    }

    /// Eight segments leave at once, and so do the ninth and the tenth. The eleventh waits for these two.
    #[test]
    fn the_first_segments_do_not_wait() {
        let start = Time::from_millis(10);
        let mut pacer = Pacer::new(10);
        pacer.set_rate(Some(Rate::from_mbps(16)), start);
        for _ in 0..10 {
            assert!(!pacer.holds(start));
            pacer.on_send(MSS, MSS, None, start);
        }
        assert!(pacer.holds(start));
        assert_eq!(pacer.release(), Time::from_millis(11));
    }

    /// Observed on 6.1.192 with BBR, whose window is of eleven segments after a first acknowledgement: ten leave, and the
    /// first send buffer is filled up with as many.
    #[test]
    fn the_first_segments_or_a_burst_leave_at_once() {
        let mut pacer = Pacer::new(10);
        assert_eq!(pacer.at_once(11, u64::from(MSS)), 11);
        pacer.set_rate(Some(Rate::from_mbps(16)), Time::ZERO);
        for (sent, at_once) in [(0, 10), (1, 10), (2, 8), (9, 2), (10, 2)] {
            pacer.segments = sent;
            assert_eq!(pacer.at_once(11, u64::from(MSS)), at_once, "{sent} sent");
        }
        assert_eq!(pacer.at_once(1, u64::from(MSS)), 1);
    }

    /// A burst that is 10 ms late makes up for half of its millisecond, no more.
    #[test]
    fn a_late_burst_makes_up_for_half_of_its_own_time() {
        let mut pacer = pacer();
        for now in [Time::from_millis(10), Time::from_millis(21)] {
            pacer.on_send(MSS, MSS, None, now);
            pacer.on_send(MSS, MSS, None, now);
        }
        assert_eq!(pacer.release(), Time::from_micros(21_500));
    }

    /// At 1 Mbit/s a segment takes 8 ms, and each waits for the one before.
    #[test]
    fn below_1200_kbit_per_second_segments_leave_one_by_one() {
        let mut pacer = pacer();
        pacer.set_rate(Some(Rate::from_mbps(1)), Time::from_millis(10));
        pacer.on_send(MSS, MSS, None, Time::from_millis(10));
        assert!(pacer.holds(Time::from_millis(10)));
        assert_eq!(pacer.release(), Time::from_millis(18));
    }

    /// The part of a burst that did not fit in the window leaves with the next burst.
    #[test]
    fn the_remainder_of_a_burst_does_not_leave_alone() {
        let mut pacer = pacer();
        pacer.on_send(MSS, MSS, None, Time::from_millis(10));
        assert!(pacer.holds(Time::from_micros(10_100)));
        assert!(!pacer.holds(Time::from_micros(10_500)));
    }

    #[test]
    fn a_long_queue_in_the_host_holds_segments_back() {
        let mut pacer = Pacer::new(10);
        pacer.hold_back(Time::from_millis(12));
        assert!(pacer.holds(Time::from_millis(10)));
        assert_eq!(pacer.release(), Time::from_millis(12));
        assert!(!pacer.holds(Time::from_millis(12)));
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::new(10);
        for _ in 0..100 {
            pacer.on_send(MSS, MSS, None, Time::ZERO);
        }
        assert!(!pacer.holds(Time::ZERO));
    }
}
