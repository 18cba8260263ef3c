//! A record of the medium: who waits, transmits and collides.

use alloc::vec::Vec;

use sojourn_units::Time;

use crate::observer::{Observer, Transmitted};

/// Transmissions that begin within a stretch of time, in the order of their ends. Each says since when its sender had
/// contended for it ([`Transmitted::waiting_since`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    from: Time,
    until: Time,
    transmitted: Vec<Transmitted>,
}

impl Timeline {
    /// A record of `[from, until)`.
    pub const fn new(from: Time, until: Time) -> Self {
        Self {
            from,
            until,
            transmitted: Vec::new(),
        }
    }

    /// What was recorded.
    pub fn transmitted(&self) -> &[Transmitted] {
        &self.transmitted
    }

    /// Notes a transmission if it begins within the stretch.
    pub fn note(&mut self, transmitted: &Transmitted) {
        if (self.from..self.until).contains(&transmitted.start) {
            self.transmitted.push(*transmitted);
        }
    }
}

impl<P> Observer<P> for Timeline {
    fn on_air(&mut self, transmitted: &Transmitted) {
        self.note(transmitted);
    }
}
