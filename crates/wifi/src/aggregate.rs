//! Limits of aggregation, and the sizes of MPDUs, A-MSDUs and A-MPDUs.

use alloc::vec::Vec;

use sojourn_units::Duration;

use crate::block_ack::{Sequence, WINDOW};
use crate::frames;
use crate::phy::{Mode, Standard, Timing};

/// How much goes into one transmission. The tightest limit applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aggregation {
    /// MPDUs of an A-MPDU, at most 64; 1: no aggregation.
    pub frames: u16,
    /// Bytes of an A-MPDU, with delimiters and padding.
    pub bytes: u32,
    /// How long a PPDU may last.
    pub duration: Duration,
    /// Bytes of an A-MSDU; 0: no A-MSDU, each MPDU carries one packet.
    pub amsdu_bytes: u32,
}

/// aPPDUMaxTime of HT mixed format and VHT (IEEE 802.11-2020 tables 19-25 and 21-29).
pub const LONGEST_PPDU: Duration = Duration::from_micros(5_484);

impl Aggregation {
    /// One frame per transmission.
    pub const NONE: Self = Self {
        frames: 1,
        bytes: u32::MAX,
        duration: Duration::MAX,
        amsdu_bytes: 0,
    };

    /// The most that a standard allows, without A-MSDU: 64 frames, 2^16 - 1 bytes (802.11n) or 2^20 - 1 (802.11ac), 5.484 ms.
    pub const fn most(standard: Standard) -> Self {
        let bytes = match standard {
            Standard::B | Standard::G => return Self::NONE,
            Standard::N => (1 << 16) - 1,
            Standard::Ac => (1 << 20) - 1,
        };
        Self {
            frames: WINDOW,
            bytes,
            duration: LONGEST_PPDU,
            amsdu_bytes: 0,
        }
    }

    /// The limits of Linux's ath9k: half a window of frames, 65535 bytes, 4 ms.
    pub const fn ath9k() -> Self {
        Self {
            frames: WINDOW / 2,
            bytes: (1 << 16) - 1,
            duration: Duration::from_millis(4),
            amsdu_bytes: 0,
        }
    }
}

/// What an MPDU adds to its packets, in a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Bytes of [`sojourn_aqm::Packet::bytes`] that are not sent on the air: an Ethernet header.
    pub link_header: u32,
    /// Whether it has the QoS control field.
    pub qos: bool,
    /// Whether it is encrypted by CCMP (WPA2).
    pub ccmp: bool,
}

impl Framing {
    /// Bytes of the MSDU of a packet: LLC in place of the link header.
    pub fn msdu(&self, packet_bytes: u32) -> u32 {
        packet_bytes
            .saturating_sub(self.link_header)
            .saturating_add(frames::LLC)
    }

    /// Bytes of the MPDU of an MSDU or A-MSDU.
    pub fn mpdu(&self, msdu_bytes: u32) -> u32 {
        let header = if self.qos {
            frames::QOS_DATA
        } else {
            frames::DATA
        };
        let cipher = if self.ccmp { frames::CCMP } else { 0 };
        msdu_bytes.saturating_add(header + cipher)
    }
}

/// An MPDU and its packets. The packets leave it when the receiver gets them.
#[derive(Debug)]
pub(crate) struct Mpdu<P> {
    pub sequence: Sequence,
    /// From the MAC header to the FCS.
    pub bytes: u32,
    pub packet: Option<P>,
    /// The further packets of an A-MSDU.
    pub more: Vec<P>,
    /// How often it was sent without an acknowledgement.
    pub failures: u8,
    /// AQL's estimate of its airtime, in µs.
    pub estimate: u32,
}

impl<P> Mpdu<P> {
    /// Takes the packets for the receiver. `None` if an earlier transmission was received and only its answer was lost.
    pub(crate) fn take(&mut self) -> Option<(P, Vec<P>)> {
        let packet = self.packet.take()?;
        Some((packet, core::mem::take(&mut self.more)))
    }

    /// Returns the frame with its packets, which this one no longer has.
    pub(crate) fn take_whole(&mut self) -> Self {
        Self {
            packet: self.packet.take(),
            more: core::mem::take(&mut self.more),
            ..*self
        }
    }

    /// Packets still in it.
    pub(crate) fn packets(&self) -> usize {
        usize::from(self.packet.is_some()) + self.more.len()
    }
}

/// The length of a PSDU as frames are added to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Psdu {
    frames: u32,
    bytes: u32,
    /// Bytes of the last frame, without a delimiter.
    last: u32,
}

impl Psdu {
    /// The PSDU with another frame. Each frame has a delimiter, and all but the last are padded.
    pub(crate) fn with(self, mpdu_bytes: u32) -> Self {
        Self {
            frames: self.frames + 1,
            bytes: (frames::padded(self.bytes).saturating_add(frames::DELIMITER))
                .saturating_add(mpdu_bytes),
            last: mpdu_bytes,
        }
    }

    /// Frames in it.
    pub(crate) const fn frames(self) -> u32 {
        self.frames
    }

    /// Bytes handed to the PHY. A single frame has no delimiter, except in VHT, where every PSDU is an A-MPDU.
    pub(crate) const fn bytes(self, mode: Mode) -> u32 {
        match (self.frames, mode) {
            (1, Mode::Vht(_)) => self.bytes,
            (1, _) => self.last,
            _ => self.bytes,
        }
    }
}

/// The aggregates that the limits allow in a transmission mode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// The most frames.
    frames: u32,
    /// The most bytes of several frames.
    bytes: u32,
}

