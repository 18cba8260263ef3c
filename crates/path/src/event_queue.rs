//! Finds the part of a network that acts next.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::Time;

/// The instant at which each place acts next; [`Time::MAX`]: not until something happens to it.
///
/// It is read before every event and set about twice in each. In a small network it is quickest to compare all places; in
/// a tree an event costs a few comparisons in a network of any size.
pub enum EventQueue {
    /// Up to 12 places.
    Few(Places),
    /// Any number of places.
    Many(Tree),
}

impl EventQueue {
    /// So many places, none of which has anything to do.
    pub fn new(places: usize) -> Self {
        if places <= MOST {
            Self::Few(Places {
                count: places,
                due: [Time::MAX; MOST],
            })
        } else {
            Self::Many(Tree::new(places))
        }
    }

    /// The place that acts before `at`, and when; at the same instant the lowest. `None`: none does.
    #[inline(always)]
    pub fn first_before(&self, at: Time) -> (Option<usize>, Time) {
        match self {
            Self::Few(places) => places.first_before(at),
            Self::Many(places) => places.first_before(at),
        }
    }

    /// A place acts next at `due`.
    #[inline(always)]
    pub fn set(&mut self, place: usize, due: Time) {
        match self {
            Self::Few(places) => places.due[place] = due,
            Self::Many(places) => places.set(place, due),
        }
    }
}

/// The most places that are all compared.
const MOST: usize = 12;

/// Places that are all compared.
pub struct Places {
    count: usize,
    due: [Time; MOST],
}

impl Places {
    #[inline(always)]
    fn first_before(&self, at: Time) -> (Option<usize>, Time) {
        if self.count <= 4 {
            first_of(&self.due[..4], at)
        } else {
            first_of(&self.due, at)
        }
    }
}

#[inline(always)]
fn first_of(all: &[Time], at: Time) -> (Option<usize>, Time) {
    // Comparing the instants and then finding the place takes fewer instructions than doing both at once.
    let mut least = at;
    for &due in all {
        least = least.min(due);
    }
    if least == at {
        return (None, at);
    }
    (all.iter().position(|due| *due == least), least)
}

/// A complete binary tree: node `n` holds the least of its children `2n` and `2n + 1`, the root is node 1, and the leaves
/// are the places in their order.
pub struct Tree(Vec<Time>);

impl Tree {
    fn new(places: usize) -> Self {
        Self(vec![Time::MAX; 2 * places.next_power_of_two()])
    }

    fn first_before(&self, at: Time) -> (Option<usize>, Time) {
        let (leaves, least) = (self.0.len() / 2, self.0[1]);
        if least >= at {
            return (None, at);
        }
        let mut node = 1;
        while node < leaves {
            node *= 2;
            if self.0[node] != least {
                node += 1;
            }
        }
        (Some(node - leaves), least)
    }

    /// Sets a place, and the nodes above it as far as their least changes.
    fn set(&mut self, place: usize, due: Time) {
        let (mut node, mut least) = (self.0.len() / 2 + place, due);
        while self.0[node] != least {
            self.0[node] = least;
            if node == 1 {
                break;
            }
            least = least.min(self.0[node ^ 1]);
            node /= 2;
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
