//! User priorities, access categories and their contention parameters.

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

/// A user priority, which is also the TID of its traffic (IEEE 802.11-2020 §10.2.3.2, table 10-1); ordered as in that table,
/// lowest first. Each category has two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UserPriority {
    /// Its place in the table.
    place: u8,
}

impl UserPriority {
    /// All, lowest first.
    pub const ALL: [Self; 8] = [
        Self::at(0),
        Self::at(1),
        Self::at(2),
        Self::at(3),
        Self::at(4),
        Self::at(5),
        Self::at(6),
        Self::at(7),
    ];
    /// That of traffic without QoS.
    pub const BEST_EFFORT: Self = Self::new(0);
    /// The numbers of [`UserPriority::ALL`].
    const NUMBERS: [u8; 8] = [1, 2, 0, 3, 4, 5, 6, 7];

    /// The one at an index of [`UserPriority::ALL`], of which three bits count.
    pub(crate) const fn at(index: usize) -> Self {
        let place = index as u8 & 7;
        Self { place }
    }

    /// The one of a number, of which three bits count.
    pub const fn new(number: u8) -> Self {
        const PLACES: [u8; 8] = [2, 0, 1, 3, 4, 5, 6, 7];
        let place = PLACES[(number & 7) as usize];
        Self { place }
    }

    /// Its number, 0 to 7.
    pub const fn number(self) -> u8 {
        Self::NUMBERS[self.index()]
    }

    /// Its index in [`UserPriority::ALL`]. Half of it is its category's.
    pub const fn index(self) -> usize {
        (self.place & 7) as usize
    }

    /// Its category.
    pub const fn access(self) -> Access {
        Access::ALL[self.index() / 2]
    }

    /// The other one of its category.
    pub const fn other(self) -> Self {
        Self {
            place: self.place ^ 1,
        }
    }
}

/// How DiffServ code points map to user priorities (`cfg80211_classify8021d`).
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

    /// The user priority of a code point.
    pub const fn priority(self, dscp: u8) -> UserPriority {
        let number = match (self, dscp) {
            (Self::Rfc8325, 10 | 12 | 14 | 16) => 0,
            (Self::Rfc8325, 18 | 20 | 22) => 3,
            (Self::Rfc8325, 24 | 26 | 28 | 30) => 4,
            (Self::Rfc8325, 44 | 46) => 6,
            (Self::Rfc8325, 48) => 7,
            _ => (dscp >> 3) & 7,
        };
        UserPriority::new(number)
    }

    /// The category of a code point.
    pub const fn access(self, dscp: u8) -> Access {
        self.priority(dscp).access()
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
    fn a_category_has_two_user_priorities() {
        // IEEE 802.11-2020 table 10-1, lowest first.
        use Access::{Background, BestEffort, Video, Voice};
        let table = [
            (1, Background),
            (2, Background),
            (0, BestEffort),
            (3, BestEffort),
            (4, Video),
            (5, Video),
            (6, Voice),
            (7, Voice),
        ];
        let ours = UserPriority::ALL.map(|priority| (priority.number(), priority.access()));
        assert_eq!(ours, table);
        for (index, priority) in UserPriority::ALL.into_iter().enumerate() {
            assert_eq!(UserPriority::new(priority.number()), priority);
            assert_eq!(priority.index(), index);
            assert_eq!(priority.other().access(), priority.access());
            assert_ne!(priority.other(), priority);
        }
    }

    #[test]
    fn code_points_of_a_category_may_differ_in_user_priority() {
        let of = |map: PriorityMap, dscp| map.priority(dscp).number();
        for (dscp, until_6_7, rfc8325) in [
            (0, 0, 0),
            // AF11, CS2 and AF21: RFC 8325, section 4.2.9, 4.2.10 and 4.2.8.
            (10, 1, 0),
            (16, 2, 0),
            (18, 2, 3),
            // AF31, AF41, CS5 and EF.
            (26, 3, 4),
            (34, 4, 4),
            (40, 5, 5),
            (46, 5, 6),
            // CS6 and CS7.
            (48, 6, 7),
            (56, 7, 7),
        ] {
            let found = [PriorityMap::Precedence, PriorityMap::Rfc8325].map(|map| of(map, dscp));
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
