//! A link on Linux: HTB as its shaper (linux/pkt_sched.h, tc-htb(8)); `netem` is its wire.

use serde::{Deserialize, Serialize};
use sojourn_units::Rate;

use crate::disciplines::{Leaf, Options};
use crate::netlink::Attributes;

/// Nanoseconds of a tick, in which the kernel's packet schedulers count (PSCHED_SHIFT).
pub const TICK_NS: u64 = 64;
/// The class of all packets.
const CLASS: u32 = 1;
/// The major number of the discipline under test.
const LEAF_MAJOR: u32 = 0x10;
/// The handle that makes the kernel choose one, and the parent of a root.
pub const ANY: u32 = 0;
/// See [`ANY`].
pub const ROOT: u32 = u32::MAX;

/// Numbers of attributes: of HTB, and of a size table.
const HTB_CLASS: u16 = 1;
const HTB_INIT: u16 = 2;
const HTB_RATE64: u16 = 6;
const HTB_CEIL64: u16 = 7;
const SIZES_BASE: u16 = 1;
/// TC_LINKLAYER_ETHERNET: the kernel computes times itself and needs no table of them.
const ETHERNET: u8 = 1;

/// Something to add to a device, or a class to change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Scheduler {
    /// A class, or else a discipline.
    pub is_class: bool,
    /// The device.
    pub device: String,
    /// The handle of the class or discipline above it.
    pub parent: u32,
    /// Its own handle.
    pub handle: u32,
    /// Its name in the kernel.
    pub kind: String,
    /// Its parameters.
    pub options: Options,
    /// Bytes added to each packet's length, as counted here and by everything below. Negative to subtract.
    pub overhead: i32,
}

/// Time that a rate needs for some bytes, in whole ticks.
pub fn ticks(rate: Rate, bytes: u64) -> u32 {
    let ns = bytes as f64 * 8e9 / rate.as_bps() as f64;
    (ns / TICK_NS as f64) as u32
}

/// The handle of the discipline under a root with this major number.
pub const fn leaf_handle() -> u32 {
    LEAF_MAJOR << 16
}

/// HTB at the root of a device, with one class for all packets.
pub fn root(device: &str, major: u16, overhead: i32) -> Scheduler {
    // tc_htb_glob: version, rate2quantum, default class, debug, direct packets.
    let init: Vec<u8> = [3, 10, CLASS, 0, 0]
        .iter()
        .flat_map(|field: &u32| field.to_ne_bytes())
        .collect();
    Scheduler {
        is_class: false,
        device: device.into(),
        parent: ROOT,
        handle: u32::from(major) << 16,
        kind: "htb".into(),
        options: Options::Attributes(Attributes::new().put(HTB_INIT, &init)),
        overhead,
    }
}

/// The class of a root: a token bucket. A bucket of one byte is a serial line: HTB lets a frame exceed the credit and
/// then waits until it is repaid.
pub fn class(device: &str, major: u16, rate: Rate, burst: u64) -> Scheduler {
    let bytes_per_s = rate.as_bps() / 8;
    // tc_ratespec: cell_log, linklayer, overhead, cell_align, mpu, rate.
    let short = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    let mut of_rate = vec![0, ETHERNET, 0, 0, 0, 0, 0, 0];
    of_rate.extend(short.to_ne_bytes());
    // tc_htb_opt: rate and ceil, then buffer, cbuffer, quantum, level, prio.
    let mut fields = [&of_rate[..], &of_rate[..]].concat();
    let bucket = ticks(rate, burst.max(1));
    for field in [bucket, bucket, 0, 0, 0] {
        fields.extend(field.to_ne_bytes());
    }
    let mut attributes = Attributes::new();
    if bytes_per_s > u64::from(u32::MAX) {
        attributes = attributes
            .u64(HTB_RATE64, bytes_per_s)
            .u64(HTB_CEIL64, bytes_per_s);
    }
    let root = u32::from(major) << 16;
    Scheduler {
        is_class: true,
        device: device.into(),
        parent: root,
        handle: root | CLASS,
        kind: "htb".into(),
        options: Options::Attributes(attributes.put(HTB_CLASS, &fields)),
        overhead: 0,
    }
}

/// The discipline under test, in the class of a root.
pub fn leaf(device: &str, major: u16, leaf: &Leaf) -> Scheduler {
    Scheduler {
        is_class: false,
        device: device.into(),
        parent: u32::from(major) << 16 | CLASS,
        handle: leaf_handle(),
        kind: leaf.kind.into(),
        options: leaf.options.clone(),
        overhead: 0,
    }
}

/// The major number of a host's bands.
const BANDS_MAJOR: u32 = 0x5c00;
/// The most bands that there can be (TCQ_PRIO_BANDS).
pub const MOST_BANDS: usize = 16;

/// The class of a band, which a socket's priority may name.
pub const fn band(number: usize) -> u32 {
    BANDS_MAJOR << 16 | (number as u32 + 1)
}

/// Bands at the root of a device, each with its own delay (tc-prio(8)). Packets without a priority take band `others`.
pub fn bands(device: &str, count: usize, others: usize) -> Scheduler {
    // tc_prio_qopt: the number of bands, then the band of each priority.
    let mut options = (count as u32).to_ne_bytes().to_vec();
    options.extend([others as u8; 16]);
    Scheduler {
        is_class: false,
        device: device.into(),
        parent: ROOT,
        handle: BANDS_MAJOR << 16,
        kind: "prio".into(),
        options: Options::Fields(options),
        overhead: 0,
    }
}

/// The size table that adds bytes to each packet's length (TCA_STAB).
pub fn sizes(overhead: i32) -> Attributes {
    // tc_sizespec: cell_log, size_log, cell_align; overhead, linklayer, mpu, mtu, tsize.
    let mut base = vec![0; 4];
    base.extend(overhead.to_ne_bytes());
    base.extend(u32::from(ETHERNET).to_ne_bytes());
    base.extend([0; 12]);
    Attributes::new().put(SIZES_BASE, &base)
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

    /// 50 Gbit/s are 6.25e9 bytes a second, which four bytes cannot hold.
    #[test]
    fn a_high_rate_has_an_attribute_of_its_own() {
        let Options::Attributes(slow) = class("eth0", 0x5d01, Rate::from_mbps(10), 0).options
        else {
            panic!("attributes");
        };
        let Options::Attributes(fast) = class("eth0", 0x5d01, Rate::from_mbps(50_000), 0).options
        else {
            panic!("attributes");
        };
        assert_eq!(slow.as_bytes().len(), 4 + 44);
        assert_eq!(fast.as_bytes().len(), 4 + 44 + 2 * 12);
        assert_eq!(&slow.as_bytes()[12..16], 1_250_000_u32.to_ne_bytes());
    }

    #[test]
    fn classes_and_disciplines_hang_on_the_root() {
        let class = class("eth0", 0x5d01, Rate::from_mbps(10), 0);
        assert_eq!((class.parent, class.handle), (0x5d01_0000, 0x5d01_0001));
        let root = root("eth0", 0x5d01, 4);
        assert_eq!((root.parent, root.handle), (u32::MAX, 0x5d01_0000));
        assert_eq!(&sizes(4).as_bytes()[8..12], 4_i32.to_ne_bytes());
    }
}
