//! The event loop: which component acts next, and where packets go.

use sojourn_experiment::applications::Side;
use sojourn_experiment::model::Direction;
use sojourn_units::{Duration, Rate, Time, cold_path};

use crate::capture::{Capture, Stage};
use crate::delay_line::{DelayLine, Exit};
use crate::link::Link;
use crate::monitor::Monitor;
use crate::packet::{Packets, SimPacket};
use crate::probe::Recent;
use crate::timers::Timers;
use crate::traffic::Source;

/// Events between two looks at the monitor.
const EVENTS_PER_REPORT: u64 = 1 << 14;

/// Where packets go from a host.
#[derive(Clone, Copy, Debug)]
pub enum Hop {
    /// Over the host's own link to the bottleneck, by index of the access links.
    Access(u32),
    /// To the bottleneck, by index of the link.
    Link(u32),
    /// Over a line to the other host.
    Line(u32),
}

/// The path of a flow's packets.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Where they go first on the way forward, from the sender of data.
    pub forward: Hop,
    /// The line from the receiving host back, to the sender or to the other bottleneck.
    pub return_line: u32,
}

/// The link of a host, before the bottleneck: packets leave it one after another. Its queue is never full.
pub struct AccessLink {
    rate: Rate,
    /// When the last packet has left.
    free: Time,
    /// Where packets wait for that; without a delay of its own.
    line: usize,
}

impl AccessLink {
    /// An idle link of this rate, whose packets come out of a line.
    pub const fn new(rate: Rate, line: usize) -> Self {
        Self {
            rate,
            free: Time::ZERO,
            line,
        }
    }

    /// A packet is sent: when the link has let it go.
    fn send(&mut self, bytes: u32, now: Time) -> Time {
        self.free = self.free.max(now) + self.rate.tx_time(bytes.into());
        self.free
    }
}

/// Links, delay lines and the paths over them. Time is the caller's.
pub struct Network {
    /// The bottlenecks: down, then up if there is one.
    pub links: Vec<Link>,
    lines: Vec<DelayLine>,
    /// The line behind each link; `None`: its packets arrive at once.
    behind: Vec<Option<usize>>,
    paths: Vec<Path>,
    accesses: Vec<AccessLink>,
    agenda: Agenda,
    /// Packets to be used again.
    pub packets: Packets,
    /// The capture of packets, if there is one.
    pub capture: Option<Capture>,
}

/// When each line acts next, then each link. They are few: a scan finds the first faster than a heap would.
struct Agenda {
    /// Those of the first places; most networks have no more.
    few: [Time; FEW],
    rest: Vec<Time>,
}

/// Places whose scan needs no loop.
const FEW: usize = 4;

/// What acts. At the same instant in this order, lines before links, and lines and links in theirs.
///
/// A flight that is clocked by acknowledgements arrives at the very instants at which packets leave, until the queue has been
/// empty in between. On Linux the arrivals then come first, by some ten microseconds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Component {
    Timers,
    /// A line or a link, by its place in the agenda.
    Place(usize),
}

impl Agenda {
    /// What acts next, if timers do at `timers`; and when.
    fn first(&self, timers: Time) -> (Component, Time) {
        let (mut first, mut at) = (Component::Timers, timers);
        for (place, &due) in self.few.iter().enumerate() {
            if due < at {
                (first, at) = (Component::Place(place), due);
            }
        }
        if self.rest.is_empty() {
            (first, at)
        } else {
            self.first_of_rest(first, at)
        }
    }

    #[cold]
    #[inline(never)]
    fn first_of_rest(&self, mut first: Component, mut at: Time) -> (Component, Time) {
        for (place, &due) in self.rest.iter().enumerate() {
            if due < at {
                (first, at) = (Component::Place(FEW + place), due);
            }
        }
        (first, at)
    }

    fn set(&mut self, place: usize, due: Time) {
        if place < FEW {
            self.few[place] = due;
        } else {
            cold_path();
            self.rest[place - FEW] = due;
        }
    }
}

