//! Identifies the flows of the packets at a queue: a packet socket in the queue's node, which sees them arrive and
//! leave in the order of the queue's events.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::cmsg_space;
use nix::libc::PACKET_OUTGOING;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockProtocol,
    SockType, recvmmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, clock_gettime};

use super::namespace::within;
use super::packets::{Label, Labels};
use super::{Context, Failure};
use crate::capture;
use crate::job::{FIRST_PORT, FIRST_PORT_OF_REQUESTED, Job, ObservedQueue};

/// Enough for the packets between two reads.
const BUFFER_BYTES: usize = 64 << 20;
/// Bytes of a packet that are read: the longest headers of IPv4 and TCP.
const SNAP: usize = 120;
/// Packets read by one call of the kernel, between two polls of the sockets: some 50 µs of work. If a receiver is not
/// read from for longer, it delays acknowledgements.
const PORTION: usize = 32;

/// Observes the packets of one queue.
pub struct Tap {
    socket: OwnedFd,
    /// Index of the queue's device.
    device: usize,
    /// The flows that pass it, as [`ObservedQueue::passed_by`].
    passed_by: Vec<[bool; 2]>,
    labels: Labels,
    capture: Option<Capture>,
}

/// Packets recorded for a capture. The socket's time stamps are in calendar time.
struct Capture {
    /// The interface of packets that leave by the device.
    interface: u8,
    /// Whether to record also packets that enter by the device, for the other interface. The reverse direction then has no
    /// queue, and therefore no tap of its own.
    returning: bool,
    /// Calendar time minus monotonic time.
    calendar_ns: i64,
    /// Calendar time, interface, and the first bytes with the headers.
    packets: Vec<(i64, u8, Vec<u8>)>,
}

impl Tap {
    /// Opens a tap at a queue of a job; `number` is the queue's index.
    ///
    /// # Errors
    /// The kernel has no packet sockets.
    pub fn open(job: &Job, queue: &ObservedQueue, number: usize) -> Result<Self, Failure> {
        let opening = || "opening a packet socket".to_owned();
        within(Some(&queue.namespace), || {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let socket = socket(
                AddressFamily::Packet,
                SockType::Datagram,
                flags,
                SockProtocol::EthAll,
            )
            .context(opening)?;
            setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).context(opening)?;
            let mut capture = None;
            if job.capture {
                setsockopt(&socket, sockopt::ReceiveTimestampns, &true).context(opening)?;
                capture = Some(Capture {
                    interface: number as u8,
                    returning: job.captures_back,
                    calendar_ns: read(ClockId::CLOCK_REALTIME)? - read(ClockId::CLOCK_MONOTONIC)?,
                    packets: Vec::new(),
                });
            }
            let device = if_nametoindex(queue.device.as_str()).context(opening)? as usize;
            Ok(Self {
                socket,
                device,
                passed_by: queue.passed_by.clone(),
                labels: Labels::default(),
                capture,
            })
        })
    }

    /// Reads a portion of the packets. Returns true if there may be more.
    pub fn drain(&mut self) -> bool {
        let mut packets = [[0; SNAP]; PORTION];
        let mut buffers: Vec<_> = packets
            .iter_mut()
            .map(|packet| [IoSliceMut::new(packet)])
            .collect();
        let space = self.capture.is_some().then(|| cmsg_space!(TimeSpec));
        let mut headers = MultiHeaders::<LinkAddr>::preallocate(PORTION, space);
        let flags = MsgFlags::empty();
        let socket = self.socket.as_raw_fd();
        let Ok(messages) = recvmmsg(socket, &mut headers, &mut buffers, flags, None) else {
            return false;
        };
        let mut read = 0;
        for message in messages {
            read += 1;
            let at_ns = message.cmsgs().ok().and_then(|mut about| {
                about.find_map(|one| match one {
                    ControlMessageOwned::ScmTimestampns(at) => Some(at.num_nanoseconds()),
                    _ => None,
                })
            });
            if let (Some(packet), Some(from)) = (message.iovs().next(), message.address) {
                self.take(packet, from, at_ns.unwrap_or_default());
            }
        }
        read == PORTION
    }

    /// Notes a packet: its first bytes, its origin and, for a capture, its time.
    fn take(&mut self, packet: &[u8], from: LinkAddr, at_ns: i64) {
        let Some(seen) = label(packet) else {
            return;
        };
        let outgoing = from.pkttype() == PACKET_OUTGOING;
        let captured = self
            .capture
            .as_mut()
            .filter(|capture| from.ifindex() == self.device && (outgoing || capture.returning));
        if let Some(capture) = captured {
            let interface = if outgoing {
                capture.interface
            } else {
                1 - capture.interface
            };
            capture.packets.push((at_ns, interface, packet.to_vec()));
        }
        if outgoing && from.ifindex() == self.device {
            self.labels.departures.push(seen);
        } else if !outgoing && self.is_passed_by(seen) {
            self.labels.arrivals.push(seen);
        }
    }

    /// True if the flow of this label passes the queue in this direction.
    fn is_passed_by(&self, label: Label) -> bool {
        let of_flow = self.passed_by.get(label.flow as usize);
        of_flow.is_some_and(|passes| passes[usize::from(label.returning)])
    }

    /// All labels, and the rows of a capture of `span_ns`, beginning at `zero_ns` of the monotonic clock.
    pub fn finish(mut self, zero_ns: u64, span_ns: u64) -> (Labels, Vec<u8>) {
        while self.drain() {}
        let mut rows = Vec::new();
        if let Some(capture) = &self.capture {
            for (calendar_ns, interface, packet) in &capture.packets {
                let at_ns = calendar_ns - capture.calendar_ns - zero_ns as i64;
                match u64::try_from(at_ns) {
                    Ok(at_ns) if at_ns < span_ns => {
                        capture::note(&mut rows, at_ns, *interface, packet);
                    }
                    _ => {}
                }
            }
        }
        (self.labels, rows)
    }
}

