//! UDP at a constant rate; each datagram carries its number and the instant at which it was sent.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use nix::sys::epoll::EpollFlags;

use super::{Side, Traffic, Watch, micros};
use crate::carry_out::namespace::within;
use crate::carry_out::{Context, Failure};
use crate::job::Flow;
use crate::recording::FlowFigures;

/// Bytes of the stamp.
const STAMP: usize = 8;

/// A flow of datagrams, evenly spaced.
pub struct Cbr {
    sender: UdpSocket,
    receiver: UdpSocket,
    to: SocketAddr,
    datagram: Vec<u8>,
    rate_bps: u64,
    start_ns: u64,
    stop_ns: u64,
    number: u64,
    warmup_ns: u64,
    figures: FlowFigures,
}

impl Cbr {
    /// Opens its sockets.
    ///
    /// # Errors
    /// The kernel refuses, or datagrams are too short for a stamp.
    pub fn open(
        flow: &Flow,
        payload: u32,
        rate_bps: u64,
        warmup_ns: u64,
        watch: &Watch<'_>,
    ) -> Result<Self, Failure> {
        let socket = |namespace: &str, port| {
            within(Some(namespace), || {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
                socket.set_nonblocking(true)?;
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
            rate_bps,
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

impl Traffic for Cbr {
    /// Counted from the start, so that rounding does not add up.
    fn next_timer(&self) -> Option<u64> {
        let bits = u128::from(self.number) * self.datagram.len() as u128 * 8;
        let offset = bits * 1_000_000_000 / u128::from(self.rate_bps);
        let due = self.start_ns + offset as u64;
        (due < self.stop_ns).then_some(due)
    }

    fn on_timer(&mut self, now_ns: u64, _watch: &Watch<'_>) -> Result<(), Failure> {
        while self.next_timer().is_some_and(|due| due <= now_ns) {
            self.number += 1;
            self.datagram[..STAMP].copy_from_slice(&now_ns.to_le_bytes());
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
            let Some(stamp) = datagram[..length].first_chunk() else {
                continue;
            };
            self.figures.received += length as u64;
            if let Some((_, arrived)) = &mut self.figures.datagrams {
                *arrived += 1;
            }
            if now_ns >= self.warmup_ns {
                let delay = now_ns.saturating_sub(u64::from_le_bytes(*stamp));
                self.figures.one_way_us.push(micros(delay));
            }
        }
    }

    fn figures(&mut self) -> &mut FlowFigures {
        &mut self.figures
    }
}