impl Network {
    /// A network at rest.
    pub fn new(
        links: Vec<Link>,
        lines: Vec<DelayLine>,
        behind: Vec<Option<usize>>,
        paths: Vec<Path>,
        accesses: Vec<AccessLink>,
    ) -> Self {
        let places = links.len() + lines.len();
        let mut network = Self {
            links,
            lines,
            behind,
            paths,
            accesses,
            agenda: Agenda {
                few: [Time::MAX; FEW],
                rest: vec![Time::MAX; places.saturating_sub(FEW)],
            },
            packets: Packets::default(),
            capture: None,
        };
        for link in 0..network.links.len() {
            network.note_link(link);
        }
        network
    }

    /// Takes up when a link acts next, and takes back what it has given up.
    #[inline]
    fn note_link(&mut self, index: usize) {
        let link = &mut self.links[index];
        self.agenda.set(self.lines.len() + index, link.note_timer());
        if link.has_lost() {
            cold_path();
            self.reclaim(index);
        }
    }

    #[cold]
    #[inline(never)]
    fn reclaim(&mut self, index: usize) {
        for packet in self.links[index].take_lost() {
            self.packets.give_back(packet);
        }
    }

    /// A host sends a packet. Returns when it has left the host.
    #[inline]
    pub fn send(&mut self, packet: SimPacket, now: Time) -> Time {
        let path = self.paths[packet.flow as usize];
        if self.capture.is_some() {
            cold_path();
            self.capture(Stage::Sent, &packet, now);
        }
        if packet.returning {
            self.enter_line(path.return_line as usize, packet, now);
            return now;
        }
        match path.forward {
            Hop::Link(link) => self.enter_link(link as usize, packet, now),
            Hop::Line(line) => self.enter_line(line as usize, packet, now),
            Hop::Access(access) => {
                cold_path();
                let access = &mut self.accesses[access as usize];
                let (line, left) = (access.line, access.send(packet.bytes, now));
                self.enter_line(line, packet, left);
                return left;
            }
        }
        now
    }

    /// The bottleneck that a packet of this path passes: by its index, data and what returns.
    fn links_of(&self, path: Path) -> (Option<usize>, Option<usize>) {
        let at_end = |line: usize| match self.lines[line].exit {
            Exit::Link(link) => Some(link),
            Exit::Host => None,
        };
        let forward = match path.forward {
            Hop::Link(link) => Some(link as usize),
            Hop::Access(access) => at_end(self.accesses[access as usize].line),
            Hop::Line(_) => None,
        };
        (forward, at_end(path.return_line as usize))
    }

    /// A packet, if packets are captured, reaches the host that it is for.
    #[cold]
    #[inline(never)]
    fn capture_arrival(&mut self, packet: &SimPacket, now: Time) {
        let (forward, back) = self.links_of(self.paths[packet.flow as usize]);
        let met_link = if packet.returning { back } else { forward }.is_some();
        self.capture(Stage::Arrived { met_link }, packet, now);
    }

    /// A packet, if packets are captured, comes to a stage of its way.
    #[cold]
    #[inline(never)]
    fn capture(&mut self, stage: Stage, packet: &SimPacket, now: Time) {
        let (forward, _) = self.links_of(self.paths[packet.flow as usize]);
        // Data without a bottleneck on its way goes up.
        let (data, returning) = match forward {
            Some(0) => (0, 1),
            _ => (1, 0),
        };
        let direction = if packet.returning { returning } else { data };
        if let Some(capture) = &mut self.capture {
            capture.note(stage, direction, packet, now);
        }
    }

    fn enter_link(&mut self, index: usize, packet: SimPacket, now: Time) {
        let link = &mut self.links[index];
        link.enqueue(packet, now);
        self.agenda.set(self.lines.len() + index, link.due());
    }

    #[inline(always)]
    fn enter_line(&mut self, index: usize, packet: SimPacket, now: Time) {
        let line = &mut self.lines[index];
        if line.push(packet, now) {
            self.agenda.set(index, line.next());
        }
    }
}

