//! Upstream of a cable modem: what waits is requested, and sent when it has been granted.
//!
//! A simplified DOCSIS MAC (White and Sundaresan, "Active queue management in DOCSIS 3.1 networks", 2014; DOCSIS 3.1 MULPI,
//! section 7.2): time is divided into intervals of a MAP. At the beginning of each the modem requests what waits and is not
//! granted yet, and the grant is in the next interval, as far as that has room. So a packet that finds the queue empty waits
//! one to two intervals. Grants that are not used, because the queue has dropped packets since, are lost. Not modelled:
//! contention between requests, and grants without a request.

use sojourn_units::{Duration, Time};

/// The requests and grants of a link.
pub struct Grants {
    interval: Duration,
    /// When the next interval begins.
    next: Time,
    /// Bytes that may be sent in this interval, and in the next.
    now: i64,
    then: i64,
}

impl Grants {
    /// A modem with intervals of this length, the first of which begins at `begin`.
    pub const fn new(interval: Duration, begin: Time) -> Self {
        Self {
            interval,
            next: begin,
            now: 0,
            then: 0,
        }
    }

    /// True if bytes may be sent. `waiting`: bytes in the queue; `room`: the most in an interval.
    pub fn may_send(&mut self, now: Time, waiting: u64, room: u64) -> bool {
        let since = now.saturating_since(self.next);
        if self.next <= now && since > self.interval.saturating_mul(2) {
            // The queue was empty meanwhile.
            let whole = since.as_nanos() / self.interval.as_nanos();
            self.next += self.interval.saturating_mul(whole);
            (self.now, self.then) = (0, 0);
        }
        while self.next <= now {
            // What the last interval could not send whole is still granted.
            self.now = self.then + self.now.min(0);
            let wanted = (waiting as i64 - self.now.max(0)).max(0);
            self.then = wanted.min(room as i64);
            self.next += self.interval;
        }
        self.now > 0
    }

    /// The length of an interval.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// When more may be sent than now.
    pub const fn next(&self) -> Time {
        self.next
    }

    /// True if nothing is left of the grants of this interval.
    pub const fn are_used(&self) -> bool {
        self.now <= 0
    }

    /// A packet is sent.
    pub fn charge(&mut self, bytes: u32) {
        self.now -= i64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Intervals of 2 ms: what comes at 1 ms is requested at 2 ms and granted from 4 ms on; at most 2500 bytes in each.
    #[test]
    fn what_waits_is_requested_and_granted_one_interval_later() {
        let mut grants = Grants::new(Duration::from_millis(2), Time::ZERO);
        assert!(!grants.may_send(Time::from_micros(900), 0, 2500));
        let mut queue = 5000_u64;
        let mut sent = Vec::new();
        for ms in 1..9 {
            let now = Time::from_millis(ms);
            while queue > 0 && grants.may_send(now, queue, 2500) {
                grants.charge(1250);
                queue -= 1250;
                sent.push(ms);
            }
        }
        assert_eq!(sent, [4, 4, 6, 6]);
    }

    #[test]
    fn grants_that_are_not_used_are_lost() {
        let mut grants = Grants::new(Duration::from_millis(2), Time::ZERO);
        let at = |ms| Time::from_millis(ms);
        assert!(!grants.may_send(at(1), 0, 10_000));
        assert!(!grants.may_send(at(2), 3000, 10_000));
        assert!(grants.may_send(at(4), 1000, 10_000));
        // Nothing was sent; at 6 ms the request of 4 ms counts, for what was not granted then.
        assert!(!grants.may_send(at(6), 1000, 10_000));
        assert!(grants.may_send(at(8), 1000, 10_000));
    }
}
