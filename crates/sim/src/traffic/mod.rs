//! What the hosts do: a file per way of sending.

mod datagrams;
mod ping;
mod tcp;

use sojourn_experiment::model::{Direction, Kind};
use sojourn_path::Route;
use sojourn_tcp::cc::Algorithm;
use sojourn_traffic::Side;
use sojourn_units::{Time, cold_path};

use self::datagrams::Datagrams;
use self::ping::Ping;
use self::tcp::TcpFlow;
use crate::network::Network;
use crate::packet::{Membership, SimPacket};
use sojourn_measure::meter::{Measures, Meter};

/// What tells one flow from another.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Number over all groups.
    pub flow: u32,
    /// Number of its traffic group.
    pub group: u16,
    /// The routes of its packets: from the sender of data, and back.
    pub routes: [Route; 2],
    /// Which way its data goes; never both.
    pub direction: Direction,
    /// The code point of its packets.
    pub dscp: u8,
    /// Bytes that the link adds to an IP packet.
    pub overhead: u32,
    /// Its sending host has a link of its own, where packets wait.
    pub has_access_link: bool,
    /// When it starts.
    pub start: Time,
    /// When it stops sending.
    pub stop: Time,
    /// What is measured of it.
    pub measures: Measures,
}

impl Identity {
    /// What its application is told.
    const fn of_application(&self) -> sojourn_traffic::Identity {
        sojourn_traffic::Identity {
            flow: self.flow,
            direction: self.direction,
            start: self.start,
            stop: self.stop,
        }
    }

    /// The flow's packets of one connection, in one direction.
    pub const fn membership(&self, connection: u32, returning: bool) -> Membership {
        Membership {
            flow: self.flow,
            group: self.group,
            connection,
            dscp: self.dscp,
            returning,
        }
    }
}

/// A flow, both ends of it.
pub enum Source {
    /// Whatever runs over TCP.
    Tcp(Box<TcpFlow>),
    /// Datagrams one way.
    Datagrams(Box<Datagrams>),
    /// Echo requests.
    Ping(Box<Ping>),
}

impl Source {
    /// A flow of a kind that has not started. `algorithm` is for those that run over TCP.
    pub fn new(identity: Identity, kind: &Kind, algorithm: &'static Algorithm, seed: u64) -> Self {
        let tcp =
            || TcpFlow::new(identity, kind, algorithm, seed).map(|flow| Self::Tcp(flow.into()));
        let ping = || Ping::new(identity, kind).map(|flow| Self::Ping(flow.into()));
        let datagrams =
            || Datagrams::new(identity, kind, seed).map(|flow| Self::Datagrams(flow.into()));
        // Each of the three takes the kinds that the others leave.
        tcp()
            .or_else(ping)
            .or_else(datagrams)
            .expect("a kind is one of these")
    }

    /// A packet of this flow arrives at a host.
    pub fn on_packet(&mut self, packet: &SimPacket, now: Time, network: &mut Network) {
        match self {
            Self::Tcp(flow) => flow.on_packet(packet, now, network),
            Self::Datagrams(flow) => {
                cold_path();
                flow.on_packet(packet, now);
            }
            Self::Ping(flow) => {
                cold_path();
                flow.on_packet(packet, now, network);
            }
        }
    }

    /// A timer of one of its hosts may have come due.
    pub fn on_timer(&mut self, side: Side, now: Time, network: &mut Network) {
        match self {
            Self::Tcp(flow) => flow.on_timer(side, now, network),
            Self::Datagrams(flow) => flow.on_timer(now, network),
            Self::Ping(flow) => flow.on_timer(now, network),
        }
    }

    /// When its hosts want to be asked next, the sending one first; [`Time::MAX`]: not before something arrives.
    pub fn next_timers(&self) -> [Time; 2] {
        let of_sending = |due: Option<Time>| [due.unwrap_or(Time::MAX), Time::MAX];
        match self {
            Self::Tcp(flow) => flow.next_timers(),
            Self::Datagrams(flow) => {
                cold_path();
                of_sending(flow.next_timer())
            }
            Self::Ping(flow) => {
                cold_path();
                of_sending(flow.next_timer())
            }
        }
    }

    /// What was measured, up to date.
    pub fn meter(&mut self) -> &mut Meter {
        match self {
            Self::Tcp(flow) => flow.meter(),
            Self::Datagrams(flow) => flow.meter(),
            Self::Ping(flow) => flow.meter(),
        }
    }

    /// The sum of the congestion windows of its connections in segments, if it has any.
    pub fn cwnd(&self) -> Option<u32> {
        match self {
            Self::Tcp(flow) => flow.cwnd(),
            Self::Datagrams(_) | Self::Ping(_) => None,
        }
    }
}
