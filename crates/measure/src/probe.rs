//! Measurements at a queue.

use std::collections::BTreeMap;

use sojourn_units::{Duration, Hop, Time, cold_path};

use crate::delays::{Delays, Precision};
use crate::interval::{Interval, Reader};
use crate::loss_events::{LossEvents, ResponsiveFlows};
use crate::result::{Bottleneck, InnerQueue, Spread};
use crate::table::{Column, Table, place_columns};

/// A packet at a queue, as a probe sees it.
pub trait Packet {
    /// The number of its flow over all groups.
    fn flow(&self) -> u32;

    /// Bytes on the link.
    fn bytes(&self) -> u32;

    /// When it entered the queue.
    fn entered(&self) -> Time;

    /// True if it travels towards the sender of the data.
    fn is_returning(&self) -> bool;

    /// True if it carries Congestion Experienced.
    fn is_marked(&self) -> bool;

    /// The inner queue that it was in, for a discipline with several.
    fn inner_queue(&self) -> u8;

    /// Its number in the run, the same at every queue, if it has one.
    fn number(&self) -> Option<u32> {
        None
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Decided by the algorithm.
    Aqm,
    /// Decided by a deterministic rule of an algorithm that also drops at random.
    Deterministic,
    /// There was no room.
    Overflow,
    /// Unknown, because the kernel does not report it.
    Unknown,
}

/// The reasons and their names in results, in the order of their numbers.
const REASONS: [(Reason, &str); 4] = [
    (Reason::Aqm, "aqm"),
    (Reason::Deterministic, "deterministic"),
    (Reason::Overflow, "overflow"),
    (Reason::Unknown, "unknown"),
];

/// The measurements at a queue. Memory does not grow with the run, unless packets are recorded.
pub struct QueueProbe {
    warmup: Time,
    /// The waits of packets that were in no inner queue.
    waits: Waits,
    /// The longest sojourn before the warm-up ended.
    startup_peak: Duration,
    /// Packets that left, over the whole run.
    delivered_packets: u64,
    /// Their bytes.
    delivered_bytes: u64,
    /// Drops by reason, in the order of [`REASONS`].
    drops: [Drops; 4],
    /// Loss events after the warm-up.
    loss_events: LossEvents,
    /// The fate of each flow's data, without acknowledgements and replies.
    pub flows: Vec<FlowCounts>,
    /// Sum and maximum of the sojourn times since the previous sample.
    recent: Recent,
    interval: Interval<Recent>,
    /// Packets and bytes that had left at the last sample.
    delivered_before: (u64, u64),
    packets: Option<PacketRows>,
    /// What has happened to packets since the events were taken, if anybody watches.
    events: Option<Vec<PacketEvent>>,
    /// The discipline's inner queues, if it has several.
    inner: Vec<Inner>,
    /// Each packet is also recorded as a row, or told to whoever watches.
    notes_each: bool,
    /// `notes_each`, or packets are counted for each inner queue.
    has_more_to_note: bool,
    /// Packets have numbers.
    has_numbers: bool,
}

/// What happened to a packet at a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happened {
    /// It left.
    Delivered = 0,
    /// It left with Congestion Experienced.
    Marked = 1,
    /// The algorithm dropped it.
    DroppedAqm = 2,
    /// It was dropped for lack of room.
    DroppedOverflow = 3,
    /// It was dropped for an unknown reason.
    Dropped = 4,
    /// It arrived; it may be dropped or leave at the same instant.
    Arrived = 5,
}

/// Something that happened to a packet at a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketEvent {
    /// When.
    pub time: Time,
    /// When the packet arrived. With the flow and the direction it tells which packet it is.
    pub entered: Time,
    /// The number of its flow over all groups.
    pub flow: u32,
    /// Bytes on the link.
    pub bytes: u32,
    /// True if it travels towards the sender of the data.
    pub returning: bool,
    /// What happened.
    pub what: Happened,
}

/// One of several queues of a discipline.
struct Inner {
    name: &'static str,
    waits: Waits,
    delivered: u64,
    dropped: u64,
    marked: u64,
}

