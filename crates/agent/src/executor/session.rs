//! The run: one loop in which flows, samplers and changes of rate act when they are due.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::fd::AsFd;
use std::rc::Rc;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::clock::{Clock, monotonic, on_a_tick};
use super::diag::Diag;
use super::link::{Link, index};
use super::load::Load;
use super::packets::settle;
use super::tap::Tap;
use super::tracing::Tracing;
use super::traffic::{Ready, Traffic, Watch, open};
use super::{Context, Failure};
use crate::disciplines::{Counters, counters};
use crate::job::{Flow, Job, ObservedQueue};
use crate::recording::{QueueFigures, Recording};
use sojourn_experiment::model::Kind;
use sojourn_measure::series::SenderState;

/// Time from the end of building to the start of the run, in which the kernel completes deferred work.
const SETTLE_NS: u64 = 500_000_000;
/// Interval between two reads of TCP_INFO.
const SAMPLE_NS: u64 = 100_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// The most bulk flows whose receivers read in threads of their own. Creating a thread takes longer the more there are: in
/// User-Mode Linux with ptrace a thousand take 20 s, more than they save.
const MOST_READERS: usize = 256;
/// Tokens of the timer and of the signals.
const TIMER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;

/// The signals that end a run early. A program must block them; the run then notices them and cleans up.
pub fn interrupts() -> SigSet {
    SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM])
}

/// An event at fixed intervals.
struct Every {
    interval_ns: u64,
    next_ns: u64,
}

impl Every {
    const fn new(interval_ns: u64) -> Self {
        Self {
            interval_ns,
            next_ns: interval_ns,
        }
    }

    /// True once per interval, when the event is due.
    const fn is_due(&mut self, now_ns: u64) -> bool {
        let due = self.next_ns <= now_ns;
        if due {
            self.next_ns += self.interval_ns;
        }
        due
    }
}

/// By host: its netlink socket for TCP_INFO, and flows.
type Hosts = BTreeMap<String, (Rc<Diag>, Vec<usize>)>;

/// The entry of a host.
fn entry<'a>(hosts: &'a mut Hosts, host: &str) -> Result<&'a mut (Rc<Diag>, Vec<usize>), Failure> {
    Ok(match hosts.entry(host.to_owned()) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => new.insert((Rc::new(Diag::open(host)?), Vec::new())),
    })
}

/// A run in progress.
struct Session<'a> {
    job: &'a Job,
    epoll: Epoll,
    timer: TimerFd,
    /// When the timer fires; `None` once it has.
    timer_at: Option<i64>,
    /// Kept open while it is polled.
    _signals: SignalFd,
    clock: Clock,
    flows: Vec<Box<dyn Traffic>>,
    /// The sending hosts, with their TCP flows.
    senders: Hosts,
    /// The receiving hosts, with their flows that must be counted.
    receivers: Hosts,
    /// By flow, the state of its senders when they were last observed.
    states: Vec<Option<SenderState>>,
    shapers: Vec<Shaper<'a>>,
    /// Of the kernel's queues, if they are observed.
    tracing: Option<Tracing>,
    taps: Vec<Tap>,
    /// Whether the taps hold packets that have not been read yet.
    behind: bool,
    load: Load,
    sample: Every,
    second: Every,
    bin: Option<Every>,
    warmup_done: bool,
    /// What is left of [`Job::stops`].
    stops: Vec<(u64, usize)>,
}

/// A queue's shaper and discipline, whose rate is changed and whose counters are read.
struct Shaper<'a> {
    queue: &'a ObservedQueue,
    link: Link,
    /// The device's index.
    device: u32,
    changes_done: usize,
    /// The counters at the end of each bin so far.
    series: Vec<Counters>,
}

impl<'a> Shaper<'a> {
    fn open(queue: &'a ObservedQueue) -> Result<Self, Failure> {
        let namespace = Some(queue.namespace.as_str());
        Ok(Self {
            queue,
            link: Link::open(namespace)?,
            device: index(namespace, &queue.device)?,
            changes_done: 0,
            series: Vec::new(),
        })
    }

    /// Makes the changes of the rate that are due.
    fn change_rate(&mut self, now_ns: u64) -> Result<(), Failure> {
        while let Some((at_ns, class)) = self.queue.rate_changes.get(self.changes_done) {
            if *at_ns > now_ns {
                break;
            }
            self.link.change(Some(&self.queue.namespace), class)?;
            self.changes_done += 1;
        }
        Ok(())
    }

