//! The flows of a job over real sockets: a file per transport.
//!
//! | file | flows | kinds of traffic |
//! | --- | --- | --- |
//! | `tcp` | [`TcpFlow`] | bulk, files, on-off over TCP, web, video |
//! | `datagrams` | [`DatagramFlow`] | UDP in one direction: constant rate, on-off, telephony, games |
//! | `ping` | [`PingFlow`] | echo requests |
//!
//! The crate `sojourn_traffic` decides what to send and when; the files here own the sockets. A flow with `kind = "bulk"`
//! reaches its socket as follows:
//!
//! 1. [`open`] makes a [`TcpFlow`], with the [`sojourn_traffic::Application`] that [`sojourn_traffic::over_tcp`] returns
//!    for the kind: `Bulk`, in `bulk.rs` of that crate.
//! 2. At its start, the application calls [`sojourn_traffic::Connections::open`] and `write`. They are implemented by
//!    [`tcp_sockets::SocketConnections`].
//! 3. `SocketConnections` uses [`tcp_sockets::TcpSockets`], the flow's listener and connections. `TcpSockets::connect`
//!    creates the socket; `End::flush` writes to it. What arrives is read by a [`discard::Discard`].

mod datagrams;
mod discard;
mod greeting;
mod ping;
mod tcp;
mod tcp_sockets;

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::socket::{setsockopt, sockopt};

use datagrams::DatagramFlow;
use ping::PingFlow;
use sojourn_experiment::model::Kind;
use sojourn_measure::series::SenderState;
use sojourn_traffic::{Id, Side};
use tcp::TcpFlow;
pub use tcp_sockets::has_congestion_control;

use super::clock::Clock;
use super::diag::{Connection, Diag};
use super::{Context, Failure};
use crate::job::{Flow, Job};
use crate::recording::FlowFigures;

/// The socket of a flow at which an event happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Socket {
    /// An end of a connection; a flow without connections has one of each.
    End(Id, Side),
    /// The socket that accepts connections.
    Listener,
}

/// A socket with an event.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Which socket of its flow.
    pub socket: Socket,
    /// What it is ready for.
    pub flags: EpollFlags,
    /// The clock, read only if the time is needed.
    pub clock: Clock,
}

impl Ready {
    /// The time, in nanoseconds since the run began; 0 before it.
    ///
    /// # Errors
    /// The clock cannot be read.
    fn now_ns(self) -> Result<u64, Failure> {
        Ok(self.clock.now()?.max(0) as u64)
    }

    /// Whether reading may return something: data, the end or an error.
    fn to_read(self) -> bool {
        self.flags.intersects(EpollFlags::EPOLLIN) || self.at_end()
    }

    /// Whether the peer has closed or the connection has failed.
    fn at_end(self) -> bool {
        let end = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        self.flags.intersects(end)
    }
}

/// Bits of a token for the socket, with the flow above them: two for its kind, 32 for the connection.
const SOCKET_BITS: u32 = 34;

/// Registers the sockets that a flow waits for.
pub struct Watch<'a> {
    epoll: &'a Epoll,
    flow: usize,
}

impl<'a> Watch<'a> {
    /// For flow number `flow` of the job.
    pub const fn new(epoll: &'a Epoll, flow: usize) -> Self {
        Self { epoll, flow }
    }

    /// Registers a socket.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn add(
        &self,
        socket: BorrowedFd<'_>,
        which: Socket,
        interest: EpollFlags,
    ) -> Result<(), Failure> {
        let token = (self.flow as u64) << SOCKET_BITS | which.token();
        self.epoll
            .add(socket, EpollEvent::new(interest, token))
            .context(|| "waiting for a socket".into())
    }

    /// The flow and socket of an event.
    pub const fn origin(token: u64) -> (usize, Socket) {
        let of_socket = token & ((1 << SOCKET_BITS) - 1);
        ((token >> SOCKET_BITS) as usize, Socket::of_token(of_socket))
    }
}

impl Socket {
    /// The sending or the receiving socket of a flow without connections.
    const fn only(side: Side) -> Self {
        Self::End(Id(0), side)
    }

    const fn token(self) -> u64 {
        match self {
            Self::End(Id(id), side) => (id as u64) << 2 | side as u64,
            Self::Listener => 2,
        }
    }

    const fn of_token(token: u64) -> Self {
        let id = Id((token >> 2) as u32);
        match token & 3 {
            0 => Self::End(id, Side::Sending),
            1 => Self::End(id, Side::Receiving),
            _ => Self::Listener,
        }
    }
}

/// A flow in progress. Times are nanoseconds since the run began.
pub trait Traffic {
    /// The time at which its connection opens, if that precedes its start. Negative: before the run. `None` once it is
    /// open.
    fn opens(&self) -> Option<i64> {
        None
    }

