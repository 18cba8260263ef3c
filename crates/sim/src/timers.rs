//! The hosts' timers: one deadline per host. Most deadlines move long before they expire.

use sojourn_traffic::Side;
use sojourn_units::Time;

/// Flows whose deadlines are searched together.
const BLOCK: usize = 8;

/// Deadlines by owner. Postponing a deadline costs one store: the search for the due one waits until the earliest time
/// at which one may have expired.
#[derive(Debug)]
pub struct Timers {
    /// The deadlines of each flow's hosts, whole blocks; [`Time::MAX`]: none.
    due: Vec<[Time; 2]>,
    /// A binary tree of lower bounds: node n has the lesser bound of nodes 2n and 2n + 1, the leaves those of the blocks
    /// of flows. Node 1 is the root.
    bounds: Vec<Time>,
    /// The number of leaves, which is that of the first leaf.
    leaves: usize,
    /// The root's bound, which is looked at before every event.
    next: Time,
}

impl Timers {
    /// Timers for the two hosts of each of `flows` flows. The owners of flow n are 2n, its sending host, and 2n + 1,
    /// its receiving host.
    pub fn new(flows: usize) -> Self {
        let blocks = flows.div_ceil(BLOCK);
        let leaves = blocks.next_power_of_two();
        Self {
            due: vec![[Time::MAX; 2]; blocks * BLOCK],
            bounds: vec![Time::MAX; 2 * leaves],
            leaves,
            next: Time::MAX,
        }
    }

    /// Sets the deadlines of a flow's hosts; [`Time::MAX`]: none.
    pub fn set_both(&mut self, flow: u32, due: [Time; 2]) {
        let flow = flow as usize;
        self.due[flow] = due;
        let first = due[0].min(due[1]);
        let leaf = self.leaves + flow / BLOCK;
        if first < self.bounds[leaf] {
            self.lower(leaf, first);
        }
    }

    /// Sets the deadline of one of a flow's hosts.
    #[inline(always)]
    pub fn set(&mut self, flow: u32, side: Side, due: Time) {
        let flow = flow as usize;
        self.due[flow][side as usize] = due;
        let leaf = self.leaves + flow / BLOCK;
        if due < self.bounds[leaf] {
            self.lower(leaf, due);
        }
    }

    /// Lowers the bound of a leaf, and those above it.
    #[inline(never)]
    fn lower(&mut self, leaf: usize, to: Time) {
        let mut node = leaf;
        while node > 0 && to < self.bounds[node] {
            self.bounds[node] = to;
            node /= 2;
        }
        self.next = self.bounds[1];
    }

    /// When to call [`Timers::pop`]; [`Time::MAX`] if there is no deadline. No deadline expires earlier.
    pub const fn next(&self) -> Time {
        self.next
    }

    /// Called at [`Timers::next`]: clears the expired deadline and returns its owner; of several the lowest owner.
    /// `None`: the deadline was postponed.
    pub fn pop(&mut self) -> Option<u32> {
        let now = self.next;
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.bounds[node] != now {
                node += 1;
            }
        }
        let begin = (node - self.leaves) * BLOCK;
        let block = self.due.get_mut(begin..)?.first_chunk_mut::<BLOCK>()?;
        let deadlines = block.as_flattened_mut();
        // None is before its bound, so the first that has come is the least.
        let come = deadlines.iter().position(|due| *due <= now);
        if let Some(first) = come {
            deadlines[first] = Time::MAX;
        }
        self.bounds[node] = deadlines.iter().copied().fold(Time::MAX, Time::min);
        while node > 1 {
            node /= 2;
            self.bounds[node] = self.bounds[2 * node].min(self.bounds[2 * node + 1]);
        }
        self.next = self.bounds[1];
        come.map(|first| (2 * begin + first) as u32)
    }
}

impl Default for Timers {
    fn default() -> Self {
        Self::new(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    /// Pops until no deadline is left: when each expired, and its owner.
    fn all(timers: &mut Timers) -> Vec<(Time, u32)> {
        let mut came = Vec::new();
        while timers.next() < Time::MAX {
            let now = timers.next();
            came.extend(timers.pop().map(|owner| (now, owner)));
        }
        came
    }

    #[test]
    fn a_postponed_deadline_expires_once_at_its_new_time() {
        let mut timers = Timers::new(1);
        for first in [20, 10, 30] {
            timers.set_both(0, [MS(first), MS(15)]);
        }
        assert_eq!(all(&mut timers), [(MS(15), 1), (MS(30), 0)]);
    }

    #[test]
    fn deadlines_expire_in_order_and_at_equal_times_by_owner() {
        let mut timers = Timers::new(100);
        for (flow, due) in [(70, [5, 9]), (3, [9, 7]), (40, [9, 5]), (4, [7, 8])] {
            timers.set_both(flow, due.map(MS));
        }
        let expected = [
            (5, 81),
            (5, 140),
            (7, 7),
            (7, 8),
            (8, 9),
            (9, 6),
            (9, 80),
            (9, 141),
        ];
        assert_eq!(
            all(&mut timers),
            expected.map(|(ms, owner)| (MS(ms), owner))
        );
    }
}
