//! A hint to the compiler.

/// Marks the branch that calls it as rarely taken, so that the common path needs no jump. It replaces
/// [`core::hint::cold_path`] of Rust 1.95, because this project supports older versions.
///
/// Measured by callgrind, of 2,200 instructions per data packet: without its calls in `crates/tcp` 1 to 2 more, without
/// those in `path`, `sim` and `units` 28 more.
#[cold]
#[inline]
pub const fn cold_path() {}
