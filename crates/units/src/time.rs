//! A point in time and a span of time are different types: subtracting times yields a span.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

const NANOS_PER_MICRO: u64 = 1_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point on the run's clock: whole nanoseconds since the run began (up to 584 years).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
pub struct Time(u64);

/// A span of time: whole nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
pub struct Duration(u64);

impl Time {
    /// The instant at which the run begins.
    pub const ZERO: Self = Self(0);
    /// Later than any time that a run reaches; stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the run began.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// The instant `micros` microseconds after the run began.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * NANOS_PER_MICRO)
    }
    /// The instant `millis` milliseconds after the run began.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * NANOS_PER_MILLI)
    }
    /// The instant `secs` seconds after the run began.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * NANOS_PER_SEC)
    }
    /// Nanoseconds since the run began.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the run began, for output.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// The span from `earlier` to this time; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
    /// The time `span` before this one; the run's beginning if that would be earlier.
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
    /// The time `span` after this one; [`Time::MAX`] if it overflows.
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span; stands for "without end".
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * NANOS_PER_MICRO)
    }
    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * NANOS_PER_MILLI)
    }
    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * NANOS_PER_SEC)
    }
    /// A span of `secs` seconds, rounded to the nearest nanosecond; negative and NaN give zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * NANOS_PER_SEC as f64 + 0.5) as u64)
    }
    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The span in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / NANOS_PER_MICRO
    }
    /// The span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / NANOS_PER_MILLI
    }
    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// The span in milliseconds, for output.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_MILLI as f64
    }
    /// This span and `other`; [`Duration::MAX`] if the sum overflows.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// This span less `other`; zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// This span times `factor`; [`Duration::MAX`] if it overflows.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
    /// True for a span of zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0 + span.0)
    }
}
impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        self.0 += span.0;
    }
}
impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration(self.0 - earlier.0)
    }
}
impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

/// The instant so long after the run's beginning, at most [`Time::MAX`].
impl From<core::time::Duration> for Time {
    fn from(since: core::time::Duration) -> Self {
        Self(Duration::from(since).0)
    }
}
/// The span since the run's beginning.
impl From<Time> for core::time::Duration {
    fn from(at: Time) -> Self {
        Self::from_nanos(at.0)
    }
}
/// The same span, at most [`Duration::MAX`].
impl From<core::time::Duration> for Duration {
    fn from(span: core::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}
impl From<Duration> for core::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_nanos(span.0)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.as_secs_f64())
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Written in the largest unit that leaves no fraction: `100 ms`, `1500 us`, `2 s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("s", NANOS_PER_SEC),
            ("ms", NANOS_PER_MILLI),
            ("us", NANOS_PER_MICRO),
        ];
        for (unit, nanos) in units {
            if self.0 % nanos == 0 && (self.0 > 0 || unit == "ms") {
                return write!(f, "{} {unit}", self.0 / nanos);
            }
        }
        write!(f, "{} ns", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_span_is_written_in_its_largest_whole_unit() {
        assert_eq!(Duration::from_millis(100).to_string(), "100 ms");
        assert_eq!(Duration::from_secs(2).to_string(), "2 s");
        assert_eq!(Duration::from_micros(1500).to_string(), "1500 us");
        assert_eq!(Duration::from_nanos(7).to_string(), "7 ns");
        assert_eq!(Duration::ZERO.to_string(), "0 ms");
    }

    #[test]
    fn spans_of_the_standard_library_are_the_same_in_nanoseconds() {
        let span = core::time::Duration::from_micros(1500);
        assert_eq!(Duration::from(span), Duration::from_micros(1500));
        assert_eq!(Time::from(span), Time::from_micros(1500));
        assert_eq!(
            core::time::Duration::from(Duration::from_micros(1500)),
            span
        );
        assert_eq!(core::time::Duration::from(Time::from_micros(1500)), span);
        assert_eq!(Duration::from(core::time::Duration::MAX), Duration::MAX);
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Duration::from_secs_f64(0.1), Duration::from_millis(100));
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
    }
}
