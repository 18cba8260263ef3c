//! A link on Linux: HTB as its shaper and as its classes (linux/pkt_sched.h, tc-htb(8)); `netem` is its wire.

use serde::{Deserialize, Serialize};
use sojourn_units::Rate;

use crate::disciplines::{Leaf, Options, ticks};
use crate::netlink::Attributes;

/// The class of the link, below which its own classes stand.
pub const CLASS: u32 = 1;
/// The major number of the first discipline under test.
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
/// Of a filter by the headers of packets (linux/pkt_cls.h): its class, and the words that it compares.
const U32_CLASS: u16 = 1;
const U32_WORDS: u16 = 5;
/// Offsets of the addresses in an IPv4 header.
const SOURCE: u32 = 12;
const DESTINATION: u32 = 16;
/// The priority of filters, above the protocol IPv4 in network order (tcm_info).
const FILTER: u32 = 1 << 16 | 0x0800_u16.to_be() as u32;
/// TC_LINKLAYER_ETHERNET: the kernel computes times itself and needs no table of them.
const ETHERNET: u8 = 1;

/// What can be added to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Part {
    /// A discipline.
    Discipline,
    /// A class.
    Class,
    /// A filter, which selects the class of packets.
    Filter,
}

impl Part {
    /// tcm_info of a message that adds it.
    pub const fn info(self) -> u32 {
        match self {
            Self::Filter => FILTER,
            Self::Discipline | Self::Class => 0,
        }
    }
}

/// Something to add to a device, or a class to change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Scheduler {
    /// What it is.
    pub part: Part,
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

/// The handle of the discipline with this number under a root.
pub const fn leaf_handle(number: usize) -> u32 {
    (LEAF_MAJOR + number as u32) << 16
}

/// HTB at the root of a device, with one class for all packets.
pub fn root(device: &str, major: u16, overhead: i32) -> Scheduler {
    // tc_htb_glob: version, rate2quantum, default class, debug, direct packets.
    let init: Vec<u8> = [3, 10, CLASS, 0, 0]
        .iter()
        .flat_map(|field: &u32| field.to_ne_bytes())
        .collect();
    Scheduler {
        part: Part::Discipline,
        device: device.into(),
        parent: ROOT,
        handle: u32::from(major) << 16,
        kind: "htb".into(),
        options: Options::Attributes(Attributes::new().put(HTB_INIT, &init)),
        overhead,
    }
}

/// A class of the root with this major number.
pub struct Class {
    /// Its minor number, and that of the class above it; 0: the root.
    pub minor: u32,
    /// See `minor`.
    pub parent: u32,
    /// What it may always send at.
    pub rate: Rate,
    /// The most it may send at.
    pub ceil: Rate,
    /// Bytes that its buckets hold.
    pub burst: u64,
}

/// A class: token buckets. A bucket of one byte is a serial line: HTB lets a frame exceed the credit and then waits until it
/// is repaid.
pub fn class(device: &str, major: u16, class: &Class) -> Scheduler {
    let rates = [class.rate, class.ceil];
    let bytes_per_s = rates.map(|rate| rate.as_bps() / 8);
    // tc_htb_opt: rate and ceil, each a tc_ratespec of cell_log, linklayer, overhead, cell_align, mpu and rate.
    let mut fields = Vec::new();
    for bytes in bytes_per_s {
        fields.extend([0, ETHERNET, 0, 0, 0, 0, 0, 0]);
        fields.extend(u32::try_from(bytes).unwrap_or(u32::MAX).to_ne_bytes());
    }
    // Then buffer, cbuffer, quantum, level, prio.
    let [bucket, at_ceil] = rates.map(|rate| ticks(rate, class.burst.max(1)));
    for field in [bucket, at_ceil, 0, 0, 0] {
        fields.extend(field.to_ne_bytes());
    }
    let mut attributes = Attributes::new();
    for (number, bytes) in [HTB_RATE64, HTB_CEIL64].into_iter().zip(bytes_per_s) {
        if bytes > u64::from(u32::MAX) {
            attributes = attributes.u64(number, bytes);
        }
    }
    let root = u32::from(major) << 16;
    Scheduler {
        part: Part::Class,
        device: device.into(),
        parent: root | class.parent,
        handle: root | class.minor,
        kind: "htb".into(),
        options: Options::Attributes(attributes.put(HTB_CLASS, &fields)),
        overhead: 0,
    }
}

