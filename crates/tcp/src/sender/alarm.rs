//! What the running timer is for, and how it is set.

/// The purpose of the running timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alarm {
    /// Retransmission timeout.
    Retransmit,
    /// Tail loss probe.
    Probe,
    /// RACK's reordering window has passed.
    Reordering,
    /// The receive window has been closed for too long (RFC 9293 §3.8.6.1).
    Persist,
}

/// How to set the alarm once everything that may be sent has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arm {
    /// Leave it as it is.
    Leave,
    /// Data was acknowledged (RFC 6298 §5.3, RFC 8985 §7.2).
    Acknowledged,
    /// New data was sent while no retransmission timer ran, or while a probe may be sent.
    NewData,
    /// The oldest segment was retransmitted.
    Retransmit,
    /// A tail loss probe was sent: the retransmission timer restarts (RFC 8985 §7.3 step 3, as Linux).
    Probed,
}
