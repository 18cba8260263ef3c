//! When a link may send: a token bucket filled at a rate, or by the opportunities of a trace.
//!
//! Either way a packet may leave when the bucket is not empty, and is charged afterwards.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sojourn_aqm::cake::framing::Framing;
use sojourn_units::{Capacity, Carried, Duration, Instants, OPPORTUNITY_BYTES, Rate, Time, Trace};

/// Decides when the next packet may leave: as Linux's HTB, or as mahimahi's link.
pub struct Shaper {
    /// Of a trace, one that only knows its mean rate.
    bucket: Bucket,
    trace: Option<Box<Opportunities>>,
}

impl Shaper {
    /// A link at rest. `burst`: bytes that a bucket holds; `overhead`: bytes that a packet takes beyond its IP length;
    /// `framing`: what it takes beyond these; `steady`: from when to when [`Shaper::utilization`] counts.
    pub fn new(
        capacity: &Capacity,
        burst: u64,
        overhead: u32,
        framing: Framing,
        steady: (Duration, Duration),
    ) -> Self {
        match capacity {
            Capacity::Steps(steps) => Self {
                bucket: Bucket::new(steps, burst, framing, steady),
                trace: None,
            },
            Capacity::Trace(trace) => {
                let mean = [(Duration::ZERO, trace.mean_rate())];
                let opportunities = Opportunities::new(trace, overhead, framing, steady);
                Self {
                    bucket: Bucket::new(&mean, burst, framing, steady),
                    trace: Some(Box::new(opportunities)),
                }
            }
        }
    }

    /// The first instant, `now` or later, at which a packet may leave.
    pub fn free_at(&mut self, now: Time) -> Time {
        match &mut self.trace {
            None => self.bucket.free_at.max(now),
            Some(opportunities) => opportunities.free_at(now),
        }
    }

    /// True if a packet may leave `now`.
    #[inline(always)]
    pub fn is_free(&mut self, now: Time) -> bool {
        match &mut self.trace {
            None => self.bucket.is_free(now),
            Some(opportunities) => opportunities.free_at(now) <= now,
        }
    }

    /// A packet of `bytes` leaves `now`.
    #[inline(always)]
    pub fn charge(&mut self, bytes: u32, now: Time) {
        match &mut self.trace {
            None => self.bucket.charge(bytes, now),
            Some(opportunities) => opportunities.charge(bytes),
        }
    }

    /// The bucket, if this is no trace.
    #[inline(always)]
    pub(crate) fn bucket(&mut self) -> &mut Bucket {
        debug_assert!(!self.is_trace());
        &mut self.bucket
    }

    /// When a packet that was charged has left: a trace's by the last opportunity that it takes, others at once.
    pub fn left_at(&mut self, now: Time) -> Time {
        match &mut self.trace {
            None => now,
            Some(opportunities) => opportunities.left_at(),
        }
    }

    /// Sets the rate from now on. Returns false for a trace.
    pub fn set_rate(&mut self, rate: Rate, now: Time) -> bool {
        if self.is_trace() {
            return false;
        }
        self.bucket.set_rate(rate, now);
        true
    }

    /// The rate at which a backlog leaves: that of the last packet, or the mean of a trace.
    pub fn rate(&self) -> Rate {
        self.bucket.rate[self.bucket.current].1
    }

    /// The share of the capacity that was used in the steady state, 0 to 1.
    pub fn utilization(&self) -> f64 {
        match &self.trace {
            None => self.bucket.carried.share(),
            Some(opportunities) => opportunities.utilization(),
        }
    }

    /// True for a serial line, which sends packet after packet.
    pub const fn is_line(&self) -> bool {
        self.bucket.burst == 0 && !self.is_trace()
    }

    /// True for a trace.
    pub const fn is_trace(&self) -> bool {
        self.trace.is_some()
    }
}

/// A token bucket, filled at a rate.
pub(crate) struct Bucket {
    /// The rate from each instant on; the first is at zero.
    rate: Vec<(Duration, Rate)>,
    /// Index in `rate` of the rate in force, and when it changes.
    current: usize,
    next_change: Time,
    /// Bytes it may send ahead of its rate after an idle time.
    burst: u64,
    framing: Framing,
    pace: Pace,
    /// When it is full again if nothing is sent. It is full at the start, as HTB's.
    full_at: Time,
    /// When it is next not empty.
    free_at: Time,
    carried: Carried,
}

/// The times that follow from the rate and the size of the last packet. Recomputed when either changes.
struct Pace {
    bytes: u32,
    tx_time: Duration,
    /// How far the link may be ahead of its rate: the time in which an empty bucket becomes full.
    ahead: Duration,
}

impl Pace {
    /// A bucket takes at most 146 years to fill, so that no time overflows.
    const LONGEST: Duration = Duration::from_nanos(u64::MAX / 4);

