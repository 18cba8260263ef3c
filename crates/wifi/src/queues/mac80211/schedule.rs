//! The order of stations, per category: deficit round robin of airtime (Linux 4.11 in ath9k, 5.1 in mac80211), or turns of
//! one transmission each.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

use crate::access::Access;

/// The kernel's clock for the time for which a station is active, at 250 Hz as in Debian's kernels.
const TICK: Duration = Duration::from_millis(4);

/// What differs between kernels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The quantum of airtime that a station gets per round; `None`: stations take turns.
    pub quantum: Option<Duration>,
    /// How long after it was last put on the list a station is charged, and kept on the list without packets while its
    /// deficit is negative. `None`: charged always, kept never.
    pub active: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Schedule {
    quantum: Option<i64>,
    active_for: Option<Duration>,
    /// Queues with packets, and those that are kept, per category.
    active: [VecDeque<u32>; 4],
    is_listed: Vec<bool>,
    /// The airtime that each queue may still use, in ns.
    deficit: Vec<i64>,
    /// When each queue was last put on the list with packets.
    listed: Vec<Time>,
    /// The number of the round, per category.
    round: [u16; 4],
    /// The round in which each queue had its last turn.
    served: Vec<u16>,
    /// Whether nobody had the last turn because a queue had lost its round.
    lost_round: bool,
}

impl Schedule {
    pub(super) fn new(rules: Rules, queues: usize) -> Self {
        let quantum = rules.quantum.map(|span| span.as_nanos().max(1) as i64);
        Self {
            quantum,
            active_for: rules.active,
            active: Default::default(),
            is_listed: vec![false; queues],
            deficit: vec![quantum.unwrap_or(0); queues],
            listed: vec![Time::ZERO; queues],
            round: [0; 4],
            served: vec![0; queues],
            lost_round: false,
        }
    }

    /// Queues on the list of a category.
    pub(super) fn listed(&self, access: Access) -> usize {
        self.active[access.index()].len()
    }

    /// A queue has packets. With airtime fairness, a queue that was not on the list goes first and stays there while its
    /// deficit lasts, so that stations with little traffic need not wait for a round. Without it, the queue goes last.
    pub(super) fn activate(&mut self, at: usize, now: Time) {
        if !core::mem::replace(&mut self.is_listed[at], true) {
            self.listed[at] = now;
            let list = &mut self.active[at % 4];
            if self.quantum.is_some() {
                list.push_front(at as u32);
            } else {
                list.push_back(at as u32);
            }
        }
    }

    /// A round in which nothing may be sent in a category, whatever the queue. The kernel then counts rounds from one again. A
    /// queue whose last turn was in the first round after such a one thereby loses the first round after the next.
    pub(super) fn skip_round(&mut self, access: Access) {
        self.round[access.index()] = 0;
    }

    /// True if the last round was nobody's because a queue had lost it.
    pub(super) const fn has_lost_round(&self) -> bool {
        self.lost_round
    }

    /// Begins a round: the queue whose turn it is. A queue that has used up its deficit gets a quantum and goes last, and so does one that
    /// is not `allowed` to send. After a whole round without one that is, it is nobody's turn. The airtime that is `pending`
    /// in the device counts as used.
    pub(super) fn next(
        &mut self,
        access: Access,
        allowed: impl Fn(usize) -> bool,
        pending: impl Fn(usize) -> Duration,
    ) -> Option<usize> {
        self.lost_round = false;
        let round = &mut self.round[access.index()];
        *round = round.checked_add(1).unwrap_or(1);
        let list = &mut self.active[access.index()];
        let first = *list.front()?;
        let mut found = true;
        loop {
            let front = *list.front()?;
            if front == first && !core::mem::replace(&mut found, false) {
                return None;
            }
            let at = front as usize;
            let mut is_next = allowed(at);
            found |= is_next;
            if let Some(quantum) = self.quantum {
                if self.deficit[at] - (pending(at).as_nanos() as i64) < 0 {
                    self.deficit[at] += quantum;
                    is_next = false;
                }
            }
            if is_next {
                let served = core::mem::replace(&mut self.served[at], *round);
                self.lost_round = served == *round;
                return (!self.lost_round).then_some(at);
            }
            list.rotate_left(1);
        }
    }

    /// A transmission was aggregated from this queue.
    pub(super) fn end_turn(&mut self, at: usize, has_packets: bool, pending: Duration, now: Time) {
        let keep = self.quantum.is_some()
            && self.is_active(at, now)
            && self.active_for.is_some()
            && self.deficit[at] < pending.as_nanos() as i64;
        let list = &mut self.active[at % 4];
        let Some(index) = list.iter().position(|&listed| listed as usize == at) else {
            return;
        };
        if has_packets {
            self.listed[at] = now;
        }
        if has_packets && self.quantum.is_some() {
            return;
        }
        list.remove(index);
        self.is_listed[at] = has_packets || keep;
        if self.is_listed[at] {
            list.push_back(at as u32);
        }
    }

    /// Charges airtime to a station's queue.
    pub(super) fn charge(&mut self, at: usize, airtime: Duration, now: Time) {
        if self.quantum.is_some() && self.is_active(at, now) {
            self.deficit[at] -= airtime.as_nanos() as i64;
        }
    }

