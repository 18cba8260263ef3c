//! Measurements of a flow.

use sojourn_units::{Duration, Rate, Time};

use crate::delays::{Delays, Precision};
use crate::interval::{Interval, Reader};
use crate::jitter::Jitter;
use crate::playback::Playback;

/// The quantities to measure of a flow, depending on its kind.
#[derive(Clone, Copy, Debug)]
pub struct Measures {
    /// When measuring begins.
    pub warmup: Time,
    /// Whether it runs over TCP.
    pub over_tcp: bool,
    /// One-way delays.
    pub one_way: bool,
    /// Completion times of files and web responses.
    pub completions: bool,
    /// Load times of pages.
    pub page_loads: bool,
    /// The experience of a video player.
    pub playback: bool,
    /// Delays of the frames of a video call.
    pub frames: bool,
    /// Whether to record a row per round-trip time, and of what.
    pub rows: Option<RowsOf>,
}

/// The events that are rows in the record of round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowsOf {
    /// A sample of TCP, or an echo.
    Samples,
    /// A segment of TCP.
    Segments,
}

/// The counts and delays of one flow. What only few kinds of traffic have stands apart: there may be 100,000 flows.
pub struct Meter {
    warmup: Time,
    /// Payload bytes sent, without retransmissions.
    pub sent: u64,
    /// Payload bytes received in order.
    pub received: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts of both ends.
    pub timeouts: u64,
    /// Round-trip times after the warm-up.
    pub round_trips: Delays,
    /// Completion times after the warm-up, of files and web responses.
    pub completions: Option<Box<Delays>>,
    /// Individual completions after the warm-up: time and completion time in nanoseconds.
    pub completed: Vec<(u64, u64)>,
    /// Load times after the warm-up, of pages.
    pub pages: Option<Box<Delays>>,
    /// Delays of frames after the warm-up, of video calls.
    pub frames: Option<Box<Delays>>,
    /// Counts of packets, for traffic without a connection.
    pub packets: Option<Packets>,
    /// One-way measurements of TCP data, if they are recorded.
    pub segments: Option<Box<OneWay>>,
    /// The figures of a video player.
    pub video: Option<Box<Playback>>,
    /// Whether the recorded rows are samples of TCP or echoes.
    records_samples: bool,
    /// Times and round-trip times in nanoseconds, if they are recorded.
    pub recorded: Option<Vec<(u64, u64)>>,
    received_at_warmup: u64,
    /// Of a flow that stops before the run ends, once it has.
    received_at_stop: Option<u64>,
    sample: Sample,
    interval: Interval<Sample>,
}

/// Measurements of packets that are not retransmitted.
#[derive(Default)]
pub struct Packets {
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived, or were answered.
    pub arrived: u64,
    /// Packets on their way when the run ended, neither lost nor arrived. The backend counts them.
    pub on_their_way: u64,
    /// One-way measurements of datagrams.
    pub one_way: Option<Box<OneWay>>,
}

impl Packets {
    /// Packets that are lost: neither arrived nor on their way.
    pub const fn lost(&self) -> u64 {
        self.sent
            .saturating_sub(self.arrived)
            .saturating_sub(self.on_their_way)
    }
}

/// One-way measurements after the warm-up: of datagrams, or of segments with data, SYN or FIN.
pub struct OneWay {
    /// Their delays.
    pub delays: Delays,
    /// The estimate of their jitter (RFC 3550) after each.
    pub jitter: Delays,
    estimate: Jitter,
    /// Numbers of the first and of the highest datagram that arrived, and how many arrived.
    pub seen: Option<(u32, u32, u64)>,
}

/// Measurements since the previous sample.
#[derive(Clone, Copy, Default)]
pub struct Sample {
    /// Payload bytes received.
    pub received: u64,
    rtts: u64,
    rtt_sum: u64,
}

