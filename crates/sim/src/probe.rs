//! What is measured at a link.

use hdrhistogram::Histogram;
use sojourn_aqm::{DropReason, Ecn, Packet};
use sojourn_units::{Duration, Time};

use crate::packet::SimPacket;
use crate::result::{Column, Quantiles, Table};

/// Sojourn times are told apart to three digits, up to this many nanoseconds (1000 s).
const LONGEST: u64 = 1_000_000_000_000;
const DIGITS: u8 = 3;

/// The measurements at one direction of the bottleneck. Takes the same memory however long the run, unless packets
/// are recorded.
pub struct LinkProbe {
    warmup: Time,
    histogram: Histogram<u64>,
    sum: u128,
    least: u64,
    most: u64,
    /// The longest sojourn before the warm-up ended.
    pub startup_peak: Duration,
    /// Packets that left, over the whole run.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Bytes that left after the warm-up.
    pub steady_bytes: u64,
    /// Packets that the algorithm gave up.
    pub dropped_aqm: u64,
    /// Packets for which there was no room.
    pub dropped_overflow: u64,
    /// Sojourn times since the last sample of the series: how many, their sum and the longest.
    pub recent: Recent,
    packets: Option<PacketRows>,
}

/// Sojourn times of one bin of the time series.
#[derive(Clone, Copy, Default)]
pub struct Recent {
    /// Packets that left.
    pub packets: u64,
    /// Sum of their sojourn times in nanoseconds.
    pub sum: u64,
    /// The longest.
    pub longest: u64,
}

#[derive(Default)]
struct PacketRows {
    time: Vec<u64>,
    sojourn: Vec<u64>,
    flow: Vec<u32>,
    bytes: Vec<u32>,
    returning: Vec<u8>,
    fate: Vec<u8>,
}

/// What became of a recorded packet, as the `fate` column has it.
#[derive(Clone, Copy)]
enum Fate {
    Delivered = 0,
    Marked = 1,
    DroppedAqm = 2,
    DroppedOverflow = 3,
}

impl LinkProbe {
    /// A probe whose steady-state figures begin at `warmup`; `record`: keep a row per packet.
    pub fn new(warmup: Time, record: bool) -> Self {
        Self {
            warmup,
            histogram: Histogram::new_with_bounds(1, LONGEST, DIGITS)
                .expect("the bounds are valid"),
            sum: 0,
            least: u64::MAX,
            most: 0,
            startup_peak: Duration::ZERO,
            delivered_packets: 0,
            delivered_bytes: 0,
            steady_bytes: 0,
            dropped_aqm: 0,
            dropped_overflow: 0,
            recent: Recent::default(),
            packets: record.then(PacketRows::default),
        }
    }

    /// A packet leaves the discipline.
    pub fn on_departure(&mut self, packet: &SimPacket, now: Time) {
        let sojourn = now - packet.enqueued();
        let nanos = sojourn.as_nanos();
        self.delivered_packets += 1;
        self.delivered_bytes += u64::from(packet.bytes);
        self.recent.packets += 1;
        self.recent.sum += nanos;
        self.recent.longest = self.recent.longest.max(nanos);
        if now >= self.warmup {
            self.steady_bytes += u64::from(packet.bytes);
            self.histogram.saturating_record(nanos);
            self.sum += u128::from(nanos);
            self.least = self.least.min(nanos);
            self.most = self.most.max(nanos);
        } else {
            self.startup_peak = self.startup_peak.max(sojourn);
        }
        if self.packets.is_some() {
            self.record(
                packet,
                now,
                if packet.ecn == Ecn::Ce {
                    Fate::Marked
                } else {
                    Fate::Delivered
                },
            );
        }
    }

    /// A packet is given up.
    pub fn on_drop(&mut self, packet: &SimPacket, reason: DropReason, now: Time) {
        let fate = match reason {
            DropReason::Aqm => {
                self.dropped_aqm += 1;
                Fate::DroppedAqm
            }
            DropReason::Overflow => {
                self.dropped_overflow += 1;
                Fate::DroppedOverflow
            }
        };
        if self.packets.is_some() {
            self.record(packet, now, fate);
        }
    }

    fn record(&mut self, packet: &SimPacket, now: Time, fate: Fate) {
        if let Some(rows) = &mut self.packets {
            rows.time.push(now.as_nanos());
            rows.sojourn.push((now - packet.enqueued()).as_nanos());
            rows.flow.push(packet.flow);
            rows.bytes.push(packet.bytes);
            rows.returning.push(u8::from(packet.returning));
            rows.fate.push(fate as u8);
        }
    }

    /// Takes the sojourn times since the last call.
    pub fn take_recent(&mut self) -> Recent {
        std::mem::take(&mut self.recent)
    }

    /// The quantiles of the sojourn times after the warm-up.
    pub fn quantiles(&self) -> Quantiles {
        let n = self.histogram.len();
        let mean = (n > 0).then(|| self.sum as f64 / n as f64 / 1e6);
        let extreme = |nanos: u64| (n > 0).then_some(nanos as f64 / 1e6);
        let at = |percent: f64| {
            (n > 0).then(|| {
                let nanos = self.histogram.value_at_quantile(percent / 100.0);
                nanos.clamp(self.least, self.most) as f64 / 1e6
            })
        };
        Quantiles {
            n,
            mean,
            min: extreme(self.least),
            p1: at(1.0),
            p5: at(5.0),
            p10: at(10.0),
            p25: at(25.0),
            p50: at(50.0),
            p75: at(75.0),
            p90: at(90.0),
            p95: at(95.0),
            p99: at(99.0),
            p99_9: at(99.9),
            max: extreme(self.most),
        }
    }

    /// The recorded packets, in the order in which their fate was settled.
    pub fn into_table(self, direction: u8) -> Option<Table> {
        let rows = self.packets?;
        let count = rows.time.len();
        Some(Table {
            columns: vec![
                ("direction", Column::U8(vec![direction; count])),
                ("time_ns", Column::U64(rows.time)),
                ("sojourn_ns", Column::U64(rows.sojourn)),
                ("flow", Column::U32(rows.flow)),
                ("bytes", Column::U32(rows.bytes)),
                ("returning", Column::U8(rows.returning)),
                ("fate", Column::U8(rows.fate)),
            ],
        })
    }
}
