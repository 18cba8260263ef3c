//! The capacity of a link over time: a schedule of rates, or a trace of packet deliveries.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{Duration, Rate, Time};

/// IP bytes that a link may deliver at one opportunity of a trace: a packet of the usual MTU.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// The capacity of a link over time.
#[derive(Clone, PartialEq, Debug)]
pub enum Capacity {
    /// The rate from each time on; the first time is zero, and times increase.
    Steps(Vec<(Duration, Rate)>),
    /// Times at which a packet may be delivered.
    Trace(Trace),
}

impl Capacity {
    /// A constant rate.
    pub fn constant(rate: Rate) -> Self {
        Self::Steps(alloc::vec![(Duration::ZERO, rate)])
    }

    /// The rate at a time; for a trace, its mean rate.
    pub fn at(&self, now: Time) -> Rate {
        match self {
            Self::Steps(steps) => {
                let begun = steps.partition_point(|(from, _)| Time::ZERO + *from <= now);
                steps[begun.max(1) - 1].1
            }
            Self::Trace(trace) => trace.mean_rate(),
        }
    }

    /// The rate used to size disciplines and buffers: the first of a schedule, the mean of a trace.
    pub fn nominal(&self) -> Rate {
        match self {
            Self::Steps(steps) => steps[0].1,
            Self::Trace(trace) => trace.mean_rate(),
        }
    }
}

/// A packet-delivery trace in the format of mahimahi (Netravali et al. 2015): one line per opportunity to deliver a
/// packet of 1500 bytes, with its time in whole milliseconds. The trace repeats after its last time. An opportunity
/// without a packet to deliver is lost.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// The file's name as given in the experiment.
    pub file: String,
    /// Times with the number of opportunities at each, in increasing order; the last is [`Trace::period`].
    instants: Arc<[(Duration, u32)]>,
    /// Opportunities of one period.
    total: u64,
}

/// An error in a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// The text found there.
    pub got: String,
    /// What is accepted.
    pub must: &'static str,
}

impl Trace {
    /// Reads the text of a trace called `file`.
    ///
    /// # Errors
    /// A line is not a whole number of milliseconds, or is before the line above; or there is no time above zero.
    pub fn parse(file: &str, text: &str) -> Result<Self, TraceError> {
        let mut instants: Vec<(Duration, u32)> = Vec::new();
        let mut total = 0;
        let mut lines = 0;
        for (index, line) in text.lines().enumerate() {
            lines = index + 1;
            let refuse = |must| TraceError {
                line: lines,
                got: alloc::format!("\"{}\"", line.chars().take(40).collect::<String>()),
                must,
            };
            // At most a day, so that no sum of periods comes near the end of time.
            let ms: Option<u64> = line.trim().parse().ok().filter(|ms| *ms <= 86_400_000);
            let ms = ms.ok_or_else(|| refuse("a time in whole milliseconds, at most 86400000"))?;
            let at = Duration::from_millis(ms);
            match instants.last_mut() {
                Some((last, _)) if at < *last => {
                    return Err(refuse("no earlier than the line above"));
                }
                Some((last, count)) if at == *last => *count += 1,
                _ => instants.push((at, 1)),
            }
            total += 1;
        }
        if instants.last().is_none_or(|(last, _)| last.is_zero()) {
            return Err(TraceError {
                line: lines.max(1),
                got: "no time above 0".into(),
                must: "a line per opportunity, the last above 0",
            });
        }
        Ok(Self {
            file: file.into(),
            instants: instants.into(),
            total,
        })
    }

    /// The trace in the format that [`Trace::parse`] reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (at, count) in &*self.instants {
            let line = alloc::format!("{}\n", at.as_nanos() / 1_000_000);
            text += &line.repeat(*count as usize);
        }
        text
    }

    /// The time after which the trace repeats.
    pub fn period(&self) -> Duration {
        self.instants[self.instants.len() - 1].0
    }

    /// Opportunities before `instant`.
    pub fn before(&self, instant: Duration) -> u64 {
        let period = self.period().as_nanos();
        let (rounds, within) = (instant.as_nanos() / period, instant.as_nanos() % period);
        let counted = self.instants.iter();
        let counted = counted.take_while(|(at, _)| at.as_nanos() < within);
        let in_round: u64 = counted.map(|(_, count)| u64::from(*count)).sum();
        // At a multiple of the period, the opportunities at its end are still to come.
        let at_the_end = u64::from(self.instants[self.instants.len() - 1].1);
        match (rounds, within) {
            (0, _) => in_round,
            (_, 0) => rounds * self.total - at_the_end,
            _ => rounds * self.total + in_round,
        }
    }

    /// The times of opportunities from the beginning, without end, each with its number of opportunities.
    pub fn instants(&self) -> Instants {
        Instants {
            trace: self.clone(),
            round: 0,
            index: 0,
        }
    }

    /// Packets of 1500 bytes per period, as a rate.
    pub fn mean_rate(&self) -> Rate {
        let bits = u128::from(self.total) * u128::from(OPPORTUNITY_BYTES) * 8;
        let bps = bits * 1_000_000_000 / u128::from(self.period().as_nanos());
        Rate::from_bps((bps as u64).max(1)).expect("at least one")
    }
}

/// An endless iterator over the times of a trace.
#[derive(Clone, Debug)]
pub struct Instants {
    trace: Trace,
    round: u64,
    index: usize,
}

impl Iterator for Instants {
    type Item = (Duration, u32);

    fn next(&mut self) -> Option<(Duration, u32)> {
        let (at, count) = self.trace.instants[self.index];
        let begun = self.trace.period().saturating_mul(self.round);
        self.index += 1;
        if self.index == self.trace.instants.len() {
            self.index = 0;
            self.round += 1;
        }
        Some((begun + at, count))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn disciplines_and_buffers_are_sized_by_the_first_rate() {
        let steps = Capacity::Steps(vec![
            (Duration::ZERO, Rate::from_mbps(10)),
            (Duration::from_secs(50), Rate::from_mbps(1)),
        ]);
        assert_eq!(steps.nominal(), Rate::from_mbps(10));
    }

    #[test]
    fn a_trace_begins_anew_at_its_last_instant() {
        let trace = Trace::parse("t", "1\n1\n4\n10\n").unwrap();
        let seen: Vec<(u64, u32)> = trace
            .instants()
            .take(7)
            .map(|(at, count)| (at.as_millis(), count))
            .collect();
        let expected = [(1, 2), (4, 1), (10, 1), (11, 2), (14, 1), (20, 1), (21, 2)];
        assert_eq!(seen, expected);
        // Four packets of 1500 bytes in 10 ms: 48 kbit in 10 ms.
        assert_eq!(trace.mean_rate(), Rate::from_bps(4_800_000).unwrap());
    }

    #[test]
    fn opportunities_are_counted_over_the_rounds() {
        let trace = Trace::parse("t", "1\n1\n4\n10\n").unwrap();
        for (ms, before) in [
            (0, 0),
            (1, 0),
            (2, 2),
            (10, 3),
            (11, 4),
            (12, 6),
            (20, 7),
            (25, 11),
        ] {
            assert_eq!(trace.before(MS(ms)), before, "{ms} ms");
        }
    }

    #[test]
    fn a_bad_trace_is_refused_at_its_line() {
        for (text, line) in [
            ("1\nx\n", 2),
            ("5\n\n", 2),
            ("5\n4\n", 2),
            ("", 1),
            ("0\n", 1),
            ("-1", 1),
        ] {
            assert_eq!(Trace::parse("t", text).unwrap_err().line, line, "{text:?}");
        }
    }
}
