//! The side of an access point that a user-space daemon has: nl80211 by generic netlink (linux/nl80211.h).
//!
//! Stations are told to the kernel as associated and authorised. They exist nowhere else.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use super::netlink::{ATTRIBUTE, ERROR, HEADER, attribute, message, number};
use super::{Context, Failure};
use crate::wifi::Rate;

/// The first channel that every regulatory domain allows: 2437 MHz.
const FREQUENCY: u32 = 2437;
/// GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID and CTRL_ATTR_FAMILY_NAME (linux/genetlink.h).
const CONTROL: (u16, u8, u16, u16) = (16, 3, 1, 2);
/// Length of genlmsghdr.
const GENERIC: usize = 4;
/// NLM_F_REQUEST | NLM_F_ACK.
const REQUEST: u16 = 5;

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
pub struct Nl80211 {
    socket: OwnedFd,
    family: u16,
}

impl Nl80211 {
    /// # Errors
    /// The kernel has no nl80211.
    pub fn open() -> Result<Self, Failure> {
        let opening = || "opening nl80211".to_owned();
        let (kind, flags) = (SockType::Raw, SockFlag::SOCK_CLOEXEC);
        let protocol = SockProtocol::NetlinkGeneric;
        let socket = socket(AddressFamily::Netlink, kind, flags, protocol).context(opening)?;
        let mut new = Self { socket, family: 0 };
        let (control, command, id, name) = CONTROL;
        let mut body = Vec::new();
        attribute(&mut body, name, b"nl80211\0");
        new.send(control, command, &body).context(opening)?;
        let answer = new.receive().context(opening)?;
        let missing = || Failure("the kernel has no nl80211".into());
        let (kind, body, _) = message(&answer).ok_or_else(missing)?;
        if kind == ERROR {
            return Err(missing());
        }
        new.family = find(body.get(GENERIC..).unwrap_or_default(), id)
            .and_then(|value| number::<2>(value, 0))
            .ok_or_else(missing)? as u16;
        // The acknowledgement.
        new.receive().context(opening)?;
        Ok(new)
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
        let mut body = Vec::new();
        attribute(&mut body, attributes::WIPHY, &wiphy.to_ne_bytes());
        for (of, limit) in [
            (attributes::LIMIT, packets),
            (attributes::MEMORY_LIMIT, memory),
        ] {
            if let Some(limit) = limit {
                attribute(&mut body, of, &limit.to_ne_bytes());
            }
        }
        self.call(SET_WIPHY, &body, "setting limits of queues")
    }

