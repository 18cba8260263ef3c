//! Processes an acknowledgement: the offered window, delivered and marked segments, round-trip times (RFC 6298, RFC
//! 7323) and SACK blocks (RFC 2018, D-SACK RFC 2883). Passes the result on to recovery and congestion control.

use sojourn_units::{Duration, Time};

use super::alarm::Arm;
use super::recovery::State;
use super::{Acknowledged, Sender, recovery};
use crate::cc::AckEvent;
use crate::config::Recovery;
use crate::ecn::{self, Feedback};
use crate::scoreboard::{Acked, InOrder};
use crate::segment::{Flags, MAX_SACK_BLOCKS, SackBlock, Segment};
use crate::seq::Seq;

impl Sender {
    /// Processes an acknowledgement. Returns its RTT sample, if it has one.
    #[inline(always)]
    pub fn on_ack(&mut self, segment: &Segment, now: Time) -> Option<Duration> {
        let ack = segment.ack;
        if ack.after(self.next) {
            return self.take_rtt_sample(); // RFC 9293 §3.10.7.4: it acknowledges data not yet sent
        }
        let advanced = ack.after(self.una);
        let raises_window = self.is_offered_more(segment);
        if advanced || ack == self.una {
            self.offers.take(segment, advanced || raises_window);
        }
        if self.scoreboard.is_empty() {
            self.on_ack_of_nothing(segment, now);
            return self.take_rtt_sample();
        }
        if advanced && self.takes_fast_path(segment) {
            if let Some(delivered) = self.scoreboard.acknowledge_clean(ack, now) {
                return Some(self.on_fast_path(ack, delivered, now));
            }
        }
        self.on_slow_path(segment, advanced, raises_window, now);
        self.take_rtt_sample()
    }

    /// As [`Sender::on_ack`], of an acknowledgement of new data that takes the fast path and carries none. `None`: it is another
    /// segment, and nothing has happened.
    #[inline(always)]
    pub(crate) fn take_progress(&mut self, segment: &Segment, now: Time) -> Option<Duration> {
        let ack = segment.ack;
        let is_progress = segment.flags == Flags::ACK
            && segment.len == 0
            && ack.after(self.una)
            && !ack.after(self.next)
            && self.takes_fast_path(segment);
        if !is_progress {
            return None;
        }
        let delivered = self.scoreboard.acknowledge_clean(ack, now)?;
        self.offers.take(segment, true);
        Some(self.on_fast_path(ack, delivered, now))
    }

    /// What acknowledgements have said, while nothing is in flight.
    #[inline(always)]
    pub(crate) const fn acknowledged(&self) -> Acknowledged {
        self.offers.acknowledged(self.una)
    }

    /// True if this acknowledgement of nothing new raises the window.
    #[inline(always)]
    pub fn is_offered_more(&self, segment: &Segment) -> bool {
        self.offers.is_raised_by(segment)
    }

    /// Processes an acknowledgement that does not take the fast path, while data is in flight.
    #[inline(never)]
    fn on_slow_path(&mut self, segment: &Segment, advanced: bool, raises_window: bool, now: Time) {
        self.forget_deferral();
        if !advanced {
            self.find_alarm(); // else it is set anew
        }
        let ack = segment.ack;
        let mut acked = self.acked_at(now);
        let prior_in_flight = self.in_flight();
        let dsack_of_probe = self.is_dsack_of_probe(segment);
        let sacked_before = self.scoreboard.highest_sacked();
        let duplicate = self.take_sacks(segment, &mut acked);
        // RFC 5681 §2. What raises the window or is a D-SACK is no duplicate (FLAG_NOT_DUP and FLAG_DSACKING_ACK of Linux).
        let repeats =
            ack == self.una && !advanced && segment.len == 0 && !raises_window && !duplicate;
        if advanced {
            self.una = ack;
            self.scoreboard.acknowledge(ack, sacked_before, &mut acked);
        }
        if !self.sack {
            self.count_duplicates(repeats, &mut acked);
        }
        if acked.delivered > 0 {
            self.delivered += u64::from(acked.delivered);
            self.delivered_at = now;
            if let Some(latest) = acked.latest {
                self.first_sent_at = latest.sent_at;
            }
        }
        let marks = self.take_marks(segment, &acked);
        let rtt = self.sample_rtt(&acked, segment, advanced, now);
        let facts = recovery::Facts {
            advanced,
            echo: marks > 0,
            duplicate: repeats,
            dsack: duplicate,
            dsack_of_probe,
            ts_ecr: segment.ts_ecr,
            acked: &acked,
        };
        self.on_probe_answered(&facts);
        if advanced || self.reports_older_transmission(&acked) {
            self.arm = Arm::Acknowledged;
        }
        let event = AckEvent {
            now,
            delivered: acked.delivered,
            acked: acked.cumulative,
            marks,
            rtt,
            una: self.una,
            next: self.next,
        };
        if acked.delivered > 0 {
            self.control.on_delivery(&event, &mut self.window);
        }
        let lost = self.recover(&facts, now);
        self.lost = self.lost.wrapping_add(lost);
        self.tell_losses(now);
        if self.capabilities.samples {
            let sample = self.sample(segment, &facts, lost, prior_in_flight, now);
            self.control.on_sample(&event, &sample, &mut self.window);
            if self.control.limits_itself() {
                self.mark_limited();
            }
            if self.capabilities.paces {
                self.pacer.set_rate(self.control.pacing_rate(), now);
            }
        }
        if self.capabilities.governs_window {
            return;
        }
        if self.state.reduces() {
            if self.recovery == Recovery::Rfc6675 {
                return; // the window was halved at once
            }
            let in_flight = self.in_flight();
            self.reduction
                .apply(&mut self.window, in_flight, &facts, lost);
        } else if acked.cumulative > 0 || (self.reordering.is_far() && acked.delivered > 0) {
            self.control.on_ack(&event, &mut self.window);
        }
    }