/// The instants at which the series is sampled, and what was seen.
pub struct Sampler {
    /// Width of a bin; `None`: no series.
    pub width: Option<Duration>,
    /// When the warm-up ends, if that is still to come.
    pub warmup: Option<Time>,
    next: Time,
    /// One row per link and bin.
    pub queues: Vec<QueueSample>,
    /// One row per flow and bin.
    pub flows: Vec<FlowSample>,
}

/// A link at the end of a bin.
pub struct QueueSample {
    /// End of the bin.
    pub time: Time,
    /// Index of the link.
    pub link: usize,
    /// Sojourn times within the bin.
    pub recent: Recent,
    /// Packets queued at its end.
    pub backlog_packets: u64,
    /// Bytes queued at its end.
    pub backlog_bytes: u64,
    /// Drops of both reasons, and marks, since the run began.
    pub dropped: u64,
    /// Marks since the run began.
    pub marked: u64,
    /// The algorithm's state, by the names of its defining document.
    pub state: Vec<(&'static str, f64)>,
}

/// A flow at the end of a bin.
pub struct FlowSample {
    /// End of the bin.
    pub time: Time,
    /// The flow, by number over all groups.
    pub flow: u32,
    /// Payload bits per second received within the bin.
    pub goodput_bps: f64,
    /// Congestion window in segments, the sum over the flow's connections; NaN for flows without.
    pub cwnd: f64,
    /// Mean of the round-trip times measured within the bin, in milliseconds; NaN if there were none.
    pub rtt_ms: f64,
}

impl Sampler {
    /// A sampler of a run whose warm-up ends at `warmup`.
    pub fn new(warmup: Time, width: Option<Duration>) -> Self {
        Self {
            width,
            warmup: Some(warmup),
            next: width.map_or(Time::MAX, |width| Time::ZERO + width),
            queues: Vec::new(),
            flows: Vec::new(),
        }
    }

    fn due(&self) -> Time {
        self.warmup.unwrap_or(Time::MAX).min(self.next)
    }

    #[cold]
    #[inline(never)]
    fn act(&mut self, now: Time, network: &mut Network, sources: &mut [Source]) {
        if self.warmup.is_some_and(|at| at <= now) {
            self.warmup = None;
            for source in &mut *sources {
                source.meter().mark_warmup();
            }
        }
        let Some(width) = self.width.filter(|_| self.next <= now) else {
            return;
        };
        self.next += width;
        for (index, link) in network.links.iter_mut().enumerate() {
            let mut state = Vec::new();
            link.qdisc()
                .state(&mut |name, value| state.push((name, value)));
            self.queues.push(QueueSample {
                time: now,
                link: index,
                backlog_packets: link.qdisc().packets(),
                backlog_bytes: link.qdisc().bytes(),
                dropped: link.probe.dropped_aqm() + link.probe.dropped_overflow(),
                marked: link.marked(),
                recent: link.probe.take_recent(),
                state,
            });
        }
        for (flow, source) in sources.iter_mut().enumerate() {
            let sample = source.meter().take_sample();
            let bits = sample.received as f64 * 8.0;
            self.flows.push(FlowSample {
                time: now,
                flow: flow as u32,
                goodput_bps: bits / width.as_secs_f64(),
                cwnd: source.cwnd().map_or(f64::NAN, f64::from),
                rtt_ms: sample.rtt_ms(),
            });
        }
    }
}

/// A run under way.
pub struct Simulation {
    /// The network.
    pub network: Network,
    /// The flows.
    pub sources: Vec<Source>,
    /// The series.
    pub sampler: Sampler,
    timers: Timers,
    /// Events handled.
    pub events: u64,
}

/// The run was stopped from outside.
pub struct Cancelled;

impl Simulation {
    /// A run at its beginning.
    pub fn new(network: Network, sources: Vec<Source>, sampler: Sampler) -> Self {
        let mut timers = Timers::new(sources.len());
        for (flow, source) in sources.iter().enumerate() {
            timers.set_both(flow as u32, source.next_timers());
        }
        Self {
            network,
            sources,
            sampler,
            timers,
            events: 0,
        }
    }

