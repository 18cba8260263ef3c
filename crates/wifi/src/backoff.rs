//! Binary exponential back-off (IEEE 802.11-2020 §10.3.3).

use crate::access::Contending;
use crate::random::Stream;

/// The contention window of one category of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Backoff {
    min: u32,
    max: u32,
    window: u32,
}

impl Backoff {
    pub(crate) const fn new(contending: &Contending) -> Self {
        Self {
            min: contending.cw_min,
            max: contending.cw_max,
            window: contending.cw_min,
        }
    }

    /// The slots to wait for: uniform from 0 to CW.
    pub(crate) fn draw(&self, random: &mut Stream) -> u32 {
        random.up_to(self.window)
    }

    /// A frame was not answered: CW becomes 2 · (CW + 1) - 1, at most CWmax.
    pub(crate) fn widen(&mut self) {
        self.window = (2 * self.window + 1).min(self.max).max(self.min);
    }

    /// A frame was answered, or was dropped: CW becomes CWmin.
    pub(crate) const fn reset(&mut self) {
        self.window = self.min;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use sojourn_units::Duration;

    use super::*;
    use crate::random::Purpose;

    const DCF: Contending = Contending {
        aifs_slots: 2,
        cw_min: 15,
        cw_max: 1023,
        txop: Duration::ZERO,
    };

    #[test]
    fn the_window_doubles_to_its_maximum_and_back() {
        let mut backoff = Backoff::new(&DCF);
        let windows: Vec<u32> = (0..8)
            .map(|_| {
                let window = backoff.window;
                backoff.widen();
                window
            })
            .collect();
        assert_eq!(windows, [15, 31, 63, 127, 255, 511, 1023, 1023]);
        backoff.reset();
        assert_eq!(backoff.window, 15);
    }

    #[test]
    fn draws_are_uniform_over_the_window() {
        let backoff = Backoff::new(&DCF);
        let mut random = Stream::new(1, Purpose::Backoff, 0);
        let mut seen = [0_u32; 16];
        for _ in 0..160_000 {
            seen[backoff.draw(&mut random) as usize] += 1;
        }
        // 10000 each, with a standard deviation of 97.
        assert!(
            seen.iter().all(|&count| count.abs_diff(10_000) < 500),
            "{seen:?}"
        );
    }
}
