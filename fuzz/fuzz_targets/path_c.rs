//! The C ABI of paths.
#![no_main]

#[path = "../../crates/path-c/tests/play/mod.rs"]
mod play;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| play::play(bytes));
