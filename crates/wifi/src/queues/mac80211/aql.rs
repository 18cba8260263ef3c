//! Airtime queue limits: how much airtime each station's queues may have in the device (Linux 5.5, commit 3ace10f5b5ad).

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::Duration;

use crate::phy::Mode;

/// The limits, in estimated airtime (`include/net/cfg80211.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AqlLimits {
    /// A queue with less airtime than this in the device may always send (`IEEE80211_DEFAULT_AQL_TXQ_LIMIT_L`).
    pub low: Duration,
    /// The limit of a queue while all queues together have less than `threshold` in the device (`…_LIMIT_H`).
    pub high: Duration,
    /// The threshold for the whole radio (`IEEE80211_AQL_THRESHOLD`).
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
    /// Estimated airtime in the device, by queue, in µs.
    pending: Vec<u64>,
    /// The sum of all queues.
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

    /// The device takes a packet. Returns the estimate of its airtime, in µs.
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

/// The kernel's estimate of a packet's airtime, in µs (`net/mac80211/airtime.c`). The time of its bytes and of 38 bytes of
/// headers is in proportion to that of 1024 bytes. A share of the overhead is added: the shorter the packets, the more of them
/// go into an aggregate, and the smaller is the share. The estimate is at least 4 µs.
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
        // MCS 7, 65 Mbit/s: 1024 bytes take 126 µs, so 1/16 of 40 µs is added to 1538 · 8 / 65 = 189.29.
        let ht = Ht::new(7, 1, Width::Mhz20, Guard::Long).expect("exists");
        assert_eq!(estimate(1500, Mode::Ht(ht)), 191);
    }

    #[test]
    fn a_queue_gets_more_while_the_radio_has_little() {
        let mut aql = Aql::new(AqlLimits::LINUX, 8);
        let slow = Mode::Ofdm(Ofdm::R6);
        // The packets take 2090 µs each. The sixth brings the first queue to 12540 µs, above the high limit.
        for _ in 0..6 {
            assert!(aql.allows(0));
            aql.take(0, 1500, slow);
        }
        assert!(!aql.allows(0));
        // The second queue also takes six. With these 12 packets the radio has 25080 µs, above its threshold.
        for _ in 0..6 {
            assert!(aql.allows(1));
            aql.take(1, 1500, slow);
        }
        // The third queue gets the low limit only: three packets take 6270 µs.
        for _ in 0..3 {
            assert!(aql.allows(2));
            aql.take(2, 1500, slow);
        }
        assert!(!aql.allows(2));
        aql.release(2, 2090);
        assert!(aql.allows(2));
    }
}
