//! Arbitrary calls of the C ABI, from bytes by chance. `fuzz/` looks for worse ones.

mod play;

#[test]
fn any_calls_are_answered() {
    // Few under Miri, which takes a second for each.
    let rounds = if cfg!(miri) { 12 } else { 3000 };
    let mut state = 1_u64;
    for _ in 0..rounds {
        let bytes: Vec<u8> = (0..400)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        play::play(&bytes);
    }
}
