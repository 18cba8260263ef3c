//! Whose the packets at a bottleneck are: a packet socket in its router, which sees them come and go in the order of
//! the queue's events.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc::PACKET_OUTGOING;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket,
    sockopt,
};

use super::namespace::within;
use super::packets::{Label, Labels};
use super::{Context, Failure};
use crate::job::{Bottleneck, FIRST_ASKED_PORT, FIRST_PORT};

/// Enough for the packets between two reads.
const BUFFER_BYTES: usize = 64 << 20;
/// Bytes of a packet that are looked at.
const SNAP: usize = 96;

/// A view of one bottleneck's packets.
pub struct Tap {
    socket: OwnedFd,
    /// Index of the bottleneck's device.
    device: usize,
    /// Second byte of the addresses behind the bottleneck: 10.2 below, 10.1 above.
    behind: u8,
    labels: Labels,
}

impl Tap {
    /// Opens one. `queue` is 0 for the forward direction.
    ///
    /// # Errors
    /// The kernel has no packet sockets.
    pub fn open(bottleneck: &Bottleneck, queue: usize) -> Result<Self, Failure> {
        let opening = || "opening a packet socket".to_owned();
        within(Some(&bottleneck.namespace), || {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let socket = socket(
                AddressFamily::Packet,
                SockType::Datagram,
                flags,
                SockProtocol::EthAll,
            )
            .context(opening)?;
            setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).context(opening)?;
            let device = if_nametoindex(bottleneck.device.as_str()).context(opening)? as usize;
            Ok(Self {
                socket,
                device,
                behind: if queue == 0 { 2 } else { 1 },
                labels: Labels::default(),
            })
        })
    }

    /// Takes what has come.
    pub fn drain(&mut self) {
        let mut packet = [0; SNAP];
        while let Ok((length, Some(from))) =
            recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut packet)
        {
            let Some(seen) = Seen::read(&packet[..length.min(SNAP)]) else {
                continue;
            };
            let outgoing = from.pkttype() == PACKET_OUTGOING;
            if outgoing && from.ifindex() == self.device {
                self.labels.departures.push(seen.label);
            } else if !outgoing && seen.destination[..2] == [10, self.behind] {
                self.labels.arrivals.push(seen.label);
            }
        }
    }

    /// All labels.
    pub fn finish(mut self) -> Labels {
        self.drain();
        self.labels
    }
}

/// What an IPv4 packet says of itself.
struct Seen {
    destination: [u8; 4],
    label: Label,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ECHO_REPLY: u8 = 0;

impl Seen {
    fn read(packet: &[u8]) -> Option<Self> {
        let first = *packet.first()?;
        if first >> 4 != 4 {
            return None;
        }
        let payload = packet.get(usize::from(first & 15) * 4..)?;
        let word = |at: usize| -> Option<u16> {
            Some(u16::from_be_bytes(
                payload.get(at..at + 2)?.try_into().ok()?,
            ))
        };
        let (number, returning) = match *packet.get(9)? {
            TCP | UDP => {
                // The other side's port is below: hosts hand out none from there on.
                let (from, to) = (word(0)?, word(2)?);
                let port = from.max(to);
                match port.checked_sub(FIRST_ASKED_PORT) {
                    Some(number) => (number, port == to),
                    None => (port.checked_sub(FIRST_PORT)?, port == from),
                }
            }
            ICMP => (
                word(4)?.checked_sub(FIRST_PORT)?,
                *payload.first()? == ECHO_REPLY,
            ),
            _ => return None,
        };
        Some(Self {
            destination: packet.get(16..20)?.try_into().ok()?,
            label: Label {
                flow: u32::from(number),
                returning,
                ce: packet.get(1)? & 3 == 3,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(tos: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![
            0x45, tos, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1,
        ];
        packet.extend(payload);
        packet
    }

    fn label(packet: &[u8]) -> Option<(u32, bool, bool)> {
        let Label {
            flow,
            returning,
            ce,
        } = Seen::read(packet)?.label;
        Some((flow, returning, ce))
    }

    #[test]
    fn the_higher_port_or_the_echo_identifier_names_the_flow() {
        let ports = |from: u16, to: u16| [from.to_be_bytes(), to.to_be_bytes()].concat();
        assert_eq!(
            label(&packet(0, TCP, &ports(1024, 10_003))),
            Some((3, false, false))
        );
        assert_eq!(
            label(&packet(3, UDP, &ports(10_004, 1024))),
            Some((4, true, true))
        );
        // Of a flow that is asked for, the requests go back.
        assert_eq!(
            label(&packet(0, TCP, &ports(1024, 38_003))),
            Some((3, true, false))
        );
        assert_eq!(
            label(&packet(0, TCP, &ports(38_003, 1024))),
            Some((3, false, false))
        );
        let echo = |kind| [kind, 0, 0, 0, 0x27, 0x15]; // 0x2715 = 10005
        assert_eq!(label(&packet(1, ICMP, &echo(8))), Some((5, false, false)));
        assert_eq!(label(&packet(0, ICMP, &echo(0))), Some((5, true, false)));
    }

    #[test]
    fn what_is_no_flow_has_no_label() {
        assert_eq!(label(&packet(0, TCP, &[0, 22, 0, 80])), None);
        assert_eq!(label(&packet(0, 47, &[0; 8])), None);
        assert_eq!(label(&[0x60; 40]), None);
        assert_eq!(label(&[]), None);
    }
}
