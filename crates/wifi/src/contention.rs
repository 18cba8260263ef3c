//! Who waits for the medium, and who wins it: DCF and EDCA without a step per slot.
//!
//! While the medium is idle, a contender counts slots from AIFS after the medium became idle for its node. Its back-off gives
//! the instant at which it transmits unless another node does so earlier. The next transmission is at the earliest of these
//! instants. Contenders with the same instant collide. When the medium becomes busy, one division gives the slots that have
//! passed.
//!
//! The nodes of a cell hear each other, at once: there are no hidden nodes and no propagation.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

/// When a slot is counted off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotRule {
    /// At its end, if the medium was idle in it (DCF, §10.3.4.3): a frame that begins with a slot takes nothing off the others.
    End,
    /// At its start (EDCA, §10.23.2.4): a frame that begins with a slot still takes one off the others.
    Begin,
}

/// A category of a node that waits: an index into all of them.
pub(crate) type Edcaf = u32;

#[derive(Clone, Copy, Debug)]
struct Contender {
    edcaf: Edcaf,
    /// Slots still to pass.
    backoff: u32,
    /// False if it only finishes the back-off after its last frame.
    has_frame: bool,
    /// When its first slot begins; [`Time::MAX`] while the medium is busy.
    from: Time,
    /// When it transmits.
    due: Time,
}

impl Contender {
    fn start(&mut self, from: Time, slot: Duration) {
        self.from = from;
        self.due = from + slot * u64::from(self.backoff);
    }
}

const NOWHERE: u32 = u32::MAX;

/// All who wait for the medium.
#[derive(Debug)]
pub(crate) struct Contention {
    slot: Duration,
    rule: SlotRule,
    waiting: Vec<Contender>,
    /// Where each category of each node is in `waiting`.
    places: Vec<u32>,
    next: Time,
}

impl Contention {
    /// For so many categories of nodes.
    pub(crate) fn new(slot: Duration, rule: SlotRule, edcafs: usize) -> Self {
        Self {
            slot,
            rule,
            waiting: Vec::with_capacity(edcafs),
            places: vec![NOWHERE; edcafs],
            next: Time::MAX,
        }
    }

    /// When somebody transmits next; [`Time::MAX`]: nobody has a frame, or the medium is busy.
    pub(crate) const fn next(&self) -> Time {
        self.next
    }

    /// True if it waits with a frame.
    pub(crate) fn has_frame(&self, edcaf: Edcaf) -> bool {
        self.place(edcaf)
            .is_some_and(|at| self.waiting[at].has_frame)
    }

    /// True if it waits, with a frame or without.
    pub(crate) fn is_waiting(&self, edcaf: Edcaf) -> bool {
        self.places[edcaf as usize] != NOWHERE
    }

    /// It begins to wait, while the medium is busy.
    pub(crate) fn join(&mut self, edcaf: Edcaf, backoff: u32, has_frame: bool) {
        debug_assert!(!self.is_waiting(edcaf));
        self.places[edcaf as usize] = self.waiting.len() as u32;
        self.waiting.push(Contender {
            edcaf,
            backoff,
            has_frame,
            from: Time::MAX,
            due: Time::MAX,
        });
    }

    /// It has a frame and does not wait yet; the medium is idle, for its node since AIFS before `from`. There is no back-off
    /// (§10.3.4.2).
    pub(crate) fn join_idle(&mut self, edcaf: Edcaf, from: Time, now: Time) {
        self.join(edcaf, 0, true);
        let contender = &mut self.waiting[self.places[edcaf as usize] as usize];
        contender.start(from.max(now), self.slot);
        self.next = self.next.min(contender.due);
    }

    /// It waits without a frame, and now has one; the medium is idle. If its back-off is over, it transmits at once.
    pub(crate) fn add_frame(&mut self, edcaf: Edcaf, now: Time) {
        if let Some(at) = self.place(edcaf) {
            let contender = &mut self.waiting[at];
            contender.has_frame = true;
            contender.due = contender.due.max(now);
            self.next = self.next.min(contender.due);
        }
    }

