//! The receive window: its size and its growth (RFC 9293 §3.8.6, RFC 7323 §2).

use sojourn_units::{Duration, Time, cold_path};

use super::DELAY_MAX;
use super::memory::{OVERHEAD_6_3, Unread, is_more_than_a_buffer, overhead};
use super::out_of_order::OutOfOrder;
use crate::config::{Config, JIFFY, Kernel};
use crate::segment::Segment;
use crate::seq::Seq;

/// The window offered with a SYN, which cannot be scaled (RFC 7323 §2.2).
pub const SYN_WINDOW: u32 = 65_535;

/// Memory that Linux 6.1 expects a received segment to take beside its payload when it tunes its buffer: a header of 256
/// bytes and the buffer's structures (SKB_TRUESIZE, 64 bits).
const EXPECTED: u32 = 256 + 576;
/// The memory of a segment is enlarged in these steps until half of it holds the payload.
const EXPECTED_STEP: u32 = 128;

/// The receive window. The offer grows with arriving data up to a limit, which is tuned to about twice the data that
/// arrives per round trip (Linux's tcp_grow_window and tcp_rcv_space_adjust).
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    offered: u32,
    /// What the buffer's memory allows while it is empty.
    limit: u32,
    /// The limit while a segment arrives in order and is in the buffer.
    limit_in_order: u32,
    /// The window that the buffer's memory allows, as a share of it in 256ths: half, and in Linux 7.3, once a segment has
    /// arrived, the share that payload takes (scaling_ratio).
    share: u32,
    pub(super) kernel: Kernel,
    /// The largest window. A segment is reserved at first (tcp_init_buffer_space): in Linux 6.1 until the limit is tuned,
    /// in 7.3 until the share of the payload is known.
    clamp: u32,
    max: u32,
    /// Longest delay of an acknowledgement at any RTT; in Linux 7.3 less than the minimum RTO.
    delay_max: Duration,
    mss: u32,
    /// What last arrived in order at one instant, and when, unless it is a single segment that leaves the window as it is.
    /// The application reads after all that arrives at an instant.
    unread: (Time, Unread),
    /// The window last advertised.
    pub(super) advertised: u32,
    /// Right edge of the offered window; never moves back (RFC 9293 §3.8.6).
    edge: Seq,
    /// Most bytes that a round trip has delivered.
    space: u32,
    /// Where and when the present measurement began.
    measured_from: Seq,
    measured_since: Time,
    /// When that has taken a round trip; [`Time::MAX`] before one is known.
    measured_until: Time,
    /// The first measurement is not over. In older versions it begins anew later than its end, by [`WAKES`].
    is_first: bool,
    /// Where the data behind a hole ends, from Linux 6.16 on.
    behind: Seq,
    /// What the application reads at the end of a round trip: from where, up to where, and when.
    read: Option<(Seq, Seq, Time)>,
    /// The RTT, smoothed when it rises, in eighths of microseconds; 0 before the first sample.
    round_trip_8: u32,
    last_echo: u32,
}

/// Windows are told in units of so many bytes (RFC 7323 §2.2: a shift of 10).
const WINDOW_UNIT: u32 = 1024;
/// The largest window that can be scaled (RFC 7323 §2.3).
const LARGEST: u32 = 1 << 30;
/// Bytes that the application asks for with a call, as the agent of the Linux backend does.
const BLOCK: u64 = 256 << 10;
/// Half of the memory, in 256ths.
const HALF: u32 = 128;
/// How long after its arrival the first data is read before Linux 7, because the program sleeps; it is awake for what
/// follows (printed by a kernel). From 7 on a measurement begins when the data arrives.
const WAKES: Duration = Duration::from_micros(3);

