//! The direction of data.

use serde::{Deserialize, Serialize};

/// The direction of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Direction {
    /// Forward.
    Down,
    /// Reverse.
    Up,
    /// The given number of flows in each direction.
    Both,
}
