//! The shaper: a virtual clock that each packet sent advances by its time on the link, so that
//! there is no burst to configure (Høiland-Jørgensen, Täht and Morton 2018).

use sojourn_units::{Duration, Rate, Time};

/// When the next packet may leave a link of some rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaper {
    rate: Rate,
    next: Time,
    /// A second clock, half as slow again: packets leave when either says so. Where they differ, the
    /// first has run ahead of what was sent.
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

    /// Nothing is queued and a packet arrives: what was not used before is lost.
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

    /// A packet that takes `bytes` on the link is sent. The clock is advanced from where it stood, not
    /// from when the packet was asked for, so a late sender catches up.
    pub(super) fn charge(&mut self, bytes: u32) {
        let span = self.rate.tx_time(u64::from(bytes));
        self.next += span;
        self.failsafe_next += span + Duration::from_nanos(span.as_nanos() / 2);
    }
}

/// A tin's claim to its share of the rate: it goes before others while it keeps to it, and is never
/// held back when they have nothing to send.
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

    /// The tin is empty and a packet arrives.
    pub(super) fn wake(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// From when the tin is within its share.
    pub(super) const fn next(&self) -> Time {
        self.next
    }

    /// The tin has sent a packet. One that had sent ahead of its share owes no more than this packet.
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
    fn packets_leave_a_link_time_apart_and_a_late_one_is_made_up_for() {
        // 12 Mbit/s: 1500 bytes take 1 ms.
        let mut shaper = Shaper::new(Rate::from_mbps(12));
        shaper.wake(Time::from_millis(10));
        assert_eq!(shaper.ready_at(), Time::from_millis(10));
        shaper.charge(1500);
        assert_eq!(shaper.ready_at(), Time::from_millis(11));
        // Sent late, at 12.5 ms: the next is due at 12 all the same.
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
