//! A queue: its discipline and its capacity.

use sojourn_units::{Duration, Value};

/// The capacity of a queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Buffer {
    /// Packets of any size.
    Packets(u64),
    /// Bytes on the link.
    Bytes(u64),
    /// Multiples of the BDP: the first rate (of a trace: the mean) × the largest base RTT.
    Bdp(f64),
    /// What the link sends in this time at that rate.
    Time(Duration),
}

/// One arm of the comparison: a discipline with its parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// The discipline's name.
    pub aqm: String,
    /// The name in tables and plots, unique per arm. Default: the discipline's name, with the settings that distinguish
    /// it from other arms.
    pub label: String,
    /// The arm's own limit.
    pub limit: Option<Buffer>,
    /// The given keys, `ecn` included; each value has the key's kind.
    pub settings: Vec<(String, Value)>,
    /// Whether each class of the link has this discipline for itself; otherwise one queue is for all.
    pub classes: bool,
    /// The same arm in the reverse direction of links, if keys are given for it.
    pub up: Option<Box<Queue>>,
}
