//! The time series: what stands in queues and flows at the end of every bin.

use sojourn_units::{Duration, Time};

use crate::network::Network;
use crate::probe::Recent;
use crate::traffic::Source;

/// The instants at which the series is sampled, and what was seen.
pub struct Sampler {
    /// Width of a bin; `None`: no series.
    pub width: Option<Duration>,
    /// When the warm-up ends, if that is still to come.
    pub warmup: Option<Time>,
    next: Time,
    /// One row per queue and bin.
    pub queues: Vec<QueueSample>,
    /// One row per flow and bin.
    pub flows: Vec<FlowSample>,
}

/// A queue at the end of a bin.
pub struct QueueSample {
    /// End of the bin.
    pub time: Time,
    /// Number of the queue.
    pub queue: usize,
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

    /// When [`Sampler::act`] is due.
    pub fn due(&self) -> Time {
        self.warmup.unwrap_or(Time::MAX).min(self.next)
    }

    #[cold]
    #[inline(never)]
    /// Ends the warm-up, or a bin.
    pub fn act(&mut self, now: Time, network: &mut Network, sources: &mut [Source]) {
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
        self.queues
            .extend(look_at_queues(network, now, Looker::Series));
        self.flows
            .extend(look_at_flows(sources, now, width, Looker::Series));
    }
}

/// Who looks at what has happened since their own last look.
#[derive(Clone, Copy)]
pub enum Looker {
    /// The series that a run records.
    Series = 0,
    /// The caller who drives the run.
    Caller = 1,
}

/// What has happened since each [`Looker`] last looked.
#[derive(Clone, Copy, Default)]
pub struct Since<T>([T; 2]);

impl<T: Copy + Default> Since<T> {
    /// Adds what has happened since anyone looked, and takes what has since this one did.
    pub fn take(&mut self, latest: T, add: impl Fn(&mut T, T), looker: Looker) -> T {
        for since in &mut self.0 {
            add(since, latest);
        }
        std::mem::take(&mut self.0[looker as usize])
    }
}

/// All queues as they stand.
pub fn look_at_queues(network: &mut Network, now: Time, looker: Looker) -> Vec<QueueSample> {
    let queues = network.links().len();
    let look = |number: usize| {
        let recent = network.observer.probes[number].take_recent(looker);
        let (link, probe) = (&network.links()[number], &network.observer.probes[number]);
        let mut state = Vec::new();
        link.qdisc()
            .state(&mut |name, value| state.push((name, value)));
        QueueSample {
            time: now,
            queue: number,
            backlog_packets: link.qdisc().packets(),
            backlog_bytes: link.qdisc().bytes(),
            dropped: probe.dropped_aqm() + probe.dropped_overflow(),
            marked: link.marked(),
            recent,
            state,
        }
    };
    (0..queues).map(look).collect()
}

/// All flows as they stand. `span`: the time since the last look.
pub fn look_at_flows(
    sources: &mut [Source],
    now: Time,
    span: Duration,
    looker: Looker,
) -> impl Iterator<Item = FlowSample> {
    sources.iter_mut().enumerate().map(move |(flow, source)| {
        let sample = source.meter().take_sample(looker);
        let bits = sample.received as f64 * 8.0;
        FlowSample {
            time: now,
            flow: flow as u32,
            goodput_bps: bits / span.as_secs_f64(),
            cwnd: source.cwnd().map_or(f64::NAN, f64::from),
            rtt_ms: sample.rtt_ms(),
        }
    })
}
