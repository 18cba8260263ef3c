//! The options of an endpoint.

use sojourn_units::{Duration, Time};

use crate::ecn::Feedback;

/// The options of an endpoint. The defaults are Linux's unless the field says otherwise.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Payload bytes of a full segment, after subtracting the timestamp option. Default 1448.
    pub mss: u16,
    /// Initial window in segments (RFC 6928). Default 10.
    pub initial_window: u32,
    /// Negotiate ECN (RFC 3168 §6.1.1). Default no.
    pub ecn: bool,
    /// Negotiate AccECN (RFC 9768), if ECN is negotiated at all. Prague always does. Default no. With a kernel that has
    /// AccECN, [`Kernel::V7_3`], its option goes with it.
    pub accecn: bool,
    /// A retransmitted SYN does not request ECN (RFC 3168 §6.1.1.1; Linux since 4.2). Default yes.
    pub ecn_fallback: bool,
    /// What a loss-based congestion control keeps of its window on a loss, above 0 and below 1; `None` for the share
    /// that its document gives.
    pub beta: Option<f64>,
    /// Alternative Backoff with ECN (RFC 8511), for loss-based congestion controls. Default no.
    pub abe: Abe,
    /// Prague grows on short paths as if the RTT were 25 ms (its draft, §2.4.4). Default yes.
    pub rtt_independence: bool,
    /// Offer selective acknowledgements (RFC 2018). Default yes.
    pub sack: bool,
    /// Quick acknowledgements: acknowledge without delay at the start of a connection, and later when Linux does.
    /// Default yes. If no, acknowledgements are delayed from the first segment on (RFC 5681 §4.2).
    pub quickack: bool,
    /// Segments per delayed acknowledgement (RFC 5681 §4.2: at most two). It is sent earlier if its timer expires.
    /// Default 2.
    pub ack_every: u32,
    /// Largest receive window in bytes. Default 1 GiB, so that only buffer tuning limits it.
    pub max_window: u32,
    /// Receive window at which buffer tuning starts. Default 3 MiB, half of a 6 MiB buffer.
    pub tuned_window: u32,
    /// Loss detection and recovery. Default: as Linux.
    pub recovery: Recovery,
    /// The minimum retransmission timeout. In Linux it is TCP_RTO_MIN, 200 ms, the floor of the variance term: the
    /// timeout is at least the smoothed RTT plus this. With [`Recovery::Rfc6675`] it is the floor of the timeout
    /// itself (RFC 6298 §2.4: 1 s).
    pub rto_min: Duration,
    /// Segments leave in bursts of about a millisecond's data, at least two segments, as with segmentation offload.
    /// Default yes.
    pub gso: bool,
    /// A burst is what the rate sends in a second divided by two to the power of this (Linux's sk_pacing_shift). Default 10;
    /// mac80211 makes it 7, about eight milliseconds, for what leaves over Wi-Fi.
    pub pacing_shift: u8,
    /// How timers are rounded. Default: Linux's timer wheel at 250 Hz.
    pub clock: Clock,
    /// The version of Linux that this endpoint follows. Default 6.1.
    pub kernel: Kernel,
    /// Note every segment that is judged lost, for [`crate::Endpoint::take_losses`]. Default no.
    pub notes_losses: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1448,
            initial_window: 10,
            ecn: false,
            accecn: false,
            ecn_fallback: true,
            beta: None,
            abe: Abe::Off,
            rtt_independence: true,
            sack: true,
            quickack: true,
            ack_every: 2,
            max_window: 1 << 30,
            tuned_window: 3 << 20,
            recovery: Recovery::Rack,
            rto_min: Duration::from_millis(200),
            gso: true,
            pacing_shift: 10,
            clock: Clock::Jiffies,
            kernel: Kernel::V6_1,
            notes_losses: false,
        }
    }
}

impl Config {
    /// True if an endpoint with this feedback uses the AccECN option too.
    pub(crate) fn uses_option(&self, feedback: Feedback) -> bool {
        feedback == Feedback::Accurate && self.kernel >= Kernel::V7_3
    }

    /// The feedback of marks to request, with a congestion control that needs `needed`.
    pub const fn wanted_feedback(&self, needed: Feedback) -> Feedback {
        match needed {
            Feedback::None if !self.ecn => Feedback::None,
            _ if self.accecn => Feedback::Accurate,
            Feedback::None => Feedback::Classic,
            needed => needed,
        }
    }
}

