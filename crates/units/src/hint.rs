//! A hint to the compiler.

/// Says that the branch that calls it is rarely taken, so that the usual way needs no jump. What
/// [`core::hint::cold_path`] does since Rust 1.95, for the older Rust that this project asks for.
#[cold]
#[inline]
pub const fn cold_path() {}
