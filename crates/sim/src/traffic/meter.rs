//! What is measured of a flow.

use hdrhistogram::Histogram;
use sojourn_units::{Duration, Time};

use crate::result::Spread;

/// Delays of flows are told apart to two digits, in microseconds, up to 1000 s.
const LONGEST: u64 = 1_000_000_000;
const DIGITS: u8 = 2;

/// A distribution of delays.
#[derive(Debug)]
pub struct Delays {
    histogram: Histogram<u32>,
    sum: u128,
    most: u64,
}

impl Delays {
    fn new() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, LONGEST, DIGITS)
                .expect("the bounds are valid"),
            sum: 0,
            most: 0,
        }
    }

    /// Takes a delay.
    pub fn record(&mut self, delay: Duration) {
        let nanos = delay.as_nanos();
        self.histogram.saturating_record(nanos / 1000);
        self.sum += u128::from(nanos);
        self.most = self.most.max(nanos);
    }

    /// The distribution in short, in milliseconds.
    pub fn spread(&self) -> Spread {
        let n = self.histogram.len();
        if n == 0 {
            return Spread::default();
        }
        let most = self.most as f64 / 1e6;
        let at = |q: f64| Some((self.histogram.value_at_quantile(q) as f64 / 1e3).min(most));
        Spread {
            n,
            mean: Some(self.sum as f64 / n as f64 / 1e6),
            p5: at(0.05),
            p50: at(0.5),
            p95: at(0.95),
            max: Some(most),
        }
    }
}

/// The counts and delays of one flow.
#[derive(Debug)]
pub struct Meter {
    warmup: Time,
    /// Payload bytes sent, without retransmissions.
    pub sent: u64,
    /// Payload bytes received in order.
    pub received: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Round-trip times after the warm-up.
    pub round_trips: Delays,
    /// One-way delays after the warm-up, for datagrams.
    pub one_way: Option<Delays>,
    /// Completion times after the warm-up, for files.
    pub completions: Option<Delays>,
    /// Datagrams or requests sent, and those of them that arrived or were answered.
    pub datagrams: Option<(u64, u64)>,
    received_at_warmup: u64,
    received_at_sample: u64,
}

impl Meter {
    /// A meter whose delays are counted from `warmup` on.
    pub fn new(warmup: Time) -> Self {
        Self {
            warmup,
            sent: 0,
            received: 0,
            retransmits: 0,
            round_trips: Delays::new(),
            one_way: None,
            completions: None,
            datagrams: None,
            received_at_warmup: 0,
            received_at_sample: 0,
        }
    }

    /// A meter of datagrams.
    pub fn of_datagrams(warmup: Time) -> Self {
        Self {
            one_way: Some(Delays::new()),
            datagrams: Some((0, 0)),
            ..Self::new(warmup)
        }
    }

    /// A meter of echoes.
    pub fn of_echoes(warmup: Time) -> Self {
        Self {
            datagrams: Some((0, 0)),
            ..Self::new(warmup)
        }
    }

    /// A meter of files.
    pub fn of_files(warmup: Time) -> Self {
        Self {
            completions: Some(Delays::new()),
            ..Self::new(warmup)
        }
    }

    /// True once delays count.
    pub fn is_steady(&self, now: Time) -> bool {
        now >= self.warmup
    }

    /// The warm-up ends now.
    pub const fn mark_warmup(&mut self) {
        self.received_at_warmup = self.received;
    }

    /// Payload bytes received since the warm-up ended.
    pub const fn received_since_warmup(&self) -> u64 {
        self.received - self.received_at_warmup
    }

    /// Payload bytes received since the last call.
    pub const fn take_sample(&mut self) -> u64 {
        let bytes = self.received - self.received_at_sample;
        self.received_at_sample = self.received;
        bytes
    }
}
