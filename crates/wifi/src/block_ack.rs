//! Block acknowledgement (IEEE 802.11-2020 §10.25): the originator's window and the recipient's reordering.

use alloc::collections::VecDeque;

use sojourn_units::Time;

/// Frames of a window: the bits of the bitmap of a compressed BlockAck.
pub(crate) const WINDOW: u16 = 64;

/// The most outstanding frames: a window on the air, and a transmission that waits behind it in the device.
pub(crate) const MOST_OUTSTANDING: u16 = 2 * WINDOW;

/// Sequence numbers count modulo 4096.
const MODULUS: u16 = 4096;

/// A sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sequence(u16);

impl Sequence {
    /// The distance from `other` forward to it, modulo 4096.
    pub(crate) const fn since(self, other: Self) -> u16 {
        self.0.wrapping_sub(other.0) % MODULUS
    }

    const fn plus(self, frames: u16) -> Self {
        Self((self.0 + frames) % MODULUS)
    }
}

/// The sender's end: which sequence numbers are outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Originator {
    /// The first number that is neither acknowledged nor dropped.
    start: Sequence,
    /// The next new number.
    next: Sequence,
    /// Bit n is set if `start` + n is acknowledged or dropped.
    done: u128,
}

impl Originator {
    pub(crate) const fn new() -> Self {
        Self {
            start: Sequence(0),
            next: Sequence(0),
            done: 0,
        }
    }

    /// The first outstanding number: the start of the window.
    pub(crate) const fn start(&self) -> Sequence {
        self.start
    }

    /// True if a new frame fits in a window of `window` frames.
    pub(crate) fn has_room(&self, window: u16) -> bool {
        self.next.since(self.start) < window
    }

    /// Assigns the next sequence number to a new frame.
    pub(crate) fn assign(&mut self) -> Sequence {
        let assigned = self.next;
        self.next = assigned.plus(1);
        assigned
    }

    /// A frame is acknowledged, or dropped.
    pub(crate) fn finish(&mut self, sequence: Sequence) {
        if sequence == self.start && self.done == 0 {
            self.start = sequence.plus(1); // the usual case: in order
            return;
        }
        let bit = sequence.since(self.start);
        debug_assert!(bit < MOST_OUTSTANDING);
        self.done |= 1 << bit;
        let finished = self.done.trailing_ones() as u16;
        self.done = self.done.checked_shr(u32::from(finished)).unwrap_or(0);
        self.start = self.start.plus(finished);
    }
}

/// The receiver's end: the reordering buffer, in which frames wait for missing ones before them.
#[derive(Debug)]
pub(crate) struct Recipient<F> {
    /// The sequence number to be passed up next.
    next: Sequence,
    /// The frames received from `next` on, by their distance from it; `None`: missing.
    held: VecDeque<Option<F>>,
    /// Frames held.
    frames: u16,
    /// Since when a frame has been held; [`Time::MAX`]: none is.
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

    /// Since when a frame has waited for a missing one; [`Time::MAX`]: none waits.
    pub(crate) const fn waiting_since(&self) -> Time {
        self.since
    }

    /// The frames that wait for missing ones.
    pub(crate) fn held(&self) -> impl Iterator<Item = &F> {
        self.held.iter().flatten()
    }

    /// Receives a frame. Passes it and the frames that waited for it to `up`, in order. A frame beyond the window moves the
    /// window: the frames that leave the window go up without the missing ones. Returns a frame that is too late, and the
    /// older one of two copies.
    #[inline(always)]
    pub(crate) fn receive(
        &mut self,
        sequence: Sequence,
        frame: F,
        now: Time,
        up: &mut (impl FnMut(F) + ?Sized),
    ) -> Option<F> {
        let ahead = sequence.since(self.next);
        if ahead == 0 && self.frames == 0 {
            // The usual case: nothing is missing.
            self.next = sequence.plus(1);
            up(frame);
            return None;
        }
        if ahead >= MODULUS / 2 {
            return Some(frame);
        }
        if ahead >= WINDOW {
            self.skip_to(sequence.plus(MODULUS + 1 - WINDOW), now, up);
        }
        let at = usize::from(sequence.since(self.next));
        while self.held.len() <= at {
            self.held.push_back(None);
        }
        let copy = self.held[at].replace(frame);
        self.frames += u16::from(copy.is_none());
        self.pass_up(now, up);
        copy
    }

    /// Stops waiting for frames before `start`, which the sender has given up (BlockAckReq). The frames that waited for them
    /// go up.
    pub(crate) fn skip_to(
        &mut self,
        start: Sequence,
        now: Time,
        up: &mut (impl FnMut(F) + ?Sized),
    ) {
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
        self.pass_up(now, up);
    }

    /// Skips the first gap after the reordering timeout. The frames after it go up, as far as the next gap.
    pub(crate) fn skip_gap(&mut self, now: Time, up: &mut (impl FnMut(F) + ?Sized)) {
        if let Some(gap) = self.held.iter().position(Option::is_some) {
            self.skip_to(self.next.plus(gap as u16), now, up);
        }
    }

    /// Passes up the frames in front of the first gap.
    fn pass_up(&mut self, now: Time, up: &mut (impl FnMut(F) + ?Sized)) {
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
    fn the_window_starts_at_the_first_outstanding_frame() {
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
    fn sequence_numbers_wrap_around() {
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
    fn a_missing_frame_holds_back_those_after_it() {
        let mut recipient = Recipient::new();
        assert_eq!(receive(&mut recipient, 0), [0]);
        assert!(receive(&mut recipient, 2).is_empty());
        assert!(receive(&mut recipient, 3).is_empty());
        assert_eq!(recipient.waiting_since(), Time::from_millis(1));
        assert_eq!(receive(&mut recipient, 1), [1, 2, 3]);
        assert_eq!(recipient.waiting_since(), Time::MAX);
    }

    #[test]
    fn a_frame_beyond_the_window_moves_it() {
        let mut recipient = Recipient::new();
        assert!(receive(&mut recipient, 1).is_empty());
        assert!(receive(&mut recipient, 2).is_empty());
        // 66 is outside of the window of 0 to 63. The window becomes 3 to 66, and 1 and 2 go up.
        assert_eq!(receive(&mut recipient, 66), [1, 2]);
        assert_eq!(receive(&mut recipient, 3), [3]);
    }

    #[test]
    fn the_receiver_skips_frames_that_the_sender_dropped() {
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
