//! The receive windows that the peer has offered.

use crate::segment::Segment;
use crate::seq::Seq;

/// What the peer has offered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offers {
    mss: u32,
    /// Right edge of the receive window.
    pub(super) edge: Seq,
    /// The window last offered (snd_wnd of Linux). An acknowledgement of nothing new can only raise it
    /// (tcp_may_update_window).
    last: u32,
    /// Largest window ever offered, and the segment size that counts as full for it (RFC 9293 §3.8.6.2.1).
    pub(super) largest: u32,
    pub(super) full: u32,
}

/// What acknowledgements have said, while nothing is in flight.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Acknowledged {
    una: Seq,
    edge: Seq,
    last: u32,
    largest: u32,
}

impl Acknowledged {
    /// SND.NXT.
    #[inline(always)]
    pub(crate) const fn next_seq(&self) -> Seq {
        self.una
    }

    /// True if a segment offers more than the last one.
    #[inline(always)]
    pub(crate) const fn is_raised_by(&self, segment: &Segment) -> bool {
        segment.window > self.last
    }

    /// True if a segment says nothing new.
    #[inline(always)]
    pub(crate) fn covers(&self, segment: &Segment) -> bool {
        segment.ack == self.una
            && segment.window <= self.largest
            && !(segment.ack + segment.window).after(self.edge)
            && segment.sack[0].is_none()
    }
}

impl Offers {
    /// Nothing was offered. The first data has the number `first`.
    pub(crate) const fn none(mss: u16, first: Seq) -> Self {
        Self {
            mss: mss as u32,
            edge: first,
            last: 0,
            largest: 0,
            full: mss as u32,
        }
    }

    /// The window of the handshake; `una` is SND.UNA.
    pub(crate) fn begin(&mut self, una: Seq, window: u32) {
        self.edge = una + window;
        self.last = window;
        self.note_size(window);
    }

    /// True if an acknowledgement of nothing new raises the window.
    #[inline(always)]
    pub(crate) const fn is_raised_by(&self, segment: &Segment) -> bool {
        segment.window > self.last
    }

    /// What acknowledgements say while nothing is in flight; `una` is SND.UNA.
    #[inline(always)]
    pub(crate) const fn acknowledged(&self, una: Seq) -> Acknowledged {
        Acknowledged {
            una,
            edge: self.edge,
            last: self.last,
            largest: self.largest,
        }
    }

    /// Takes the window of an acknowledgement that is not old. `counts`: it acknowledges new data or raises the window.
    #[inline(always)]
    pub(crate) fn take(&mut self, segment: &Segment, counts: bool) {
        if counts {
            self.last = segment.window;
        }
        self.edge = self.edge.max(segment.ack + segment.window);
        self.note_size(segment.window);
    }

    /// Notes the size of an offered window. A full segment has the size of the MSS, or of half of the largest window if that
    /// is less, or of the whole window if that has at most 536 bytes (as Linux).
    #[inline(always)]
    fn note_size(&mut self, window: u32) {
        if window > self.largest {
            self.raise(window);
        }
    }

    #[cold]
    #[inline(never)]
    fn raise(&mut self, window: u32) {
        self.largest = window;
        let bound = if window > 536 { window / 2 } else { window };
        self.full = self.mss.min(bound);
    }
}
