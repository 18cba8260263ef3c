//! What is measured at a link.

use std::collections::BTreeMap;
use std::hint::cold_path;

use hdrhistogram::Histogram;
use sojourn_aqm::{DropReason, Ecn, Packet};
use sojourn_units::{Duration, Time};

use crate::packet::SimPacket;
use crate::result::{Column, Quantiles, Spread, Table};
use crate::traffic::Delays;
use sojourn_experiment::loss_events::{LossEvents, Population};

/// Sojourn times are told apart to three digits, up to this many nanoseconds (1000 s).
const LONGEST: u64 = 1_000_000_000_000;
const DIGITS: u8 = 3;

/// The measurements at one direction of the bottleneck. Takes the same memory however long the run, unless packets
/// are recorded.
pub struct LinkProbe {
    warmup: Time,
    histogram: Histogram<u32>,
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
    /// What was dropped for each reason, in the order of [`REASONS`].
    drops: [Drops; 3],
    /// When flows lose together, after the warm-up.
    pub loss_events: LossEvents,
    /// What became of the data of each flow; acknowledgements and replies are left out.
    pub flows: Vec<FlowCounts>,
    /// Sojourn times since the last sample of the series: how many, their sum and the longest.
    pub recent: Recent,
    packets: Option<PacketRows>,
}

/// The reasons for dropping and their names in results.
pub const REASONS: [(DropReason, &str); 3] = [
    (DropReason::Aqm, "aqm"),
    (DropReason::Deterministic, "deterministic"),
    (DropReason::Overflow, "overflow"),
];

/// Drops for one reason.
struct Drops {
    /// How many, over the whole run.
    packets: u64,
    /// How long the queue was, after the warm-up.
    delays: Delays,
}

/// What became of a flow's packets at a link, over the whole run.
#[derive(Clone, Copy, Default)]
pub struct FlowCounts {
    /// Packets that came.
    pub arrived: u64,
    /// Packets that were given up.
    pub dropped: u64,
    /// Packets that left with CE.
    pub marked: u64,
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
    /// A probe of a link that these flows share. Its steady-state figures begin at `warmup`; `record`: keep a row per
    /// packet.
    pub fn new(warmup: Time, record: bool, population: Population) -> Self {
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
            drops: [(); 3].map(|()| Drops {
                packets: 0,
                delays: Delays::new(),
            }),
            flows: vec![FlowCounts::default(); population.flows()],
            loss_events: LossEvents::new(population),
            recent: Recent::default(),
            packets: record.then(PacketRows::default),
        }
    }

    /// A packet comes to the link.
    pub fn on_arrival(&mut self, packet: &SimPacket) {
        if !packet.returning {
            self.flows[packet.flow as usize].arrived += 1;
        }
    }

    /// A packet leaves the discipline.
    #[inline(always)]
    pub fn on_departure(&mut self, packet: &SimPacket, now: Time) {
        let sojourn = now - packet.enqueued();
        let nanos = sojourn.as_nanos();
        self.delivered_packets += 1;
        self.delivered_bytes += u64::from(packet.bytes);
        if packet.ecn == Ecn::Ce {
            cold_path();
            self.flows[packet.flow as usize].marked += u64::from(!packet.returning);
        }
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
            cold_path();
            self.startup_peak = self.startup_peak.max(sojourn);
        }
        if self.packets.is_some() {
            cold_path();
            let fate = if packet.ecn == Ecn::Ce {
                Fate::Marked
            } else {
                Fate::Delivered
            };
            self.record(packet, now, fate);
        }
    }

    /// A packet is given up when the queue is `queued` long.
    pub fn on_drop(&mut self, packet: &SimPacket, reason: DropReason, queued: Duration, now: Time) {
        let steady = now >= self.warmup;
        for (drops, (known, _)) in self.drops.iter_mut().zip(REASONS) {
            if known == reason {
                drops.packets += 1;
                if steady {
                    drops.delays.record(queued);
                }
            }
        }
        if !packet.returning {
            self.flows[packet.flow as usize].dropped += 1;
            if steady {
                self.loss_events.on_drop(packet.flow, now);
            }
        }
        if self.packets.is_some() {
            let fate = match reason {
                DropReason::Aqm | DropReason::Deterministic => Fate::DroppedAqm,
                DropReason::Overflow => Fate::DroppedOverflow,
            };
            self.record(packet, now, fate);
        }
    }

    /// Packets that the algorithm gave up, over the whole run.
    pub fn dropped_aqm(&self) -> u64 {
        self.drops[0].packets + self.drops[1].packets
    }

    /// Packets for which there was no room, over the whole run.
    pub const fn dropped_overflow(&self) -> u64 {
        self.drops[2].packets
    }

    /// How long the queue was at drops after the warm-up, by reason; reasons that there were not are left out.
    pub fn drop_delays(&self) -> BTreeMap<&'static str, Spread> {
        let spreads = self.drops.iter().map(|drops| drops.delays.spread());
        let named = REASONS.iter().map(|(_, name)| *name).zip(spreads);
        named.filter(|(_, spread)| spread.n > 0).collect()
    }

    #[cold]
    #[inline(never)]
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
