//! Senders whose timers are late: each sending by a random time of its own, so that senders with the same period do not
//! stay in phase (Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1992, section 4).

use sojourn_units::{Duration, Time};

use crate::streams::Stream;

/// How late the sendings of a flow are: uniformly up to a time. The schedule itself stays, so that the period does not
/// drift, and so does the order.
pub struct Jitter {
    most: Duration,
    draws: Stream,
    last: Time,
}

impl Jitter {
    /// For flow number `flow`; each sending is late by up to `most`.
    pub fn new(most: Duration, flow: u32, seed: u64) -> Self {
        Self {
            most,
            draws: Stream::new(seed, &format!("flow/{flow}/jitter")),
            last: Time::ZERO,
        }
    }

    /// When the sending that is due at `due` happens; never before the one asked for previously.
    pub fn late(&mut self, due: Time) -> Time {
        if self.most.is_zero() {
            return due;
        }
        let by = self.draws.below(self.most.as_nanos().saturating_add(1));
        self.last = due.saturating_add(Duration::from_nanos(by)).max(self.last);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    #[test]
    fn each_sending_is_late_by_up_to_the_most_and_the_schedule_stays() {
        let mut jitter = Jitter::new(Duration::from_millis(2), 3, 1);
        let late: Vec<u64> = (0..10_000)
            .map(|n| (jitter.late(MS(10 * n)) - MS(10 * n)).as_nanos())
            .collect();
        assert!(late.iter().all(|by| *by <= 2_000_000));
        let mean = late.iter().sum::<u64>() as f64 / 1e4;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean} ns");
    }

    #[test]
    fn sendings_keep_their_order_and_without_jitter_their_times() {
        let mut wide = Jitter::new(Duration::from_millis(50), 0, 1);
        let times: Vec<Time> = (0..1000).map(|n| wide.late(MS(n))).collect();
        assert!(times.is_sorted());
        let mut none = Jitter::new(Duration::ZERO, 0, 1);
        assert_eq!(none.late(MS(7)), MS(7));
    }
}