/// Sojourn times after the warm-up.
struct Waits {
    /// Of packets that left later than they came.
    delays: Delays,
    /// Packets that left at the instant at which they came.
    passed: u64,
}

impl Waits {
    const fn new() -> Self {
        Self {
            delays: Delays::new(Precision::Queue),
            passed: 0,
        }
    }

    fn sojourns(&self) -> Delays {
        let mut sojourns = self.delays.clone();
        sojourns.record_many(Duration::ZERO, self.passed);
        sojourns
    }
}

/// Drops for one reason.
struct Drops {
    /// The number of drops over the whole run.
    packets: u64,
    /// The queueing delay at drops after the warm-up.
    delays: Delays,
}

/// The fate of a flow's packets at a link, over the whole run.
#[derive(Clone, Copy, Default)]
pub struct FlowCounts {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Packets that left with CE.
    pub marked: u64,
}

/// Sojourn times of one bin of the time series.
#[derive(Clone, Copy, Default)]
pub struct Recent {
    /// Packets that left.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
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
    /// Empty unless packets have numbers.
    packet: Vec<u32>,
}

impl Recent {
    fn add(&mut self, later: Self) {
        self.packets += later.packets;
        self.bytes += later.bytes;
        self.sum += later.sum;
        self.longest = self.longest.max(later.longest);
    }
}

impl QueueProbe {
    /// A probe of a queue shared by these flows. Its steady-state figures begin at `warmup`. `record`: record a row
    /// per packet.
    pub fn new(warmup: Time, record: bool, responsive: ResponsiveFlows) -> Self {
        Self {
            warmup,
            waits: Waits::new(),
            startup_peak: Duration::ZERO,
            delivered_packets: 0,
            delivered_bytes: 0,
            drops: REASONS.map(|_| Drops {
                packets: 0,
                delays: Delays::new(Precision::Queue),
            }),
            flows: vec![FlowCounts::default(); responsive.flows()],
            loss_events: LossEvents::new(responsive),
            recent: Recent::default(),
            interval: Interval::default(),
            delivered_before: (0, 0),
            packets: record.then(PacketRows::default),
            events: None,
            inner: Vec::new(),
            notes_each: record,
            has_more_to_note: record,
            has_numbers: false,
        }
    }

    /// Records the numbers of packets, too: each has one.
    pub const fn with_numbers(mut self) -> Self {
        self.has_numbers = true;
        self
    }

    /// Separates a discipline's inner queues, given their names in the order of their numbers.
    pub fn split_by_inner_queue(&mut self, names: &[&'static str]) {
        let inner = |name: &&'static str| Inner {
            name,
            waits: Waits::new(),
            delivered: 0,
            dropped: 0,
            marked: 0,
        };
        self.inner = names.iter().map(inner).collect();
        self.has_more_to_note |= !names.is_empty();
    }

    /// Notes every event of a packet from now on, for [`QueueProbe::take_events`].
    pub fn watch(&mut self) {
        self.events.get_or_insert_default();
        (self.notes_each, self.has_more_to_note) = (true, true);
    }

    /// Takes the events since the last call, in order of time; none unless the queue is watched.
    pub fn take_events(&mut self) -> Vec<PacketEvent> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Counts a packet that arrives at the queue.
    #[inline(always)]
    pub fn on_arrival(&mut self, packet: &impl Packet, now: Time) {
        if !packet.is_returning() {
            self.flows[packet.flow() as usize].arrived += 1;
        }
        if self.notes_each {
            self.note_arrival(packet, now);
        }
    }

    /// True if packets that arrive together may be counted together.
    pub const fn takes_bursts(&self) -> bool {
        !self.notes_each
    }

    /// Counts packets of a flow that arrive together, unless each is noted.
    #[inline(always)]
    pub fn on_arrivals(&mut self, packet: &impl Packet, count: u32) {
        if !packet.is_returning() {
            self.flows[packet.flow() as usize].arrived += u64::from(count);
        }
    }

