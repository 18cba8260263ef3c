//! Applications as state machines without sockets: given the time and the data that has arrived, they decide what to
//! send.

use sojourn_units::{Duration, Rate, Time};

use crate::direction::Direction;

/// Data without end, for [`Connections::write`].
pub const UNLIMITED: u64 = u64::MAX;

/// The identity of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Its number over all groups.
    pub flow: u32,
    /// The direction of its data, down or up.
    pub direction: Direction,
    /// When it starts.
    pub start: Time,
    /// When it stops sending.
    pub stop: Time,
    /// How late a sending by a timer may be.
    pub jitter: Duration,
}

/// The two hosts of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The host that sends the data.
    Sending,
    /// The host that receives it.
    Receiving,
}

/// A connection of a flow. They are numbered in the order of opening.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Id(pub u32);

/// The connections of a flow, both ends of each.
pub trait Connections {
    /// Opens a connection from the end `opener`.
    fn open(&mut self, opener: Side) -> Id;

    /// Lets an end send `bytes` more; [`UNLIMITED`] for data without end.
    fn write(&mut self, id: Id, side: Side, bytes: u64);

    /// Bytes written at an end and not acknowledged; zero if the connection has ended.
    fn buffered(&mut self, id: Id, side: Side) -> u64;

    /// Closes an end for writing. The other end closes when it learns of it. A connection with data without end is aborted:
    /// what is not sent, and what was lost, is never sent.
    fn close(&mut self, id: Id, side: Side);

    /// Payload bytes that an end has received in order; zero if the connection has ended.
    fn received(&mut self, id: Id, side: Side) -> u64;
}

/// Records the performance that a user would notice.
pub trait Meter {
    /// A file or a response is complete; `after` is the time since it began or was requested.
    fn completed(&mut self, after: Duration, now: Time);

    /// A page is complete; `after` is the time since it was opened.
    fn page_loaded(&mut self, after: Duration, now: Time);

    /// The first picture of a video can be shown; `after` is the time since the flow's start.
    fn playing_began(&mut self, after: Duration);

    /// A segment of video with this media rate is complete; before it, playback was `stalled` for this time.
    fn segment(&mut self, rate: Rate, stalled: Duration);
}

/// An application that uses the connections of a flow. The sending side writes the data in the direction of the flow;
/// the receiving side writes requests, if there are any.
pub trait Application: Send {
    /// When [`Application::on_timer`] is due.
    fn next_timer(&self) -> Option<Time>;

    /// Handles a timer that may be due.
    fn on_timer(&mut self, now: Time, connections: &mut dyn Connections, meter: &mut dyn Meter);

    /// True if [`Application::on_arrival`] must be called.
    fn hears_arrivals(&self) -> bool {
        true
    }

    /// Handles data that has arrived at one end of a connection.
    fn on_arrival(
        &mut self,
        _: Id,
        _: Side,
        _now: Time,
        _: &mut dyn Connections,
        _: &mut dyn Meter,
    ) {
    }

    /// Handles the end of a connection: closed by both ends, or abandoned.
    fn on_end(&mut self, _: Id, _now: Time, _: &mut dyn Connections, _: &mut dyn Meter) {}
}