    fn counters(&self) -> Result<Counters, Failure> {
        let ObservedQueue {
            aqm,
            device,
            leaves,
            ..
        } = self.queue;
        let disciplines = self.link.disciplines()?;
        let of = |(index, handle, described): &(u32, u32, Vec<u8>)| {
            let is_own = *index == self.device && leaves.contains(handle);
            is_own.then(|| counters(aqm, described)).flatten()
        };
        let own: Vec<Counters> = disciplines.iter().filter_map(of).collect();
        (own.len() == leaves.len())
            .then(|| own.into_iter().reduce(Counters::and))
            .flatten()
            .ok_or_else(|| Failure(format!("the kernel shows no counters of {aqm} on {device}")))
    }
}

/// Runs a job's traffic over its network. `begin` is told when the run can begin, on the monotonic clock, before anything is
/// sent; it returns when the run begins.
///
/// # Errors
/// The kernel refuses an operation, or the trace has gaps.
pub fn run(
    job: &Job,
    begin: impl FnOnce(u64) -> Result<u64, Failure>,
    progress: &mut dyn FnMut(u64),
) -> Result<Recording, Failure> {
    let mut session = Session::prepare(job)?;
    session.clock.zero_ns = begin(session.clock.zero_ns)?;
    session.run(progress)?;
    session.finish()
}

