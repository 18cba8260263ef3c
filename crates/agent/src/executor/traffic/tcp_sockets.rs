//! The sockets of a TCP flow: [`TcpSockets`]. An application uses them through [`SocketConnections`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;

use nix::errno::Errno;
use nix::libc::linger;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, connect, getsockopt, setsockopt, socket, sockopt,
};
use sojourn_traffic::{Id, Side, UNLIMITED};

use super::discard::Discard;
use super::greeting::Greeting;
use super::{Socket, Watch, is_for_later, set_dscp, set_priority};
use crate::executor::diag::{self, Diag};
use crate::executor::namespace::within;
use crate::executor::{Context, Failure};
use crate::job::{Flow, Tcp};

/// Bytes per read or write.
const BLOCK: usize = 128 << 10;

/// The sockets of a TCP flow: a listener, and both ends of each connection that has not ended.
pub struct TcpSockets {
    flow: Flow,
    tcp: Tcp,
    /// Whether nobody asks when data arrives at the receiving end.
    discards: bool,
    /// Which ends are on this machine: the sending, the receiving.
    here: [bool; 2],
    /// `None` if the end that listens is on another machine.
    listener: Option<TcpListener>,
    /// `None` if the sender is on another machine.
    diag: Option<Rc<Diag>>,
    opened: u32,
    /// The connection opened before the flow's start, until the application opens it.
    ahead: Option<Id>,
    open: BTreeMap<Id, Connection>,
    /// Retransmitted segments and payload bytes sent, over connections that have ended.
    past: (u64, u64),
    /// Payload bytes received in the direction of the flow.
    pub received: u64,
    block: Vec<u8>,
}

/// Both ends of a connection.
struct Connection {
    ends: [End; 2],
    /// The local port of the end that opened it.
    port: u16,
    greeting: Greeting,
    /// Whether its ECN negotiation was checked.
    checked: bool,
    retransmits: u64,
    sent: u64,
}

impl Connection {
    /// A connection without sockets.
    fn new(port: u16) -> Self {
        Self {
            ends: Default::default(),
            port,
            greeting: Greeting::NONE,
            checked: false,
            retransmits: 0,
            sent: 0,
        }
    }

    /// Writes as much to an end's socket as it accepts, the greeting first.
    fn flush(&mut self, side: Side, block: &[u8]) {
        let end = &mut self.ends[side as usize];
        if side == Side::Sending && !self.greeting.is_over() {
            if let Some(stream) = &mut end.stream {
                if self.greeting.advance(stream).is_err() {
                    return end.give_up();
                }
            }
        }
        if side == Side::Receiving || self.greeting.is_over() {
            end.flush(block);
        }
    }

    /// Counts bytes that were read at an end; returns how many of them belong to the application.
    fn count(&mut self, side: Side, mut arrived: u64) -> u64 {
        if side == Side::Receiving {
            arrived = self.greeting.strip(arrived);
        }
        self.ends[side as usize].received += arrived;
        arrived
    }

    /// How many of all bytes read at the receiving end are not counted yet.
    fn since_counted(&self, read: u64) -> u64 {
        let counted = self.ends[Side::Receiving as usize].received + self.greeting.received();
        read.saturating_sub(counted)
    }
}

/// One end of a connection.
#[derive(Default)]
struct End {
    stream: Option<TcpStream>,
    /// What reads from the socket in our place.
    discard: Option<Discard>,
    /// The connection was abandoned.
    is_gone: bool,
    /// Bytes not yet written to the socket.
    to_write: u64,
    received: u64,
    /// The application writes no more after these.
    closing: bool,
    has_shut_down: bool,
    peer_has_closed: bool,
}

impl End {
    const fn is_over(&self) -> bool {
        self.is_gone || (self.has_shut_down && self.peer_has_closed)
    }

    fn give_up(&mut self) {
        self.discard = None;
        self.stream = None;
        self.is_gone = true;
    }

    /// Aborts the connection at once: unsent data in the socket is discarded.
    fn abort(&mut self) {
        if let Some(stream) = &self.stream {
            let at_once = linger {
                l_onoff: 1,
                l_linger: 0,
            };
            // If it cannot be reset, it is closed nevertheless.
            let _ = setsockopt(stream, sockopt::Linger, &at_once);
        }
        self.give_up();
    }

