//! A medium that several queues share, and that decides by itself who sends: a cell of Wi-Fi.

use sojourn_units::Time;

/// A shared medium with its queues. Time only ever arrives as `now`, which never goes back.
pub trait Medium<P, O> {
    /// A packet comes to one of its queues, the one that a route's stage names by `entry`.
    fn enter(&mut self, entry: u16, packet: P, now: Time, observer: &mut O);

    /// When it is to act; [`Time::MAX`]: not before a packet comes.
    fn due(&self) -> Time;

    /// Acts at the instant that [`Medium::due`] gave.
    fn act(&mut self, now: Time, observer: &mut O);

    /// The next packet that has come through.
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
