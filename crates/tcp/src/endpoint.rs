//! One end of a connection: the handshake (RFC 9293 §3.5, with ECN by RFC 3168 §6.1.1), the sending and the receiving
//! half, and the close.

mod half;
mod reset;

use std::sync::Arc;

use sojourn_units::{Duration, Time, cold_path, prefetch};

use crate::cc::{Algorithm, Maker};
use crate::config::{Config, Kernel};
use crate::ecn::{self, Arrival, EcnBytes, Feedback};
use crate::receiver::{Receiver, SYN_WINDOW};
use crate::rtt::INITIAL_RTO;
use crate::segment::{Flags, Segment};
use crate::sender::{Acknowledged, Alike, Rest, Sender, Sending};
use crate::seq::Seq;
use half::{Half, Resting};
use reset::Reset;

/// A segment to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// The segment.
    pub segment: Segment,
    /// The packet is ECN-capable. With classic ECN, this applies to new data (RFC 3168 §6.1.5); with AccECN, also to
    /// retransmissions and pure acknowledgements; with DCTCP, to all packets, the handshake included (as Linux).
    pub ecn_capable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Waiting for a SYN.
    Listen,
    /// Sent a SYN (or is about to), waiting for its acknowledgement.
    SynSent,
    /// Sent a SYN-ACK (or is about to), waiting for its acknowledgement.
    SynReceived,
    /// The SYN-ACK is to be acknowledged alone, before data.
    Answering,
    /// Data may flow.
    Established,
    /// Aborted, here or by the peer. What arrives is answered by a reset.
    Closed,
}

/// The initial window is kept if at most this many SYNs were lost. Linux allows one, because its first timeout is only
/// 1 s; RFC 5681 §3.1 allows none.
const SYN_LOSSES_FORGIVEN: u32 = 1;

/// Retransmissions of a SYN in Linux 7.3 that do not double the timeout (tcp_syn_linear_timeouts). With 4 of them the
/// first five timeouts are 1 s each, and the later ones 2, 4, … s.
const SYN_LINEAR_RETRIES: u32 = 4;

/// Retransmissions of a SYN and of a SYN-ACK before the connection fails (Linux's tcp_syn_retries and
/// tcp_synack_retries).
const SYN_RETRIES: u32 = 6;
const SYN_ACK_RETRIES: u32 = 5;

/// One end of a TCP connection.
pub struct Endpoint {
    /// Shared, as there may be hundreds of thousands of ends.
    config: Arc<Config>,
    algorithm: Maker,
    phase: Phase,
    iss: Seq,
    half: Half,
    receiver: Receiver,
    feedback: Feedback,
    sack: bool,
    /// A SYN or SYN-ACK is to be sent.
    syn_due: bool,
    syn_sent_at: Option<Time>,
    /// Transmissions of the SYN or SYN-ACK.
    syn_tries: u32,
    syn_timeouts: u64,
    /// When the SYN or SYN-ACK times out; [`Time::MAX`]: none is out.
    syn_alarm: Time,
    /// The SYN or SYN-ACK has timed out and was not retransmitted yet.
    syn_timed_out: bool,
    /// Timeouts of the handshake that led to a retransmission.
    earlier_timeouts: u32,
    /// How the peer's SYN or SYN-ACK arrived, and whether the next segment reports it (AccECN).
    setup_arrived: Arrival,
    reports_setup: bool,
    failed: bool,
    reset: Option<Reset>,
    /// How much the sending half rests once the connection is established, and what acknowledgements have said if it does. A
    /// closed connection is idle if there is no reset to send.
    rest: Rest,
    acknowledged: Acknowledged,
    /// The sending half rests, and nothing but the next data is expected: [`Endpoint::on_segment`] takes it the short way.
    only_receives: bool,
}

