//! The sending half: decides from acknowledgements what to send and when.
//!
//! | file | what is there |
//! | --- | --- |
//! | `mod.rs` | state, transmission |
//! | `acknowledgements.rs` | processing of an acknowledgement |
//! | `recovery.rs` | loss recovery and ECN response: states, proportional rate reduction, undo |
//! | `delivery.rs` | delivery-rate samples |
//! | `pacing.rs` | when a paced segment may leave |
//! | `buffers.rs` | the send buffers that the application fills |
//! | `gso.rs` | how many segments leave in one burst |
//! | `deferral.rs` | how long data goes on waiting to fill a burst |
//! | `offers.rs` | the windows that the peer has offered |
//! | `due.rs` | what may be sent regardless of the congestion window |
//! | `timers.rs` | retransmission timeout, tail loss probe, reordering timer, idle restart |

mod acknowledgements;
mod buffers;
mod deferral;
mod delivery;
mod due;
mod gso;
mod offers;
mod pacing;
mod recovery;
mod timers;

use sojourn_units::{Duration, Rate, Time, cold_path, prefetch};

use self::buffers::Buffers;
use self::deferral::Deferral;
use self::due::Due;
use self::gso::Burst;
pub(crate) use self::offers::{Acknowledged, Offers};
use self::pacing::Pacer;
use self::recovery::{Reduction, State, Undo};
use self::timers::Alarm;
use crate::cc::{AckEvent, Capabilities, CongestionControl, Window};
use crate::config::{Clock, Config, Kernel, Recovery};
use crate::ecn::{self, Feedback};
use crate::rtt::RttEstimator;
use crate::scoreboard::{Lost, Scoreboard};
use crate::segment::{Flags, Segment};
use crate::seq::Seq;

/// Data without end, for [`Sender::write`].
pub const UNLIMITED: u64 = u64::MAX;

/// Whether a segment carries new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// Data sent for the first time.
    New,
    /// A retransmission.
    Retransmission,
}

/// The segments that follow another in its burst and differ from it in their places only.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    /// How many.
    pub segments: u32,
    /// The last one ends the burst.
    end_burst: bool,
}

impl Alike {
    /// None follows.
    pub const NONE: Self = Self {
        segments: 0,
        end_burst: false,
    };

    /// Goes on from the segment that these follow to the next.
    #[inline(always)]
    pub fn advance(&mut self, segment: &mut Segment) {
        segment.seq += u32::from(segment.len);
        self.segments -= 1;
        if self.segments == 0 && self.end_burst {
            segment.flags = segment.flags.with(Flags::PSH);
        }
    }

    /// Goes on by `count` segments, of more, and returns what followed the first within those.
    #[inline(always)]
    pub fn split(&mut self, segment: &mut Segment, count: u32) -> Self {
        for _ in 0..count {
            self.advance(segment);
        }
        Self {
            segments: count - 1,
            end_burst: false,
        }
    }
}

