//! Random streams: one per purpose and number of node or link.

pub(crate) use sojourn_path::random::Stream;

/// What a stream is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A node's back-off.
    Backoff = 1,
    /// Which of a link's frames are received.
    Reception = 2,
    /// How a link's signal fades.
    Fading = 3,
    /// Which rates a link probes.
    Probing = 4,
    /// Random decisions of a node's queue disciplines.
    Queue = 5,
}

/// The seed of a stream, from the seed of the run.
pub(crate) fn seed(run: u64, purpose: Purpose, number: usize) -> u64 {
    sojourn_path::random::seed(run, purpose as u8, number)
}

/// The stream of a purpose.
pub(crate) fn stream(run: u64, purpose: Purpose, number: usize) -> Stream {
    Stream::new(seed(run, purpose, number))
}
