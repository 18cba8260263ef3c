//! BBR version 3 (draft-ietf-ccwg-bbr-01): version 1's model, bounded by losses. The long-term bound limits the data
//! in flight (inflight_longterm); the short-term bounds limit the data in flight and the bandwidth.
//!
//! PROBE_BW has four phases: DOWN drains the queue, CRUISE leaves headroom, REFILL fills the pipe for a round, UP
//! probes until losses exceed 2 % or the bandwidth stands still. Departures: in recovery only the bounds govern the
//! window, as in the authors' kernel, which has no packet conservation; the ECN response is not implemented; random
//! waits derive from the sequence number.

use sojourn_units::{Duration, Rate, Time};

use super::aggregation::Aggregation;
use super::{
    Bandwidth, INITIAL_WINDOW, MIN_WINDOW, Rounds, UNIT, as_bps, as_number, bandwidth, burst, draw,
    pacing_rate, product, with_quantum,
};
use crate::cc::windowed::WindowedMax;
use crate::cc::{
    AckEvent, Capabilities, CongestionControl, LostSegment, RecoveryPhase, Sample, Signal, Window,
};
use crate::seq::Seq;

/// BBRStartupPacingGain: 4 ln 2 = 2.77 (§5.3.1).
const STARTUP_PACING_GAIN: u64 = UNIT * 277 / 100;
/// BBRDrainPacingGain (§5.3.2): drains the queue of start-up in about two rounds.
const DRAIN_PACING_GAIN: u64 = UNIT / 2;
/// BBRDefaultCwndGain, and the larger one while probing up (§5.6.1).
const CWND_GAIN: u64 = UNIT * 2;
const UP_CWND_GAIN: u64 = UNIT * 9 / 4;
/// PROBE_RTT's window: half the product (§5.3.4).
const PROBE_RTT_CWND_GAIN: u64 = UNIT / 2;
/// BBRLossThresh: 2 % (§2.7), and the loss episodes in a round that end start-up (BBRStartupFullLossCnt).
const LOSS_PERCENT: u64 = 2;
const STARTUP_LOSS_EVENTS: u32 = 6;
/// BBRBeta: the share of a bound kept after a loss, in 256ths: 0.7.
const BETA: u64 = UNIT * 7 / 10;
/// BBRHeadroom: the share left for others, in 256ths: 0.15.
const HEADROOM: u64 = UNIT * 15 / 100;
/// MaxBwFilterLen: probing cycles over which the bandwidth is a maximum.
const BANDWIDTH_CYCLES: u64 = 2;
/// MinRTTFilterLen, ProbeRTTInterval, ProbeRTTDuration (§2.13).
const MIN_RTT_SPAN: Duration = Duration::from_secs(10);
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_SPAN: Duration = Duration::from_millis(200);
/// The bandwidth stands still: less than a quarter more for three rounds (§5.3.1.2).
const FULL_GROWTH: u64 = UNIT * 5 / 4;
const FULL_ROUNDS: u32 = 3;
/// DRAIN ends when more rounds than these have begun, whatever is in flight (§5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// Between probes for bandwidth: two to three seconds, at most this many rounds (§5.3.3.7).
const PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_WAIT_ROUNDS: u64 = 63;

/// No bound.
const UNBOUNDED: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    /// Once the window has come down: when the state ends, and whether a round has passed.
    ProbeRtt(Option<(Time, bool)>),
}

impl Mode {
    const fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// The phase of PROBE_BW that the arriving acknowledgements report on (BBR.ack_phase).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Feedback {
    /// On no probe.
    None,
    /// On the first round of a probe.
    Starting,
    /// On the probe.
    Probe,
    /// On the last round of a probe.
    Stopping,
}

/// A search for a bandwidth that stands still (§5.3.1.2, BBRCheckFullBWReached).
#[derive(Debug, Default)]
struct Plateau {
    bandwidth: Bandwidth,
    rounds: u32,
    reached: bool,
}

/// What a needless recovery may have changed (§5.5.11.1, SaveStateUponLoss).
#[derive(Clone, Copy, Debug)]
struct Saved {
    /// The state that losses of this recovery ended: STARTUP or UP.
    mode: Option<Mode>,
    bandwidth_short: Bandwidth,
    in_flight_short: u32,
    in_flight_long: u32,
}