/// The sending half of a connection.
pub struct Sender {
    clock: Clock,
    mss: u32,
    sack: bool,
    recovery: Recovery,
    feedback: Feedback,
    /// Marked packets that the peer has reported (s.cep of RFC 9768 §3.2.1).
    marks: u32,
    /// The peer's timestamp in the last report.
    marks_reported_at: u32,
    ack_size: ecn::AckSize,
    /// What the AccECN option reports, if it is in use.
    reported: Option<Box<ecn::Counts>>,
    /// CWR is to be sent. Cleared when a reduction is undone, as in Linux.
    confirm_reduction: bool,
    /// SND.UNA and SND.NXT.
    una: Seq,
    next: Seq,
    offers: Offers,
    /// Bytes that the application has written and that were never sent; [`UNLIMITED`] if it always has more.
    unsent: u64,
    fin: Fin,
    scoreboard: Scoreboard,
    window: Window,
    control: Box<dyn CongestionControl>,
    /// The information that the congestion control needs.
    capabilities: Capabilities,
    /// Something is noted of each segment sent: the congestion control needs samples or paces.
    notes_each: bool,
    /// An in-order acknowledgement may take the fast path: SACK is on, and the congestion control needs no samples.
    has_fast_path: bool,
    pacer: Pacer,
    /// Data waits for the pacer.
    held: bool,
    /// Segments leave in bursts, as with segmentation offload.
    gso: bool,
    kernel: Kernel,
    /// Segments left in the current burst.
    burst: u32,
    /// SND.NXT before the last burst, if `queued` is known.
    burst_start: Seq,
    /// Memory of what waits in the host's own queue, if that limits what is sent.
    queued: Option<u32>,
    /// Something waits until less is there (Linux's TSQ_THROTTLED).
    is_throttled: bool,
    /// Segments left in the current send buffer, and the next buffers.
    buffer: u32,
    buffers: Buffers,
    /// Data that fits in the window is deferred until it fills a burst.
    defers: bool,
    /// So it was at the end of the last round of sending.
    has_deferred: bool,
    deferral: Deferral,
    rtt: RttEstimator,
    state: State,
    /// SND.NXT when the current state was entered (RFC 6675's RecoveryPoint).
    recovery_point: Seq,
    reduction: Reduction,
    undo: Undo,
    frto: bool,
    /// RFC 5682 step 2b: send new data before retransmissions, once.
    new_data_first: bool,
    /// Duplicate acknowledgements, for a connection without SACK.
    duplicates: u32,
    reordering: recovery::Reordering,
    alarm: Option<timers::Timer>,
    /// How to set the alarm once everything that may be sent has been sent.
    arm: timers::Arm,
    backoff: u32,
    probe: Option<timers::Probe>,
    due: Due,
    /// SND.NXT when the window's use was last judged, and segments sent since.
    usage_point: Seq,
    sent_since_judged: u32,
    last_sent: Time,
    /// Most segments in flight since the window was last filled, and when that was (RFC 7661 §4.4.3).
    peak_unfilled: u32,
    filled_at: Time,
    initial_window: u32,
    delivered: u64,
    /// Segments judged lost so far, modulo 2^32.
    lost: u32,
    /// While `delivered` is below this, rate samples measure the application and not the path.
    app_limited_until: u64,
    delivered_at: Time,
    first_sent_at: Time,
    sent: u64,
    retransmits: u64,
    timeouts: u64,
    /// The newest RTT sample that the user has not yet taken.
    last_rtt: Option<Duration>,
}

/// How much a sender rests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    /// Not at all: there is something to send or in flight.
    Active,
    /// [`Sender::poll`] would do nothing.
    Idle,
    /// As well, an acknowledgement matters only if it says something new.
    Full,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fin {
    Open,
    /// The application has just closed. What it wrote is sent first, as Linux's write() sends it before close(); if
    /// nothing is left unsent then, the FIN leaves alone.
    Closing,
    /// Data was left unsent when the application closed; the FIN goes with the last of it (tcp_send_fin).
    Wanted,
    Sent,
}

/// Which segments of new data may be sent (RFC 9293 §3.8.6.2.1, the sender's silly window avoidance).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fill {
    /// Full segments, and the last one.
    Full,
    /// Any segment for which the receive window has room.
    Partial,
}

