//! What is measured of a flow.

use sojourn_units::{Duration, Rate, Time};

use crate::delays::{Delays, Precision};
use crate::jitter::Jitter;
use crate::playback::Playback;
use crate::series::{Looker, Since};

/// What there is to measure of a flow, which depends on what it does.
#[derive(Clone, Copy, Debug)]
pub struct Measures {
    /// When measuring begins.
    pub warmup: Time,
    /// It runs over TCP.
    pub over_tcp: bool,
    /// One-way delays.
    pub one_way: bool,
    /// Completion times of files and web responses.
    pub completions: bool,
    /// Load times of pages.
    pub page_loads: bool,
    /// What a player of video saw.
    pub playback: bool,
    /// A row per round-trip time, and of what.
    pub rows: Option<RowsOf>,
}

/// What has a row in the record of round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowsOf {
    /// A sample of TCP, or an echo.
    Samples,
    /// A segment of TCP.
    Segments,
}

/// The counts and delays of one flow.
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
    pub completions: Option<Delays>,
    /// The same one by one: instants and completion times in nanoseconds.
    pub completed: Vec<(u64, u64)>,
    /// Load times after the warm-up, of pages.
    pub pages: Option<Delays>,
    /// For traffic without a connection.
    pub packets: Option<Packets>,
    /// For data over TCP, if it is recorded.
    pub segments: Option<OneWay>,
    /// For a player of video.
    pub video: Option<Playback>,
    /// Whether it is the samples of TCP, or the echoes, that are recorded.
    records_samples: bool,
    /// Instants and round-trip times in nanoseconds, if they are recorded.
    pub recorded: Option<Vec<(u64, u64)>>,
    received_at_warmup: u64,
    sample: Sample,
    since: Since<Sample>,
}

/// What is measured of packets that are not sent again.
#[derive(Default)]
pub struct Packets {
    /// Packets sent.
    pub sent: u64,
    /// Those of them that arrived, or were answered.
    pub arrived: u64,
    /// For datagrams one way.
    pub one_way: Option<OneWay>,
}

/// Datagrams, or segments with data, SYN or FIN, after the warm-up.
pub struct OneWay {
    /// Their delays.
    pub delays: Delays,
    /// The estimate of their jitter (RFC 3550) after each.
    pub jitter: Delays,
    estimate: Jitter,
    /// Numbers of the first and of the highest that arrived, and how many arrived.
    pub seen: Option<(u32, u32, u64)>,
}

/// What came in since anyone last looked.
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

    /// The datagram of this number arrives after `delay`.
    pub fn record(&mut self, number: u32, delay: Duration) {
        self.delays.record(delay);
        if let Some(jitter) = self.estimate.update(delay) {
            self.jitter.record(jitter);
        }
        let (first, highest, arrived) = self.seen.unwrap_or((number, number, 0));
        self.seen = Some((first.min(number), highest.max(number), arrived + 1));
    }

    /// The share of datagrams that did not arrive, of those between the first and the last that did (RFC 3550 §A.3).
    pub fn loss(&self) -> Option<f64> {
        self.seen.map(|(first, highest, arrived)| {
            let expected = u64::from(highest - first) + 1;
            1.0 - arrived as f64 / expected as f64
        })
    }
}

impl Meter {
    /// A meter for a flow of which there is this to measure.
    pub fn new(measures: &Measures) -> Self {
        let none = || Delays::new(Precision::Flow);
        Self {
            warmup: measures.warmup,
            sent: 0,
            received: 0,
            retransmits: 0,
            timeouts: 0,
            round_trips: none(),
            completions: measures.completions.then(none),
            completed: Vec::new(),
            pages: measures.page_loads.then(none),
            packets: (!measures.over_tcp).then(|| Packets {
                one_way: measures.one_way.then(OneWay::new),
                ..Packets::default()
            }),
            segments: (measures.over_tcp && measures.one_way).then(OneWay::new),
            video: measures.playback.then(Playback::default),
            records_samples: measures.rows == Some(RowsOf::Samples),
            recorded: measures.rows.map(|_| Vec::new()),
            received_at_warmup: 0,
            sample: Sample::default(),
            since: Since::default(),
        }
    }