impl Endpoint {
    /// An endpoint that waits for the peer's SYN. `iss`: its initial sequence number.
    pub fn listen(config: impl Into<Arc<Config>>, algorithm: &Algorithm, iss: Seq) -> Self {
        let config = config.into();
        Self {
            phase: Phase::Listen,
            iss,
            half: Half::Resting(Resting::new(&config, iss)),
            receiver: Receiver::new(&config, Seq(0), false, Feedback::None),
            feedback: Feedback::None,
            sack: false,
            syn_due: false,
            syn_sent_at: None,
            syn_tries: 0,
            syn_timeouts: 0,
            syn_alarm: Time::MAX,
            earlier_timeouts: 0,
            syn_timed_out: false,
            setup_arrived: Arrival::NotEct,
            reports_setup: false,
            failed: false,
            reset: None,
            rest: Rest::Active,
            only_receives: false,
            acknowledged: Acknowledged::default(),
            config,
            algorithm: algorithm.maker(),
        }
    }

    /// An endpoint that opens the connection when first polled.
    pub fn connect(config: impl Into<Arc<Config>>, algorithm: &Algorithm, iss: Seq) -> Self {
        Self {
            phase: Phase::SynSent,
            syn_due: true,
            ..Self::listen(config, algorithm, iss)
        }
    }

    /// Both ends of a connection that has been opened over a path without loss or queue, the end that opened it first.
    /// `rtt` is the path's.
    pub fn connected(
        config: &Arc<Config>,
        algorithm: &Algorithm,
        iss: [Seq; 2],
        rtt: Duration,
        now: Time,
    ) -> [Self; 2] {
        let mut ends = [
            Self::connect(Arc::clone(config), algorithm, iss[0]),
            Self::listen(Arc::clone(config), algorithm, iss[1]),
        ];
        let mut segment = Segment::default();
        for (from, to) in [(0, 1), (1, 0), (0, 1)] {
            let sent = ends[from].poll_handshake(&mut segment, now);
            let ecn = if sent == Some(true) {
                Arrival::Ect0
            } else {
                Arrival::NotEct
            };
            ends[to].on_handshake(&segment, ecn, Some(rtt), now);
        }
        ends.iter_mut().for_each(Self::look_at_halves);
        ends
    }

