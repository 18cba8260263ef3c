//! A medium that several queues share, and that decides by itself who sends: a cell of Wi-Fi.

use sojourn_units::Time;

/// A shared medium with its queues. Time only ever arrives as `now`, which never goes back.
pub trait Medium<P, O> {
    /// A packet arrives at the queue that a route's stage names by `entry`.
    fn enter(&mut self, entry: u16, packet: P, now: Time, observer: &mut O);

    /// When its next event is due; [`Time::MAX`] if there is none until a packet arrives.
    fn due(&self) -> Time;

    /// Handles the event at the instant that [`Medium::due`] returned.
    fn act(&mut self, now: Time, observer: &mut O);

    /// The next packet that was received and leaves the medium.
    fn leaves(&mut self) -> Option<P>;

    /// Packets in it.
    fn packets(&self) -> u64;
}

/// The medium of networks that have none.
#[derive(Debug)]
pub enum NoMedium {}

impl<P, O> Medium<P, O> for NoMedium {
    fn enter(&mut self, _: u16, _: P, _: Time, _: &mut O) {
        match *self {}
    }

    fn due(&self) -> Time {
        match *self {}
    }

    fn act(&mut self, _: Time, _: &mut O) {
        match *self {}
    }

    fn leaves(&mut self) -> Option<P> {
        match *self {}
    }

    fn packets(&self) -> u64 {
        match *self {}
    }
}
