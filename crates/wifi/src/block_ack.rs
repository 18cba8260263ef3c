//! Block acknowledgement (IEEE 802.11-2020 §10.25): the originator's window and the recipient's reordering.

use alloc::collections::VecDeque;

use sojourn_units::Time;

/// Frames of a window: the bits of a compressed BlockAck.
pub(crate) const WINDOW: u16 = 64;

/// Sequence numbers count modulo 4096.
const MODULUS: u16 = 4096;

/// A sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sequence(u16);

impl Sequence {
    /// How far it is behind `other`, on the way around the circle.
    pub(crate) const fn since(self, other: Self) -> u16 {
        (self.0 + MODULUS - other.0) % MODULUS
    }

    const fn plus(self, frames: u16) -> Self {
        Self((self.0 + frames) % MODULUS)
    }
}

/// The sender's end: which numbers are outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Originator {
    /// The first number that is neither acknowledged nor dropped.
    start: Sequence,
    /// The next new number.
    next: Sequence,
    /// Bit n: `start` + n is acknowledged or dropped.
    done: u64,
}

impl Originator {
    pub(crate) const fn new() -> Self {
        Self {
            start: Sequence(0),
            next: Sequence(0),
            done: 0,
        }
    }

    /// The first number outstanding.
    pub(crate) const fn start(&self) -> Sequence {
        self.start
    }

    /// True if a new frame fits in the window of so many frames.
    pub(crate) fn has_room(&self, window: u16) -> bool {
        self.next.since(self.start) < window
    }

    /// Gives the next number to a new frame.
    pub(crate) fn assign(&mut self) -> Sequence {
        let given = self.next;
        self.next = given.plus(1);
        given
    }

    /// A frame is acknowledged, or dropped.
    pub(crate) fn finish(&mut self, number: Sequence) {
        let bit = number.since(self.start);
        debug_assert!(bit < WINDOW);
        self.done |= 1 << bit;
        let finished = self.done.trailing_ones() as u16;
        self.done = self.done.checked_shr(u32::from(finished)).unwrap_or(0);
        self.start = self.start.plus(finished);
    }
}

/// The receiver's end: frames wait for those before them.
#[derive(Debug)]
pub(crate) struct Recipient<F> {
    /// The number to be handed up next.
    next: Sequence,
    /// What has come of `next` and behind, by its distance.
    held: VecDeque<Option<F>>,
    /// Frames held.
    frames: u16,
    /// Since when.
    since: Time,
}

impl<F> Recipient<F> {
    pub(crate) const fn new() -> Self {
        Self {
            next: Sequence(0),
            held: VecDeque::new(),
            frames: 0,
            since: Time::MAX,
        }
    }

    /// Since when a frame waits for those before it; [`Time::MAX`]: none does.
    pub(crate) const fn waiting_since(&self) -> Time {
        self.since
    }

    /// The frames that wait.
    pub(crate) fn held(&self) -> impl Iterator<Item = &F> {
        self.held.iter().flatten()
    }

    /// A frame has come. It and what waited for it go to `up`, in order. One that lies beyond the window moves it on: what it
    /// leaves behind goes up without what is missing. One that is no longer waited for is given back: it is too late.
    pub(crate) fn receive(
        &mut self,
        number: Sequence,
        frame: F,
        now: Time,
        up: &mut dyn FnMut(F),
    ) -> Option<F> {
        let ahead = number.since(self.next);
        if ahead >= MODULUS / 2 {
            return Some(frame);
        }
        if ahead >= WINDOW {
            self.skip_to(number.plus(MODULUS + 1 - WINDOW), now, up);
        }
        let at = usize::from(number.since(self.next));
        while self.held.len() <= at {
            self.held.push_back(None);
        }
        let copy = self.held[at].replace(frame);
        self.frames += u16::from(copy.is_none());
        self.hand_up(now, up);
        copy
    }