    /// True if the acknowledgement may take the fast path: no loss, reordering or ECN signal is pending or reported.
    #[inline(always)]
    fn takes_fast_path(&self, segment: &Segment) -> bool {
        self.has_fast_path
            && self.state == State::Open
            && self.scoreboard.is_clean()
            && self.probe.is_none()
            && segment.sack[0].is_none()
            && !segment.flags.contains(Flags::ECE)
    }

    /// The fast path, for segments acknowledged in order. Has the same effect as [`Sender::on_slow_path`]. Returns the RTT
    /// sample.
    #[inline(always)]
    fn on_fast_path(&mut self, ack: Seq, acked: InOrder, now: Time) -> Duration {
        self.una = ack;
        self.delivered += u64::from(acked.segments);
        self.delivered_at = now;
        let oldest = now - acked.first_sent_at;
        self.rtt.sample(oldest, now, ack, self.next);
        self.backoff = 0;
        self.last_rtt = None;
        self.arm = Arm::Acknowledged;
        let event = AckEvent {
            now,
            delivered: acked.segments,
            acked: acked.segments,
            marks: 0,
            rtt: Some(now - acked.last_sent_at),
            una: ack,
            next: self.next,
        };
        self.reordering.on_progress(ack);
        self.control.on_progress(&event, &mut self.window);
        oldest
    }

    /// Processes an acknowledgement while nothing is in flight. It may carry a new window or the D-SACK of a
    /// retransmission.
    #[inline(always)]
    fn on_ack_of_nothing(&mut self, segment: &Segment, now: Time) {
        if !segment.sack[0].is_none() {
            self.take_late_dsack(segment, now);
        }
        if self.feedback == Feedback::Accurate {
            self.count_marks(segment, 0); // only marks of pure acknowledgements: no data is in flight
        }
        self.on_window_probe_answered();
    }

    /// Takes SACK blocks while nothing is in flight.
    #[cold]
    #[inline(never)]
    fn take_late_dsack(&mut self, segment: &Segment, now: Time) {
        let mut acked = self.acked_at(now);
        let dsack_of_probe = self.is_dsack_of_probe(segment);
        if self.take_sacks(segment, &mut acked) {
            let facts = recovery::Facts {
                advanced: false,
                echo: false,
                duplicate: false,
                dsack: true,
                dsack_of_probe,
                ts_ecr: segment.ts_ecr,
                acked: &acked,
            };
            self.on_probe_answered(&facts);
            self.recover(&facts, now);
        }
    }

    /// An acknowledgement at `now`, as yet without result.
    #[inline(always)]
    fn acked_at(&self, now: Time) -> Acked {
        Acked {
            now,
            min_rtt: self.rtt.min().unwrap_or(Duration::ZERO),
            recovery_point: self.recovery_point,
            ..Acked::default()
        }
    }

    /// Segments that this acknowledgement reports as marked for the first time.
    fn take_marks(&mut self, segment: &Segment, acked: &Acked) -> u32 {
        match self.feedback {
            Feedback::None => 0,
            Feedback::Classic | Feedback::Exact => {
                if segment.flags.contains(Flags::ECE) {
                    acked.delivered.max(1)
                } else {
                    0
                }
            }
            Feedback::Accurate => self.count_marks(segment, acked.delivered),
        }
    }

