//! The time of a run.

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use super::{Context, Failure};

/// A tick of the kernel's timers, of which there are 250 a second.
pub const JIFFY_NS: u64 = 4_000_000;
/// Timers of the kernel above 252 ms expire with every eighth tick, above 2 s with every 64th; these are counted
/// from 300 s before the clock's zero (INITIAL_JIFFIES).
pub const ROUND_NS: u64 = 64 * JIFFY_NS;
const TICKS_BEFORE_NS: u64 = 300_000_000_000;

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

/// The next time of the monotonic clock with which all timers of the kernel may expire. A run begins then, so that ticks are
/// where the simulator's are.
pub const fn on_a_tick(ns: u64) -> u64 {
    // Counted from earlier by whole rounds: the kernel's count of ticks is negative at first.
    let ahead = ROUND_NS - TICKS_BEFORE_NS % ROUND_NS;
    (ns + ahead).next_multiple_of(ROUND_NS) - ahead
}

#[cfg(test)]
mod tests {
    use super::on_a_tick;

    /// 224 ms are 56 ticks of 4 ms, and 300 s are 75,000, which are 8 less than a multiple of 64.
    #[test]
    fn a_run_begins_when_all_timers_of_the_kernel_may_expire() {
        assert_eq!(on_a_tick(1), 224_000_000);
        assert_eq!(on_a_tick(224_000_000), 224_000_000);
        assert_eq!(on_a_tick(224_000_001), 480_000_000);
        assert_eq!(on_a_tick(5_500_142_000), 5_600_000_000);
    }
}
