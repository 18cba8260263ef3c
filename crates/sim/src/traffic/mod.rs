//! What the hosts do: one file per kind of sender.

mod call;
mod datagrams;
mod ping;
mod tcp;

use sojourn_experiment::model::{Direction, Kernel, Kind};
use sojourn_path::Route;
use sojourn_tcp::cc::Algorithm;
use sojourn_traffic::{Id, Side};
use sojourn_units::{Duration, Time, cold_path};

use self::call::Call;
use self::datagrams::Datagrams;
use self::ping::Ping;
use self::tcp::TcpFlow;
pub use self::tcp::{Transports, Waits};
use crate::network::Network;
use crate::packet::{Membership, SimPacket};
use crate::timers::Timers;
use sojourn_measure::meter::{Measures, Meter};
use sojourn_measure::series::SenderState;

/// Identifies a flow and its routes.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Flow number, over all groups.
    pub flow: u32,
    /// The addresses of its data sender and of its receiver.
    pub hosts: [u32; 2],
    /// The routes of its packets: forward from the data sender, and back.
    pub routes: [Route; 2],
    /// The direction of its data; never both.
    pub direction: Direction,
    /// The DiffServ code point of its packets.
    pub dscp: u8,
    /// Bytes that the link adds to an IP packet.
    pub overhead: u32,
    /// Where what its sending host sends waits.
    pub waits: Waits,
    /// The Linux that its hosts behave as.
    pub kernel: Kernel,
    /// The round-trip time of its path.
    pub rtt: Duration,
    /// When it starts.
    pub start: Time,
    /// When it stops sending.
    pub stop: Time,
    /// How late a sending by a timer may be.
    pub jitter: Duration,
    /// What to measure.
    pub measures: Measures,
    /// Record a qlog, if it is TCP.
    pub qlog: bool,
}

impl Identity {
    /// The part that its application needs.
    const fn of_application(&self) -> sojourn_traffic::Identity {
        sojourn_traffic::Identity {
            flow: self.flow,
            direction: self.direction,
            start: self.start,
            stop: self.stop,
            jitter: self.jitter,
        }
    }

    /// The part that its packets need.
    pub const fn labels(&self) -> Labels {
        Labels {
            flow: self.flow,
            hosts: self.hosts,
            routes: self.routes,
            dscp: self.dscp,
            overhead: self.overhead,
        }
    }

    /// As [`Labels::membership`].
    pub const fn membership(&self, connection: u32, returning: bool) -> Membership {
        self.labels().membership(connection, returning)
    }
}

/// The part of an [`Identity`] that its packets need. There may be hundreds of thousands of flows.
#[derive(Clone, Copy, Debug)]
pub struct Labels {
    /// See [`Identity`], as for the others.
    pub flow: u32,
    hosts: [u32; 2],
    /// See [`Identity`].
    pub routes: [Route; 2],
    dscp: u8,
    /// See [`Identity`].
    pub overhead: u32,
}

impl Labels {
    /// The packet fields of one connection in one direction.
    pub const fn membership(&self, connection: u32, returning: bool) -> Membership {
        Membership {
            flow: self.flow,
            hosts: self.hosts,
            connection,
            dscp: self.dscp,
            returning,
        }
    }
}

/// A flow, both ends included.
pub enum FlowEndpoints {
    /// All traffic over TCP.
    Tcp(Box<TcpFlow>),
    /// One-way datagrams.
    Datagrams(Box<Datagrams>),
    /// A video call.
    Call(Box<Call>),
    /// Echo requests and replies.
    Ping(Box<Ping>),
}

impl FlowEndpoints {
    /// A new flow of a kind. Only flows over TCP use `transport`, the congestion control and what earlier flows share.
    pub fn new(
        identity: Identity,
        kind: &Kind,
        transport: (&Algorithm, &mut Transports),
        seed: u64,
    ) -> Self {
        let tcp =
            || TcpFlow::new(identity, kind, transport, seed).map(|flow| Self::Tcp(flow.into()));
        let ping = || Ping::new(identity, kind, seed).map(|flow| Self::Ping(flow.into()));
        let datagrams =
            || Datagrams::new(identity, kind, seed).map(|flow| Self::Datagrams(flow.into()));
        // Each constructor returns `None` for kinds that are not its own.
        let call = || Call::new(identity, kind, seed).map(|flow| Self::Call(flow.into()));
        tcp()
            .or_else(ping)
            .or_else(call)
            .or_else(datagrams)
            .expect("a kind is one of these")
    }

