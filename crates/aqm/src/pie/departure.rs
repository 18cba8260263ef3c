//! The departure rate of a queue, measured in cycles (RFC 8033 §5.2).
//!
//! A cycle starts when enough is queued for the link to be busy throughout, and ends when a threshold's worth of bytes
//! has left. The last estimate is kept while the queue is short.
//!
//! Departure from Appendix A: if enough is queued at the end of a cycle, the next starts at once, as in Linux.
//! Appendix A starts it at the next departure and counts that packet, which overestimates the rate.

use sojourn_units::{Duration, Time};

/// The quantity averaged over cycles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Average {
    /// The duration of a cycle (RFC 8033).
    Time,
    /// The rate (Linux up to 5.0, ns-2).
    Rate,
}

/// A measurement of the departure rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DepartureRate {
    /// DQ_THRESHOLD: bytes per cycle, and bytes that must be queued for one to start.
    threshold: u64,
    /// Weight of a new cycle.
    weight: f64,
    average: Average,
    /// Bytes per nanosecond; the inverse if durations are averaged.
    estimate: Option<f64>,
    cycle: Option<(Time, u64)>,
}

impl DepartureRate {
    /// RFC 8033: cycles of 16 KiB; the duration of a new cycle has a weight of a quarter.
    pub const RFC8033: Self = Self::new(1 << 14, 0.25, Average::Time);
    /// Linux up to 5.0: cycles of 10 kB; the rate of a new cycle has a weight of an eighth.
    pub const DRAFT_2013: Self = Self::new(10_000, 0.125, Average::Rate);

    /// A measurement with cycles of `threshold` bytes, in which a new cycle has this `weight`.
    pub const fn new(threshold: u64, weight: f64, average: Average) -> Self {
        Self {
            threshold,
            weight,
            average,
            estimate: None,
            cycle: None,
        }
    }

    /// Notes that `bytes` left at `now` and `backlog` bytes remain. Returns the duration of the cycle if one ended.
    pub fn on_departure(&mut self, bytes: u32, backlog: u64, now: Time) -> Option<Duration> {
        if self.cycle.is_none() && backlog >= self.threshold {
            self.cycle = Some((now, 0));
        }
        let (since, counted) = self.cycle?;
        let counted = counted + u64::from(bytes);
        let span = now.saturating_since(since);
        if counted < self.threshold || span.is_zero() {
            self.cycle = Some((since, counted));
            return None;
        }
        let rate = counted as f64 / span.as_nanos() as f64;
        let sample = match self.average {
            Average::Time => 1.0 / rate,
            Average::Rate => rate,
        };
        self.estimate = Some(match self.estimate {
            Some(old) => old + self.weight * (sample - old),
            None => sample,
        });
        self.cycle = (backlog >= self.threshold).then_some((now, 0));
        Some(span)
    }

    /// How long `backlog` bytes take to leave; `None` before the first cycle has ended.
    pub fn delay(&self, backlog: u64) -> Option<Duration> {
        let estimate = self.estimate?;
        let nanos = match self.average {
            Average::Time => backlog as f64 * estimate,
            Average::Rate => backlog as f64 / estimate,
        };
        Some(Duration::from_nanos(nanos as u64))
    }

    /// Discards the estimate and the current cycle.
    pub fn restart(&mut self) {
        self.estimate = None;
        self.cycle = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_departure_rate_is_found_and_kept() {
        // 1000 B every ms is 1 MB/s. The cycle runs from the first departure, whose bytes it counts, to the one that
        // completes 10 kB: 10 packets in 9 ms. The next, 10 packets in 10 ms, has a weight of an eighth: 10/9 - (10/9
        // - 1)/8 = 1.0972 B/us. 10972 B then take 10 ms.
        let mut rate = DepartureRate::DRAFT_2013;
        assert_eq!(rate.delay(1000), None);
        let ended: alloc::vec::Vec<u64> = (0..20)
            .filter(|&ms| {
                rate.on_departure(1000, 20_000, Time::from_millis(ms))
                    .is_some()
            })
            .collect();
        assert_eq!(ended, [9, 19]);
        assert_eq!(rate.delay(10_972).map(|d| d.as_micros()), Some(9_999));
        assert_eq!(rate.on_departure(1000, 500, Time::from_millis(21)), None);
        assert!(rate.delay(1000).is_some(), "kept with a short queue");
    }

    #[test]
    fn the_rfc_averages_times() {
        // 16384 B queued at once leave in packets of 8192 B: cycles of 2 ms (1 ms with the packet at its start), then
        // 3 ms. 1 + (3 - 1)/4 = 1.5 ms per 16384 B.
        let mut rate = DepartureRate::RFC8033;
        for us in [0, 1_000, 2_500, 4_000] {
            rate.on_departure(8192, 1 << 14, Time::from_micros(us));
        }
        assert_eq!(rate.delay(1 << 14), Some(Duration::from_micros(1_500)));
    }
}
