//! The flows of a job over real sockets: a file per kind of traffic.

mod datagrams;
mod ping;
mod tcp;

use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::socket::{setsockopt, sockopt};

use datagrams::Datagrams;
use ping::Ping;
use tcp::{Files, TcpFlow};

use super::diag::{Connection, Diag};
use super::{Context, Failure};
use crate::job::{Flow, FlowKind};
use crate::recording::FlowFigures;

/// Which of a flow's sockets something happened at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The sender of data.
    Sender,
    /// The receiver of data.
    Receiver,
    /// The receiver's listening socket.
    Listener,
}

const SIDES: [Side; 3] = [Side::Sender, Side::Receiver, Side::Listener];

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
        side: Side,
        interest: EpollFlags,
    ) -> Result<(), Failure> {
        let token = (self.flow * SIDES.len() + side as usize) as u64;
        self.epoll
            .add(socket, EpollEvent::new(interest, token))
            .context(|| "waiting for a socket".into())
    }

    /// The flow and side that an event is of.
    pub fn origin(token: u64) -> (usize, Side) {
        let token = token as usize;
        (token / SIDES.len(), SIDES[token % SIDES.len()])
    }
}

/// A flow under way. Instants are nanoseconds since the run began.
pub trait Traffic {
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
    fn on_ready(&mut self, side: Side, now_ns: u64, watch: &Watch<'_>) -> Result<(), Failure>;

    /// Its figures so far.
    fn figures(&mut self) -> &mut FlowFigures;

    /// Takes note of its connection among those of the sender's host; returns the window.
    ///
    /// # Errors
    /// The connection is not what the job asked for.
    fn observe(
        &mut self,
        _connections: &[Connection],
        _measuring: bool,
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
    Ok(match &flow.kind {
        FlowKind::Bulk(tcp) => Box::new(TcpFlow::open(flow, tcp, None, warmup_ns, diag, watch)?),
        FlowKind::Files {
            tcp,
            sizes,
            count,
            think_ns,
        } => {
            let files = Files::new(seed, flow.number, sizes.clone(), *count, *think_ns);
            Box::new(TcpFlow::open(
                flow,
                tcp,
                Some(files),
                warmup_ns,
                diag,
                watch,
            )?)
        }
        FlowKind::Datagrams {
            payload,
            interval_ns,
        } => Box::new(Datagrams::open(
            flow,
            *payload,
            *interval_ns,
            warmup_ns,
            watch,
        )?),
        FlowKind::Ping {
            interval_ns,
            payload,
        } => Box::new(Ping::open(flow, *interval_ns, *payload, warmup_ns, watch)?),
    })
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
