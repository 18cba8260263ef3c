//! Finds the part of a network that acts next.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::Time;

/// The instant at which each place acts next; [`Time::MAX`]: not until something happens to it.
///
/// It is read before every event and set about twice in each. In a small network it is quickest to compare all places, in a
/// larger one to keep the least of each row; in a tree an event costs some tens of comparisons in a network of any size.
pub enum EventQueue {
    /// Up to 12 places.
    Few(Places),
    /// Any number of places.
    Many(Many),
}

/// More than a few places.
pub enum Many {
    /// Up to 64 places.
    Rows(Box<Rows>),
    /// Any number of places.
    Tree(Tree),
}

impl EventQueue {
    /// So many places, none of which has anything to do.
    pub fn new(places: usize) -> Self {
        if places <= MOST {
            Self::Few(Places {
                count: places,
                due: [Time::MAX; MOST],
            })
        } else if places <= WIDE * WIDE {
            Self::Many(Many::Rows(Box::new(Rows {
                due: [[Time::MAX; WIDE]; WIDE],
                least: [Time::MAX; WIDE],
            })))
        } else {
            Self::Many(Many::Tree(Tree::new(places)))
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
        match self.count {
            0..=4 => first_of(&self.due[..4], at),
            5..=8 => first_of(&self.due[..8], at),
            _ => first_of(&self.due, at),
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

impl Many {
    #[inline(never)]
    fn first_before(&self, at: Time) -> (Option<usize>, Time) {
        match self {
            Self::Rows(places) => places.first_before(at),
            Self::Tree(places) => places.first_before(at),
        }
    }

    #[inline(never)]
    fn set(&mut self, place: usize, due: Time) {
        match self {
            Self::Rows(places) => places.set(place, due),
            Self::Tree(places) => places.set(place, due),
        }
    }
}

/// Eight rows of eight places.
pub struct Rows {
    due: [[Time; WIDE]; WIDE],
    /// The least of each row.
    least: [Time; WIDE],
}

impl Rows {
    #[inline(always)]
    fn first_before(&self, at: Time) -> (Option<usize>, Time) {
        let (row, least) = first_of(&self.least, at);
        let Some(row) = row else { return (None, at) };
        let place = self.due[row].iter().position(|due| *due == least);
        (place.map(|place| row * WIDE + place), least)
    }

    #[inline(always)]
    fn set(&mut self, place: usize, due: Time) {
        let row = place / WIDE;
        let before = core::mem::replace(&mut self.due[row][place % WIDE], due);
        if due <= self.least[row] {
            self.least[row] = due;
        } else if before == self.least[row] {
            self.least[row] = least_of(&self.due[row]);
        }
    }
}

/// Places of a row, and children of a node.
const WIDE: usize = 8;

/// A complete tree. A node holds the instants of eight places, or the least of each of eight nodes below: the children of
/// node `n` are the nodes from `8n + 1` on, and node 0 is the root. An instant that is not the least of its node before or
/// after a change ends the way up; few nodes are looked through, and those fit a cache line each.
pub struct Tree {
    nodes: Vec<[Time; WIDE]>,
    /// The first node with places.
    first_leaf: usize,
}

impl Tree {
    fn new(places: usize) -> Self {
        let leaves = places.div_ceil(WIDE);
        let (mut first_leaf, mut row) = (0, 1);
        while row < leaves {
            first_leaf += row;
            row *= WIDE;
        }
        Self {
            nodes: vec![[Time::MAX; WIDE]; first_leaf + leaves],
            first_leaf,
        }
    }

    #[inline(never)]
    fn first_before(&self, at: Time) -> (Option<usize>, Time) {
        let least = least_of(&self.nodes[0]);
        if least >= at {
            return (None, at);
        }
        let mut node = 0;
        loop {
            let found = self.nodes[node].iter().position(|due| *due == least);
            let child = found.unwrap_or_default();
            if node >= self.first_leaf {
                return (Some((node - self.first_leaf) * WIDE + child), least);
            }
            node = WIDE * node + 1 + child;
        }
    }

    /// Sets a place, and the least of the nodes above it as far as it changes.
    #[inline(never)]
    fn set(&mut self, place: usize, due: Time) {
        let (mut node, mut child) = (self.first_leaf + place / WIDE, place % WIDE);
        let mut now = due;
        loop {
            let before = core::mem::replace(&mut self.nodes[node][child], now);
            if node == 0 {
                return;
            }
            let (above, of_node) = ((node - 1) / WIDE, (node - 1) % WIDE);
            let least = self.nodes[above][of_node];
            if now >= least {
                if before > least {
                    return;
                }
                now = least_of(&self.nodes[node]);
            }
            if now == least {
                return;
            }
            (node, child) = (above, of_node);
        }
    }
}

#[inline(always)]
fn least_of(all: &[Time; WIDE]) -> Time {
    all.iter().copied().fold(Time::MAX, Time::min)
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
            places in 1_usize..600,
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