fn read(clock: ClockId) -> Result<i64, Failure> {
    let now = clock_gettime(clock).context(|| "reading a clock".into())?;
    Ok(now.num_nanoseconds())
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ECHO_REPLY: u8 = 0;

/// The flow of a packet between two ports, and whether it returns to the sender of the data.
pub fn flow_of_ports(from: u16, to: u16) -> Option<(u32, bool)> {
    // The other port is lower: hosts assign only ports below FIRST_PORT.
    let port = from.max(to);
    let (number, returning) = match port.checked_sub(FIRST_PORT_OF_REQUESTED) {
        Some(number) => (number, port == to),
        None => (port.checked_sub(FIRST_PORT)?, port == from),
    };
    Some((number.into(), returning))
}

/// As [`flow_of_ports`], of an echo request or its reply.
pub fn flow_of_echo(identifier: u16, is_reply: bool) -> Option<(u32, bool)> {
    Some((identifier.checked_sub(FIRST_PORT)?.into(), is_reply))
}

/// The label of an IPv4 packet, from its headers.
fn label(packet: &[u8]) -> Option<Label> {
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
    let (flow, returning) = match *packet.get(9)? {
        TCP | UDP => flow_of_ports(word(0)?, word(2)?)?,
        ICMP => flow_of_echo(word(4)?, *payload.first()? == ECHO_REPLY)?,
        _ => return None,
    };
    Some(Label {
        flow,
        returning,
        ce: packet.get(1)? & 3 == 3,
    })
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

    fn read(packet: &[u8]) -> Option<(u32, bool, bool)> {
        let label = label(packet)?;
        Some((label.flow, label.returning, label.ce))
    }

    #[test]
    fn the_higher_port_or_the_echo_identifier_names_the_flow() {
        let ports = |from: u16, to: u16| [from.to_be_bytes(), to.to_be_bytes()].concat();
        assert_eq!(
            read(&packet(0, TCP, &ports(1024, 10_003))),
            Some((3, false, false))
        );
        assert_eq!(
            read(&packet(3, UDP, &ports(10_004, 1024))),
            Some((4, true, true))
        );
        // If the receiver opens the connections, requests are returning packets.
        assert_eq!(
            read(&packet(0, TCP, &ports(1024, 38_003))),
            Some((3, true, false))
        );
        assert_eq!(
            read(&packet(0, TCP, &ports(38_003, 1024))),
            Some((3, false, false))
        );
        let echo = |kind| [kind, 0, 0, 0, 0x27, 0x15]; // 0x2715 = 10005
        assert_eq!(read(&packet(1, ICMP, &echo(8))), Some((5, false, false)));
        assert_eq!(read(&packet(0, ICMP, &echo(0))), Some((5, true, false)));
    }

    #[test]
    fn a_packet_of_no_flow_has_no_label() {
        assert_eq!(read(&packet(0, TCP, &[0, 22, 0, 80])), None);
        assert_eq!(read(&packet(0, 47, &[0; 8])), None);
        assert_eq!(read(&[0x60; 40]), None);
        assert_eq!(read(&[]), None);
    }
}
