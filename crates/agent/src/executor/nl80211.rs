//! The side of an access point that a user-space daemon has: nl80211 by generic netlink (linux/nl80211.h).
//!
//! Stations are told to the kernel as associated and authorised. They exist nowhere else.

use super::Failure;
use super::generic::Family;
use super::link::index;
use crate::netlink::Attributes;
use crate::wifi::Rate;

/// The first channel that every regulatory domain allows: 2437 MHz.
const FREQUENCY: u32 = 2437;
const SET_WIPHY: u8 = 2;
const NEW_INTERFACE: u8 = 7;
const START_AP: u8 = 15;
const NEW_STATION: u8 = 19;

mod attributes {
    pub const WIPHY: u16 = 1;
    pub const INTERFACE: u16 = 3;
    pub const NAME: u16 = 4;
    pub const TYPE: u16 = 5;
    pub const ADDRESS: u16 = 6;
    pub const BEACON_INTERVAL: u16 = 12;
    pub const DTIM_PERIOD: u16 = 13;
    pub const BEACON_HEAD: u16 = 14;
    pub const ASSOCIATION: u16 = 16;
    pub const LISTEN_INTERVAL: u16 = 18;
    pub const SUPPORTED_RATES: u16 = 19;
    pub const HT_CAPABILITY: u16 = 31;
    pub const FREQUENCY: u16 = 38;
    pub const NETWORK: u16 = 52;
    pub const FLAGS: u16 = 67;
    pub const WIDTH: u16 = 159;
    pub const LIMIT: u16 = 266;
    pub const MEMORY_LIMIT: u16 = 267;
}

/// NL80211_IFTYPE_AP and NL80211_CHAN_WIDTH_20.
const ACCESS_POINT: u32 = 3;
const WIDTH_20: u32 = 1;
/// The bits of NL80211_STA_FLAG_AUTHORIZED, _WME, _AUTHENTICATED and _ASSOCIATED.
const MEMBER: u32 = 1 << 1 | 1 << 3 | 1 << 5 | 1 << 7;
const NETWORK: &[u8] = b"sojourn";
/// The rates of 802.11b and g in units of 500 kbit/s.
const LEGACY: [u8; 12] = [2, 4, 11, 22, 12, 18, 24, 36, 48, 72, 96, 108];

/// An address. Number 0 is the access point's interface.
pub const fn address(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, number]
}

/// A connection to nl80211.
pub struct Nl80211(Family);

impl Nl80211 {
    /// # Errors
    /// The kernel has no nl80211.
    pub fn open() -> Result<Self, Failure> {
        Family::open(None, "nl80211").map(Self)
    }

    /// Sets limits of all queues of a radio.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn limit(
        &self,
        wiphy: u32,
        packets: Option<u32>,
        memory: Option<u32>,
    ) -> Result<(), Failure> {
        let limits = [
            (attributes::LIMIT, packets),
            (attributes::MEMORY_LIMIT, memory),
        ];
        let mut body = Attributes::new().u32(attributes::WIPHY, wiphy);
        for (of, limit) in limits {
            if let Some(limit) = limit {
                body = body.u32(of, limit);
            }
        }
        self.0
            .call(SET_WIPHY, &body, "setting limits of queues")
            .map(drop)
    }

    /// Creates an interface of type access point.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new_interface(&self, wiphy: u32, name: &str) -> Result<(), Failure> {
        let body = Attributes::new()
            .u32(attributes::WIPHY, wiphy)
            .text(attributes::NAME, name)
            .u32(attributes::TYPE, ACCESS_POINT)
            .put(attributes::ADDRESS, &address(0));
        self.0
            .call(NEW_INTERFACE, &body, "creating the access point")
            .map(drop)
    }

    /// Starts the access point of an interface that is up.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(&self, name: &str) -> Result<(), Failure> {
        let body = Attributes::new()
            .u32(attributes::INTERFACE, index(None, name)?)
            .u32(attributes::BEACON_INTERVAL, 100)
            .u32(attributes::DTIM_PERIOD, 2)
            .put(attributes::BEACON_HEAD, &beacon())
            .put(attributes::NETWORK, NETWORK)
            .u32(attributes::FREQUENCY, FREQUENCY)
            .u32(attributes::WIDTH, WIDTH_20);
        self.0
            .call(START_AP, &body, "starting the access point")
            .map(drop)
    }

    /// Adds an associated and authorised station, whose highest rate is this one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new_station(&self, name: &str, station: u8, rate: Rate) -> Result<(), Failure> {
        let rates = match rate {
            Rate::Legacy(only) => vec![only],
            Rate::Mcs(_) => LEGACY.to_vec(),
        };
        let mut body = Attributes::new()
            .u32(attributes::INTERFACE, index(None, name)?)
            .put(attributes::ADDRESS, &address(station))
            .put(attributes::ASSOCIATION, &u16::from(station).to_ne_bytes())
            .put(attributes::LISTEN_INTERVAL, &1_u16.to_ne_bytes())
            .put(attributes::SUPPORTED_RATES, &rates);
        if let Rate::Mcs(only) = rate {
            body = body.put(attributes::HT_CAPABILITY, &capability(only));
        }
        let flags = [MEMBER.to_ne_bytes(), MEMBER.to_ne_bytes()].concat();
        let body = body.put(attributes::FLAGS, &flags);
        self.0
            .call(NEW_STATION, &body, &format!("adding station {station}"))
            .map(drop)
    }
}

/// A beacon up to its traffic indication map (IEEE 802.11-2020, §9.3.3.2): header, fixed fields, network, rates.
fn beacon() -> Vec<u8> {
    let mut frame = vec![0x80, 0, 0, 0];
    frame.extend([0xff; 6]);
    frame.extend(address(0));
    frame.extend(address(0));
    frame.extend([0; 2]);
    // Timestamp, interval, capabilities: an access point with short slots.
    frame.extend([0; 8]);
    frame.extend(100_u16.to_le_bytes());
    frame.extend(0x0401_u16.to_le_bytes());
    frame.extend([0, NETWORK.len() as u8]);
    frame.extend(NETWORK);
    // The first four are basic rates.
    frame.extend([1, 8]);
    frame.extend(
        LEGACY[..8]
            .iter()
            .enumerate()
            .map(|(at, rate)| rate | if at < 4 { 0x80 } else { 0 }),
    );
    frame.extend([50, 4]);
    frame.extend(&LEGACY[8..]);
    frame
}

/// HT capabilities (IEEE 802.11-2020, §9.4.2.55) whose highest index is this one.
fn capability(highest: u8) -> [u8; 26] {
    let mut capability = [0; 26];
    // Longest aggregate: 65535 bytes.
    capability[2] = 3;
    for index in 0..=highest {
        capability[3 + usize::from(index / 8)] |= 1 << (index % 8);
    }
    // The transmit set is defined.
    capability[15] = 1;
    capability
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 24 bytes of header and 12 of fixed fields; then elements of 2 + 7, 2 + 8 and 2 + 4 bytes.
    #[test]
    fn a_beacon_has_its_elements() {
        let beacon = beacon();
        assert_eq!(beacon.len(), 24 + 12 + 9 + 10 + 6);
        assert_eq!(beacon[36..45], *b"\0\x07sojourn");
        assert_eq!(
            beacon[45..55],
            [1, 8, 0x82, 0x84, 0x8b, 0x96, 12, 18, 24, 36]
        );
    }

    #[test]
    fn a_station_announces_every_index_up_to_its_rate() {
        assert_eq!(capability(7)[3..5], [0xff, 0]);
        assert_eq!(capability(9)[3..5], [0xff, 3]);
    }
}
