//! Measurements between the looks of several readers.

/// The readers of measurements; each sees the events since its own last look.
#[derive(Clone, Copy)]
pub enum Reader {
    /// The series that a run records.
    Series = 0,
    /// The caller that drives the run.
    Caller = 1,
}

/// The measurements since each [`Reader`] last looked.
#[derive(Clone, Copy, Default)]
pub struct Interval<T>([T; 2]);

impl<T: Copy + Default> Interval<T> {
    /// Adds the `latest` measurements for every reader, and takes those of `reader`.
    pub fn take(&mut self, latest: T, add: impl Fn(&mut T, T), reader: Reader) -> T {
        for interval in &mut self.0 {
            add(interval, latest);
        }
        std::mem::take(&mut self.0[reader as usize])
    }
}
