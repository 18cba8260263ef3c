//! Evenly spaced datagrams; each carries the instant at which it was sent, and its number.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use nix::sys::epoll::EpollFlags;

use super::{Side, Traffic, Watch, micros, set_dscp};
use crate::carry_out::namespace::within;
use crate::carry_out::{Context, Failure};
use crate::job::Flow;
use crate::recording::FlowFigures;

/// Bytes of the stamp: instant and number.
const STAMP: usize = 16;

/// A flow of datagrams, evenly spaced.
pub struct Datagrams {
    sender: UdpSocket,
    receiver: UdpSocket,
    to: SocketAddr,
    datagram: Vec<u8>,
    interval_ns: (u64, u64),
    start_ns: u64,
    stop_ns: u64,
    number: u64,
    warmup_ns: u64,
    figures: FlowFigures,
}

impl Datagrams {
    /// Opens its sockets.
    ///
    /// # Errors
    /// The kernel refuses, or datagrams are too short for a stamp.
    pub fn open(
        flow: &Flow,
        payload: u32,
        interval_ns: (u64, u64),
        warmup_ns: u64,
        watch: &Watch<'_>,
    ) -> Result<Self, Failure> {
        let socket = |namespace: &str, port| {
            within(Some(namespace), || {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
                socket.set_nonblocking(true)?;
                set_dscp(&socket, flow)?;
                Ok(socket)
            })
        };
        if (payload as usize) < STAMP {
            return Err(Failure(format!(
                "flow {}: datagrams of {payload} B have no room for a stamp of {STAMP} B",
                flow.number
            )));
        }
        let receiver = socket(&flow.receiver, flow.port())?;
        watch.add(receiver.as_fd(), Side::Receiver, EpollFlags::EPOLLIN)?;
        Ok(Self {
            sender: socket(&flow.sender, 0)?,
            receiver,
            to: (flow.address, flow.port()).into(),
            datagram: vec![0; payload as usize],
            interval_ns,
            start_ns: flow.start_ns,
            stop_ns: flow.stop_ns,
            number: 0,
            warmup_ns,
            figures: FlowFigures {
                datagrams: Some((0, 0)),
                ..FlowFigures::default()
            },
        })
    }
}

impl Traffic for Datagrams {
    /// Counted from the start, so that rounding does not add up.
    fn next_timer(&self) -> Option<u64> {
        let (numerator, denominator) = self.interval_ns;
        let offset = u128::from(self.number) * u128::from(numerator) / u128::from(denominator);
        let due = self.start_ns + offset as u64;
        (due < self.stop_ns).then_some(due)
    }

    fn on_timer(&mut self, now_ns: u64, _watch: &Watch<'_>) -> Result<(), Failure> {
        while self.next_timer().is_some_and(|due| due <= now_ns) {
            self.datagram[..8].copy_from_slice(&now_ns.to_le_bytes());
            self.datagram[8..STAMP].copy_from_slice(&self.number.to_le_bytes());
            self.number += 1;
            self.sender
                .send_to(&self.datagram, self.to)
                .context(|| "sending a datagram".into())?;
            self.figures.sent += self.datagram.len() as u64;
            if let Some((sent, _)) = &mut self.figures.datagrams {
                *sent += 1;
            }
        }
        Ok(())
    }

    fn on_ready(&mut self, _side: Side, now_ns: u64, _watch: &Watch<'_>) -> Result<(), Failure> {
        let mut datagram = [0; 1 << 16];
        loop {
            let length = match self.receiver.recv(&mut datagram) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context(|| "receiving a datagram".into()),
            };
            let Some((sent_ns, number)) = stamp(&datagram[..length]) else {
                continue;
            };
            self.figures.received += length as u64;
            if let Some((_, arrived)) = &mut self.figures.datagrams {
                *arrived += 1;
            }
            if now_ns >= self.warmup_ns {
                let delay = now_ns.saturating_sub(sent_ns);
                self.figures.one_way_us.push(micros(delay));
                let (first, highest, count) = self.figures.seen.unwrap_or((number, number, 0));
                self.figures.seen = Some((first.min(number), highest.max(number), count + 1));
            }
        }
    }

    fn figures(&mut self) -> &mut FlowFigures {
        &mut self.figures
    }
}

/// The instant and the number that a datagram carries.
fn stamp(datagram: &[u8]) -> Option<(u64, u64)> {
    let word = |at: usize| {
        Some(u64::from_le_bytes(
            datagram.get(at..at + 8)?.try_into().ok()?,
        ))
    };
    Some((word(0)?, word(8)?))
}
