//! BBR version 1 (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14:5, 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00), with Linux 6.1's additions to the draft: a long-term bandwidth
//! under policers (`policer.rs`) and a window for aggregated acknowledgements (`aggregation.rs`).
//!
//! The path model is the largest delivery rate of ten round trips (BtlBw) and the smallest RTT of ten seconds
//! (RTprop). It sets the pacing rate, and the window at twice their product. Departures: the maximum is exact where
//! Linux keeps three candidates; the sequence number selects the random phase in which PROBE_BW begins.

use sojourn_units::{Duration, Rate, Time};

use super::aggregation::Aggregation;
use super::policer::Policer;
use super::{
    Bandwidth, INITIAL_WINDOW, MIN_WINDOW, Rounds, UNIT, as_bps, as_number, bandwidth, burst, draw,
    in_path_when_released, pacing_rate, product, with_quantum,
};
use crate::cc::windowed::WindowedMax;
use crate::cc::{
    AckEvent, Capabilities, CongestionControl, RateSample, RecoveryPhase, Sample, Signal, Window,
};
use crate::seq::Seq;

/// 2/ln 2 = 2.885: doubles the rate each round (draft §4.2.2, BBRHighGain).
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Drains in one round the queue that start-up built.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Twice the bandwidth-delay product, for delayed and aggregated acknowledgements (draft §4.2.3.2).
const CWND_GAIN: u64 = UNIT * 2;
/// PROBE_BW's cycle (draft §4.3.4.2).
const CYCLE: [u64; 8] = [
    UNIT * 5 / 4,
    UNIT * 3 / 4,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
    UNIT,
];
/// Rounds over which the bandwidth is a maximum (BtlBwFilterLen).
const BANDWIDTH_ROUNDS: u64 = 10;
/// How long a minimum RTT is kept (RTpropFilterLen), and how long a probe for it lasts (ProbeRTTDuration).
const MIN_RTT_SPAN: Duration = Duration::from_secs(10);
const PROBE_RTT_SPAN: Duration = Duration::from_millis(200);
/// Start-up ends when the bandwidth has not grown by a quarter for three rounds (draft §4.3.2.2).
const FULL_GROWTH: u64 = UNIT * 5 / 4;
const FULL_ROUNDS: u32 = 3;
/// RTT assumed before there is one.
const UNKNOWN_RTT: Duration = Duration::from_millis(1);
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Doubles the rate each round until the pipe is full.
    Startup,
    /// Drains the queue that start-up built.
    Drain,
    /// Cycles around the estimate; the phase.
    ProbeBandwidth(usize),
    /// Empties the path to measure its RTT. Once the window has come down: when the state ends, and whether a round
    /// has passed.
    ProbeRtt(Option<(Time, bool)>),
}

/// BBR's state.
pub struct Bbr {
    mode: Mode,
    bandwidth: WindowedMax,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    rounds: Rounds,
    cycle_start: Time,
    full_bandwidth: Bandwidth,
    full_rounds: u32,
    full: bool,
    mss: u32,
    rate: Option<Rate>,
    /// The rate has been computed from an RTT: the handshake's, if it gave one.
    rate_from_rtt: bool,
    /// The window to restore after recovery or PROBE_RTT.
    prior_cwnd: u32,
    phase: RecoveryPhase,
    conserving: bool,
    restarting: bool,
    aggregation: Aggregation,
    policer: Policer,
}

impl Bbr {
    /// A BBR in start-up; `mss`: bytes per full segment.
    pub const fn new(mss: u32) -> Self {
        Self {
            mode: Mode::Startup,
            bandwidth: WindowedMax::new(BANDWIDTH_ROUNDS),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            rounds: Rounds::new(),
            cycle_start: Time::ZERO,
            full_bandwidth: 0,
            full_rounds: 0,
            full: false,
            mss,
            rate: None,
            rate_from_rtt: false,
            prior_cwnd: 0,
            phase: RecoveryPhase::None,
            conserving: false,
            restarting: false,
            aggregation: Aggregation::new(),
            policer: Policer::new(),
        }
    }

