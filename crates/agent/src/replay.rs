//! Feeds a recording, in order of time, to the probes and meters that the simulator also uses.

use sojourn_experiment::derived::Egress;
use sojourn_experiment::model::Link;
use sojourn_measure::interval::Reader;
use sojourn_measure::meter::Meter;
use sojourn_measure::probe::{Packet, QueueProbe, Reason};
use sojourn_measure::scope::Scope;
use sojourn_measure::series::{FlowSample, QueueSample, Series};
use sojourn_units::{Duration, Time};

use crate::disciplines::Counters;
use crate::recording::{Fate, FlowFigures, PacketRow, Recording};
use crate::topology::ETHERNET;

/// Bytes of the longest frame of a segment without data, SYN or FIN: Ethernet, IPv4 and TCP with timestamps.
const ACKNOWLEDGEMENT: u32 = 66;

/// The measurements.
pub struct Replayed {
    /// Of each queue.
    pub probes: Vec<QueueProbe>,
    /// Of each flow.
    pub meters: Vec<Meter>,
    /// The series, if there is one.
    pub series: Option<Series>,
}

/// Replays a recording.
pub fn replay(scope: &Scope, egresses: &[Egress<'_>], recording: &Recording) -> Replayed {
    let mut series = scope.series.map(Series::new);
    let flows = scope.flows.iter();
    let mut meters: Vec<Meter> = flows.map(|flow| Meter::new(&flow.group.measures)).collect();
    let mut queues: Vec<Queue<'_>> = (0..egresses.len())
        .map(|number| Queue::new(scope, egresses, recording, number))
        .collect();
    let ends = bin_ends(scope);
    replay_packets(
        scope,
        &recording.packets,
        &ends,
        &mut queues,
        &mut meters,
        &mut series,
    );
    replay_flows(&recording.flows, &ends, &mut meters, &mut series);
    Replayed {
        probes: queues.into_iter().map(|queue| queue.probe).collect(),
        meters,
        series,
    }
}

/// The ends of the series' bins.
fn bin_ends(scope: &Scope) -> Vec<Time> {
    let Some(width) = scope.series else {
        return Vec::new();
    };
    let count = scope.duration.as_nanos() / width.as_nanos();
    (1..=count)
        .map(|bin| Time::from_nanos(bin * width.as_nanos()))
        .collect()
}

/// Bytes of a packet on the link. The kernel counts an Ethernet header, whatever the link's overhead.
pub fn on_link(link: &Link, row: &PacketRow) -> u32 {
    row.bytes + link.overhead - ETHERNET
}

/// A packet as a probe sees it.
struct Seen<'a> {
    row: &'a PacketRow,
    bytes: u32,
}

impl Packet for Seen<'_> {
    fn flow(&self) -> u32 {
        self.row.flow
    }
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn entered(&self) -> Time {
        Time::from_nanos(self.row.entered_ns)
    }
    fn is_returning(&self) -> bool {
        self.row.returning
    }
    fn is_marked(&self) -> bool {
        self.row.fate == Fate::Marked
    }
    fn inner_queue(&self) -> u8 {
        0
    }
}

/// The state of a queue during the replay.
struct Queue<'a> {
    egress: &'a Egress<'a>,
    probe: QueueProbe,
    backlog_packets: u64,
    backlog_bytes: u64,
    /// Packets that left marked.
    marked: u64,
    /// The discipline's counters at the end of each bin.
    counted: Vec<Counters>,
}

impl<'a> Queue<'a> {
    fn new(
        scope: &Scope,
        egresses: &'a [Egress<'a>],
        recording: &Recording,
        number: usize,
    ) -> Self {
        let counted = recording.queues.get(number);
        Self {
            egress: &egresses[number],
            probe: scope.probe(number),
            backlog_packets: 0,
            backlog_bytes: 0,
            marked: 0,
            counted: counted.map_or_else(Vec::new, |figures| figures.series.clone()),
        }
    }

    fn seen<'r>(&self, row: &'r PacketRow) -> Seen<'r> {
        Seen {
            row,
            bytes: on_link(self.egress.link, row),
        }
    }

    /// Handles the arrival of a packet.
    fn enter(&mut self, row: &PacketRow) {
        let packet = self.seen(row);
        let came = Time::from_nanos(row.entered_ns);
        self.probe.on_arrival(&packet, came);
        if !row.refused {
            self.backlog_packets += 1;
            self.backlog_bytes += u64::from(packet.bytes);
        }
    }

    /// Handles the fate of a packet.
    fn settle(&mut self, row: &PacketRow) {
        let (packet, now) = (self.seen(row), Time::from_nanos(row.settled_ns));
        if !row.refused && row.fate != Fate::Waiting {
            self.backlog_packets -= 1;
            self.backlog_bytes -= u64::from(packet.bytes);
        }
        self.marked += u64::from(row.fate == Fate::Marked);
        let reason = match row.fate {
            Fate::Delivered | Fate::Marked | Fate::Lost => {
                return self.probe.on_departure(&packet, now);
            }
            Fate::DroppedAqm => Reason::Aqm,
            Fate::DroppedOverflow => Reason::Overflow,
            Fate::Dropped => Reason::Unknown,
            Fate::Waiting => return,
        };
        let queued = if row.refused {
            self.egress.capacity.at(now).tx_time(self.backlog_bytes)
        } else {
            Duration::from_nanos(row.sojourn_ns())
        };
        self.probe.on_drop(&packet, reason, queued, now);
    }

    /// Takes the sample at the end of a bin.
    fn sample(&mut self, number: usize, bin: usize, time: Time) -> QueueSample {
        let counted = self.counted.get(bin).copied().unwrap_or_default();
        QueueSample {
            time,
            queue: number,
            recent: self.probe.take_sample(Reader::Series),
            backlog_packets: self.backlog_packets,
            backlog_bytes: self.backlog_bytes,
            dropped: counted.dropped,
            marked: counted.marked.unwrap_or(self.marked),
            state: (counted.probability.map(|value| ("probability", value)))
                .into_iter()
                .collect(),
        }
    }
}

