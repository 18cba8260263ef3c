//! A queue recovers from an overload. A link with a token bucket never polls an empty queue.

mod common;

#[test]
fn cobalt_lowers_its_probability_behind_a_token_bucket() {
    for burst in ["0 B", "1600 B"] {
        let run = &common::text(&format!(
            "experiment = {{ duration = '60 s', warmup = '30 s' }}\n\
             link = {{ rate = '10 Mbit/s', burst = '{burst}', buffer = '50 packets' }}\n\
             queue = [{{ aqm = 'cobalt' }}]\n\
             traffic = [\n\
             {{ kind = 'bulk', flows = 40, rtt = '50 ms', stop = '10 s' }},\n\
             {{ kind = 'bulk', rtt = '50 ms' }},\n\
             ]\n"
        ))[0];
        let alone = common::flow(run, 40).goodput_bps;
        assert!(alone > 8.5e6, "burst {burst}: {alone} bit/s");
    }
}
