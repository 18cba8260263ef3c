//! Congestion control: sets the size of the window, behind one trait. One file per algorithm.

mod backoff;
mod bbr;
mod catalogue;
mod cubic;
mod dctcp;
mod hystart;
mod hystart_plus_plus;
mod illinois;
mod ledbat;
mod ledbat_plus;
mod newreno;
mod prague;
mod reno;
mod sample;
mod vegas;
mod westwood;
mod windowed;

use sojourn_units::{Duration, Rate, Time};

pub(crate) use catalogue::Maker;
pub use catalogue::{Algorithm, Catalogue};
pub use cubic::Cubic;
pub use newreno::NewReno;
pub use reno::Reno;
pub use sample::{Capabilities, LostSegment, RateSample, RecoveryPhase, Sample};

use crate::seq::Seq;

/// The congestion window and its related state, in segments as in Linux.
#[derive(Clone, Debug)]
pub struct Window {
    /// Congestion window, at least 1.
    pub cwnd: u32,
    /// Slow start threshold; [`Window::INFINITE`] before the first congestion.
    pub ssthresh: u32,
    /// Segments acknowledged since the window last grew by additive increase.
    credit: u32,
    /// True if the window limits the sender, not the application or the receiver.
    pub limiting: bool,
    /// Most segments in flight in the current window of data (RFC 7661 as implemented in Linux).
    pub peak_in_flight: u32,
    /// Segments sent and not cumulatively acknowledged when congestion was detected (FlightSize of RFC 5681).
    pub flight_size: u32,
}

impl Window {
    /// A threshold that no window reaches.
    pub const INFINITE: u32 = 0x7fff_ffff;

    /// A window of `initial` segments in slow start.
    pub const fn new(initial: u32) -> Self {
        Self {
            cwnd: initial,
            ssthresh: Self::INFINITE,
            credit: 0,
            limiting: false,
            peak_in_flight: 0,
            flight_size: 0,
        }
    }

    /// True below the slow start threshold.
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// True if the window is used and so may grow. In slow start it is enough to have half of it in flight.
    pub const fn is_used(&self) -> bool {
        self.limiting || (self.in_slow_start() && self.cwnd < 2 * self.peak_in_flight)
    }

    /// Slow start with appropriate byte counting (RFC 5681 §3.1, RFC 3465 without its limit): grows by one segment per
    /// segment acknowledged, up to the threshold. Returns the part of `acked` that is left.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let used = cwnd - self.cwnd;
        self.cwnd = cwnd;
        acked - used
    }

    /// Additive increase: grows by one segment per `per_segment` segments acknowledged.
    pub fn additive_increase(&mut self, acked: u32, per_segment: u32) {
        if self.credit >= per_segment {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        if self.credit >= per_segment {
            let growth = self.credit / per_segment;
            self.credit -= growth * per_segment;
            self.cwnd += growth;
        }
    }

    /// Discards the segments counted towards the next increase.
    pub fn clear_credit(&mut self) {
        self.credit = 0;
    }
}

/// The information in an acknowledgement for congestion control.
#[derive(Clone, Copy, Debug)]
pub struct AckEvent {
    /// When it arrived.
    pub now: Time,
    /// Segments newly delivered.
    pub delivered: u32,
    /// Segments newly acknowledged, also if a SACK reported them before.
    pub acked: u32,
    /// Segments newly reported as marked; with RFC 3168's echo, all that it delivered.
    pub marks: u32,
    /// RTT of the newest segment delivered; `None` if that was retransmitted.
    pub rtt: Option<Duration>,
    /// SND.UNA after it.
    pub una: Seq,
    /// SND.NXT.
    pub next: Seq,
}

/// The kind of congestion signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Acknowledgements showed that a segment was lost.
    Loss,
    /// The receiver echoed a CE mark (RFC 3168 §6.1.2).
    EcnEcho,
    /// The retransmission timer expired.
    Timeout,
}

/// A congestion control. Loss recovery (retransmissions, proportional rate reduction) belongs to the sender.
pub trait CongestionControl: Send {
    /// Its name in the catalogue.
    fn name(&self) -> &'static str;

