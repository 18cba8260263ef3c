//! The experience of a video player.

use serde::{Deserialize, Serialize};
use sojourn_units::{Duration, Rate};

use crate::result;

/// The experience of a video player over the whole run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Playback {
    startup: Option<Duration>,
    segments: u64,
    /// Sum of the media rates of the segments.
    bps: u64,
    last: Option<Rate>,
    switches: u64,
    stalls: u64,
    stalled: Duration,
}

impl Playback {
    /// Notes that the first picture can be shown, `after` the start.
    pub const fn on_start(&mut self, after: Duration) {
        self.startup = Some(after);
    }

    /// Notes that a segment with this media rate is complete, `stalled` after playback stopped.
    pub fn on_segment(&mut self, rate: Rate, stalled: Duration) {
        self.segments += 1;
        self.bps += rate.as_bps();
        self.switches += u64::from(self.last.replace(rate).is_some_and(|last| last != rate));
        self.stalls += u64::from(!stalled.is_zero());
        self.stalled = self.stalled + stalled;
    }

    /// The figures for the summary.
    pub fn figures(&self) -> result::Video {
        result::Video {
            segments: self.segments,
            media_rate_bps: (self.segments > 0).then(|| self.bps as f64 / self.segments as f64),
            switches: self.switches,
            startup_ms: self.startup.map(Duration::as_millis_f64),
            stalls: self.stalls,
            stalled_ms: self.stalled.as_millis_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_counts_switches_and_stalls() {
        let mut playback = Playback::default();
        let (low, high) = (Rate::from_mbps(1), Rate::from_mbps(3));
        for (rate, stalled) in [(low, 0), (high, 0), (high, 250), (low, 0)] {
            playback.on_segment(rate, Duration::from_millis(stalled));
        }
        let figures = playback.figures();
        assert_eq!(figures.media_rate_bps, Some(2e6));
        assert_eq!(
            (figures.switches, figures.stalls, figures.stalled_ms),
            (2, 1, 250.0)
        );
    }
}
