//! A flow of UDP datagrams in one direction, each with its number.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use nix::sys::epoll::EpollFlags;
use sojourn_traffic::Side;
use sojourn_units::Time;

use super::{Ready, Socket, Traffic, Watch, micros, set_dscp};
use crate::executor::namespace::within;
use crate::executor::{Context, Failure};
use crate::job::Flow;
use crate::recording::FlowFigures;

/// Bytes of a datagram's number at its beginning.
const NUMBER: usize = 8;
/// The largest payload of a datagram.
const LARGEST: usize = 1 << 16;

/// A flow of datagrams.
pub struct DatagramFlow {
    sender: UdpSocket,
    receiver: UdpSocket,
    to: SocketAddr,
    schedule: sojourn_traffic::Datagrams,
    /// By number: when each datagram was sent.
    sent_ns: Vec<u64>,
    block: Vec<u8>,
    warmup_ns: u64,
    figures: FlowFigures,
}

impl DatagramFlow {
    /// Opens the sockets of a flow; `None` if its kind does not send one-way datagrams.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn open(
        flow: &Flow,
        seed: u64,
        warmup_ns: u64,
        watch: &Watch<'_>,
    ) -> Result<Option<Self>, Failure> {
        let Some(schedule) = sojourn_traffic::Datagrams::new(&flow.identity(), &flow.kind, seed)
        else {
            return Ok(None);
        };
        let socket = |namespace: &str, port, side| {
            within(Some(namespace), || {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
                socket.set_nonblocking(true)?;
                set_dscp(&socket, flow, side)?;
                Ok(socket)
            })
        };
        let receiver = socket(&flow.receiver, flow.port(), Side::Receiving)?;
        watch.add(
            receiver.as_fd(),
            Socket::only(Side::Receiving),
            EpollFlags::EPOLLIN,
        )?;
        Ok(Some(Self {
            sender: socket(&flow.sender, 0, Side::Sending)?,
            receiver,
            to: (flow.address, flow.port()).into(),
            schedule,
            sent_ns: Vec::new(),
            block: vec![0; LARGEST],
            warmup_ns,
            figures: FlowFigures {
                datagrams: Some((0, 0)),
                ..FlowFigures::default()
            },
        }))
    }
}

impl Traffic for DatagramFlow {
    fn next_timer(&self) -> Option<u64> {
        self.schedule.next_due().map(Time::as_nanos)
    }

    fn on_timer(&mut self, now_ns: u64, _watch: &Watch<'_>) -> Result<(), Failure> {
        while let Some((number, payload)) = self.schedule.take_due(Time::from_nanos(now_ns)) {
            let datagram = &mut self.block[..payload as usize];
            datagram
                .get_mut(..NUMBER)
                .ok_or_else(|| {
                    Failure(format!(
                        "a datagram of {payload} B has no room for its number"
                    ))
                })?
                .copy_from_slice(&number.to_le_bytes());
            self.sent_ns.push(now_ns);
            self.sender
                .send_to(datagram, self.to)
                .context(|| "sending a datagram".into())?;
            self.figures.sent += u64::from(payload);
            if let Some((sent, _)) = &mut self.figures.datagrams {
                *sent += 1;
            }
        }
        Ok(())
    }

    fn on_ready(&mut self, ready: Ready, _watch: &Watch<'_>) -> Result<(), Failure> {
        let now_ns = ready.now_ns()?;
        loop {
            let length = match self.receiver.recv(&mut self.block) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context(|| "receiving a datagram".into()),
            };
            let number = self.block[..length]
                .first_chunk()
                .copied()
                .map(u64::from_le_bytes);
            let Some((number, sent_ns)) =
                number.and_then(|number| Some((number, *self.sent_ns.get(number as usize)?)))
            else {
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
