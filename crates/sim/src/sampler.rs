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
        for number in 0..network.links().len() {
            let recent = network.observer.probes[number].take_recent();
            let (link, probe) = (&network.links()[number], &network.observer.probes[number]);
            let mut state = Vec::new();
            link.qdisc()
                .state(&mut |name, value| state.push((name, value)));
            self.queues.push(QueueSample {
                time: now,
                queue: number,
                backlog_packets: link.qdisc().packets(),
                backlog_bytes: link.qdisc().bytes(),
                dropped: probe.dropped_aqm() + probe.dropped_overflow(),
                marked: link.marked(),
                recent,
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
