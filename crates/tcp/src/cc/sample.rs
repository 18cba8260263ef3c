//! Details of an acknowledgement beyond [`super::AckEvent`], for congestion controls that ask for them: the delivery
//! rate (draft-cheng-iccrg-delivery-rate-estimation), losses and timestamps.

use sojourn_units::{Duration, Time};

use crate::seq::Seq;

/// The services that a congestion control needs from the sender. Reno needs none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Capabilities {
    /// Call [`super::CongestionControl::on_sample`] on every acknowledgement.
    pub samples: bool,
    /// Leave the window to `on_sample`, in recovery too. It replaces proportional rate reduction, slow start after
    /// idleness and window validation (Linux's cong_control).
    pub governs_window: bool,
    /// Pace at [`super::CongestionControl::pacing_rate`].
    pub paces: bool,
    /// Do not reduce a window that the application does not use: no window validation (RFC 7661).
    pub keeps_unused: bool,
    /// Call [`super::CongestionControl::on_lost`] for every segment that is judged lost; needs `samples`.
    pub losses: bool,
    /// Paced bursts are what the rate sends in 1/4096 s, at least one segment, in place of the usual ones
    /// (draft-briscoe-iccrg-prague-congestion-control-04 §2.4.3; Linux's tso_segs).
    pub short_bursts: bool,
}

impl Capabilities {
    /// Those of a rate-based congestion control: it takes samples, sets the window itself and paces.
    pub const RATE_BASED: Self = Self {
        samples: true,
        governs_window: true,
        paces: true,
        keeps_unused: false,
        losses: false,
        short_bursts: false,
    };
}

/// The phase of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum RecoveryPhase {
    /// No recovery in progress.
    #[default]
    None,
    /// Repairing losses that acknowledgements showed.
    Recovery,
    /// Repairing losses after a timeout.
    Timeout,
}

/// A measure of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RateSample {
    /// Segments delivered in `interval`.
    pub delivered: u64,
    /// The longer of the two times: sending these segments, and acknowledging them.
    pub interval: Duration,
    /// The connection's count of delivered segments when the newest of these was sent.
    pub prior_delivered: u64,
    /// Segments in flight at that time, itself included.
    pub in_flight_at_send: u32,
    /// Segments judged lost since then.
    pub lost: u32,
    /// The application had nothing to send for some of the time.
    pub app_limited: bool,
}

/// A segment that is judged lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostSegment {
    /// When it is judged.
    pub now: Time,
    /// The oldest segment that is not acknowledged.
    pub una: Seq,
    /// Segments delivered since the connection began.
    pub delivered: u64,
    /// Segments in flight when it was sent, itself included.
    pub in_flight_at_send: u32,
    /// Segments judged lost since then, itself included.
    pub lost: u32,
    /// The application had nothing to send at that time.
    pub app_limited: bool,
}

/// The details of an acknowledgement.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sample {
    /// The delivery rate, if the acknowledgement yields a credible one.
    pub rate: Option<RateSample>,
    /// Segments delivered since the connection began.
    pub total_delivered: u64,
    /// Segments newly judged lost.
    pub lost: u32,
    /// Segments in flight before it arrived.
    pub prior_in_flight: u32,
    /// Segments in flight now.
    pub in_flight: u32,
    /// Every mark is reported (AccECN).
    pub accurate: bool,
    /// The state of loss recovery after it.
    pub phase: RecoveryPhase,
    /// The smoothed RTT.
    pub smoothed_rtt: Option<Duration>,
    /// One-way delay in milliseconds from the hosts' timestamp clocks. The clocks may disagree, so only differences
    /// are meaningful (RFC 6817 §3.4.1).
    pub one_way_ms: Option<u32>,
    /// When pacing allows the next segment; in the past if pacing does not delay it.
    pub release: Time,
    /// Bytes of a full segment.
    pub mss: u32,
}