    /// Reads as [`TcpSockets::read`]. Returns how much has arrived, and whether the peer has now closed or is gone.
    fn read(&mut self, block: &mut [u8], to_end: bool) -> (u64, bool) {
        let mut arrived = 0;
        while let Some(stream) = &mut self.stream {
            match stream.read(block) {
                Ok(0) => {
                    let is_over = !self.peer_has_closed;
                    self.peer_has_closed = true;
                    return (arrived, is_over);
                }
                Ok(length) => {
                    arrived += length as u64;
                    if length < BLOCK && !to_end {
                        break;
                    }
                }
                Err(error) if is_for_later(&error) => break,
                Err(_) => {
                    self.give_up();
                    return (arrived, true);
                }
            }
        }
        (arrived, false)
    }

    /// Writes as much to the socket as it accepts.
    fn flush(&mut self, block: &[u8]) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        while self.to_write > 0 {
            let most = self.to_write.min(BLOCK as u64) as usize;
            match stream.write(&block[..most]) {
                Ok(written) => {
                    if self.to_write != UNLIMITED {
                        self.to_write -= written as u64;
                    }
                    // The socket is full; an event follows when it accepts more.
                    if written < most {
                        break;
                    }
                }
                Err(error) if is_for_later(&error) => return,
                Err(_) => return self.give_up(),
            }
        }
        if self.closing && self.to_write == 0 && !self.has_shut_down {
            self.has_shut_down = true;
            if stream.shutdown(Shutdown::Write).is_err() {
                self.give_up();
            }
        }
    }
}

