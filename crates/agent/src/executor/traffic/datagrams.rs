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

/// A flow of datagrams, or the part of it on this machine.
pub struct DatagramFlow {
    sender: Option<UdpSocket>,
    receiver: Option<UdpSocket>,
    to: SocketAddr,
    schedule: sojourn_traffic::Datagrams,
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
        here: [bool; 2],
        watch: &Watch<'_>,
    ) -> Result<Option<Self>, Failure> {
        let Some(schedule) = sojourn_traffic::Datagrams::new(&flow.identity(), &flow.kind, seed)
        else {
            return Ok(None);
        };
        let socket = |namespace: &str, port, side: Side| {
            let open = || {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
                socket.set_nonblocking(true)?;
                set_dscp(&socket, flow, side)?;
                Ok(socket)
            };
            here[side as usize]
                .then(|| within(Some(namespace), open))
                .transpose()
        };
        let receiver = socket(&flow.receiver, flow.port(), Side::Receiving)?;
        if let Some(receiver) = &receiver {
            let only = Socket::only(Side::Receiving);
            watch.add(receiver.as_fd(), only, EpollFlags::EPOLLIN)?;
        }
        Ok(Some(Self {
            sender: socket(&flow.sender, 0, Side::Sending)?,
            receiver,
            to: (flow.address, flow.port()).into(),
            schedule,
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
        let due = self.schedule.next_due().map(Time::as_nanos);
        due.filter(|_| self.sender.is_some())
    }

    fn on_timer(&mut self, now_ns: u64, _watch: &Watch<'_>) -> Result<(), Failure> {
        let Some(sender) = &self.sender else {
            return Ok(());
        };
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
            self.figures.sent_ns.push(now_ns);
            sender
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
        let Some(receiver) = &self.receiver else {
            return Ok(());
        };
        loop {
            let length = match receiver.recv(&mut self.block) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context(|| "receiving a datagram".into()),
            };
            // After each datagram: another may arrive while this process waits for a processor.
            let now_ns = ready.now_ns()?;
            let number = self.block[..length]
                .first_chunk()
                .copied()
                .map(u64::from_le_bytes);
            let Some(number) = number else {
                continue;
            };
            let sent_ns = self.figures.sent_ns.get(number as usize);
            if self.sender.is_some() && sent_ns.is_none() {
                continue;
            }
            self.figures.received += length as u64;
            if let Some((_, arrived)) = &mut self.figures.datagrams {
                *arrived += 1;
            }
            if now_ns >= self.warmup_ns {
                match sent_ns {
                    Some(sent_ns) => {
                        let delay = now_ns.saturating_sub(*sent_ns);
                        self.figures.one_way_us.push(micros(delay));
                    }
                    None => self.figures.arrived_ns.push((number, now_ns)),
                }
                let (first, highest, count) = self.figures.seen.unwrap_or((number, number, 0));
                self.figures.seen = Some((first.min(number), highest.max(number), count + 1));
            }
        }
    }

    fn figures(&mut self) -> &mut FlowFigures {
        &mut self.figures
    }
}