impl Sample {
    fn add(&mut self, later: Self) {
        self.received += later.received;
        self.rtts += later.rtts;
        self.rtt_sum += later.rtt_sum;
    }

    /// The mean round-trip time in milliseconds; NaN if none was measured.
    pub fn rtt_ms(&self) -> f64 {
        self.rtt_sum as f64 / self.rtts as f64 / 1e6
    }
}

impl OneWay {
    fn new() -> Self {
        Self {
            delays: Delays::new(Precision::Flow),
            jitter: Delays::new(Precision::Flow),
            estimate: Jitter::default(),
            seen: None,
        }
    }

    /// Notes that the datagram of this number arrived after `delay`.
    pub fn record(&mut self, number: u32, delay: Duration) {
        self.delays.record(delay);
        if let Some(jitter) = self.estimate.update(delay) {
            self.jitter.record(jitter);
        }
        let (first, highest, arrived) = self.seen.unwrap_or((number, number, 0));
        self.seen = Some((first.min(number), highest.max(number), arrived + 1));
    }

    /// The share of datagrams lost between the first and the last that arrived (RFC 3550 §A.3).
    pub fn loss(&self) -> Option<f64> {
        self.seen.map(|(first, highest, arrived)| {
            let expected = u64::from(highest - first) + 1;
            1.0 - arrived as f64 / expected as f64
        })
    }

    /// The lost datagrams between the first and the last that arrived, and all of these.
    pub fn losses(&self) -> Option<(u64, u64)> {
        self.seen.map(|(first, highest, arrived)| {
            let expected = u64::from(highest - first) + 1;
            (expected.saturating_sub(arrived), expected)
        })
    }
}

impl Meter {
    /// A meter for these quantities.
    pub fn new(measures: &Measures) -> Self {
        let boxed = || Box::new(Delays::new(Precision::Flow));
        let one_way = || Box::new(OneWay::new());
        Self {
            warmup: measures.warmup,
            sent: 0,
            received: 0,
            retransmits: 0,
            timeouts: 0,
            round_trips: Delays::new(Precision::Flow),
            completions: measures.completions.then(boxed),
            completed: Vec::new(),
            pages: measures.page_loads.then(boxed),
            frames: measures.frames.then(boxed),
            packets: (!measures.over_tcp).then(|| Packets {
                one_way: measures.one_way.then(one_way),
                ..Packets::default()
            }),
            segments: (measures.over_tcp && measures.one_way).then(one_way),
            video: measures.playback.then(Box::default),
            records_samples: measures.rows == Some(RowsOf::Samples),
            recorded: measures.rows.map(|_| Vec::new()),
            received_at_warmup: 0,
            received_at_stop: None,
            sample: Sample::default(),
            interval: Interval::default(),
        }
    }

    fn is_steady(&self, now: Time) -> bool {
        now >= self.warmup
    }

    /// Takes a round-trip time.
    #[inline(always)]
    pub fn record_rtt(&mut self, rtt: Duration, now: Time) {
        if self.records_samples {
            self.record_row(rtt, now);
        }
        self.sample.rtts += 1;
        self.sample.rtt_sum += rtt.as_nanos();
        if self.is_steady(now) {
            self.round_trips.record(rtt);
        }
    }

    /// Records a row, if rows are recorded.
    pub fn record_row(&mut self, rtt: Duration, now: Time) {
        if self.recorded.is_some() {
            self.keep_row(rtt, now);
        }
    }

    #[cold]
    fn keep_row(&mut self, rtt: Duration, now: Time) {
        if let Some(rows) = &mut self.recorded {
            rows.push((now.as_nanos(), rtt.as_nanos()));
        }
    }

    /// Counts a datagram or an echo request that leaves.
    pub fn record_departure(&mut self) {
        if let Some(packets) = &mut self.packets {
            packets.sent += 1;
        }
    }

