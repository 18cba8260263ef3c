//! A discipline as the kernel takes it: its options, and the ticks in which they count time.

use sojourn_units::Rate;

use crate::netlink::Attributes;

/// Nanoseconds of a tick, in which the kernel's packet schedulers count (PSCHED_SHIFT).
pub const TICK_NS: u64 = 64;

/// A discipline to add to a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// Its name in the kernel.
    pub kind: &'static str,
    /// Its parameters.
    pub options: Options,
    /// The kernel module of the discipline.
    pub module: &'static str,
}

/// The options of a discipline or class in a netlink message (TCA_OPTIONS).
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Options {
    /// A C structure of the kernel.
    Fields(Vec<u8>),
    /// Attributes; none if the kernel decides everything.
    Attributes(Attributes),
}

/// Time that a rate needs for some bytes, in whole ticks.
pub fn ticks(rate: Rate, bytes: u64) -> u32 {
    let ns = bytes as f64 * 8e9 / rate.as_bps() as f64;
    (ns / TICK_NS as f64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1514 bytes take 1.2112 ms at 10 Mbit/s: 18925 ticks of 64 ns.
    #[test]
    fn a_time_is_counted_in_whole_ticks() {
        assert_eq!(ticks(Rate::from_mbps(10), 1514), 18_925);
        assert_eq!(ticks(Rate::from_mbps(10), 1), 12); // 800 ns
    }
}
