//! A TUN device: IP packets that the kernel routes to it are read from a file, and those written to the file arrive from it.

#![expect(unsafe_code, reason = "nix has no function that attaches a TUN device")]

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, IoSlice, Read, Result, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc::{EBADFD, IFF_NO_PI, IFF_TUN, IFF_VNET_HDR, O_NONBLOCK, c_ulong};

use crate::gso::{HEADER, Meta, Partial};

/// The file by which devices are made.
pub const FILE: &str = "/dev/net/tun";
/// Packets that a device queues, in place of 500: it must not be another bottleneck.
pub const QUEUE: u32 = 10_000;

/// ifreq of netdevice(7), as TUNSETIFF reads it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

nix::ioctl_write_ptr_bad!(
    /// TUNSETIFF (linux/if_tun.h).
    attach,
    nix::request_code_write!(b'T', 202, size_of::<i32>()),
    Request
);

nix::ioctl_write_int_bad!(
    /// TUNSETOFFLOAD (linux/if_tun.h).
    offer,
    nix::request_code_write!(b'T', 208, size_of::<u32>())
);

/// What is offered to the host: that it leaves checksums to us, and segments of TCP over IPv4 and IPv6, also with ECN.
const OFFLOADS: c_ulong = 1 | 2 | 4 | 8;

/// A device. It ends with its file.
#[derive(Debug)]
pub struct Tun(File);

impl Tun {
    /// Makes a device of this name in the namespace of the calling thread. `large`: its host may hand over large frames.
    ///
    /// # Errors
    /// The file cannot be opened, or the kernel refuses.
    pub fn open(name: &str, large: bool) -> Result<Self> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .custom_flags(O_NONBLOCK)
            .open(FILE)?;
        let mut request = Request {
            name: [0; 16],
            flags: (IFF_TUN | IFF_NO_PI | IFF_VNET_HDR) as i16,
            rest: [0; 22],
        };
        let length = name.len().min(15);
        request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
        // SAFETY: the structure is as long as the kernel's, and lives through the call.
        unsafe { attach(file.as_raw_fd(), &raw const request) }?;
        if large {
            // SAFETY: the argument is a number.
            unsafe { offer(file.as_raw_fd(), OFFLOADS as _) }?;
        }
        Ok(Self(file))
    }

    /// Reads a frame: its header and where it ends in the buffer, where it begins at [`HEADER`]; `None` if there is none now.
    ///
    /// # Errors
    /// As read(2). A device that was removed is one.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Option<(Meta, usize)>> {
        match self.0.read(buffer) {
            Ok(length) => {
                let header = buffer.first_chunk().filter(|_| length >= HEADER);
                Ok(header.map(|header| (Meta::read(header), length)))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.raw_os_error() == Some(EBADFD) => {
                Err(Error::other("the device of the path was removed"))
            }
            Err(error) => Err(error),
        }
    }

    /// Lets a packet arrive from the device. One that its host does not take is lost, as on a line.
    ///
    /// # Errors
    /// The device was removed.
    pub fn write(&mut self, packet: &[u8], checksum: Partial) -> Result<()> {
        let header = Meta::before(checksum);
        match self
            .0
            .write_vectored(&[IoSlice::new(&header), IoSlice::new(packet)])
        {
            Ok(_) => Ok(()),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::InvalidInput
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