/// Alternative Backoff with ECN (RFC 8511): what is kept of the window on a mark.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Abe {
    /// As much as on a loss.
    Off,
    /// What RFC 8511 §3 recommends: 0.8 for Reno, 0.85 for CUBIC.
    Recommended,
    /// Another share, above 0 and below 1.
    Keeps(f64),
}

/// A version of Linux whose TCP differs from the others. Later versions are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kernel {
    /// Linux 6.1: the receive window begins at 64 KiB.
    V6_1,
    /// Linux 6.12: the receive window begins at half of the receive buffer, and its limit follows the memory that
    /// segments take; a burst may span send buffers; the first five retransmissions of a SYN are a second apart; the
    /// FIN waits for the congestion window; the longest delay of an acknowledgement is a tick less than the minimum RTO.
    V6_12,
    /// Linux 6.18: the limit of the receive window has no segments to spare.
    V6_18,
    /// Linux 7.3: acknowledgements of out-of-order data are delayed by up to a third of an RTT, and AccECN has its option
    /// (Linux 7.0).
    V7_3,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// As Linux since 4.18: RACK and tail loss probes (RFC 8985), proportional rate reduction (RFC 6937), and spurious
    /// reductions undone (Eifel, D-SACK, F-RTO). Without SACK RFC 6582, also with proportional rate reduction.
    Rack,
    /// RFC 6675 alone: a segment is lost if SACK reports three segments beyond it. The window is halved at once, the
    /// pipe counts the data in flight, nothing is undone, and a lost retransmission waits for the timeout. Without
    /// SACK RFC 6582. The timeout is RFC 6298's.
    Rfc6675,
}

/// Rounding of the host's timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// No rounding: timers expire at the nanosecond.
    Exact,
    /// Linux's timer wheel with 250 ticks a second. A timer is never early. It is up to a tick (4 ms) late if it runs
    /// for less than 63 ticks, up to 8 ticks below 504, and up to 64 ticks otherwise.
    Jiffies,
}

/// Nanoseconds of a tick at 250 Hz, Debian's configuration.
pub const JIFFY: u64 = 4_000_000;

impl Clock {
    /// The time at which a timer set at `now` for `span` expires.
    pub fn expiry(self, now: Time, span: Duration) -> Time {
        match self {
            Self::Exact => now + span,
            Self::Jiffies => {
                let jiffies = ticks(span);
                let expires = now.as_nanos() / JIFFY + jiffies;
                let expires = match jiffies {
                    0..63 => expires + 1,
                    63..504 => ((expires >> 3) + 1) << 3,
                    _ => ((expires >> 6) + 1) << 6,
                };
                Time::from_nanos(expires * JIFFY)
            }
        }
    }

    /// The time from `earlier` to `later` as the host counts it, by its ticks.
    pub const fn between(self, earlier: Time, later: Time) -> Duration {
        let (earlier, later) = (earlier.as_nanos(), later.as_nanos());
        Duration::from_nanos(match self {
            Self::Exact => later - earlier,
            Self::Jiffies => (later / JIFFY - earlier / JIFFY) * JIFFY,
        })
    }

    /// Half of a span, in whole ticks.
    pub const fn half(self, span: Duration) -> Duration {
        Duration::from_nanos(match self {
            Self::Exact => span.as_nanos() / 2,
            Self::Jiffies => span.as_nanos() / (2 * JIFFY) * JIFFY,
        })
    }

    /// A timeout as the host keeps it: in ticks, rounded up.
    pub const fn kept(self, timeout: Duration) -> Duration {
        match self {
            Self::Exact => timeout,
            Self::Jiffies => Duration::from_nanos(ticks(timeout) * JIFFY),
        }
    }
}

/// A span in ticks, rounded up. The addition costs less than the remainder at which [`u64::div_ceil`] looks.
const fn ticks(span: Duration) -> u64 {
    let up = span.as_nanos() + (JIFFY - 1);
    up / JIFFY
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 1 ms the tick is 0. 40 ms are 10 ticks, and the wheel adds one: 44 ms.
    #[test]
    fn a_short_timer_is_up_to_a_tick_late() {
        let at = Clock::Jiffies.expiry(Time::from_millis(1), Duration::from_millis(40));
        assert_eq!(at, Time::from_millis(44));
    }

    /// 300 ms are 75 ticks: the second level counts eights, 75 / 8 + 1 = 10 eights, 320 ms.
    #[test]
    fn a_longer_timer_is_rounded_up_to_eight_ticks() {
        let at = Clock::Jiffies.expiry(Time::ZERO, Duration::from_millis(300));
        assert_eq!(at, Time::from_millis(320));
    }
}