    /// Updates AccECN's counter. An acknowledgement that delivers nothing may be old because of reordering; it counts
    /// only if its timestamp is new.
    #[cold]
    #[inline(never)]
    fn count_marks(&mut self, segment: &Segment, delivered: u32) -> u32 {
        let is_new = (segment.ts_val.wrapping_sub(self.marks_reported_at) as i32) > 0;
        if delivered == 0 && !is_new {
            return 0;
        }
        if is_new {
            self.marks_reported_at = segment.ts_val;
        }
        let bytes = delivered * self.mss; // the last segment before a pause may be shorter
        let is_exact = self.sack || matches!(self.state, State::Open | State::Cwr);
        let reported = self.reported.as_mut().and_then(|reported| {
            Some(ecn::Reported {
                marked: reported.take(segment, bytes)?,
                delivered: bytes,
                mss: self.mss,
                is_exact,
            })
        });
        if delivered > 0 {
            self.ack_size.note(delivered);
        }
        let ace = segment.flags.ace();
        let marks = ecn::newly_marked(ace, self.marks, delivered, self.ack_size, reported);
        self.marks = self.marks.wrapping_add(marks);
        marks
    }

    /// True if SACKs report a segment that was sent before the last transmission of the oldest outstanding one. The
    /// acknowledgement of that transmission is still to come, so the retransmission timer restarts (Linux's
    /// tcp_clean_rtx_queue). RFC 6298 §5.3 considers only cumulative acknowledgements.
    fn reports_older_transmission(&self, acked: &Acked) -> bool {
        acked
            .sack_times
            .filter(|_| self.recovery == Recovery::Rack)
            .zip(self.scoreboard.oldest_sent_at())
            .is_some_and(|((first, _), oldest)| first < oldest)
    }

    /// True if a reduction is confirmed by CWR (RFC 3168 §6.1.2).
    pub(super) fn confirms_reductions(&self) -> bool {
        matches!(self.feedback, Feedback::Classic | Feedback::Exact)
    }

    /// Passes the SACK blocks to the scoreboard. Returns true if the first is a D-SACK (RFC 2883).
    fn take_sacks(&mut self, segment: &Segment, acked: &mut Acked) -> bool {
        let blocks = segment.sack_blocks();
        if blocks.is_empty() || !self.sack {
            return false;
        }
        let first = blocks[0];
        let duplicate =
            !first.end.after(segment.ack) || blocks.get(1).is_some_and(|next| next.covers(first));
        let mut valid = [SackBlock::NONE; MAX_SACK_BLOCKS];
        let mut count = 0;
        for block in &blocks[usize::from(duplicate)..] {
            if block.start.before(block.end)
                && !block.end.after(self.next)
                && block.start.after(self.una)
            {
                valid[count] = *block;
                count += 1;
            }
        }
        if duplicate {
            let of_probe = self.is_dsack_of_probe(segment);
            self.undo.on_dsack(first, of_probe, self.mss);
        }
        self.scoreboard.sack(valid, count, acked);
        duplicate
    }