    fn is_steady(&self, now: Time) -> bool {
        now >= self.warmup
    }

    /// A round trip has ended.
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

    /// A row of the record, if there is one.
    pub fn record_row(&mut self, rtt: Duration, now: Time) {
        if self.recorded.is_some() {
            self.keep_row(rtt, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_row(&mut self, rtt: Duration, now: Time) {
        if let Some(rows) = &mut self.recorded {
            rows.push((now.as_nanos(), rtt.as_nanos()));
        }
    }

    /// A datagram or an echo request leaves.
    pub fn record_departure(&mut self) {
        if let Some(packets) = &mut self.packets {
            packets.sent += 1;
        }
    }

    /// A datagram arrives.
    pub fn record_datagram(&mut self, number: u32, delay: Duration, now: Time) {
        let steady = self.is_steady(now);
        if let Some(packets) = &mut self.packets {
            packets.arrived += 1;
            if let Some(one_way) = packets.one_way.as_mut().filter(|_| steady) {
                one_way.record(number, delay);
            }
        }
    }

    /// A segment with data arrives.
    #[cold]
    #[inline(never)]
    pub fn record_segment(&mut self, delay: Duration, now: Time) {
        let steady = self.is_steady(now);
        if let Some(segments) = self.segments.as_mut().filter(|_| steady) {
            segments.record(0, delay);
        }
    }

    /// What was measured of packets one way.
    pub fn one_way(&self) -> Option<&OneWay> {
        let datagrams = self.packets.as_ref();
        let datagrams = datagrams.and_then(|packets| packets.one_way.as_ref());
        datagrams.or(self.segments.as_ref())
    }

    /// An echo reply arrives.
    pub fn record_echo(&mut self, rtt: Duration, now: Time) {
        if let Some(packets) = &mut self.packets {
            packets.arrived += 1;
        }
        self.record_rtt(rtt, now);
    }

    /// The warm-up ends now.
    pub const fn mark_warmup(&mut self) {
        self.received_at_warmup = self.received;
    }

    /// Payload bytes received since the warm-up ended.
    pub const fn received_since_warmup(&self) -> u64 {
        self.received - self.received_at_warmup
    }

    /// What came in since this one's last call.
    pub fn take_sample(&mut self, looker: Looker) -> Sample {
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
        self.since.take(latest, Sample::add, looker)
    }

    /// A file or a response is there, so long after it was begun or asked for.
    pub fn completed(&mut self, after: Duration, now: Time) {
        let steady = self.is_steady(now);
        if let Some(completions) = self.completions.as_mut().filter(|_| steady) {
            completions.record(after);
            self.completed.push((now.as_nanos(), after.as_nanos()));
        }
    }

    /// A page is there.
    pub fn page_loaded(&mut self, after: Duration, now: Time) {
        let steady = self.is_steady(now);
        if let Some(pages) = self.pages.as_mut().filter(|_| steady) {
            pages.record(after);
        }
    }

    /// The first picture of a video is there.
    pub fn playing_began(&mut self, after: Duration) {
        if let Some(video) = &mut self.video {
            video.on_start(after);
        }
    }

    /// A segment of video of this media rate is there, `stalled` after playing ran out.
    pub fn segment(&mut self, rate: Rate, stalled: Duration) {
        if let Some(video) = &mut self.video {
            video.on_segment(rate, stalled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 10 to 14 two are missing; what was to come after 14 is not known.
    #[test]
    fn loss_counts_between_the_first_and_the_last_arrival() {
        let mut one_way = OneWay::new();
        for number in [11, 10, 14] {
            one_way.record(number, Duration::from_millis(20));
        }
        assert_eq!(one_way.loss(), Some(1.0 - 3.0 / 5.0));
    }
}