/// BBR3's state.
pub struct Bbr3 {
    mode: Mode,
    rounds: Rounds,
    /// Rounds by which losses are counted.
    loss_rounds: Rounds,
    max_bandwidth: WindowedMax,
    cycles: u64,
    /// bw_shortterm, inflight_shortterm, inflight_longterm.
    bandwidth_short: Bandwidth,
    in_flight_short: u32,
    in_flight_long: u32,
    /// bw_latest, inflight_latest: the best of the round.
    bandwidth_latest: Bandwidth,
    in_flight_latest: u32,
    loss_in_round: bool,
    loss_events: u32,
    plateau: Plateau,
    full: bool,
    /// The round in which DRAIN began.
    drain_start: u64,
    saved: Option<Saved>,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    probe_rtt_min: Option<Duration>,
    probe_rtt_min_at: Time,
    feedback: Feedback,
    /// Losses reported now were caused by the probe (bw_probe_samples).
    probing: bool,
    phase_start: Time,
    probe_wait: Duration,
    rounds_since_probe: u64,
    up_rounds: u32,
    up_acked: u32,
    up_acks_per_segment: u32,
    aggregation: Aggregation,
    mss: u32,
    rate: Option<Rate>,
    /// The rate has been computed from an RTT: the handshake's, if it gave one.
    rate_from_rtt: bool,
    phase: RecoveryPhase,
    prior_cwnd: u32,
    restarting: bool,
    /// Segments delivered since the connection began.
    delivered: u64,
}

impl Bbr3 {
    /// A BBR3 in start-up.
    pub const fn new(mss: u32) -> Self {
        Self {
            mode: Mode::Startup,
            rounds: Rounds::new(),
            loss_rounds: Rounds::new(),
            max_bandwidth: WindowedMax::new(BANDWIDTH_CYCLES - 1),
            cycles: 0,
            bandwidth_short: Bandwidth::MAX,
            in_flight_short: UNBOUNDED,
            in_flight_long: UNBOUNDED,
            bandwidth_latest: 0,
            in_flight_latest: 0,
            loss_in_round: false,
            loss_events: 0,
            plateau: Plateau {
                bandwidth: 0,
                rounds: 0,
                reached: false,
            },
            full: false,
            drain_start: 0,
            saved: None,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            probe_rtt_min: None,
            probe_rtt_min_at: Time::ZERO,
            feedback: Feedback::None,
            probing: false,
            phase_start: Time::ZERO,
            probe_wait: PROBE_WAIT,
            rounds_since_probe: 0,
            up_rounds: 0,
            up_acked: 0,
            up_acks_per_segment: UNBOUNDED,
            aggregation: Aggregation::new(),
            mss,
            rate: None,
            rate_from_rtt: false,
            phase: RecoveryPhase::None,
            prior_cwnd: 0,
            restarting: false,
            delivered: 0,
        }
    }

    fn estimate(&self) -> Bandwidth {
        self.max_bandwidth.get().min(self.bandwidth_short)
    }