    /// Adds `bytes` to send; [`crate::UNLIMITED`] for data without end.
    pub fn write(&mut self, bytes: u64) {
        self.begin_sending().write(bytes);
        self.look_at_halves();
    }
    /// Closes for writing, once all data has been sent. With data without end, [`Endpoint::abort`] ends the connection.
    pub fn close(&mut self) {
        self.begin_sending().close();
        self.receiver.note_closed();
        self.look_at_halves();
    }
    /// True once data may flow.
    pub fn is_established(&self) -> bool {
        matches!(self.phase, Phase::Answering | Phase::Established)
    }
    /// True if the handshake was abandoned.
    pub const fn has_failed(&self) -> bool {
        self.failed
    }
    /// True once everything written, FIN included, is acknowledged and the peer has closed too.
    pub fn is_closed(&self) -> bool {
        self.peer_has_closed() && self.half.sender().is_some_and(Sender::is_closed)
    }
    /// True once all data up to the peer's FIN has arrived.
    pub fn peer_has_closed(&self) -> bool {
        self.receiver.is_finished() && self.is_established()
    }
    /// Payload bytes received in order.
    pub const fn received(&self) -> u64 {
        self.receiver.received()
    }
    /// Retransmission timeouts so far, those of its SYN or SYN-ACK included, as Linux's TCPTimeouts counts them.
    pub fn timeouts(&self) -> u64 {
        self.syn_timeouts + self.half.sender().map_or(0, Sender::timeouts)
    }
    /// Payload bytes sent so far, each counted once.
    pub fn sent(&self) -> u64 {
        self.half.sender().map_or(0, Sender::sent)
    }
    /// Segments retransmitted so far.
    pub fn retransmits(&self) -> u64 {
        self.half.sender().map_or(0, Sender::retransmits)
    }
    /// As [`Sender::buffered`].
    pub fn buffered(&self) -> u64 {
        self.half.sender().map_or(0, Sender::buffered)
    }
    /// True if the data to send has no end.
    pub fn is_unlimited(&self) -> bool {
        self.half.sender().is_some_and(Sender::is_unlimited)
    }
    /// The sending half, to read its state. It is made if there was nothing to send yet.
    pub fn sender(&mut self) -> &Sender {
        self.begin_sending()
    }
    /// Takes the segments judged lost since the last call, if [`Config::notes_losses`].
    pub fn take_losses(&mut self) -> Vec<crate::Lost> {
        (self.half.sender_mut()).map_or(Vec::new(), Sender::take_losses)
    }
    /// The sending half, for tests.
    #[cfg(test)]
    pub(crate) fn sender_mut(&mut self) -> &mut Sender {
        self.begin_sending()
    }
    /// The next segment goes the long way, for tests.
    #[cfg(test)]
    pub(crate) const fn take_no_short_way(&mut self) {
        self.only_receives = false;
    }
    /// Payload bytes up to which the host's own queue accepts another burst (TCP small queues).
    pub fn small_queue(&self) -> u64 {
        self.half.sender().map_or(u64::MAX, Sender::small_queue)
    }
    /// Tells the memory of what the host's own queue holds, as Linux counts it. Call it before [`Endpoint::poll`], which then
    /// keeps that queue short, in place of [`Endpoint::hold_back`].
    pub fn note_queued(&mut self, memory: u32) {
        if let Some(sender) = self.half.sender_mut() {
            sender.note_queued(memory);
        }
    }
    /// True if something has waited since the last call for less in the host's own queue.
    pub fn take_throttled(&mut self) -> bool {
        self.half.sender_mut().is_some_and(Sender::take_throttled)
    }
    /// As [`Endpoint::small_queue`], or less.
    #[inline(always)]
    pub const fn least_small_queue(&self) -> u64 {
        Sender::least_small_queue(self.receiver.mss())
    }
    /// Holds data back until `until`, when the host's own queue is short enough again. Call it before
    /// [`Endpoint::poll`]. A burst that has begun continues.
    pub fn hold_back(&mut self, until: Time) {
        if let Some(sender) = self.half.sender_mut() {
            sender.hold_back(until);
        }
    }

    /// Has what a segment that arrives soon needs brought into the processor's caches.
    pub fn prefetch(&self) {
        prefetch(self);
        if let Half::Sending(sender) = &self.half {
            sender.prefetch();
        }
    }

    /// As [`Endpoint::take_expected`], of data behind a hole.
    #[inline(never)]
    pub fn take_behind_hole(&mut self, segment: &Segment, now: Time) -> bool {
        let takes = self.phase == Phase::Established
            && self.rest == Rest::Full
            && self.receiver.expects_behind_hole(segment)
            && self.acknowledged.covers(segment)
            && !self.acknowledged.is_raised_by(segment);
        if takes {
            self.receiver
                .on_data(segment, Arrival::NotEct, now, &self.half);
            self.only_receives = false;
        }
        takes
    }

    /// Takes a segment that arrives at `now`. Returns the round-trip time that it shows of what this end has sent, if it does.
    #[inline(always)]
    pub fn on_segment(&mut self, segment: &Segment, ecn: Arrival, now: Time) -> Option<Duration> {
        if self.take_expected(segment, now) {
            return None;
        }
        if self.phase == Phase::Established {
            return self.on_established(segment, ecn, now);
        }
        let rtt = self.on_handshake(segment, ecn, None, now);
        self.look_at_halves();
        rtt.or_else(|| self.half.take_rtt_sample())
    }

    /// As [`Endpoint::on_segment`], of the next data at an end that only receives: nothing but an acknowledgement may be to be
    /// sent afterwards. False: it is another segment, and nothing has happened.
    #[inline(always)]
    pub fn take_expected(&mut self, segment: &Segment, now: Time) -> bool {
        if !self.only_receives
            || !self.receiver.expects(segment)
            || !self.acknowledged.covers(segment)
        {
            return false;
        }
        self.receiver.note_timestamp(segment);
        self.receiver.on_expected(segment, now, &self.half);
        true
    }