    /// Creates an interface of type access point.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new_interface(&self, wiphy: u32, name: &str) -> Result<(), Failure> {
        let mut body = Vec::new();
        attribute(&mut body, attributes::WIPHY, &wiphy.to_ne_bytes());
        attribute(
            &mut body,
            attributes::NAME,
            &[name.as_bytes(), b"\0"].concat(),
        );
        attribute(&mut body, attributes::TYPE, &ACCESS_POINT.to_ne_bytes());
        attribute(&mut body, attributes::ADDRESS, &address(0));
        self.call(NEW_INTERFACE, &body, "creating the access point")
    }

    /// Starts the access point of an interface that is up.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(&self, name: &str) -> Result<(), Failure> {
        let starting = "starting the access point";
        let mut body = Vec::new();
        attribute(
            &mut body,
            attributes::INTERFACE,
            &index(name)?.to_ne_bytes(),
        );
        attribute(
            &mut body,
            attributes::BEACON_INTERVAL,
            &100_u32.to_ne_bytes(),
        );
        attribute(&mut body, attributes::DTIM_PERIOD, &2_u32.to_ne_bytes());
        attribute(&mut body, attributes::BEACON_HEAD, &beacon());
        attribute(&mut body, attributes::NETWORK, NETWORK);
        attribute(&mut body, attributes::FREQUENCY, &FREQUENCY.to_ne_bytes());
        attribute(&mut body, attributes::WIDTH, &WIDTH_20.to_ne_bytes());
        self.call(START_AP, &body, starting)
    }

    /// Adds an associated and authorised station, whose highest rate is this one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new_station(&self, name: &str, station: u8, rate: Rate) -> Result<(), Failure> {
        let mut body = Vec::new();
        attribute(
            &mut body,
            attributes::INTERFACE,
            &index(name)?.to_ne_bytes(),
        );
        attribute(&mut body, attributes::ADDRESS, &address(station));
        attribute(
            &mut body,
            attributes::ASSOCIATION,
            &u16::from(station).to_ne_bytes(),
        );
        attribute(&mut body, attributes::LISTEN_INTERVAL, &1_u16.to_ne_bytes());
        let rates = match rate {
            Rate::Legacy(only) => vec![only],
            Rate::Mcs(_) => LEGACY.to_vec(),
        };
        attribute(&mut body, attributes::SUPPORTED_RATES, &rates);
        if let Rate::Mcs(only) = rate {
            attribute(&mut body, attributes::HT_CAPABILITY, &capability(only));
        }
        let flags = [MEMBER.to_ne_bytes(), MEMBER.to_ne_bytes()].concat();
        attribute(&mut body, attributes::FLAGS, &flags);
        self.call(NEW_STATION, &body, &format!("adding station {station}"))
    }

    fn call(&self, command: u8, body: &[u8], doing: &str) -> Result<(), Failure> {
        self.send(self.family, command, body)
            .context(|| doing.into())?;
        loop {
            let answer = self.receive().context(|| doing.into())?;
            let Some((kind, body, _)) = message(&answer) else {
                return Err(Failure(format!("{doing}: no answer")));
            };
            // Before the acknowledgement may come what was made.
            if kind == ERROR {
                return match number::<4>(body, 0).map(|code| code as u32 as i32) {
                    Some(0) => Ok(()),
                    code => Err(nix::errno::Errno::from_raw(-code.unwrap_or(0)))
                        .context(|| doing.into()),
                };
            }
        }
    }

    fn send(&self, family: u16, command: u8, body: &[u8]) -> nix::Result<usize> {
        let request = request(family, command, body);
        send(self.socket.as_raw_fd(), &request, MsgFlags::empty())
    }

    fn receive(&self) -> nix::Result<Vec<u8>> {
        let mut answer = vec![0; 1 << 16];
        let length = recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        answer.truncate(length);
        Ok(answer)
    }
}

fn index(name: &str) -> Result<u32, Failure> {
    if_nametoindex(name).context(|| format!("looking for {name}"))
}

/// nlmsghdr, genlmsghdr, and the attributes.
fn request(family: u16, command: u8, body: &[u8]) -> Vec<u8> {
    let mut request = Vec::new();
    request.extend(((HEADER + GENERIC + body.len()) as u32).to_ne_bytes());
    request.extend(family.to_ne_bytes());
    request.extend(REQUEST.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([command, 1, 0, 0]);
    request.extend(body);
    request
}

/// The value of an attribute.
fn find(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = number::<2>(attributes, 0)? as usize;
        let kind = number::<2>(attributes, 2)? as u16;
        if kind == wanted {
            return attributes.get(ATTRIBUTE..length);
        }
        attributes = attributes.get(length.max(ATTRIBUTE).next_multiple_of(4)..)?;
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

    #[test]
    fn a_request_holds_the_command_and_its_attributes() {
        let mut body = Vec::new();
        attribute(&mut body, attributes::WIPHY, &7_u32.to_ne_bytes());
        attribute(&mut body, attributes::NAME, b"ap\0");
        let request = request(30, NEW_INTERFACE, &body);
        assert_eq!(request.len(), 16 + 4 + 8 + 8);
        let (kind, content, rest) = message(&request).expect("a message");
        assert_eq!((kind, rest.len()), (30, 0));
        assert_eq!(content[..4], [7, 1, 0, 0]);
        assert_eq!(
            find(&content[4..], attributes::NAME),
            Some(b"ap\0".as_slice())
        );
        assert_eq!(find(&content[4..], attributes::TYPE), None);
    }

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