    /// Delivers a packet of this flow to one of its hosts, and sets their timers if these have moved.
    /// `FROM_LINK`: see [`TcpFlow::on_packet`].
    #[inline(always)]
    pub fn on_packet<const FROM_LINK: bool>(
        &mut self,
        packet: &SimPacket,
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        match self {
            Self::Tcp(flow) => flow.on_packet::<FROM_LINK>(packet, now, network, timers),
            Self::Datagrams(_) | Self::Call(_) | Self::Ping(_) => {
                cold_path();
                self.on_datagram(packet, now, network);
                timers.set_both(packet.flow, self.next_timers());
            }
        }
    }

    /// Delivers a packet of a flow that is not TCP.
    #[inline(never)]
    fn on_datagram(&mut self, packet: &SimPacket, now: Time, network: &mut Network) {
        match self {
            Self::Tcp(_) => {}
            Self::Datagrams(flow) => flow.on_packet(packet, now),
            Self::Call(flow) => flow.on_packet(packet, now),
            Self::Ping(flow) => flow.on_packet(packet, now, network),
        }
    }

    /// A packet has left the station that sends it: see [`TcpFlow::on_left`].
    #[cold]
    pub fn on_left(&mut self, connection: u32) {
        if let Self::Tcp(flow) = self {
            flow.on_left(Id(connection));
        }
    }

    /// All of a transmission has left it: see [`TcpFlow::send_throttled`].
    #[cold]
    pub fn send_throttled(
        &mut self,
        connection: u32,
        now: Time,
        network: &mut Network,
        timers: &mut Timers,
    ) {
        if let Self::Tcp(flow) = self {
            flow.send_throttled(Id(connection), now, network, timers);
        }
    }

    /// Handles a host timer, which may have expired.
    pub fn on_timer(&mut self, side: Side, now: Time, network: &mut Network) {
        match self {
            Self::Tcp(flow) => flow.on_timer(side, now, network),
            Self::Datagrams(flow) => flow.on_timer(now, network),
            Self::Call(flow) => flow.on_timer(side, now, network),
            Self::Ping(flow) => flow.on_timer(now, network),
        }
    }

    /// When its hosts next need a call, or sooner, the sending host first; [`Time::MAX`]: only when a packet arrives.
    #[inline(always)]
    pub fn next_timers(&self) -> [Time; 2] {
        let of_sending = |due: Option<Time>| [due.unwrap_or(Time::MAX), Time::MAX];
        match self {
            Self::Tcp(flow) => flow.next_timers(),
            Self::Datagrams(flow) => {
                cold_path();
                of_sending(flow.next_timer())
            }
            Self::Call(flow) => {
                cold_path();
                flow.next_timers()
            }
            Self::Ping(flow) => {
                cold_path();
                of_sending(flow.next_timer())
            }
        }
    }

    /// The flow's meter, with its counters up to date.
    pub fn meter(&mut self) -> &mut Meter {
        match self {
            Self::Tcp(flow) => flow.meter(),
            Self::Datagrams(flow) => flow.meter(),
            Self::Call(flow) => flow.meter(),
            Self::Ping(flow) => flow.meter(),
        }
    }

    /// What remains of the flow after the run: its meter.
    pub fn into_meter(mut self) -> Box<Meter> {
        self.meter(); // brings its counters up to date
        match self {
            Self::Tcp(flow) => flow.into_meter(),
            Self::Datagrams(flow) => flow.into_meter(),
            Self::Call(flow) => flow.into_meter(),
            Self::Ping(flow) => flow.into_meter(),
        }
    }

    /// Takes its qlog, if it has one.
    pub fn take_qlog(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Tcp(flow) => flow.take_qlog(),
            Self::Datagrams(_) | Self::Call(_) | Self::Ping(_) => None,
        }
    }

    /// The congestion state of its connections together, if it has any.
    pub fn sender_state(&mut self) -> Option<SenderState> {
        match self {
            Self::Tcp(flow) => flow.sender_state(),
            Self::Datagrams(_) | Self::Call(_) | Self::Ping(_) => None,
        }
    }
}
