//! Generic segmentation offload (GSO): TCP hands down several segments as one burst. Linux does this with every device:
//! either the device or the kernel splits the burst. A burst leaves at one instant, and its last segment carries PSH.
//! Its size is what the flow's rate sends in about a millisecond, at least two segments. It is cut from a send buffer
//! that the application has filled; only in Linux 7.3 may it span two buffers. If an acknowledgement that would
//! complete a burst is near, a partial burst is deferred.

use sojourn_units::{Duration, Time};

use crate::config::Kernel;

use super::pacing::MAX_BURST_BYTES;
use super::{Fin, Sender, buffers, recovery::State};

/// Fewest segments of a burst (Linux's tcp_min_tso_segs).
pub(super) const LEAST: u32 = 2;
/// Memory of a packet besides its payload, in Linux (skb->truesize, 7.2.13).
pub const PACKET: u64 = 960;
/// The rate that Linux assumes in slow start, in percent of the window per smoothed RTT (tcp_pacing_ss_ratio).
const SLOW_START_PERCENT: u64 = 200;
/// The same in congestion avoidance (tcp_pacing_ca_ratio).
pub(super) const AVOIDANCE_PERCENT: u64 = 120;
/// Hundredths in nanoseconds are this many times as many in seconds.
pub(super) const RATE_UNIT: u64 = 10_000_000;
/// On short paths bursts are larger by `limit >> (min_rtt / 512 µs)` bytes (Linux's tcp_tso_rtt_log).
const RTT_PER_SHIFT: Duration = Duration::from_micros(512);
/// From this minimum RTT on, bursts are not enlarged.
const SHORT: Duration = Duration::from_micros(512 * 32);
/// A burst is deferred only within this time after the last transmission, or after the time from which pacing allows the
/// next (Linux's tcp_tso_should_defer).
pub(super) const RECENT: Duration = Duration::from_millis(1);
/// A burst is deferred only if the next acknowledgement is expected within this time and within half an RTT (Linux
/// since 6.18 and its stable releases; older versions consider only half an RTT).
pub(super) const SOON: Duration = Duration::from_millis(1);
/// A burst is deferred only if less than a third of the window is free (Linux's tcp_tso_win_divisor).
pub(super) const WINDOW_DIVISOR: u32 = 3;

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
        let whole = self.full_burst();
        if free < whole && self.may_defer_partial(free, now) {
            return Burst::Deferred;
        }
        let most = free.min((self.window.cwnd / 2).max(1));
        let segments = most.min(whole);
        // Since Linux 6.10 a burst that is longer than its buffer continues with the next one (tcp_grow_skb).
        let buffer = if self.kernel >= Kernel::V6_12 {
            self.buffer.max(segments)
        } else {
            self.buffer
        };
        let ready = self.waiting().min(self.room()).min(buffer * self.mss);
        // This avoids a division in the common case.
        if u64::from(ready) >= u64::from(segments) * u64::from(self.mss) {
            Burst::Segments(segments)
        } else {
            Burst::Segments(ready.div_ceil(self.mss).max(1))
        }
    }

    /// Bytes that were never sent, as far as they count.
    pub(super) fn waiting(&self) -> u32 {
        self.unsent.min(u64::from(u32::MAX)) as u32
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
        let whole = buffers::whole(self.offers.largest, self.mss);
        let free = self.window.cwnd.saturating_sub(self.in_flight());
        let at_once = self.pacer.at_once(free, u64::from(self.mss));
        self.buffer = self.buffers.begin(whole, self.mss, at_once);
    }

    /// True if what fits in the window is deferred again, as [`Sender::next_burst`] would find out by a division. There is room
    /// for `free` segments, at least one.
    #[inline(always)]
    pub(super) fn defers_burst(&self, free: u32, now: Time) -> bool {
        self.burst_exceeds(free) && self.may_defer(free, now)
    }

    /// True if what fits in the window, `free` segments, is deferred unless it is a full burst (Linux's tcp_tso_should_defer):
    /// it is less than what is there to be sent, and an acknowledgement is near.
    #[inline(always)]
    fn may_defer(&self, free: u32, now: Time) -> bool {
        let bytes = u64::from(free) * u64::from(self.mss);
        let (waiting, room) = (self.waiting(), self.room());
        let is_partial = self.buffer > free && u64::from(waiting.min(room)) > bytes;
        // A burst that carries the FIN cannot grow, so it is never deferred.
        let grows = self.fin != Fin::Wanted || u64::from(waiting) > MAX_BURST_BYTES;
        is_partial && grows && self.expects_ack(free, now)
    }

    /// As [`Sender::may_defer`], where few bursts are partial.
    #[cold]
    #[inline(never)]
    fn may_defer_partial(&self, free: u32, now: Time) -> bool {
        self.may_defer(free, now)
    }

    /// True if data with which `free` segments of the window would be filled may wait for the next acknowledgement.
    #[inline(always)]
    fn expects_ack(&self, free: u32, now: Time) -> bool {
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

    /// Tells the memory of what waits in the host's own queue, before [`Sender::poll`]. A burst that has begun continues.
    pub const fn note_queued(&mut self, memory: u32) {
        self.queued = Some(memory);
    }

    /// True if something has waited since the last call for less in the host's own queue.
    pub const fn take_throttled(&mut self) -> bool {
        core::mem::replace(&mut self.is_throttled, false)
    }

    /// True if these segments wait for less in the host's own queue. Its limit as Linux has it (tcp_small_queue_check), in memory of
    /// packets: two bursts like this one, or what the rate sends in the time of one, doubled `doublings` times. If all but the last
    /// burst is acknowledged, another one may always follow.
    #[cold]
    pub(super) fn throttles(&mut self, segments: u32, doublings: u32) -> bool {
        let Some(queued) = self.queued else {
            return false;
        };
        let burst = u64::from(segments) * u64::from(self.mss) + PACKET;
        let paced = self.pacer.paced_share();
        let limit = (2 * burst).max(paced.unwrap_or_else(|| self.assumed_share()));
        let is_long = u64::from(queued) > limit << doublings && self.una.before(self.burst_start);
        self.is_throttled |= is_long;
        is_long
    }

    /// What [`Sender::small_queue`] is at least: two bursts of a segment, with which a slow flow is paced.
    #[inline(always)]
    pub(crate) const fn least_small_queue(mss: u32) -> u64 {
        2 * mss as u64
    }

    /// Sends nothing before `until`, except the rest of a burst, because the host's own queue is too long.
    pub const fn hold_back(&mut self, until: Time) {
        self.forget_deferral();
        self.pacer.hold_back(until);
    }

    /// Segments in a full burst (Linux's tcp_tso_autosize).
    #[inline(always)]
    fn full_burst(&self) -> u32 {
        if let Some(segments) = self.pacer.burst_segments(u64::from(self.mss)) {
            return segments;
        }
        if !self.burst_exceeds(LEAST) {
            return LEAST; // the common case needs no division
        }
        let bytes = self.assumed_share() + self.enlarged_by();
        (bytes.min(MAX_BURST_BYTES) / u64::from(self.mss)) as u32
    }

    /// Bytes that the assumed rate sends in the time of a burst.
    #[inline(always)]
    fn assumed_share(&self) -> u64 {
        let (window, nanos) = self.assumed_rate();
        let bytes_per_second = match window.checked_mul(RATE_UNIT) {
            Some(scaled) => scaled / nanos,
            None => (u128::from(window) * u128::from(RATE_UNIT) / u128::from(nanos)) as u64,
        };
        bytes_per_second >> self.pacer.shift()
    }

    /// True if a full burst has more than so many segments, which is found out without a division.
    #[inline(always)]
    fn burst_exceeds(&self, segments: u32) -> bool {
        if let Some(full) = self.pacer.burst_segments(u64::from(self.mss)) {
            return full > segments;
        }
        if segments < LEAST {
            return true;
        }
        let bytes = (u64::from(segments) + 1) * u64::from(self.mss);
        if bytes > MAX_BURST_BYTES || self.rtt.smoothed().is_none() {
            return false;
        }
        let (window, nanos) = self.assumed_rate();
        let paced = bytes.saturating_sub(self.enlarged_by()) << self.pacer.shift();
        window.saturating_mul(RATE_UNIT) >= paced.saturating_mul(nanos)
    }

    /// The rate that Linux assumes without pacing: so many hundredths of a byte, in so many nanoseconds.
    #[inline(always)]
    fn assumed_rate(&self) -> (u64, u64) {
        let percent = if self.window.cwnd < self.window.ssthresh / 2 {
            SLOW_START_PERCENT
        } else {
            AVOIDANCE_PERCENT
        };
        let segments = u64::from(self.window.cwnd.max(self.scoreboard.outstanding())) * percent;
        let smoothed = self.rtt.smoothed().unwrap_or(Duration::ZERO);
        (segments * u64::from(self.mss), smoothed.as_nanos().max(1))
    }

    /// Bytes by which bursts are larger on a short path.
    #[inline(always)]
    fn enlarged_by(&self) -> u64 {
        let short = self.rtt.min().filter(|least| *least < SHORT);
        short.map_or(0, |least| {
            MAX_BURST_BYTES >> (least.as_nanos() / RTT_PER_SHIFT.as_nanos())
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    fn acknowledgement(upto: u32) -> Segment {
        Segment {
            ack: Seq(1 + upto * 1000),
            flags: Flags::ACK,
            window: 1 << 30,
            ..Segment::default()
        }
    }

    fn acknowledge(sender: &mut Sender, upto: u32, now: Time) {
        sender.on_ack(&acknowledgement(upto), now);
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

    fn behind_wifi(cwnd: u32) -> Sender {
        let mut sender = sender(Duration::from_millis(100), cwnd);
        sender.pacer = super::super::pacing::Pacer::new(7);
        sender
    }

    /// 1.2 MB/s are 9375 bytes per 128th of a second. Two bursts of nine segments and a packet's own memory are 19,920 bytes, two
    /// of two 5920, which is less than the 128th; of 12 MB/s a burst is 64 KiB, and a 128th of a second is less than two. A
    /// retransmission has twice as much.
    #[test]
    fn behind_wifi_a_burst_is_eight_milliseconds_data_and_two_may_wait() {
        let limit = |cwnd, segments, doublings| {
            let mut sender = behind_wifi(cwnd);
            sender.burst_start = sender.next + 1;
            (1..200_000).find(|&memory| {
                sender.note_queued(memory);
                sender.throttles(segments, doublings)
            })
        };
        let bursts = [100, 1000].map(|cwnd| behind_wifi(cwnd).full_burst());
        assert_eq!(bursts, [9, 65]);
        assert_eq!(limit(100, 9, 0), Some(2 * (9_000 + 960) + 1));
        assert_eq!(limit(100, 2, 0), Some(9_375 + 1));
        assert_eq!(limit(100, 1, 1), Some(2 * 9_375 + 1));
        assert_eq!(limit(1000, 65, 0), Some(2 * (65_000 + 960) + 1));
    }

    /// tcp_rtx_queue_empty_or_single_skb: bursts of nine, all of which the host's queue still holds. The second may follow the
    /// first, the third only once the first is acknowledged.
    #[test]
    fn one_burst_may_follow_another_however_long_the_queue_is() {
        let mut sender = behind_wifi(100);
        sender.note_queued(1_000_000);
        assert_eq!(sent(&mut sender, START).len(), 18);
        assert!(sender.take_throttled() && !sender.take_throttled());
        let later = START + Duration::from_millis(100);
        acknowledge(&mut sender, 8, later);
        assert_eq!(sent(&mut sender, later).len(), 0);
        acknowledge(&mut sender, 9, later);
        assert_eq!(sent(&mut sender, later).len(), 9);
    }

    /// tcp_write_xmit asks tcp_tso_should_defer before tcp_small_queue_check: a window with room for less than a burst limits the
    /// sender even if the host's queue would hold that back, and nothing waits for that queue.
    #[test]
    fn what_is_deferred_does_not_wait_for_the_hosts_queue() {
        for (room, defers) in [(5, true), (10, false)] {
            let mut sender = behind_wifi(100);
            sender.note_queued(0);
            assert_eq!(sent(&mut sender, START).len(), 100);
            let later = START + Duration::from_millis(100);
            acknowledge(&mut sender, room, later);
            sender.window.cwnd = 100;
            (sender.last_sent, sender.window.limiting) = (later, false);
            sender.note_queued(1_000_000);
            assert!(sent(&mut sender, later).is_empty());
            let left = (sender.window.limiting, sender.take_throttled());
            assert_eq!(left, (defers, !defers), "{room}");
        }
    }

    /// A window that is not filled for an RTO shrinks if the application has no more to send, but not if its writes wait for
    /// room in the send buffer (SOCK_NOSPACE in tcp_cwnd_application_limited).
    #[test]
    fn what_the_host_holds_back_leaves_the_window() {
        let later = START + Duration::from_secs(2);
        let of = |unsent| {
            let mut held = sender(Duration::from_millis(100), 100);
            held.unsent = unsent;
            held.filled_at = START;
            held.shrink_unused(later);
            held.window.cwnd
        };
        assert_eq!((of(UNLIMITED), of(5_000)), (100, 55));
    }

    proptest! {
        /// As the kernel computes it (tcp_update_pacing_rate, tcp_tso_autosize), with the divisions that are avoided here.
        #[test]
        fn a_burst_is_as_long_as_by_divisions(
            rtt_us in prop_oneof![20_u64..20_000, 20_u64..2_000_000],
            cwnd in prop_oneof![1_u32..100, 1_u32..200_000],
            ssthresh in prop_oneof![1_u32..100, 1_u32..400_000],
            mss in prop_oneof![Just(1448_u32), 1_u32..65_000],
        ) {
            let rtt = Duration::from_micros(rtt_us);
            let mut sender = sender(rtt, cwnd);
            sender.window.ssthresh = ssthresh;
            sender.mss = mss;
            let percent = if cwnd < ssthresh / 2 { 200 } else { 120 };
            let window = u128::from(cwnd) * percent * u128::from(mss);
            let per_second = (window * 10_000_000 / u128::from(rtt.as_nanos())) as u64;
            let short = if rtt_us < 16_384 { 65_536_u64 >> (rtt_us / 512) } else { 0 };
            let bytes = ((per_second >> 10) + short).min(65_536);
            let segments = ((bytes / u64::from(mss)) as u32).max(2);
            prop_assert_eq!(sender.full_burst(), segments);
            for least in (0..5).chain(segments.saturating_sub(2)..segments + 3) {
                prop_assert_eq!(sender.burst_exceeds(least), segments > least, "{}", least);
            }
        }
    }

    /// Without a sample, and with a control that paces: the same size by both.
    #[test]
    fn a_burst_without_a_round_trip_or_with_pacing_exceeds_what_it_is_longer_than() {
        let rtt = Duration::from_millis(100);
        let exceeded = |sender: &Sender| (0..100).filter(|n| sender.burst_exceeds(*n)).count();
        let mut unknown = sender(rtt, 5000);
        unknown.rtt = crate::rtt::RttEstimator::new(Duration::from_millis(200), Clock::Exact);
        assert_eq!((unknown.full_burst(), exceeded(&unknown)), (2, 2));
        for (mbps, segments) in [(1, 1), (10, 2), (160, 19), (1000, 65)] {
            let mut paced = sender(rtt, 5000);
            let rate = Some(sojourn_units::Rate::from_mbps(mbps));
            paced.pacer.set_rate(rate, START);
            let found = (paced.full_burst(), exceeded(&paced));
            assert_eq!(found, (segments, segments as usize), "{mbps} Mbit/s");
        }
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

    /// The second and the third acknowledgement of two segments of a burst of eleven, with the short way, with bounds and without
    /// either.
    #[test]
    fn a_burst_that_still_waits_has_the_same_effect_as_one_that_begins_to() {
        let at = |us| Time::ZERO + Duration::from_micros(us);
        let left_behind = |short_way: bool, bounds: bool| {
            let mut sender = sender(Duration::from_millis(100), 1000);
            assert_eq!(sent(&mut sender, START).len(), 1000);
            (sender.buffer, sender.last_sent) = (40, at(200_400));
            acknowledge(&mut sender, 2, at(200_500));
            assert!(!sender.has_deferred());
            assert!(sent(&mut sender, at(200_500)).is_empty());
            assert!(sender.has_deferred());
            acknowledge(&mut sender, 4, at(200_600));
            if short_way {
                assert!(sender.defer_again(at(200_600)));
            } else {
                assert!(sent(&mut sender, at(200_600)).is_empty());
            }
            if bounds {
                let progress = sender.take_progress(&acknowledgement(6), at(200_650));
                assert!(progress.is_some() && sender.keeps_deferring(at(200_650)));
            } else {
                acknowledge(&mut sender, 6, at(200_650));
                assert!(sent(&mut sender, at(200_650)).is_empty());
            }
            let alarm = (sender.due(), sender.find_due(), sender.arm);
            let usage = (sender.usage_point, sender.sent_since_judged);
            let unused = (sender.peak_unfilled, sender.filled_at);
            let window = format!("{:?}", sender.window);
            (
                alarm,
                usage,
                unused,
                window,
                sender.held,
                sender.has_deferred(),
            )
        };
        let long_way = left_behind(false, false);
        assert_eq!(left_behind(true, false), long_way);
        assert_eq!(left_behind(true, true), long_way);
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
