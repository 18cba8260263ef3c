//! The bytes of netlink messages and their attributes (netlink(7), rtnetlink(7)).

use serde::{Deserialize, Serialize};

/// Lengths of nlmsghdr and of an attribute's header.
pub const HEADER: usize = 16;
pub const ATTRIBUTE: usize = 4;
/// NLA_F_NESTED, and the bits of an attribute's number without flags (linux/netlink.h).
const NESTED: u16 = 0x8000;
const NUMBER: u16 = 0x3fff;

/// Attributes of a message, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// None yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends an attribute, padded to four bytes.
    pub fn put(mut self, number: u16, value: &[u8]) -> Self {
        self.0
            .extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
        self.0.extend(number.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends a number of four bytes.
    pub fn u32(self, number: u16, value: u32) -> Self {
        self.put(number, &value.to_ne_bytes())
    }

    /// Appends a number of eight bytes.
    pub fn u64(self, number: u16, value: u64) -> Self {
        self.put(number, &value.to_ne_bytes())
    }

    /// Appends a text and its terminating zero.
    pub fn text(self, number: u16, value: &str) -> Self {
        self.put(number, &[value.as_bytes(), b"\0"].concat())
    }

    /// Appends an attribute that consists of attributes.
    pub fn nest(self, number: u16, inner: &Self) -> Self {
        self.put(number | NESTED, &inner.0)
    }

    /// Appends all of `others`.
    pub fn with(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The numbers, without flags, and the values of the attributes in `bytes`. Ends at the first that is not whole.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = number::<2>(rest, 0)? as usize;
        let kind = number::<2>(rest, 2)? as u16 & NUMBER;
        let value = rest.get(ATTRIBUTE..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of the first attribute with this number.
pub fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(kind, value)| (kind == wanted).then_some(value))
}

/// A message of `kind` with `flags` and `body`, which begins with the structure of its kind.
pub fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]); // sequence number and port, which nobody reads
    message.extend(body);
    message
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

    /// A number (4 + 4 bytes), a text of 8 with its zero (4 + 8) and one byte, padded (4 + 1 + 3), in an attribute (4).
    #[test]
    fn attributes_are_read_as_they_were_written() {
        let inner = Attributes::new().u32(1, 7).text(2, "dualpi2").put(10, &[2]);
        let outer = Attributes::new().nest(2, &inner);
        assert_eq!(outer.as_bytes().len(), 4 + 8 + 12 + 8);
        assert_eq!(&outer.as_bytes()[..4], [32, 0, 2, 0x80]);
        let read: Vec<_> =
            attributes(attribute(outer.as_bytes(), 2).expect("it is nested")).collect();
        assert_eq!(
            read,
            [(1, &[7, 0, 0, 0][..]), (2, b"dualpi2\0"), (10, &[2])]
        );
        assert_eq!(attribute(outer.as_bytes(), 3), None);
    }

    #[test]
    fn an_incomplete_attribute_ends_them() {
        let whole = Attributes::new().u32(1, 7).u32(2, 8);
        let bytes = &whole.as_bytes()[..12];
        assert_eq!(attributes(bytes).count(), 1);
        assert_eq!(attributes(&[3, 0, 1, 0]).count(), 0);
    }

    #[test]
    fn a_request_has_the_length_that_it_states() {
        let bytes = request(36, 0x605, &[1, 2, 3, 4]);
        assert_eq!(bytes.len(), 20);
        assert_eq!(message(&bytes), Some((36, &[1, 2, 3, 4][..], &[][..])));
    }
}
