//! An interface of the machine, by a packet socket (packet(7)): every frame that arrives at it is read, whoever it is for, and
//! what is written leaves by it.

#![expect(
    unsafe_code,
    reason = "nix has no function that sets these options of packet sockets"
)]

use std::fs::File;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Read, Result, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::libc::{self, c_int, c_void, socklen_t};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket, sockopt,
};

use crate::gso::{HEADER, Meta, Partial};
use crate::ip::{ETHERNET, Link};

/// Room for the frames that come while the thread waits for a processor.
const BUFFER_BYTES: usize = 64 << 20;
/// Accepts frames without a tag of a VLAN that the interface has taken off, which would be lost: linux/filter.h, SKF_AD_OFF and
/// SKF_AD_VLAN_TAG_PRESENT.
const UNTAGGED: [libc::sock_filter; 4] = [
    libc::sock_filter {
        code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        jt: 0,
        jf: 0,
        k: (-0x1000_i32 + 48) as u32,
    },
    libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf: 1,
        k: 0,
    },
    libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: u32::MAX,
    },
    libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    },
];

/// An interface.
#[derive(Debug)]
pub struct Wire {
    socket: File,
    name: String,
    /// Held as long as this: the interface carries one link.
    _claim: UnixDatagram,
}

/// A frame that has come. It begins in the buffer at [`HEADER`] with IP's header.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    /// About large frames.
    pub meta: Meta,
    /// Where it ends in the buffer.
    pub end: usize,
    /// Its header of Ethernet.
    pub link: Link,
}

impl Wire {
    /// Opens an interface of the calling thread's namespace. Until the socket closes, it receives frames for anybody.
    ///
    /// # Errors
    /// There is no such interface, it carries another link, or the kernel refuses.
    pub fn open(name: &str) -> Result<Self> {
        let index = if_nametoindex(name)? as c_int;
        let claim = claim(index).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => Error::other("it carries another link already"),
            _ => error,
        })?;
        // Without a protocol: nothing is received until all is set.
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let own = socket(
            AddressFamily::Packet,
            SockType::Raw,
            flags,
            None::<SockProtocol>,
        )?;
        setsockopt(&own, sockopt::RcvBufForce, &BUFFER_BYTES)?;
        let filter = libc::sock_fprog {
            len: UNTAGGED.len() as u16,
            filter: UNTAGGED.as_ptr().cast_mut(),
        };
        set(&own, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)?;
        let yes: c_int = 1;
        set(&own, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &yes)?;
        set(&own, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &yes)?;
        let all = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&own, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &all)?;
        bind(&own, index)?;
        Ok(Self {
            socket: own.into(),
            name: name.into(),
            _claim: claim,
        })
    }

    /// Reads a frame into the buffer, but for its header of Ethernet; `None` if there is none now.
    ///
    /// # Errors
    /// The interface is down or was removed.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Option<Came>> {
        let mut link = Link::default();
        let (header, frame) = buffer.split_at_mut(HEADER);
        let mut parts = [
            IoSliceMut::new(header),
            IoSliceMut::new(&mut link),
            IoSliceMut::new(frame),
        ];
        match self.socket.read_vectored(&mut parts) {
            Ok(length) => Ok(buffer
                .first_chunk()
                .filter(|_| length >= HEADER + ETHERNET)
                .map(|header| Came {
                    meta: Meta::read(header).without(ETHERNET as u16),
                    end: length - ETHERNET,
                    link,
                })),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(self.told(error)),
        }
    }

    /// Lets a packet leave. One that the interface does not take, since it is too large or there is no room, is lost.
    ///
    /// # Errors
    /// The interface is down or was removed.
    pub fn write(&mut self, link: &Link, packet: &[u8], checksum: Partial) -> Result<()> {
        let header =
            Meta::before(checksum.map(|(start, offset)| (start + ETHERNET as u16, offset)));
        let parts = [
            IoSlice::new(&header),
            IoSlice::new(link),
            IoSlice::new(packet),
        ];
        match self.socket.write_vectored(&parts) {
            Ok(_) => Ok(()),
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::EMSGSIZE | libc::EINVAL)
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(self.told(error)),
        }
    }

    fn told(&self, error: Error) -> Error {
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                Error::other(format!("interface {} is down or was removed", self.name))
            }
            _ => error,
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket with a name that is free again as soon as its process ends, in each network namespace (unix(7), abstract names).
fn claim(index: c_int) -> Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!(
        "sojourn wire {index}"
    ))?)
}

/// Sets an option of a socket.
fn set<T>(own: &OwnedFd, level: c_int, name: c_int, value: &T) -> Result<()> {
    let value = std::ptr::from_ref(value).cast::<c_void>();
    // SAFETY: the value is a structure of the kernel's, which lives through the call.
    let done = unsafe {
        libc::setsockopt(
            own.as_raw_fd(),
            level,
            name,
            value,
            size_of::<T>() as socklen_t,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(Error::last_os_error())
    }
}

/// Receives all frames of an interface, and sends by it.
fn bind(own: &OwnedFd, index: c_int) -> Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of_val(&address) as socklen_t;
    // SAFETY: the address is the kernel's structure, which lives through the call.
    let done = unsafe { libc::bind(own.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) };
    if done == 0 {
        Ok(())
    } else {
        Err(Error::last_os_error())
    }
}