    /// The services that it needs from the sender.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Called on every acknowledgement if [`Capabilities::samples`], before `on_ack` and after losses were judged.
    fn on_sample(&mut self, _ack: &AckEvent, _sample: &Sample, _window: &mut Window) {}

    /// Called for every segment that is judged lost if [`Capabilities::losses`], after `on_congestion` and before `on_sample`.
    fn on_lost(&mut self, _lost: &LostSegment, _window: &Window) {}

    /// True while samples shall not count as the path's rate, such as those of a window reduced on purpose: what is in
    /// flight then counts as limited by the application. Asked after `on_sample`.
    fn limits_itself(&self) -> bool {
        false
    }

    /// The pacing rate, counting payload only, if [`Capabilities::paces`]; `None` before there is an estimate.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// Called on every acknowledgement that delivers something, in recovery too, before the window may grow.
    fn on_delivery(&mut self, _ack: &AckEvent, _window: &mut Window) {}

    /// Called when the window may grow, so not in recovery.
    fn on_ack(&mut self, ack: &AckEvent, window: &mut Window);

    /// Called instead of `on_delivery` and `on_ack`, one after the other, where nothing comes between them.
    fn on_progress(&mut self, ack: &AckEvent, window: &mut Window) {
        self.on_delivery(ack, window);
        self.on_ack(ack, window);
    }

    /// Called on congestion. Returns the new slow start threshold, at least 2.
    fn on_congestion(&mut self, signal: Signal, window: &Window) -> u32;

    /// Called whenever the retransmission timer expires, after `on_congestion` if that was called too: a timeout within
    /// a window that was reduced already does not reduce the threshold again.
    fn on_timeout(&mut self, _now: Time, _next: Seq) {}

    /// Called when a reduction is complete and was not undone; the window is then at the threshold.
    fn on_recovered(&mut self, _window: &mut Window) {}

    /// Called when a reduction is undone. Returns the window to restore, given the window before the reduction.
    fn on_undo(&mut self, window: &Window, prior_cwnd: u32) -> u32 {
        window.cwnd.max(prior_cwnd)
    }

    /// The name of its phase, by its defining document.
    fn phase(&self, window: &Window) -> &'static str {
        if window.in_slow_start() {
            "slow_start"
        } else {
            "congestion_avoidance"
        }
    }

    /// Reports its variables by the names of its defining document: bandwidths in bits of payload per second, data in
    /// flight in segments, times in milliseconds, true as 1.
    fn state(&self, _report: &mut dyn FnMut(&'static str, f64)) {}

    /// Called when the sender sends again after having nothing in flight for `idle`.
    fn on_restart(&mut self, _idle: Duration, _now: Time) {}
}

/// `numerator / denominator` of the window, at least 2 segments (RFC 5681 §3.1).
fn fraction(cwnd: u32, numerator: u32, denominator: u32) -> u32 {
    ((u64::from(cwnd) * u64::from(numerator) / u64::from(denominator)) as u32).max(2)
}

/// The window less `numerator / denominator` of it, at least 2 segments. The reduction is rounded down, as in Linux;
/// otherwise a window of a few segments would lose one whatever the share.
fn less(cwnd: u32, numerator: u32, denominator: u32) -> u32 {
    let off = u64::from(cwnd) * u64::from(numerator) / u64::from(denominator);
    (cwnd - off as u32).max(2)
}

/// The congestion control called `name`.
#[cfg(test)]
pub(crate) fn by_name(name: &str) -> Algorithm {
    let found = Catalogue::new().get(name).cloned();
    found.expect("a congestion control")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_stops_at_the_threshold_and_returns_the_remainder() {
        let mut window = Window::new(10);
        window.ssthresh = 12;
        assert_eq!(window.slow_start(5), 3);
        assert_eq!(window.cwnd, 12);
    }

    #[test]
    fn additive_increase_is_one_segment_per_window() {
        let mut window = Window::new(10);
        for _ in 0..9 {
            window.additive_increase(1, 10);
        }
        assert_eq!(window.cwnd, 10);
        window.additive_increase(1, 10);
        assert_eq!(window.cwnd, 11);
    }
}