/// An event of a packet. At the same time, arrivals come before departures and drops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Enters,
    Settled,
    Lost,
}

/// Replays the packets. An event at the end of a bin belongs to the next one.
fn replay_packets(
    scope: &Scope,
    packets: &[PacketRow],
    ends: &[Time],
    queues: &mut [Queue<'_>],
    meters: &mut [Meter],
    series: &mut Option<Series>,
) {
    let mut steps: Vec<(u64, Step, usize)> = Vec::with_capacity(2 * packets.len());
    for (number, row) in packets.iter().enumerate() {
        steps.push((row.entered_ns, Step::Enters, number));
        steps.push((row.settled_ns, Step::Settled, number));
        if row.fate == Fate::Lost {
            steps.push((row.received_ns(), Step::Lost, number));
        }
    }
    steps.sort_unstable();
    let mut ends = ends.iter().copied().enumerate().peekable();
    let mut end_bins = |queues: &mut [Queue<'_>], until: Time| {
        while let Some((bin, end)) = ends.next_if(|(_, end)| *end <= until) {
            if let Some(series) = series {
                let samples = queues.iter_mut().enumerate();
                let samples = samples.map(|(number, queue)| queue.sample(number, bin, end));
                series.queues.extend(samples);
            }
        }
    };
    for (at_ns, step, number) in steps {
        let row = &packets[number];
        end_bins(queues, Time::from_nanos(at_ns));
        let Some(queue) = queues.get_mut(usize::from(row.queue)) else {
            continue;
        };
        match step {
            Step::Enters => queue.enter(row),
            Step::Lost => queue
                .probe
                .on_loss(&queue.seen(row), Time::from_nanos(at_ns)),
            Step::Settled => {
                queue.settle(row);
                let of = row.flow as usize;
                if let (Some(flow), Some(meter)) = (scope.flows.get(of), meters.get_mut(of)) {
                    let data = !row.returning && row.bytes > ACKNOWLEDGEMENT;
                    if data && row.is_delivered() {
                        // Virtual Ethernet has no delay: behind the queue there are only the air and the links' own delay.
                        let arrived_ns = row.received_ns();
                        let one_way = Duration::from_nanos(arrived_ns - row.entered_ns)
                            + flow.group.link_delay;
                        let arrives = Time::from_nanos(arrived_ns) + flow.group.link_delay;
                        meter.record_segment(one_way, arrives);
                    }
                }
            }
        }
    }
    end_bins(queues, Time::MAX);
}

/// Replays the figures of flows. A round-trip time at the end of a bin belongs to that bin.
fn replay_flows(
    flows: &[FlowFigures],
    ends: &[Time],
    meters: &mut [Meter],
    series: &mut Option<Series>,
) {
    let mut remaining: Vec<_> = flows
        .iter()
        .zip(meters)
        .map(|(figures, meter)| (figures, meter, figures.round_trips.iter().peekable()))
        .collect();
    for (bin, end) in ends.iter().enumerate() {
        for (number, (figures, meter, round_trips)) in (0..).zip(&mut remaining) {
            while let Some((at_ns, rtt_us)) =
                round_trips.next_if(|(at_ns, _)| Time::from_nanos(*at_ns) <= *end)
            {
                meter.record_rtt(micros(*rtt_us), Time::from_nanos(*at_ns));
            }
            if let (Some((received, sender)), Some(series)) =
                (figures.series.get(bin), &mut *series)
            {
                meter.received = *received;
                let sample = meter.take_sample(Reader::Series);
                let sample = FlowSample::new(*end, number, series.width, sample, *sender);
                series.flows.push(sample);
            }
        }
    }
    for (figures, meter, round_trips) in remaining {
        for (at_ns, rtt_us) in round_trips {
            meter.record_rtt(micros(*rtt_us), Time::from_nanos(*at_ns));
        }
        take_totals(figures, meter);
    }
}

fn take_totals(figures: &FlowFigures, meter: &mut Meter) {
    meter.received = figures.received_before;
    meter.mark_warmup();
    if let Some(at_stop) = figures.received_at_stop {
        meter.received = at_stop;
        meter.mark_stop();
    }
    meter.received = figures.received;
    meter.sent = figures.sent;
    meter.retransmits = figures.retransmits;
    if let Some(packets) = &mut meter.packets {
        (packets.sent, packets.arrived) = figures.datagrams.unwrap_or_default();
        if let Some(one_way) = &mut packets.one_way {
            for delay_us in &figures.one_way_us {
                one_way.record(0, micros(*delay_us));
            }
            let wrapped = |(first, highest, n)| (first as u32, highest as u32, n);
            one_way.seen = figures.seen.map(wrapped);
        }
    }
    for (at_ns, micros_taken) in &figures.completions {
        meter.completed(micros(*micros_taken), Time::from_nanos(*at_ns));
    }
    for (at_ns, micros_taken) in &figures.page_loads {
        meter.page_loaded(micros(*micros_taken), Time::from_nanos(*at_ns));
    }
    if let Some(video) = &mut meter.video {
        **video = figures.playback.clone();
    }
}

fn micros(count: u32) -> Duration {
    Duration::from_micros(count.into())
}

#[cfg(test)]
mod tests;