impl ReceiveWindow {
    pub(super) fn new(config: &Config, next: Seq) -> Self {
        let limit = config.tuned_window.min(config.max_window);
        let reserved = if limit < config.max_window {
            u32::from(config.mss)
        } else {
            0
        };
        let clamp = limit.saturating_sub(reserved);
        let at_first = SYN_WINDOW.min(limit);
        let offered = if config.kernel >= Kernel::V6_12 {
            clamp
        } else {
            at_first
        };
        let mut window = Self {
            offered,
            limit,
            limit_in_order: limit,
            share: HALF,
            kernel: config.kernel,
            clamp,
            max: config.max_window,
            delay_max: if config.kernel >= Kernel::V6_12 {
                let tick = Duration::from_nanos(JIFFY);
                DELAY_MAX.min(config.rto_min.max(tick * 2) - tick)
            } else {
                DELAY_MAX
            },
            mss: u32::from(config.mss),
            unread: (Time::ZERO, Unread::default()),
            advertised: at_first,
            edge: next + at_first,
            space: at_first.min(10 * u32::from(config.mss)),
            measured_from: next,
            measured_since: Time::ZERO,
            measured_until: Time::MAX,
            is_first: true,
            behind: next,
            read: None,
            round_trip_8: 0,
            last_echo: 0,
        };
        window.set_limit(config.tuned_window);
        window
    }

    pub(super) const fn edge(&self) -> Seq {
        self.edge
    }
    pub(super) const fn offered(&self) -> u32 {
        self.offered
    }
    pub(super) const fn round_trip(&self) -> Duration {
        Duration::from_micros(if self.round_trip_8 == 0 {
            1_000_000
        } else {
            self.round_trip_8 as u64 >> 3
        })
    }
    /// The longest delay of an acknowledgement.
    pub(super) const fn delay_max(&self) -> Duration {
        self.delay_max
    }

    /// The window to advertise with `next` acknowledged, while data is `waiting` behind a hole.
    pub(super) fn offer(&mut self, next: Seq, waiting: Unread, now: Time) -> u32 {
        let mut offered = self.offered;
        if !waiting.is_none() || self.is_short(now) {
            cold_path();
            let unread = waiting + self.unread_at(now);
            offered = offered.min(self.limit_with(unread.memory(self.kernel)));
        }
        self.edge = self.edge.max(next + offered);
        self.advertised = self.edge.since(next);
        self.advertised
    }

    /// True if what is not read at `now` may leave less than the window.
    pub(super) fn is_short(&self, now: Time) -> bool {
        self.offered > self.limit_in_order || self.unread.0 == now
    }

    /// True if the window is no less than the last one, while data is `waiting` behind a hole and what arrives in order is
    /// not read.
    #[cold]
    #[inline(never)]
    pub(super) fn is_kept_with(&self, waiting: Unread, now: Time) -> bool {
        let unread = self.unread_or(self.mss, now);
        let memory = (waiting + unread).memory(self.kernel);
        let offered = self.offered.min(self.limit_with(memory));
        offered.div_ceil(WINDOW_UNIT) >= self.advertised.div_ceil(WINDOW_UNIT)
    }

    /// Notes that a segment of `bytes` arrives in order at the instant of the one before it, which is not read.
    #[cold]
    #[inline(never)]
    pub(super) fn note_together(&mut self, bytes: u32, now: Time) {
        let before = self.unread_or(self.mss, now);
        self.unread = (now, before.followed_by(Unread::segment(bytes), self.mss));
    }

    /// Notes that a segment of `bytes` has put `others` in order.
    pub(super) fn note_filled(&mut self, bytes: u32, others: Unread, now: Time) {
        let unread = self.unread_or(bytes, now);
        self.unread = (now, unread.followed_by(others, self.mss));
    }

    /// True if a call of the application, with which it has read whole blocks of the bytes `received`, leaves some of what
    /// arrives at `now`. Its memory is in use until the next call.
    pub(super) fn keeps_a_rest(&mut self, received: u64, now: Time) -> bool {
        let unread = self.unread_or(self.mss, now);
        let rest = received % BLOCK;
        let is_kept = rest > 0 && rest < unread.bytes();
        if is_kept {
            self.unread = (now, unread);
        }
        is_kept
    }

    /// Notes that the application has read all.
    pub(super) fn note_read(&mut self) {
        self.unread = (Time::ZERO, Unread::default());
    }

