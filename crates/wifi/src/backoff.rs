//! The back-off counters of all who contend for the medium, by DCF or EDCA, without an event per slot.
//!
//! While the medium is idle, a contender counts slots from AIFS after the medium became idle for its node. Its counter gives
//! the instant at which it transmits unless another node does so earlier. The next transmission is at the earliest of these
//! instants. Contenders with the same instant collide. When the medium becomes busy, one division gives the slots that have
//! passed. The contention window, from which the counter's start is drawn, is in `contention_window`.
//!
//! All nodes of a cell hear each other at once: there are no hidden nodes and no propagation delay.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

/// When the back-off counter is decremented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotRule {
    /// At the end of a slot in which the medium was idle (DCF, §10.3.4.3). If a frame begins at the start of a slot, the
    /// other contenders do not count this slot.
    End,
    /// At the start of a slot (EDCA, §10.23.2.4). If a frame begins at the start of a slot, the other contenders still count
    /// this slot.
    Begin,
}

/// An EDCA function (EDCAF): the index of one access category of one node.
pub(crate) type Edcaf = u32;

#[derive(Clone, Copy, Debug)]
struct Contender {
    edcaf: Edcaf,
    /// The back-off counter: slots still to pass.
    backoff: u32,
    /// False if it only counts down the back-off after its last frame.
    has_frame: bool,
    /// When its first slot begins. [`Time::MAX`] if its back-off was drawn while the medium is busy.
    from: Time,
    /// When it transmits, if it has a frame by then.
    due: Time,
}

impl Contender {
    fn start(&mut self, from: Time, slot: Duration) {
        self.from = from;
        self.due = from + slot * u64::from(self.backoff);
    }
}

const ABSENT: u32 = u32::MAX;

/// All who contend for the medium.
#[derive(Debug)]
pub(crate) struct Contention {
    slot: Duration,
    rule: SlotRule,
    waiting: Vec<Contender>,
    /// The position of each EDCAF in `waiting`.
    positions: Vec<u32>,
    next: Time,
}

impl Contention {
    pub(crate) fn new(slot: Duration, rule: SlotRule, edcafs: usize) -> Self {
        Self {
            slot,
            rule,
            waiting: Vec::with_capacity(edcafs),
            positions: vec![ABSENT; edcafs],
            next: Time::MAX,
        }
    }

    /// When the next contender transmits. [`Time::MAX`] if none has a frame, or the medium is busy.
    pub(crate) const fn next(&self) -> Time {
        self.next
    }

    /// True if this EDCAF contends with a frame.
    pub(crate) fn has_frame(&self, edcaf: Edcaf) -> bool {
        self.position(edcaf)
            .is_some_and(|at| self.waiting[at].has_frame)
    }

    /// True if this EDCAF counts down a back-off, with a frame or without.
    pub(crate) fn is_waiting(&self, edcaf: Edcaf) -> bool {
        self.positions[edcaf as usize] != ABSENT
    }

    /// An EDCAF begins to contend while the medium is busy.
    pub(crate) fn join(&mut self, edcaf: Edcaf, backoff: u32, has_frame: bool) {
        debug_assert!(!self.is_waiting(edcaf));
        self.positions[edcaf as usize] = self.waiting.len() as u32;
        self.waiting.push(Contender {
            edcaf,
            backoff,
            has_frame,
            from: Time::MAX,
            due: Time::MAX,
        });
    }

    /// An EDCAF without a back-off gets a frame while the medium is idle. It transmits at once, but not before `from`: AIFS
    /// after the medium became idle for its node. There is no back-off (§10.3.4.2).
    pub(crate) fn join_idle(&mut self, edcaf: Edcaf, from: Time, now: Time) {
        self.join(edcaf, 0, true);
        let contender = &mut self.waiting[self.positions[edcaf as usize] as usize];
        contender.start(from.max(now), self.slot);
        self.next = self.next.min(contender.due);
    }

    /// An EDCAF that counts down a back-off without a frame gets one while the medium is idle. If the back-off is over, it
    /// transmits at once.
    pub(crate) fn add_frame(&mut self, edcaf: Edcaf, now: Time) {
        if let Some(at) = self.position(edcaf) {
            let contender = &mut self.waiting[at];
            contender.has_frame = true;
            contender.due = contender.due.max(now);
            self.next = self.next.min(contender.due);
        }
    }

    /// An EDCAF that counts down a back-off without a frame gets one while the medium is busy, since `busy`. If the back-off
    /// was over by then, it draws another (§10.3.4.2, §10.23.2.2 a).
    pub(crate) fn add_frame_while_busy(
        &mut self,
        edcaf: Edcaf,
        busy: Time,
        draw: impl FnOnce() -> u32,
    ) {
        if let Some(at) = self.position(edcaf) {
            let contender = &mut self.waiting[at];
            contender.has_frame = true;
            let is_over = contender.from <= busy
                && contender.backoff <= slots_passed(contender.from, busy, self.slot, self.rule);
            if is_over {
                contender.backoff = draw();
                contender.from = Time::MAX;
                contender.due = Time::MAX;
            }
        }
    }

