//! The loop: reads packets, lets the network act, writes packets, waits.

use std::io::Result;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, clock_gettime};
use sojourn_experiment::cells::Cell;
use sojourn_path::{Hosts, Route};
use sojourn_units::{Duration, Time};

use crate::gso::HEADER;
use crate::ip::{Above, ETHERNET, Headers, unpadded};
use crate::lateness::Lateness;
use crate::network::{Network, QueueState, states};
use crate::packet::{Frame, Packet, arrived, packet};
use crate::port::Port;
use crate::watch::Watch;
use crate::wire::Came;

/// The largest packet of IP, with the headers before it.
const LARGEST: usize = (1 << 16) + HEADER + ETHERNET;
/// Packets read from a device before the others have their turn.
const PORTION: usize = 16;
/// Turns between two looks at the caller's file, if there is always something to do.
const TURNS: u32 = 64;

/// Counts from an instant of the monotonic clock on.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero_ns: u64,
}

impl Clock {
    /// A clock that begins now.
    ///
    /// # Errors
    /// There is no monotonic clock.
    pub fn begin() -> Result<Self> {
        Ok(Self {
            zero_ns: monotonic()?,
        })
    }

    /// A clock that begins at a time of the monotonic clock.
    pub const fn since(zero_ns: u64) -> Self {
        Self { zero_ns }
    }

    /// The time; zero before it begins.
    ///
    /// # Errors
    /// As [`Clock::begin`].
    pub fn now(self) -> Result<Time> {
        Ok(Time::from_nanos(monotonic()?.saturating_sub(self.zero_ns)))
    }
}

/// The CPU time of the calling thread.
///
/// # Errors
/// There is no such clock.
pub fn cpu_time() -> Result<Duration> {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(Duration::from_nanos(used.num_nanoseconds() as u64))
}

fn monotonic() -> Result<u64> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.num_nanoseconds() as u64)
}

/// Decides where packets go, and counts them.
pub trait Ends {
    /// The flow of a packet that was read from a port, whether it returns to the sender of the flow's data, its route and the
    /// port by which it leaves; `None`: it belongs to nothing, and is not carried.
    fn came(
        &mut self,
        port: usize,
        headers: &Headers,
        now: Time,
    ) -> Option<(u32, bool, Route, u16)>;

    /// The port by which frames leave that pass no queue, since they are not IP or for many; `None`: they are not carried.
    fn beside(&self, _port: usize) -> Option<usize> {
        None
    }

    /// A packet was delivered at an instant.
    fn delivered(&mut self, _frame: &Frame, _now: Time) {}

    /// A bin of the series ends.
    fn end_bin(&mut self) {}
}

/// A network between devices.
pub struct Datapath<E> {
    /// The network.
    pub network: Network,
    /// Where packets go.
    pub ends: E,
    outside: Outside,
    /// Bytes that the hosts' link adds to a packet.
    overhead: u32,
    buffer: Vec<u8>,
    bins: Option<Bins>,
    /// When the warm-up ends, unless it has.
    warmup: Option<Time>,
}

/// The devices, and how late packets are written to them.
struct Outside {
    ports: Vec<Port>,
    clock: Clock,
    lateness: Lateness,
    failed: Option<std::io::Error>,
}

/// The states of the queues at the end of every bin of a series.
struct Bins {
    width: Duration,
    next: Time,
    states: Vec<Vec<QueueState>>,
}

/// Hands packets that arrive to their devices.
struct Delivery<'a, E> {
    outside: &'a mut Outside,
    ends: &'a mut E,
}

impl<E: Ends> Hosts<Packet, Watch, Cell<Packet>> for Delivery<'_, E> {
    fn deliver(&mut self, mut packet: Packet, now: Time, network: &mut Network) {
        network.observer.on_delivery(&mut packet, now);
        let outside = &mut *self.outside;
        let late = outside.clock.now().map(|at| at.saturating_since(now));
        let port = usize::from(packet.payload.port);
        let (link, checksum) = (packet.payload.link, packet.payload.checksum);
        let bytes = arrived(&mut packet);
        let written = late.and_then(|late| {
            outside.lateness.note(late);
            outside.ports[port].write(&link, bytes, checksum)
        });
        if let Err(error) = written {
            outside.failed.get_or_insert(error);
        }
        self.ends.delivered(&packet.payload, now);
    }
}

impl<E: Ends> Datapath<E> {
    /// A network between devices. `measured`: the warm-up, and the width of the bins of a series, if there is one.
    pub fn new(
        network: Network,
        ends: E,
        ports: Vec<Port>,
        clock: Clock,
        overhead: u32,
        (warmup, series): (Duration, Option<Duration>),
    ) -> Self {
        Self {
            network,
            ends,
            outside: Outside {
                ports,
                clock,
                lateness: Lateness::new(),
                failed: None,
            },
            overhead,
            buffer: vec![0; LARGEST],
            bins: series.map(|width| Bins {
                width,
                next: Time::ZERO + width,
                states: Vec::new(),
            }),
            warmup: Some(Time::ZERO + warmup),
        }
    }