    /// Runs until `end`, which is left out.
    ///
    /// # Errors
    /// [`Cancelled`] if the monitor says so.
    pub fn run(&mut self, end: Time, monitor: &Monitor) -> Result<(), Cancelled> {
        let mut sampling = self.sampler.due();
        let mut pause = sampling.min(end);
        loop {
            let (component, now) = self.network.agenda.first(self.timers.next());
            if now >= pause {
                cold_path();
                // At the same instant timers come before the sampler, and all else after it.
                let samples = sampling < now || (sampling == now && component != Component::Timers);
                if samples && sampling < end {
                    self.sampler
                        .act(sampling, &mut self.network, &mut self.sources);
                    sampling = self.sampler.due();
                    pause = sampling.min(end);
                    self.events += 1;
                    continue;
                }
                if now >= end {
                    break;
                }
            }
            self.act(component, now);
            self.events += 1;
            if self.events % EVENTS_PER_REPORT == 0 {
                cold_path();
                if monitor.is_cancelled() {
                    return Err(Cancelled);
                }
                monitor.report(now);
            }
        }
        if self.sampler.due() <= end {
            self.sampler.act(end, &mut self.network, &mut self.sources);
        }
        monitor.report(end);
        Ok(())
    }

    fn act(&mut self, component: Component, now: Time) {
        let lines = self.network.lines.len();
        match component {
            Component::Timers => {
                if let Some(owner) = self.timers.pop() {
                    self.wake_host(owner, now);
                }
            }
            Component::Place(line) if line < lines => self.let_out(line, now),
            Component::Place(place) => {
                let link = place - lines;
                if self.network.links[link].wake() <= now {
                    self.serve(link, now);
                } else {
                    cold_path();
                    self.network.links[link].on_timer(now);
                }
                self.network.note_link(link);
            }
        }
    }

    /// Lets out of a link what may go now.
    fn serve(&mut self, link: usize, now: Time) {
        let behind = self.network.behind[link];
        while let Some(packet) = self.network.links[link].serve(now) {
            if self.network.capture.is_some() {
                cold_path();
                self.network.capture(Stage::Left, &packet, now);
                if behind.is_none() {
                    self.network.capture_arrival(&packet, now);
                }
            }
            match behind {
                Some(line) => self.network.enter_line(line, packet, now),
                None => self.arrive(packet, now),
            }
        }
    }

    /// Lets out of a line what comes out now.
    fn let_out(&mut self, line: usize, now: Time) {
        let exit = self.network.lines[line].exit;
        while let Some(packet) = self.network.lines[line].pop_due(now) {
            match exit {
                Exit::Host => {
                    if self.network.capture.is_some() {
                        cold_path();
                        self.network.capture_arrival(&packet, now);
                    }
                    self.arrive(packet, now);
                }
                Exit::Link(link) => self.network.enter_link(link, packet, now),
            }
        }
        let due = self.network.lines[line].next();
        self.network.agenda.set(line, due);
    }

    /// A packet reaches the host that it is for.
    #[inline]
    fn arrive(&mut self, packet: SimPacket, now: Time) {
        let flow = packet.flow;
        let source = &mut self.sources[flow as usize];
        source.on_packet(&packet, now, &mut self.network);
        self.network.packets.give_back(packet);
        self.timers.set_both(flow, source.next_timers());
    }

    fn wake_host(&mut self, owner: u32, now: Time) {
        let side = if owner % 2 == 0 {
            Side::Sending
        } else {
            Side::Receiving
        };
        let source = &mut self.sources[owner as usize / 2];
        if source.next_timers()[side as usize] <= now {
            source.on_timer(side, now, &mut self.network);
        }
        self.timers.set_both(owner / 2, source.next_timers());
    }
}

/// The index of the link that data in this direction goes through, if there is such a link.
pub fn link_of(direction: Direction, links: usize) -> Option<usize> {
    match direction {
        Direction::Down | Direction::Both => Some(0),
        Direction::Up => (links > 1).then_some(1),
    }
}
