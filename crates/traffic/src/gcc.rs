//! Google Congestion Control for video calls: the sender adapts its rate to the variation of one-way delays and to losses.
//!
//! Source: draft-ietf-rmcat-gcc-02 (sections are its own), and Carlucci et al., "Congestion Control for Web Real-Time
//! Communication", IEEE/ACM ToN 2017. One departure: the overuse detector compares the gradient of 60 groups of packets with
//! its threshold, as the implementation that the paper measured does (`OveruseDetector` of WebRTC); the draft compares that of
//! one group, which with the same threshold hardly ever is an overuse.

use std::collections::VecDeque;

use sojourn_units::{Duration, Time};

/// Packets sent within this time are a group (5.2).
const BURST: Duration = Duration::from_millis(5);
/// The state noise and the first error covariance of the filter (5.3, table 1).
const STATE_NOISE: f64 = 1e-3;
const FIRST_ERROR: f64 = 0.1;
/// The filter's forgetting factor χ, and the groups K of which the shortest interval counts (5.3).
const CHI: f64 = 0.01;
const FASTEST_OF: usize = 20;
/// An outlier counts as so many standard deviations (5.3).
const OUTLIER: f64 = 3.0;
/// The threshold at first, and its bounds, in ms (5.4, table 1).
const FIRST_THRESHOLD: f64 = 12.5;
const THRESHOLDS: (f64, f64) = (6.0, 600.0);
/// How fast it rises and falls, per ms (5.4, table 1).
const RISES: f64 = 0.01;
const FALLS: f64 = 0.000_18;
/// A gradient this far above the threshold, in ms, does not change it (5.4).
const SPIKE: f64 = 15.0;
/// An overuse lasts at least this time, in ms (5.4, table 1).
const OVERUSE_MS: f64 = 10.0;
/// Groups of packets whose gradients are taken together.
const GROUPS: u32 = 60;
/// The window in which the received rate is measured (5.5: 0.5 to 1 s).
const WINDOW: Duration = Duration::from_millis(500);
/// What is kept of the received rate on an overuse (5.5, table 1: 0.85), and the most above it.
const BETA: f64 = 0.85;
const ABOVE_RECEIVED: f64 = 1.5;
/// The weight of the average of received rates before a decrease (5.5).
const SMOOTHING: f64 = 0.95;
/// Increase per second, far from convergence (5.5).
const PER_SECOND: f64 = 1.08;
/// Bits of a packet, and frames a second, of which the size of packets is estimated (5.5).
const PACKET_BITS: f64 = 1200.0 * 8.0;
const FRAMES_PER_S: f64 = 30.0;
/// Shares of lost packets: more lowers the rate, less raises it (6).
const LOSSES: (f64, f64) = (0.02, 0.10);

/// A packet of which the receiver reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// When it was sent.
    pub sent: Time,
    /// When it arrived; `None` if it did not.
    pub arrived: Option<Time>,
    /// Its payload bytes.
    pub bytes: u32,
}

/// The network's state as the overuse detector sees it (5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Signal {
    Overuse,
    Normal,
    Underuse,
}

/// The state of the rate controller (5.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Hold,
    Increase,
    Decrease,
}

impl State {
    /// The table of 5.5.
    const fn after(self, signal: Signal) -> Self {
        match (signal, self) {
            (Signal::Overuse, _) => Self::Decrease,
            (Signal::Normal, Self::Decrease) | (Signal::Underuse, _) => Self::Hold,
            (Signal::Normal, _) => Self::Increase,
        }
    }
}

/// Packets sent as one burst: departure and arrival of its last packet, and the departure of its first.
#[derive(Clone, Copy)]
struct Group {
    first: Time,
    sent: Time,
    arrived: Time,
}

/// The difference in ms, negative if `from` is later.
fn ms_between(from: Time, to: Time) -> f64 {
    (to.as_nanos() as f64 - from.as_nanos() as f64) / 1e6
}

/// The filter of arrival times (5.3): a Kalman filter of the gradient of the one-way delay.
#[derive(Default)]
struct Filter {
    gradient: f64,
    error: Option<f64>,
    noise: f64,
    intervals: VecDeque<f64>,
    groups: u32,
}

