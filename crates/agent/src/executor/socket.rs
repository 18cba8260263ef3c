//! The socket of netlink: requests, their acknowledgements and answers (netlink(7)).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use super::namespace::within;
use super::{Context, Failure};
use crate::netlink::{message, number};

/// An error of number zero is an acknowledgement.
pub const ERROR: u16 = 2;
const DONE: u16 = 3;

/// NLM_F_REQUEST | NLM_F_ACK; with NLM_F_CREATE and NLM_F_EXCL or NLM_F_REPLACE; NLM_F_REQUEST | NLM_F_DUMP.
pub const CHANGE: u16 = 0x005;
pub const CREATE: u16 = 0x605;
pub const REPLACE: u16 = 0x505;
pub const DUMP: u16 = 0x301;

/// Opens a netlink socket in a namespace.
pub fn open(namespace: Option<&str>, protocol: SockProtocol) -> Result<OwnedFd, Failure> {
    within(namespace, || {
        let (family, kind) = (AddressFamily::Netlink, SockType::Raw);
        socket(family, kind, SockFlag::SOCK_CLOEXEC, protocol)
            .context(|| "opening a netlink socket".into())
    })
}

fn send_to(socket: &impl AsFd, message: &[u8]) -> nix::Result<usize> {
    send(socket.as_fd().as_raw_fd(), message, MsgFlags::empty())
}

/// Sends a message and waits for its acknowledgement.
///
/// # Errors
/// The kernel refuses.
pub fn acknowledged(socket: &OwnedFd, message_sent: &[u8]) -> Result<(), Errno> {
    send_to(socket, message_sent)?;
    let mut answer = [0; 4096];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    match message(&answer[..length]) {
        Some((ERROR, body, _)) => error(body).map_or(Ok(()), Err),
        _ => Err(Errno::EPROTO),
    }
}

/// Sends a request, and passes the body of each message of its answer to `each`.
///
/// # Errors
/// The kernel refuses.
pub fn dump(socket: &OwnedFd, asked: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), Errno> {
    send_to(socket, asked)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mut rest = &buffer[..length];
        while let Some((kind, body, next)) = message(rest) {
            match kind {
                DONE => return Ok(()),
                ERROR => return Err(error(body).unwrap_or(Errno::EPROTO)),
                _ => each(body),
            }
            rest = next;
        }
    }
}

/// The error of an nlmsgerr; `None` if it is an acknowledgement.
pub fn error(body: &[u8]) -> Option<Errno> {
    let code = number::<4>(body, 0).unwrap_or_default() as u32 as i32;
    (code != 0).then(|| Errno::from_raw(-code))
}
