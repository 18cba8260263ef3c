//! The order of queues, per category: deficit round robin of airtime (Linux 4.11 in ath9k, 5.1 in mac80211), or turns of
//! one transmission each.
//!
//! A station has two queues in a category, one per user priority. Each has its place in the order, but they share the
//! deficit: a station gets a quantum for each of them in a round (`struct txq_info`, `struct airtime_info`).

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
    /// The quantum of airtime that a station gets per round if it has used what it had; `None`: that is not looked at.
    pub quantum: Option<Duration>,
    /// Whether stations are charged airtime. If not, they take turns, and airtime `pending` in the device is all that they use: a
    /// station that has had as many quanta as it ever has pending does not wait any more (`ieee80211_next_txq` since 6.0).
    pub is_fair: bool,
    /// How long after it was last put on the list a station is charged, and kept on the list without packets while its
    /// deficit is negative. `None`: charged always, kept never.
    pub active: Option<Duration>,
}

/// The category of a queue.
const fn category(at: usize) -> usize {
    account(at) % 4
}

/// A queue's station and category, which share what they may use.
pub(super) const fn account(at: usize) -> usize {
    at / 2
}

#[derive(Debug)]
pub(super) struct Schedule {
    quantum: Option<i64>,
    is_fair: bool,
    active_for: Option<Duration>,
    /// Queues with packets, and those that are kept, per category.
    active: [VecDeque<u32>; 4],
    is_listed: Vec<bool>,
    /// The airtime that each station may still use, in ns, by category.
    deficit: Vec<i64>,
    /// When a queue of a station was last put on the list with packets, by category.
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
            is_fair: rules.is_fair,
            active_for: rules.active,
            active: Default::default(),
            is_listed: vec![false; queues],
            deficit: vec![quantum.unwrap_or(0); account(queues)],
            listed: vec![Time::ZERO; account(queues)],
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
            self.listed[account(at)] = now;
            let list = &mut self.active[category(at)];
            if self.is_fair {
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
                let deficit = &mut self.deficit[account(at)];
                if *deficit - (pending(at).as_nanos() as i64) < 0 {
                    *deficit += quantum;
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
            && self.deficit[account(at)] < pending.as_nanos() as i64;
        let list = &mut self.active[category(at)];
        let Some(index) = list.iter().position(|&listed| listed as usize == at) else {
            return;
        };
        if has_packets {
            self.listed[account(at)] = now;
        }
        if has_packets && self.is_fair {
            return;
        }
        list.remove(index);
        self.is_listed[at] = has_packets || keep;
        if self.is_listed[at] {
            list.push_back(at as u32);
        }
    }

    /// Charges the airtime of a queue to its station.
    pub(super) fn charge(&mut self, at: usize, airtime: Duration, now: Time) {
        if self.is_fair && self.is_active(at, now) {
            self.deficit[account(at)] -= airtime.as_nanos() as i64;
        }
    }

    fn is_active(&self, at: usize, now: Time) -> bool {
        let ticks = |time: Time| time.as_nanos() / TICK.as_nanos();
        let passed = ticks(now) - ticks(self.listed[account(at)]);
        self.active_for.is_none_or(|span| TICK * passed <= span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_micros(256);
    const FAIR: Rules = Rules {
        quantum: Some(QUANTUM),
        is_fair: true,
        active: Some(Duration::from_millis(100)),
    };
    const TURNS: Rules = Rules {
        quantum: None,
        is_fair: false,
        active: None,
    };
    /// Queues of best effort of three stations.
    const QUEUES: [usize; 3] = [2, 10, 18];
    const ALL: usize = 24;

    fn zero(_: usize) -> Duration {
        Duration::ZERO
    }

    fn next(schedule: &mut Schedule) -> Option<usize> {
        schedule.next(Access::BestEffort, |_| true, zero)
    }

    fn all_active(rules: Rules) -> Schedule {
        let mut schedule = Schedule::new(rules, ALL);
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
            let micros = takes[at / 8];
            used[at / 8] += micros;
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
        let mut schedule = Schedule::new(FAIR, ALL);
        schedule.activate(2, Time::ZERO);
        schedule.charge(2, Duration::from_micros(100), Time::ZERO);
        schedule.activate(10, Time::ZERO);
        assert_eq!(next(&mut schedule), Some(10));
    }

    #[test]
    fn without_airtime_fairness_stations_with_airtime_in_the_device_wait_at_first() {
        let mut schedule = all_active(Rules {
            is_fair: false,
            ..FAIR
        });
        // 256 µs less 700 µs: two quanta, once and for all.
        let pending = |at: usize| Duration::from_micros(if at == 2 { 700 } else { 0 });
        let mut turns = Vec::new();
        for _ in 0..6 {
            let at = schedule.next(Access::BestEffort, |_| true, pending);
            let at = at.expect("all are active");
            turns.push(at);
            schedule.charge(at, Duration::from_millis(9), Time::ZERO);
            schedule.end_turn(at, true, pending(at), Time::ZERO);
        }
        assert_eq!(turns, [10, 18, 10, 18, 2, 10]);
    }

    #[test]
    fn stations_that_may_not_send_are_skipped_and_pending_airtime_counts() {
        let mut schedule = all_active(FAIR);
        assert_eq!(
            schedule.next(Access::BestEffort, |at| at == 2, zero),
            Some(2)
        );
        assert_eq!(schedule.next(Access::BestEffort, |_| false, zero), None);
        let pending = |at: usize| {
            if at == 10 {
                Duration::ZERO
            } else {
                Duration::from_millis(1)
            }
        };
        assert_eq!(
            schedule.next(Access::BestEffort, |_| true, pending),
            Some(10)
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
        assert!(
            QUEUES
                .iter()
                .all(|&at| schedule.deficit[account(at)] == -488_000)
        );
        // The last that became active is the first of the list.
        assert_eq!(next(&mut schedule), Some(18));
    }

    #[test]
    fn a_queue_served_after_a_skipped_round_waits_after_the_next() {
        let mut schedule = Schedule::new(FAIR, ALL);
        schedule.activate(2, Time::ZERO);
        schedule.skip_round(Access::BestEffort);
        assert_eq!(next(&mut schedule), Some(2));
        schedule.skip_round(Access::BestEffort);
        assert_eq!(next(&mut schedule), None);
        assert_eq!(next(&mut schedule), Some(2));
    }

    #[test]
    fn an_empty_queue_that_owes_airtime_stays_on_the_list_for_a_while() {
        let mut schedule = all_active(FAIR);
        let owed = Duration::from_micros(1000);
        let empties = |schedule: &mut Schedule, at: usize, now: Time| {
            schedule.end_turn(at, false, Duration::ZERO, now);
            schedule.listed(Access::BestEffort)
        };
        assert_eq!(next(&mut schedule), Some(18));
        schedule.charge(18, owed, Time::ZERO);
        assert_eq!(empties(&mut schedule, 18, Time::ZERO), 3);
        // It is the last, and its packets do not bring it to the front.
        schedule.activate(18, Time::ZERO);
        assert_eq!(next(&mut schedule), Some(10));
        // Without debts it leaves the list; so it does if it was last listed with packets over 100 ms ago, in whole ticks.
        assert_eq!(empties(&mut schedule, 10, Time::ZERO), 2);
        let late = Time::from_millis(104);
        assert_eq!(empties(&mut schedule, 18, late), 1);
        // Airtime is not charged either.
        let before = schedule.deficit[account(18)];
        schedule.charge(18, owed, late);
        assert_eq!(schedule.deficit[account(18)], before);
    }

    #[test]
    fn both_queues_of_a_station_have_a_place_and_share_its_deficit() {
        // `ieee80211_next_txq`: the deficit is of station and category, and each queue that is passed adds a quantum.
        let mut schedule = Schedule::new(FAIR, ALL);
        let (first, second, other) = (2, 3, 10);
        for at in [first, second, other] {
            schedule.activate(at, Time::ZERO);
        }
        assert_eq!(schedule.listed(Access::BestEffort), 3);
        schedule.charge(first, Duration::from_micros(1000), Time::ZERO);
        assert_eq!(schedule.deficit, {
            let mut all = vec![256_000; account(ALL)];
            all[account(first)] = -744_000;
            all
        });
        // The order is 10, 3, 2. The other station's queue is the first, and stays there.
        assert_eq!(next(&mut schedule), Some(other));
        schedule.charge(other, Duration::from_micros(300), Time::ZERO);
        schedule.end_turn(other, true, Duration::ZERO, Time::ZERO);
        // It owes 44 µs and gets a quantum, then each queue of the first station does, and it is the other's turn again.
        assert_eq!(next(&mut schedule), Some(other));
        assert_eq!(schedule.deficit[account(first)], -744_000 + 2 * 256_000);
    }

    #[test]
    fn a_station_with_both_queues_gets_two_shares_of_airtime() {
        let mut schedule = Schedule::new(FAIR, ALL);
        let queues = [2, 3, 10];
        for at in queues {
            schedule.activate(at, Time::ZERO);
        }
        let mut used = [0; 3];
        for _ in 0..30_000 {
            let at = next(&mut schedule).expect("all are active");
            let queue = queues.iter().position(|&queue| queue == at);
            used[queue.expect("one of them")] += 400;
            schedule.charge(at, Duration::from_micros(400), Time::ZERO);
            schedule.end_turn(at, true, Duration::ZERO, Time::ZERO);
        }
        let total: u64 = used.iter().sum();
        let station = (used[0] + used[1]) * 1000 / total;
        assert!((660..=673).contains(&station), "{used:?}");
    }

    #[test]
    fn either_queue_of_a_station_keeps_it_active() {
        // `ieee80211_txq_set_active`: the time is of station and category.
        let mut schedule = Schedule::new(FAIR, ALL);
        let owed = Duration::from_micros(1000);
        let late = Time::from_millis(200);
        schedule.activate(2, Time::ZERO);
        schedule.charge(2, owed, late);
        assert_eq!(schedule.deficit[account(2)], 256_000, "not active");
        schedule.activate(3, late);
        schedule.charge(2, owed, late);
        assert_eq!(schedule.deficit[account(2)], -744_000);
        // So the first stays in the order without packets.
        schedule.end_turn(2, false, Duration::ZERO, late);
        assert_eq!(schedule.listed(Access::BestEffort), 2);
    }
}
