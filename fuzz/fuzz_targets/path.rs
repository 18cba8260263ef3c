//! Paths with impairments.
#![no_main]

#[path = "../../crates/path/tests/play/mod.rs"]
mod play;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| play::play(bytes));