    /// Takes an RTT sample (RFC 6298 §3, RFC 7323 §4.1): from the send time of the oldest segment delivered, or from
    /// the timestamp if that segment was retransmitted. Returns the sample of the newest segment delivered, for
    /// congestion control.
    fn sample_rtt(
        &mut self,
        acked: &Acked,
        segment: &Segment,
        advanced: bool,
        now: Time,
    ) -> Option<Duration> {
        let from_ack = acked.ack_times.filter(|_| !acked.resent_acked);
        let oldest = from_ack.or(acked.sack_times).map(|(first, _)| now - first);
        let newest = acked.sack_times.or(from_ack).map(|(_, last)| now - last);
        let from_timestamp = || {
            let elapsed = crate::timestamp(now).wrapping_sub(segment.ts_ecr);
            (advanced && segment.ts_ecr != 0 && elapsed < 1 << 24)
                .then(|| Duration::from_millis(u64::from(elapsed.max(1))))
        };
        if let Some(sample) = oldest.or_else(from_timestamp) {
            self.rtt.sample(sample, now, self.una, self.next);
            self.backoff = 0;
            self.last_rtt = Some(sample);
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::collections::btree_map::OccupiedEntry;

    use proptest::prelude::*;

    use crate::cc::{Algorithm, Catalogue};
    use crate::config::Kernel;
    use crate::endpoint::Transmit;
    use crate::sender::UNLIMITED;
    use crate::{Alike, Arrival, Config, Endpoint, Segment};
    use sojourn_units::{Duration, Time};

    /// The fate of a packet of the sender: its delay in ms, or `None` if it is lost; and whether it is marked.
    type Fate = (Option<u64>, bool);

    /// The segments that both ends of a connection send in ten seconds, with their times. `shortcuts`: with the fast path
    /// of acknowledgements and that of data behind a hole, with segments that continue a burst like the last, and with
    /// bursts that still wait, also by bounds.
    fn sent(
        algorithm: &Algorithm,
        (ecn, kernel, bytes): (bool, Kernel, u64),
        fates: &[Fate],
        shortcuts: bool,
    ) -> Vec<(Time, Segment)> {
        let config = Config {
            ecn,
            kernel,
            ..Config::default()
        };
        let mut ends = [
            Endpoint::connect(config.clone(), algorithm, crate::seq::Seq(1000)),
            Endpoint::listen(config, algorithm, crate::seq::Seq(2000)),
        ];
        ends[0].write(bytes);
        let mut arrivals: BTreeMap<(Time, usize), (usize, Segment, Arrival)> = BTreeMap::new();
        let mut log = Vec::new();
        let mut now = Time::ZERO;
        while now < Time::from_secs(10) && log.len() < 5_000 {
            for from in [0, 1] {
                let bursts = std::iter::from_fn(|| burst(&mut ends[from], now, shortcuts));
                for transmit in bursts.flatten() {
                    let (delay, marked) = match from {
                        0 => fates[log.len() % fates.len()],
                        _ => (Some(10), false),
                    };
                    let ecn = match (transmit.ecn_capable, marked) {
                        (false, _) => Arrival::NotEct,
                        (true, false) => Arrival::Ect0,
                        (true, true) => Arrival::Ce,
                    };
                    if let Some(delay) = delay {
                        let at = now + Duration::from_millis(delay);
                        arrivals.insert((at, log.len()), (1 - from, transmit.segment, ecn));
                    }
                    log.push((now, transmit.segment));
                }
            }
            for end in ends.iter_mut().filter(|_| !shortcuts) {
                end.sender_mut().find_alarm();
                end.take_no_short_way();
            }
            let timer = ends.iter().filter_map(Endpoint::next_timer).min();
            let arrival = arrivals.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = timer.into_iter().chain(arrival).min() else {
                break;
            };
            now = next;
            let arrived = arrivals.first_entry().filter(|first| first.key().0 == now);
            if let Some((to, segment, ecn)) = arrived.map(OccupiedEntry::remove) {
                if !(shortcuts && takes_short_way(&mut ends[to], &segment, now)) {
                    ends[to].on_segment(&segment, ecn, now);
                }
                if ends[to].is_established() && !shortcuts {
                    ends[to].sender_mut().has_fast_path = false;
                }
            } else {
                ends.iter_mut().for_each(|end| end.on_timer(now));
            }
        }
        log
    }

    fn takes_short_way(end: &mut Endpoint, segment: &Segment, now: Time) -> bool {
        let is_progress = end.take_progress(segment, now).is_some();
        if is_progress {
            end.keeps_deferring(now, || true);
        }
        is_progress || end.take_behind_hole(segment, now)
    }

    /// The next segment, and with `shortcuts` those that continue its burst alike.
    fn burst(end: &mut Endpoint, now: Time, shortcuts: bool) -> Option<Vec<Transmit>> {
        if shortcuts && end.defer_again(now, || true) {
            return None;
        }
        let mut last = end.poll(now)?;
        let mut alike = if shortcuts {
            end.continue_alike(&last.segment, |_| false)
        } else {
            Alike::NONE
        };
        let mut sent = vec![last];
        while alike.segments > 0 {
            alike.advance(&mut last.segment);
            sent.push(last);
        }
        Some(sent)
    }

    fn fate() -> impl Strategy<Value = Fate> {
        let delay =
            prop_oneof![1 => Just(None), 30 => Just(Some(10)), 2 => (10_u64..40).prop_map(Some)];
        (delay, prop::bool::weighted(0.03))
    }

    proptest! {
        /// With and without shortcuts the same segments leave at the same times.
        #[test]
        fn shortcuts_have_the_effect_of_the_long_way(
            algorithm in prop::sample::select(Catalogue::new().iter().cloned().collect::<Vec<_>>()),
            ecn: bool,
            kernel in prop::sample::select(vec![Kernel::V6_1, Kernel::V6_12, Kernel::V7_3]),
            bytes in prop_oneof![3 => Just(UNLIMITED), 1 => 1_u64..3_000_000],
            fates in prop::collection::vec(fate(), 1..200),
        ) {
            let with = sent(&algorithm, (ecn, kernel, bytes), &fates, true);
            let without = sent(&algorithm, (ecn, kernel, bytes), &fates, false);
            prop_assert_eq!(with, without);
        }
    }
}
