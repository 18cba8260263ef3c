//! When each part of a network acts next.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::Time;

/// The instant at which each place acts next; [`Time::MAX`]: not until something happens to it.
///
/// This is looked at before every event and set about twice in each, so that small networks have forms of their own.
pub enum EventQueue {
    /// Up to 4 places.
    Group(Group),
    /// Up to 16 places.
    Groups(Groups),
    /// Any number of places.
    Tree(Tree),
}

impl EventQueue {
    /// So many places, none of which has anything to do.
    pub fn new(places: usize) -> Self {
        match places {
            ..=WIDTH => Self::Group(Group::EMPTY),
            ..=WIDTH_SQUARED => Self::Groups(Groups {
                least: Group::EMPTY,
                groups: [Group::EMPTY; WIDTH],
            }),
            _ => Self::Tree(Tree::new(places)),
        }
    }

    /// The place that acts before `at`, and when; at the same instant the lowest. `None`: none does.
    #[inline(always)]
    pub fn first_before(&self, at: Time) -> (Option<usize>, Time) {
        match self {
            Self::Group(places) => places.first_before(at),
            Self::Groups(places) => places.first_before(at),
            Self::Tree(places) => places.first_before(at),
        }
    }

    /// A place acts next at `due`.
    #[inline(always)]
    pub fn set(&mut self, place: usize, due: Time) {
        match self {
            Self::Group(places) => places.0[place] = due,
            Self::Groups(places) => places.set(place, due),
            Self::Tree(places) => places.set(place, due),
        }
    }
}

const WIDTH: usize = 4;
const WIDTH_SQUARED: usize = WIDTH * WIDTH;

/// Places that are looked through.
#[derive(Clone, Copy)]
pub struct Group([Time; WIDTH]);

impl Group {
    const EMPTY: Self = Self([Time::MAX; WIDTH]);

    #[inline(always)]
    fn first_before(&self, mut at: Time) -> (Option<usize>, Time) {
        // A number takes fewer instructions here than an option.
        let mut first = WIDTH;
        for (place, &due) in self.0.iter().enumerate() {
            if due < at {
                (first, at) = (place, due);
            }
        }
        ((first < WIDTH).then_some(first), at)
    }

    fn least(&self) -> Time {
        let [a, b, c, d] = self.0;
        a.min(b).min(c.min(d))
    }
}

/// Groups of places, and the least of each.
pub struct Groups {
    least: Group,
    groups: [Group; WIDTH],
}

impl Groups {
    #[inline(always)]
    fn first_before(&self, at: Time) -> (Option<usize>, Time) {
        let (group, at) = self.least.first_before(at);
        let place = group.map(|group| {
            let is_first = |due: &Time| *due == at;
            let entry = self.groups[group].0.iter().position(is_first);
            WIDTH * group + entry.unwrap_or(0)
        });
        (place, at)
    }

    #[inline(always)]
    fn set(&mut self, place: usize, due: Time) {
        let number = place / WIDTH % WIDTH;
        let group = &mut self.groups[number];
        group.0[place % WIDTH] = due;
        self.least.0[number] = group.least();
    }
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