    fn is_active(&self, at: usize, now: Time) -> bool {
        let ticks = |time: Time| time.as_nanos() / TICK.as_nanos();
        let passed = ticks(now) - ticks(self.listed[at]);
        self.active_for.is_none_or(|span| TICK * passed <= span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_micros(256);
    const FAIR: Rules = Rules {
        quantum: Some(QUANTUM),
        active: Some(Duration::from_millis(100)),
    };
    const TURNS: Rules = Rules {
        quantum: None,
        active: None,
    };
    /// Queues of best effort of three stations.
    const QUEUES: [usize; 3] = [1, 5, 9];

    fn zero(_: usize) -> Duration {
        Duration::ZERO
    }

    fn next(schedule: &mut Schedule) -> Option<usize> {
        schedule.next(Access::BestEffort, |_| true, zero)
    }

    fn all_active(rules: Rules) -> Schedule {
        let mut schedule = Schedule::new(rules, 12);
        for at in QUEUES {
            schedule.activate(at, Time::ZERO);
        }
        schedule
    }

    fn shares(rules: Rules, takes: [u64; 3]) -> [u64; 3] {
        let mut schedule = all_active(rules);
        let mut used = [0; 3];
        for _ in 0..30_000 {
            let at = next(&mut schedule).expect("all are active");
            let micros = takes[at / 4];
            used[at / 4] += micros;
            schedule.charge(at, Duration::from_micros(micros), Time::ZERO);
            schedule.end_turn(at, true, Duration::ZERO, Time::ZERO);
        }
        let total: u64 = used.iter().sum();
        used.map(|micros| micros * 1000 / total)
    }

    #[test]
    fn airtime_is_shared_equally_whatever_a_transmission_takes() {
        // A slow station's transmissions take ten times as long.
        let equal = shares(FAIR, [400, 400, 4000]);
        assert!(
            equal.iter().all(|&share| (325..=342).contains(&share)),
            "{equal:?}"
        );
        // With one transmission each, the slow station has 4000 of 4800 µs.
        assert_eq!(shares(TURNS, [400, 400, 4000]), [83, 83, 833]);
    }

    #[test]
    fn a_station_that_wakes_up_goes_first() {
        let mut schedule = Schedule::new(FAIR, 12);
        schedule.activate(1, Time::ZERO);
        schedule.charge(1, Duration::from_micros(100), Time::ZERO);
        schedule.activate(5, Time::ZERO);
        assert_eq!(next(&mut schedule), Some(5));
    }

    #[test]
    fn stations_that_may_not_send_are_skipped_and_pending_airtime_counts() {
        let mut schedule = all_active(FAIR);
        assert_eq!(
            schedule.next(Access::BestEffort, |at| at == 1, zero),
            Some(1)
        );
        assert_eq!(schedule.next(Access::BestEffort, |_| false, zero), None);
        let pending = |at: usize| {
            if at == 5 {
                Duration::ZERO
            } else {
                Duration::from_millis(1)
            }
        };
        assert_eq!(
            schedule.next(Access::BestEffort, |_| true, pending),
            Some(5)
        );
    }

    #[test]
    fn a_round_in_which_nobody_may_send_gives_each_a_quantum() {
        let mut schedule = all_active(FAIR);
        let owed = Duration::from_micros(1000);
        for at in QUEUES {
            schedule.charge(at, owed, Time::ZERO);
        }
        // 256 - 1000 + 256.
        assert_eq!(schedule.next(Access::BestEffort, |_| false, zero), None);
        assert!(QUEUES.iter().all(|&at| schedule.deficit[at] == -488_000));
        // The last that became active is the first of the list.
        assert_eq!(next(&mut schedule), Some(9));
    }

    #[test]
    fn a_queue_served_after_a_skipped_round_waits_after_the_next() {
        let mut schedule = Schedule::new(FAIR, 12);
        schedule.activate(1, Time::ZERO);
        schedule.skip_round(Access::BestEffort);
        assert_eq!(next(&mut schedule), Some(1));
        schedule.skip_round(Access::BestEffort);
        assert_eq!(next(&mut schedule), None);
        assert_eq!(next(&mut schedule), Some(1));
    }

    #[test]
    fn an_empty_queue_that_owes_airtime_stays_on_the_list_for_a_while() {
        let mut schedule = all_active(FAIR);
        let owed = Duration::from_micros(1000);
        let empties = |schedule: &mut Schedule, at: usize, now: Time| {
            schedule.end_turn(at, false, Duration::ZERO, now);
            schedule.listed(Access::BestEffort)
        };
        assert_eq!(next(&mut schedule), Some(9));
        schedule.charge(9, owed, Time::ZERO);
        assert_eq!(empties(&mut schedule, 9, Time::ZERO), 3);
        // It is the last, and its packets do not bring it to the front.
        schedule.activate(9, Time::ZERO);
        assert_eq!(next(&mut schedule), Some(5));
        // Without debts it leaves the list; so it does if it was last listed with packets over 100 ms ago, in whole ticks.
        assert_eq!(empties(&mut schedule, 5, Time::ZERO), 2);
        let late = Time::from_millis(104);
        assert_eq!(empties(&mut schedule, 9, late), 1);
        // Airtime is not charged either.
        let before = schedule.deficit[9];
        schedule.charge(9, owed, late);
        assert_eq!(schedule.deficit[9], before);
    }
}