impl Filter {
    /// Takes the delay variation d(i) of a group, which was sent `interval` ms after the one before.
    fn update(&mut self, variation: f64, interval: f64) {
        if self.intervals.len() == FASTEST_OF {
            self.intervals.pop_front();
        }
        self.intervals.push_back(interval.max(1.0));
        self.groups = (self.groups + 1).min(GROUPS);
        let shortest = self.intervals.iter().copied().fold(f64::MAX, f64::min);
        let z = variation - self.gradient;
        // alpha = (1 - chi)^(30 / (1000 f_max)), with f_max in groups per ms.
        let alpha = libm::pow(1.0 - CHI, 30.0 * shortest / 1000.0);
        let bound = OUTLIER * libm::sqrt(self.noise.max(1.0));
        let z = z.clamp(-bound, bound);
        self.noise = (alpha * self.noise + (1.0 - alpha) * z * z).max(1.0);
        let error = self.error.unwrap_or(FIRST_ERROR) + STATE_NOISE;
        let gain = error / (self.noise + error);
        self.gradient += z * gain;
        self.error = Some((1.0 - gain) * error);
    }
}

/// The overuse detector (5.4).
struct Detector {
    threshold: f64,
    /// How long the gradient has been above it, in ms.
    over: f64,
    last: f64,
    signal: Signal,
}

impl Detector {
    /// Takes the gradient after a group that arrived `since` ms after the one before.
    fn update(&mut self, gradient: f64, since: f64) {
        self.signal = if gradient > self.threshold {
            self.over += since;
            match self.over >= OVERUSE_MS && gradient >= self.last {
                true => Signal::Overuse,
                false => self.signal,
            }
        } else {
            self.over = 0.0;
            match gradient < -self.threshold {
                true => Signal::Underuse,
                false => Signal::Normal,
            }
        };
        self.last = gradient;
        let beyond = gradient.abs() - self.threshold;
        if beyond <= SPIKE {
            let speed = if beyond < 0.0 { FALLS } else { RISES };
            let moved = self.threshold + since.min(100.0) * speed * beyond;
            self.threshold = moved.clamp(THRESHOLDS.0, THRESHOLDS.1);
        }
    }
}

/// The controller at the sender.
pub struct Gcc {
    group: Option<Group>,
    before: Option<Group>,
    filter: Filter,
    detector: Detector,
    state: State,
    /// The rates of the delay-based and of the loss-based controller, in bit/s.
    by_delay: f64,
    by_loss: f64,
    bounds: (f64, f64),
    /// Arrivals within the window, and their bytes.
    received: VecDeque<(Time, u32)>,
    received_bytes: u64,
    /// The first arrival, from which on the window fills.
    began: Option<Time>,
    /// Mean and variance of the received rate at decreases, relative to the mean, as 5.5 estimates convergence.
    near: Option<(f64, f64)>,
    updated: Option<Time>,
}

impl Gcc {
    /// A controller that begins at the rate `first`, and stays within `bounds`; all in bit/s.
    pub fn new(first: f64, bounds: (f64, f64)) -> Self {
        Self {
            group: None,
            before: None,
            filter: Filter::default(),
            detector: Detector {
                threshold: FIRST_THRESHOLD,
                over: 0.0,
                last: 0.0,
                signal: Signal::Normal,
            },
            state: State::Increase,
            by_delay: first,
            by_loss: first,
            bounds,
            received: VecDeque::new(),
            received_bytes: 0,
            began: None,
            near: None,
            updated: None,
        }
    }

    /// The rate to send at, in bit/s: the smaller of both controllers (3).
    pub fn rate(&self) -> f64 {
        self.by_delay
            .min(self.by_loss)
            .clamp(self.bounds.0, self.bounds.1)
    }

    /// Takes a message of the receiver about the packets since the last one, in order of arrival, lost ones where they were
    /// missed.
    pub fn on_feedback(&mut self, reports: &[Report], rtt: Duration, now: Time) {
        for report in reports {
            if let Some(arrived) = report.arrived {
                self.on_arrival(report.sent, arrived, report.bytes);
            }
        }
        self.state = self.state.after(self.detector.signal);
        self.control_by_delay(rtt, now);
        if !reports.is_empty() {
            let lost = reports.iter().filter(|report| report.arrived.is_none());
            self.control_by_loss(lost.count() as f64 / reports.len() as f64);
        }
        self.updated = Some(now);
    }

