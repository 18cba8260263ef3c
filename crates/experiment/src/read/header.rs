//! `[experiment]`: how long and how often to run.

use sojourn_units::Duration;

use crate::error::ReadError;
use crate::forms::{Maybe, Span, Text, Whole, Word};
use crate::keys::{TableOf, keys};
use crate::model::{Kernel, Ties};
use crate::section::Section;

keys! {
    /// The keys of `[experiment]`.
    struct Header {
        /// Name of the experiment in results.
        name: Option<String> = Maybe(Text), Words("the file's name without its extension");
        /// Duration of each run, in simulated or real time.
        duration: Duration = Span::AboveZero, Required;
        /// Time at the start that steady-state statistics omit.
        warmup: Duration = Span::Any, Is("0 s");
        /// Independent runs per queue: seeds seed, seed + 1, …
        repeat: u32 = Whole { from: 1, to: 100_000 }, Is("1");
        /// The seed of the first run.
        seed: u64 = SEED, Is("1");
        /// Version of Linux whose TCP is simulated. From 6.12 on the receive window begins as large as its buffer allows, and
        /// lost SYNs are retransmitted sooner. On the Linux backend the running kernel decides.
        kernel: Kernel = KERNEL, Is(r#""6.1""#);
        /// Which is first when a packet arrives at a queue at the very instant at which another leaves it: "arrivals", as on a
        /// machine, whose timers are late by microseconds, or "departures", as on a kernel in virtual time (User-Mode Linux).
        /// On the Linux backend the running kernel decides.
        ties: Ties = TIES, Is(r#""arrivals""#);
    }
    ; check check
}

/// Tables store seeds as signed 64-bit integers, so seed + repeat must fit.
const SEED: Whole<u64> = Whole {
    from: 0,
    to: 1 << 62,
};

const KERNEL: Word<Kernel> = Word(&[
    (Kernel::V6_1.name(), Kernel::V6_1),
    (Kernel::V6_12.name(), Kernel::V6_12),
    (Kernel::V6_18.name(), Kernel::V6_18),
    (Kernel::V7_3.name(), Kernel::V7_3),
]);

const TIES: Word<Ties> = Word(&[
    ("arrivals", Ties::Arrivals),
    ("departures", Ties::Departures),
]);

/// The section.
pub(crate) const HEADER: TableOf<Header> = TableOf::new(
    "[experiment]",
    "a table [experiment] with at least a duration",
);

fn check(header: &Header, section: &Section<'_>) -> Result<(), ReadError> {
    match section.given("warmup") {
        Some(warmup) if header.warmup >= header.duration => Err(warmup.refuse(format!(
            "below experiment.duration (\"{}\")",
            header.duration
        ))),
        _ => Ok(()),
    }
}
