//! Airtime queue limits: how much airtime each station's queues may have in the device (Linux 5.5, commit 3ace10f5b5ad). The
//! two queues that a station has in a category count together (`struct airtime_info`).

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::Duration;

use crate::access::Access;
use crate::phy::{Guard, Mode, Preamble, Symbol};

use super::schedule::account;

/// The limits, in estimated airtime (`include/net/cfg80211.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AqlLimits {
    /// Queues of a station with less airtime than this in the device may always send (`IEEE80211_DEFAULT_AQL_TXQ_LIMIT_L`).
    pub low: Duration,
    /// Their limit while all queues together have less than `threshold` in the device (`…_LIMIT_H`).
    pub high: Duration,
    /// The threshold for the whole radio (`IEEE80211_AQL_THRESHOLD`).
    pub threshold: Duration,
    /// Since Linux 6.0: the airtime in the device counts as used in the order of stations; and nothing is sent in a category
    /// whose queues together have more there than `high`, and half of `low` for each further queue in the order.
    pub orders: bool,
    /// Since Linux 7.3: of a frame in an aggregate, the times of its bytes and of its overhead are added before they are cut to
    /// whole microseconds.
    pub adds_fractions: bool,
}

impl AqlLimits {
    /// 5 ms, 12 ms and 24 ms.
    pub const LINUX: Self = Self {
        low: Duration::from_micros(5_000),
        high: Duration::from_micros(12_000),
        threshold: Duration::from_micros(24_000),
        orders: true,
        adds_fractions: false,
    };
    /// The same since Linux 7.3.
    pub const LINUX_7_3: Self = Self {
        adds_fractions: true,
        ..Self::LINUX
    };
    /// The same before Linux 6.0.
    pub const LINUX_5_5: Self = Self {
        orders: false,
        ..Self::LINUX
    };
}

#[derive(Debug)]
pub(super) struct Aql {
    limits: AqlLimits,
    /// Estimated airtime in the device, by station and category, in µs.
    pending: Vec<u64>,
    /// The sum per category.
    by_category: [u64; 4],
}

impl Aql {
    pub(super) fn new(limits: AqlLimits, queues: usize) -> Self {
        Self {
            limits,
            pending: vec![0; account(queues)],
            by_category: [0; 4],
        }
    }

    /// True if the device may take another packet of this queue.
    pub(super) fn allows(&self, at: usize) -> bool {
        let pending = self.pending(at);
        pending < self.limits.low
            || (Duration::from_micros(self.by_category.iter().sum()) < self.limits.threshold
                && pending < self.limits.high)
    }

    /// True if the device may take another packet of a category, in whose order this number of queues is.
    pub(super) fn allows_category(&self, access: Access, queues: usize) -> bool {
        let further = queues.saturating_sub(1) as u64;
        let limit = self.limits.low * further / 2 + self.limits.high;
        !self.limits.orders || Duration::from_micros(self.by_category[access.index()]) < limit
    }

    /// True if the device has no packet of a category.
    pub(super) const fn is_empty(&self, access: Access) -> bool {
        self.by_category[access.index()] == 0
    }

    /// The airtime in the device that counts as used.
    pub(super) fn charged(&self, at: usize) -> Duration {
        if self.limits.orders {
            self.pending(at)
        } else {
            Duration::ZERO
        }
    }

    fn pending(&self, at: usize) -> Duration {
        Duration::from_micros(self.pending[account(at)])
    }

    /// The device takes a packet. Returns the estimate of its airtime, in µs.
    pub(super) fn take(&mut self, at: usize, bytes: u32, mode: Mode) -> u32 {
        // The kernel assumes that voice is not aggregated.
        let aggregates = account(at) % 4 != Access::Voice.index();
        let estimate = estimate(bytes, mode, aggregates, self.limits.adds_fractions);
        self.hold(at, estimate);
        estimate
    }

    pub(super) fn hold(&mut self, at: usize, estimate: u32) {
        let at = account(at);
        self.pending[at] += u64::from(estimate);
        self.by_category[at % 4] += u64::from(estimate);
    }

    pub(super) fn release(&mut self, at: usize, estimate: u32) {
        let at = account(at);
        self.pending[at] -= u64::from(estimate);
        self.by_category[at % 4] -= u64::from(estimate);
    }
}

/// The kernel's estimate of the airtime of a frame without check sequence, in µs (`net/mac80211/airtime.c`). The kernel
/// counts 38 bytes more.
///
/// With aggregation the time of the bytes is in proportion to that of 1024 bytes. A share of the overhead is added: the
/// shorter the frames, the more of them go into an aggregate, and the smaller is the share. Otherwise a preamble and SIFS
/// are added. The kernel keeps the estimate in ten bits, in units of 4 µs.
fn estimate(bytes: u32, mode: Mode, aggregates: bool, adds_fractions: bool) -> u32 {
    let bytes = u64::from(bytes) + 38;
    let alone =
        |preamble_and_sifs| preamble_and_sifs + bytes * 8 * 10 / (mode.rate().as_bps() / 100_000);
    let micros = match (mode, mode.symbol()) {
        (_, Some(symbol)) => {
            let (data, overhead, share) = parts(bytes, mode.streams(), symbol);
            match (aggregates, adds_fractions) {
                (false, _) => (data >> 10) + overhead,
                (true, false) => (data >> 10) + (overhead >> share),
                (true, true) => (data + ((overhead << 10) >> share)) >> 10,
            }
        }
        (Mode::Dsss(_, Preamble::Long), None) => alone(192 + 10),
        (Mode::Dsss(_, Preamble::Short), None) => alone(96 + 10),
        (_, None) => alone(20 + 16),
    };
    micros.clamp(4, 4095) as u32 / 4 * 4
}

