//! Finds the part of a network that acts next.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::Time;

/// The instant of each source's next event; [`Time::MAX`]: not until something happens to it.
///
/// It is read before every event and set about twice in each. In a small network it is quickest to compare all sources, in a
/// larger one to keep the least of each row; in a tree an event costs some tens of comparisons in a network of any size.
pub enum EventQueue {
    /// Up to two sources: flows with one round-trip time over one link have a line and the link.
    Two(Sources),
    /// Up to 12 sources.
    Few(Sources),
    /// Any number of sources.
    Many(Many),
}

/// More than a few sources.
pub enum Many {
    /// Up to 64 sources.
    Rows(Box<Rows>),
    /// Any number of sources.
    Tree(Tree),
    /// Links before lines.
    LinksFirst(Box<LinksFirst>),
}

impl EventQueue {
    /// So many sources, none of which has anything to do.
    pub fn new(sources: usize) -> Self {
        if sources <= MOST {
            let few = Sources {
                count: sources,
                due: [Time::MAX; MOST],
            };
            if sources <= 2 {
                Self::Two(few)
            } else {
                Self::Few(few)
            }
        } else if sources <= WIDE * WIDE {
            Self::Many(Many::Rows(Box::new(Rows {
                due: [[Time::MAX; WIDE]; WIDE],
                least: [Time::MAX; WIDE],
            })))
        } else {
            Self::Many(Many::Tree(Tree::new(sources)))
        }
    }

    /// So many sources, of which the first are lines and the next are links; at the same instant links act before lines.
    pub fn links_first(lines: usize, links: usize, sources: usize) -> Self {
        Self::Many(Many::LinksFirst(Box::new(LinksFirst {
            lines,
            links,
            queue: Self::new(sources),
        })))
    }

    /// The source that acts before `at`, and when; at the same instant the lowest. `None`: none does.
    #[inline(always)]
    pub fn first_before(&self, at: Time) -> (Option<usize>, Time) {
        match self {
            Self::Two(sources) => before(at, earlier((0, sources.due[0]), (1, sources.due[1]))),
            Self::Few(sources) => before(at, sources.first()),
            Self::Many(sources) => sources.first_before(at),
        }
    }

    /// A source acts next at `due`.
    #[inline(always)]
    pub fn set(&mut self, source: usize, due: Time) {
        match self {
            Self::Two(sources) | Self::Few(sources) => sources.due[source] = due,
            Self::Many(sources) => sources.set(source, due),
        }
    }
}

/// The most sources that are all compared.
const MOST: usize = 12;

/// Sources that are all compared.
pub struct Sources {
    count: usize,
    due: [Time; MOST],
}

impl Sources {
    #[inline(always)]
    fn first(&self) -> (usize, Time) {
        let of_four = |first| first_of_four(&self.due, first);
        match self.count {
            0..=4 => of_four(0),
            5..=8 => earlier(of_four(0), of_four(4)),
            _ => earlier(earlier(of_four(0), of_four(4)), of_four(8)),
        }
    }
}

/// A source, if it acts before `at`.
#[inline(always)]
fn before(at: Time, (source, due): (usize, Time)) -> (Option<usize>, Time) {
    if due < at {
        (Some(source), due)
    } else {
        (None, at)
    }
}

/// The earlier of two sources; at the same instant the first.
#[inline(always)]
fn earlier(one: (usize, Time), other: (usize, Time)) -> (usize, Time) {
    if other.1 < one.1 { other } else { one }
}

/// The earliest of four sources from this one on.
#[inline(always)]
fn first_of_four(due: &[Time; MOST], first: usize) -> (usize, Time) {
    let of = |n: usize| (first + n, due[first + n]);
    earlier(earlier(of(0), of(1)), earlier(of(2), of(3)))
}

#[inline(always)]
fn first_of(all: &[Time], at: Time) -> (Option<usize>, Time) {
    // Of eight, comparing the instants and then finding the source takes fewer instructions than doing both at once.
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
            Self::Rows(sources) => sources.first_before(at),
            Self::Tree(sources) => sources.first_before(at),
            Self::LinksFirst(sources) => sources.first_before(at),
        }
    }

    #[inline(never)]
    fn set(&mut self, source: usize, due: Time) {
        match self {
            Self::Rows(sources) => sources.set(source, due),
            Self::Tree(sources) => sources.set(source, due),
            Self::LinksFirst(sources) => sources.set(source, due),
        }
    }
}

