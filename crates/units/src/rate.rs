//! Link rates.

use core::fmt;
use core::num::NonZeroU64;

use crate::Duration;

/// Bits per second. Zero cannot be built: a link without capacity is `Option<Rate>`, not a special number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// `bps` bits per second; `None` for zero.
    pub const fn from_bps(bps: u64) -> Option<Self> {
        match NonZeroU64::new(bps) {
            Some(bps) => Some(Self(bps)),
            None => None,
        }
    }
    /// `mbps` million bits per second. For constants: panics on zero.
    pub const fn from_mbps(mbps: u64) -> Self {
        match Self::from_bps(mbps * 1_000_000) {
            Some(rate) => rate,
            None => panic!("a rate above zero"),
        }
    }
    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0.get()
    }
    /// Bytes per second, for arithmetic in floating point.
    pub fn bytes_per_sec(self) -> f64 {
        self.0.get() as f64 / 8.0
    }
    /// Time to send `bytes`: 1500 bytes at 12 Mbit/s take exactly 1 ms. Rounds down.
    pub const fn tx_time(self, bytes: u64) -> Duration {
        match bytes.checked_mul(8_000_000_000) {
            Some(bit_nanos) => Duration::from_nanos(bit_nanos / self.0.get()),
            None => {
                let nanos = bytes as u128 * 8_000_000_000 / self.0.get() as u128;
                Duration::from_nanos(if nanos > u64::MAX as u128 {
                    u64::MAX
                } else {
                    nanos as u64
                })
            }
        }
    }
    /// Whole bytes sent in `span`. Rounds down.
    pub const fn bytes_in(self, span: Duration) -> u64 {
        (self.0.get() as u128 * span.as_nanos() as u128 / 8_000_000_000) as u64
    }
}

/// Written in the largest unit that leaves no fraction: `10 Mbit/s`, `1500 kbit/s`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bps = self.0.get();
        for (unit, size) in [
            ("Gbit/s", 1_000_000_000),
            ("Mbit/s", 1_000_000),
            ("kbit/s", 1_000),
        ] {
            if bps % size == 0 {
                return write!(f, "{} {unit}", bps / size);
            }
        }
        write!(f, "{bps} bit/s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_takes_a_millisecond_at_12_megabit() {
        assert_eq!(Rate::from_mbps(12).tx_time(1500), Duration::from_millis(1));
        assert_eq!(Rate::from_mbps(12).bytes_in(Duration::from_millis(1)), 1500);
    }

    #[test]
    fn the_time_for_an_exabyte_does_not_wrap() {
        // 10^18 bytes at 8 Gbit/s: 10^9 s = 10^18 ns.
        let nanos = Rate::from_mbps(8_000)
            .tx_time(1_000_000_000_000_000_000)
            .as_nanos();
        assert_eq!(nanos, 1_000_000_000_000_000_000);
    }
}
