//! What a sender and a receiver know of each other's frames, per direction and category.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::aggregate::{Mpdu, Psdu};
use crate::block_ack::{Originator, Recipient, WINDOW};
use crate::exchange::Payload;
use crate::rate_control::Chain;

/// The packets of an MPDU: the first, and the rest of an A-MSDU.
pub(crate) type Msdu<P> = (P, Vec<P>);

/// Sequence numbers, and frames to be sent again.
pub(crate) struct Session<P> {
    pub originator: Originator,
    pub recipient: Recipient<Msdu<P>>,
    /// Frames that were not acknowledged, by their numbers.
    again: VecDeque<Mpdu<P>>,
    /// A frame was dropped: the receiver is to be told not to wait for it.
    pub request_due: bool,
}

impl<P> Session<P> {
    pub(crate) const fn new() -> Self {
        Self {
            originator: Originator::new(),
            recipient: Recipient::new(),
            again: VecDeque::new(),
            request_due: false,
        }
    }

    /// True if a frame may be sent: an old one, or a new one within the window.
    pub(crate) fn can_send(&self) -> bool {
        !self.again.is_empty() || self.originator.has_room(WINDOW)
    }

    /// True if frames are to be sent again.
    pub(crate) fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// A frame is to be sent again, in its place.
    pub(crate) fn put_again(&mut self, mpdu: Mpdu<P>) {
        let start = self.originator.start();
        let behind = mpdu.number.since(start);
        let after = self
            .again
            .iter()
            .rposition(|other| other.number.since(start) < behind);
        self.again.insert(after.map_or(0, |at| at + 1), mpdu);
    }

    /// The first frame to be sent again, if one of so many bytes fits.
    pub(crate) fn take_again(&mut self, fits: impl Fn(u32) -> bool) -> Option<Mpdu<P>> {
        fits(self.again.front()?.bytes).then(|| self.again.pop_front())?
    }

    /// Packets that wait to be sent again, or at the receiver for others.
    pub(crate) fn packets(&self) -> usize {
        let again: usize = self.again.iter().map(Mpdu::packets).sum();
        let held: usize = self.recipient.held().map(|(_, more)| 1 + more.len()).sum();
        again + held
    }
}

/// What a node sends at once.
pub(crate) struct Transmission<P> {
    /// To which of its peers.
    pub peer: usize,
    pub payload: Payload,
    pub frames: Vec<Mpdu<P>>,
    pub psdu: Psdu,
    pub chain: Chain,
    /// Times it was sent in vain.
    pub tries: u8,
}
