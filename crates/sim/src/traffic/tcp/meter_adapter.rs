//! Passes an application's events to the flow's meter.

use sojourn_measure::meter::Meter;
use sojourn_units::{Duration, Rate, Time};

/// A meter as the application sees it.
pub struct MeterAdapter<'m>(pub &'m mut Meter);

impl sojourn_traffic::Meter for MeterAdapter<'_> {
    fn completed(&mut self, after: Duration, now: Time) {
        self.0.completed(after, now);
    }

    fn page_loaded(&mut self, after: Duration, now: Time) {
        self.0.page_loaded(after, now);
    }

    fn playing_began(&mut self, after: Duration) {
        self.0.playing_began(after);
    }

    fn segment(&mut self, rate: Rate, stalled: Duration) {
        self.0.segment(rate, stalled);
    }
}