    /// Carries packets until `control` can be read or is closed, or until `end`. Returns true at the end.
    ///
    /// # Errors
    /// A device was removed, or the kernel refuses an operation.
    pub fn run(&mut self, control: BorrowedFd<'_>, end: Time) -> Result<bool> {
        let mut turns = 0;
        loop {
            let now = self.outside.clock.now()?;
            if now >= end {
                self.act(end)?;
                return Ok(true);
            }
            let busy = self.advance(now)?;
            turns += 1;
            let wait = match busy {
                true if turns % TURNS != 0 => continue,
                true => Some(Duration::ZERO),
                false => self.wait(end)?,
            };
            if self.poll(control, wait)? {
                return Ok(false);
            }
        }
    }

    /// Lets the network act up to `now`, and reads what has come. Returns true if something was read.
    fn advance(&mut self, now: Time) -> Result<bool> {
        self.act(now)?;
        let mut has_read = false;
        for port in 0..self.outside.ports.len() {
            for _ in 0..PORTION {
                let Some(came) = self.outside.ports[port].read(&mut self.buffer)? else {
                    break;
                };
                has_read = true;
                let now = self.outside.clock.now()?;
                // What is due before the packet came happens first.
                self.act(now)?;
                self.take(port, came, now)?;
            }
        }
        Ok(has_read)
    }

    /// Sends what was read into the network.
    fn take(&mut self, port: usize, came: Came, now: Time) -> Result<()> {
        let Came { meta, end, link } = came;
        let frame = self.buffer.get(HEADER..end).unwrap_or_default();
        let above = Above::of(&link);
        if above != Above::Ip || Headers::read(frame).is_some_and(|headers| headers.is_multicast())
        {
            return match self.ends.beside(port).filter(|_| above != Above::Tag) {
                Some(to) => self.outside.ports[to].write(&link, frame, meta.checksum),
                None => Ok(()),
            };
        }
        meta.cut(unpadded(frame), |bytes| {
            let Some(headers) = Headers::read(bytes) else {
                return;
            };
            if let Some((flow, returning, route, to)) = self.ends.came(port, &headers, now) {
                let whole = (link, bytes, meta.checksum);
                let packet = packet(whole, &headers, (flow, returning, to), self.overhead, now);
                self.network.send(packet, route, now);
            }
        });
        Ok(())
    }

    /// Lets the network act at every instant up to `now`.
    fn act(&mut self, now: Time) -> Result<()> {
        loop {
            let (source, at) = self.network.next_before(Time::MAX);
            let at = if source.is_some() { at } else { Time::MAX };
            if let Some(end) = self.warmup.take_if(|end| *end <= now.min(at)) {
                for cell in self.network.media_mut() {
                    cell.mark_warmup(end);
                }
            }
            if let Some(bins) = self.bins.as_mut().filter(|bins| bins.next <= now.min(at)) {
                bins.next += bins.width;
                bins.states.push(states(&self.network));
                self.ends.end_bin();
                continue;
            }
            let Some(source) = source.filter(|_| at <= now) else {
                break;
            };
            let mut delivery = Delivery {
                outside: &mut self.outside,
                ends: &mut self.ends,
            };
            self.network.act(source, at, &mut delivery);
        }
        self.outside.failed.take().map_or(Ok(()), Err)
    }

    /// The time until something is due.
    fn wait(&self, end: Time) -> Result<Option<Duration>> {
        let due = self.network.next_event().unwrap_or(Time::MAX).min(end);
        let due = self.bins.as_ref().map_or(due, |bins| bins.next.min(due));
        let now = self.outside.clock.now()?;
        Ok((due < Time::MAX).then(|| due.saturating_since(now)))
    }

    /// Waits for a packet, for so long. Returns true if there is something on `control`.
    fn poll(&self, control: BorrowedFd<'_>, wait: Option<Duration>) -> Result<bool> {
        let files = self.outside.ports.iter().map(AsFd::as_fd);
        let mut files: Vec<PollFd<'_>> = [control]
            .into_iter()
            .chain(files)
            .map(|file| PollFd::new(file, PollFlags::POLLIN))
            .collect();
        let wait = wait.map(|wait| TimeSpec::nanoseconds(wait.as_nanos().min(1 << 60) as i64));
        match ppoll(&mut files, wait, None) {
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
            Ok(_) => Ok(files[0].revents().is_some_and(|found| !found.is_empty())),
        }
    }

    /// How late packets were delivered so far.
    pub fn lateness(&self) -> crate::lateness::Figures {
        self.outside.lateness.figures()
    }

    /// By bin: the states of the queues at its end, if there is a series.
    pub fn take_bins(&mut self) -> Vec<Vec<QueueState>> {
        self.bins.take().map_or(Vec::new(), |bins| bins.states)
    }
}
