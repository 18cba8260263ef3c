//! Throughput of one station against the timing in the standards, computed by hand.

mod common;

use common::text;

/// Times of a standard's frames, in µs.
struct Timing {
    link: &'static str,
    /// DIFS, or AIFS of best effort.
    wait: f64,
    slot: f64,
    /// The first contention window.
    window: usize,
    /// Whether it uses EDCA, as 802.11n and later do.
    edca: bool,
    /// A full packet (1500 bytes of IP), SIFS and the MAC acknowledgement.
    data: f64,
    /// The same for a TCP acknowledgement (52 bytes of IP).
    ack: f64,
}

/// Bytes that an MPDU adds to a packet: 8 of LLC and 28 of MAC header and FCS; from 802.11n on also 2 for QoS and 16
/// for CCMP.
const TIMINGS: [Timing; 6] = [
    // 11 Mbit/s, long preamble of 192 µs, acknowledgement of 14 bytes at 2 Mbit/s: 248. SIFS 10, DIFS 50.
    // 1536 bytes: 1117.1, so 1118 µs; 88 bytes: 64.
    Timing {
        link: "standard = '802.11b'\nstation = { near = { rate = '11 Mbit/s' } }",
        wait: 50.0,
        slot: 20.0,
        window: 31,
        edca: false,
        data: 192.0 + 1118.0 + 10.0 + 248.0,
        ack: 192.0 + 64.0 + 10.0 + 248.0,
    },
    // 1 Mbit/s, acknowledgement at 1 Mbit/s: 304.
    Timing {
        link: "standard = '802.11b'\nstation = { near = { rate = '1 Mbit/s' } }",
        wait: 50.0,
        slot: 20.0,
        window: 31,
        edca: false,
        data: 192.0 + 12_288.0 + 10.0 + 304.0,
        ack: 192.0 + 704.0 + 10.0 + 304.0,
    },
    // 54 Mbit/s: 216 bits per symbol of 4 µs, 22 more bits, 20 µs before and 6 of silence behind. 12310 bits: 57 symbols; 726: 4.
    // Acknowledgement at 24 Mbit/s: 28 + 6. SIFS 10, DIFS 28.
    Timing {
        link: "standard = '802.11g'\nstation = { near = { rate = '54 Mbit/s' } }",
        wait: 28.0,
        slot: 9.0,
        window: 15,
        edca: false,
        data: 20.0 + 57.0 * 4.0 + 6.0 + 10.0 + 34.0,
        ack: 20.0 + 4.0 * 4.0 + 6.0 + 10.0 + 34.0,
    },
    // 6 Mbit/s: 24 bits per symbol; acknowledgement at 6 Mbit/s: 20 + 6 · 4 + 6 = 50.
    Timing {
        link: "standard = '802.11g'\nstation = { near = { rate = '6 Mbit/s' } }",
        wait: 28.0,
        slot: 9.0,
        window: 15,
        edca: false,
        data: 20.0 + 513.0 * 4.0 + 6.0 + 10.0 + 50.0,
        ack: 20.0 + 31.0 * 4.0 + 6.0 + 10.0 + 50.0,
    },
    // 802.11n at 2.4 GHz, MCS 7: 260 bits per symbol, 36 µs before. 1554 bytes: 48 symbols; 106 bytes: 4. AIFS 10 + 3 · 9.
    Timing {
        link: "standard = '802.11n'\nstation = { near = { rate = '65 Mbit/s' } }",
        wait: 37.0,
        slot: 9.0,
        window: 15,
        edca: true,
        data: 36.0 + 48.0 * 4.0 + 6.0 + 10.0 + 34.0,
        ack: 36.0 + 4.0 * 4.0 + 6.0 + 10.0 + 34.0,
    },
    // 802.11ac at 5 GHz, 80 MHz, MCS 7: 1170 bits per symbol, 40 µs before, a delimiter of 4 bytes in every frame. 1558 bytes: 11
    // symbols; 110: 1. SIFS 16, acknowledgement 28. AIFS 16 + 3 · 9.
    Timing {
        link: "standard = '802.11ac'\nwidth = '80 MHz'\nstation = { near = { rate = '292.5 Mbit/s' } }",
        wait: 43.0,
        slot: 9.0,
        window: 15,
        edca: true,
        data: 40.0 + 11.0 * 4.0 + 16.0 + 28.0,
        ack: 40.0 + 4.0 + 16.0 + 28.0,
    },
];