/// A discipline under test, in a class of a root.
pub fn leaf(device: &str, class: u32, number: usize, leaf: &Leaf) -> Scheduler {
    Scheduler {
        part: Part::Discipline,
        device: device.into(),
        parent: class,
        handle: leaf_handle(number),
        kind: leaf.kind.into(),
        options: leaf.options.clone(),
        overhead: 0,
    }
}

/// Sends packets to a host, or from it, to a class of a root.
pub fn filter(device: &str, class: u32, host: u32, is_source: bool) -> Scheduler {
    // tc_u32_sel: a terminal one with one key of four bytes.
    let mut words = vec![1, 0, 1, 0];
    words.extend([0; 12]);
    // tc_u32_key: mask, value, offset, mask of the offset.
    words.extend(u32::MAX.to_be_bytes());
    words.extend(host.to_be_bytes());
    words.extend(if is_source { SOURCE } else { DESTINATION }.to_ne_bytes());
    words.extend([0; 4]);
    let options = Attributes::new()
        .u32(U32_CLASS, class)
        .put(U32_WORDS, &words);
    Scheduler {
        part: Part::Filter,
        device: device.into(),
        parent: class & 0xffff_0000,
        handle: ANY,
        kind: "u32".into(),
        options: Options::Attributes(options),
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
        part: Part::Discipline,
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
    use crate::netlink::attribute;

    /// 50 Gbit/s are 6.25e9 bytes a second, which four bytes cannot hold.
    #[test]
    fn a_high_rate_has_an_attribute_of_its_own() {
        let of = |mbps| class("eth0", 0x5d01, &link(Rate::from_mbps(mbps)));
        let Options::Attributes(slow) = of(10).options else {
            panic!("attributes");
        };
        let Options::Attributes(fast) = of(50_000).options else {
            panic!("attributes");
        };
        assert_eq!(slow.as_bytes().len(), 4 + 44);
        assert_eq!(fast.as_bytes().len(), 4 + 44 + 2 * 12);
        assert_eq!(&slow.as_bytes()[12..16], 1_250_000_u32.to_ne_bytes());
    }

    fn link(rate: Rate) -> Class {
        Class {
            minor: CLASS,
            parent: 0,
            rate,
            ceil: rate,
            burst: 0,
        }
    }

    /// The words of `tc filter add dev eth0 parent 5d01: protocol ip u32 match ip dst 10.2.3.1 flowid 5d01:4`.
    #[test]
    fn a_filter_compares_an_address() {
        let filter = filter("eth0", 0x5d01_0004, 0x0a02_0301, false);
        let Options::Attributes(options) = &filter.options else {
            panic!("attributes");
        };
        let words = attribute(options.as_bytes(), U32_WORDS).expect("words");
        assert_eq!(words.len(), 16 + 16);
        assert_eq!(words[16..24], [255, 255, 255, 255, 10, 2, 3, 1]);
        assert_eq!((filter.parent, words[24]), (0x5d01_0000, 16));
    }

    #[test]
    fn classes_and_disciplines_hang_on_the_root() {
        let class = class("eth0", 0x5d01, &link(Rate::from_mbps(10)));
        assert_eq!((class.parent, class.handle), (0x5d01_0000, 0x5d01_0001));
        let root = root("eth0", 0x5d01, 4);
        assert_eq!((root.parent, root.handle), (u32::MAX, 0x5d01_0000));
        assert_eq!(&sizes(4).as_bytes()[8..12], 4_i32.to_ne_bytes());
    }
}
