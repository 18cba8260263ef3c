//! Saturated stations: the medium is compared with Bianchi's model with a retry limit, and with a slot-by-slot simulation of
//! DCF.

#![expect(clippy::disallowed_methods, reason = "compared within a tolerance")]

mod cell;

use cell::{FULL, Seen, goodput, mode, saturate, station};
use sojourn_units::{Duration, Time, Way};
use sojourn_wifi::phy::{Mode, Standard, Timing};
use sojourn_wifi::{Cell, Medium, Protection, frames};

const PAYLOAD_BITS: f64 = 1500.0 * 8.0;
const RETRIES: i32 = 7;

/// Throughput in bit/s, and the probability that a transmission collides.
#[derive(Clone, Copy, Debug)]
struct Point {
    throughput: f64,
    collision: f64,
}

/// The durations of a successful exchange and of a collision, in µs without DIFS.
#[derive(Clone, Copy)]
struct Spans {
    success: f64,
    collision: f64,
}

fn airtime(timing: &Timing, mode: Mode, bytes: u32) -> f64 {
    timing.airtime(mode, bytes).as_micros() as f64
}

/// The durations, worked out from the lengths of the frames and not by the crate's `Plan`.
fn spans(cell: &Cell, mode: Mode, psdu: u32, rts: bool) -> Spans {
    let timing = &cell.timing;
    let sifs = timing.sifs.as_micros() as f64;
    let control = mode.response();
    let data = airtime(timing, mode, psdu);
    let ack = airtime(timing, control, frames::ACK);
    if rts {
        let (rts, cts) = (
            airtime(timing, control, frames::RTS),
            airtime(timing, control, frames::CTS),
        );
        Spans {
            success: rts + sifs + cts + sifs + data + sifs + ack,
            collision: rts,
        }
    } else {
        Spans {
            success: data + sifs + ack,
            collision: data,
        }
    }
}

/// Bianchi's model (2000). `retries`: after so many transmissions a frame is dropped (Wu et al. 2002); `None`: never.
/// A station that has just sent may send again in the very first slot. The others cannot, since a busy slot does not count for
/// them. The probability of this is B = 1 / (CWmin + 1), as in ns-3's reference tables (Tinnirello, Bianchi and Xiao 2010).
fn bianchi(
    cell: &Cell,
    stations: u32,
    spans: Spans,
    wait_after_collision: f64,
    retries: Option<i32>,
) -> Point {
    let window = f64::from(cell.timing.cw_min + 1);
    let stages = (f64::from(cell.timing.cw_max + 1) / window).log2().round() as i32;
    let tau_of = |p: f64| {
        let stage = |i: i32| p.powi(i);
        let slots = |i: i32| (window * 2_f64.powi(i.min(stages)) + 1.0) / 2.0;
        match retries {
            Some(retries) => {
                (0..retries).map(stage).sum::<f64>()
                    / (0..retries).map(|i| stage(i) * slots(i)).sum::<f64>()
            }
            None => {
                let sum: f64 = (0..stages).map(|i| (2.0 * p).powi(i)).sum();
                2.0 / (1.0 + window + p * window * sum)
            }
        }
    };
    let others = f64::from(stations) - 1.0;
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..200 {
        let tau = (low + high) / 2.0;
        let p = 1.0 - (1.0 - tau).powf(others);
        if tau_of(p) > tau {
            low = tau;
        } else {
            high = tau;
        }
    }
    let tau = (low + high) / 2.0;
    let n = f64::from(stations);
    let any = 1.0 - (1.0 - tau).powf(n);
    let one = n * tau * (1.0 - tau).powf(n - 1.0) / any;
    let slot = cell.timing.slot.as_micros() as f64;
    let difs = cell.timing.difs().as_micros() as f64;
    let again = 1.0 / window;
    let success = (spans.success + difs) / (1.0 - again) + slot;
    let collision = spans.collision + wait_after_collision + difs;
    let payload = PAYLOAD_BITS / (1.0 - again);
    let cycle = (1.0 - any) * slot + any * one * success + any * (1.0 - one) * collision;
    Point {
        throughput: any * one * payload / cycle * 1e6,
        collision: 1.0 - (1.0 - tau).powf(others),
    }
}

