//! A hint to the compiler.

/// Marks the branch that calls it as rarely taken, so that the common path needs no jump. It replaces
/// [`core::hint::cold_path`] of Rust 1.95, because this project supports older versions.
#[cold]
#[inline]
pub const fn cold_path() {}