    #[cold]
    fn note_arrival(&mut self, packet: &impl Packet, now: Time) {
        if let Some(events) = &mut self.events {
            // The packet learns the time of its arrival behind this call.
            events.push(PacketEvent {
                entered: now,
                ..event(packet, now, Happened::Arrived)
            });
        }
    }

    /// Counts a packet that leaves the discipline.
    #[inline(always)]
    pub fn on_departure(&mut self, packet: &impl Packet, now: Time) {
        let sojourn = now - packet.entered();
        let nanos = sojourn.as_nanos();
        self.recent.sum += nanos;
        self.recent.longest = self.recent.longest.max(nanos);
        let is_steady = now >= self.warmup;
        if !is_steady {
            cold_path();
            self.startup_peak = self.startup_peak.max(sojourn);
        }
        if self.has_more_to_note {
            if is_steady {
                self.waits_of(packet).delays.record(sojourn);
            }
            self.note_departure(packet, now);
        } else if is_steady {
            self.waits.delays.record(sojourn);
        }
        self.count_departure(packet);
    }

    /// Counts a packet that leaves the discipline at the instant at which it came.
    #[inline(always)]
    pub fn on_pass(&mut self, packet: &impl Packet, now: Time) {
        let passed = u64::from(now >= self.warmup);
        if self.has_more_to_note {
            self.waits_of(packet).passed += passed;
            self.note_departure(packet, now);
        } else {
            self.waits.passed += passed;
        }
        self.count_departure(packet);
    }

    /// Where the packet's sojourn counts: with its inner queue, or with all that have none.
    #[inline(always)]
    fn waits_of(&mut self, packet: &impl Packet) -> &mut Waits {
        let inner = self.inner.get_mut(usize::from(packet.inner_queue()));
        inner.map_or(&mut self.waits, |inner| &mut inner.waits)
    }

    #[inline(always)]
    fn count_departure(&mut self, packet: &impl Packet) {
        self.delivered_packets += 1;
        self.delivered_bytes += u64::from(packet.bytes());
        if packet.is_marked() {
            self.flows[packet.flow() as usize].marked += u64::from(!packet.is_returning());
        }
    }

    #[inline(always)]
    fn note_departure(&mut self, packet: &impl Packet, now: Time) {
        let is_marked = packet.is_marked();
        if let Some(inner) = self.inner.get_mut(usize::from(packet.inner_queue())) {
            inner.delivered += 1;
            inner.marked += u64::from(is_marked);
        }
        if self.notes_each {
            cold_path();
            let fate = if is_marked {
                Happened::Marked
            } else {
                Happened::Delivered
            };
            self.record(packet, now, fate);
        }
    }

    /// Counts a dropped packet. `queued` is the queueing delay: the packet's sojourn time or, if it was dropped on
    /// arrival, the time that the backlog takes to leave.
    #[inline(always)]
    pub fn on_drop(&mut self, packet: &impl Packet, reason: Reason, queued: Duration, now: Time) {
        let steady = now >= self.warmup;
        let drops = &mut self.drops[reason as usize];
        drops.packets += 1;
        if steady {
            drops.delays.record(queued);
        }
        if !packet.is_returning() {
            self.flows[packet.flow() as usize].dropped += 1;
            if steady {
                self.loss_events.on_drop(packet.flow(), now);
            }
        }
        if let Some(inner) = self.inner.get_mut(usize::from(packet.inner_queue())) {
            inner.dropped += 1;
        }
        let fate = match reason {
            Reason::Aqm | Reason::Deterministic => Happened::DroppedAqm,
            Reason::Overflow => Happened::DroppedOverflow,
            Reason::Unknown => Happened::Dropped,
        };
        self.record(packet, now, fate);
    }

    /// Counts a packet that left the queue but is lost before it reaches the next.
    pub fn on_loss(&mut self, packet: &impl Packet, now: Time) {
        if !packet.is_returning() {
            self.flows[packet.flow() as usize].dropped += 1;
            if now >= self.warmup {
                self.loss_events.on_drop(packet.flow(), now);
            }
        }
    }

