//! Drives the family `fq` with arbitrary settings and traffic.
#![no_main]

#[path = "../../crates/aqm/tests/drive/arbitrary.rs"]
mod arbitrary;
#[path = "../../crates/aqm/tests/drive/mod.rs"]
mod drive;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(error) = arbitrary::drive("fq", data) {
        panic!("{error}");
    }
});
