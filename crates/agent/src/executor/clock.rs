//! The time of a run.

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use super::{Context, Failure};

/// Counts from the start of a run. Reading it is a call of the kernel, which costs more than all else that is done for
/// a packet where the kernel is a program (User-Mode Linux).
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The monotonic clock at the start of the run.
    pub zero_ns: u64,
}

impl Clock {
    /// Nanoseconds since the run began; negative before it.
    ///
    /// # Errors
    /// There is no such clock.
    pub fn now(self) -> Result<i64, Failure> {
        Ok(monotonic()? as i64 - self.zero_ns as i64)
    }
}

/// The monotonic clock, in nanoseconds.
///
/// # Errors
/// There is no such clock.
pub fn monotonic() -> Result<u64, Failure> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).context(|| "reading the clock".into())?;
    Ok(now.num_nanoseconds() as u64)
}