    /// Takes a datagram that arrives.
    pub fn record_datagram(&mut self, number: u32, delay: Duration, now: Time) {
        let steady = self.is_steady(now);
        if let Some(packets) = &mut self.packets {
            packets.arrived += 1;
            if let Some(one_way) = packets.one_way.as_mut().filter(|_| steady) {
                one_way.record(number, delay);
            }
        }
    }

    /// Takes a segment with data that arrives.
    #[cold]
    pub fn record_segment(&mut self, delay: Duration, now: Time) {
        let steady = self.is_steady(now);
        if let Some(segments) = self.segments.as_mut().filter(|_| steady) {
            segments.record(0, delay);
        }
    }

    /// The one-way measurements.
    pub fn one_way(&self) -> Option<&OneWay> {
        let datagrams = self.packets.as_ref();
        let datagrams = datagrams.and_then(|packets| packets.one_way.as_deref());
        datagrams.or(self.segments.as_deref())
    }

    /// Takes an echo reply that arrives.
    pub fn record_echo(&mut self, rtt: Duration, now: Time) {
        if let Some(packets) = &mut self.packets {
            packets.arrived += 1;
        }
        self.record_rtt(rtt, now);
    }

    /// Marks the end of the warm-up.
    pub const fn mark_warmup(&mut self) {
        self.received_at_warmup = self.received;
    }

    /// Marks the flow's stop, if it is before the end of the run.
    pub const fn mark_stop(&mut self) {
        self.received_at_stop = Some(self.received);
    }

    /// Payload bytes received after the warm-up and before the flow's stop. What was on its way or queued at the stop is left out:
    /// the time in which it arrives is not the flow's.
    pub fn received_while_active(&self) -> u64 {
        let until = self.received_at_stop.unwrap_or(self.received);
        until.saturating_sub(self.received_at_warmup)
    }

    /// Takes the measurements since the last call of this `reader`.
    pub fn take_sample(&mut self, reader: Reader) -> Sample {
        let total = self.received;
        let latest = Sample {
            received: total - self.sample.received,
            ..self.sample
        };
        self.sample = Sample {
            received: total,
            rtts: 0,
            rtt_sum: 0,
        };
        self.interval.take(latest, Sample::add, reader)
    }

    /// Notes that a file or a response is complete, `after` it was begun or requested.
    pub fn completed(&mut self, after: Duration, now: Time) {
        let steady = self.is_steady(now);
        if let Some(completions) = self.completions.as_mut().filter(|_| steady) {
            completions.record(after);
            self.completed.push((now.as_nanos(), after.as_nanos()));
        }
    }

    /// Notes that a page is complete.
    pub fn page_loaded(&mut self, after: Duration, now: Time) {
        let steady = self.is_steady(now);
        if let Some(pages) = self.pages.as_mut().filter(|_| steady) {
            pages.record(after);
        }
    }

    /// Notes that a frame of a call is complete, `after` it was taken.
    pub fn frame_arrived(&mut self, after: Duration, now: Time) {
        let steady = self.is_steady(now);
        if let Some(frames) = self.frames.as_mut().filter(|_| steady) {
            frames.record(after);
        }
    }

    /// Notes that the first picture of a video can be shown.
    pub fn playing_began(&mut self, after: Duration) {
        if let Some(video) = &mut self.video {
            video.on_start(after);
        }
    }

    /// Notes that a segment of video with this media rate is complete, `stalled` after playback stopped.
    pub fn segment(&mut self, rate: Rate, stalled: Duration) {
        if let Some(video) = &mut self.video {
            video.on_segment(rate, stalled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 10 to 14 two are missing; later losses are not known.
    #[test]
    fn loss_counts_between_the_first_and_the_last_arrival() {
        let mut one_way = OneWay::new();
        for number in [11, 10, 14] {
            one_way.record(number, Duration::from_millis(20));
        }
        assert_eq!(one_way.loss(), Some(1.0 - 3.0 / 5.0));
    }
}
