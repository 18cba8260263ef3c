//! The hosts' timers: one deadline per host, most of which move long before they come due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sojourn_units::Time;

/// Deadlines by owner. Moving a deadline back costs nothing: the entry stays, and when it comes up the owner is
/// asked again.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// The earliest entries of each flow's hosts in the heap; [`Time::MAX`]: none.
    scheduled: Vec<[Time; 2]>,
}

impl Timers {
    /// Timers for the two hosts of each of `flows` flows; the owners of flow n are 2n, its sending host, and 2n + 1.
    pub fn new(flows: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            scheduled: vec![[Time::MAX; 2]; flows],
        }
    }

    /// The deadlines of a flow's hosts; [`Time::MAX`]: there is none.
    #[inline]
    pub fn set_both(&mut self, flow: u32, due: [Time; 2]) {
        let scheduled = self.scheduled[flow as usize];
        if due[0] < scheduled[0] {
            self.bring_forward(2 * flow, due[0]);
        }
        if due[1] < scheduled[1] {
            self.bring_forward(2 * flow + 1, due[1]);
        }
    }

    #[inline(never)]
    fn bring_forward(&mut self, owner: u32, due: Time) {
        self.scheduled[owner as usize / 2][owner as usize % 2] = due;
        self.heap.push(Reverse((due, owner)));
    }

    /// When the next entry comes up; [`Time::MAX`] if there is none.
    pub fn next(&self) -> Time {
        self.heap.peek().map_or(Time::MAX, |Reverse((due, _))| *due)
    }

    /// Takes the next entry: its owner is to be asked whether anything is due. `None` for an entry that an
    /// earlier one has replaced.
    pub fn pop(&mut self) -> Option<u32> {
        let Reverse((due, owner)) = self.heap.pop()?;
        let scheduled = &mut self.scheduled[owner as usize / 2][owner as usize % 2];
        if *scheduled != due {
            return None;
        }
        *scheduled = Time::MAX;
        Some(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_of_two_deadlines_counts() {
        let mut timers = Timers::new(1);
        let mut set = |first, second| timers.set_both(0, [first, second].map(Time::from_millis));
        set(20, 15);
        set(10, 15);
        set(30, 15); // later: asked again at 10 ms
        assert_eq!(
            (timers.next(), timers.pop()),
            (Time::from_millis(10), Some(0))
        );
        assert_eq!(
            (timers.next(), timers.pop()),
            (Time::from_millis(15), Some(1))
        );
        assert_eq!(timers.pop(), None); // the entry at 20 ms was replaced
        assert_eq!(timers.next(), Time::MAX);
    }
}
