//! TCP flows: bulk transfers, and files one after another, each on a connection of its own.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;

use nix::errno::Errno;
use nix::libc::linger;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, connect, getsockopt, setsockopt, socket, sockopt,
};
use sojourn_experiment::model::{Sizes, exponential};
use sojourn_experiment::streams::Stream;
use sojourn_units::Duration;

use super::{Side, Traffic, Watch, micros, set_dscp};
use crate::carry_out::diag::{Connection, Diag};
use crate::carry_out::namespace::within;
use crate::carry_out::{Context, Failure};
use crate::job::{Flow, Tcp};
use crate::recording::FlowFigures;

/// Bytes written or read at a time.
const BLOCK: usize = 128 << 10;

/// The files of a flow.
pub struct Files {
    sizes: Sizes,
    left: Option<u64>,
    think_ns: u64,
    draws: Stream,
}

impl Files {
    /// Draws come from the stream that the simulator draws from.
    pub fn new(seed: u64, flow: u32, sizes: Sizes, left: Option<u64>, think_ns: u64) -> Self {
        Self {
            sizes,
            left,
            think_ns,
            draws: Stream::new(seed, &format!("flow/{flow}/files")),
        }
    }

    fn next_size(&mut self) -> u64 {
        self.left = self.left.map(|left| left - 1);
        self.sizes.draw(&mut self.draws)
    }

    fn pause_ns(&mut self) -> u64 {
        exponential(Duration::from_nanos(self.think_ns), &mut self.draws).as_nanos()
    }
}

/// The connection that is open.
struct Open {
    sender: TcpStream,
    port: u16,
    /// Bytes still to be written; `None`: without end.
    to_write: Option<u64>,
    receiver: Option<TcpStream>,
    /// The file's size, and what of it has arrived.
    size: Option<u64>,
    arrived: u64,
    began_ns: u64,
    checked: bool,
    retransmits: u64,
    sent: u64,
}

/// A TCP flow.
pub struct TcpFlow {
    flow: Flow,
    tcp: Tcp,
    files: Option<Files>,
    listener: TcpListener,
    open: Option<Open>,
    /// When to open the next connection.
    open_at: Option<u64>,
    stopped: bool,
    warmup_ns: u64,
    diag: Rc<Diag>,
    /// Of connections that are over.
    past_retransmits: u64,
    past_sent: u64,
    figures: FlowFigures,
    block: Vec<u8>,
}

