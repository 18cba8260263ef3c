//! The counters of a discipline as the kernel reports them (TCA_STATS2 of linux/rtnetlink.h, linux/pkt_sched.h).

use serde::{Deserialize, Serialize};

use super::row;
use crate::netlink::{attribute, attributes, number};

/// The counters of a discipline.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Drops for any reason.
    pub dropped: u64,
    /// Drops for lack of room.
    pub overflow: u64,
    /// Marks; `None` if the kernel does not count them.
    pub marked: Option<u64>,
    /// Packets in the queue.
    pub backlog_packets: u64,
    /// The drop probability, if it has one.
    pub probability: Option<f64>,
}

impl Counters {
    /// The counters of both together. Their drop probabilities have no sum.
    pub fn and(self, other: Self) -> Self {
        Self {
            dropped: self.dropped + other.dropped,
            overflow: self.overflow + other.overflow,
            marked: self.marked.zip(other.marked).map(|(one, two)| one + two),
            backlog_packets: self.backlog_packets + other.backlog_packets,
            probability: None,
        }
    }
}

/// Where a discipline's own counters stand.
#[derive(Clone, Copy)]
pub enum Source {
    /// In TCA_STATS_APP, as a structure.
    Application,
    /// In its options, as a structure.
    Options,
    /// In TCA_STATS_APP, as attributes by tin; the counters are attributes of a tin.
    Tins,
}

/// How to obtain the number of overflow drops.
#[derive(Clone, Copy)]
pub enum Overflow {
    /// All drops are overflow drops.
    All,
    /// The sum of these counters.
    Counted(&'static [usize]),
    /// All drops except those in these counters.
    AllBut(&'static [usize]),
    /// The counter of all disciplines by which some count overflows.
    Overlimits,
}

/// Where to find a discipline's counters of four bytes: offsets in its structure, or numbers of attributes.
#[derive(Clone, Copy)]
pub struct Statistics {
    pub source: Source,
    /// The counters of marks.
    pub marked: &'static [usize],
    pub overflow: Overflow,
    /// The offset of the drop probability: eight bytes, 2^64 standing for 1.
    pub probability: Option<usize>,
}

const STRUCTURE: Statistics = Statistics {
    source: Source::Application,
    marked: &[],
    overflow: Overflow::All,
    probability: None,
};
/// tc_codel_xstats: ecn_mark and ce_mark; drop_overlimit.
pub const CODEL: Statistics = Statistics {
    marked: &[24, 32],
    overflow: Overflow::Counted(&[20]),
    ..STRUCTURE
};
/// tc_fq_codel_xstats: ecn_mark and ce_mark; drop_overlimit.
pub const FQ_CODEL: Statistics = Statistics {
    marked: &[12, 28],
    overflow: Overflow::Counted(&[8]),
    ..STRUCTURE
};
/// tc_fq_qd_stats: ce_mark, the lower half of eight bytes.
pub const FQ: Statistics = Statistics {
    marked: &[80],
    overflow: Overflow::All,
    ..STRUCTURE
};
/// tc_hhf_xstats: all drops are for lack of room.
pub const HHF: Statistics = Statistics {
    marked: &[],
    overflow: Overflow::All,
    ..STRUCTURE
};
/// tc_pie_xstats: ecn_mark; overlimit; prob.
pub const PIE: Statistics = Statistics {
    marked: &[36],
    overflow: Overflow::Counted(&[28]),
    probability: Some(0),
    ..STRUCTURE
};
/// tc_fq_pie_xstats: ecn_mark; overlimit.
pub const FQ_PIE: Statistics = Statistics {
    marked: &[16],
    overflow: Overflow::Counted(&[8]),
    ..STRUCTURE
};
/// tc_red_xstats and tc_choke_xstats: marked; pdrop.
pub const RED: Statistics = Statistics {
    marked: &[12],
    overflow: Overflow::Counted(&[4]),
    ..STRUCTURE
};
/// tc_sfb_xstats: marked; queuedrop and childdrop.
pub const SFB: Statistics = Statistics {
    marked: &[20],
    overflow: Overflow::Counted(&[12, 16]),
    ..STRUCTURE
};
/// tc_sfq_qopt_v1: prob_mark and forced_mark, at the tail and at the head; prob_drop and forced_drop.
pub const SFQ_RED: Statistics = Statistics {
    source: Source::Options,
    marked: &[56, 60, 64, 68],
    overflow: Overflow::AllBut(&[48, 52]),
    ..STRUCTURE
};
/// TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS. CAKE does not count overflows apart.
pub const CAKE: Statistics = Statistics {
    source: Source::Tins,
    marked: &[8],
    overflow: Overflow::Counted(&[]),
    ..STRUCTURE
};
/// Its marks are counted where packets leave.
pub const DUALPI2: Statistics = Statistics {
    overflow: Overflow::Overlimits,
    ..STRUCTURE
};

/// TCA_OPTIONS and TCA_STATS2; TCA_STATS_QUEUE and TCA_STATS_APP in it; TCA_CAKE_STATS_TIN_STATS in that.
const OPTIONS: u16 = 2;
const STATISTICS: u16 = 7;
const OF_QUEUE: u16 = 3;
const OF_APPLICATION: u16 = 4;
const OF_TINS: u16 = 10;

/// Reads the counters of a discipline from the attributes of its description (RTM_NEWQDISC).
pub fn counters(aqm: &str, described: &[u8]) -> Option<Counters> {
    let known = row(aqm)?.statistics;
    let statistics = attribute(described, STATISTICS)?;
    // gnet_stats_queue: qlen, backlog, drops, requeues, overlimits.
    let queue = attribute(statistics, OF_QUEUE)?;
    let dropped = number::<4>(queue, 8)?;
    let own = match known.source {
        Source::Options => attribute(described, OPTIONS),
        Source::Application | Source::Tins => attribute(statistics, OF_APPLICATION),
    }
    .unwrap_or_default();
    let sum = |counters: &[usize]| -> u64 {
        match known.source {
            Source::Tins => attributes(attribute(own, OF_TINS).unwrap_or_default())
                .flat_map(|(_, tin)| attributes(tin))
                .filter(|(counter, _)| counters.contains(&usize::from(*counter)))
                .filter_map(|(_, value)| number::<4>(value, 0))
                .sum(),
            Source::Application | Source::Options => {
                counters.iter().filter_map(|at| number::<4>(own, *at)).sum()
            }
        }
    };
    Some(Counters {
        dropped,
        overflow: match known.overflow {
            Overflow::All => dropped,
            Overflow::Counted(counters) => sum(counters).min(dropped),
            Overflow::AllBut(counters) => dropped.saturating_sub(sum(counters)),
            Overflow::Overlimits => number::<4>(queue, 16)?.min(dropped),
        },
        marked: (!known.marked.is_empty()).then(|| sum(known.marked)),
        backlog_packets: number::<4>(queue, 0)?,
        probability: known
            .probability
            .and_then(|at| number::<8>(own, at))
            .map(|scaled| scaled as f64 / 2_f64.powi(64)),
    })
}