/// The time of the bytes in units of 1/1024 µs, that of the overhead in µs, and by how many binary places the overhead is less
/// in an aggregate. Kilosymbols are the kernel's.
fn parts(bytes: u64, streams: u8, symbol: Symbol) -> (u64, u64, u32) {
    const AVERAGE: u64 = 1024;
    let duration = |bits: u32| {
        let kilosymbols = ((AVERAGE * 8) << 10).div_ceil(u64::from(bits));
        match symbol.guard {
            Guard::Long => kilosymbols * 4,
            Guard::Short => kilosymbols * 4 * 18 / 20,
        }
    };
    // The kernel's table has 16 bits per rate, and a shift for all rates of a width and number of streams.
    let longest = duration(symbol.slowest_bits);
    let shift = (u64::BITS - longest.leading_zeros()).saturating_sub(16);
    let average = duration(symbol.bits) >> shift << shift;
    let overhead = 36 + 4 * u64::from(streams);
    // In µs, the limits are exclusive.
    let share = match average.div_ceil(1 << 10) {
        401.. => 1,
        251.. => 2,
        151.. => 3,
        71.. => 4,
        _ => 5,
    };
    // The kernel multiplies in 32 bits: of a frame of more than 4.1 ms, as many are missing (`duration *= len`).
    let data = u64::from((average * bytes) as u32) / AVERAGE;
    (data, overhead, share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{Dsss, Ht, Ofdm, Width};

    #[test]
    fn estimates_agree_with_the_sum_by_hand() {
        // 6 Mbit/s: 1538 bytes · 8 / 6 = 2050.67 µs, and preamble and SIFS of 36, in whole units of 4.
        let estimate = |bytes, mode| super::estimate(bytes, mode, true, true);
        assert_eq!(estimate(1500, Mode::Ofdm(Ofdm::R6)), 2084);
        // 11 Mbit/s: 1538 bytes · 8 / 11 = 1118.5 µs, and 202 or 106.
        let dsss = |preamble| estimate(1500, Mode::Dsss(Dsss::R11, preamble));
        assert_eq!((dsss(Preamble::Long), dsss(Preamble::Short)), (1320, 1224));
        // MCS 7, 65 Mbit/s: 1024 bytes take 126 µs, so 1/16 of 40 µs is added to 1538 · 8 / 65 = 189.29.
        let ht = Ht::new(7, 1, Width::Mhz20, Guard::Long).expect("exists");
        assert_eq!(estimate(1500, Mode::Ht(ht)), 188);
        // MCS 0, 6.5 Mbit/s: 1024 bytes take 1260.3 µs, so 40/2 are added to 3682 · 8 / 6.5 = 4531.7, without 4096.
        let slow = Ht::new(0, 1, Width::Mhz20, Guard::Long).expect("exists");
        assert_eq!(estimate(3644, Mode::Ht(slow)), 452);
        // The most that ten bits hold.
        assert_eq!(estimate(20_000, Mode::Ht(ht)), 2468);
        assert_eq!(estimate(20_000, Mode::Ofdm(Ofdm::R6)), 4092);
    }

    #[test]
    fn voice_has_all_of_the_overhead_and_fractions_count_since_7_3() {
        // MCS 15, 130 Mbit/s: 372 bytes take 22.9 µs, the overhead is 44 µs, in an aggregate 1/32 of it: 1.375 µs.
        let ht = Ht::new(7, 2, Width::Mhz20, Guard::Long).expect("exists");
        let estimates = [(true, false), (true, true), (false, true), (false, false)]
            .map(|(aggregates, fractions)| estimate(334, Mode::Ht(ht), aggregates, fractions));
        assert_eq!(estimates, [20, 24, 64, 64]);
        // As above, by the category of the queue.
        let mut aql = Aql::new(AqlLimits::LINUX, 8);
        let queues = [Access::BestEffort, Access::Voice].map(|access| 2 * access.index());
        assert_eq!(queues.map(|at| aql.take(at, 334, Mode::Ht(ht))), [20, 64]);
    }

    #[test]
    fn a_queue_gets_more_while_the_radio_has_little() {
        let mut aql = Aql::new(AqlLimits::LINUX, 24);
        let slow = Mode::Ofdm(Ofdm::R6);
        // The packets take 2084 µs each. The sixth brings the first queue to 12504 µs, above the high limit.
        for _ in 0..6 {
            assert!(aql.allows(0));
            aql.take(0, 1500, slow);
        }
        assert!(!aql.allows(0));
        // The second queue also takes six. With these 12 packets the radio has 25008 µs, above its threshold.
        for _ in 0..6 {
            assert!(aql.allows(8));
            aql.take(8, 1500, slow);
        }
        // The third queue gets the low limit only: three packets take 6252 µs.
        for _ in 0..3 {
            assert!(aql.allows(16));
            aql.take(16, 1500, slow);
        }
        assert!(!aql.allows(16));
        aql.release(16, 2084);
        assert!(aql.allows(16));
    }

    #[test]
    fn both_queues_of_a_station_count_together() {
        // `ieee80211_txq_airtime_check` and `ieee80211_sta_update_pending_airtime`: by station and category.
        let mut aql = Aql::new(AqlLimits::LINUX, 16);
        let slow = Mode::Ofdm(Ofdm::R6);
        let [first, second, other] = [2, 3, 10];
        for at in [first, second].into_iter().cycle().take(6) {
            assert!(aql.allows(at));
            aql.take(at, 1500, slow);
        }
        assert!(!aql.allows(first) && !aql.allows(second) && aql.allows(other));
        assert_eq!(aql.charged(first), Duration::from_micros(6 * 2084));
        // Another category has limits of its own.
        assert!(aql.allows(0));
        aql.release(second, 2084);
        assert!(aql.allows(first));
    }
}
