//! A device by which packets come and leave.

use std::io::Result;
use std::os::fd::{AsFd, BorrowedFd};

use crate::gso::Partial;
use crate::ip::Link;
use crate::tun::Tun;
use crate::wire::{Came, Wire};

/// A device.
#[derive(Debug)]
pub enum Port {
    /// A TUN device: its packets are those of IP.
    Tun(Tun),
    /// An interface: its packets are frames of Ethernet.
    Wire(Wire),
}

impl Port {
    /// Reads a frame; `None` if there is none now.
    ///
    /// # Errors
    /// As read(2). A device that was removed is one.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Option<Came>> {
        match self {
            Self::Tun(tun) => Ok(tun.read(buffer)?.map(|(meta, end)| Came {
                meta,
                end,
                link: Link::default(),
            })),
            Self::Wire(wire) => wire.read(buffer),
        }
    }

    /// Lets a packet leave by the device. One that it does not take is lost, as on a line.
    ///
    /// # Errors
    /// The device was removed.
    pub fn write(&mut self, link: &Link, packet: &[u8], checksum: Partial) -> Result<()> {
        match self {
            Self::Tun(tun) => tun.write(packet, checksum),
            Self::Wire(wire) => wire.write(link, packet, checksum),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(tun) => tun.as_fd(),
            Self::Wire(wire) => wire.as_fd(),
        }
    }
}
