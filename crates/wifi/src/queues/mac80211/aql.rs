//! Airtime queue limits: how much airtime a station may have in the device (Linux 5.5, commit 3ace10f5b5ad).

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::Duration;

use crate::phy::Mode;

/// The limits, in estimated airtime (`include/net/cfg80211.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AqlLimits {
    /// A queue may always hold so much (`IEEE80211_DEFAULT_AQL_TXQ_LIMIT_L`).
    pub low: Duration,
    /// A queue may hold so much while the radio holds less than `threshold` (`…_LIMIT_H`).
    pub high: Duration,
    /// Of the radio (`IEEE80211_AQL_THRESHOLD`).
    pub threshold: Duration,
}

impl AqlLimits {
    /// 5 ms, 12 ms and 24 ms.
    pub const LINUX: Self = Self {
        low: Duration::from_micros(5_000),
        high: Duration::from_micros(12_000),
        threshold: Duration::from_micros(24_000),
    };
}

#[derive(Debug)]
pub(super) struct Aql {
    limits: AqlLimits,
    /// µs in the device, by queue and together.
    pending: Vec<u64>,
    total: u64,
}

impl Aql {
    pub(super) fn new(limits: AqlLimits, queues: usize) -> Self {
        Self {
            limits,
            pending: vec![0; queues],
            total: 0,
        }
    }

    /// True if the device may take another packet of this queue.
    pub(super) fn allows(&self, at: usize) -> bool {
        let pending = self.pending(at);
        pending < self.limits.low
            || (Duration::from_micros(self.total) < self.limits.threshold
                && pending < self.limits.high)
    }

    pub(super) fn pending(&self, at: usize) -> Duration {
        Duration::from_micros(self.pending[at])
    }

    /// The device takes a packet; returns what it is counted as, in µs.
    pub(super) fn take(&mut self, at: usize, bytes: u32, mode: Mode) -> u32 {
        let estimate = estimate(bytes, mode);
        self.pending[at] += u64::from(estimate);
        self.total += u64::from(estimate);
        estimate
    }

    pub(super) fn release(&mut self, at: usize, estimate: u32) {
        self.pending[at] -= u64::from(estimate);
        self.total -= u64::from(estimate);
    }
}

/// What the kernel expects a packet to take, in µs (`net/mac80211/airtime.c`): its bytes and 38 more at the rate of 1024
/// bytes, and a share of the overhead that is the smaller, the more such packets go into an aggregate; at least 4.
fn estimate(bytes: u32, mode: Mode) -> u32 {
    const AVERAGE: u64 = 1024;
    const HEADERS: u64 = 38;
    let nanos = mode.rate().tx_time(AVERAGE).as_nanos();
    let data = nanos.saturating_mul(u64::from(bytes) + HEADERS) / AVERAGE;
    let overhead = 1_000 * (36 + 4 * u64::from(mode.streams()));
    let shift = match nanos / 1_000 {
        _ if !mode.can_aggregate() => 0,
        401.. => 1,
        251..=400 => 2,
        151..=250 => 3,
        71..=150 => 4,
        _ => 5,
    };
    let micros = (data + (overhead >> shift)) / 1_000;
    micros.clamp(4, u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{Guard, Ht, Ofdm, Width};

    #[test]
    fn estimates_agree_with_the_sum_by_hand() {
        // 6 Mbit/s: 1538 bytes · 8 / 6 = 2050.67 µs, and the whole overhead of 40.
        assert_eq!(estimate(1500, Mode::Ofdm(Ofdm::R6)), 2090);
        // MCS 7, 65 Mbit/s: 1024 bytes take 126 µs, so 1/16 of 40 µs beside 1538 · 8 / 65 = 189.29.
        let ht = Ht::new(7, 1, Width::Mhz20, Guard::Long).expect("exists");
        assert_eq!(estimate(1500, Mode::Ht(ht)), 191);
    }

    #[test]
    fn a_queue_gets_more_while_the_radio_has_little() {
        let mut aql = Aql::new(AqlLimits::LINUX, 8);
        let slow = Mode::Ofdm(Ofdm::R6);
        // 2090 µs each: the sixth brings one queue to 12540, above the high limit.
        for _ in 0..6 {
            assert!(aql.allows(0));
            aql.take(0, 1500, slow);
        }
        assert!(!aql.allows(0));
        // Another: at 12 packets in all the radio is above its threshold (25080), and 5 ms are passed.
        for _ in 0..6 {
            assert!(aql.allows(1));
            aql.take(1, 1500, slow);
        }
        // A third gets the low limit only: three packets are 6270.
        for _ in 0..3 {
            assert!(aql.allows(2));
            aql.take(2, 1500, slow);
        }
        assert!(!aql.allows(2));
        aql.release(2, 2090);
        assert!(aql.allows(2));
    }
}