    /// The queue's figures. The link provides the share of its capacity used, the discipline the number of marks.
    pub fn figures(&self, utilization: f64, marked: u64) -> Bottleneck {
        let dropped = |reason: Reason| self.drops[reason as usize].packets;
        Bottleneck {
            sojourn_ms: self.sojourns().quantiles(),
            startup_peak_ms: self.startup_peak.as_millis_f64(),
            utilization,
            delivered_packets: self.delivered_packets,
            delivered_bytes: self.delivered_bytes,
            dropped_aqm: dropped(Reason::Aqm) + dropped(Reason::Deterministic),
            dropped_overflow: dropped(Reason::Overflow),
            marked,
            lost_packets: None,
            duplicated_packets: None,
            drop_delay_ms: self.drop_delays(),
            loss_events: self.loss_events.count(),
            loss_synchronization: self.loss_events.synchronization(),
            queues: self.inner_queues(),
        }
    }

    /// Packets dropped for any reason, over the whole run.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().map(|drops| drops.packets).sum()
    }

    /// The queueing delay at drops after the warm-up, by reason, without reasons that did not occur.
    fn drop_delays(&self) -> BTreeMap<&'static str, Spread> {
        let spreads = self.drops.iter().map(|drops| drops.delays.spread());
        let named = REASONS.iter().map(|(_, name)| *name).zip(spreads);
        named.filter(|(_, spread)| spread.n > 0).collect()
    }

    /// The figures of the discipline's inner queues.
    fn inner_queues(&self) -> BTreeMap<&'static str, InnerQueue> {
        let figures = |inner: &Inner| InnerQueue {
            sojourn_ms: inner.waits.sojourns().quantiles(),
            delivered_packets: inner.delivered,
            dropped_packets: inner.dropped,
            marked: inner.marked,
            ..InnerQueue::default()
        };
        let named = self.inner.iter().map(|inner| (inner.name, figures(inner)));
        named.collect()
    }

    #[cold]
    #[inline(never)]
    fn record(&mut self, packet: &impl Packet, now: Time, fate: Happened) {
        if let Some(events) = &mut self.events {
            events.push(event(packet, now, fate));
        }
        if let Some(rows) = &mut self.packets {
            rows.time.push(now.as_nanos());
            rows.sojourn.push((now - packet.entered()).as_nanos());
            rows.flow.push(packet.flow());
            rows.bytes.push(packet.bytes());
            rows.returning.push(u8::from(packet.is_returning()));
            rows.fate.push(fate as u8);
            rows.packet.extend(packet.number());
        }
    }

    /// Takes the sojourn times since the last call of this `reader`.
    pub fn take_sample(&mut self, reader: Reader) -> Recent {
        let latest = Recent {
            packets: self.delivered_packets - self.delivered_before.0,
            bytes: self.delivered_bytes - self.delivered_before.1,
            ..std::mem::take(&mut self.recent)
        };
        self.delivered_before = (self.delivered_packets, self.delivered_bytes);
        self.interval.take(latest, Recent::add, reader)
    }

    /// Sojourn times after the warm-up.
    fn sojourns(&self) -> Delays {
        let mut sojourns = self.waits.sojourns();
        for inner in &self.inner {
            sojourns.add(&inner.waits.sojourns());
        }
        sojourns
    }

    /// The recorded table `histogram` of this queue.
    pub fn histogram(&self, queue: Hop) -> Table {
        self.sojourns().table(queue)
    }

    /// The recorded packets, in the order in which their fate was decided.
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
        if self.has_numbers {
            columns.push(("packet", Column::U32(rows.packet)));
        }
        Some(Table { columns })
    }
}

fn event(packet: &impl Packet, now: Time, what: Happened) -> PacketEvent {
    PacketEvent {
        time: now,
        entered: packet.entered(),
        flow: packet.flow(),
        bytes: packet.bytes(),
        returning: packet.is_returning(),
        what,
    }
}
