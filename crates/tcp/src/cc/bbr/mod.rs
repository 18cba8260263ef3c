//! BBR, versions 1 and 3, and their common parts: bandwidths, rounds, bursts.

mod aggregation;
mod policer;
mod v1;
mod v3;

use sojourn_units::{Duration, Rate, Time};

pub use v1::Bbr;
pub use v3::Bbr3;

use super::{AckEvent, Sample};
use crate::seq::Seq;

/// Gains are in 256ths.
const UNIT: u64 = 256;
/// Bandwidth in segments per second, times [`BANDWIDTH_SCALE`].
type Bandwidth = u64;
const BANDWIDTH_SCALE: u64 = 1024;
const NANOS: u128 = 1_000_000_000;
/// Linux paces 1 % below the estimate.
const PACING_PERCENT: u64 = 99;
/// The window before there is an RTT.
const INITIAL_WINDOW: u32 = 10;
/// BBRMinPipeCwnd: enough for delayed acknowledgements.
const MIN_WINDOW: u32 = 4;

fn bandwidth(segments: u64, interval: Duration) -> Bandwidth {
    (u128::from(segments) * u128::from(BANDWIDTH_SCALE) * NANOS
        / u128::from(interval.as_nanos().max(1))) as u64
}

/// Whole segments that a bandwidth delivers in a time.
fn delivered_in(bandwidth: Bandwidth, span: Duration) -> u64 {
    (u128::from(bandwidth) * u128::from(span.as_nanos()) / (NANOS * u128::from(BANDWIDTH_SCALE)))
        as u64
}

/// Bandwidth times delay times `gain`, in segments, rounded up; the initial window before there is a delay.
fn product(bandwidth: Bandwidth, min_rtt: Option<Duration>, gain: u64) -> u32 {
    let Some(min_rtt) = min_rtt else {
        return INITIAL_WINDOW;
    };
    let product = u128::from(bandwidth) * u128::from(min_rtt.as_nanos()) * u128::from(gain);
    product.div_ceil(u128::from(UNIT * BANDWIDTH_SCALE) * NANOS) as u32
}

/// The pacing rate of a bandwidth, in payload bits.
fn pacing_rate(bandwidth: Bandwidth, gain: u64, mss: u32) -> Option<Rate> {
    let bits = u128::from(bandwidth) * u128::from(gain) * u128::from(mss) * 8;
    let scale = u128::from(BANDWIDTH_SCALE * UNIT) * 100;
    Rate::from_bps((bits * u128::from(PACING_PERCENT) / scale) as u64)
}

/// A bandwidth in bits of payload per second, for [`super::CongestionControl::state`].
fn as_bps(bandwidth: Bandwidth, mss: u32) -> f64 {
    bandwidth as f64 * f64::from(mss) * 8.0 / BANDWIDTH_SCALE as f64
}

/// A gain as a number.
fn as_number(gain: u64) -> f64 {
    gain as f64 / UNIT as f64
}

/// Segments of a pacing burst: a 1024th of a second's worth, at least two (one below 1.2 Mbit/s), at most 127.
fn burst(rate: Option<Rate>, mss: u32) -> u32 {
    let bps = rate.map_or(0, Rate::as_bps);
    let at_least = if bps < 1_200_000 { 1 } else { 2 };
    let segments = ((bps / 8) >> 10) / u64::from(mss.max(1));
    segments.clamp(at_least, 127) as u32
}

/// Adds three bursts for the hosts, rounds up to even for delayed acknowledgements, and adds two segments while
/// probing for bandwidth, so that the probe has an effect on a short path
/// (draft-cardwell-iccrg-bbr-congestion-control-00 §4.2.3.2).
fn with_quantum(window: u32, burst: u32, probing: bool) -> u32 {
    ((window + 3 * burst + 1) & !1) + if probing { 2 } else { 0 }
}

/// Segments in the path when pacing releases the next one, `leaving` of which are released then.
fn in_path_when_released(
    in_flight: u32,
    leaving: u32,
    bandwidth: Bandwidth,
    ack: &AckEvent,
    sample: &Sample,
) -> u32 {
    let arrived = delivered_in(bandwidth, sample.release.saturating_since(ack.now));
    u64::from(in_flight + leaving).saturating_sub(arrived) as u32
}

/// A number below `below`, derived from state that differs between connections and times; equal seeds give equal
/// numbers.
fn draw(una: Seq, now: Time, below: u64) -> u64 {
    let mixed = (u64::from(una.0) ^ now.as_nanos()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) * below) >> 32
}

/// Counts rounds by packets: a round ends when a segment sent after its beginning is delivered (draft §4.1.1.3).
#[derive(Clone, Debug, Default)]
struct Rounds {
    /// Delivery count at which the round ends.
    end: u64,
    count: u64,
    /// The last sample began a round.
    started: bool,
}

impl Rounds {
    const fn new() -> Self {
        Self {
            end: 0,
            count: 0,
            started: false,
        }
    }

    fn on_sample(&mut self, sample: &Sample) {
        self.started = sample
            .rate
            .is_some_and(|rate| rate.prior_delivered >= self.end);
        if self.started {
            self.begin(sample.total_delivered);
            self.count += 1;
        }
    }

    /// Begins a round at this count of delivered segments, that of now.
    const fn begin(&mut self, delivered: u64) {
        self.end = delivered;
    }
}
