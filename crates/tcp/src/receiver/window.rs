//! The receive window: how much is offered, and how the offer grows (RFC 9293 §3.8.6, RFC 7323 §2).

use std::hint::cold_path;

use sojourn_units::Duration;

use super::{DELAY_MAX, DELAY_MIN};
use crate::config::Config;
use crate::segment::Segment;
use crate::seq::Seq;

/// The window offered with a SYN, which cannot be scaled (RFC 7323 §2.2).
pub const SYN_WINDOW: u32 = 65_535;

/// The receive window: what is offered grows with what arrives, up to a limit that is tuned to twice what
/// arrives per round trip (Linux's tcp_grow_window and tcp_rcv_space_adjust).
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    offered: u32,
    limit: u32,
    max: u32,
    mss: u32,
    /// Right edge of what has been offered; never moves back (RFC 9293 §3.8.6).
    edge: Seq,
    /// Bytes delivered per round trip, as last measured, and the measurement under way.
    space: u32,
    measured_from: Seq,
    measured_since: u32,
    now_ms: u32,
    round_trip_ms: u32,
    last_echo: u32,
}

impl ReceiveWindow {
    pub(super) fn new(config: &Config, next: Seq) -> Self {
        let limit = config.tuned_window.min(config.max_window);
        let offered = SYN_WINDOW.min(limit);
        Self {
            offered,
            limit,
            max: config.max_window,
            mss: u32::from(config.mss),
            edge: next + offered,
            space: offered.min(10 * u32::from(config.mss)),
            measured_from: next,
            measured_since: 0,
            now_ms: 0,
            round_trip_ms: 0,
            last_echo: 0,
        }
    }

    pub(super) const fn edge(&self) -> Seq {
        self.edge
    }
    pub(super) const fn offered(&self) -> u32 {
        self.offered
    }
    pub(super) const fn round_trip(&self) -> Duration {
        Duration::from_millis(if self.round_trip_ms == 0 {
            1000
        } else {
            self.round_trip_ms as u64
        })
    }
    /// Linux delays no acknowledgement longer than the round trip, but at least the minimum.
    pub(super) fn longest_delay(&self) -> Duration {
        self.round_trip().max(DELAY_MIN).min(DELAY_MAX)
    }

    /// The window to advertise with `next` acknowledged.
    pub(super) fn offer(&mut self, next: Seq) -> u32 {
        self.edge = self.edge.max(next + self.offered);
        self.edge.since(next)
    }

    /// A segment arrived; true if the window grew for it.
    pub(super) fn grow(&mut self, segment: &Segment, now_ms: u32) -> bool {
        self.now_ms = now_ms;
        if u32::from(segment.len) >= self.mss
            && segment.ts_ecr != 0
            && segment.ts_ecr != self.last_echo
        {
            self.last_echo = segment.ts_ecr;
            let sample = now_ms.wrapping_sub(segment.ts_ecr).clamp(1, 60_000);
            self.round_trip_ms = if self.round_trip_ms == 0 {
                sample
            } else {
                (7 * self.round_trip_ms + sample) / 8
            };
        }
        if segment.len < 128 || self.offered >= self.limit {
            return false;
        }
        cold_path();
        self.offered = (self.offered + 2 * self.mss).min(self.limit);
        true
    }

    /// The application has read everything before `next`.
    pub(super) fn delivered(&mut self, next: Seq) {
        if self.round_trip_ms == 0
            || self.now_ms.wrapping_sub(self.measured_since) < self.round_trip_ms
        {
            return;
        }
        self.tune(next);
    }

    /// A round trip is over.
    #[cold]
    #[inline(never)]
    fn tune(&mut self, next: Seq) {
        let copied = next.since(self.measured_from);
        if copied > self.space {
            let base = 2 * u64::from(copied) + 16 * u64::from(self.mss);
            let growth = base * u64::from(copied - self.space) / u64::from(self.space.max(1));
            let wanted = (base + 2 * growth).min(u64::from(self.max)) as u32;
            self.limit = self.limit.max(wanted);
            self.space = copied;
        }
        self.measured_from = next;
        self.measured_since = self.now_ms;
    }
}
