//! The order of stations, per category: deficit round robin of airtime (Linux 4.11 in ath9k, 5.1 in mac80211), or turns of
//! one transmission each.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::Duration;

use crate::access::Access;

#[derive(Debug)]
pub(super) struct Schedule {
    quantum: Option<i64>,
    /// Queues with packets, per category.
    active: [VecDeque<u32>; 4],
    is_listed: Vec<bool>,
    /// The airtime that each queue may still use, in ns.
    deficit: Vec<i64>,
}

impl Schedule {
    pub(super) fn new(quantum: Option<Duration>, queues: usize) -> Self {
        let quantum = quantum.map(|span| span.as_nanos().max(1) as i64);
        Self {
            quantum,
            active: Default::default(),
            is_listed: vec![false; queues],
            deficit: vec![quantum.unwrap_or(0); queues],
        }
    }

    /// A queue has packets. With airtime fairness, a queue that was empty goes first and stays there while its deficit lasts,
    /// so that stations with little traffic need not wait for a round. Without it, the queue goes last.
    pub(super) fn activate(&mut self, at: usize) {
        if !core::mem::replace(&mut self.is_listed[at], true) {
            let list = &mut self.active[at % 4];
            if self.quantum.is_some() {
                list.push_front(at as u32);
            } else {
                list.push_back(at as u32);
            }
        }
    }

    /// The queue whose turn it is. A queue that has used up its deficit gets a quantum and goes last. The airtime that is
    /// `pending` in the device counts as used.
    pub(super) fn next(
        &mut self,
        access: Access,
        allowed: impl Fn(usize) -> bool,
        pending: impl Fn(usize) -> Duration,
    ) -> Option<usize> {
        let list = &mut self.active[access.index()];
        if !list.iter().any(|&at| allowed(at as usize)) {
            return None;
        }
        loop {
            let at = *list.front()? as usize;
            if let Some(quantum) = self.quantum {
                if self.deficit[at] - (pending(at).as_nanos() as i64) < 0 {
                    self.deficit[at] += quantum;
                    list.rotate_left(1);
                    continue;
                }
            }
            if allowed(at) {
                return Some(at);
            }
            list.rotate_left(1);
        }
    }

    /// A transmission was aggregated from this queue.
    pub(super) fn end_turn(&mut self, at: usize, has_packets: bool) {
        let list = &mut self.active[at % 4];
        let place = list.iter().position(|&listed| listed as usize == at);
        if !has_packets {
            place.and_then(|place| list.remove(place));
            self.is_listed[at] = false;
        } else if self.quantum.is_none() {
            if let Some(at) = place.and_then(|place| list.remove(place)) {
                list.push_back(at);
            }
        }
    }

    /// Charges airtime to a station's queue.
    pub(super) fn charge(&mut self, at: usize, airtime: Duration) {
        if self.quantum.is_some() {
            self.deficit[at] -= airtime.as_nanos() as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_micros(256);
    /// Queues of best effort of three stations.
    const QUEUES: [usize; 3] = [1, 5, 9];

    fn shares(quantum: Option<Duration>, takes: [u64; 3]) -> [u64; 3] {
        let mut schedule = Schedule::new(quantum, 12);
        for at in QUEUES {
            schedule.activate(at);
        }
        let mut used = [0; 3];
        for _ in 0..30_000 {
            let next = schedule.next(Access::BestEffort, |_| true, |_| Duration::ZERO);
            let at = next.expect("all are active");
            let micros = takes[at / 4];
            used[at / 4] += micros;
            schedule.charge(at, Duration::from_micros(micros));
            schedule.end_turn(at, true);
        }
        let total: u64 = used.iter().sum();
        used.map(|micros| micros * 1000 / total)
    }

    #[test]
    fn airtime_is_shared_equally_whatever_a_transmission_takes() {
        // A slow station's transmissions take ten times as long.
        let equal = shares(Some(QUANTUM), [400, 400, 4000]);
        assert!(
            equal.iter().all(|&share| (325..=342).contains(&share)),
            "{equal:?}"
        );
        // With one transmission each, the slow station has 4000 of 4800 µs.
        assert_eq!(shares(None, [400, 400, 4000]), [83, 83, 833]);
    }

    #[test]
    fn a_station_that_wakes_up_goes_first() {
        let mut schedule = Schedule::new(Some(QUANTUM), 12);
        schedule.activate(1);
        schedule.charge(1, Duration::from_micros(100));
        schedule.activate(5);
        let next = schedule.next(Access::BestEffort, |_| true, |_| Duration::ZERO);
        assert_eq!(next, Some(5));
    }

    #[test]
    fn stations_that_may_not_send_are_skipped_and_pending_airtime_counts() {
        let mut schedule = Schedule::new(Some(QUANTUM), 12);
        for at in QUEUES {
            schedule.activate(at);
        }
        let zero = |_: usize| Duration::ZERO;
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
}
