//! The sending half: decides from acknowledgements what to send and when.
//!
//! | file | what is there |
//! | --- | --- |
//! | `mod.rs` | state, what the application and the connection do with it |
//! | `transmission.rs` | which segment leaves next |
//! | `acknowledgements.rs` | processing of an acknowledgement |
//! | `recovery.rs` | loss recovery and ECN response: states, proportional rate reduction, undo |
//! | `delivery.rs` | delivery-rate samples |
//! | `pacing.rs` | when a paced segment may leave |
//! | `buffers.rs` | the send buffers that the application fills |
//! | `gso.rs` | how many segments leave in one burst |
//! | `deferral.rs` | how long data goes on waiting to fill a burst |
//! | `offers.rs` | the windows that the peer has offered |
//! | `due.rs` | what may be sent regardless of the congestion window |
//! | `alarm.rs` | what the running timer is for, and how it is set |
//! | `timers.rs` | retransmission timeout, tail loss probe, reordering timer, idle restart |

mod acknowledgements;
mod alarm;
mod buffers;
mod deferral;
mod delivery;
mod due;
mod gso;
mod offers;
mod pacing;
mod recovery;
mod timers;
mod transmission;

use sojourn_units::{Duration, Rate, Time, prefetch};

use self::alarm::Arm;
use self::buffers::Buffers;
use self::deferral::Deferral;
use self::due::Due;
pub(crate) use self::offers::{Acknowledged, Offers};
use self::pacing::Pacer;
use self::recovery::{Reduction, State, Undo};
pub use self::transmission::{Alike, Sending};
use crate::cc::{AckEvent, Capabilities, CongestionControl, Window};
use crate::config::{Clock, Config, Kernel, Recovery};
use crate::ecn::{self, Feedback};
use crate::rtt::RttEstimator;
use crate::scoreboard::{Lost, Scoreboard};
use crate::segment::Flags;
use crate::seq::Seq;

/// Data without end, for [`Sender::write`].
pub const UNLIMITED: u64 = u64::MAX;

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
    arm: Arm,
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
            arm: Arm::Leave,
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
        self.scoreboard.is_empty() && self.unsent == 0 && !self.owes_fin() && self.arm == Arm::Leave
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
