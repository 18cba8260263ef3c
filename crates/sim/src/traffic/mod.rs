//! What the hosts do: a file per kind of traffic.

mod cbr;
mod meter;
mod ping;
mod tcp;

use sojourn_units::Time;

pub use cbr::Cbr;
pub use meter::Meter;
pub use ping::Ping;
pub use tcp::TcpFlow;

use crate::packet::{Membership, SimPacket};
use crate::simulation::Network;

/// The two hosts of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The host that sends the data.
    Sending,
    /// The host that receives it.
    Receiving,
}

/// What tells one flow from another.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Number over all groups.
    pub flow: u32,
    /// Number of its traffic group.
    pub group: u16,
    /// Bytes that the link adds to an IP packet.
    pub overhead: u32,
    /// When it starts.
    pub start: Time,
    /// When it stops sending.
    pub stop: Time,
    /// When measuring begins.
    pub warmup: Time,
}

impl Identity {
    /// The flow's packets of one connection, in one direction.
    pub const fn membership(&self, generation: u16, returning: bool) -> Membership {
        Membership {
            flow: self.flow,
            group: self.group,
            generation,
            returning,
        }
    }
}

/// A flow, both ends of it.
pub enum Source {
    /// TCP: bulk transfers and files.
    Tcp(Box<TcpFlow>),
    /// Constant bit rate.
    Cbr(Cbr),
    /// Echo requests.
    Ping(Ping),
}

impl Source {
    /// A packet of this flow arrives at a host.
    pub fn on_packet(&mut self, packet: &SimPacket, now: Time, network: &mut Network) {
        match self {
            Self::Tcp(flow) => flow.on_packet(packet, now, network),
            Self::Cbr(flow) => flow.on_packet(packet, now),
            Self::Ping(flow) => flow.on_packet(packet, now, network),
        }
    }

    /// A timer of one of its hosts may have come due.
    pub fn on_timer(&mut self, side: Side, now: Time, network: &mut Network) {
        match self {
            Self::Tcp(flow) => flow.on_timer(side, now, network),
            Self::Cbr(flow) => flow.on_timer(now, network),
            Self::Ping(flow) => flow.on_timer(now, network),
        }
    }

    /// When a host wants to be asked next.
    pub fn next_timer(&self, side: Side) -> Option<Time> {
        match (self, side) {
            (Self::Tcp(flow), _) => flow.next_timer(side),
            (Self::Cbr(flow), Side::Sending) => flow.next_timer(),
            (Self::Ping(flow), Side::Sending) => flow.next_timer(),
            (_, Side::Receiving) => None,
        }
    }

    /// What was measured.
    pub fn meter(&self) -> &Meter {
        match self {
            Self::Tcp(flow) => flow.meter(),
            Self::Cbr(flow) => flow.meter(),
            Self::Ping(flow) => flow.meter(),
        }
    }

    /// What was measured, to be told of instants.
    pub fn meter_mut(&mut self) -> &mut Meter {
        match self {
            Self::Tcp(flow) => flow.meter_mut(),
            Self::Cbr(flow) => flow.meter_mut(),
            Self::Ping(flow) => flow.meter_mut(),
        }
    }

    /// The congestion window in segments, for flows that have one.
    pub fn cwnd(&self) -> Option<u32> {
        match self {
            Self::Tcp(flow) => Some(flow.cwnd()),
            Self::Cbr(_) | Self::Ping(_) => None,
        }
    }
}