    fn estimate(&self) -> Bandwidth {
        self.policer
            .bandwidth()
            .unwrap_or_else(|| self.bandwidth.get())
    }

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBandwidth(_) if self.policer.bandwidth().is_some() => UNIT,
            Mode::ProbeBandwidth(phase) => CYCLE[phase],
            Mode::ProbeRtt(_) => UNIT,
        }
    }

    const fn cwnd_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth(_) => CWND_GAIN,
            Mode::ProbeRtt(_) => UNIT,
        }
    }

    // ---- The model -------------------------------------------------------------------------------------

    fn update_model(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        self.update_bandwidth(ack, sample);
        let estimate = self.estimate();
        if sample.rate.is_some() {
            self.aggregation
                .update(estimate, self.rounds.started, ack, window.cwnd);
        }
        self.update_cycle(ack, sample);
        self.check_full(sample);
        self.check_drain(ack, sample, window);
        self.update_min_rtt(ack, sample, window);
    }

    /// draft §4.1.1.3 and §4.1.1.5 (BBRUpdateRound, BBRUpdateBtlBw).
    fn update_bandwidth(&mut self, ack: &AckEvent, sample: &Sample) {
        self.rounds.on_sample(sample);
        let Some(rate) = sample.rate else { return };
        if self.rounds.started {
            self.conserving = false;
        }
        self.police(&rate, ack, sample);
        let bandwidth = bandwidth(rate.delivered, rate.interval);
        if !rate.app_limited || bandwidth >= self.bandwidth.get() {
            self.bandwidth.update(bandwidth, self.rounds.count);
        }
    }

    fn police(&mut self, rate: &RateSample, ack: &AckEvent, sample: &Sample) {
        let round_start = self.rounds.started;
        let cycling = matches!(self.mode, Mode::ProbeBandwidth(_));
        if self
            .policer
            .on_sample(rate, round_start, cycling, ack.now, sample)
        {
            self.begin_cycle(ack); // the policed bandwidth has expired: probe again
        }
    }

    /// draft §4.3.4.3 (BBRCheckCyclePhase).
    fn update_cycle(&mut self, ack: &AckEvent, sample: &Sample) {
        let Mode::ProbeBandwidth(phase) = self.mode else {
            return;
        };
        let full_length =
            ack.now.saturating_since(self.cycle_start) > self.min_rtt.unwrap_or(Duration::MAX);
        let (gain, bandwidth) = (self.pacing_gain(), self.bandwidth.get());
        let in_path = || self.in_path(sample.prior_in_flight, ack, sample);
        let over = if gain > UNIT {
            // Until the path holds as much as the gain asks for, or losses show that it cannot.
            full_length && (sample.lost > 0 || in_path() >= self.in_flight_at(bandwidth, gain))
        } else if gain < UNIT {
            full_length || in_path() <= self.in_flight_at(bandwidth, UNIT)
        } else {
            full_length
        };
        if over {
            self.mode = Mode::ProbeBandwidth((phase + 1) % CYCLE.len());
            self.cycle_start = ack.now;
        }
    }

    /// Begins PROBE_BW in any phase but the one that drains (draft §4.3.4.1).
    fn begin_cycle(&mut self, ack: &AckEvent) {
        let phase = draw(ack.una, ack.now, 7);
        self.mode = Mode::ProbeBandwidth(if phase == 0 { 0 } else { phase as usize + 1 });
        self.cycle_start = ack.now;
    }

    /// draft §4.3.2.2 (BBRCheckFullPipe).
    fn check_full(&mut self, sample: &Sample) {
        let limited = sample.rate.is_some_and(|rate| rate.app_limited);
        if self.full || !self.rounds.started || limited {
            return;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth * UNIT >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    /// draft §4.3.3 (BBRCheckDrain).
    fn check_drain(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        let pipe = self.in_flight_at(self.bandwidth.get(), UNIT);
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            window.ssthresh = pipe;
        }
        if self.mode == Mode::Drain && self.in_path(sample.in_flight, ack, sample) <= pipe {
            self.begin_cycle(ack);
        }
    }

    /// draft §4.1.2.3, §4.3.5 (BBRUpdateRTprop, BBRCheckProbeRTT).
    fn update_min_rtt(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        let expired = ack.now.saturating_since(self.min_rtt_at) > MIN_RTT_SPAN;
        if let Some(rtt) = ack.rtt {
            if expired || self.min_rtt.is_none_or(|least| rtt < least) {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = ack.now;
            }
        }
        if expired && !self.restarting && !matches!(self.mode, Mode::ProbeRtt(_)) {
            self.save_window(window);
            self.mode = Mode::ProbeRtt(None);
        }
        match self.mode {
            Mode::ProbeRtt(None) if sample.in_flight <= MIN_WINDOW => {
                self.mode = Mode::ProbeRtt(Some((ack.now + PROBE_RTT_SPAN, false)));
                self.rounds.begin(sample.total_delivered);
            }
            Mode::ProbeRtt(Some((end, round))) => {
                let round = round || self.rounds.started;
                self.mode = Mode::ProbeRtt(Some((end, round)));
                if round {
                    self.leave_probe_rtt(ack, window);
                }
            }
            _ => {}
        }
        if sample.rate.is_some_and(|rate| rate.delivered > 0) {
            self.restarting = false;
        }
    }

    fn leave_probe_rtt(&mut self, ack: &AckEvent, window: &mut Window) {
        let Mode::ProbeRtt(Some((end, _))) = self.mode else {
            return;
        };
        if ack.now <= end {
            return;
        }
        self.min_rtt_at = ack.now;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.full {
            self.begin_cycle(ack);
        } else {
            self.mode = Mode::Startup;
        }
    }

    // ---- Rate and window -------------------------------------------------------------------------------

    /// Linux: the rate follows the estimate; in start-up it only rises.
    fn update_rate(&mut self, sample: &Sample, cwnd: u32) {
        if !self.rate_from_rtt {
            self.start_rate(sample.smoothed_rtt, cwnd);
        }
        let rate = pacing_rate(self.estimate(), self.pacing_gain(), sample.mss);
        if self.full || rate > self.rate {
            self.rate = rate.or(self.rate);
        }
    }

    /// The first rate: the window in an RTT, times the gain of start-up (Linux's bbr_init_pacing_rate_from_rtt).
    fn start_rate(&mut self, rtt: Option<Duration>, cwnd: u32) {
        self.rate_from_rtt = rtt.is_some();
        let initial = bandwidth(cwnd.into(), rtt.unwrap_or(UNKNOWN_RTT));
        self.rate = pacing_rate(initial, HIGH_GAIN, self.mss);
    }

    /// draft §4.2.3 (BBRSetCwnd).
    fn update_window(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        if ack.delivered > 0 && !self.recover_window(ack, sample, window) {
            let mut target = product(self.estimate(), self.min_rtt, self.cwnd_gain());
            if self.full {
                target += self.aggregation.window(self.estimate());
            }
            target = self.with_quantum(target);
            if self.full {
                window.cwnd = (window.cwnd + ack.delivered).min(target);
            } else if window.cwnd < target || sample.total_delivered < u64::from(INITIAL_WINDOW) {
                window.cwnd += ack.delivered;
            }
            window.cwnd = window.cwnd.max(MIN_WINDOW);
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            window.cwnd = window.cwnd.min(MIN_WINDOW);
        }
    }

    /// BBRModulateCwndForRecovery (draft §4.2.3.4): in the first round of recovery the window follows the delivered
    /// data; afterwards the prior window is restored. Returns true if this sets the window.
    fn recover_window(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) -> bool {
        if sample.lost > 0 {
            window.cwnd = window.cwnd.saturating_sub(sample.lost).max(1);
        }
        let conserved = sample.in_flight + ack.delivered;
        let before = std::mem::replace(&mut self.phase, sample.phase);
        if sample.phase == RecoveryPhase::Recovery && before != RecoveryPhase::Recovery {
            self.conserving = true;
            self.rounds.begin(sample.total_delivered);
            window.cwnd = conserved;
        } else if sample.phase == RecoveryPhase::None && before != RecoveryPhase::None {
            self.conserving = false;
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        if self.conserving {
            window.cwnd = window.cwnd.max(conserved);
        }
        self.conserving
    }

    fn save_window(&mut self, window: &Window) {
        let calm = self.phase == RecoveryPhase::None && !matches!(self.mode, Mode::ProbeRtt(_));
        self.prior_cwnd = if calm {
            window.cwnd
        } else {
            self.prior_cwnd.max(window.cwnd)
        };
    }

    /// The window for `gain` times the bandwidth-delay product (draft §4.2.3.2, BBRInflight).
    fn in_flight_at(&self, bandwidth: Bandwidth, gain: u64) -> u32 {
        self.with_quantum(product(bandwidth, self.min_rtt, gain))
    }

    fn with_quantum(&self, window: u32) -> u32 {
        let probing = self.mode == Mode::ProbeBandwidth(0);
        with_quantum(window, burst(self.rate, self.mss), probing)
    }

    fn in_path(&self, in_flight: u32, ack: &AckEvent, sample: &Sample) -> u32 {
        let probing = self.pacing_gain() > UNIT;
        let leaving = if probing {
            burst(self.rate, self.mss)
        } else {
            0
        };
        in_path_when_released(in_flight, leaving, self.estimate(), ack, sample)
    }
}

impl CongestionControl for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::RATE_BASED
    }

    /// Takes the handshake's RTT, measured before the connection filled the path (Linux's bbr_init).
    fn on_delivery(&mut self, ack: &AckEvent, window: &mut Window) {
        if self.min_rtt.is_none() && ack.rtt.is_some() {
            self.min_rtt = ack.rtt;
            self.min_rtt_at = ack.now;
            self.start_rate(ack.rtt, window.cwnd);
        }
    }

    fn on_sample(&mut self, ack: &AckEvent, sample: &Sample, window: &mut Window) {
        self.mss = sample.mss;
        self.update_model(ack, sample, window);
        self.update_rate(sample, window.cwnd);
        self.update_window(ack, sample, window);
    }

    /// draft §4.3.5 (BBRHandleProbeRTT): the low rates of PROBE_RTT are ignored.
    fn limits_itself(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt(_))
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn on_ack(&mut self, _ack: &AckEvent, _window: &mut Window) {}

    fn on_congestion(&mut self, _signal: Signal, window: &Window) -> u32 {
        self.save_window(window);
        window.ssthresh
    }

    fn on_timeout(&mut self, now: Time, _next: Seq) {
        self.phase = RecoveryPhase::Timeout;
        self.full_bandwidth = 0;
        self.rounds.started = true;
        self.policer.on_timeout(now);
    }

    /// Discards conclusions drawn from losses that were spurious.
    fn on_undo(&mut self, window: &Window, _prior_cwnd: u32) -> u32 {
        self.full_bandwidth = 0;
        self.full_rounds = 0;
        self.policer = Policer::new();
        window.cwnd
    }

    fn phase(&self, _window: &Window) -> &'static str {
        match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBandwidth(_) => "probe_bw",
            Mode::ProbeRtt(_) => "probe_rtt",
        }
    }

    fn state(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("max_bw", as_bps(self.bandwidth.get(), self.mss));
        report("bw", as_bps(self.estimate(), self.mss));
        report("pacing_gain", as_number(self.pacing_gain()));
        report("cwnd_gain", as_number(self.cwnd_gain()));
        let pipe = self.in_flight_at(self.bandwidth.get(), UNIT);
        report("inflight_bdp", pipe.into());
        let extra = self.aggregation.window(self.estimate());
        report("extra_acked", extra.into());
        report("full_bw_count", self.full_rounds.into());
        report("full_bw_reached", f64::from(self.full));
        report("round_count", self.rounds.count as f64);
    }

    fn on_restart(&mut self, _idle: Duration, now: Time) {
        self.restarting = true;
        self.aggregation.restart(now);
    }
}

#[cfg(test)]
mod tests;