impl TcpFlow {
    /// A flow of files, or without `files` a bulk transfer. `diag` asks its sender's host.
    ///
    /// # Errors
    /// The kernel refuses, most likely the congestion control.
    pub fn open(
        flow: &Flow,
        tcp: &Tcp,
        files: Option<Files>,
        warmup_ns: u64,
        diag: Rc<Diag>,
        watch: &Watch<'_>,
    ) -> Result<Self, Failure> {
        let listener = within(Some(&flow.receiver), || {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, flow.port()))?;
            listener.set_nonblocking(true)?;
            set_congestion_control(&listener, &tcp.congestion_control)?;
            set_dscp(&listener, flow)?;
            Ok(listener)
        })?;
        watch.add(listener.as_fd(), Side::Listener, EpollFlags::EPOLLIN)?;
        Ok(Self {
            flow: flow.clone(),
            tcp: tcp.clone(),
            files,
            listener,
            open: None,
            open_at: Some(flow.start_ns),
            stopped: false,
            warmup_ns,
            diag,
            past_retransmits: 0,
            past_sent: 0,
            figures: FlowFigures::default(),
            block: vec![0; BLOCK],
        })
    }

    fn connect(&mut self, now_ns: u64, watch: &Watch<'_>) -> Result<(), Failure> {
        let size = self.files.as_mut().map(Files::next_size);
        let connecting = || format!("flow {}: connecting", self.flow.number);
        let sender = within(Some(&self.flow.sender), || {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            socket(AddressFamily::Inet, SockType::Stream, flags, None).context(connecting)
        })?;
        set_congestion_control(&sender, &self.tcp.congestion_control)?;
        set_dscp(&sender, &self.flow)?;
        if let Some(segment) = &self.tcp.max_segment {
            setsockopt(&sender, sockopt::TcpMaxSeg, segment).context(connecting)?;
        }
        let to = SockaddrIn::from(SocketAddrV4::new(self.flow.address, self.flow.port()));
        match connect(sender.as_raw_fd(), &to) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(error) => return Err(error).context(connecting),
        }
        let sender = TcpStream::from(sender);
        // By edge: a socket with nothing left to write is always writable.
        let interest = EpollFlags::EPOLLOUT
            | EpollFlags::EPOLLIN
            | EpollFlags::EPOLLRDHUP
            | EpollFlags::EPOLLET;
        watch.add(sender.as_fd(), Side::Sender, interest)?;
        self.open = Some(Open {
            port: sender.local_addr().context(connecting)?.port(),
            sender,
            to_write: size,
            receiver: None,
            size,
            arrived: 0,
            began_ns: now_ns,
            checked: false,
            retransmits: 0,
            sent: 0,
        });
        Ok(())
    }

    /// Gives the connection up at once: what is left in its buffer is not sent.
    fn abort(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let at_once = linger {
            l_onoff: 1,
            l_linger: 0,
        };
        // A connection that cannot be reset is closed all the same.
        let _ = setsockopt(&open.sender, sockopt::Linger, &at_once);
        self.past_retransmits += open.retransmits;
        self.past_sent += open.sent;
    }

    fn write(&mut self) -> Result<(), Failure> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        loop {
            let most = open
                .to_write
                .map_or(BLOCK, |left| left.min(BLOCK as u64) as usize);
            if most == 0 {
                return Ok(());
            }
            match open.sender.write(&self.block[..most]) {
                Ok(written) => {
                    open.to_write = open.to_write.map(|left| left - written as u64);
                    if open.to_write == Some(0) {
                        return open
                            .sender
                            .shutdown(Shutdown::Write)
                            .context(|| "closing a file".into());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    return Err(error).context(|| format!("flow {}: sending", self.flow.number));
                }
            }
        }
    }

    fn accept(&mut self, watch: &Watch<'_>) -> Result<(), Failure> {
        while let Ok((receiver, _)) = self.listener.accept() {
            receiver.set_nonblocking(true)?;
            watch.add(receiver.as_fd(), Side::Receiver, EpollFlags::EPOLLIN)?;
            if let Some(open) = &mut self.open {
                open.receiver = Some(receiver);
            }
        }
        Ok(())
    }

    /// Takes what has arrived. A file that is whole is over, and so is its connection.
    fn read(&mut self, now_ns: u64) -> Result<(), Failure> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let Some(receiver) = &mut open.receiver else {
            return Ok(());
        };
        loop {
            match receiver.read(&mut self.block) {
                Ok(0) => break,
                Ok(length) => {
                    open.arrived += length as u64;
                    self.figures.received += length as u64;
                    // Most reads take one segment: nothing more is there.
                    if length < BLOCK {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => {
                    return Err(error).context(|| format!("flow {}: receiving", self.flow.number));
                }
            }
        }
        if open.size == Some(open.arrived) {
            self.complete_file(now_ns)?;
        }
        Ok(())
    }

    /// The file has arrived: its receiver closes, and the sender will see that.
    fn complete_file(&mut self, now_ns: u64) -> Result<(), Failure> {
        let connections = self.diag.connections()?;
        self.observe(&connections, false)?;
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        open.receiver = None;
        if now_ns >= self.warmup_ns {
            self.figures
                .completions_us
                .push(micros(now_ns - open.began_ns));
        }
        Ok(())
    }

    /// Once both sides have closed, the next file follows after a pause.
    fn finish_connection(&mut self, now_ns: u64) {
        let Some(open) = &mut self.open else {
            return;
        };
        let complete = open.size == Some(open.arrived);
        if !complete || !matches!(open.sender.read(&mut [0]), Ok(0)) {
            return;
        }
        self.past_retransmits += open.retransmits;
        self.past_sent += open.sent;
        self.open = None;
        if let Some(files) = &mut self.files {
            let pause = files.pause_ns();
            if files.left != Some(0) && !self.stopped {
                self.open_at = Some(now_ns + pause);
            }
        }
    }
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

impl Traffic for TcpFlow {
    fn next_timer(&self) -> Option<u64> {
        let stop = (!self.stopped).then_some(self.flow.stop_ns);
        [self.open_at, stop].into_iter().flatten().min()
    }

    fn on_timer(&mut self, now_ns: u64, watch: &Watch<'_>) -> Result<(), Failure> {
        if !self.stopped && now_ns >= self.flow.stop_ns {
            self.stopped = true;
            self.open_at = None;
            self.abort();
        }
        if self.open_at.is_some_and(|due| due <= now_ns) {
            self.open_at = None;
            self.connect(now_ns, watch)?;
        }
        Ok(())
    }

    fn on_ready(&mut self, side: Side, now_ns: u64, watch: &Watch<'_>) -> Result<(), Failure> {
        match side {
            Side::Sender => {
                self.write()?;
                self.finish_connection(now_ns);
                Ok(())
            }
            Side::Listener => self.accept(watch),
            Side::Receiver => self.read(now_ns),
        }
    }

    fn figures(&mut self) -> &mut FlowFigures {
        let (retransmits, sent) = self
            .open
            .as_ref()
            .map_or((0, 0), |open| (open.retransmits, open.sent));
        self.figures.retransmits = self.past_retransmits + retransmits;
        self.figures.sent = self.past_sent + sent;
        &mut self.figures
    }

    fn observe(
        &mut self,
        connections: &[Connection],
        measuring: bool,
    ) -> Result<Option<u32>, Failure> {
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        let ports = (open.port, self.flow.port());
        let own = connections
            .iter()
            .find(|of| (of.local_port, of.remote_port) == ports);
        let Some(own) = own else {
            return Ok(None);
        };
        if !open.checked && own.ecn != self.tcp.ecn {
            let (is, wanted) = (own.ecn, self.tcp.ecn);
            let number = self.flow.number;
            return Err(Failure(format!(
                "flow {number}: ECN negotiated: {is}; wanted: {wanted}"
            )));
        }
        open.checked = true;
        open.retransmits = own.retransmits;
        open.sent = own.sent;
        if measuring && own.rtt_us > 0 {
            self.figures.round_trips_us.push(own.rtt_us);
        }
        Ok(Some(own.cwnd))
    }

    fn is_tcp(&self) -> bool {
        true
    }
}