impl TcpSockets {
    /// No connections yet. The end that does not open them listens. `discards`: what arrives at the receiving end is only
    /// counted, by [`TcpSockets::count`].
    ///
    /// # Errors
    /// The kernel refuses, probably because of the congestion control.
    pub fn listen(
        flow: &Flow,
        tcp: &Tcp,
        discards: bool,
        (here, diag): ([bool; 2], Option<Rc<Diag>>),
        watch: &Watch<'_>,
    ) -> Result<Self, Failure> {
        let (host, side) = if flow.receiver_connects() {
            (&flow.sender, Side::Sending)
        } else {
            (&flow.receiver, Side::Receiving)
        };
        let open = || {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, flow.port()))?;
            listener.set_nonblocking(true)?;
            prepare(&listener, flow, tcp, side)?;
            watch.add(listener.as_fd(), Socket::Listener, EpollFlags::EPOLLIN)?;
            Ok(listener)
        };
        let listens = here[side as usize];
        let listener = listens.then(|| within(Some(host), open)).transpose()?;
        Ok(Self {
            flow: flow.clone(),
            tcp: tcp.clone(),
            discards,
            here,
            listener,
            diag,
            opened: 0,
            ahead: None,
            open: BTreeMap::new(),
            past: (0, 0),
            received: 0,
            block: vec![0; BLOCK],
        })
    }

    /// Whether what arrives at the receiving end is only counted.
    pub const fn discards(&self) -> bool {
        self.discards
    }

    /// True if the congestion control paces by itself. The kernel does not tell.
    pub fn paces(&self) -> bool {
        matches!(&*self.tcp.congestion_control, "bbr" | "bbr3" | "prague")
    }

    /// Whether the end that opens the connections is on this machine.
    pub fn can_open(&self) -> bool {
        self.here[self.opener() as usize]
    }

    /// The interface for an application.
    pub const fn connections<'a>(&'a mut self, watch: &'a Watch<'a>) -> SocketConnections<'a> {
        SocketConnections {
            sockets: self,
            watch,
            failure: None,
        }
    }

    /// The end that opens the connections: the same one for all connections of a flow.
    fn opener(&self) -> Side {
        if self.flow.receiver_connects() {
            Side::Receiving
        } else {
            Side::Sending
        }
    }

    /// Creates a socket at the end that opens the connections, and connects it.
    fn connect(&mut self, id: Id, watch: &Watch<'_>) -> Result<(), Failure> {
        let opener = self.opener();
        let host = match opener {
            Side::Sending => &self.flow.sender,
            Side::Receiving => &self.flow.receiver,
        };
        let connecting = || format!("flow {}: connecting", self.flow.number);
        let client = within(Some(host), || {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            socket(AddressFamily::Inet, SockType::Stream, flags, None).context(connecting)
        })?;
        prepare(&client, &self.flow, &self.tcp, opener)?;
        let to = SockaddrIn::from(SocketAddrV4::new(self.flow.address, self.flow.port()));
        match connect(client.as_raw_fd(), &to) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(error) => return Err(error).context(connecting),
        }
        let client = TcpStream::from(client);
        let port = client.local_addr().context(connecting)?.port();
        watch_end(watch, &client, id, opener, TO_READ_AND_WRITE)?;
        let mut connection = Connection::new(port);
        connection.ends[opener as usize].stream = Some(client);
        self.open.insert(id, connection);
        Ok(())
    }

    /// Accepts incoming connections.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn accept(&mut self, watch: &Watch<'_>) -> Result<(), Failure> {
        let side = match self.opener() {
            Side::Sending => Side::Receiving,
            Side::Receiving => Side::Sending,
        };
        while let Some((server, client)) = self.listener.as_ref().and_then(|of| of.accept().ok()) {
            set_priority(&server, &self.flow, side)?;
            if !self.can_open() {
                self.learn_of(client.port());
            }
            let of_client = |(_, connection): &(&Id, &mut Connection)| {
                connection.port == client.port() && connection.ends[side as usize].stream.is_none()
            };
            // `None` if its opener has aborted it.
            if let Some((id, connection)) = self.open.iter_mut().rev().find(of_client) {
                let end = &mut connection.ends[side as usize];
                if self.discards && side == Side::Receiving {
                    watch_end(watch, &server, *id, side, EpollFlags::EPOLLRDHUP)?;
                    let reading = || format!("flow {}: starting a reader", self.flow.number);
                    end.discard = Some(Discard::begin(&server).context(reading)?);
                } else {
                    server.set_nonblocking(true)?;
                    watch_end(watch, &server, *id, side, TO_READ_AND_WRITE)?;
                }
                end.stream = Some(server);
            }
        }
        Ok(())
    }

    /// Notes a connection that another machine has opened.
    fn learn_of(&mut self, port: u16) {
        let id = self.next_id();
        let is_greeted = id == Id(0) && self.flow.opens_ns.is_some();
        let mut connection = Connection::new(port);
        if is_greeted {
            connection.greeting = Greeting::to_come();
        }
        self.open.insert(id, connection);
    }

    /// Opens the connection before the flow's start; the application opens it later.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn open_ahead(&mut self, watch: &Watch<'_>) -> Result<(), Failure> {
        let id = self.next_id();
        self.connect(id, watch)?;
        if let Some(connection) = self.open.get_mut(&id) {
            connection.greeting = Greeting::ahead();
        }
        self.ahead = Some(id);
        Ok(())
    }

    const fn next_id(&mut self) -> Id {
        let id = Id(self.opened);
        self.opened += 1;
        id
    }

    /// Writes as much to an end's socket as it accepts.
    pub fn flush(&mut self, id: Id, side: Side) {
        if let Some(connection) = self.open.get_mut(&id) {
            connection.flush(side, &self.block);
        }
    }

    /// Reads the data that has arrived at an end. Returns false if there is none. An end whose peer has closed closes
    /// as well. `to_end`: read until nothing is left, since the peer may have closed; otherwise a read that does not
    /// fill the block is the last, and an event follows when more arrives.
    ///
    /// # Errors
    /// TCP_INFO cannot be read.
    pub fn read(&mut self, id: Id, side: Side, to_end: bool) -> Result<bool, Failure> {
        let Some(connection) = self.open.get_mut(&id) else {
            return Ok(false);
        };
        let end = &mut connection.ends[side as usize];
        let (arrived, is_over) = match end.discard.take() {
            Some(discard) if to_end => {
                end.peer_has_closed = true;
                (connection.since_counted(discard.finish()), true)
            }
            Some(discard) => {
                end.discard = Some(discard);
                return Ok(false);
            }
            None => end.read(&mut self.block, to_end),
        };
        let arrived = connection.count(side, arrived);
        if side == Side::Receiving {
            self.received += arrived;
        }
        if is_over {
            self.look()?;
            if let Some(connection) = self.open.get_mut(&id) {
                connection.ends[side as usize].closing = true;
                connection.flush(side, &self.block);
            }
        }
        Ok(arrived > 0)
    }

    /// Counts what has been discarded so far, according to TCP_INFO of all connections of the receiver's host; `at_end`: for
    /// the last time.
    pub fn count(&mut self, all: &[diag::Connection], at_end: bool) {
        let ours = self.flow.port();
        for connection in self.open.values_mut() {
            let ports = (ours, connection.port);
            let is_own = |of: &&diag::Connection| (of.local_port, of.remote_port) == ports;
            let end = &mut connection.ends[Side::Receiving as usize];
            let read = match (&end.discard, all.iter().find(is_own)) {
                (None, _) => continue,
                (Some(_), Some(own)) => own.read,
                // It was reset, and the event is not served yet, or will not be.
                (Some(_), None) if at_end => end.discard.take().map_or(0, Discard::end),
                (Some(_), None) => continue,
            };
            let arrived = connection.since_counted(read);
            self.received += connection.count(Side::Receiving, arrived);
        }
    }

    /// Removes a connection that has ended, and returns its id.
    pub fn take_ended(&mut self) -> Option<Id> {
        let opener = self.opener() as usize;
        let here = self.here;
        let is_over = |connection: &Connection| {
            let mut ends = connection.ends.iter().zip(here);
            // A refused connection has no other side.
            let refused =
                connection.ends[opener].is_gone && connection.ends[1 - opener].stream.is_none();
            refused || ends.all(|(end, is_here)| !is_here || end.is_over())
        };
        let (id, _) = self
            .open
            .iter()
            .find(|(_, connection)| is_over(connection))?;
        let id = *id;
        let connection = self.open.remove(&id)?;
        self.past.0 += connection.retransmits;
        self.past.1 += connection.sent;
        Some(id)
    }

    /// Finds the open connections in TCP_INFO of all connections of the sender's host, notes their counters, and returns
    /// them.
    ///
    /// # Errors
    /// A connection is not as the job requires.
    pub fn observe(&mut self, all: &[diag::Connection]) -> Result<Vec<diag::Connection>, Failure> {
        let mut seen = Vec::new();
        let port = self.flow.port();
        for connection in self.open.values_mut() {
            let ports = if self.flow.receiver_connects() {
                (port, connection.port)
            } else {
                (connection.port, port)
            };
            let own = all
                .iter()
                .find(|of| (of.local_port, of.remote_port) == ports);
            let Some(own) = own else {
                continue;
            };
            // A lost SYN is retransmitted without ECN, if the flow allows it.
            let fell_back = self.tcp.ecn_fallback && !own.ecn && own.retransmits > 0;
            if !connection.checked && own.ecn != self.tcp.ecn && !fell_back {
                let (is, wanted) = (own.ecn, self.tcp.ecn);
                let number = self.flow.number;
                return Err(Failure(format!(
                    "flow {number}: ECN negotiated: {is}; wanted: {wanted}"
                )));
            }
            connection.checked = true;
            connection.retransmits = own.retransmits;
            if connection.greeting.is_over() {
                connection.sent = own.sent.saturating_sub(connection.greeting.sent);
                seen.push(*own);
            }
        }
        Ok(seen)
    }

    /// Finds the connections as [`Self::observe`] does, while the kernel still knows them.
    fn look(&mut self) -> Result<(), Failure> {
        match &self.diag {
            Some(diag) => {
                let now = diag.connections()?;
                self.observe(&now).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Retransmitted segments and payload bytes sent, over all connections.
    pub fn sent(&self) -> (u64, u64) {
        self.open
            .values()
            .fold(self.past, |(retransmits, sent), one| {
                (retransmits + one.retransmits, sent + one.sent)
            })
    }
}

/// What an end is watched for that we read from and write to.
const TO_READ_AND_WRITE: EpollFlags = EpollFlags::EPOLLOUT
    .union(EpollFlags::EPOLLIN)
    .union(EpollFlags::EPOLLRDHUP);

/// Watches an end edge-triggered, because a socket with nothing left to write is always writable.
fn watch_end(
    watch: &Watch<'_>,
    stream: &TcpStream,
    id: Id,
    side: Side,
    interest: EpollFlags,
) -> Result<(), Failure> {
    let interest = interest | EpollFlags::EPOLLET;
    watch.add(stream.as_fd(), Socket::End(id, side), interest)
}

/// Sets a socket's options before it connects or listens.
fn prepare(socket: &impl AsFd, flow: &Flow, tcp: &Tcp, side: Side) -> Result<(), Failure> {
    set_congestion_control(socket, &tcp.congestion_control)?;
    set_dscp(socket, flow, side)?;
    if let Some(segment) = &tcp.max_segment {
        setsockopt(socket, sockopt::TcpMaxSeg, segment)
            .context(|| format!("flow {}: segments of {segment} B", flow.number))?;
    }
    Ok(())
}

/// True if the kernel has a congestion control.
pub fn has_congestion_control(name: &str) -> bool {
    let flags = SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Inet, SockType::Stream, flags, None)
        .is_ok_and(|socket| set_congestion_control(&socket, name).is_ok())
}

fn set_congestion_control(socket: &impl AsFd, name: &str) -> Result<(), Failure> {
    let wanted = OsString::from(name);
    let setting = || format!("congestion control \"{name}\"");
    match setsockopt(socket, sockopt::TcpCongestion, &wanted) {
        Err(Errno::ENOENT) => Err(Failure(format!(
            "this kernel has no congestion control \"{name}\""
        ))),
        done => done.context(setting),
    }?;
    let now = getsockopt(socket, sockopt::TcpCongestion).context(setting)?;
    let now = now.to_string_lossy();
    if now.trim_end_matches('\0') == name {
        return Ok(());
    }
    Err(Failure(format!(
        "congestion control is {now} after it was set to {name}"
    )))
}

/// A flow's sockets as [`sojourn_traffic::Connections`], the interface for applications. The trait's methods return no
/// errors: [`SocketConnections::outcome`] reports the first one afterwards.
pub struct SocketConnections<'a> {
    sockets: &'a mut TcpSockets,
    watch: &'a Watch<'a>,
    failure: Option<Failure>,
}