    const fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => STARTUP_PACING_GAIN,
            Mode::Drain => DRAIN_PACING_GAIN,
            Mode::Down => UNIT * 9 / 10,
            Mode::Cruise | Mode::Refill | Mode::ProbeRtt(_) => UNIT,
            Mode::Up => UNIT * 5 / 4,
        }
    }

    const fn cwnd_gain(&self) -> u64 {
        match self.mode {
            Mode::Up => UP_CWND_GAIN,
            Mode::ProbeRtt(_) => PROBE_RTT_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }

    /// `gain` times the product, plus an allowance for bursts (BBRInflight).
    fn in_flight_at(&self, bandwidth: Bandwidth, gain: u64) -> u32 {
        self.with_quantum(product(bandwidth, self.min_rtt, gain))
    }

    fn with_quantum(&self, window: u32) -> u32 {
        with_quantum(window, burst(self.rate, self.mss), self.mode == Mode::Up)
    }

    /// BBRInflightWithHeadroom (§5.3.3.2).
    fn with_headroom(&self) -> u32 {
        if self.in_flight_long == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = (u64::from(self.in_flight_long) * HEADROOM / UNIT).max(1) as u32;
        self.in_flight_long.saturating_sub(headroom).max(MIN_WINDOW)
    }

    fn target_in_flight(&self, cwnd: u32) -> u32 {
        self.in_flight_at(self.estimate(), UNIT).min(cwnd)
    }

    // ---- Signals from acknowledgements (§5.5) ----------------------------------------------------------

    fn update_model(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        self.rounds.on_sample(sample);
        self.loss_rounds.on_sample(sample);
        if self.rounds.started {
            self.rounds_since_probe += 1;
        }
        self.take_rate(ack, sample, window);
        self.take_losses(sample, window);
        self.check_full(sample);
        self.check_startup_losses(sample);
        self.leave_startup_and_drain(ack, sample);
        self.update_cycle(ack, sample, window);
        self.update_min_rtt(ack, sample, window);
        if let (true, Some(rate)) = (self.loss_rounds.started, sample.rate) {
            self.bandwidth_latest = bandwidth(rate.delivered, rate.interval);
            self.in_flight_latest = rate.delivered as u32;
            self.loss_events = 0;
        }
    }

    /// BBRUpdateLatestDeliverySignals, BBRUpdateMaxBw, BBRUpdateACKAggregation.
    fn take_rate(&mut self, ack: &AckEvent, sample: &Sample, window: &Window) {
        let Some(rate) = sample.rate else { return };
        let measured = bandwidth(rate.delivered, rate.interval);
        self.bandwidth_latest = self.bandwidth_latest.max(measured);
        self.in_flight_latest = self.in_flight_latest.max(rate.delivered as u32);
        if !rate.app_limited || measured >= self.max_bandwidth.get() {
            self.max_bandwidth.update(measured, self.cycles);
        }
        let started = self.rounds.started;
        self.aggregation
            .update(self.estimate(), started, ack, window.cwnd);
    }

    /// BBRUpdateCongestionSignals, BBRAdaptLowerBoundsFromCongestion (§5.5.10.3): once per round with losses,
    /// multiplies the short-term bounds by beta, but not below the delivered data. Not while probing for bandwidth.
    fn take_losses(&mut self, sample: &Sample, window: &Window) {
        self.loss_events += u32::from(sample.lost > 0);
        if !self.loss_rounds.started {
            return;
        }
        let probing = matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up);
        if std::mem::take(&mut self.loss_in_round) && !probing {
            if self.bandwidth_short == Bandwidth::MAX {
                self.bandwidth_short = self.max_bandwidth.get();
            }
            if self.in_flight_short == UNBOUNDED {
                self.in_flight_short = window.cwnd;
            }
            self.bandwidth_short = self
                .bandwidth_latest
                .max(self.bandwidth_short / UNIT * BETA);
            let kept = u64::from(self.in_flight_short) * BETA / UNIT;
            self.in_flight_short = self.in_flight_latest.max(kept as u32);
        }
    }

    const fn forget_short_term(&mut self) {
        self.bandwidth_short = Bandwidth::MAX;
        self.in_flight_short = UNBOUNDED;
    }

    fn check_full(&mut self, sample: &Sample) {
        let Some(rate) = sample.rate else { return };
        if self.plateau.reached || rate.app_limited {
            return;
        }
        let measured = bandwidth(rate.delivered, rate.interval);
        if measured * UNIT >= self.plateau.bandwidth * FULL_GROWTH {
            self.plateau = Plateau {
                bandwidth: measured,
                ..Plateau::default()
            };
        } else if self.rounds.started {
            self.plateau.rounds += 1;
            self.plateau.reached = self.plateau.rounds >= FULL_ROUNDS;
            self.full |= self.plateau.reached;
        }
    }

    /// §5.3.1.3: ends start-up when, for a round in recovery, losses exceed 2 % in several episodes.
    fn check_startup_losses(&mut self, sample: &Sample) {
        if self.full || sample.phase != RecoveryPhase::Recovery || !self.loss_rounds.started {
            return;
        }
        if self.loss_events >= STARTUP_LOSS_EVENTS
            && sample
                .rate
                .is_some_and(|rate| is_too_much(rate.lost, rate.in_flight_at_send))
        {
            // Both flags, as the test case "Exiting STARTUP on Loss When Application-Limited" has it.
            self.full = true;
            self.plateau.reached = true;
            self.note_ended(Mode::Startup);
            let product = self.in_flight_at(self.max_bandwidth.get(), UNIT);
            self.in_flight_long = product.max(self.in_flight_latest);
        }
    }

    fn leave_startup_and_drain(&mut self, ack: &AckEvent, sample: &Sample) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            self.drain_start = self.rounds.count;
        }
        let pipe = self.in_flight_at(self.max_bandwidth.get(), UNIT);
        if self.mode == Mode::Drain
            && (sample.in_flight <= pipe || self.rounds.count > self.drain_start + DRAIN_ROUNDS)
        {
            self.go_down(ack.una, ack.now);
        }
    }

    /// Notes that losses end this state, to return to it if they were none (BBR.undo_state).
    const fn note_ended(&mut self, mode: Mode) {
        if let Some(saved) = &mut self.saved {
            saved.mode = Some(mode);
        }
    }

    // ---- PROBE_BW (§5.3.3) -----------------------------------------------------------------------------

    fn go_down(&mut self, una: Seq, now: Time) {
        self.mode = Mode::Down;
        self.loss_in_round = false;
        self.bandwidth_latest = 0;
        self.in_flight_latest = 0;
        self.up_acks_per_segment = UNBOUNDED;
        let chance = draw(una, now, 1_000_000_000);
        self.rounds_since_probe = chance & 1;
        self.probe_wait = PROBE_WAIT + Duration::from_nanos(chance);
        self.feedback = Feedback::Stopping;
        self.phase_start = now;
        self.rounds.begin(self.delivered);
    }

    /// Begins REFILL; the caller begins its round.
    const fn refill(&mut self) {
        self.forget_short_term();
        self.up_rounds = 0;
        self.up_acked = 0;
        self.feedback = Feedback::None;
        self.mode = Mode::Refill;
    }

    fn go_up(&mut self, ack: &AckEvent, window: &Window) {
        self.mode = Mode::Up;
        self.feedback = Feedback::Starting;
        self.phase_start = ack.now;
        self.rounds.begin(self.delivered);
        self.plateau = Plateau {
            bandwidth: self.bandwidth_latest,
            ..Plateau::default()
        };
        self.steepen(window);
    }

    /// BBRUpdateProbeBWCyclePhase.
    fn update_cycle(&mut self, ack: &AckEvent, sample: &Sample, window: &Window) {
        if !self.full {
            return;
        }
        self.adapt_long_term(ack, sample, window);
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(ack, window) => {
                self.refill();
                self.rounds.begin(self.delivered);
            }
            Mode::Down => {
                let pipe = self.in_flight_at(self.max_bandwidth.get(), UNIT);
                if sample.in_flight <= self.with_headroom().min(pipe) {
                    self.mode = Mode::Cruise;
                }
            }
            Mode::Refill if self.rounds.started => {
                self.probing = true;
                self.go_up(ack, window);
            }
            Mode::Up => {
                if window.limiting && window.cwnd >= self.in_flight_long {
                    // The bound limits the bandwidth, so the sample does not indicate a plateau.
                    self.plateau = Plateau {
                        bandwidth: self.bandwidth_latest,
                        ..Plateau::default()
                    };
                } else if self.plateau.reached {
                    self.go_down(ack.una, ack.now);
                }
            }
            _ => {}
        }
    }

    /// §5.3.3.7: true after two to three seconds, or after the number of rounds in which Reno would regain the window.
    fn is_time_to_probe(&self, ack: &AckEvent, window: &Window) -> bool {
        let reno_rounds = u64::from(self.target_in_flight(window.cwnd)).min(PROBE_WAIT_ROUNDS);
        ack.now.saturating_since(self.phase_start) > self.probe_wait
            || self.rounds_since_probe >= reno_rounds
    }

    /// BBRAdaptLongTermModel (§5.5.10.2): without too many losses the bound rises.
    fn adapt_long_term(&mut self, ack: &AckEvent, sample: &Sample, window: &Window) {
        if self.rounds.started {
            match self.feedback {
                Feedback::Starting => self.feedback = Feedback::Probe,
                Feedback::Stopping => {
                    self.feedback = Feedback::None;
                    self.probing = false;
                    if self.mode.probes_bandwidth() {
                        self.cycles += 1;
                    }
                }
                Feedback::None | Feedback::Probe => {}
            }
        }
        let Some(rate) = sample.rate else { return };
        if is_too_much(rate.lost, rate.in_flight_at_send) {
            return;
        }
        if self.in_flight_long != UNBOUNDED {
            self.in_flight_long = self.in_flight_long.max(rate.in_flight_at_send);
            if self.mode == Mode::Up {
                self.raise_bound(ack, window);
            }
        }
    }

    /// BBRProbeInflightLongtermUpward: raises the bound by one in the first round of a probe, two in the second, and
    /// so on, doubling.
    fn raise_bound(&mut self, ack: &AckEvent, window: &Window) {
        if !window.limiting || window.cwnd < self.in_flight_long {
            return;
        }
        self.up_acked += ack.delivered;
        let growth = self.up_acked / self.up_acks_per_segment;
        self.up_acked -= growth * self.up_acks_per_segment;
        self.in_flight_long = self.in_flight_long.saturating_add(growth);
        if self.rounds.started {
            self.steepen(window);
        }
    }

    fn steepen(&mut self, window: &Window) {
        self.up_acks_per_segment = (window.cwnd >> self.up_rounds).max(1);
        self.up_rounds = (self.up_rounds + 1).min(30);
    }

    // ---- PROBE_RTT (§5.3.4) ----------------------------------------------------------------------------

    fn update_min_rtt(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        let due = ack.now.saturating_since(self.probe_rtt_min_at) > PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.rtt {
            if due || self.probe_rtt_min.is_none_or(|least| rtt < least) {
                self.probe_rtt_min = Some(rtt);
                self.probe_rtt_min_at = ack.now;
            }
        }
        let expired = ack.now.saturating_since(self.min_rtt_at) > MIN_RTT_SPAN;
        if self.min_rtt.is_none() || self.probe_rtt_min < self.min_rtt || expired {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_at = self.probe_rtt_min_at;
        }
        if due && !self.restarting && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.save_window(window);
            self.mode = Mode::ProbeRtt(None);
            self.feedback = Feedback::Stopping;
            self.rounds.begin(self.delivered);
        }
        match self.mode {
            Mode::ProbeRtt(None) if sample.in_flight <= self.probe_rtt_window() => {
                self.mode = Mode::ProbeRtt(Some((ack.now + PROBE_RTT_SPAN, false)));
                self.rounds.begin(self.delivered);
            }
            Mode::ProbeRtt(Some((end, round))) => {
                let round = round || self.rounds.started;
                self.mode = Mode::ProbeRtt(Some((end, round)));
                if round && ack.now > end {
                    self.leave_probe_rtt(ack, window);
                }
            }
            _ => {}
        }
        self.restarting &= sample.rate.is_none();
    }

    fn leave_probe_rtt(&mut self, ack: &AckEvent, window: &mut Window) {
        self.probe_rtt_min_at = ack.now;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        self.forget_short_term();
        if self.full {
            self.go_down(ack.una, ack.now);
            self.mode = Mode::Cruise;
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn probe_rtt_window(&self) -> u32 {
        product(self.estimate(), self.min_rtt, PROBE_RTT_CWND_GAIN).max(MIN_WINDOW)
    }

    // ---- Rate and window (§5.6) ------------------------------------------------------------------------

    fn update_rate(&mut self, sample: &Sample, cwnd: u32) {
        if let (false, Some(rtt)) = (self.rate_from_rtt, sample.smoothed_rtt) {
            self.start_rate(rtt, cwnd);
        }
        let rate = pacing_rate(self.estimate(), self.pacing_gain(), sample.mss);
        if self.full || rate > self.rate {
            self.rate = rate.or(self.rate);
        }
    }

    /// The first rate: the window in an RTT, times the gain of start-up (BBRInitPacingRate).
    fn start_rate(&mut self, rtt: Duration, cwnd: u32) {
        self.rate_from_rtt = true;
        self.rate = pacing_rate(bandwidth(cwnd.into(), rtt), STARTUP_PACING_GAIN, self.mss);
    }

    fn update_window(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        let before = std::mem::replace(&mut self.phase, sample.phase);
        if sample.phase == RecoveryPhase::None && before == RecoveryPhase::Timeout {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        let mut target = product(self.estimate(), self.min_rtt, self.cwnd_gain());
        if self.full {
            target += self.aggregation.window(self.estimate());
        }
        target = self.with_quantum(target);
        if self.full {
            window.cwnd = (window.cwnd + ack.delivered).min(target);
        } else if window.cwnd < target || sample.total_delivered < 2 * u64::from(INITIAL_WINDOW) {
            window.cwnd += ack.delivered;
        }
        window.cwnd = window.cwnd.max(MIN_WINDOW).min(self.bound());
    }

    /// BBRBoundCwndForModel and BBRBoundCwndForProbeRTT.
    fn bound(&self) -> u32 {
        let long_term = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.in_flight_long,
            Mode::Cruise => self.with_headroom(),
            Mode::ProbeRtt(_) => self.with_headroom().min(self.probe_rtt_window()),
            Mode::Startup | Mode::Drain => UNBOUNDED,
        };
        long_term.min(self.in_flight_short).max(MIN_WINDOW)
    }

    fn save_window(&mut self, window: &Window) {
        let calm = self.phase == RecoveryPhase::None && !matches!(self.mode, Mode::ProbeRtt(_));
        self.prior_cwnd = if calm {
            window.cwnd
        } else {
            self.prior_cwnd.max(window.cwnd)
        };
    }
}

/// BBRIsInflightTooHigh: of the data in flight when a segment was sent, more than 2 % has been lost since.
fn is_too_much(lost: u32, in_flight_at_send: u32) -> bool {
    u64::from(lost) * 100 > u64::from(in_flight_at_send) * LOSS_PERCENT
}

impl CongestionControl for Bbr3 {
    fn name(&self) -> &'static str {
        "bbr3"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            losses: true,
            ..Capabilities::RATE_BASED
        }
    }

    /// NoteLoss, HandleLostPacket, HandleInflightTooHigh (§5.5.10.2). The round after which losses bound the short term begins
    /// with the first of them. Too many losses of a probe bound the data in flight, once, and end the probe. What was in flight
    /// when losses crossed the threshold (InflightAtLoss) is all but this segment: the part of it that still fits is less than
    /// a segment.
    fn on_lost(&mut self, lost: &LostSegment, window: &Window) {
        self.delivered = lost.delivered;
        if !std::mem::replace(&mut self.loss_in_round, true) {
            self.loss_rounds.begin(lost.delivered);
        }
        if !self.probing || !is_too_much(lost.lost, lost.in_flight_at_send) {
            return;
        }
        self.probing = false;
        if !lost.app_limited {
            let kept = u64::from(self.target_in_flight(window.cwnd)) * BETA / UNIT;
            self.in_flight_long = (lost.in_flight_at_send - 1).max(kept as u32);
        }
        if self.mode == Mode::Up {
            self.note_ended(Mode::Up);
            self.go_down(lost.una, lost.now);
        }
    }

    /// Takes the handshake's RTT, measured before the connection filled the path.
    fn on_delivery(&mut self, ack: &AckEvent, window: &mut Window) {
        // A recovery that proves needless begins a round before the sample comes.
        self.delivered += u64::from(ack.delivered);
        if let (false, Some(rtt)) = (self.rate_from_rtt, ack.rtt) {
            self.start_rate(rtt, window.cwnd);
            (self.min_rtt, self.min_rtt_at) = (ack.rtt, ack.now);
            (self.probe_rtt_min, self.probe_rtt_min_at) = (ack.rtt, ack.now);
        }
    }

    fn on_sample(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        self.mss = sample.mss;
        self.delivered = sample.total_delivered;
        self.update_model(ack, sample, window);
        self.update_rate(sample, window.cwnd);
        self.update_window(ack, sample, window);
    }

    /// §5.3.4.3 (HandleProbeRTT): the low rates of PROBE_RTT are ignored.
    fn limits_itself(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt(_))
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn on_ack(&mut self, _ack: &AckEvent, _window: &mut Window) {}

    fn on_congestion(&mut self, _signal: Signal, window: &Window) -> u32 {
        self.save_window(window);
        self.saved = Some(Saved {
            mode: None,
            bandwidth_short: self.bandwidth_short,
            in_flight_short: self.in_flight_short,
            in_flight_long: self.in_flight_long,
        });
        window.ssthresh
    }

    /// §5.6.4.4: bounds the data in flight after losses, and restarts the search for a plateau.
    fn on_timeout(&mut self, _now: Time, _next: Seq) {
        self.phase = RecoveryPhase::Timeout;
        self.plateau = Plateau::default();
        if !matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up) {
            self.in_flight_short = self.in_flight_short.min(self.prior_cwnd.max(MIN_WINDOW));
        }
    }

    /// §5.5.11.2 (HandleSpuriousLossDetection).
    fn on_undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        self.plateau = Plateau::default();
        self.loss_in_round = false;
        if let Some(saved) = self.saved.take() {
            self.bandwidth_short = self.bandwidth_short.max(saved.bandwidth_short);
            self.in_flight_short = self.in_flight_short.max(saved.in_flight_short);
            self.in_flight_long = self.in_flight_long.max(saved.in_flight_long);
            let probes_rtt = matches!(self.mode, Mode::ProbeRtt(_));
            match saved.mode {
                Some(Mode::Startup) => {
                    self.full = false;
                    if !probes_rtt {
                        self.mode = Mode::Startup;
                    }
                }
                Some(Mode::Up) if self.mode != Mode::Up && !probes_rtt => {
                    self.refill();
                    self.rounds.begin(self.delivered);
                }
                _ => {}
            }
        }
        window.cwnd.max(prior_cwnd)
    }

    fn phase(&self, _window: &Window) -> &'static str {
        match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::Down => "probe_bw_down",
            Mode::Cruise => "probe_bw_cruise",
            Mode::Refill => "probe_bw_refill",
            Mode::Up => "probe_bw_up",
            Mode::ProbeRtt(_) => "probe_rtt",
        }
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("max_bw", as_bps(self.max_bandwidth.get(), self.mss));
        report("bw", as_bps(self.estimate(), self.mss));
        report("pacing_gain", as_number(self.pacing_gain()));
        report("cwnd_gain", as_number(self.cwnd_gain()));
        let pipe = self.in_flight_at(self.max_bandwidth.get(), UNIT);
        report("inflight_bdp", pipe.into());
        let extra = self.aggregation.window(self.estimate());
        report("extra_acked", extra.into());
        report("full_bw_count", self.plateau.rounds.into());
        report("full_bw_now", f64::from(self.plateau.reached));
        report("full_bw_reached", f64::from(self.full));
        report("round_count", self.rounds.count as f64);
        // A bound is infinite while there is none.
        let bound = |of| {
            if of == UNBOUNDED {
                f64::INFINITY
            } else {
                f64::from(of)
            }
        };
        report("inflight_longterm", bound(self.in_flight_long));
        report("inflight_headroom", bound(self.with_headroom()));
        report("inflight_shortterm", bound(self.in_flight_short));
        let bounded = self.bandwidth_short != Bandwidth::MAX;
        let short = as_bps(self.bandwidth_short, self.mss);
        report("bw_shortterm", if bounded { short } else { f64::INFINITY });
        report("bw_probe_wait", self.probe_wait.as_secs_f64() * 1e3);
        report("idle_restart", f64::from(self.restarting));
    }

    fn on_restart(&mut self, _idle: Duration, now: Time) {
        self.restarting = true;
        self.aggregation.restart(now);
    }
}

#[cfg(test)]
mod tests;
