//! Generic segmentation offload (GSO): TCP hands down several segments as one burst. Linux does this with every device:
//! either the device or the kernel splits the burst. A burst leaves at one instant, and its last segment carries PSH.
//! Its size is what the flow's rate sends in about a millisecond, at least two segments. It is cut from a send buffer
//! that the application has filled; only in Linux 7.3 may it span two buffers. If an acknowledgement that would
//! complete a burst is near, a partial burst is deferred.

use sojourn_units::{Duration, Time};

use crate::config::Kernel;

use super::pacing::{BURST_SHIFT, MAX_BURST_BYTES};
use super::{Fin, Sender, buffers, recovery::State};

/// Fewest segments of a burst (Linux's tcp_min_tso_segs).
const LEAST: u32 = 2;
/// The rate that Linux assumes in slow start, in percent of the window per smoothed RTT (tcp_pacing_ss_ratio).
const SLOW_START_PERCENT: u64 = 200;
/// The same in congestion avoidance (tcp_pacing_ca_ratio).
const AVOIDANCE_PERCENT: u64 = 120;
/// On short paths bursts are larger by `limit >> (min_rtt / 512 µs)` bytes (Linux's tcp_tso_rtt_log).
const RTT_PER_SHIFT: Duration = Duration::from_micros(512);
/// From this minimum RTT on, bursts are not enlarged.
const SHORT: Duration = Duration::from_micros(512 * 32);
/// A burst is deferred only within this time after the last transmission, or after the time from which pacing allows the
/// next (Linux's tcp_tso_should_defer).
const RECENT: Duration = Duration::from_millis(1);
/// A burst is deferred only if the next acknowledgement is expected within this time and within half an RTT (Linux
/// since 6.18 and its stable releases; older versions consider only half an RTT).
const SOON: Duration = Duration::from_millis(1);
/// A burst is deferred only if less than a third of the window is free (Linux's tcp_tso_win_divisor).
const WINDOW_DIVISOR: u32 = 3;

/// What to do with new data for which the window has room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Burst {
    /// This many segments leave at once.
    Segments(u32),
    /// The data waits for the next acknowledgement.
    Deferred,
}

impl Sender {
    /// Decides on the next burst of new data. The window has room for `free` segments, at least one.
    pub(super) fn next_burst(&mut self, free: u32, now: Time) -> Burst {
        if self.buffer == 0 {
            self.begin_buffer();
        }
        let most = free.min((self.window.cwnd / 2).max(1));
        let whole = self.full_burst();
        let waiting = self.unsent.min(u64::from(u32::MAX)) as u32;
        // Since Linux 6.10 a burst that is longer than its buffer continues with the next one (tcp_grow_skb).
        let buffer = if self.kernel >= Kernel::V6_12 {
            self.buffer.max(most.min(whole))
        } else {
            self.buffer
        };
        let ready = waiting.min(self.room()).min(buffer * self.mss);
        // More than `enough` makes no difference. Stopping there avoids a division in the common case.
        let enough = free.max(whole) + 1;
        let sendable = if u64::from(ready) >= u64::from(enough) * u64::from(self.mss) {
            enough
        } else {
            ready.div_ceil(self.mss)
        };
        // A burst that carries the FIN cannot grow, so it is never deferred.
        let grows = self.fin != Fin::Wanted || u64::from(waiting) > MAX_BURST_BYTES;
        if free < whole && free < sendable && grows && self.may_defer(free, now) {
            Burst::Deferred
        } else {
            Burst::Segments(most.min(whole).min(sendable.max(1)))
        }
    }

    /// Notes that a segment of new data was cut from the buffer, or from the next one.
    #[inline(always)]
    pub(super) fn use_buffer(&mut self) {
        if self.buffer == 0 && self.kernel >= Kernel::V6_12 {
            self.begin_buffer();
        }
        self.buffer = self.buffer.saturating_sub(1);
    }

    /// Takes the next buffer when one is used up.
    #[cold]
    #[inline(never)]
    fn begin_buffer(&mut self) {
        let whole = buffers::whole(self.largest_offer, self.mss);
        let free = self.window.cwnd.saturating_sub(self.in_flight());
        let at_once = self.pacer.at_once(free, u64::from(self.mss));
        self.buffer = self.buffers.begin(whole, self.mss, at_once);
    }

    /// True if data may be deferred with `free` segments of room in the window (Linux's tcp_tso_should_defer).
    #[cold]
    #[inline(never)]
    fn may_defer(&self, free: u32, now: Time) -> bool {
        let is_repairing = matches!(self.state, State::Recovery | State::Loss);
        let is_recent = now <= self.last_sent.max(self.pacer.paced_until()) + RECENT;
        let is_ack_near = self.scoreboard.oldest_sent_at().is_some_and(|sent| {
            let smoothed = self.rtt.smoothed().unwrap_or(Duration::ZERO);
            sent + smoothed <= now + SOON.min(smoothed / 2)
        });
        !is_repairing && is_recent && is_ack_near && WINDOW_DIVISOR * free < self.window.cwnd
    }