/// Sources of which the first are lines and the next are links, which act before them at the same instant. The others act
/// last, as always.
pub struct LinksFirst {
    lines: usize,
    links: usize,
    /// The links, the lines, the others.
    queue: EventQueue,
}

impl LinksFirst {
    fn first_before(&self, at: Time) -> (Option<usize>, Time) {
        let (place, at) = self.queue.first_before(at);
        let source = |place: usize| match place.checked_sub(self.links) {
            None => self.lines + place,
            Some(line) if line < self.lines => line,
            Some(_) => place,
        };
        (place.map(source), at)
    }

    fn set(&mut self, source: usize, due: Time) {
        let place = match source.checked_sub(self.lines) {
            None => self.links + source,
            Some(link) if link < self.links => link,
            Some(_) => source,
        };
        self.queue.set(place, due);
    }
}

/// Eight rows of eight sources.
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
        let source = self.due[row].iter().position(|due| *due == least);
        (source.map(|source| row * WIDE + source), least)
    }

    #[inline(always)]
    fn set(&mut self, source: usize, due: Time) {
        let row = source / WIDE;
        let before = core::mem::replace(&mut self.due[row][source % WIDE], due);
        if due <= self.least[row] {
            self.least[row] = due;
        } else if before == self.least[row] {
            self.least[row] = least_of(&self.due[row]);
        }
    }
}

/// Sources of a row, and children of a node.
const WIDE: usize = 8;

/// A complete tree. A node holds the instants of eight sources, or the least of each of eight nodes below: the children of
/// node `n` are the nodes from `8n + 1` on, and node 0 is the root. An instant that is not the least of its node before or
/// after a change ends the way up; few nodes are looked through, and those fit a cache line each.
pub struct Tree {
    nodes: Vec<[Time; WIDE]>,
    /// The first node with sources.
    first_leaf: usize,
}

impl Tree {
    fn new(sources: usize) -> Self {
        let leaves = sources.div_ceil(WIDE);
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

    /// Sets a source, and the least of the nodes above it as far as it changes.
    #[inline(never)]
    fn set(&mut self, source: usize, due: Time) {
        let (mut node, mut child) = (self.first_leaf + source / WIDE, source % WIDE);
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
        let source = least.and_then(|least| due.iter().position(|at| *at == least));
        (source, Time::from_nanos(least.unwrap_or(before)))
    }

    proptest! {
        /// Instants are few, so that many are the same.
        #[test]
        fn the_first_is_that_which_a_search_finds(
            sources in 1_usize..600,
            changes in proptest::collection::vec((any::<prop::sample::Index>(), 0_u64..8), 0..200),
            before in 0_u64..10,
        ) {
            let mut queue = EventQueue::new(sources);
            let mut due = vec![u64::MAX; sources];
            for (source, at) in changes {
                let source = source.index(sources);
                due[source] = at;
                queue.set(source, Time::from_nanos(at));
                prop_assert_eq!(queue.first_before(Time::from_nanos(before)), looked_through(&due, before));
            }
        }

        /// The same, if links are looked at before lines.
        #[test]
        fn links_act_before_lines_if_asked(
            (lines, links, others) in (0_usize..40, 0_usize..40, 1_usize..4),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), 0_u64..8), 0..200),
            before in 0_u64..10,
        ) {
            let sources = lines + links + others;
            let mut queue = EventQueue::links_first(lines, links, sources);
            let order: Vec<usize> = (lines..lines + links).chain(0..lines).chain(lines + links..sources).collect();
            let mut due = vec![u64::MAX; sources];
            for (source, at) in changes {
                let source = source.index(sources);
                due[source] = at;
                queue.set(source, Time::from_nanos(at));
                let in_order: Vec<u64> = order.iter().map(|source| due[*source]).collect();
                let (place, at) = looked_through(&in_order, before);
                let expected = (place.map(|place| order[place]), at);
                prop_assert_eq!(queue.first_before(Time::from_nanos(before)), expected);
            }
        }
    }
}
