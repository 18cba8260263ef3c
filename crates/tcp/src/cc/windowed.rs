//! A running maximum over a sliding window.

use std::collections::VecDeque;

/// The maximum of the samples of the last `span` ticks of a caller's clock (rounds, nanoseconds).
#[derive(Clone, Debug)]
pub(super) struct WindowedMax {
    span: u64,
    /// Candidates for the maximum, in falling order.
    candidates: VecDeque<(u64, u64)>,
}

impl WindowedMax {
    pub(super) const fn new(span: u64) -> Self {
        Self {
            span,
            candidates: VecDeque::new(),
        }
    }

    /// Adds a sample at tick `at`, which never decreases.
    pub(super) fn update(&mut self, value: u64, at: u64) {
        while self
            .candidates
            .back()
            .is_some_and(|(_, last)| *last <= value)
        {
            self.candidates.pop_back();
        }
        self.candidates.push_back((at, value));
        while self
            .candidates
            .front()
            .is_some_and(|(first, _)| at - first > self.span)
        {
            self.candidates.pop_front();
        }
    }

    /// The maximum; 0 without a sample.
    pub(super) fn get(&self) -> u64 {
        self.candidates.front().map_or(0, |(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_forgotten_after_its_window() {
        let mut max = WindowedMax::new(10);
        max.update(5, 0);
        max.update(3, 4);
        max.update(4, 6);
        assert_eq!(max.get(), 5);
        max.update(1, 10);
        assert_eq!(max.get(), 5); // ten ticks old: still in
        max.update(1, 11);
        assert_eq!(max.get(), 4); // the 3 of tick 4 was never the largest
        max.update(1, 17);
        assert_eq!(max.get(), 1);
    }
}
