//! Watching a run from another thread, and stopping it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sojourn_units::Time;

/// How far a run has come, and whether it is wanted any longer.
#[derive(Debug, Default)]
pub struct Monitor {
    simulated: AtomicU64,
    cancelled: AtomicBool,
}

impl Monitor {
    /// A monitor of a run that has not begun.
    pub fn new() -> Self {
        Self::default()
    }
    /// Asks the run to stop; it does within a few milliseconds.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
    /// True once the run was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
    /// How far the run has come.
    pub fn simulated(&self) -> Time {
        Time::from_nanos(self.simulated.load(Ordering::Relaxed))
    }
    /// The run has come as far as `now`.
    pub fn report(&self, now: Time) {
        self.simulated.store(now.as_nanos(), Ordering::Relaxed);
    }
}