    /// Opens that connection.
    ///
    /// # Errors
    /// As [`Traffic::on_timer`].
    fn open_ahead(&mut self, _watch: &Watch<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// When its next timer is due.
    fn next_timer(&self) -> Option<u64>;

    /// Handles its timer.
    ///
    /// # Errors
    /// The kernel refuses an operation of the flow.
    fn on_timer(&mut self, now_ns: u64, watch: &Watch<'_>) -> Result<(), Failure>;

    /// Handles a socket that is ready.
    ///
    /// # Errors
    /// As [`Traffic::on_timer`].
    fn on_ready(&mut self, ready: Ready, watch: &Watch<'_>) -> Result<(), Failure>;

    /// Its figures so far.
    fn figures(&mut self) -> &mut FlowFigures;

    /// Finds its connections among those of the sender's host, and samples their round-trip times if a sample is due;
    /// returns the state of its senders.
    ///
    /// # Errors
    /// The connection is not as the job requires.
    fn observe(
        &mut self,
        _connections: &[Connection],
        _sample_at_ns: Option<u64>,
    ) -> Result<Option<SenderState>, Failure> {
        Ok(None)
    }

    /// True if it has TCP connections to be observed.
    fn is_tcp(&self) -> bool {
        false
    }

    /// True if what its receiver gets is discarded: [`Traffic::count`] must be called before its figures are read.
    fn discards(&self) -> bool {
        false
    }

    /// Finds its connections among those of the receiver's host, and counts what they have received; `at_end`: for the last
    /// time.
    fn count(&mut self, _connections: &[Connection], _at_end: bool) {}
}

/// Opens a flow's receiving sockets and prepares it to start. `diag` is the netlink socket of its sender's host; `None` if that
/// is on another machine. `few`: there are so few bulk flows that each may have a thread that reads.
///
/// # Errors
/// The kernel refuses an operation of the flow, such as setting its congestion control.
pub fn open(
    flow: &Flow,
    job: &Job,
    few: bool,
    diag: Option<Rc<Diag>>,
    watch: &Watch<'_>,
) -> Result<Box<dyn Traffic>, Failure> {
    let seed = job.seed;
    let here = [&flow.sender, &flow.receiver].map(|end| job.has(end));
    if let Kind::Ping(ping) = &flow.kind {
        return Ok(Box::new(PingFlow::open(flow, ping, seed, here, watch)?));
    }
    if let Some(tcp) = &flow.tcp {
        if let Some(opened) = TcpFlow::open((flow, tcp), seed, few, (here, diag), watch)? {
            return Ok(Box::new(opened));
        }
    }
    match DatagramFlow::open(flow, seed, job.warmup_ns, here, watch)? {
        Some(opened) => Ok(Box::new(opened)),
        None => Err(Failure(format!(
            "flow {}: this agent does not support its kind of traffic",
            flow.number
        ))),
    }
}

/// Sets a flow's DiffServ code point on a socket, and the ECN field of its datagrams; a TCP socket keeps its own. Sets the
/// priority of the host at this side afterwards, as a code point sets one, too.
///
/// # Errors
/// The kernel refuses.
fn set_dscp(socket: &impl AsFd, flow: &Flow, side: Side) -> Result<(), Failure> {
    let tos = i32::from(flow.dscp << 2 | flow.kind.datagram_ecn().bits());
    setsockopt(socket, sockopt::Ipv4Tos, &tos)
        .context(|| format!("DiffServ code point {}", flow.dscp))?;
    set_priority(socket, flow, side)
}

/// Sets the priority of the host at this side on a socket. An accepted connection does not take it over from its listener.
///
/// # Errors
/// The kernel refuses.
fn set_priority(socket: &impl AsFd, flow: &Flow, side: Side) -> Result<(), Failure> {
    match flow.priorities[side as usize] {
        0 => Ok(()),
        priority => setsockopt(socket, sockopt::Priority, &(priority as i32))
            .context(|| format!("priority {priority:#x}")),
    }
}

/// True if an operation may succeed later. `NotConnected`: the handshake is in progress.
fn is_for_later(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected
    )
}

/// A span in microseconds, the unit of recordings.
fn micros(span_ns: u64) -> u32 {
    u32::try_from(span_ns / 1000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_flow_and_socket() {
        for flow in [0, 1, 27_999] {
            for socket in [
                Socket::Listener,
                Socket::only(Side::Sending),
                Socket::End(Id(u32::MAX), Side::Receiving),
            ] {
                let token = (flow as u64) << SOCKET_BITS | socket.token();
                assert_eq!(Watch::origin(token), (flow, socket));
            }
        }
    }
}
