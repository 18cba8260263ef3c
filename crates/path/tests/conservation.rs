//! Any path, any impairments, any traffic: every packet is where it should be, once. `fuzz/` plays the same.

mod play;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_packet_is_delivered_dropped_lost_or_under_way(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        play::play(&bytes);
    }
}
