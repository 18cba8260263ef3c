//! Families of generic netlink, by name (linux/genetlink.h): ethtool and nl80211.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockProtocol, recv, send};

use super::socket::{CHANGE, ERROR, error, open};
use super::{Context, Failure};
use crate::netlink::{Attributes, attribute, message, number, request};

/// GENL_ID_CTRL, CTRL_CMD_GETFAMILY; CTRL_ATTR_FAMILY_ID and CTRL_ATTR_FAMILY_NAME.
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Length of genlmsghdr: command, version, reserved.
const HEADER: usize = 4;

/// A connection to a family.
pub struct Family {
    socket: OwnedFd,
    number: u16,
}

impl Family {
    /// Connects to a family in a namespace.
    ///
    /// # Errors
    /// The kernel has no such family.
    pub fn open(namespace: Option<&str>, name: &str) -> Result<Self, Failure> {
        let missing = || Failure(format!("the kernel has no {name} by netlink"));
        let socket = open(namespace, SockProtocol::NetlinkGeneric)?;
        let asked = Attributes::new().text(FAMILY_NAME, name);
        let answer = ask(&socket, CONTROL, GET_FAMILY, &asked).map_err(|_: Errno| missing())?;
        let id = attribute(answer.get(HEADER..).unwrap_or_default(), FAMILY_ID);
        let number = id.and_then(|id| number::<2>(id, 0)).ok_or_else(missing)? as u16;
        Ok(Self { socket, number })
    }

    /// Carries out a command; returns the answer, with its header.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn call(
        &self,
        command: u8,
        attributes: &Attributes,
        doing: &str,
    ) -> Result<Vec<u8>, Failure> {
        ask(&self.socket, self.number, command, attributes).context(|| doing.to_owned())
    }
}

/// The message of a command.
fn command_of(family: u16, command: u8, attributes: &Attributes) -> Vec<u8> {
    let body = [&[command, 1, 0, 0][..], attributes.as_bytes()].concat();
    request(family, CHANGE, &body)
}

/// Sends a command and waits for its acknowledgement. Returns the body of the answer before it; empty if there is none.
fn ask(
    socket: &OwnedFd,
    family: u16,
    command: u8,
    attributes: &Attributes,
) -> Result<Vec<u8>, Errno> {
    let flags = MsgFlags::empty();
    send(
        socket.as_raw_fd(),
        &command_of(family, command, attributes),
        flags,
    )?;
    let mut answer = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = recv(socket.as_raw_fd(), &mut buffer, flags)?;
        let mut rest = &buffer[..length];
        while let Some((kind, body, next)) = message(rest) {
            if kind == ERROR {
                return error(body).map_or(Ok(answer), Err);
            }
            answer = body.to_vec();
            rest = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_holds_the_command_and_its_attributes() {
        let attributes = Attributes::new().u32(1, 7).text(4, "ap");
        let bytes = command_of(30, 7, &attributes);
        assert_eq!(bytes.len(), 16 + 4 + 8 + 8);
        let (kind, content, rest) = message(&bytes).expect("a message");
        assert_eq!((kind, rest.len()), (30, 0));
        assert_eq!(content[..4], [7, 1, 0, 0]);
        assert_eq!(attribute(&content[4..], 4), Some(b"ap\0".as_slice()));
    }
}