    fn new(rate: Rate, bytes: u32, burst: u64, framing: Framing) -> Self {
        Self {
            bytes,
            tx_time: rate.tx_time(framing.bytes_on_link(bytes).into()),
            ahead: rate.tx_time(burst).min(Self::LONGEST),
        }
    }
}

impl Bucket {
    fn new(
        rate: &[(Duration, Rate)],
        burst: u64,
        framing: Framing,
        steady: (Duration, Duration),
    ) -> Self {
        Self {
            pace: Pace::new(rate[0].1, 0, burst, framing),
            framing,
            next_change: Self::change(rate, 1),
            rate: rate.to_vec(),
            current: 0,
            burst,
            full_at: Time::ZERO,
            free_at: Time::ZERO,
            carried: Carried::new(rate, steady.0, steady.1),
        }
    }

    /// As [`Shaper::charge`]. Returns when the next packet may leave.
    #[inline(always)]
    pub(crate) fn charge_next(&mut self, bytes: u32, now: Time) -> Time {
        self.charge(bytes, now);
        self.free_at.max(now)
    }

    #[inline(always)]
    fn charge(&mut self, bytes: u32, now: Time) {
        if now >= self.next_change || bytes != self.pace.bytes {
            self.change_pace(bytes, now);
        }
        let begin = self.full_at.max(now);
        self.full_at = begin + self.pace.tx_time;
        // What the first bucket holds counts as sent before the run.
        let ahead = self.pace.ahead;
        self.free_at = self.full_at.saturating_sub(ahead);
        (self.carried).send(begin.saturating_sub(ahead), self.free_at);
    }

    /// As [`Shaper::is_free`].
    #[inline(always)]
    pub(crate) fn is_free(&self, now: Time) -> bool {
        self.free_at <= now
    }

    fn set_rate(&mut self, rate: Rate, now: Time) {
        self.follow_schedule(now);
        self.rate.truncate(self.current + 1);
        self.rate.push((now - Time::ZERO, rate));
        self.next_change = now;
        self.change_pace(self.pace.bytes, now);
        self.carried.set_rate(rate, now);
    }

    /// Recomputes the pace for a packet of `bytes` at the rate in force `now`. When it is next not empty does not change.
    #[cold]
    fn change_pace(&mut self, bytes: u32, now: Time) {
        self.follow_schedule(now);
        let before = self.pace.ahead;
        self.pace = Pace::new(self.rate[self.current].1, bytes, self.burst, self.framing);
        self.full_at = self
            .full_at
            .saturating_add(self.pace.ahead)
            .saturating_sub(before);
        self.free_at = self.full_at.saturating_sub(self.pace.ahead);
    }

    /// Moves to the rate in force at `now`.
    fn follow_schedule(&mut self, now: Time) {
        while self.next_change <= now {
            self.current += 1;
            self.next_change = Self::change(&self.rate, self.current + 1);
        }
    }

    /// When the rate of this index comes into force; [`Time::MAX`] if there is none.
    fn change(rate: &[(Duration, Rate)], index: usize) -> Time {
        rate.get(index)
            .map_or(Time::MAX, |(from, _)| Time::ZERO + *from)
    }
}

/// The opportunities of a trace. At each the link may send 1500 bytes and their overhead, at that instant only. A larger
/// packet also uses the opportunities that follow, and has left with the last of them.
struct Opportunities {
    instants: Instants,
    /// Bytes per opportunity.
    worth: i64,
    framing: Framing,
    /// The current instant, and the bytes that may still be sent at it; negative if the last packet took more.
    at: Time,
    left: i64,
    steady: (Time, Time),
    /// Bytes in the steady state: sent, and offered.
    carried: i64,
    offered: i64,
}

impl Opportunities {
    fn new(trace: &Trace, overhead: u32, framing: Framing, steady: (Duration, Duration)) -> Self {
        let worth = i64::from(framing.bytes_on_link(OPPORTUNITY_BYTES + overhead));
        let instants = trace
            .before(steady.1)
            .saturating_sub(trace.before(steady.0));
        Self {
            instants: trace.instants(),
            worth,
            framing,
            at: Time::ZERO,
            left: 0,
            steady: (Time::ZERO + steady.0, Time::ZERO + steady.1),
            carried: 0,
            offered: instants as i64 * worth,
        }
    }

    #[cold]
    fn charge(&mut self, bytes: u32) {
        let bytes = i64::from(self.framing.bytes_on_link(bytes));
        self.carry(bytes.min(self.left));
        self.left -= bytes;
    }

    /// Counts bytes sent at the current instant.
    fn carry(&mut self, bytes: i64) {
        if self.at >= self.steady.0 && self.at < self.steady.1 {
            self.carried += bytes;
        }
    }

    fn utilization(&self) -> f64 {
        if self.offered == 0 {
            return 0.0;
        }
        self.carried as f64 / self.offered as f64
    }

