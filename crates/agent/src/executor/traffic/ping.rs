//! A flow of echo requests at a fixed interval: by ICMP (RFC 792), which the kernel of the other host answers, or by UDP (RFC
//! 862), which a socket there answers.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto, socket,
};

use sojourn_experiment::model::{self, EchoProtocol};
use sojourn_traffic::{Jitter, Side};
use sojourn_units::{Time, internet_checksum};

use super::{Ready, Socket, Traffic, Watch, micros, set_dscp};
use crate::executor::namespace::within;
use crate::executor::{Context, Failure};
use crate::job::Flow;
use crate::recording::FlowFigures;

const HEADER: usize = 8;
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// A flow of echo requests and their replies.
pub struct PingFlow {
    /// `None` if the sender is on another machine.
    socket: Option<OwnedFd>,
    to: SockaddrIn,
    /// Answers requests by UDP, if the receiver is on this machine.
    answerer: Option<UdpSocket>,
    by_udp: bool,
    /// By number: when each request by UDP was sent. Such a request may be too short for a time.
    sent_ns: Vec<u64>,
    /// Distinguishes this flow's echoes from others.
    identifier: u16,
    sequence: u16,
    interval_ns: u64,
    /// When the next request is due by the interval.
    due_ns: u64,
    jitter: Jitter,
    /// Payload bytes of a request.
    payload: usize,
    next_ns: u64,
    stop_ns: u64,
    figures: FlowFigures,
}

impl PingFlow {
    /// Opens the socket of a flow.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn open(
        flow: &Flow,
        ping: &model::Ping,
        seed: u64,
        here: [bool; 2],
        watch: &Watch<'_>,
    ) -> Result<Self, Failure> {
        let by_udp = ping.protocol == EchoProtocol::Udp;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let (kind, protocol) = if by_udp {
            (SockType::Datagram, SockProtocol::Udp)
        } else {
            (SockType::Raw, SockProtocol::Icmp)
        };
        let open = || -> Result<OwnedFd, Failure> {
            let socket = within(Some(&flow.sender), || {
                socket(AddressFamily::Inet, kind, flags, protocol)
                    .context(|| "opening a socket for echo requests".into())
            })?;
            set_dscp(&socket, flow, Side::Sending)?;
            let only = Socket::only(Side::Sending);
            watch.add(socket.as_fd(), only, EpollFlags::EPOLLIN)?;
            Ok(socket)
        };
        let socket = here[0].then(open).transpose()?;
        let answers = by_udp && here[1];
        let answerer = answers.then(|| answerer(flow, watch)).transpose()?;
        let identity = flow.identity();
        let mut jitter = Jitter::new(identity.jitter, identity.flow, seed);
        Ok(Self {
            socket,
            to: SocketAddrV4::new(flow.address, if by_udp { flow.port() } else { 0 }).into(),
            answerer,
            by_udp,
            sent_ns: Vec::new(),
            identifier: flow.port(),
            sequence: 0,
            interval_ns: ping.interval.as_nanos(),
            payload: ping.packet as usize,
            due_ns: flow.start_ns,
            next_ns: jitter.late(Time::from_nanos(flow.start_ns)).as_nanos(),
            jitter,
            stop_ns: flow.stop_ns,
            figures: FlowFigures {
                datagrams: Some((0, 0)),
                ..FlowFigures::default()
            },
        })
    }
}

/// The socket that answers requests by UDP.
fn answerer(flow: &Flow, watch: &Watch<'_>) -> Result<UdpSocket, Failure> {
    let socket = within(Some(&flow.receiver), || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, flow.port()))?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    })?;
    set_dscp(&socket, flow, Side::Receiving)?;
    watch.add(
        socket.as_fd(),
        Socket::only(Side::Receiving),
        EpollFlags::EPOLLIN,
    )?;
    Ok(socket)
}