    /// What is not read: if nothing was noted, the segment of `bytes` that has just arrived.
    fn unread_or(&self, bytes: u32, now: Time) -> Unread {
        match self.unread_at(now) {
            unread if unread.is_none() => Unread::segment(bytes),
            unread => unread,
        }
    }

    fn unread_at(&self, now: Time) -> Unread {
        match self.unread {
            (at, unread) if at == now => unread,
            _ => Unread::default(),
        }
    }

    /// True if [`ReceiveWindow::grow`] would do nothing with a segment that arrives in order: the usual case once the window has
    /// its size.
    #[inline(always)]
    pub(super) fn is_settled(&self) -> bool {
        self.offered == self.limit_in_order
    }

    /// True if it would do nothing with a segment behind a hole because of what is `waiting` already: a full segment once the
    /// window has its size, or so much that its bytes alone leave no more.
    #[inline(always)]
    pub(super) fn is_full_with(&self, waiting: Unread) -> bool {
        let least = (waiting.bytes() * u64::from(self.share) / 256) as u32;
        self.offered >= self.limit.saturating_sub(least)
            || (self.is_settled() && waiting.bytes() >= u64::from(self.mss))
    }

    /// Takes the round-trip time that an arriving segment tells, after the adjustment at the end of the last round trip.
    #[inline(always)]
    pub(super) fn measure(&mut self, segment: &Segment, now: Time) {
        if self.read.is_some() {
            self.read_before(now);
        }
        if segment.ts_ecr == self.last_echo
            || segment.ts_ecr == 0
            || u32::from(segment.len) < self.mss
        {
            return;
        }
        self.last_echo = segment.ts_ecr;
        if self.round_trip_8 == 0 && self.kernel >= Kernel::V6_12 {
            cold_path();
            self.share = self.share_of_payload();
            let limit = u64::from(self.limit) * u64::from(self.share) / u64::from(HALF);
            self.clamp = self.max;
            self.set_limit(limit.min(u64::from(LARGEST)) as u32);
        }
        let elapsed = crate::timestamp(now).wrapping_sub(segment.ts_ecr);
        self.take_round_trip(elapsed.clamp(1, 60_000));
    }

    /// Takes an arriving segment; true if the window grew. Data that is `waiting` behind a hole and the segment, which may
    /// join one of its buffers, take memory, so that the window cannot grow to its limit (Linux's tcp_grow_window).
    pub(super) fn grow(
        &mut self,
        segment: &Segment,
        is_in_order: bool,
        waiting: &OutOfOrder,
        now: Time,
    ) -> bool {
        if segment.len < 128 {
            return false;
        }
        if is_in_order {
            if self.offered == self.limit_in_order {
                return false; // the common case
            }
            self.unread = (now, self.unread_or(u32::from(segment.len), now));
        }
        let unread = waiting.waiting() + self.unread_at(now);
        let memory = unread.memory(self.kernel);
        let mut limit = self.limit_with(memory);
        // A segment out of order that begins a buffer counts only once it is queued.
        if !is_in_order && self.offered < limit && waiting.joins_a_buffer(segment.seq) {
            limit = self.limit_with(memory + u32::from(segment.len));
        }
        if self.offered >= limit {
            return false;
        }
        self.offered = (self.offered + 2 * self.mss).min(limit);
        true
    }

    /// The limit while `memory` of the buffer is in use.
    fn limit_with(&self, memory: u32) -> u32 {
        let window = u64::from(memory) * u64::from(self.share);
        // What is left is rounded: up in 6.1, whose share is half of it, and down since (tcp_win_from_space).
        let window = if self.kernel >= Kernel::V6_12 {
            window.div_ceil(256)
        } else {
            window / 256
        };
        self.limit.saturating_sub(window as u32).min(self.clamp)
    }

    fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
        self.limit_in_order = self.limit_with(self.mss + overhead(self.kernel));
    }

    /// Takes an RTT sample. A lower one applies at once, of a higher one only an eighth, so that queueing delay is not
    /// mistaken for the path's RTT (Linux's tcp_rcv_rtt_update in 6.1.192; older versions smooth in both directions).
    fn take_round_trip(&mut self, millis: u32) {
        let sample = millis * 1000;
        if self.round_trip_8 == 0 || 8 * sample < self.round_trip_8 {
            self.round_trip_8 = 8 * sample;
        } else {
            self.round_trip_8 += sample - (self.round_trip_8 >> 3);
        }
        self.measured_until = self.measured_since + self.round_trip();
    }

    /// Notes that the bytes `from` to `next` have arrived in order. The application reads them after all that arrives at
    /// this instant.
    #[inline(always)]
    pub(super) fn delivered(&mut self, from: Seq, next: Seq, now: Time) {
        if now < self.measured_until {
            return;
        }
        cold_path();
        let begin = match self.read {
            Some((begin, _, at)) if at == now => begin,
            _ => from,
        };
        self.read = Some((begin, next, now));
    }

    /// Adjusts the window if the application has read the end of a round trip, before `now`.
    #[cold]
    #[inline(never)]
    fn read_before(&mut self, now: Time) {
        if let Some((from, next, at)) = self.read.take_if(|(_, _, at)| *at < now) {
            self.tune(from, next, at);
        }
    }

    /// Adjusts the window at the end of a round trip, when the bytes `from` to `next` are read. The application reads
    /// buffer by buffer, and the measurement ends with the first buffer. So data that waited behind a hole counts for the
    /// next measurement, unless it is little enough to be in that buffer. Linux 6.12 also subtracts from this measurement
    /// what is not read then.
    #[cold]
    #[inline(never)]
    fn tune(&mut self, from: Seq, next: Seq, now: Time) {
        self.behind = self.behind.max(next);
        let waited = next.since(from);
        let first = if is_more_than_a_buffer(waited, self.mss) {
            from + self.mss
        } else {
            next
        };
        let copied = first.since(self.measured_from);
        let copied = if self.kernel >= Kernel::V6_12 {
            copied.saturating_sub(next.since(first))
        } else {
            copied
        };
        if copied > self.space {
            let spare = if self.kernel >= Kernel::V6_18 {
                0
            } else {
                16 * u64::from(self.mss)
            };
            let base = 2 * u64::from(copied) + spare;
            let growth = base * u64::from(copied - self.space) / u64::from(self.space.max(1));
            let wanted = if self.kernel >= Kernel::V6_12 {
                base + 2 * growth
            } else {
                let segments = (base + 2 * growth) / u64::from(self.mss.max(1));
                segments * u64::from(self.window_per_segment())
            };
            self.raise_limit(wanted + u64::from(self.behind.since(next)));
            self.space = copied;
        }
        self.measured_from = first;
        let wakes = std::mem::take(&mut self.is_first) && self.kernel < Kernel::V7_3;
        self.measured_since = now + if wakes { WAKES } else { Duration::ZERO };
        self.measured_until = self.measured_since + self.round_trip();
    }

    /// Makes room for the data that is `waiting` behind a hole while `next` is expected, since Linux 6.16
    /// (tcp_rcvbuf_grow).
    #[inline(always)]
    pub(super) fn make_room(&mut self, next: Seq, waiting: &OutOfOrder) {
        if self.kernel >= Kernel::V6_18 {
            let end = waiting.end();
            self.behind = end;
            self.raise_limit(2 * u64::from(self.space) + u64::from(end.since(next)));
        }
    }

    fn raise_limit(&mut self, wanted: u64) {
        let wanted = wanted.min(u64::from(LARGEST)) as u32;
        if wanted > self.limit {
            self.clamp = self.max;
            self.set_limit(wanted);
        }
    }

    /// The share of a segment's memory that its payload takes, in 256ths.
    fn share_of_payload(&self) -> u32 {
        256 * self.mss / (self.mss + OVERHEAD_6_3)
    }

    /// The window granted for the memory of one segment: half of that memory.
    fn window_per_segment(&self) -> u32 {
        let least = self.mss + EXPECTED;
        let lacking = (2 * self.mss).saturating_sub(least);
        (least + lacking.next_multiple_of(EXPECTED_STEP)) / 2
    }
}

#[cfg(test)]
mod tests;
