//! What is measured at a link.

use std::collections::BTreeMap;

use sojourn_aqm::{DropReason, Ecn, Packet};
use sojourn_units::{Duration, Time};

use crate::packet::SimPacket;
use crate::result::{Column, InnerQueue, Spread, Table, place_columns};
use crate::sampler::{Looker, Since};
use sojourn_experiment::model::Hop;
use sojourn_measure::delays::{Delays, Precision};
use sojourn_measure::loss_events::{LossEvents, Population};

/// The measurements at a queue. Takes the same memory however long the run, unless packets
/// are recorded.
pub struct LinkProbe {
    warmup: Time,
    /// Sojourn times after the warm-up.
    pub sojourns: Delays,
    /// The longest sojourn before the warm-up ended.
    pub startup_peak: Duration,
    /// Packets that left, over the whole run.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// What was dropped for each reason, in the order of [`REASONS`].
    drops: [Drops; 3],
    /// When flows lose together, after the warm-up.
    pub loss_events: LossEvents,
    /// What became of the data of each flow; acknowledgements and replies are left out.
    pub flows: Vec<FlowCounts>,
    /// Sojourn times since anyone last looked: their sum and the longest.
    recent: Recent,
    since: Since<Recent>,
    /// Packets that had left at the last sample.
    delivered_before: u64,
    packets: Option<PacketRows>,
    /// Where the discipline has several queues.
    inner: Vec<Inner>,
    /// There is more to note of each packet: a row, or its inner queue.
    has_more_to_note: bool,
}

/// One of several queues that a discipline has.
struct Inner {
    name: &'static str,
    /// Sojourn times after the warm-up.
    sojourns: Delays,
    delivered: u64,
    dropped: u64,
    marked: u64,
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

impl Recent {
    fn add(&mut self, later: Self) {
        self.packets += later.packets;
        self.sum += later.sum;
        self.longest = self.longest.max(later.longest);
    }
}

impl LinkProbe {
    /// A probe of a link that these flows share. Its steady-state figures begin at `warmup`; `record`: keep a row per
    /// packet.
    pub fn new(warmup: Time, record: bool, population: Population) -> Self {
        Self {
            warmup,
            sojourns: Delays::new(Precision::Queue),
            startup_peak: Duration::ZERO,
            delivered_packets: 0,
            delivered_bytes: 0,
            drops: [(); 3].map(|()| Drops {
                packets: 0,
                delays: Delays::new(Precision::Queue),
            }),
            flows: vec![FlowCounts::default(); population.flows()],
            loss_events: LossEvents::new(population),
            recent: Recent::default(),
            since: Since::default(),
            delivered_before: 0,
            packets: record.then(PacketRows::default),
            inner: Vec::new(),
            has_more_to_note: record,
        }
    }

    /// Tells a discipline's inner queues apart, in the order in which it numbers them.
    pub fn tell_apart(&mut self, names: &[&'static str]) {
        let inner = |name: &&'static str| Inner {
            name,
            sojourns: Delays::new(Precision::Queue),
            delivered: 0,
            dropped: 0,
            marked: 0,
        };
        self.inner = names.iter().map(inner).collect();
        self.has_more_to_note |= !names.is_empty();
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
            self.flows[packet.flow as usize].marked += u64::from(!packet.returning);
        }
        self.recent.sum += nanos;
        self.recent.longest = self.recent.longest.max(nanos);
        if now >= self.warmup {
            self.sojourns.record(sojourn);
        } else {
            self.startup_peak = self.startup_peak.max(sojourn);
        }
        if self.has_more_to_note {
            self.note_departure(packet, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_departure(&mut self, packet: &SimPacket, now: Time) {
        let is_marked = packet.ecn == Ecn::Ce;
        if let Some(inner) = self.inner.get_mut(usize::from(packet.inner_queue)) {
            inner.delivered += 1;
            inner.marked += u64::from(is_marked);
            if now >= self.warmup {
                inner.sojourns.record(now - packet.enqueued());
            }
        }
        let fate = if is_marked {
            Fate::Marked
        } else {
            Fate::Delivered
        };
        self.record(packet, now, fate);
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
        if let Some(inner) = self.inner.get_mut(usize::from(packet.inner_queue)) {
            inner.dropped += 1;
        }
        let fate = match reason {
            DropReason::Aqm | DropReason::Deterministic => Fate::DroppedAqm,
            DropReason::Overflow => Fate::DroppedOverflow,
        };
        self.record(packet, now, fate);
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

    /// The figures of the discipline's inner queues.
    pub fn inner_queues(&self) -> BTreeMap<&'static str, InnerQueue> {
        let figures = |inner: &Inner| InnerQueue {
            sojourn_ms: inner.sojourns.quantiles(),
            delivered_packets: inner.delivered,
            dropped_packets: inner.dropped,
            marked: inner.marked,
        };
        let named = self.inner.iter().map(|inner| (inner.name, figures(inner)));
        named.collect()
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

    /// Takes the sojourn times since this one's last call.
    pub fn take_recent(&mut self, looker: Looker) -> Recent {
        let latest = Recent {
            packets: self.delivered_packets - self.delivered_before,
            ..std::mem::take(&mut self.recent)
        };
        self.delivered_before = self.delivered_packets;
        self.since.take(latest, Recent::add, looker)
    }

    /// The recorded packets, in the order in which their fate was settled.
    pub fn into_table(self, queue: Hop) -> Option<Table> {
        let rows = self.packets?;
        let mut columns = place_columns(queue, rows.time.len());
        columns.extend([
            ("time_ns", Column::U64(rows.time)),
            ("sojourn_ns", Column::U64(rows.sojourn)),
            ("flow", Column::U32(rows.flow)),
            ("bytes", Column::U32(rows.bytes)),
            ("returning", Column::U8(rows.returning)),
            ("fate", Column::U8(rows.fate)),
        ]);
        Some(Table { columns })
    }
}
