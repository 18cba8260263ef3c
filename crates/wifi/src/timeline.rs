//! A record of the medium: which nodes waited, transmitted and collided.

use alloc::vec::Vec;

use sojourn_units::Time;

use crate::observer::{Observer, Transmitted};

/// The transmissions that begin within a time interval, in the order of their ends.
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

    /// The recorded transmissions.
    pub fn transmitted(&self) -> &[Transmitted] {
        &self.transmitted
    }

    /// Records a transmission if it begins within the interval.
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