impl SocketConnections<'_> {
    /// The first error, if there was one.
    ///
    /// # Errors
    /// The kernel refused a connection.
    pub fn outcome(self) -> Result<(), Failure> {
        self.failure.map_or(Ok(()), Err)
    }

    fn note(&mut self, outcome: Result<(), Failure>) {
        if let Err(failure) = outcome {
            self.failure.get_or_insert(failure);
        }
    }
}

impl sojourn_traffic::Connections for SocketConnections<'_> {
    /// The opener is not needed: it follows from the flow's kind, by `TcpSockets::opener`.
    fn open(&mut self, _opener: Side) -> Id {
        if let Some(id) = self.sockets.ahead.take() {
            if let Some(connection) = self.sockets.open.get_mut(&id) {
                connection.greeting.start();
            }
            return id;
        }
        let id = self.sockets.next_id();
        let outcome = self.sockets.connect(id, self.watch);
        self.note(outcome);
        id
    }

    fn write(&mut self, id: Id, side: Side, bytes: u64) {
        if let Some(connection) = self.sockets.open.get_mut(&id) {
            let end = &mut connection.ends[side as usize];
            end.to_write = end.to_write.saturating_add(bytes);
            connection.flush(side, &self.sockets.block);
        }
    }

    /// The bytes that the socket has not accepted yet. This does not implement a send buffer of a given size, so that
    /// setting is refused.
    fn buffered(&mut self, id: Id, side: Side) -> u64 {
        let connection = self.sockets.open.get(&id);
        connection.map_or(0, |connection| connection.ends[side as usize].to_write)
    }

    fn close(&mut self, id: Id, side: Side) {
        let Some(connection) = self.sockets.open.get_mut(&id) else {
            return;
        };
        let end = &mut connection.ends[side as usize];
        if end.to_write != UNLIMITED {
            end.closing = true;
            connection.flush(side, &self.sockets.block);
            return;
        }
        // Data in transit arrives; unsent data is discarded.
        let outcome = self.sockets.look();
        self.note(outcome);
        if let Some(connection) = self.sockets.open.get_mut(&id) {
            connection.ends[side as usize].abort();
        }
    }

    fn received(&mut self, id: Id, side: Side) -> u64 {
        self.sockets
            .open
            .get(&id)
            .map_or(0, |connection| connection.ends[side as usize].received)
    }
}