    /// It waits without a frame, and now has one; the medium has been busy since `busy`. If no slots of its back-off were left
    /// then, it begins another (§10.3.4.2, §10.23.2.2 a).
    pub(crate) fn add_frame_while_busy(
        &mut self,
        edcaf: Edcaf,
        busy: Time,
        draw: impl FnOnce() -> u32,
    ) {
        if let Some(at) = self.place(edcaf) {
            let contender = &mut self.waiting[at];
            contender.has_frame = true;
            let is_over = contender.from <= busy
                && contender.backoff <= passed(contender.from, busy, self.slot, self.rule);
            if is_over {
                contender.backoff = draw();
                contender.from = Time::MAX;
                contender.due = Time::MAX;
            }
        }
    }

    /// Those who transmit now leave and go to `winners`, in the order of their numbers.
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

    /// The medium, busy since `busy`, becomes idle. `from` says when the first slot of a contender begins.
    pub(crate) fn resume(&mut self, busy: Time, from: impl Fn(Edcaf) -> Time) {
        self.next = Time::MAX;
        // Nearly all have waited since the same instant: divide once for them.
        let mut last = (Time::MAX, 0);
        let mut at = 0;
        while at < self.waiting.len() {
            let contender = &mut self.waiting[at];
            if contender.from <= busy {
                if contender.from != last.0 {
                    last = (
                        contender.from,
                        passed(contender.from, busy, self.slot, self.rule),
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

    fn place(&self, edcaf: Edcaf) -> Option<usize> {
        let at = self.places[edcaf as usize];
        (at != NOWHERE).then_some(at as usize)
    }

    fn remove(&mut self, at: usize) {
        let gone = self.waiting.swap_remove(at);
        self.places[gone.edcaf as usize] = NOWHERE;
        if let Some(moved) = self.waiting.get(at) {
            self.places[moved.edcaf as usize] = at as u32;
        }
    }
}

/// Slots that count as passed since `from` when the medium becomes busy.
fn passed(from: Time, busy: Time, slot: Duration, rule: SlotRule) -> u32 {
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
    fn the_least_back_off_wins_and_the_others_keep_the_rest() {
        for (rule, second) in [(SlotRule::End, 100 + 5 * 9), (SlotRule::Begin, 100 + 4 * 9)] {
            let mut contention = contention(rule);
            contention.join(0, 3, true);
            contention.join(1, 8, true);
            contention.resume(Time::ZERO, |_| at(28));
            assert_eq!(contention.next(), at(28 + 27));
            assert_eq!(winners(&mut contention, at(55)), [0]);
            // Busy until the next grid begins at 100: three slots have passed, four where they count at their begin.
            contention.resume(at(55), |_| at(100));
            assert_eq!(contention.next(), at(second));
        }
    }

    #[test]
    fn the_same_instant_is_a_collision() {
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
    fn nothing_passes_for_who_is_still_in_aifs() {
        let mut contention = contention(SlotRule::End);
        contention.join(0, 0, true);
        contention.join(1, 2, true);
        contention.resume(Time::ZERO, |edcaf| if edcaf == 0 { at(28) } else { at(37) });
        assert_eq!(winners(&mut contention, at(28)), [0]);
        contention.resume(at(28), |_| at(100));
        assert_eq!(contention.next(), at(118));
    }

    #[test]
    fn a_back_off_without_a_frame_ends_unseen() {
        let mut contention = contention(SlotRule::End);
        contention.join(0, 2, false);
        contention.join(1, 3, true);
        contention.resume(Time::ZERO, |_| at(28));
        assert_eq!(
            contention.next(),
            at(55),
            "the one without a frame is not waited for"
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
        // One that comes before its end waits for it.
        contention.join(1, 2, false);
        contention.resume(at(10), |_| at(400));
        contention.add_frame(1, at(401));
        assert_eq!(contention.next(), at(418).min(contention.waiting[0].due));
    }
}
