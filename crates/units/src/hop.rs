//! A direction of a link.

/// A direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Way {
    /// From its first node to its second.
    Down,
    /// From its second node to its first.
    Up,
}

impl Way {
    /// The other direction.
    pub const fn reversed(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

/// A link that packets cross, and the direction in which they cross it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// Number of the link.
    pub link: usize,
    /// The direction.
    pub way: Way,
}
