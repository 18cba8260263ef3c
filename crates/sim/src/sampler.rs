//! When the series is sampled and the warm-up ends.

use sojourn_measure::scope::Scope;
use sojourn_measure::series::{FlowSample, Looker, QueueSample, Series};
use sojourn_units::{Duration, Time};

use crate::network::Network;
use crate::traffic::Source;

/// The instants at which the series is sampled, and what was seen.
pub struct Sampler {
    /// The series, if there is one.
    series: Option<Series>,
    /// When the warm-up ends, if that is still to come.
    warmup: Option<Time>,
    next: Time,
}

impl Sampler {
    /// A sampler at the beginning of a run.
    pub fn new(scope: &Scope) -> Self {
        Self {
            series: scope.series.map(Series::new),
            warmup: Some(Time::ZERO + scope.warmup),
            next: scope.series.map_or(Time::MAX, |width| Time::ZERO + width),
        }
    }

    /// The series.
    pub fn into_series(self) -> Option<Series> {
        self.series
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
        let Some(series) = self.series.as_mut().filter(|_| self.next <= now) else {
            return;
        };
        self.next += series.width;
        let queues = look_at_queues(network, now, Looker::Series);
        series.queues.extend(queues);
        let flows = look_at_flows(sources, now, series.width, Looker::Series);
        series.flows.extend(flows);
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
            dropped: probe.dropped(),
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
    (0..).zip(sources).map(move |(flow, source)| {
        let sample = source.meter().take_sample(looker);
        FlowSample::new(now, flow, span, sample, source.cwnd())
    })
}