    /// The sender will not send what is before `start` (BlockAckReq): what waited for it goes up.
    pub(crate) fn skip_to(&mut self, start: Sequence, now: Time, up: &mut dyn FnMut(F)) {
        let ahead = start.since(self.next);
        if ahead >= MODULUS / 2 {
            return;
        }
        for _ in 0..ahead {
            if let Some(frame) = self.held.pop_front().flatten() {
                self.frames -= 1;
                up(frame);
            }
        }
        self.next = start;
        self.hand_up(now, up);
    }

    /// The wait is over: what is held goes up until the next gap but one.
    pub(crate) fn skip_gap(&mut self, now: Time, up: &mut dyn FnMut(F)) {
        if let Some(gap) = self.held.iter().position(Option::is_some) {
            self.skip_to(self.next.plus(gap as u16), now, up);
        }
    }

    fn hand_up(&mut self, now: Time, up: &mut dyn FnMut(F)) {
        while let Some(Some(_)) = self.held.front() {
            if let Some(frame) = self.held.pop_front().flatten() {
                self.frames -= 1;
                up(frame);
            }
            self.next = self.next.plus(1);
            self.since = Time::MAX;
        }
        if self.frames == 0 {
            self.held.clear();
            self.since = Time::MAX;
        } else if self.since == Time::MAX {
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn receive(recipient: &mut Recipient<u16>, number: u16) -> Vec<u16> {
        let mut up = Vec::new();
        let sequence = Sequence(number % MODULUS);
        let late = recipient.receive(sequence, number, Time::from_millis(1), &mut |frame| {
            up.push(frame);
        });
        assert_eq!(late, None);
        up
    }

    #[test]
    fn the_window_moves_with_the_first_outstanding() {
        let mut originator = Originator::new();
        let given: Vec<Sequence> = (0..64).map(|_| originator.assign()).collect();
        assert!(!originator.has_room(64));
        for number in &given[1..] {
            originator.finish(*number);
        }
        assert_eq!(originator.start(), Sequence(0), "the first is outstanding");
        assert!(!originator.has_room(64));
        originator.finish(given[0]);
        assert_eq!(originator.start(), Sequence(64));
        assert!(originator.has_room(64));
    }

    #[test]
    fn numbers_go_around_the_circle() {
        let mut originator = Originator::new();
        let mut recipient = Recipient::new();
        for n in 0..10_000_u16 {
            let number = originator.assign();
            assert_eq!(number, Sequence(n % MODULUS));
            let mut up = Vec::new();
            recipient.receive(number, n, Time::ZERO, &mut |frame| up.push(frame));
            assert_eq!(up, [n]);
            originator.finish(number);
        }
    }

    #[test]
    fn a_gap_holds_back_what_is_behind_it() {
        let mut recipient = Recipient::new();
        assert_eq!(receive(&mut recipient, 0), [0]);
        assert_eq!(receive(&mut recipient, 2), []);
        assert_eq!(receive(&mut recipient, 3), []);
        assert_eq!(recipient.waiting_since(), Time::from_millis(1));
        assert_eq!(receive(&mut recipient, 1), [1, 2, 3]);
        assert_eq!(recipient.waiting_since(), Time::MAX);
    }

    #[test]
    fn a_frame_beyond_the_window_moves_it() {
        let mut recipient = Recipient::new();
        assert_eq!(receive(&mut recipient, 1), []);
        assert_eq!(receive(&mut recipient, 2), []);
        // 66 lies beyond 0 + 64: the window becomes 3 to 66, and 1 and 2 go up.
        assert_eq!(receive(&mut recipient, 66), [1, 2]);
        assert_eq!(receive(&mut recipient, 3), [3]);
    }

    #[test]
    fn what_the_sender_dropped_is_waited_for_no_longer() {
        let mut recipient = Recipient::new();
        for number in [1, 2, 4] {
            receive(&mut recipient, number);
        }
        let mut up = Vec::new();
        recipient.skip_to(Sequence(1), Time::ZERO, &mut |frame| up.push(frame));
        assert_eq!(up, [1, 2]);
        recipient.skip_gap(Time::ZERO, &mut |frame| up.push(frame));
        assert_eq!(up, [1, 2, 4]);
        assert_eq!(recipient.held().count(), 0);
    }
}
