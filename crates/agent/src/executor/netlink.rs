//! Messages of netlink(7), and queueing disciplines added by them (rtnetlink(7)): the kernel may have a discipline that
//! its `tc` does not know.

use std::ffi::CString;
use std::os::fd::AsRawFd;

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use super::{Context, Failure};
use crate::job::DisciplineAttributes;

/// NLMSG_ERROR and NLMSG_DONE (linux/netlink.h). An error of number zero is an acknowledgement.
pub const ERROR: u16 = 2;
pub const DONE: u16 = 3;
/// Lengths of nlmsghdr and rtattr.
pub const HEADER: usize = 16;
pub const ATTRIBUTE: usize = 4;
/// RTM_NEWQDISC (linux/rtnetlink.h).
const NEW_QDISC: u16 = 36;
/// NLM_F_REQUEST | NLM_F_ACK | NLM_F_EXCL | NLM_F_CREATE.
const CREATE: u16 = 0x605;
/// TCA_KIND, and TCA_OPTIONS with NLA_F_NESTED.
const KIND: u16 = 1;
const OPTIONS: u16 = 2 | 0x8000;

/// Adds a discipline to a device of this thread's namespace.
///
/// # Errors
/// There is no such device, or the kernel refuses.
pub fn add(discipline: &DisciplineAttributes) -> Result<(), Failure> {
    let adding = || format!("adding {} to {}", discipline.kind, discipline.device);
    let index = if_nametoindex(discipline.device.as_str()).context(adding)?;
    let (family, kind) = (AddressFamily::Netlink, SockType::Raw);
    let flags = SockFlag::SOCK_CLOEXEC;
    let route = socket(family, kind, flags, SockProtocol::NetlinkRoute).context(adding)?;
    send(
        route.as_raw_fd(),
        &request(discipline, index),
        MsgFlags::empty(),
    )
    .context(adding)?;
    let mut answer = [0; 4096];
    let length = recv(route.as_raw_fd(), &mut answer, MsgFlags::empty()).context(adding)?;
    match message(&answer[..length]) {
        Some((ERROR, body, _)) => match number::<4>(body, 0).map(|code| code as u32 as i32) {
            Some(0) => Ok(()),
            code => Err(nix::errno::Errno::from_raw(-code.unwrap_or(0))).context(adding),
        },
        _ => Err(Failure(format!("{}: no answer", adding()))),
    }
}

/// nlmsghdr, tcmsg, and the attributes.
fn request(discipline: &DisciplineAttributes, index: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(index.to_ne_bytes());
    body.extend(discipline.handle.to_ne_bytes());
    body.extend(discipline.parent.to_ne_bytes());
    body.extend([0; 4]);
    let kind = CString::new(discipline.kind.as_str()).unwrap_or_default();
    attribute(&mut body, KIND, kind.as_bytes_with_nul());
    let mut options = Vec::new();
    for (number, value) in &discipline.options {
        attribute(&mut options, *number, value);
    }
    attribute(&mut body, OPTIONS, &options);
    let mut request = Vec::new();
    request.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    request.extend(NEW_QDISC.to_ne_bytes());
    request.extend(CREATE.to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    request
}

/// Appends an attribute, padded to four bytes.
pub fn attribute(to: &mut Vec<u8>, number: u16, value: &[u8]) {
    to.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
    to.extend(number.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// The type and body of the first message, and the bytes after it.
pub fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = number::<4>(bytes, 0)? as usize;
    let kind = number::<2>(bytes, 4)? as u16;
    let body = bytes.get(HEADER..length)?;
    Some((
        kind,
        body,
        bytes.get(length.next_multiple_of(4)..).unwrap_or_default(),
    ))
}

/// A number of `N` bytes, the least significant first.
pub fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + N)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| (number << 8) | u64::from(*byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// nlmsghdr (16 bytes), tcmsg (20), the kind with its zero (4 + 8), the options (4) with one number (4 + 4) and
    /// one byte, padded (4 + 1 + 3).
    #[test]
    fn a_request_holds_the_kind_and_its_options() {
        let discipline = DisciplineAttributes {
            device: "eth0".into(),
            parent: 0x0001_0001,
            handle: 0x0010_0000,
            kind: "dualpi2".into(),
            options: vec![(1, 7_u32.to_ne_bytes().into()), (10, vec![2])],
        };
        let request = request(&discipline, 3);
        assert_eq!(request.len(), 16 + 20 + 12 + 4 + 8 + 8);
        let (kind, body, rest) = message(&request).expect("a message");
        assert_eq!((kind, rest.len()), (NEW_QDISC, 0));
        assert_eq!(number::<4>(body, 4), Some(3));
        assert_eq!(number::<4>(body, 8), Some(0x0010_0000));
        assert_eq!(number::<4>(body, 12), Some(0x0001_0001));
        assert_eq!(&body[20..32], b"\x0c\0\x01\0dualpi2\0");
        assert_eq!(&body[32..36], [20, 0, 2, 0x80]);
        assert_eq!(
            &body[36..],
            [8, 0, 1, 0, 7, 0, 0, 0, 5, 0, 10, 0, 2, 0, 0, 0]
        );
    }
}