fn goodput(timing: &Timing, queueing: &str, traffic: &str) -> f64 {
    let run = text(&format!(
        "experiment = {{ duration = '12 s', warmup = '1 s' }}\nqueue = [{{ aqm = 'pfifo', limit = '100 packets' }}]\n\
         [[link]]\nkind = 'wifi'\nname = 'wifi'\nfrom = 'ap'\nto = 'near'\nqueueing = '{queueing}'\n{}\n\
         [[traffic]]\nfrom = 'ap'\nto = 'near'\n{traffic}\n",
        timing.link
    ));
    run[0].flows[0].goodput_bps
}

/// The mean number of back-off slots before a frame where two nodes send in turn, each as soon as it has received.
/// After sending, a node draws a back-off that counts down while the other node waits for its own. If it expires in
/// that time, the next frame, which is queued while the other node still sends, draws a new back-off; otherwise it
/// waits for the rest. `begun`: with EDCA a slot counts when it begins, including the slot in which the other node
/// begins to send (IEEE 802.11-2020 §10.23.2.4).
fn slots_in_turn(window: usize, begun: usize) -> f64 {
    let draws = (window + 1) as f64;
    let mut chance = vec![1.0 / draws; window + 1];
    for _ in 0..200 {
        let mut next = vec![0.0; window + 1];
        for (waited, p) in chance.iter().enumerate() {
            for drawn in 0..=window {
                let p = p / draws;
                match drawn.checked_sub(waited + begun) {
                    None | Some(0) => next.iter_mut().for_each(|chance| *chance += p / draws),
                    Some(rest) => next[rest] += p,
                }
            }
        }
        chance = next;
    }
    chance
        .iter()
        .enumerate()
        .map(|(slots, p)| slots as f64 * p)
        .sum()
}

/// One segment at a time: data and acknowledgement alternate, so there is no contention. The receiver answers within a
/// microsecond, while its MAC is still sending the acknowledgement.
#[test]
fn tcp_throughput_follows_from_its_frame_times() {
    for timing in &TIMINGS {
        let slots = slots_in_turn(timing.window, timing.edca.into());
        let cycle = timing.data + timing.ack + 2.0 * (timing.wait + slots * timing.slot);
        let expected = 1448.0 * 8.0 / cycle * 1e6;
        for queueing in ["qdisc", "mac80211"] {
            let tcp = "kind = 'bulk'\nrtt = '1 us'\nwindow = '1448 B'\nack_every = 1";
            let measured = goodput(timing, queueing, tcp);
            let off = measured / expected - 1.0;
            assert!(
                off.abs() < 0.005,
                "{} {queueing}: {measured:.0} of {expected:.0}, off by {off:.4}",
                timing.link
            );
        }
    }
}

/// There is always another datagram: half the window of back-off before each. Without aggregation.
#[test]
fn udp_throughput_follows_from_its_frame_times() {
    for timing in TIMINGS.iter().filter(|timing| !timing.edca) {
        let cycle = timing.wait + timing.window as f64 / 2.0 * timing.slot + timing.data;
        let expected = 1472.0 * 8.0 / cycle * 1e6;
        let udp = "kind = 'cbr'\nrtt = '1 ms'\nrate = '50 Mbit/s'\npacket = '1472 B'";
        let measured = goodput(timing, "qdisc", udp);
        let off = measured / expected - 1.0;
        assert!(
            off.abs() < 0.005,
            "{}: {measured:.0} of {expected:.0}, off by {off:.4}",
            timing.link
        );
    }
}
