//! The contention window CW, from which the slots of a back-off are drawn. It doubles after a failure (binary exponential
//! back-off, IEEE 802.11-2020 §10.3.3). The counter of these slots is in `backoff`.

use crate::access::Contending;
use crate::random::Stream;

/// The contention window of one category of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ContentionWindow {
    min: u32,
    max: u32,
    current: u32,
}

impl ContentionWindow {
    pub(crate) const fn new(contending: &Contending) -> Self {
        Self {
            min: contending.cw_min,
            max: contending.cw_max,
            current: contending.cw_min,
        }
    }

    /// Draws the slots of a back-off: uniform from 0 to CW.
    pub(crate) fn draw_slots(&self, random: &mut Stream) -> u32 {
        random.up_to(self.current)
    }

    /// A frame was not answered: CW becomes 2 · (CW + 1) - 1, at most CWmax.
    pub(crate) fn double(&mut self) {
        self.current = (2 * self.current + 1).min(self.max).max(self.min);
    }

    /// A frame was answered, or was dropped: CW becomes CWmin.
    pub(crate) const fn reset(&mut self) {
        self.current = self.min;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use sojourn_units::Duration;

    use super::*;
    use crate::random::{Purpose, stream};

    const DCF: Contending = Contending {
        aifs_slots: 2,
        cw_min: 15,
        cw_max: 1023,
        txop: Duration::ZERO,
    };

    #[test]
    fn the_window_doubles_to_its_maximum_and_back() {
        let mut window = ContentionWindow::new(&DCF);
        let windows: Vec<u32> = (0..8)
            .map(|_| {
                let current = window.current;
                window.double();
                current
            })
            .collect();
        assert_eq!(windows, [15, 31, 63, 127, 255, 511, 1023, 1023]);
        window.reset();
        assert_eq!(window.current, 15);
    }

    #[test]
    fn draws_are_uniform_over_the_window() {
        let window = ContentionWindow::new(&DCF);
        let mut random = stream(1, Purpose::Backoff, 0);
        let mut seen = [0_u32; 16];
        for _ in 0..160_000 {
            seen[window.draw_slots(&mut random) as usize] += 1;
        }
        // 10000 each, with a standard deviation of 97.
        assert!(
            seen.iter().all(|&count| count.abs_diff(10_000) < 500),
            "{seen:?}"
        );
    }
}
