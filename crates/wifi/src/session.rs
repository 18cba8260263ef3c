//! Block Ack sessions: the state that sender and receiver keep, per direction and TID
//! (IEEE 802.11-2020 §10.25.2).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::aggregate::{Mpdu, Psdu};
use crate::block_ack::{Originator, Recipient, WINDOW};
use crate::exchange::Payload;
use crate::queues::Peer;
use crate::rate_control::Chain;

/// The packets of an MPDU: the first, and the rest of an A-MSDU.
pub(crate) type Msdu<P> = (P, Vec<P>);

/// The sender's sequence numbers and retransmissions, and the receiver's reordering.
pub(crate) struct Session<P> {
    pub originator: Originator,
    pub recipient: Recipient<Msdu<P>>,
    /// Frames to retransmit, in the order of their sequence numbers.
    retransmissions: VecDeque<Mpdu<P>>,
    /// A frame was dropped: a BlockAckReq has to tell the receiver not to wait for it.
    pub request_due: bool,
}

impl<P> Session<P> {
    pub(crate) const fn new() -> Self {
        Self {
            originator: Originator::new(),
            recipient: Recipient::new(),
            retransmissions: VecDeque::new(),
            request_due: false,
        }
    }

    /// True if a frame may go to the device, which holds `reach` outstanding frames: a retransmission, or a new one.
    pub(crate) fn can_send(&self, reach: u16) -> bool {
        !self.retransmissions.is_empty() || self.originator.has_room(reach)
    }

    pub(crate) fn has_retransmission(&self) -> bool {
        !self.retransmissions.is_empty()
    }

    /// Queues a frame for retransmission, in the order of sequence numbers.
    pub(crate) fn queue_retransmission(&mut self, mpdu: Mpdu<P>) {
        let start = self.originator.start();
        let offset = mpdu.sequence.since(start);
        let after = self
            .retransmissions
            .iter()
            .rposition(|other| other.sequence.since(start) < offset);
        self.retransmissions
            .insert(after.map_or(0, |at| at + 1), mpdu);
    }

    /// Takes the first frame to retransmit, if `fits` accepts its bytes.
    pub(crate) fn take_retransmission(&mut self, fits: impl Fn(u32) -> bool) -> Option<Mpdu<P>> {
        fits(self.retransmissions.front()?.bytes).then(|| self.retransmissions.pop_front())?
    }

    /// True if the frame may be on the air: it is in the receiver's window.
    pub(crate) fn is_in_window(&self, mpdu: &Mpdu<P>) -> bool {
        mpdu.sequence.since(self.originator.start()) < WINDOW
    }

    /// As [`Session::take_retransmission`], but only a frame in the receiver's window.
    pub(crate) fn take_in_window(&mut self, fits: impl Fn(u32) -> bool) -> Option<Mpdu<P>> {
        let is_next = self
            .retransmissions
            .front()
            .is_some_and(|mpdu| self.is_in_window(mpdu));
        is_next.then(|| self.take_retransmission(fits))?
    }

    /// Packets that wait for retransmission, or at the receiver for a missing frame.
    pub(crate) fn packets(&self) -> usize {
        let waiting: usize = self.retransmissions.iter().map(Mpdu::packets).sum();
        let held: usize = self.recipient.held().map(|(_, more)| 1 + more.len()).sum();
        waiting + held
    }
}

/// What a node sends in one exchange.
pub(crate) struct Transmission<P> {
    /// The receiver, as the sender numbers its peers, and the user priority of all frames: an A-MPDU has one TID
    /// (§9.7.3).
    pub peer: Peer,
    pub payload: Payload,
    pub frames: Vec<Mpdu<P>>,
    pub psdu: Psdu,
    pub chain: Chain,
    /// Failed tries so far.
    pub tries: u8,
}