/// DCF in steps of a microsecond, by the standard's rules (IEEE 802.11-2020 §10.3). It uses nothing of the crate but its
/// constants.
fn slot_by_slot(cell: &Cell, stations: u32, spans: Spans, micros: u64, seed: u64) -> Point {
    struct Sender {
        window: u64,
        slots: u64,
        tries: i32,
        /// When its first slot begins: DIFS or EIFS after the medium has become idle.
        from: u64,
    }
    let timing = &cell.timing;
    let (slot, difs) = (timing.slot.as_micros(), timing.difs().as_micros());
    let timeout = timing.response_timeout().as_micros();
    let eifs =
        timing.sifs.as_micros() + timing.airtime(timing.lowest, frames::ACK).as_micros() + difs;
    let (cw_min, cw_max) = (u64::from(timing.cw_min), u64::from(timing.cw_max));
    // Its own generator, SplitMix64, shares no draw with the crate.
    let mut state = seed;
    let mut draw = |window: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 20) % (window + 1)
    };
    let mut senders: Vec<Sender> = (0..stations)
        .map(|_| Sender {
            window: cw_min,
            slots: draw(cw_min),
            tries: 0,
            from: difs,
        })
        .collect();
    let (mut delivered, mut sent, mut collided) = (0_u64, 0_u64, 0_u64);
    let mut now = 0;
    while now < micros {
        let mut sending = Vec::new();
        for (number, sender) in senders.iter_mut().enumerate() {
            if now < sender.from || (now - sender.from) % slot != 0 {
                continue;
            }
            // A slot begins. The slot before it, if there was one, was idle.
            if now > sender.from {
                sender.slots -= 1;
            }
            if sender.slots == 0 {
                sending.push(number);
            }
        }
        if sending.is_empty() {
            now += 1;
            continue;
        }
        sent += sending.len() as u64;
        let success = sending.len() == 1;
        let busy = if success {
            spans.success
        } else {
            spans.collision
        } as u64;
        let end = now + busy;
        for (number, sender) in senders.iter_mut().enumerate() {
            let is_sending = sending.contains(&number);
            sender.from = match (success, is_sending) {
                (true, _) => end + difs,
                (false, true) => end + timeout + difs,
                (false, false) => end + eifs,
            };
            if !is_sending {
                continue;
            }
            sender.tries += 1;
            if success || sender.tries == RETRIES {
                sender.tries = 0;
                sender.window = cw_min;
            } else {
                sender.window = (2 * sender.window + 1).min(cw_max);
            }
            sender.slots = draw(sender.window);
        }
        if success {
            delivered += 1;
        } else {
            collided += sending.len() as u64;
        }
        now = end;
    }
    Point {
        throughput: delivered as f64 * PAYLOAD_BITS / now as f64 * 1e6,
        collision: collided as f64 / sent as f64,
    }
}

/// The crate's medium, with stations that send to the access point.
fn simulated(cell: &Cell, stations: u16, mode: Mode, rts: bool, until: Time) -> Point {
    let limit = if rts { 0 } else { u32::MAX };
    let cell = Cell {
        protection: Protection::RtsAbove(limit),
        ..cell.clone()
    };
    let all = (0..stations).map(|_| station(mode)).collect();
    let mut medium = Medium::new(cell, cell::ring(), all);
    let loads: Vec<_> = (0..stations)
        .map(|number| (number, Way::Up, 3, FULL, 0))
        .collect();
    let mut seen = Seen::default();
    let received = saturate(&mut medium, &loads, until, &mut seen);
    Point {
        throughput: goodput(&received, until),
        collision: seen.collided as f64 / seen.transmissions as f64,
    }
}

fn off(one: f64, other: f64) -> f64 {
    one / other - 1.0
}

/// Standard, rate in kbit/s, and simulated seconds, which give about 60000 frames.
const CASES: [(Standard, u64, u64); 2] = [(Standard::B, 11_000, 100), (Standard::G, 54_000, 25)];

const STATIONS: [u16; 6] = [1, 2, 5, 10, 20, 50];

