//! The shaper: a virtual clock that advances by the transmission time of each packet sent, so that no burst size has
//! to be configured (Høiland-Jørgensen, Täht and Morton 2018).

use sojourn_units::{Duration, Rate, Time};

/// Decides when the next packet may leave at a given rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaper {
    rate: Rate,
    next: Time,
    /// A second clock, at two thirds of the rate. A packet may leave when either clock allows it. This one binds if the
    /// first clock has run ahead of the data sent.
    failsafe_next: Time,
}

impl Shaper {
    pub(super) const fn new(rate: Rate) -> Self {
        Self {
            rate,
            next: Time::ZERO,
            failsafe_next: Time::ZERO,
        }
    }

    /// Changes the rate. What was charged before stays charged.
    pub(super) const fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// A packet arrives at an empty queue: unused time is lost.
    pub(super) fn wake(&mut self, now: Time) {
        if self.next < now {
            self.next = now;
            self.failsafe_next = now;
        }
    }

    /// When a packet may leave.
    pub(super) fn ready_at(&self) -> Time {
        self.next.min(self.failsafe_next)
    }

    /// Charges a packet that takes `bytes` on the link. The clock advances from its old value, not from the time of
    /// the request, so a late sender catches up.
    pub(super) fn charge(&mut self, bytes: u32) {
        let span = self.rate.tx_time(u64::from(bytes));
        self.next += span;
        self.failsafe_next += span + Duration::from_nanos(span.as_nanos() / 2);
    }
}

/// A tin's claim to its share of the rate. Within its share the tin has priority over others; it is never held back
/// when they have nothing to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    rate: Rate,
    next: Time,
}

impl Claim {
    pub(super) const fn new(rate: Rate) -> Self {
        Self {
            rate,
            next: Time::ZERO,
        }
    }

    /// Changes the rate of the share.
    pub(super) const fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// A packet arrives at the empty tin.
    pub(super) fn wake(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// When the tin is within its share.
    pub(super) const fn next(&self) -> Time {
        self.next
    }

    /// The tin has sent a packet. A tin that had exceeded its share owes no more than this packet.
    pub(super) fn charge(&mut self, bytes: u32, now: Time) {
        let span = self.rate.tx_time(u64::from(bytes));
        if self.next < now {
            self.next += span;
        } else {
            self.next = self.next.max(now + span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_a_transmission_time_apart_and_the_clock_catches_up_after_a_late_one() {
        // 12 Mbit/s: 1500 bytes take 1 ms.
        let mut shaper = Shaper::new(Rate::from_mbps(12));
        shaper.wake(Time::from_millis(10));
        assert_eq!(shaper.ready_at(), Time::from_millis(10));
        shaper.charge(1500);
        assert_eq!(shaper.ready_at(), Time::from_millis(11));
        // A packet is sent late, at 12.5 ms: the next is due at 12 ms all the same.
        shaper.charge(1500);
        assert_eq!(shaper.ready_at(), Time::from_millis(12));
        shaper.wake(Time::from_millis(20));
        assert_eq!(shaper.ready_at(), Time::from_millis(20));
    }

    #[test]
    fn a_tin_beyond_its_share_owes_one_packet() {
        let mut claim = Claim::new(Rate::from_mbps(12));
        let now = Time::from_millis(10);
        claim.wake(now);
        for _ in 0..5 {
            claim.charge(1500, now);
        }
        assert_eq!(claim.next(), Time::from_millis(11));
        claim.charge(1500, Time::from_millis(13));
        assert_eq!(claim.next(), Time::from_millis(12));
    }
}
