//! When each part of a network acts next.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::Time;

/// The instant at which each place acts next; [`Time::MAX`]: not until something happens to it.
///
/// In a small network all places are looked through, which is quickest. In a larger one all but the first stand in a tree,
/// so that an event costs a few comparisons in a network of any size.
pub struct EventQueue {
    /// The first places. Many networks have no more.
    first: [Time; GROUP],
    rest: Rest,
}

/// The places after the first.
enum Rest {
    None,
    /// To be looked through.
    Groups(Vec<[Time; GROUP]>),
    Tree(Tree),
}

/// Places whose least is found without a loop.
const GROUP: usize = 4;
/// The most groups after the first that are looked through.
const GROUPS: usize = 3;

impl EventQueue {
    /// So many places, none of which has anything to do.
    pub fn new(places: usize) -> Self {
        let rest = places.saturating_sub(GROUP);
        Self {
            first: [Time::MAX; GROUP],
            rest: match rest.div_ceil(GROUP) {
                0 => Rest::None,
                groups @ ..=GROUPS => Rest::Groups(vec![[Time::MAX; GROUP]; groups]),
                _ => Rest::Tree(Tree::new(rest)),
            },
        }
    }

    /// The place that acts before `at`, and when; at the same instant the lowest. `None`: none does.
    #[inline(always)]
    pub fn first_before(&self, mut at: Time) -> (Option<usize>, Time) {
        let mut first = None;
        for (place, &due) in self.first.iter().enumerate() {
            if due < at {
                (first, at) = (Some(place), due);
            }
        }
        match &self.rest {
            Rest::None => {}
            Rest::Groups(groups) => {
                let mut among = None;
                for (number, group) in groups.iter().enumerate() {
                    let least = least(group);
                    if least < at {
                        (among, at) = (Some(number), least);
                    }
                }
                if let Some(number) = among {
                    first = Some(GROUP + GROUP * number + entry_of(&groups[number], at));
                }
            }
            Rest::Tree(tree) => {
                if tree.least() < at {
                    at = tree.least();
                    first = Some(GROUP + tree.first());
                }
            }
        }
        (first, at)
    }

    /// A place acts next at `due`.
    #[inline(always)]
    pub fn set(&mut self, place: usize, due: Time) {
        if place < GROUP {
            self.first[place] = due;
            return;
        }
        let place = place - GROUP;
        match &mut self.rest {
            Rest::None => unreachable!("there are no more places"),
            Rest::Groups(groups) => groups[place / GROUP][place % GROUP] = due,
            Rest::Tree(tree) => tree.set(place, due),
        }
    }
}

fn least(&[a, b, c, d]: &[Time; GROUP]) -> Time {
    a.min(b).min(c.min(d))
}

/// The first entry with this instant, which is there.
fn entry_of(group: &[Time; GROUP], at: Time) -> usize {
    group.iter().position(|due| *due == at).unwrap_or(0)
}

/// A complete binary tree: node `n` holds the least of its children `2n` and `2n + 1`, the root is node 1, and the leaves
/// are the places in their order.
struct Tree(Vec<Time>);

impl Tree {
    fn new(places: usize) -> Self {
        Self(vec![Time::MAX; 2 * places.next_power_of_two()])
    }

    /// When the first place acts.
    fn least(&self) -> Time {
        self.0[1]
    }

    /// The lowest of the places that act first.
    #[inline(never)]
    fn first(&self) -> usize {
        let leaves = self.0.len() / 2;
        let mut node = 1;
        while node < leaves {
            node *= 2;
            if self.0[node] != self.least() {
                node += 1;
            }
        }
        node - leaves
    }

    /// Sets a place, and the nodes above it as far as their least changes.
    #[inline(never)]
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