    fn on_arrival(&mut self, sent: Time, arrived: Time, bytes: u32) {
        self.began.get_or_insert(arrived);
        self.received.push_back((arrived, bytes));
        self.received_bytes += u64::from(bytes);
        while let Some((first, bytes)) = self.received.front().copied() {
            if arrived.saturating_since(first) < WINDOW {
                break;
            }
            self.received.pop_front();
            self.received_bytes -= u64::from(bytes);
        }
        let Some(group) = &mut self.group else {
            self.group = Some(Group {
                first: sent,
                sent,
                arrived,
            });
            return;
        };
        let waited = ms_between(group.arrived, arrived);
        let is_sent_with = sent.saturating_since(group.first) <= BURST;
        let is_queued_with = waited < ms_between(Time::ZERO, Time::ZERO + BURST)
            && waited < ms_between(group.sent, sent);
        if is_sent_with || is_queued_with {
            group.sent = group.sent.max(sent);
            group.arrived = arrived;
            return;
        }
        let done = std::mem::replace(
            group,
            Group {
                first: sent,
                sent,
                arrived,
            },
        );
        if let Some(before) = self.before.replace(done) {
            let interval = ms_between(before.sent, done.sent);
            let since = ms_between(before.arrived, done.arrived);
            self.filter.update(since - interval, interval);
            let gradient = self.filter.gradient * f64::from(self.filter.groups);
            self.detector.update(gradient, since);
        }
    }

    /// The received rate R_hat, in bit/s (5.5).
    fn received_bps(&self) -> f64 {
        self.received_bytes as f64 * 8.0 / WINDOW.as_secs_f64()
    }

    /// 5.5.
    fn control_by_delay(&mut self, rtt: Duration, now: Time) {
        let received = self.received_bps();
        let since = self.updated.map_or(0.0, |last| ms_between(last, now));
        match self.state {
            State::Hold => {}
            State::Increase => {
                if self
                    .near
                    .is_some_and(|(mean, deviation)| received > mean + 3.0 * deviation)
                {
                    self.near = None;
                }
                if self.near.is_some() {
                    let response_ms = 100.0 + rtt.as_millis_f64();
                    let share = 0.5 * (since / response_ms).min(1.0);
                    self.by_delay += (share * expected_packet_bits(self.by_delay)).max(1000.0);
                } else {
                    self.by_delay *= libm::pow(PER_SECOND, (since / 1000.0).min(1.0));
                }
            }
            State::Decrease => {
                let (mean, deviation) = self.near.unwrap_or((received, received * 0.1));
                let difference = (received - mean).abs();
                self.near = Some((
                    SMOOTHING * mean + (1.0 - SMOOTHING) * received,
                    SMOOTHING * deviation + (1.0 - SMOOTHING) * difference,
                ));
                self.by_delay = self.by_delay.min(BETA * received);
            }
        }
        let has_window = |began| now.saturating_since(began) >= WINDOW + rtt;
        if self.began.is_some_and(has_window) {
            self.by_delay = self.by_delay.min(ABOVE_RECEIVED * received + 10_000.0);
        }
        self.by_delay = self.by_delay.clamp(self.bounds.0, self.bounds.1);
    }

    /// 6.
    fn control_by_loss(&mut self, lost: f64) {
        if lost > LOSSES.1 {
            self.by_loss *= 1.0 - 0.5 * lost;
        } else if lost < LOSSES.0 {
            self.by_loss *= 1.05;
        }
        self.by_loss = self.by_loss.clamp(self.bounds.0, self.bounds.1);
    }
}