    /// Payload bytes up to which the host's own queue accepts another burst: two bursts (Linux's
    /// tcp_small_queue_check).
    pub fn small_queue(&self) -> u64 {
        u64::from(2 * self.full_burst()) * u64::from(self.mss)
    }

    /// What [`Sender::small_queue`] is at least: two bursts of a segment, with which a slow flow is paced.
    #[inline(always)]
    pub fn least_small_queue(&self) -> u64 {
        u64::from(2 * self.mss)
    }

    /// Sends nothing before `until`, except the rest of a burst, because the host's own queue is too long.
    pub const fn hold_back(&mut self, until: Time) {
        self.pacer.hold_back(until);
    }

    /// Segments in a full burst (Linux's tcp_tso_autosize).
    #[inline(always)]
    fn full_burst(&self) -> u32 {
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
        let segments = u64::from(self.window.cwnd.max(self.scoreboard.outstanding())) * percent;
        let nanos = smoothed.as_nanos().max(1);
        let short = self.rtt.min().filter(|least| *least < SHORT);
        // The common case is less than three segments in a 1024th of a second on a path that is not short. It needs no
        // division.
        let of_three = (3_u64 << BURST_SHIFT).saturating_mul(nanos);
        if short.is_none() && segments * 10_000_000 < of_three {
            return LEAST;
        }
        let on_short_paths = short.map_or(0, |least| {
            MAX_BURST_BYTES >> (least.as_nanos() / RTT_PER_SHIFT.as_nanos())
        });
        let mss = u64::from(self.mss);
        let window = segments * mss;
        let bytes_per_second = match window.checked_mul(10_000_000) {
            Some(scaled) => scaled / nanos,
            None => (u128::from(window) * 10_000_000 / u128::from(nanos)) as u64,
        };
        let bytes = ((bytes_per_second >> BURST_SHIFT) + on_short_paths).min(MAX_BURST_BYTES);
        ((bytes / mss) as u32).max(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::by_name;
    use crate::config::{Clock, Config};
    use crate::ecn::Feedback;
    use crate::segment::{Flags, Segment};
    use crate::sender::UNLIMITED;
    use crate::seq::Seq;

    const START: Time = Time::from_millis(100);

    /// A Reno sender of 1000-byte segments with this RTT and window, past slow start, with data without end.
    fn sender(rtt: Duration, cwnd: u32) -> Sender {
        let config = Config {
            mss: 1000,
            clock: Clock::Exact,
            ..Config::default()
        };
        let mut sender = Sender::new(
            &config,
            by_name("reno").build(&config),
            Seq(0),
            true,
            Feedback::None,
        );
        sender.on_handshake(Some(rtt), 1 << 30, START);
        sender.window.cwnd = cwnd;
        sender.window.ssthresh = cwnd;
        sender.write(UNLIMITED);
        sender
    }

    /// The segments that leave at once: true where PSH ends a burst.
    fn sent(sender: &mut Sender, now: Time) -> Vec<bool> {
        let mut segment = Segment::default();
        let mut poll = || sender.poll(&mut segment, now).map(|_| segment.flags);
        std::iter::from_fn(&mut poll)
            .map(|flags| flags.contains(Flags::PSH))
            .collect()
    }

    fn acknowledge(sender: &mut Sender, upto: u32, now: Time) {
        let segment = Segment {
            ack: Seq(1 + upto * 1000),
            flags: Flags::ACK,
            window: 1 << 30,
            ..Segment::default()
        };
        sender.on_ack(&segment, now);
    }

    /// 100 segments per 100 ms at 120 % are 1.2 MB/s, or 1.2 segments per 1024th of a second; 1000 segments are 11.7.
    /// In slow start, at 200 %, they are 19.5. On a path of 1 ms, 20 segments at 120 % are 24 MB/s, or 23437 bytes per
    /// 1024th of a second; with 64 KiB >> 1 these are 56 segments.
    #[test]
    fn a_burst_is_a_milliseconds_data_and_at_least_two_segments() {
        let of = |rtt_ms, cwnd| sender(Duration::from_millis(rtt_ms), cwnd).full_burst();
        assert_eq!((of(100, 100), of(100, 1000)), (2, 11));
        let mut slow_start = sender(Duration::from_millis(100), 1000);
        slow_start.window.ssthresh = 5000;
        assert_eq!(slow_start.full_burst(), 19);
        assert_eq!(of(1, 20), 56);
    }

    #[test]
    fn the_last_segment_of_a_burst_carries_psh_and_a_single_one_does_not() {
        let mut sender = sender(Duration::from_millis(100), 7);
        let bursts = [false, true, false, true, false, true, false];
        assert_eq!(sent(&mut sender, START), bursts);
        acknowledge(&mut sender, 2, START + Duration::from_millis(100));
        let bursts = [false, true];
        assert_eq!(
            sent(&mut sender, START + Duration::from_millis(100)),
            bursts
        );
    }

    /// Linux 6.1 and 6.12: a burst's PSH is set in the copy that leaves (__tcp_transmit_skb), a write's in the segment
    /// that is kept (tcp_mark_push). On 6.12.117 every one of 56 flows that lost 37 % delivered the end of each write with
    /// PSH.
    #[test]
    fn a_retransmission_carries_psh_if_it_ends_a_write() {
        let mut sender = sender(Duration::from_millis(100), 10);
        sender.unsent = 0;
        sender.write(6000);
        assert_eq!(sent(&mut sender, START), [false, true].repeat(3));
        // The probe repeats the last segment, the timeout all, one per acknowledgement at first.
        let mut now = START + Duration::from_secs(3);
        sender.on_timer(now);
        assert_eq!(sent(&mut sender, now), [true]);
        now += Duration::from_secs(9);
        sender.on_timer(now);
        let mut again = sent(&mut sender, now);
        for upto in 1..6 {
            now += Duration::from_millis(100);
            acknowledge(&mut sender, upto, now);
            again.extend(sent(&mut sender, now));
        }
        assert_eq!(again, [false, false, false, false, false, true]);
    }

    /// Buffers hold 65 segments: 32 bursts of two and one of one, which has no PSH; then the next buffer begins.
    #[test]
    fn a_burst_ends_with_its_buffer() {
        let mut sender = sender(Duration::from_millis(100), 69);
        sender.begin_buffer();
        sender.buffer = 65;
        let bursts = [
            [false, true].repeat(32),
            vec![false],
            [false, true].repeat(2),
        ];
        assert_eq!(sent(&mut sender, START), bursts.concat());
    }

    /// The first segment leaves before the first buffer is full, so the buffer gets another: 65 are left. Observed on 6.1.192
    /// and 6.12.117 with an initial window of one segment.
    #[test]
    fn the_first_buffer_is_filled_up_by_what_has_left() {
        let mut sender = sender(Duration::from_millis(100), 1);
        assert_eq!(sent(&mut sender, START), [false]);
        assert_eq!(sender.buffer, 65);
    }

    /// The 33rd burst takes a segment of the second buffer. The 64 segments left in it are 32 more bursts.
    #[test]
    fn since_6_10_a_burst_continues_with_the_next_buffer() {
        let mut sender = sender(Duration::from_millis(100), 138);
        sender.kernel = Kernel::V6_12;
        sender.begin_buffer();
        sender.buffer = 65;
        assert_eq!(sent(&mut sender, START), [false, true].repeat(69));
        assert_eq!(sender.buffer, 65 - 8);
    }

    /// tcp_tso_should_defer: the acknowledgement of the next segment is due at 201 ms. At 200.5 ms a single segment
    /// waits for it, unless nothing was sent within the last millisecond.
    #[test]
    fn a_partial_burst_waits_for_an_acknowledgement_that_is_near() {
        let at = |us| Time::ZERO + Duration::from_micros(us);
        for (last_sent_us, waits) in [(200_400, true), (199_400, false)] {
            let mut sender = sender(Duration::from_millis(100), 10);
            let first = sender.poll(&mut Segment::default(), START).is_some();
            let rest = sent(&mut sender, at(101_000)).len();
            assert_eq!((first, rest), (true, 9));
            acknowledge(&mut sender, 1, at(200_500));
            sender.last_sent = at(last_sent_us);
            assert_eq!(sent(&mut sender, at(200_500)).is_empty(), waits);
            assert!(
                sender.window.limiting,
                "the window limits the sender even if data is deferred"
            );
        }
    }

    /// One segment is less than a third of a window of four, but not of a window of three.
    #[test]
    fn a_burst_of_a_third_of_the_window_is_not_deferred() {
        let at = |us| Time::ZERO + Duration::from_micros(us);
        for (cwnd, waits) in [(4, true), (3, false)] {
            let mut sender = sender(Duration::from_millis(100), cwnd);
            assert_eq!(sent(&mut sender, at(100_000)).len(), cwnd as usize);
            acknowledge(&mut sender, 1, at(200_000));
            sender.last_sent = at(199_500);
            assert_eq!(sent(&mut sender, at(200_000)).is_empty(), waits, "{cwnd}");
        }
    }

    /// The same at 150 ms: the next acknowledgement is 51 ms away, so nothing waits.
    #[test]
    fn nothing_waits_for_an_acknowledgement_that_is_not_near() {
        let mut sender = sender(Duration::from_millis(100), 10);
        assert!(sender.poll(&mut Segment::default(), START).is_some());
        sent(&mut sender, Time::from_millis(101));
        let now = Time::from_millis(150);
        acknowledge(&mut sender, 1, now);
        sender.last_sent = now;
        assert_eq!(sent(&mut sender, now), [false]);
    }
}
