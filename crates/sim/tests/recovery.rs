//! A queue recovers from an overload. A link with a token bucket never polls an empty queue.

mod common;

#[test]
fn cobalt_lowers_its_probability_behind_a_token_bucket() {
    for burst in ["0 B", "1600 B"] {
        // A single run varies from 8.4 to 9.2.
        let seeds = 1..=4;
        let sum: f64 = seeds
            .clone()
            .map(|seed| {
                let run = &common::text(&format!(
                    "experiment = {{ duration = '60 s', warmup = '30 s', seed = {seed} }}\n\
                     link = {{ rate = '10 Mbit/s', burst = '{burst}', buffer = '50 packets' }}\n\
                     queue = [{{ aqm = 'cobalt' }}]\n\
                     traffic = [\n\
                     {{ kind = 'bulk', flows = 40, rtt = '50 ms', stop = '10 s' }},\n\
                     {{ kind = 'bulk', rtt = '50 ms' }},\n\
                     ]\n"
                ))[0];
                common::flow(run, 40).goodput_bps
            })
            .sum();
        let alone = sum / seeds.count() as f64;
        assert!(alone > 8.5e6, "burst {burst}: {alone} bit/s");
    }
}