impl Sender {
    /// A sender after the handshake. `iss` is the sequence number of the SYN, which is acknowledged; `rtt` holds its
    /// sample; `sack` and `feedback` are as negotiated.
    pub fn new(
        config: &Config,
        control: Box<dyn CongestionControl>,
        iss: Seq,
        sack: bool,
        feedback: Feedback,
    ) -> Self {
        let first = iss + 1;
        Self {
            clock: config.clock,
            mss: u32::from(config.mss),
            sack,
            recovery: config.recovery,
            feedback,
            marks: ecn::FIRST_COUNT,
            marks_reported_at: 0,
            ack_size: ecn::AckSize::default(),
            reported: None,
            confirm_reduction: false,
            una: first,
            next: first,
            offers: Offers::none(config.mss, first),
            unsent: 0,
            fin: Fin::Open,
            scoreboard: Scoreboard::new(config.mss, control.capabilities().samples)
                .note_losses(config.notes_losses)
                .tell_losses(control.capabilities().losses),
            window: Window::new(config.initial_window),
            has_fast_path: sack
                && feedback != Feedback::Accurate
                && !control.capabilities().samples,
            notes_each: control.capabilities().samples || control.capabilities().paces,
            pacer: Pacer::new(config.pacing_shift)
                .with_short_bursts(control.capabilities().short_bursts),
            capabilities: control.capabilities(),
            control,
            held: false,
            gso: config.gso,
            kernel: config.kernel,
            burst: 0,
            buffer: 0,
            buffers: Buffers::default(),
            defers: false,
            has_deferred: false,
            deferral: Deferral::NONE,
            rtt: Self::estimator(config),
            state: State::Open,
            recovery_point: first,
            reduction: Reduction::default(),
            undo: Undo::new(config.recovery),
            frto: false,
            new_data_first: false,
            duplicates: 0,
            reordering: recovery::Reordering::default(),
            alarm: None,
            arm: timers::Arm::Leave,
            backoff: 0,
            probe: None,
            due: Due::default(),
            usage_point: first,
            burst_start: first,
            queued: None,
            is_throttled: false,
            sent_since_judged: 0,
            last_sent: Time::ZERO,
            peak_unfilled: 0,
            filled_at: Time::ZERO,
            initial_window: config.initial_window,
            delivered: 0,
            lost: 0,
            app_limited_until: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            sent: 0,
            retransmits: 0,
            timeouts: 0,
            last_rtt: None,
        }
    }

    /// With the AccECN option, which takes room of each segment, and reports bytes. Nothing has been sent.
    pub(crate) fn with_option(mut self) -> Self {
        let mss = self.mss - u32::from(ecn::OPTION_BYTES);
        self.mss = mss;
        self.offers = Offers::none(mss as u16, self.una);
        self.scoreboard = self.scoreboard.of_segments(mss);
        self.reported = Some(Box::default());
        self
    }

    /// As [`crate::Endpoint::prefetch`].
    pub(crate) fn prefetch(&self) {
        prefetch(self);
        prefetch(&*self.control);
        self.scoreboard.prefetch();
    }

