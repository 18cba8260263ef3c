//! The flows of a job over real sockets: a file per kind of traffic.

mod connections;
mod datagrams;
mod greeting;
mod ping;
mod tcp;

use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::socket::{setsockopt, sockopt};

use datagrams::Datagrams;
use ping::Ping;
use sojourn_experiment::model::Kind;
use sojourn_traffic::{Id, Side};
use tcp::TcpFlow;

use super::diag::{Connection, Diag};
use super::{Context, Failure};
use crate::job::Flow;
use crate::recording::FlowFigures;

/// Which of a flow's sockets something happened at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Socket {
    /// An end of a connection; without connections there is one of each.
    End(Id, Side),
    /// What connections come in at.
    Listener,
}

/// Bits of a token for the socket, above them the flow: two for its kind, 32 for the connection.
const SOCKET_BITS: u32 = 34;

/// Where a flow says which sockets it waits for.
pub struct Watch<'a> {
    epoll: &'a Epoll,
    flow: usize,
}

impl<'a> Watch<'a> {
    /// For flow number `flow` of the job.
    pub const fn new(epoll: &'a Epoll, flow: usize) -> Self {
        Self { epoll, flow }
    }

    /// Waits for a socket.
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

    /// The flow and socket that an event is of.
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

/// A flow under way. Instants are nanoseconds since the run began.
pub trait Traffic {
    /// When its connection is to be opened ahead of its start; below zero: before the run. `None` once it is.
    fn opens(&self) -> Option<i64> {
        None
    }

    /// It is time for that.
    ///
    /// # Errors
    /// As [`Traffic::on_timer`].
    fn open_ahead(&mut self, _watch: &Watch<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// When it wants to act next.
    fn next_timer(&self) -> Option<u64>;

    /// It is time.
    ///
    /// # Errors
    /// The kernel refuses what the flow needs.
    fn on_timer(&mut self, now_ns: u64, watch: &Watch<'_>) -> Result<(), Failure>;

    /// A socket is ready.
    ///
    /// # Errors
    /// As [`Traffic::on_timer`].
    fn on_ready(&mut self, socket: Socket, now_ns: u64, watch: &Watch<'_>) -> Result<(), Failure>;

    /// Its figures so far.
    fn figures(&mut self) -> &mut FlowFigures;

    /// Takes note of its connections among those of the sender's host, and of their round-trip times if it is time for a
    /// sample; returns the window.
    ///
    /// # Errors
    /// The connection is not what the job asked for.
    fn observe(
        &mut self,
        _connections: &[Connection],
        _sample_at_ns: Option<u64>,
    ) -> Result<Option<u32>, Failure> {
        Ok(None)
    }

    /// Whether it has TCP connections to be observed.
    fn is_tcp(&self) -> bool {
        false
    }
}

/// Opens a flow's receiving sockets and makes it ready to start. `diag` asks its sender's host,
/// measuring begins at `warmup_ns`.
///
/// # Errors
/// The kernel refuses what the flow needs, such as its congestion control.
pub fn open(
    flow: &Flow,
    seed: u64,
    warmup_ns: u64,
    diag: Rc<Diag>,
    watch: &Watch<'_>,
) -> Result<Box<dyn Traffic>, Failure> {
    if let Kind::Ping(ping) = &flow.kind {
        return Ok(Box::new(Ping::open(flow, ping, watch)?));
    }
    if let Some(tcp) = &flow.tcp {
        if let Some(opened) = TcpFlow::open(flow, tcp, seed, diag, watch)? {
            return Ok(Box::new(opened));
        }
    }
    match Datagrams::open(flow, seed, warmup_ns, watch)? {
        Some(opened) => Ok(Box::new(opened)),
        None => Err(Failure(format!(
            "flow {}: no kind of traffic that this agent has",
            flow.number
        ))),
    }
}

/// Lets a socket's packets carry a flow's DiffServ code point.
///
/// # Errors
/// The kernel refuses.
fn set_dscp(socket: &impl AsFd, flow: &Flow) -> Result<(), Failure> {
    let tos = i32::from(flow.dscp) << 2;
    setsockopt(socket, sockopt::Ipv4Tos, &tos)
        .context(|| format!("DiffServ code point {}", flow.dscp))
}

/// A span in microseconds, as recordings keep them.
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