    /// Moves all who transmit now to `winners`, in the order of their indices.
    pub(crate) fn take_due(&mut self, now: Time, winners: &mut Vec<Edcaf>) {
        let mut at = 0;
        while at < self.waiting.len() {
            let contender = self.waiting[at];
            if contender.due == now && contender.has_frame {
                winners.push(contender.edcaf);
                self.remove(at);
            } else {
                at += 1;
            }
        }
        winners.sort_unstable();
        self.next = Time::MAX;
    }

    /// The medium, busy since `busy`, becomes idle. `from` gives the start of a contender's first slot.
    pub(crate) fn resume(&mut self, busy: Time, from: impl Fn(Edcaf) -> Time) {
        self.next = Time::MAX;
        // Nearly all have counted from the same instant: divide once for all of them.
        let mut last = (Time::MAX, 0);
        let mut at = 0;
        while at < self.waiting.len() {
            let contender = &mut self.waiting[at];
            if contender.from <= busy {
                if contender.from != last.0 {
                    last = (
                        contender.from,
                        slots_passed(contender.from, busy, self.slot, self.rule),
                    );
                }
                contender.backoff = contender.backoff.saturating_sub(last.1);
                if !contender.has_frame && contender.due <= busy {
                    self.remove(at);
                    continue;
                }
            }
            contender.start(from(contender.edcaf), self.slot);
            if contender.has_frame {
                self.next = self.next.min(contender.due);
            }
            at += 1;
        }
    }

    fn position(&self, edcaf: Edcaf) -> Option<usize> {
        let at = self.positions[edcaf as usize];
        (at != ABSENT).then_some(at as usize)
    }

    fn remove(&mut self, at: usize) {
        let gone = self.waiting.swap_remove(at);
        self.positions[gone.edcaf as usize] = ABSENT;
        if let Some(moved) = self.waiting.get(at) {
            self.positions[moved.edcaf as usize] = at as u32;
        }
    }
}

/// Slots counted from `from` until the medium became busy.
fn slots_passed(from: Time, busy: Time, slot: Duration, rule: SlotRule) -> u32 {
    let whole = ((busy - from).as_nanos() / slot.as_nanos()) as u32;
    match rule {
        SlotRule::End => whole,
        SlotRule::Begin => whole + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_micros(9);

    fn contention(rule: SlotRule) -> Contention {
        Contention::new(SLOT, rule, 8)
    }

    fn at(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    fn winners(contention: &mut Contention, now: Time) -> Vec<Edcaf> {
        let mut winners = Vec::new();
        contention.take_due(now, &mut winners);
        winners
    }

    #[test]
    fn the_smallest_back_off_wins_and_the_others_keep_their_remaining_slots() {
        for (rule, second) in [(SlotRule::End, 100 + 5 * 9), (SlotRule::Begin, 100 + 4 * 9)] {
            let mut contention = contention(rule);
            contention.join(0, 3, true);
            contention.join(1, 8, true);
            contention.resume(Time::ZERO, |_| at(28));
            assert_eq!(contention.next(), at(28 + 27));
            assert_eq!(winners(&mut contention, at(55)), [0]);
            // The next slots begin at 100. Three slots have passed, or four if they count at their start.
            contention.resume(at(55), |_| at(100));
            assert_eq!(contention.next(), at(second));
        }
    }

    #[test]
    fn counters_that_reach_zero_together_collide() {
        let mut contention = contention(SlotRule::End);
        for edcaf in [5, 2, 7] {
            contention.join(edcaf, 4, true);
        }
        contention.join(3, 5, true);
        contention.resume(Time::ZERO, |_| at(28));
        assert_eq!(winners(&mut contention, at(64)), [2, 5, 7]);
        contention.resume(at(64), |_| at(200));
        assert_eq!(contention.next(), at(209));
    }

    #[test]
    fn slots_do_not_pass_during_aifs() {
        let mut contention = contention(SlotRule::End);
        contention.join(0, 0, true);
        contention.join(1, 2, true);
        contention.resume(Time::ZERO, |edcaf| if edcaf == 0 { at(28) } else { at(37) });
        assert_eq!(winners(&mut contention, at(28)), [0]);
        contention.resume(at(28), |_| at(100));
        assert_eq!(contention.next(), at(118));
    }

    #[test]
    fn a_back_off_without_a_frame_ends_without_a_transmission() {
        let mut contention = contention(SlotRule::End);
        contention.join(0, 2, false);
        contention.join(1, 3, true);
        contention.resume(Time::ZERO, |_| at(28));
        assert_eq!(
            contention.next(),
            at(55),
            "a contender without a frame does not transmit"
        );
        assert_eq!(winners(&mut contention, at(55)), [1]);
        contention.resume(at(55), |_| at(100));
        assert!(!contention.is_waiting(0));
    }

    #[test]
    fn a_frame_that_comes_after_the_back_off_leaves_at_once() {
        let mut contention = contention(SlotRule::End);
        contention.join(0, 2, false);
        contention.resume(Time::ZERO, |_| at(28));
        contention.add_frame(0, at(300));
        assert_eq!(contention.next(), at(300));
        // A frame that comes before the end of the back-off waits for its end.
        contention.join(1, 2, false);
        contention.resume(at(10), |_| at(400));
        contention.add_frame(1, at(401));
        assert_eq!(contention.next(), at(418).min(contention.waiting[0].due));
    }
}
