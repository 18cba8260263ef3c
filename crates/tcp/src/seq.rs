//! Sequence numbers: 32 bits that wrap (RFC 9293 §3.4).

use std::fmt;
use std::ops::{Add, AddAssign};

/// A TCP sequence number. Two numbers can be ordered if they are less than half of the number space apart.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// True if this number comes before `other`.
    pub const fn before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }
    /// True if this number comes after `other`.
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }
    /// Bytes from `earlier` up to this number. Only meaningful if this is not before `earlier`.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
    /// The later of the two.
    pub const fn max(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }
}

impl Add<u32> for Seq {
    type Output = Self;
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for Seq {
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9293 §3.4: comparison is modulo 2^32.
    #[test]
    fn order_survives_the_wrap() {
        let last = Seq(u32::MAX);
        assert!(last.before(last + 1));
        assert!((last + 10).after(last));
        assert_eq!((last + 10).since(last), 10);
        assert_eq!(last.max(last + 1), Seq(0));
    }
}