impl<'a> Session<'a> {
    fn prepare(job: &'a Job) -> Result<Self, Failure> {
        let epoll =
            Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context(|| "opening epoll".into())?;
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).context(|| "opening a timer".into())?;
        epoll
            .add(timer.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, TIMER))
            .context(|| "waiting for a timer".into())?;
        let signals = SignalFd::with_flags(&interrupts(), SfdFlags::SFD_CLOEXEC)
            .context(|| "opening signals".into())?;
        epoll
            .add(
                signals.as_fd(),
                EpollEvent::new(EpollFlags::EPOLLIN, SIGNALS),
            )
            .context(|| "waiting for signals".into())?;
        let (mut senders, mut receivers) = (Hosts::new(), Hosts::new());
        let mut flows = Vec::new();
        let is_bulk = |flow: &&Flow| matches!(flow.kind, Kind::Bulk(_));
        let few = job.flows.iter().filter(is_bulk).count() <= MOST_READERS;
        for (index, flow) in job.flows.iter().enumerate() {
            let is_here = job.has(&flow.sender);
            let mut sender = is_here
                .then(|| entry(&mut senders, &flow.sender))
                .transpose()?;
            let watch = Watch::new(&epoll, index);
            let diag = sender.as_ref().map(|(diag, _)| Rc::clone(diag));
            let opened = open(flow, job, few, diag, &watch)?;
            if let Some((_, own)) = sender.as_mut().filter(|_| opened.is_tcp()) {
                own.push(index);
            }
            if opened.discards() && job.has(&flow.receiver) {
                entry(&mut receivers, &flow.receiver)?.1.push(index);
            }
            flows.push(opened);
        }
        senders.retain(|_, (_, flows)| !flows.is_empty());
        let mut shapers = Vec::new();
        let mut taps = Vec::new();
        for (index, queue) in job.bottlenecks.iter().enumerate() {
            shapers.push(Shaper::open(queue)?);
            taps.push(Tap::open(job, queue, index)?);
        }
        let is_observed = !job.bottlenecks.is_empty();
        let tracing = is_observed.then(|| Tracing::begin(job)).transpose()?;
        let first = flows.iter().filter_map(|flow| flow.opens()).min();
        let ahead = first.map_or(0, |first| first.min(0).unsigned_abs());
        let zero_ns = on_a_tick(monotonic()? + SETTLE_NS + ahead);
        Ok(Self {
            epoll,
            timer,
            timer_at: None,
            _signals: signals,
            states: vec![None; flows.len()],
            load: Load::begin(zero_ns)?,
            sample: Every::new(SAMPLE_NS),
            second: Every::new(SECOND_NS),
            bin: job.series_ns.map(Every::new),
            warmup_done: false,
            stops: job.stops(),
            job,
            clock: Clock { zero_ns },
            flows,
            senders,
            receivers,
            shapers,
            tracing,
            taps,
            behind: false,
        })
    }

    fn run(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), Failure> {
        while self.open_ahead()? < 0 {
            let due = self.next_opening().unwrap_or(0).min(0);
            self.wait_until(due)?;
        }
        self.load = Load::begin(monotonic()?)?;
        loop {
            let now_ns = self.open_ahead()?.max(0) as u64;
            self.act(now_ns, progress)?;
            if now_ns >= self.job.duration_ns {
                return Ok(());
            }
            // Serving a socket may have created an earlier event.
            let mut due = self.next_event();
            while !self.wait_until(due)? {
                due = self.next_event();
            }
            let late = self.clock.now()?.saturating_sub(due);
            self.load.woke_late(late.max(0) as u64);
        }
    }

    /// When the next event is due, connections that open before their flow's start included.
    fn next_event(&self) -> i64 {
        let due = self.next_due() as i64;
        self.next_opening().map_or(due, |opens| opens.min(due))
    }

    /// When a flow next opens its connection before its start.
    fn next_opening(&self) -> Option<i64> {
        self.flows.iter().filter_map(|flow| flow.opens()).min()
    }

    /// Opens the connections that are due before their flow's start; returns the time.
    fn open_ahead(&mut self) -> Result<i64, Failure> {
        let now_ns = self.clock.now()?;
        for (index, flow) in self.flows.iter_mut().enumerate() {
            if flow.opens().is_some_and(|opens| opens <= now_ns) {
                flow.open_ahead(&Watch::new(&self.epoll, index))?;
            }
        }
        Ok(now_ns)
    }

    /// When the next event is due, apart from connections that open before their flow's start.
    fn next_due(&self) -> u64 {
        let flows = self.flows.iter().filter_map(|flow| flow.next_timer());
        let changes = self
            .shapers
            .iter()
            .filter_map(|shaper| Some(shaper.queue.rate_changes.get(shaper.changes_done)?.0));
        let warmup = (!self.warmup_done).then_some(self.job.warmup_ns);
        let stop = self.stops.last().map(|(at_ns, _)| *at_ns);
        let regular = [Some(&self.sample), Some(&self.second), self.bin.as_ref()];
        flows
            .chain(changes)
            .chain(warmup)
            .chain(stop)
            .chain(regular.into_iter().flatten().map(|every| every.next_ns))
            .fold(self.job.duration_ns, u64::min)
    }

    /// Sets the timer, unless it is set to this time.
    fn set_timer(&mut self, due_ns: i64) -> Result<(), Failure> {
        if self.timer_at == Some(due_ns) {
            return Ok(());
        }
        self.timer_at = Some(due_ns);
        let at = TimeSpec::nanoseconds(self.clock.zero_ns as i64 + due_ns);
        let absolute = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
        self.timer
            .set(Expiration::OneShot(at), absolute)
            .context(|| "setting a timer".into())
    }

    /// Waits for a time or for sockets, serves the sockets and then reads from the taps. Returns true once the time has
    /// come.
    fn wait_until(&mut self, due_ns: i64) -> Result<bool, Failure> {
        self.set_timer(due_ns)?;
        let mut events = [EpollEvent::empty(); 64];
        let timeout = if self.behind {
            EpollTimeout::ZERO
        } else {
            EpollTimeout::NONE
        };
        let count = match self.epoll.wait(&mut events, timeout) {
            Err(Errno::EINTR) => 0,
            count => count.context(|| "waiting".into())?,
        };
        let mut fired = false;
        for event in &events[..count] {
            if event.data() == TIMER {
                fired = true;
                self.timer_at = None;
                self.timer.wait().context(|| "reading a timer".into())?;
                continue;
            }
            if event.data() == SIGNALS {
                return Err(Failure("interrupted".into()));
            }
            let (flow, socket) = Watch::origin(event.data());
            let ready = Ready {
                socket,
                flags: event.events(),
                clock: self.clock,
            };
            self.flows[flow].on_ready(ready, &Watch::new(&self.epoll, flow))?;
        }
        if self.behind {
            self.behind = false;
            for tap in &mut self.taps {
                self.behind |= tap.drain();
            }
        }
        Ok(fired)
    }

    /// Handles everything that is due.
    fn act(&mut self, now_ns: u64, progress: &mut dyn FnMut(u64)) -> Result<(), Failure> {
        for shaper in &mut self.shapers {
            shaper.change_rate(now_ns)?;
        }
        if !self.warmup_done && self.job.warmup_ns <= now_ns {
            self.warmup_done = true;
            self.count(false)?;
            for flow in &mut self.flows {
                let figures = flow.figures();
                figures.received_before = figures.received;
            }
        }
        let stopping = self.stops.iter().rev();
        let stopping = stopping.take_while(|(at_ns, _)| *at_ns <= now_ns).count();
        if stopping > 0 {
            self.count(false)?;
            for (_, flow) in self.stops.split_off(self.stops.len() - stopping) {
                let figures = self.flows[flow].figures();
                figures.received_at_stop = Some(figures.received);
            }
        }
        if now_ns < self.job.duration_ns {
            for (index, flow) in self.flows.iter_mut().enumerate() {
                if flow.next_timer().is_some_and(|due| due <= now_ns) {
                    flow.on_timer(now_ns, &Watch::new(&self.epoll, index))?;
                }
            }
        }
        if self.sample.is_due(now_ns) {
            self.observe(Some(now_ns))?;
            if let Some(tracing) = &mut self.tracing {
                tracing.drain()?;
            }
            self.behind = true;
        }
        if self.bin.as_mut().is_some_and(|bin| bin.is_due(now_ns)) {
            self.end_bin(now_ns)?;
        }
        if self.second.is_due(now_ns) {
            self.load.look(monotonic()?)?;
            progress(now_ns / SECOND_NS);
        }
        Ok(())
    }

    /// Reads the connections, and samples their round-trip times if a sample is due.
    fn observe(&mut self, sample_at_ns: Option<u64>) -> Result<(), Failure> {
        for (diag, flows) in self.senders.values() {
            let connections = diag.connections()?;
            for flow in flows {
                self.states[*flow] = self.flows[*flow].observe(&connections, sample_at_ns)?;
            }
        }
        Ok(())
    }

    /// Counts what has been received and discarded so far; `at_end`: for the last time.
    fn count(&mut self, at_end: bool) -> Result<(), Failure> {
        for (diag, flows) in self.receivers.values() {
            let connections = diag.connections()?;
            for flow in flows {
                self.flows[*flow].count(&connections, at_end);
            }
        }
        Ok(())
    }

    fn end_bin(&mut self, now_ns: u64) -> Result<(), Failure> {
        // Before the end of the warm-up, samples are taken at their own interval.
        if now_ns % SAMPLE_NS != 0 {
            self.observe(None)?;
        }
        self.count(false)?;
        for (flow, state) in self.flows.iter_mut().zip(&self.states) {
            let figures = flow.figures();
            let received = figures.received;
            figures.series.push((received, *state));
        }
        for shaper in &mut self.shapers {
            let counters = shaper.counters()?;
            shaper.series.push(counters);
        }
        Ok(())
    }

    /// Collects the recording at the end.
    fn finish(mut self) -> Result<Recording, Failure> {
        let mut queues = Vec::new();
        for shaper in self.shapers.drain(..) {
            queues.push(QueueFigures {
                at_end: shaper.counters()?,
                series: shaper.series,
            });
        }
        let end_ns = self.job.duration_ns;
        self.observe(None)?;
        self.count(true)?;
        let job = self.job;
        let figures = |(flow, of): (&mut Box<dyn Traffic>, &Flow)| {
            let mut figures = std::mem::take(flow.figures());
            if job.has(&of.receiver) {
                figures.sent_ns.clear();
            }
            figures
        };
        let figures = self.flows.iter_mut().zip(&job.flows).map(figures).collect();
        let mut labels = Vec::new();
        let mut captured = Vec::new();
        for tap in self.taps {
            let (of_queue, rows) = tap.finish(self.clock.zero_ns, end_ns);
            labels.push(of_queue);
            captured.extend(rows);
        }
        // Close the sockets before reading the trace, so that nothing more is added.
        drop(self.flows);
        let zero_ns = self.clock.zero_ns;
        let events = self.tracing.map(|tracing| tracing.finish(zero_ns));
        let events = events.transpose()?.unwrap_or_default();
        Ok(Recording {
            flows: figures,
            queues,
            faults: self.load.faults(!self.job.bottlenecks.is_empty()),
            events: events.len() as u64,
            captured,
            packets: settle(&events, &labels, end_ns as i64),
            ..Recording::default()
        })
    }
}
