//! When each part of a network acts next.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::{Time, cold_path};

/// The instant at which each place acts next; [`Time::MAX`]: not until something happens to it.
///
/// The first places are looked through one by one. The others stand in a tree of minimums, so that an event costs a few
/// comparisons in a network of any size.
pub struct EventQueue {
    /// Those of the first places; most networks have no more.
    few: [Time; FEW],
    /// A complete binary tree: node `n` holds the least of its children `2n` and `2n + 1`, the root is node 1, and the
    /// leaves are the other places in their order. Empty if there are none.
    tree: Vec<Time>,
}

/// Places whose scan needs no loop.
const FEW: usize = 4;

impl EventQueue {
    /// So many places, none of which has anything to do.
    pub fn new(places: usize) -> Self {
        let rest = places.saturating_sub(FEW);
        let nodes = if rest == 0 {
            0
        } else {
            2 * rest.next_power_of_two()
        };
        Self {
            few: [Time::MAX; FEW],
            tree: vec![Time::MAX; nodes],
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
        match self.tree.get(1) {
            Some(&least) if least < at => (Some(self.first_of_rest(least)), least),
            _ => (first, at),
        }
    }

    /// The lowest of the further places that act at `least`, the root's instant.
    #[inline(never)]
    fn first_of_rest(&self, least: Time) -> usize {
        let leaves = self.tree.len() / 2;
        let mut node = 1;
        while node < leaves {
            node *= 2;
            if self.tree[node] != least {
                node += 1;
            }
        }
        FEW + node - leaves
    }

    /// A place acts next at `due`.
    #[inline(always)]
    pub fn set(&mut self, place: usize, due: Time) {
        if place < FEW {
            self.few[place] = due;
        } else {
            cold_path();
            let leaf = self.tree.len() / 2 + place - FEW;
            if self.tree[leaf] != due {
                self.set_leaf(leaf, due);
            }
        }
    }

    /// Sets a leaf, and the nodes above it as far as their least changes.
    #[inline(never)]
    fn set_leaf(&mut self, leaf: usize, due: Time) {
        let (mut node, mut least) = (leaf, due);
        while self.tree[node] != least {
            self.tree[node] = least;
            if node == 1 {
                break;
            }
            least = least.min(self.tree[node ^ 1]);
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
