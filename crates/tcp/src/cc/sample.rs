//! What an acknowledgement tells a congestion control that asks for more than [`super::AckEvent`]: how fast data was
//! delivered (draft-cheng-iccrg-delivery-rate-estimation), what was lost, what was echoed.

use sojourn_units::{Duration, Time};

/// What the sender does for a congestion control beyond keeping its window. All off: Reno's needs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Capabilities {
    /// Calls [`super::CongestionControl::on_sample`] on every acknowledgement.
    pub samples: bool,
    /// Leaves the window alone: `on_sample` sets it, in recovery too, in place of proportional rate reduction, slow
    /// start after idleness and window validation (Linux's cong_control).
    pub governs_window: bool,
    /// Paces at [`super::CongestionControl::pacing_rate`].
    pub paces: bool,
    /// Leaves a window that the application does not use as it is: no validation (RFC 7661).
    pub keeps_unused: bool,
}

/// Where loss recovery stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum RecoveryPhase {
    /// Nothing is being repaired.
    #[default]
    None,
    /// Losses found by acknowledgements are.
    Recovery,
    /// A timeout is.
    Timeout,
}

/// A measure of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RateSample {
    /// Segments delivered in `interval`.
    pub delivered: u64,
    /// The longer of the times that sending and acknowledging them took.
    pub interval: Duration,
    /// The connection's count of delivered segments when the newest of these was sent.
    pub prior_delivered: u64,
    /// Segments in flight then, itself included.
    pub in_flight_at_send: u32,
    /// Segments judged lost since.
    pub lost: u32,
    /// The application had nothing to send for some of the time.
    pub app_limited: bool,
}

/// An acknowledgement in detail.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sample {
    /// The delivery rate, if the acknowledgement gives a credible one.
    pub rate: Option<RateSample>,
    /// Segments delivered since the connection began.
    pub total_delivered: u64,
    /// Segments newly judged lost.
    pub lost: u32,
    /// Segments in flight before it arrived.
    pub prior_in_flight: u32,
    /// Segments in flight now.
    pub in_flight: u32,
    /// Marks are told one by one (AccECN).
    pub accurate: bool,
    /// The state of loss recovery after it.
    pub phase: RecoveryPhase,
    /// The smoothed RTT.
    pub smoothed_rtt: Option<Duration>,
    /// One-way delay by the hosts' timestamp clocks, which need not agree: only differences mean something
    /// (RFC 6817 §3.4.1). Milliseconds.
    pub one_way_ms: Option<u32>,
    /// When pacing lets the next segment go; in the past if it does not hold one back.
    pub release: Time,
    /// Bytes of a full segment.
    pub mss: u32,
}
