//! When each part of a network acts next.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::{Time, cold_path};

/// The instant at which each place acts next; [`Time::MAX`]: not until something happens to it. Places are few: a scan
/// finds the first faster than a heap would.
pub struct EventQueue {
    /// Those of the first places; most networks have no more.
    few: [Time; FEW],
    rest: Vec<Time>,
}

/// Places whose scan needs no loop.
const FEW: usize = 4;

impl EventQueue {
    /// So many places, none of which has anything to do.
    pub fn new(places: usize) -> Self {
        Self {
            few: [Time::MAX; FEW],
            rest: vec![Time::MAX; places.saturating_sub(FEW)],
        }
    }

    /// The place that acts before `at`, and when; at the same instant the lowest. `None`: none does.
    #[inline(always)]
    pub fn first_before(&self, mut at: Time) -> (Option<usize>, Time) {
        let mut first = None;
        for (place, &due) in self.few.iter().enumerate() {
            if due < at {
                (first, at) = (Some(place), due);
            }
        }
        if self.rest.is_empty() {
            (first, at)
        } else {
            self.first_of_rest(first, at)
        }
    }

    #[cold]
    #[inline(never)]
    fn first_of_rest(&self, mut first: Option<usize>, mut at: Time) -> (Option<usize>, Time) {
        for (place, &due) in self.rest.iter().enumerate() {
            if due < at {
                (first, at) = (Some(FEW + place), due);
            }
        }
        (first, at)
    }

    /// A place acts next at `due`.
    #[inline(always)]
    pub fn set(&mut self, place: usize, due: Time) {
        if place < FEW {
            self.few[place] = due;
        } else {
            cold_path();
            self.rest[place - FEW] = due;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The first of the least.
    fn looked_through(due: &[u64], before: u64) -> (Option<usize>, Time) {
        let least = due.iter().copied().min().filter(|least| *least < before);
        let place = least.and_then(|least| due.iter().position(|at| *at == least));
        (place, Time::from_nanos(least.unwrap_or(before)))
    }

    proptest! {
        /// Instants are few, so that many are the same.
        #[test]
        fn the_first_is_that_which_a_search_finds(
            places in 1_usize..40,
            changes in proptest::collection::vec((any::<prop::sample::Index>(), 0_u64..8), 0..200),
            before in 0_u64..10,
        ) {
            let mut queue = EventQueue::new(places);
            let mut due = vec![u64::MAX; places];
            for (place, at) in changes {
                let place = place.index(places);
                due[place] = at;
                queue.set(place, Time::from_nanos(at));
                prop_assert_eq!(queue.first_before(Time::from_nanos(before)), looked_through(&due, before));
            }
        }
    }
}
