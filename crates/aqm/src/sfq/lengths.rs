//! Finds the longest queue in constant time: keeps a list of the queues of each length.

use alloc::vec::Vec;

use crate::list::{Link, Linked, List};

/// The queues by their length.
pub(super) struct Lengths {
    links: Vec<LengthLink>,
    /// The queues of each length, the latest to reach that length first.
    of_length: Vec<List>,
    greatest: usize,
}

struct LengthLink(Link);

impl Linked for LengthLink {
    fn link(&mut self) -> &mut Link {
        &mut self.0
    }
}

impl Lengths {
    /// Lengths of `queues` empty queues.
    pub(super) fn new(queues: u32) -> Self {
        Self {
            links: (0..queues).map(|_| LengthLink(Link::ALONE)).collect(),
            of_length: Vec::from([List::EMPTY]),
            greatest: 0,
        }
    }

    /// Records that a queue of `from` packets now has `to`.
    pub(super) fn change(&mut self, queue: u32, from: u32, to: u32) {
        if from == to {
            return;
        }
        let (from, to) = (from as usize, to as usize);
        if from > 0 {
            self.of_length[from].remove(&mut self.links, queue);
        }
        if to > 0 {
            if to >= self.of_length.len() {
                self.of_length.resize(to + 1, List::EMPTY);
            }
            self.of_length[to].push_front(&mut self.links, queue);
        }
        self.greatest = self.greatest.max(to);
        while self.greatest > 0 && self.of_length[self.greatest].is_empty() {
            self.greatest -= 1;
        }
    }

    /// Packets in the longest queue.
    pub(super) const fn greatest(&self) -> usize {
        self.greatest
    }

    /// The longest queue; of several, the latest to become so.
    pub(super) fn longest(&self) -> Option<u32> {
        self.of_length[self.greatest].front()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
    fn the_longest_queue_is_the_longest(changes in prop::collection::vec((0_u32..6, 0_u32..9), 0..100)) {
        let mut lengths = Lengths::new(6);
        let mut model = [0_u32; 6];
        for (queue, length) in changes {
            lengths.change(queue, model[queue as usize], length);
            model[queue as usize] = length;
            let longest = lengths.longest().map_or(0, |queue| model[queue as usize]);
            prop_assert_eq!(longest, *model.iter().max().unwrap());
        }
    }
    }
}