/// The size of a packet at this rate (5.5).
fn expected_packet_bits(bps: f64) -> f64 {
    let frame = bps / FRAMES_PER_S;
    frame / libm::ceil(frame / PACKET_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(at: f64) -> Time {
        Time::from_nanos((at * 1e6) as u64)
    }

    /// Section 5.3 with d = 4 ms after a gradient of 0: the first error is 0.1 + 0.001, the noise at least 1, so the gain is
    /// 0.101 / 1.101; the measurement is cut at 3 standard deviations of 1.
    #[test]
    fn the_filter_moves_by_its_gain_and_cuts_outliers() {
        let mut filter = Filter::default();
        filter.update(4.0, 33.0);
        let noise = (1.0 - libm::pow(0.99, 30.0 * 33.0 / 1000.0)) * 9.0;
        assert!(noise < 1.0);
        assert!((filter.gradient - 3.0 * 0.101 / 1.101).abs() < 1e-12);
        assert!((filter.error.unwrap() - (1.0 - 0.101 / 1.101) * 0.101).abs() < 1e-12);
    }

    /// Section 5.4: above the threshold for 10 ms and not falling; the threshold follows faster upwards than downwards, and not
    /// at all to a spike.
    #[test]
    fn an_overuse_lasts_and_the_threshold_adapts() {
        let mut detector = Gcc::new(1e6, (1e4, 1e7)).detector;
        detector.update(14.0, 5.0);
        assert_eq!(detector.signal, Signal::Normal);
        assert!((detector.threshold - (12.5 + 5.0 * 0.01 * 1.5)).abs() < 1e-12);
        detector.update(14.0, 5.0);
        assert_eq!(detector.signal, Signal::Overuse);
        detector.update(13.5, 5.0);
        assert_eq!(
            detector.signal,
            Signal::Overuse,
            "it falls, which is no new overuse"
        );
        let before = detector.threshold;
        detector.update(-40.0, 5.0);
        assert_eq!(
            (detector.signal, detector.threshold),
            (Signal::Underuse, before)
        );
        detector.update(2.0, 10.0);
        assert_eq!(detector.signal, Signal::Normal);
        assert!((detector.threshold - (before - 10.0 * 0.000_18 * (before - 2.0))).abs() < 1e-12);
    }

    /// The table of section 5.5.
    #[test]
    fn states_follow_the_signals() {
        use Signal::{Normal, Overuse, Underuse};
        use State::{Decrease, Hold, Increase};
        let table = [
            (Overuse, [Decrease, Decrease, Decrease]),
            (Normal, [Increase, Increase, Hold]),
            (Underuse, [Hold, Hold, Hold]),
        ];
        for (signal, after) in table {
            assert_eq!(
                [Hold, Increase, Decrease].map(|state| state.after(signal)),
                after
            );
        }
    }

    /// Section 6: 20 % lost are 1 - 0.5 · 0.2 = 0.9 of the rate; 5 % change nothing; 1 % are 1.05 of it.
    #[test]
    fn losses_change_the_rate_by_their_share() {
        let mut gcc = Gcc::new(1e6, (1e4, 1e8));
        gcc.control_by_loss(0.2);
        assert!((gcc.by_loss - 0.9e6).abs() < 1e-6);
        gcc.control_by_loss(0.05);
        assert!((gcc.by_loss - 0.9e6).abs() < 1e-6);
        gcc.control_by_loss(0.01);
        assert!((gcc.by_loss - 0.945e6).abs() < 1e-6);
    }

    /// Section 5.5: at 1 Mbit/s a frame has 33,333 bits in four packets of 8333; near convergence half of one is added in each
    /// response time, 100 ms and the round trip; far from it 8 % a second.
    #[test]
    fn the_rate_rises_fast_until_it_is_near() {
        assert!((expected_packet_bits(1e6) - 1e6 / 30.0 / 4.0).abs() < 1e-9);
        let mut gcc = Gcc::new(1e6, (1e4, 1e8));
        (gcc.received_bytes, gcc.updated) = (62_500, Some(ms(0.0)));
        gcc.control_by_delay(Duration::from_millis(100), ms(1000.0));
        assert!((gcc.by_delay - 1.08e6).abs() < 1.0);
        (gcc.by_delay, gcc.near) = (1e6, Some((1e6, 1e5)));
        gcc.control_by_delay(Duration::from_millis(100), ms(200.0));
        assert!((gcc.by_delay - (1e6 + 0.5 * 1e6 / 120.0)).abs() < 1.0);
        gcc.state = State::Decrease;
        gcc.control_by_delay(Duration::from_millis(100), ms(300.0));
        assert!((gcc.by_delay - 0.85e6).abs() < 1.0);
    }

    /// Section 5.2: packets of a burst are one group; those that a queue delivers in one burst too.
    #[test]
    fn bursts_are_groups() {
        let mut gcc = Gcc::new(1e6, (1e4, 1e8));
        for (sent, arrived) in [
            (0.0, 20.0),
            (4.0, 24.0),
            (33.0, 53.0),
            (41.0, 54.0),
            (80.0, 100.0),
        ] {
            gcc.on_arrival(ms(sent), ms(arrived), 1200);
        }
        // {0, 4}, {33, 41}, and the last one; two are complete.
        assert_eq!(
            (gcc.filter.groups, gcc.before.map(|group| group.sent)),
            (1, Some(ms(41.0)))
        );
    }
}