fn cases() -> impl Iterator<Item = (Cell, Mode, u64, bool, u16)> {
    CASES.into_iter().flat_map(|(standard, kbps, seconds)| {
        [false, true].into_iter().flat_map(move |rts| {
            STATIONS.into_iter().map(move |stations| {
                let cell = Cell::new(standard);
                let mode = mode(&cell, kbps);
                (cell, mode, seconds, rts, stations)
            })
        })
    })
}

#[test]
fn the_model_agrees_with_the_published_tables() {
    // ns-3, src/wifi/examples/reference: 802.11b at 11 Mbit/s and 802.11g at 54 Mbit/s, 1500 bytes, no retry limit.
    let stations = [5, 10, 20, 50];
    let published_b = [6.3821, 6.0269, 5.5765, 4.9103];
    let published_g = [29.2861, 27.3763, 25.3325, 22.4162];
    for (standard, kbps, psdu, published) in [
        (Standard::B, 11_000, 1536, published_b),
        (Standard::G, 54_000, 1534, published_g),
    ] {
        let cell = Cell::new(standard);
        let mode = mode(&cell, kbps);
        let spans = spans(&cell, mode, psdu, false);
        // In these tables EIFS assumes an acknowledgement at the rate at which it is sent, not at the lowest rate.
        let wait = cell.timing.sifs.as_micros() as f64
            + airtime(&cell.timing, mode.response(), frames::ACK);
        for (number, expected) in stations.into_iter().zip(published) {
            let model = bianchi(&cell, number, spans, wait, None).throughput / 1e6;
            assert!(
                off(model, expected).abs() < 1e-3,
                "{standard:?} {number}: {model} for {expected}"
            );
        }
    }
}

#[test]
fn throughput_and_collisions_agree_with_dcf_slot_by_slot_and_with_bianchi() {
    for (cell, mode, seconds, rts, stations) in cases() {
        let spans = spans(&cell, mode, 1536, rts);
        let exact = slot_by_slot(&cell, stations.into(), spans, seconds * 1_000_000, 99);
        let wait = cell.timing.eifs_extra().as_micros() as f64;
        let model = bianchi(&cell, stations.into(), spans, wait, Some(RETRIES));
        let ours = simulated(&cell, stations, mode, rts, Time::from_secs(seconds));
        let message =
            format!("{mode:?} rts {rts} n {stations}: {ours:?}, slot by slot {exact:?}, {model:?}");
        println!(
            "{message} {:+.4} {:+.4} bianchi {:+.4} {:+.4}",
            off(ours.throughput, exact.throughput),
            ours.collision - exact.collision,
            off(ours.throughput, model.throughput),
            ours.collision - model.collision
        );
        assert!(
            off(ours.throughput, exact.throughput).abs() < 0.01,
            "{message}"
        );
        assert!((ours.collision - exact.collision).abs() < 0.01, "{message}");
        assert!(
            off(ours.throughput, model.throughput).abs() < 0.03,
            "{message}"
        );
    }
}

#[test]
fn throughput_of_one_station_agrees_with_the_arithmetic() {
    // A single station waits for DIFS and on average CWmin / 2 slots. Then come data, SIFS and ACK. In µs, for 1500 bytes of
    // IP:
    // 802.11b at 11: 50 + 15.5 · 20 + 1310 + 10 + 248 = 1928; at 1: 50 + 310 + 12480 + 10 + 304 = 13154.
    // 802.11g at 54: 28 + 7.5 · 9 + 254 + 10 + 34 = 393.5; at 6: 28 + 67.5 + 2078 + 10 + 50 = 2233.5.
    for (standard, kbps, micros) in [
        (Standard::B, 11_000, 1928.0),
        (Standard::B, 1_000, 13_154.0),
        (Standard::G, 54_000, 393.5),
        (Standard::G, 6_000, 2_233.5),
    ] {
        let cell = Cell::new(standard);
        let until = Time::ZERO + Duration::from_millis((micros * 20.0) as u64);
        let ours = simulated(&cell, 1, mode(&cell, kbps), false, until);
        assert_eq!(ours.collision, 0.0);
        assert!(
            off(ours.throughput, PAYLOAD_BITS / micros * 1e6).abs() < 0.003,
            "{ours:?} {micros}"
        );
    }
}