    /// Finds out what the next segment may skip. To be called after everything but an acknowledgement that is sent and
    /// data that took the short way.
    #[inline(always)]
    fn look_at_halves(&mut self) {
        if self.phase != Phase::Established {
            cold_path();
            self.rest = if self.phase == Phase::Closed && self.reset.is_none() {
                Rest::Idle
            } else {
                Rest::Active
            };
            self.only_receives = false;
            return;
        }
        self.note_halves(self.half.rest());
    }

    /// Notes how far the sending half is.
    #[inline(always)]
    fn note_halves(&mut self, rest: Rest) {
        self.rest = rest;
        self.only_receives = rest == Rest::Full && {
            self.acknowledged = self.half.acknowledged();
            self.receiver.is_plain()
        };
    }

    /// `rtt`: see [`Endpoint::establish`].
    #[cold]
    #[inline(never)]
    fn on_handshake(
        &mut self,
        segment: &Segment,
        ecn: Arrival,
        rtt: Option<Duration>,
        now: Time,
    ) -> Option<Duration> {
        match self.phase {
            Phase::Answering | Phase::Established => {
                return self.on_established(segment, ecn, now);
            }
            Phase::Closed => self.answer_closed(segment),
            Phase::SynSent | Phase::SynReceived if segment.flags.contains(Flags::RST) => {
                self.on_refusal(segment)
            }
            Phase::Listen => {
                if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
                    self.negotiate(segment, self.wanted_feedback().accept(segment.flags));
                    self.setup_arrived = ecn;
                    self.phase = Phase::SynReceived;
                    self.syn_due = true;
                }
            }
            Phase::SynSent => {
                let answer = Flags::SYN.with(Flags::ACK);
                if segment.flags.contains(answer) && segment.ack == self.iss + 1 {
                    self.negotiate(segment, self.wanted_feedback().conclude(segment.flags));
                    self.establish(segment, rtt, now);
                    self.phase = Phase::Answering;
                    self.receiver.acknowledge_now();
                    if self.feedback == Feedback::Accurate {
                        self.setup_arrived = ecn;
                        self.reports_setup = true;
                        self.receiver.count_setup(ecn);
                    }
                }
            }
            Phase::SynReceived => {
                if segment.flags.contains(Flags::SYN) {
                    self.syn_due = true; // our SYN-ACK was lost
                } else if segment.flags.contains(Flags::ACK) && segment.ack == self.iss + 1 {
                    if self.drops_accecn() && segment.flags.ace() == 0 {
                        // The peer answers a SYN-ACK without AccECN.
                        self.feedback = Feedback::None;
                        self.receiver.disable_ecn();
                    }
                    self.establish(segment, rtt, now);
                    let mut segment = *segment;
                    if self.feedback == Feedback::Accurate && segment.sequence_len() == 0 {
                        // Its ACE field reports how the SYN-ACK arrived (RFC 9768 §3.2.2.1).
                        let count = self.begin_sending().setup_reported(segment.flags);
                        segment.flags = segment.flags.with_ace(count);
                    }
                    return self.on_established(&segment, ecn, now);
                }
            }
        }
        None
    }

    #[inline(always)]
    fn on_established(&mut self, segment: &Segment, ecn: Arrival, now: Time) -> Option<Duration> {
        if segment.flags.intersects(Flags::SYN.with(Flags::RST)) {
            self.on_setup_or_reset(segment);
            return self.half.take_rtt_sample();
        }
        self.receiver.note_timestamp(segment);
        let (rtt, rest) = match &mut self.half {
            Half::Sending(sender) => (sender.on_ack(segment, now), sender.rest()),
            Half::Resting(_) => self.on_ack_at_rest(segment, now),
        };
        if segment.sequence_len() > 0 {
            self.receiver.on_data(segment, ecn, now, &self.half);
        } else {
            self.receiver.on_empty(segment, ecn, now);
        }
        self.note_halves(rest);
        rtt
    }

    /// Takes an acknowledgement before there was anything to send.
    #[inline(never)]
    fn on_ack_at_rest(&mut self, segment: &Segment, now: Time) -> (Option<Duration>, Rest) {
        let rtt = match &mut self.half {
            Half::Resting(resting) if segment.sack[0].is_none() => resting.on_ack(segment),
            _ => self.begin_sending().on_ack(segment, now),
        };
        (rtt, self.half.rest())
    }

    /// Negotiates the options: keeps those that both ends want.
    fn negotiate(&mut self, syn: &Segment, feedback: Feedback) {
        self.feedback = feedback;
        self.sack = self.config.sack && syn.flags.contains(Flags::SACK_PERMITTED);
        let mut fresh = Receiver::new(&self.config, syn.seq + 1, self.sack, feedback);
        if self.algorithm.feedback == Feedback::Exact {
            fresh = fresh.of_dctcp();
        }
        let waiting = std::mem::replace(&mut self.receiver, fresh);
        self.receiver.take_over(&waiting);
        self.receiver.note_timestamp(&Segment {
            seq: syn.seq,
            ..*syn
        });
    }

    fn wanted_feedback(&self) -> Feedback {
        self.config.wanted_feedback(self.algorithm.feedback)
    }

    /// `rtt` is that of the handshake; `None`: it is measured.
    fn establish(&mut self, segment: &Segment, rtt: Option<Duration>, now: Time) {
        let rtt = rtt.or_else(|| self.handshake_rtt(segment, now));
        self.phase = Phase::Established;
        self.syn_alarm = Time::MAX;
        self.syn_due = false;
        let loses_window = self.syn_tries > 1 + SYN_LOSSES_FORGIVEN;
        if self.config.uses_option(self.feedback) && segment.flags.accecn_fields().is_some() {
            self.receiver.answer_option();
        }
        let control = self.algorithm.build(&self.config);
        match &mut self.half {
            Half::Resting(resting)
                if !loses_window
                    && self.feedback == Feedback::None
                    && !control.capabilities().paces =>
            {
                resting.on_handshake(rtt, segment.window, now, &self.config);
            }
            waiting => {
                let mut sender =
                    Sender::new(&self.config, control, self.iss, self.sack, self.feedback);
                if self.receiver.answers_option() {
                    sender = sender.with_option();
                }
                if let Half::Sending(waiting) = waiting {
                    sender.take_over(waiting);
                }
                sender.on_handshake(rtt, segment.window, now);
                if loses_window {
                    sender.lose_initial_window(); // RFC 5681 §3.1
                }
                *waiting = Half::Sending(Box::new(sender));
            }
        }
    }

    /// The sending half. It is made if there was nothing to send before.
    #[inline(always)]
    fn begin_sending(&mut self) -> &mut Sender {
        if matches!(self.half, Half::Resting(_)) {
            self.make_sender();
        }
        self.half.sender_mut().expect("it has been made")
    }

    #[cold]
    #[inline(never)]
    fn make_sender(&mut self) {
        let Half::Resting(resting) = &self.half else {
            return;
        };
        let control = self.algorithm.build(&self.config);
        let mut sender = Sender::new(&self.config, control, self.iss, self.sack, self.feedback);
        resting.hand_over(&mut sender);
        self.half = Half::Sending(Box::new(sender));
    }

    /// The round trip of the handshake that `segment` completes, if it is known.
    fn handshake_rtt(&self, segment: &Segment, now: Time) -> Option<Duration> {
        match self.syn_sent_at {
            Some(sent) if self.syn_tries == 1 => Some(now - sent),
            // The echoed timestamp tells which SYN was answered (RFC 7323 §4.1).
            Some(_) if self.phase == Phase::SynSent && segment.ts_ecr != 0 => {
                let elapsed = crate::timestamp(now).wrapping_sub(segment.ts_ecr);
                Some(Duration::from_millis(u64::from(elapsed.max(1))))
            }
            _ => None,
        }
    }

    /// True if ECN-capable packets are sent as ECT(1), the identifier of L4S (RFC 9331 §4.1), instead of ECT(0): by a
    /// congestion control that needs accurate feedback, if it has it.
    pub fn sends_ect1(&self) -> bool {
        self.feedback == Feedback::Accurate && self.algorithm.feedback == Feedback::Accurate
    }

    /// False if [`Endpoint::poll`] would do nothing and need not be called.
    #[inline]
    pub fn has_to_send(&self) -> bool {
        self.receiver.wants_ack() || !self.is_idle()
    }

    /// False if an end that is idle has nothing to send.
    #[inline(always)]
    pub const fn owes_acknowledgement(&self) -> bool {
        self.receiver.wants_ack()
    }

    /// True if the connection is established, and nothing is to be sent but an acknowledgement that is owed.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.rest != Rest::Active
    }

    /// The next segment to send at `now`. Call it until `None` after every other call.
    pub fn poll(&mut self, now: Time) -> Option<Transmit> {
        let mut segment = Segment::default();
        let ecn_capable = self.poll_into(&mut segment, now)?;
        Some(Transmit {
            segment,
            ecn_capable,
        })
    }

    /// As [`Endpoint::poll`], but writes the segment to its final place, which saves an expensive move. Returns true
    /// if the packet is ECN-capable.
    pub fn poll_into(&mut self, segment: &mut Segment, now: Time) -> Option<bool> {
        if self.phase != Phase::Established {
            let polled = self.poll_handshake(segment, now);
            self.look_at_halves();
            return polled;
        }
        if self.is_idle() {
            return self.acknowledge_into(segment, now);
        }
        let Some(sender) = self.half.sender_mut() else {
            return None; // it would be idle
        };
        let sending = sender.poll(segment, now);
        if sending.is_none() {
            let rest = sender.rest();
            self.note_halves(rest);
            return self.acknowledge_into(segment, now);
        }
        self.receiver.note_sent(segment, now);
        self.complete(segment, sending, now)
    }

    /// True if nothing left when [`Endpoint::poll`] last returned `None` because data waits to fill a burst, that is so
    /// again, and no acknowledgement is to be sent. Then [`Endpoint::poll`] need not be called, which would return `None`.
    /// False: nothing has happened. `is_free`: nothing else keeps the end from sending.
    #[inline(always)]
    pub fn defer_again(&mut self, now: Time, is_free: impl FnOnce() -> bool) -> bool {
        match self.half.sender_mut() {
            Some(sender) if sender.has_deferred() => {
                is_free()
                    && self.phase == Phase::Established
                    && !self.receiver.wants_ack()
                    && sender.defer_again(now)
            }
            _ => false,
        }
    }

    /// Takes an acknowledgement of new data in order, as [`Endpoint::on_segment`] does. Returns the round-trip time that it shows.
    /// `None`: it is another segment, and nothing has happened.
    #[inline(always)]
    pub fn take_progress(&mut self, segment: &Segment, now: Time) -> Option<Duration> {
        let sender = self.half.sender_mut()?;
        if self.phase != Phase::Established || self.receiver.waits_at(now) {
            return None;
        }
        let rtt = sender.take_progress(segment, now)?;
        self.receiver.note_timestamp(segment);
        self.receiver.on_empty(segment, Arrival::NotEct, now);
        Some(rtt)
    }

    /// After [`Endpoint::take_progress`]: true if data goes on waiting to fill a burst. Then [`Endpoint::poll`] need not be called,
    /// which would return `None`, and [`Endpoint::due`] is what it was. `is_free`: as for [`Endpoint::defer_again`].
    #[inline(always)]
    pub fn keeps_deferring(&mut self, now: Time, is_free: impl FnOnce() -> bool) -> bool {
        !self.receiver.wants_ack()
            && is_free()
            && (self.half.sender_mut()).is_some_and(|sender| sender.keeps_deferring(now))
    }

    /// As [`Endpoint::poll_into`], if the sending half has nothing to send.
    #[inline(always)]
    pub fn acknowledge_into(&mut self, segment: &mut Segment, now: Time) -> Option<bool> {
        if !self.receiver.wants_ack() {
            return None;
        }
        if self.only_receives {
            segment.seq = self.acknowledged.next_seq();
            debug_assert_eq!(segment.seq, self.half.next_seq(), "nothing is in flight");
            segment.len = 0;
            segment.flags = Flags::default();
            segment.ts_val = crate::timestamp(now);
            self.receiver.stamp_plain(segment, now);
            return Some(false);
        }
        self.begin_acknowledgement(segment);
        self.complete(segment, None, now)
    }

    /// Sends the segments that continue the burst of `segment`, which [`Endpoint::poll_into`] has just written, as far as they
    /// differ from it in their places only; [`Alike::advance`] makes them. They are as ECN-capable as it. `may_break`: asked
    /// while the window is reduced after a loss or a mark; if true, none are sent.
    #[inline(always)]
    pub fn continue_alike(
        &mut self,
        segment: &Segment,
        may_break: impl FnOnce(&Sender) -> bool,
    ) -> Alike {
        match self.half.sender_mut() {
            Some(sender)
                if sender.is_in_burst()
                    && self.receiver.tells_the_same()
                    && !(sender.is_reducing() && may_break(sender)) =>
            {
                sender.continue_alike(segment)
            }
            _ => Alike::NONE,
        }
    }

    fn begin_acknowledgement(&self, segment: &mut Segment) {
        segment.seq = self.half.next_seq();
        segment.len = 0;
        segment.flags = Flags::default();
    }

    /// Writes what a segment says about the other direction. Returns true if the packet is ECN-capable.
    #[inline(always)]
    fn complete(
        &mut self,
        segment: &mut Segment,
        sending: Option<Sending>,
        now: Time,
    ) -> Option<bool> {
        segment.ts_val = crate::timestamp(now);
        if sending.is_some() {
            self.receiver.stamp_data(segment, now);
        } else {
            self.receiver.stamp(segment, now);
        }
        if self.feedback == Feedback::None {
            return Some(false);
        }
        if self.reports_setup {
            cold_path();
            self.reports_setup = false;
            if segment.sequence_len() == 0 {
                let report = ecn::setup_report(self.setup_arrived);
                segment.flags = segment.flags.with_ace(report);
            }
        }
        let is_new_data = sending == Some(Sending::New) && segment.len > 0;
        Some(self.feedback != Feedback::Classic || is_new_data)
    }

    #[cold]
    #[inline(never)]
    fn poll_handshake(&mut self, segment: &mut Segment, now: Time) -> Option<bool> {
        if self.phase == Phase::Answering {
            self.phase = Phase::Established;
            self.begin_acknowledgement(segment);
            return self.complete(segment, None, now);
        }
        if self.phase == Phase::Closed {
            return self.poll_reset(segment, now);
        }
        if !std::mem::take(&mut self.syn_due) {
            return None;
        }
        let ecn_setup = match self.phase {
            Phase::SynSent if self.requests_ecn() => self.wanted_feedback().syn_flags(),
            Phase::SynReceived if !self.drops_accecn() => {
                self.feedback.answer_flags(self.setup_arrived)
            }
            _ => Flags::default(),
        };
        self.earlier_timeouts += u32::from(std::mem::take(&mut self.syn_timed_out));
        let setup = Flags::SYN.with(ecn_setup);
        *segment = Segment {
            seq: self.iss,
            ts_val: crate::timestamp(now),
            flags: setup.with_if(Flags::SACK_PERMITTED, self.config.sack),
            ..Segment::default()
        };
        if self.phase == Phase::SynReceived {
            self.receiver.stamp(segment, now);
            segment.flags = setup
                .with(Flags::ACK)
                .with_if(Flags::SACK_PERMITTED, self.sack);
            // As Linux, not in a retransmission (RFC 9768 §3.2.3.2.2).
            if self.syn_tries == 0 && self.config.uses_option(self.feedback) {
                segment.add_accecn(3, EcnBytes::default());
            }
        }
        segment.window = SYN_WINDOW;
        self.syn_sent_at = Some(now);
        let timeout = INITIAL_RTO * (1 << (self.syn_tries - self.linear_tries()).min(SYN_RETRIES));
        self.syn_alarm = self.config.clock.expiry(now, timeout);
        self.syn_tries += 1;
        Some(self.algorithm.feedback == Feedback::Exact && ecn_setup != Flags::default())
    }

    /// Transmissions so far that do not double the next timeout. With a SYN-ACK every one doubles it.
    fn linear_tries(&self) -> u32 {
        match self.phase {
            Phase::SynSent => self.syn_tries.min(self.linear_retries()),
            _ => 0,
        }
    }

    /// The retransmissions of a SYN whose timeouts do not double.
    fn linear_retries(&self) -> u32 {
        if self.config.kernel >= Kernel::V6_12 {
            SYN_LINEAR_RETRIES
        } else {
            0
        }
    }

    /// The retransmissions of a SYN or SYN-ACK after which the connection fails.
    fn syn_retries(&self) -> u32 {
        match self.phase {
            Phase::SynSent => SYN_RETRIES + self.linear_retries(),
            _ => SYN_ACK_RETRIES,
        }
    }

    /// True if the SYN requests ECN. A retransmitted SYN does not, in case the path drops such SYNs (RFC 3168
    /// §6.1.1.1). AccECN is requested twice (RFC 9768 §3.1.4.1).
    fn requests_ecn(&self) -> bool {
        let tries = match self.wanted_feedback() {
            Feedback::Accurate => 2,
            _ => 1,
        };
        self.syn_tries < tries || !self.config.ecn_fallback
    }

    /// True if the SYN-ACK is sent without AccECN, in case the path drops SYN-ACKs with it: after a retransmission and
    /// another timeout (RFC 9768 §3.2.3.2.2, as Linux).
    fn drops_accecn(&self) -> bool {
        let again = self.syn_tries > 1 && self.earlier_timeouts > 0;
        self.feedback == Feedback::Accurate && self.config.ecn_fallback && again
    }

    /// When [`Endpoint::on_timer`] is due.
    pub fn next_timer(&self) -> Option<Time> {
        let due = match self.phase {
            Phase::Established => {
                let sending = self.half.sender().map_or(Time::MAX, Sender::find_due);
                sending.min(self.receiver.due())
            }
            _ => self.syn_alarm,
        };
        Some(due).filter(|due| *due != Time::MAX)
    }

    /// As [`Endpoint::next_timer`], or sooner, which costs less to know; [`Time::MAX`]: never. [`Endpoint::find_timer`] is to
    /// be called then.
    #[inline(always)]
    pub fn due(&self) -> Time {
        if self.only_receives {
            return self.receiver.due(); // the sending half is at rest
        }
        if self.phase != Phase::Established {
            cold_path();
            return self.syn_alarm;
        }
        self.half.due().min(self.receiver.due())
    }

    /// Computes when [`Endpoint::on_timer`] is due; [`Endpoint::due`] returns it then, until something else is called.
    pub fn find_timer(&mut self) -> Time {
        if let Some(sender) = self.half.sender_mut() {
            sender.find_alarm();
        }
        self.due()
    }

    /// True if an acknowledgement waits for what else arrives at `now`: a timer is due at this instant. If nothing else
    /// arrives, [`Endpoint::on_timer`] may be called at once.
    #[inline(always)]
    pub fn waits_at(&self, now: Time) -> bool {
        self.receiver.waits_at(now)
    }

    /// Handles timers that have expired. Call [`Endpoint::poll`] afterwards.
    pub fn on_timer(&mut self, now: Time) {
        if self.phase == Phase::Established {
            if let Some(sender) = self.half.sender_mut().filter(|sender| sender.due() <= now) {
                sender.on_timer(now);
            }
            self.receiver.on_timer(now);
        } else if self.syn_alarm <= now {
            self.syn_alarm = Time::MAX;
            self.syn_timeouts += 1;
            self.syn_timed_out = true;
            self.failed = self.syn_tries > self.syn_retries();
            self.syn_due = !self.failed;
        }
        self.look_at_halves();
    }
}

#[cfg(test)]
mod tests;
