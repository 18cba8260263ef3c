//! Samples the time series, and marks the end of the warm-up and the stops of flows.

use std::cmp::Reverse;

use sojourn_experiment::cells::Backlog;
use sojourn_measure::interval::Reader;
use sojourn_measure::scope::Scope;
use sojourn_measure::series::{FlowSample, QueueSample, Series};
use sojourn_units::{Duration, Time, Way};

use crate::network::Network;
use crate::traffic::FlowEndpoints;

/// The sampling times and the samples.
pub struct Sampler {
    /// The time series, if enabled.
    series: Option<Series>,
    /// When the warm-up ends; `None` once it has.
    warmup: Option<Time>,
    /// Flows that stop before the end of the run, and when; the next is the last.
    stops: Vec<(Time, usize)>,
    next: Time,
}

impl Sampler {
    /// A sampler at the start of a run.
    pub fn new(scope: &Scope) -> Self {
        let end = Time::ZERO + scope.duration;
        let flows = scope.flows.iter().enumerate();
        let stops = flows.map(|(number, flow)| (flow.group.active[1], number));
        let mut stops: Vec<_> = stops.filter(|(at, _)| *at < end).collect();
        stops.sort_unstable_by_key(|(at, _)| Reverse(*at));
        Self {
            stops,
            series: scope.series.map(Series::new),
            warmup: Some(Time::ZERO + scope.warmup),
            next: scope.series.map_or(Time::MAX, |width| Time::ZERO + width),
        }
    }

    /// The recorded series, if enabled.
    pub fn into_series(self) -> Option<Series> {
        self.series
    }

    /// When [`Sampler::act`] is due.
    pub fn due(&self) -> Time {
        let stop = self.stops.last().map(|(at, _)| *at);
        let marks = [self.warmup, stop].into_iter().flatten();
        marks.fold(self.next, Time::min)
    }

    #[cold]
    /// Ends the warm-up, the time of flows or a bin of the series, whichever is due.
    pub fn act(&mut self, now: Time, network: &mut Network, sources: &mut [FlowEndpoints]) {
        if self.warmup.is_some_and(|at| at <= now) {
            self.warmup = None;
            for cell in network.media_mut() {
                cell.mark_warmup(now);
            }
            for source in &mut *sources {
                source.meter().mark_warmup();
            }
        }
        while let Some((_, flow)) = self.stops.last().filter(|(at, _)| *at <= now) {
            sources[*flow].meter().mark_stop();
            self.stops.pop();
        }
        let Some(series) = self.series.as_mut().filter(|_| self.next <= now) else {
            return;
        };
        self.next += series.width;
        let queues = look_at_queues(network, now, Reader::Series);
        series.queues.extend(queues);
        let flows = look_at_flows(sources, now, series.width, Reader::Series);
        series.flows.extend(flows);
    }
}

/// Samples all queues: those of the links, then two per Wi-Fi cell.
pub fn look_at_queues(network: &mut Network, now: Time, reader: Reader) -> Vec<QueueSample> {
    let queues = network.observer.probes.len();
    let look = |number: usize| {
        let mut sample = look_at_queue(network, number, now, reader);
        if let Some(link) = network.links().get(number) {
            let note = &mut |name, value| sample.state.push((name, value));
            link.qdisc().state(note);
        }
        sample
    };
    (0..queues).map(look).collect()
}

/// Samples a queue, without the state of its discipline.
pub fn look_at_queue(
    network: &mut Network,
    number: usize,
    now: Time,
    reader: Reader,
) -> QueueSample {
    let links = network.links().len();
    let recent = network.observer.probes[number].take_sample(reader);
    let (backlog, marked) = if let Some(link) = network.links().get(number) {
        let (packets, bytes) = (link.qdisc().packets(), link.qdisc().bytes());
        (Backlog { packets, bytes }, link.marked())
    } else {
        let (cell, way) = hop_in_cells(number - links);
        let cell = &network.media()[cell];
        (cell.backlog(way), cell.marked(way))
    };
    QueueSample {
        time: now,
        queue: number,
        backlog_packets: backlog.packets,
        backlog_bytes: backlog.bytes,
        dropped: network.observer.probes[number].dropped(),
        marked,
        recent,
        state: Vec::new(),
    }
}

/// The cell and the direction of a queue, by its number among the cells' queues.
pub const fn hop_in_cells(number: usize) -> (usize, Way) {
    match number % 2 {
        0 => (number / 2, Way::Down),
        _ => (number / 2, Way::Up),
    }
}

/// Samples all flows. `span`: the time since the last sample.
pub fn look_at_flows(
    sources: &mut [FlowEndpoints],
    now: Time,
    span: Duration,
    reader: Reader,
) -> impl Iterator<Item = FlowSample> {
    (0..).zip(sources).map(move |(flow, source)| {
        let sample = source.meter().take_sample(reader);
        FlowSample::new(now, flow, span, sample, source.sender_state())
    })
}