/// Sends every request back as it came.
fn answer(socket: &UdpSocket) -> Result<(), Failure> {
    let mut packet = [0; 1 << 16];
    loop {
        match socket.recv_from(&mut packet) {
            Ok((length, from)) => {
                socket
                    .send_to(&packet[..length], from)
                    .context(|| "sending an echo reply".into())?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context(|| "receiving an echo request".into()),
        }
    }
}

/// A datagram that begins with its number, or with as many of its lower bytes as it has room for.
fn datagram(number: usize, payload: usize) -> Vec<u8> {
    let mut packet = (number as u64).to_le_bytes().to_vec();
    packet.resize(payload, 0);
    packet
}

/// The number of a datagram: of the first `sent` numbers the last one with the lower bytes that it begins with.
fn number(packet: &[u8], sent: usize) -> Option<usize> {
    let mut bytes = [0; 8];
    let known = packet.len().min(bytes.len());
    bytes[..known].copy_from_slice(&packet[..known]);
    let last = (sent as u64).checked_sub(1)?;
    let behind = last.wrapping_sub(u64::from_le_bytes(bytes));
    let modulus_mask = u64::MAX >> (64 - 8 * known.max(1));
    usize::try_from(last.checked_sub(behind & modulus_mask)?).ok()
}

/// An echo request by ICMP whose payload begins with a time.
fn request(identifier: u16, sequence: u16, now_ns: u64, payload: usize) -> Vec<u8> {
    let mut packet = vec![0; HEADER + payload];
    packet[0] = ECHO_REQUEST;
    packet[4..6].copy_from_slice(&identifier.to_be_bytes());
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    packet[8..16].copy_from_slice(&now_ns.to_le_bytes());
    let sum = internet_checksum(&packet, 0);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// The time in a reply to `identifier`, after its IP header.
fn reply(packet: &[u8], identifier: u16) -> Option<u64> {
    let header = usize::from(packet.first()? & 15) * 4;
    let echo = packet.get(header..)?;
    if *echo.first()? != ECHO_REPLY || echo.get(4..6)? != identifier.to_be_bytes() {
        return None;
    }
    Some(u64::from_le_bytes(echo.get(8..16)?.try_into().ok()?))
}

impl Traffic for PingFlow {
    fn next_timer(&self) -> Option<u64> {
        let is_due = self.socket.is_some() && self.next_ns < self.stop_ns;
        is_due.then_some(self.next_ns)
    }

    fn on_timer(&mut self, now_ns: u64, _watch: &Watch<'_>) -> Result<(), Failure> {
        while self.next_timer().is_some_and(|due| due <= now_ns) {
            let Some(socket) = &self.socket else {
                break;
            };
            let packet = if self.by_udp {
                self.sent_ns.push(now_ns);
                datagram(self.sent_ns.len() - 1, self.payload)
            } else {
                request(self.identifier, self.sequence, now_ns, self.payload)
            };
            sendto(socket.as_raw_fd(), &packet, &self.to, MsgFlags::empty())
                .context(|| "sending an echo request".into())?;
            self.sequence = self.sequence.wrapping_add(1);
            self.due_ns += self.interval_ns;
            self.next_ns = self.jitter.late(Time::from_nanos(self.due_ns)).as_nanos();
            self.figures.sent += self.payload as u64;
            if let Some((sent, _)) = &mut self.figures.datagrams {
                *sent += 1;
            }
        }
        Ok(())
    }

    fn on_ready(&mut self, ready: Ready, _watch: &Watch<'_>) -> Result<(), Failure> {
        if let (Some(socket), Socket::End(_, Side::Receiving)) = (&self.answerer, ready.socket) {
            return answer(socket);
        }
        let mut packet = [0; 1 << 16];
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        loop {
            let length = match recv(socket.as_raw_fd(), &mut packet, MsgFlags::empty()) {
                Ok(length) => length,
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(error).context(|| "receiving an echo reply".into()),
            };
            // After each packet: another may arrive while this process waits for a processor.
            let now_ns = ready.now_ns()?;
            let packet = &packet[..length];
            let sent = if self.by_udp {
                number(packet, self.sent_ns.len()).map(|number| self.sent_ns[number])
            } else {
                reply(packet, self.identifier)
            };
            let Some(sent_ns) = sent else {
                continue;
            };
            self.figures.received += self.payload as u64;
            if let Some((_, answered)) = &mut self.figures.datagrams {
                *answered += 1;
            }
            let rtt_us = micros(now_ns.saturating_sub(sent_ns));
            self.figures.round_trips.push((now_ns, rtt_us));
        }
    }

    fn figures(&mut self) -> &mut FlowFigures {
        &mut self.figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_bytes_of_a_number_tell_the_last_such_request() {
        for (payload, sent, sent_number) in [
            (1, 1, 0),
            (1, 300, 299),
            (1, 300, 250),
            (2, 300, 3),
            (56, 9, 4),
        ] {
            assert_eq!(
                number(&datagram(sent_number, payload), sent),
                Some(sent_number)
            );
        }
        // One byte: 3 and 259 are the same.
        assert_eq!(number(&datagram(3, 1), 300), Some(259));
        assert_eq!(number(&datagram(7, 8), 7), None, "was not sent");
        assert_eq!(number(&[], 0), None);
    }

    #[test]
    fn a_reply_returns_its_time_to_its_own_flow_only() {
        let mut echo = request(10_007, 1, 123_456, 56);
        assert_eq!(
            internet_checksum(&echo, 0),
            0,
            "a packet with its checksum sums to zero"
        );
        echo[0] = ECHO_REPLY;
        let packet = [&[0x45; 20][..], &echo].concat();
        assert_eq!(reply(&packet, 10_007), Some(123_456));
        assert_eq!(reply(&packet, 10_008), None);
        let own_request = [&[0x45; 20][..], &request(10_007, 1, 5, 56)].concat();
        assert_eq!(reply(&own_request, 10_007), None);
    }
}