    #[cold]
    fn free_at(&mut self, now: Time) -> Time {
        while self.at < now || self.left <= 0 {
            self.go_on();
        }
        self.at
    }

    #[cold]
    fn left_at(&mut self) -> Time {
        while self.left < 0 {
            self.go_on();
        }
        self.at
    }

    /// Goes on to the next instant; a trace has no end.
    fn go_on(&mut self) {
        let (at, count) = self.instants.next().unwrap_or((Duration::MAX, u32::MAX));
        self.at = Time::ZERO + at;
        let (owed, worth) = ((-self.left).max(0), i64::from(count) * self.worth);
        self.carry(owed.min(worth));
        self.left = worth - owed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When packets of these sizes leave, in ms, if all wait from `now` on.
    fn departures(trace: &str, now: Time, sizes: &[u32]) -> Vec<u64> {
        let trace = Trace::parse("t", trace).unwrap();
        let always = (Duration::ZERO, Duration::MAX);
        let mut shaper = Shaper::new(&Capacity::Trace(trace), 1600, 14, Framing::NONE, always);
        let mut now = now;
        let leave = |bytes: &u32| {
            now = shaper.free_at(now);
            shaper.charge(*bytes, now);
            now.as_nanos() / 1_000_000
        };
        sizes.iter().map(leave).collect()
    }

    /// tc-htb(8): "burst: amount of bytes that can be burst at ceil speed". A new class begins with all of it.
    #[test]
    fn a_bucket_is_full_at_the_start() {
        let always = (Duration::ZERO, Duration::MAX);
        let capacity = Capacity::constant(Rate::from_mbps(8));
        let mut shaper = Shaper::new(&capacity, 3000, 14, Framing::NONE, always);
        let mut left = Vec::new();
        for _ in 0..6 {
            let now = shaper.free_at(Time::ZERO);
            shaper.charge(1000, now);
            left.push(now.as_nanos() / 1_000_000);
        }
        // Three packets use up the bucket, and the fourth still finds it not negative.
        assert_eq!(left, [0, 0, 0, 0, 1, 2]);
    }

    /// 40 bytes in two ATM cells are 106, 96 too: at 848 kbit/s a cell takes 0.5 ms. An empty bucket: a serial line.
    #[test]
    fn packets_take_whole_cells_of_the_line() {
        let framing = Framing {
            cells: sojourn_aqm::cake::framing::Cells::Atm,
            mpu: 0,
            ..Framing::NONE
        };
        let always = (Duration::ZERO, Duration::MAX);
        let capacity = Capacity::constant(Rate::from_bps(848_000).unwrap());
        let mut shaper = Shaper::new(&capacity, 0, 14, framing, always);
        let mut left = Vec::new();
        for bytes in [48, 49, 96, 97, 40] {
            let now = shaper.free_at(Time::ZERO);
            shaper.charge(bytes, now);
            left.push(now.as_nanos() / 1000);
        }
        assert_eq!(left, [0, 500, 1500, 2500, 4000]);
    }

    #[test]
    fn a_full_packet_leaves_at_each_opportunity() {
        let sizes = [1514; 6];
        assert_eq!(
            departures("2\n2\n5\n10\n", Time::ZERO, &sizes),
            [2, 2, 5, 10, 12, 12]
        );
    }

    #[test]
    fn opportunities_that_nobody_took_are_lost() {
        assert_eq!(
            departures("2\n2\n5\n10\n", Time::from_millis(3), &[1514; 2]),
            [5, 10]
        );
    }

    /// 700 + 700 bytes fit in one opportunity of 1514 and leave 114; the third packet owes the next one 586 bytes.
    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let sizes = [700, 700, 700, 700, 700, 3100, 700];
        // Left at 2 ms: 814, 114, -586; at 4 ms: 928, 228, -472; at 6 ms: 1042, -2058; at 8 ms: -544; at 10 ms: 970.
        let expected = [2, 2, 2, 4, 4, 6, 10];
        assert_eq!(departures("2\n4\n6\n8\n10\n", Time::ZERO, &sizes), expected);
    }

    /// Two of five opportunities from 3 ms to 11 ms are used: that at 5 ms, and that at 10 ms for what is owed.
    #[test]
    fn opportunities_that_were_used_make_the_utilization() {
        let trace = Trace::parse("t", "2\n4\n5\n6\n8\n10\n12\n").unwrap();
        let steady = (Duration::from_millis(3), Duration::from_millis(11));
        let mut shaper = Shaper::new(&Capacity::Trace(trace), 1600, 14, Framing::NONE, steady);
        for (ms, bytes) in [(1, 1514), (5, 1514), (9, 757), (9, 1514)] {
            let at = shaper.free_at(Time::from_millis(ms));
            shaper.charge(bytes, at);
        }
        shaper.free_at(Time::from_millis(11));
        assert!((shaper.utilization() - 0.4).abs() < 1e-12);
    }
}
