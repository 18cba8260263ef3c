//! What the sender owes regardless of the congestion window.

/// What is to be sent even if the congestion window is full. A set of bits, so that [`Sender::poll`](super::Sender::poll) tests one byte on
/// every call.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Due(u8);

impl Due {
    /// A tail loss probe.
    pub(super) const PROBE: Self = Self(1);
    /// A probe of a closed receive window.
    pub(super) const WINDOW_PROBE: Self = Self(2);
    /// The first lost segment (RFC 6675 §5 step 4.3, RFC 6582 §3.2).
    pub(super) const LOST: Self = Self(4);
    /// The FIN, with the last segment of data, until it is sent (tcp_cwnd_test of Linux 6.1; in 7.3 it waits).
    pub(super) const LAST: Self = Self(8);

    pub(super) const fn any(self) -> bool {
        self.0 != 0
    }
    pub(super) const fn has(self, what: Self) -> bool {
        self.0 & what.0 != 0
    }
    pub(super) const fn add(&mut self, what: Self) {
        self.0 |= what.0;
    }
    /// Removes `what`; returns true if it was in the set.
    pub(super) const fn take(&mut self, what: Self) -> bool {
        let was_in = self.has(what);
        self.0 &= !what.0;
        was_in
    }
}