impl Room {
    /// For a single frame, which may always be sent.
    const SINGLE: Self = Self {
        frames: 1,
        bytes: 0,
    };

    fn new(mode: Mode, limits: &Aggregation, timing: &Timing) -> Self {
        let is_short = |bytes: u32| timing.airtime(mode, bytes) <= limits.duration;
        let mut bytes = limits.bytes;
        if !is_short(bytes) {
            // More bytes never take less time.
            let mut short = 0;
            while bytes - short > 1 {
                let middle = short + (bytes - short) / 2;
                if is_short(middle) {
                    short = middle;
                } else {
                    bytes = middle;
                }
            }
            bytes = short;
        }
        Self {
            frames: limits.frames.into(),
            bytes,
        }
    }

    /// True if this may be sent.
    pub(crate) const fn holds(self, psdu: Psdu) -> bool {
        psdu.frames <= 1 || (psdu.frames <= self.frames && psdu.bytes <= self.bytes)
    }
}

/// The room of each mode in which a cell has aggregated.
#[derive(Debug, Default)]
pub(crate) struct Rooms(Vec<(Mode, Room)>);

impl Rooms {
    /// The room of a mode. `limits` are always the same, or allow a single frame.
    pub(crate) fn of(&mut self, mode: Mode, limits: &Aggregation, timing: &Timing) -> Room {
        if limits.frames <= 1 || !mode.can_aggregate() {
            return Room::SINGLE;
        }
        if let Some((_, room)) = self.0.iter().find(|(known, _)| *known == mode) {
            return *room;
        }
        let room = Room::new(mode, limits, timing);
        self.0.push((mode, room));
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{Band, Guard, Ht, Vht, Width};

    fn ht(mcs: u8, streams: u8) -> Mode {
        Mode::Ht(Ht::new(mcs, streams, Width::Mhz20, Guard::Long).expect("exists"))
    }

    fn most_frames(mode: Mode, limits: Aggregation, mpdu: u32) -> u32 {
        let timing = Timing::new(Standard::N, Band::Ghz5);
        let mut psdu = Psdu::default();
        let room = Rooms::default().of(mode, &limits, &timing);
        while room.holds(psdu.with(mpdu)) {
            psdu = psdu.with(mpdu);
        }
        psdu.frames()
    }

    #[test]
    fn subframes_have_delimiters_and_padding() {
        // 1538 bytes: 4 + 1538, padded by 2 to 1544 but for the last.
        let two = Psdu::default().with(1538).with(1538);
        assert_eq!(two.bytes(ht(0, 1)), 1544 + 1542);
        let one = Psdu::default().with(1538);
        assert_eq!(one.bytes(ht(0, 1)), 1538);
        let vht = Mode::Vht(Vht::new(0, 1, Width::Mhz20, Guard::Long).expect("exists"));
        assert_eq!(one.bytes(vht), 1542);
    }

    #[test]
    fn the_tightest_limit_applies() {
        let most = Aggregation::most(Standard::N);
        // At MCS 15 the bytes limit: 65535 / 1544 = 42.4. At MCS 0 the time limits: 5484 µs - 36 are 1362 symbols of 26
        // bits, 4423 bytes, two frames.
        assert_eq!(most_frames(ht(7, 2), most, 1538), 42);
        assert_eq!(most_frames(ht(0, 1), most, 1538), 2);
        // For frames of 100 bytes the Block Ack window limits.
        assert_eq!(most_frames(ht(7, 2), most, 100), 64);
        // ath9k's own table has 3212 bytes in 4 ms at MCS 0, two frames, and 19300 at MCS 4, 12 frames.
        assert_eq!(most_frames(ht(0, 1), Aggregation::ath9k(), 1538), 2);
        assert_eq!(most_frames(ht(4, 1), Aggregation::ath9k(), 1538), 12);
        assert_eq!(most_frames(ht(7, 2), Aggregation::ath9k(), 1538), 32);
        assert_eq!(most_frames(ht(7, 2), Aggregation::NONE, 1538), 1);
    }

    /// For each mode and every length up to the limit of bytes.
    #[test]
    fn what_has_room_lasts_no_longer_than_the_limit() {
        let timing = Timing::new(Standard::N, Band::Ghz5);
        let limits = [
            Aggregation::most(Standard::N),
            Aggregation::ath9k(),
            Aggregation {
                duration: Duration::from_micros(200),
                ..Aggregation::ath9k()
            },
        ];
        for limits in limits {
            for (mcs, streams) in [(0, 1), (3, 1), (7, 1), (4, 2), (7, 2)] {
                let mode = ht(mcs, streams);
                let room = Rooms::default().of(mode, &limits, &timing);
                for bytes in 0..=limits.bytes + 1 {
                    let psdu = Psdu {
                        frames: 2,
                        bytes,
                        last: 1,
                    };
                    let is_short = timing.airtime(mode, bytes) <= limits.duration;
                    assert_eq!(
                        room.holds(psdu),
                        is_short && bytes <= limits.bytes,
                        "{bytes}"
                    );
                }
            }
        }
    }

    #[test]
    fn framing_adds_llc_mac_header_fcs_and_ccmp() {
        let framing = Framing {
            link_header: 14,
            qos: true,
            ccmp: true,
        };
        // 1500 bytes of IP in Ethernet: 1500 + 8 LLC + 26 + 4 + 16.
        assert_eq!(framing.mpdu(framing.msdu(1514)), 1554);
    }
}
