//! What uses the network, as machines without sockets: told the time and what has arrived, they say what is sent when.

use sojourn_units::{Duration, Rate, Time};

use crate::kind::{Browsing, Direction, Kind, Transport};
use crate::{bulk, files, onoff, packmime_client, pages, video};

/// Always more to send, for [`Connections::write`].
pub const UNLIMITED: u64 = u64::MAX;

/// What tells one flow's traffic from another's.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Number over all groups.
    pub flow: u32,
    /// Which way its data goes; never both.
    pub direction: Direction,
    /// When it starts.
    pub start: Time,
    /// When it stops sending.
    pub stop: Time,
}

/// The two hosts of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The host that sends the data.
    Sending,
    /// The host that receives it.
    Receiving,
}

/// A connection of a flow: they are numbered in the order in which they are opened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Id(pub u32);

/// The connections of a flow, both ends of each.
pub trait Connections {
    /// Opens a connection from the end `opener`.
    fn open(&mut self, opener: Side) -> Id;

    /// Gives an end `bytes` more to send; [`UNLIMITED`]: always more.
    fn write(&mut self, id: Id, side: Side, bytes: u64);

    /// Bytes that an end was given and that are not acknowledged; none if the connection is over.
    fn buffered(&mut self, id: Id, side: Side) -> u64;

    /// An end will write nothing more; the other end closes when it learns of it.
    fn close(&mut self, id: Id, side: Side);

    /// Payload bytes that an end has received in order; none if the connection is over.
    fn received(&mut self, id: Id, side: Side) -> u64;
}

/// Hears what an application's user would notice.
pub trait Meter {
    /// A file or a response is there, so long after it was begun or asked for.
    fn completed(&mut self, after: Duration, now: Time);

    /// A page is there.
    fn page_loaded(&mut self, after: Duration, now: Time);

    /// The first picture of a video is there.
    fn playing_began(&mut self, after: Duration);

    /// A segment of video of this media rate is there, `stalled` after playing ran out.
    fn segment(&mut self, rate: Rate, stalled: Duration);
}

/// What uses the connections of a flow. Data in the direction of the flow is written by the sending side; requests,
/// if there are any, by the receiving side.
pub trait Application: Send {
    /// When [`Application::on_timer`] is due.
    fn next_timer(&self) -> Option<Time>;

    /// Something may be due.
    fn on_timer(&mut self, now: Time, connections: &mut dyn Connections, meter: &mut dyn Meter);

    /// Whether [`Application::on_arrival`] does anything.
    fn hears_arrivals(&self) -> bool {
        true
    }

    /// Something has arrived at one end of a connection.
    fn on_arrival(
        &mut self,
        _: Id,
        _: Side,
        _now: Time,
        _: &mut dyn Connections,
        _: &mut dyn Meter,
    ) {
    }

    /// A connection is over: closed by both ends, or abandoned.
    fn on_end(&mut self, _: Id, _now: Time, _: &mut dyn Connections, _: &mut dyn Meter) {}
}

/// The application of a kind of traffic that runs over TCP; `None` for other kinds.
pub fn over_tcp(identity: &Identity, kind: &Kind, seed: u64) -> Option<Box<dyn Application>> {
    Some(match kind {
        Kind::Bulk(_) => Box::new(bulk::Bulk::new(identity)),
        Kind::Files(files) => Box::new(files::Files::new(identity, files, seed)),
        Kind::OnOff(config) => match &config.transport {
            Transport::Udp(_) => return None,
            Transport::Tcp(_, rate) => Box::new(onoff::OnOff::new(identity, config, *rate, seed)),
        },
        Kind::Web(web) => match &web.browsing {
            Browsing::PackMime(rate) => {
                Box::new(packmime_client::Browser::new(identity, *rate, seed))
            }
            Browsing::Pages(pages) => Box::new(pages::Browser::new(identity, pages, seed)),
        },
        Kind::Video(video) => Box::new(video::Player::new(identity, video)),
        Kind::Cbr(_) | Kind::Ping(_) | Kind::Voip(_) | Kind::Game => return None,
    })
}
