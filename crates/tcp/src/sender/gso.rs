//! Segmentation offload: TCP hands several segments down in one piece (GSO). Linux's does so whatever the device can,
//! which decides only who cuts the piece up. It leaves at one instant, its last segment carries PSH, and its size follows
//! the flow's pace: about a millisecond's worth, at least two segments. What the window has room for is held back
//! for a moment if the next acknowledgement makes it a whole piece.

use sojourn_units::{Duration, Time};

use super::pacing::{BURST_SHIFT, MAX_BURST_BYTES};
use super::{Sender, recovery::State};

/// Linux's tcp_min_tso_segs.
const LEAST: u32 = 2;
/// Percent of the window per smoothed RTT that Linux takes for the pace: in slow start, and after (tcp_pacing_ss_ratio and
/// tcp_pacing_ca_ratio).
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;
/// On short paths pieces are larger, by the limit shifted down once per so much of the minimum RTT (Linux's
/// tcp_tso_rtt_log); beyond the next, by nothing.
const RTT_PER_SHIFT: Duration = Duration::from_micros(512);
const SHORT: Duration = Duration::from_micros(512 * 32);
/// Nothing is held back later than this after the last segment sent (tcp_tso_should_defer).
const RECENT: Duration = Duration::from_millis(1);
/// Nor if the next acknowledgement is to be expected later than this, or than half an RTT (since Linux 6.18 and in its stable
/// releases; before, half an RTT alone).
const SOON: Duration = Duration::from_millis(1);
/// Nor if the window has room for this part of itself (Linux's tcp_tso_win_divisor).
const WINDOW_PART: u32 = 3;

/// What to do with new data that the window has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    /// So many segments leave at once.
    Segments(u32),
    /// It waits for the next acknowledgement.
    Held,
}

impl Sender {
    /// The next piece of new data. In flight is less than the window.
    pub(super) fn next_piece(&self, now: Time) -> Piece {
        let free = self.window.cwnd - self.in_flight();
        let most = free.min((self.window.cwnd / 2).max(1));
        let whole = self.whole_piece();
        let room = self.edge.since(self.next);
        let waiting = self.unsent.min(u64::from(u32::MAX)) as u32;
        let sendable = waiting.min(room).div_ceil(self.mss);
        if free < whole && free < sendable && self.may_hold(free, now) {
            Piece::Held
        } else {
            Piece::Segments(most.min(whole).min(sendable.max(1)))
        }
    }

    /// Linux's tcp_tso_should_defer, for `free` segments of room in the window.
    fn may_hold(&self, free: u32, now: Time) -> bool {
        let is_repairing = matches!(self.state, State::Recovery | State::Loss);
        let is_recent = now <= self.last_sent + RECENT;
        let ack_is_near = self.board.oldest_sent_at().is_some_and(|sent| {
            let smoothed = self.rtt.smoothed().unwrap_or(Duration::ZERO);
            sent + smoothed <= now + SOON.min(smoothed / 2)
        });
        !is_repairing && is_recent && ack_is_near && free < self.window.cwnd / WINDOW_PART
    }

    /// Segments in a whole piece (Linux's tcp_tso_autosize).
    fn whole_piece(&self) -> u32 {
        if let Some(segments) = self.pacer.burst_segments(u64::from(self.mss)) {
            return segments;
        }
        let Some(smoothed) = self.rtt.smoothed() else {
            return LEAST;
        };
        let percent = if self.window.cwnd < self.window.ssthresh / 2 {
            SLOW_START_PERCENT
        } else {
            AVOIDANCE_PERCENT
        };
        let mss = u64::from(self.mss);
        let window = u64::from(self.window.cwnd.max(self.board.outstanding())) * percent * mss;
        let nanos = smoothed.as_nanos().max(1);
        let on_short_paths = match self.rtt.min() {
            Some(least) if least < SHORT => {
                MAX_BURST_BYTES >> (least.as_nanos() / RTT_PER_SHIFT.as_nanos())
            }
            _ => 0,
        };
        // Nearly always: less than three segments a millisecond, on a path that is not short. No division then.
        let of_three = ((3 * mss) << BURST_SHIFT).saturating_mul(nanos);
        if on_short_paths == 0 && window.saturating_mul(10_000_000) < of_three {
            return LEAST;
        }
        let pace = (u128::from(window) * 10_000_000 / u128::from(nanos)) as u64;
        let bytes = ((pace >> BURST_SHIFT) + on_short_paths).min(MAX_BURST_BYTES);
        ((bytes / mss) as u32).max(LEAST)
    }
}
