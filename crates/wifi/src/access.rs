//! Access categories and their contention parameters.

use sojourn_units::Duration;

use crate::phy::{Standard, Timing};

/// An access category (IEEE 802.11-2020 §10.2.3.2), lowest priority first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    /// AC_BK, background.
    Background,
    /// AC_BE, best effort: all traffic without QoS.
    BestEffort,
    /// AC_VI, video.
    Video,
    /// AC_VO, voice.
    Voice,
}

impl Access {
    /// All, lowest priority first.
    pub const ALL: [Self; 4] = [Self::Background, Self::BestEffort, Self::Video, Self::Voice];

    /// Its index in [`Access::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// How DiffServ code points map to user priorities, and these to categories by IEEE 802.11-2020 table 10-1
/// (`cfg80211_classify8021d`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PriorityMap {
    /// The upper three bits of the code point are the user priority, as in Linux until 6.7.
    Precedence,
    /// RFC 8325, section 4, since Linux 6.8: with its exceptions for AF1x, AF2x, AF3x, CS2, CS3, CS6, EF and VA.
    Rfc8325,
}

impl PriorityMap {
    /// The one of a kernel version.
    pub fn of_kernel(major: u32, minor: u32) -> Self {
        if (major, minor) >= (6, 8) {
            Self::Rfc8325
        } else {
            Self::Precedence
        }
    }

    /// The category of a code point.
    pub const fn access(self, dscp: u8) -> Access {
        let priority = match (self, dscp) {
            (Self::Rfc8325, 10 | 12 | 14 | 16) => 0,
            (Self::Rfc8325, 18 | 20 | 22) => 3,
            (Self::Rfc8325, 24 | 26 | 28 | 30) => 4,
            (Self::Rfc8325, 44 | 46) => 6,
            (Self::Rfc8325, 48) => 7,
            _ => (dscp >> 3) & 7,
        };
        match priority {
            1 | 2 => Access::Background,
            0 | 3 => Access::BestEffort,
            4 | 5 => Access::Video,
            _ => Access::Voice,
        }
    }
}

/// The contention parameters of a category.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contending {
    /// AIFSN, the slots of AIFS. With 2 of them, AIFS is DIFS.
    pub aifs_slots: u32,
    /// CWmin, the first contention window, in slots.
    pub cw_min: u32,
    /// CWmax, the largest contention window, in slots.
    pub cw_max: u32,
    /// TXOP limit: how long a node may send after it has won the medium; zero: one exchange.
    pub txop: Duration,
}

/// Parameters by [`Access::index`].
pub type AccessSet = [Contending; 4];

/// DCF: every frame waits for DIFS and uses the standard's contention window.
pub fn dcf(timing: &Timing) -> AccessSet {
    let contending = Contending {
        aifs_slots: 2,
        cw_min: timing.cw_min,
        cw_max: timing.cw_max,
        txop: Duration::ZERO,
    };
    [contending; 4]
}

/// The defaults of a station (IEEE 802.11-2016 table 9-137, OFDM; the same in mac80211's `ieee80211_set_wmm_default`). The
/// edition of 2020 has a TXOP limit of 2528 µs for background and best effort, but access points announce zero.
pub fn station_edca(timing: &Timing) -> AccessSet {
    let (min, max) = (timing.cw_min, timing.cw_max);
    [
        contending(7, min, max, 0),
        contending(3, min, max, 0),
        contending(2, min.div_ceil(2).max(1) - 1, min, 3_008),
        contending(
            2,
            min.div_ceil(4).max(1) - 1,
            min.div_ceil(2).max(1) - 1,
            1_504,
        ),
    ]
    .map(at_least_one)
}

/// What an access point itself uses: the defaults of hostapd.conf, from `tx_queue_data3` for background to `tx_queue_data0`
/// for voice. The CWmax of best effort is 63 (`tx_queue_data2_cwmax`).
pub fn access_point_edca(timing: &Timing) -> AccessSet {
    let station = station_edca(timing);
    [
        station[0],
        Contending {
            cw_max: 63.max(timing.cw_min),
            ..station[1]
        },
        Contending {
            aifs_slots: 1,
            ..station[2]
        },
        Contending {
            aifs_slots: 1,
            ..station[3]
        },
    ]
}

/// The default parameters of a node in a cell of this standard.
pub fn default_set(standard: Standard, timing: &Timing, is_access_point: bool) -> AccessSet {
    match (standard.has_qos(), is_access_point) {
        (false, _) => dcf(timing),
        (true, false) => station_edca(timing),
        (true, true) => access_point_edca(timing),
    }
}

const fn contending(aifs_slots: u32, cw_min: u32, cw_max: u32, txop_us: u64) -> Contending {
    Contending {
        aifs_slots,
        cw_min,
        cw_max,
        txop: Duration::from_micros(txop_us),
    }
}

fn at_least_one(contending: Contending) -> Contending {
    Contending {
        cw_min: contending.cw_min.max(1),
        cw_max: contending.cw_max.max(1),
        ..contending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::Band;

    #[test]
    fn code_points_map_to_categories() {
        use Access::{Background, BestEffort, Video, Voice};
        for (dscp, until_6_7, rfc8325) in [
            (0, BestEffort, BestEffort),
            // CS1 stays in the background; AF1x and CS2 do not (RFC 8325, sections 4.2.9 and 4.2.10).
            (8, Background, Background),
            (10, Background, BestEffort),
            (16, Background, BestEffort),
            (18, Background, BestEffort),
            // CS3 and AF3x: broadcast and streamed video (section 4.2.5, 4.2.6).
            (24, BestEffort, Video),
            (30, BestEffort, Video),
            (34, Video, Video),
            (40, Video, Video),
            // NQB: RFC 9956 chose its value for this category.
            (45, Video, Video),
            // VA and EF: voice (section 4.2.1).
            (44, Video, Voice),
            (46, Video, Voice),
            (48, Voice, Voice),
            (63, Voice, Voice),
        ] {
            let maps = [PriorityMap::of_kernel(6, 7), PriorityMap::of_kernel(6, 8)];
            let found = maps.map(|map| map.access(dscp));
            assert_eq!(found, [until_6_7, rfc8325], "{dscp}");
        }
    }

    #[test]
    fn windows_of_ofdm_are_those_of_the_table() {
        let timing = Timing::new(Standard::N, Band::Ghz2);
        let windows = |set: AccessSet| set.map(|of| (of.aifs_slots, of.cw_min, of.cw_max));
        let station = [(7, 15, 1023), (3, 15, 1023), (2, 7, 15), (2, 3, 7)];
        assert_eq!(windows(station_edca(&timing)), station);
        let access_point = [(7, 15, 1023), (3, 15, 63), (1, 7, 15), (1, 3, 7)];
        assert_eq!(windows(access_point_edca(&timing)), access_point);
    }
}