    /// Takes the round trip of the handshake as the first RTT sample (RFC 6298 §2.2). Linux's congestion controls do not
    /// get it, except those that pace, such as BBR.
    pub fn on_handshake(&mut self, rtt: Option<Duration>, peer_window: u32, now: Time) {
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt, now, self.una, self.next);
            self.last_rtt = Some(rtt);
            if self.capabilities.paces {
                let event = AckEvent {
                    now,
                    delivered: 0,
                    acked: 0,
                    marks: 0,
                    rtt: Some(rtt),
                    una: self.una,
                    next: self.next,
                };
                self.control.on_delivery(&event, &mut self.window);
            }
        } else {
            self.rtt.handshake_gave_none();
        }
        if self.capabilities.paces {
            self.pacer.set_rate(self.control.pacing_rate(), now);
        }
        self.offers.begin(self.una, peer_window);
        self.delivered_at = now;
        self.filled_at = now;
    }

    /// The estimator of round-trip times before the handshake.
    pub(crate) fn estimator(config: &Config) -> RttEstimator {
        match config.recovery {
            Recovery::Rack => RttEstimator::new(config.rto_min, config.clock),
            Recovery::Rfc6675 => RttEstimator::rfc6298(config.rto_min, config.clock),
        }
    }

    /// Goes on from what was known before there was anything to send: what the peer has offered, and whether the round trip
    /// of the handshake was not taken.
    pub(crate) fn continue_from(&mut self, offers: Offers, has_sample: bool) {
        self.offers = offers;
        self.last_rtt = self.last_rtt.filter(|_| has_sample);
    }

    /// Takes the report of how the SYN-ACK arrived, from the ACE field of the handshake's last segment, and returns the
    /// count of marks. As in Linux, a mark of the SYN-ACK is counted, but does not reduce the window.
    pub(crate) fn setup_reported(&mut self, flags: Flags) -> u32 {
        self.marks += u32::from(flags.ace() == ecn::SETUP_MARKED);
        self.marks
    }

    /// Takes over what the application wrote before the connection was established.
    pub(crate) fn take_over(&mut self, waiting: &Self) {
        self.unsent = waiting.unsent;
        self.fin = waiting.fin;
        self.due = waiting.due;
    }

    /// Starts with a window of one segment, because SYNs were lost (RFC 5681 §3.1).
    pub(crate) fn lose_initial_window(&mut self) {
        self.window.cwnd = 1;
    }

    /// Adds `bytes` to send; [`UNLIMITED`] for data without end.
    pub fn write(&mut self, bytes: u64) {
        self.forget_deferral();
        if self.unsent == 0 {
            // All that was written has left, so that its last buffer is not filled up (tcp_sendmsg_locked).
            self.buffers = Buffers::default();
            self.buffer = 0;
        }
        self.unsent = self.unsent.saturating_add(bytes);
    }

    /// Closes for writing, once all data has been sent. Data without end never is.
    pub fn close(&mut self) {
        self.forget_deferral();
        if self.fin == Fin::Open {
            self.fin = Fin::Closing;
            if self.kernel < Kernel::V6_12 {
                self.due.add(Due::LAST);
            }
        }
    }

    /// True if the data to send has no end.
    pub const fn is_unlimited(&self) -> bool {
        self.unsent == UNLIMITED
    }

    /// True if there is nothing to send and nothing in flight: [`Sender::poll`] would do nothing.
    fn is_idle(&self) -> bool {
        self.scoreboard.is_empty()
            && self.unsent == 0
            && !self.owes_fin()
            && self.arm == timers::Arm::Leave
    }

    /// True if no timer runs either, nothing waits for the pacer, and marks are not reported: an acknowledgement matters only
    /// if it says something new.
    fn is_at_rest(&self) -> bool {
        self.alarm.is_none() && !self.held && self.feedback == Feedback::None
    }

    /// What is left to do.
    #[inline(always)]
    pub(crate) fn rest(&self) -> Rest {
        match self.is_idle() {
            true if self.is_at_rest() => Rest::Full,
            true => Rest::Idle,
            false => Rest::Active,
        }
    }

    /// True if the application has closed and the FIN was never sent.
    fn owes_fin(&self) -> bool {
        matches!(self.fin, Fin::Closing | Fin::Wanted)
    }

    /// True if the FIN has been sent and acknowledged.
    pub fn is_closed(&self) -> bool {
        self.fin == Fin::Sent && self.scoreboard.is_empty()
    }

    /// Bytes written by the application and not acknowledged, counting a FIN as one: the fill of the send buffer.
    pub fn buffered(&self) -> u64 {
        self.unsent
            .saturating_add(u64::from(self.next.since(self.una)))
    }

    /// SND.NXT, the sequence number of pure acknowledgements.
    pub const fn next_seq(&self) -> Seq {
        self.next
    }
    /// Payload bytes sent so far, each counted once.
    pub const fn sent(&self) -> u64 {
        self.sent
    }
    /// Segments retransmitted so far.
    pub const fn retransmits(&self) -> u64 {
        self.retransmits
    }
    /// Retransmission timeouts so far.
    pub const fn timeouts(&self) -> u64 {
        self.timeouts
    }
    /// The congestion window in segments.
    pub const fn cwnd(&self) -> u32 {
        self.window.cwnd
    }
    /// The slow start threshold in segments.
    pub const fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }
    /// The rate, counting payload only, at which the congestion control paces; `None` without pacing.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.control.pacing_rate()
    }
    /// The state of loss recovery by the numbers of Linux's TCP_CA_*: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub const fn recovery_state(&self) -> u8 {
        self.state as u8
    }
    /// Segments believed to be in the network.
    pub fn in_flight(&self) -> u32 {
        self.scoreboard.in_flight().saturating_sub(self.duplicates)
    }
    /// The smoothed RTT.
    pub const fn smoothed_rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }
    /// The smallest RTT of the last five minutes.
    pub const fn min_rtt(&self) -> Option<Duration> {
        self.rtt.min()
    }
    /// The congestion control.
    pub fn control(&self) -> &dyn CongestionControl {
        self.control.as_ref()
    }
    /// The phase of the congestion control; "recovery" while the sender repairs losses, unless the control sets the window
    /// then too.
    pub fn phase(&self) -> &'static str {
        if self.state.resends() && !self.capabilities.governs_window {
            "recovery"
        } else {
            self.control.phase(&self.window)
        }
    }
    /// Takes the segments judged lost since the last call, if [`Config::notes_losses`].
    pub fn take_losses(&mut self) -> Vec<Lost> {
        self.scoreboard.take_losses()
    }
    /// The retransmission timeout, backed off.
    pub fn timeout(&self) -> Duration {
        self.rtt.backed_off_rto(self.backoff)
    }
    /// Takes the RTT sample of the handshake or of the last acknowledgement, if there is one.
    pub(crate) fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.last_rtt.take()
    }

    /// Writes the next segment to send at `now`: sequence number, length, FIN, PSH and CWR. The receiving half writes
    /// the rest. Returns `None` if nothing may be sent. Call it until `None` after every other call.
    pub fn poll(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        self.forget_deferral();
        // Of the limits, only the congestion window applies to the rest of a burst.
        if self.burst > 0 && self.in_flight() < self.window.cwnd {
            if let Some(sending) = self.continue_burst(segment, now) {
                return Some(sending);
            }
        }
        if self.due.any() {
            if let Some(sending) = self.send_due(segment, now) {
                return Some(sending);
            }
        }
        self.held = self.pacer.holds(now);
        let free = self.window.cwnd.saturating_sub(self.in_flight());
        if free > 0 && !self.held {
            if self.state.resends() && !self.new_data_first && !self.throttles(1, 1) {
                if let Some(sending) = self.send_lost(segment, now) {
                    return Some(sending);
                }
            }
            if let Some(sending) = self.begin_burst(segment, free, now) {
                return Some(sending);
            }
        }
        self.new_data_first = false;
        self.burst = 0;
        if self.fin == Fin::Closing {
            cold_path();
            self.fin = Fin::Wanted;
            return self.poll(segment, now);
        }
        self.settle(free == 0, now);
        None
    }

    /// Ends a round of sending as [`Sender::poll`] does if nothing leaves because data waits to fill a burst, as it did at the end
    /// of the last round. False: nothing has happened.
    #[inline(never)]
    pub(crate) fn defer_again(&mut self, now: Time) -> bool {
        let free = self.window.cwnd.saturating_sub(self.in_flight());
        let defers = free > 0
            && !self.state.resends()
            && self.defers_burst(free, now)
            && !self.due.any()
            && !self.pacer.holds(now)
            && self.fin != Fin::Closing
            && self.burst == 0;
        debug_assert!(self.has_deferred, "so it was");
        if defers {
            self.held = false;
            self.new_data_first = false;
            self.set_alarm(now); // there is data, so that the application does not limit the flow
            self.sent_since_judged = 0;
            self.judge_usage(true, now);
            self.bound_deferral(now);
        }
        defers
    }

    /// True if the last round of sending ended so.
    #[inline(always)]
    pub(crate) const fn has_deferred(&self) -> bool {
        self.has_deferred
    }

    /// Sends the first segment of the next burst of new data; without GSO, a single segment. The window has room for `free`
    /// segments.
    fn begin_burst(&mut self, segment: &mut Segment, free: u32, now: Time) -> Option<Sending> {
        if self.gso && self.unsent > 0 {
            match self.next_burst(free, now) {
                Burst::Deferred => {
                    self.defers = true;
                    return None;
                }
                Burst::Segments(segments) => self.burst = segments - 1,
            }
        }
        if self.queued.is_some() {
            return self.begin_if_queue_is_short(segment, now);
        }
        self.send_new(segment, now, Fill::Full)
    }

    /// Sends the first segment of a burst unless too much waits in the host's own queue.
    #[cold]
    #[inline(never)]
    fn begin_if_queue_is_short(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        if self.throttles(self.burst + 1, 0) {
            return None;
        }
        let start = self.next;
        let sending = self.send_next(segment, now, Fill::Full)?;
        self.burst_start = start;
        Some(sending)
    }

    /// Sends the next segment of the current burst. The last one carries PSH, as if the device had split the burst.
    fn continue_burst(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        self.burst -= 1;
        let sending = self.send_next(segment, now, Fill::Full)?;
        segment.flags = segment.flags.with_if(Flags::PSH, self.burst == 0);
        Some(sending)
    }

    /// True if segments of the current burst are left.
    #[inline(always)]
    pub(crate) const fn is_in_burst(&self) -> bool {
        self.burst > 0
    }

    /// True while the window is reduced.
    #[inline(always)]
    pub(crate) const fn is_reducing(&self) -> bool {
        self.state.reduces()
    }

    /// Payload bytes of the segment last sent and of those left in its burst, at most.
    pub const fn burst_bytes(&self) -> u64 {
        (self.burst as u64 + 1) * self.mss as u64
    }

    /// Sends the segments that continue the burst of `last`, the last one sent, alike, as [`Sender::poll`] would at the same
    /// instant.
    #[inline(always)]
    pub(crate) fn continue_alike(&mut self, last: &Segment) -> Alike {
        let segments = self.count_alike(last);
        if segments == 0 {
            return Alike::NONE;
        }
        let len = u32::from(last.len);
        let bytes = segments * len;
        let at = self.last_sent;
        self.scoreboard.push_alike(self.next, len, segments, at);
        if self.unsent != UNLIMITED {
            self.unsent -= u64::from(bytes);
        }
        self.burst -= segments;
        self.buffer -= segments;
        if self.ends_write() {
            self.scoreboard.push_ends();
        }
        self.next += bytes;
        self.sent += u64::from(bytes);
        self.sent_since_judged += segments;
        if self.state.reduces() {
            self.reduction.sent += segments;
        }
        Alike {
            segments,
            end_burst: self.burst == 0,
        }
    }

    /// How many full segments follow the last one within the burst, if nothing is noted or told with them that was not with
    /// the last.
    #[inline(always)]
    fn count_alike(&self, last: &Segment) -> u32 {
        let len = u32::from(last.len);
        if len != self.offers.full
            || self.notes_each
            || self.tells_of_reduction(last)
            || !last.sack[0].is_none()
        {
            return 0;
        }
        let free = self.window.cwnd.saturating_sub(self.in_flight());
        let segments = self.burst.min(self.buffer).min(free);
        // The last segment of all is another case.
        let rest = self.unsent.saturating_sub(u64::from(len + 1));
        let most = u64::from(self.room()).min(rest);
        if u64::from(segments * len) <= most {
            segments
        } else {
            cold_path();
            (most / u64::from(len)) as u32
        }
    }

    /// True if the last segment told of a reduction or the next one does: CWR goes with one segment, while with AccECN the bit
    /// belongs to a count.
    #[inline(always)]
    fn tells_of_reduction(&self, last: &Segment) -> bool {
        self.feedback != Feedback::None
            && (self.confirm_reduction
                || (self.feedback != Feedback::Accurate && last.flags.contains(Flags::CWR)))
    }

    /// Retransmits the first lost segment.
    #[cold]
    #[inline(never)]
    fn send_lost(&mut self, segment: &mut Segment, now: Time) -> Option<Sending> {
        let (seq, len) = self.scoreboard.next_lost()?;
        let stamp = self.stamp(now);
        self.scoreboard.mark_resent(now, stamp);
        self.undo.on_resend(now);
        if seq == self.una {
            self.arm = timers::Arm::Retransmit;
        }
        Some(self.resend(segment, seq, len, now))
    }

    /// Bytes for which the receive window has room.
    fn room(&self) -> u32 {
        if self.next.before(self.offers.edge) {
            self.offers.edge.since(self.next)
        } else {
            0
        }
    }

    /// The next new data that the receive window allows: payload bytes, and whether the FIN goes with them.
    fn next_new(&self, fill: Fill) -> Option<(u32, bool)> {
        let room = self.room();
        let len = self.unsent.min(u64::from(self.offers.full.min(room))) as u32;
        let fin = match self.fin {
            Fin::Open | Fin::Sent => false,
            Fin::Closing => self.unsent == 0,
            Fin::Wanted => u64::from(len) == self.unsent,
        } && len < room;
        let silly = len < self.offers.full && u64::from(len) < self.unsent;
        ((len > 0 || fin) && (fill == Fill::Partial || !silly)).then_some((len, fin))
    }

    /// As [`Sender::send_new`], where it is not called for nearly every burst.
    #[inline(never)]
    fn send_next(&mut self, segment: &mut Segment, now: Time, fill: Fill) -> Option<Sending> {
        self.send_new(segment, now, fill)
    }

    /// Sends the next segment of new data, or the FIN, if there is one and the receive window has room.
    #[inline(always)]
    fn send_new(&mut self, segment: &mut Segment, now: Time, fill: Fill) -> Option<Sending> {
        let (len, fin) = self.next_new(fill)?;
        if self.unsent != UNLIMITED {
            self.unsent -= u64::from(len);
        }
        if fin {
            self.fin = Fin::Sent;
            self.due.take(Due::LAST);
        }
        let is_first = self.scoreboard.is_empty();
        if is_first {
            self.restart(now);
        }
        self.use_buffer();
        let seq = self.next;
        let space = len + u32::from(fin);
        self.next += space;
        self.sent += u64::from(len);
        if is_first || self.alarm.is_none() || self.runs(Alarm::Probe) || self.may_probe() {
            self.arm = timers::Arm::NewData;
        }
        let stamp = self.stamp(now);
        self.scoreboard.push(seq, space, now, stamp);
        let burst = self.gso.then_some(self.burst + 1);
        self.after_sending(len, burst, now);
        let pushed = len > 0 && (self.unsent == 0 || self.ends_write());
        if pushed {
            self.scoreboard.push_ends();
        }
        let mut flags = Flags::default()
            .with_if(Flags::FIN, fin)
            .with_if(Flags::PSH, pushed);
        // RFC 3168 §6.1.2: CWR goes with the first new data after a reduction.
        if len > 0 && std::mem::take(&mut self.confirm_reduction) {
            flags = flags.with(Flags::CWR);
        }
        segment.seq = seq;
        segment.len = len as u16;
        segment.flags = flags;
        Some(Sending::New)
    }

    /// True if the last segment sent is the last of a write of the application.
    #[inline(always)]
    fn ends_write(&self) -> bool {
        self.buffer == 0 && self.burst == 0 && self.gso && self.buffers.ends_write()
    }

    /// PSH that ended a write is sent again, unlike that of a burst (Linux 6.1 and 6.12: TCP_SKB_CB's flags are kept,
    /// those of the copy that leaves are not).
    fn resend(&mut self, segment: &mut Segment, seq: Seq, space: u32, now: Time) -> Sending {
        self.retransmits += 1;
        self.after_sending(space, Some(1), now);
        let fin = self.fin == Fin::Sent && seq + space == self.next;
        segment.seq = seq;
        segment.len = (space - u32::from(fin)) as u16;
        segment.flags = Flags::default()
            .with_if(Flags::FIN, fin)
            .with_if(Flags::PSH, self.scoreboard.resent_pushed());
        Sending::Retransmission
    }

    fn after_sending(&mut self, payload: u32, burst: Option<u32>, now: Time) {
        self.pacer.on_send(payload, self.mss, burst, now);
        self.last_sent = now;
        self.sent_since_judged += 1;
        self.reduction.sent += u32::from(self.state.reduces());
    }

    /// Ends a round of sending: sets the alarm and judges whether the window was used. `is_full`: it has no room.
    #[inline(always)]
    fn settle(&mut self, is_full: bool, now: Time) {
        self.set_alarm(now);
        if self.capabilities.samples {
            self.judge_application();
        }
        let defers = std::mem::take(&mut self.defers);
        self.has_deferred = defers;
        if std::mem::take(&mut self.sent_since_judged) > 0 || defers {
            self.judge_usage(is_full || defers, now);
        }
    }

    /// Congestion window validation (RFC 7661, as Linux's tcp_cwnd_validate): judges whether the window limits the
    /// sender (`limiting`). A window with room limits it too if data is deferred to fill a burst.
    #[inline(always)]
    fn judge_usage(&mut self, limiting: bool, now: Time) {
        let outstanding = self.scoreboard.outstanding();
        let round_over = !self.una.before(self.usage_point);
        if round_over
            || limiting
            || (!self.window.limiting && outstanding > self.window.peak_in_flight)
        {
            self.window.limiting = limiting;
            self.window.peak_in_flight = outstanding;
            self.usage_point = self.next;
        }
        if self.window.is_used() {
            self.peak_unfilled = 0;
            self.filled_at = now;
        } else {
            self.peak_unfilled = self.peak_unfilled.max(outstanding);
            self.shrink_unused(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::cc::Signal;

    /// A control that notes whether it is told of something before data.
    struct Listening {
        paces: bool,
        told: Arc<AtomicBool>,
    }

    impl CongestionControl for Listening {
        fn name(&self) -> &'static str {
            "listening"
        }
        fn capabilities(&self) -> Capabilities {
            Capabilities {
                paces: self.paces,
                ..Capabilities::default()
            }
        }
        fn on_delivery(&mut self, ack: &AckEvent, _: &mut Window) {
            assert_eq!((ack.delivered, ack.rtt), (0, Some(RTT)));
            self.told.store(true, Ordering::Relaxed);
        }
        fn on_ack(&mut self, _: &AckEvent, _: &mut Window) {}
        fn on_congestion(&mut self, _: Signal, _: &Window) -> u32 {
            2
        }
    }

    const RTT: Duration = Duration::from_millis(80);

    /// As in Linux: a control that paces, such as BBR, begins with the handshake's RTT (bbr_init). Others are not told.
    #[test]
    fn the_round_trip_of_a_handshake_is_told_to_a_control_that_paces() {
        let is_told = |paces| {
            let told = Arc::new(AtomicBool::new(false));
            let control = Box::new(Listening {
                paces,
                told: Arc::clone(&told),
            });
            let config = Config::default();
            let mut sender = Sender::new(&config, control, Seq(0), true, Feedback::None);
            sender.on_handshake(Some(RTT), 1 << 20, Time::ZERO + RTT);
            told.load(Ordering::Relaxed)
        };
        assert!(is_told(true) && !is_told(false));
    }
}
