//! The order of simultaneous events.

mod common;

use std::collections::BTreeSet;

use common::{column, runs};

const LIMIT: usize = 20;

/// In slow start two segments arrive at each instant at which a packet leaves, because a departing packet triggered an
/// acknowledgement one round trip earlier. When the queue is full, the departure must not make room for the first of
/// them.
#[test]
fn an_arrival_comes_before_a_departure_at_the_same_instant() {
    assert_eq!(queued_when_dropping("arrivals"), LIMIT - 1);
}

/// As on a kernel in virtual time: the departure makes room for the first of the two.
#[test]
fn a_departure_comes_first_if_asked() {
    assert_eq!(queued_when_dropping("departures"), LIMIT);
}

/// Packets that are queued after the instants at which one is dropped and another leaves; it is the same at all.
fn queued_when_dropping(ties: &str) -> usize {
    let run = runs(
        &format!("1 s', ties = '{ties}"),
        "10 Mbit/s', burst = '0 B",
        &format!("{{ aqm = 'pfifo', limit = '{LIMIT} packets' }}"),
        "kind = 'bulk'\nrtt = '100 ms'",
        "[record]\npackets = true",
    )
    .remove(0);
    let packets = run.packets.as_ref().expect("recorded");
    let [left, waited, fate] = ["time_ns", "sojourn_ns", "fate"].map(|name| column(packets, name));
    let accepted: Vec<_> = (0..left.len()).filter(|&n| fate[n] < 2.0).collect();
    let queued_after = |now: f64| {
        let waits = |&&n: &&usize| left[n] - waited[n] <= now && left[n] > now;
        accepted.iter().filter(waits).count()
    };
    let queued: BTreeSet<_> = (0..left.len())
        .filter(|&n| fate[n] >= 2.0)
        .map(|n| left[n])
        .filter(|now| accepted.iter().any(|&n| left[n] == *now))
        .map(queued_after)
        .collect();
    assert_eq!(queued.len(), 1, "{queued:?}");
    queued.into_iter().next().expect("one")
}

/// As on Linux: a host acknowledges a segment before the application that it wakes acts, a SYN-ACK before the request.
/// And SYNs go before a request written at the same instant; otherwise its response would fill the queue before the SYN-ACKs.
#[test]
fn a_host_answers_before_its_application_acts() {
    let run = runs(
        "1 s",
        "10 Mbit/s', up = { rate = '1 Mbit/s' }, burst = '0 B",
        "{ aqm = 'pfifo' }",
        "kind = 'web'\nrtt = '100 ms'\nobjects = 7\nparallel = 3\nsize = '1 kB'",
        "[record]\npackets = true",
    )
    .remove(0);
    let packets = run.packets.as_ref().expect("recorded");
    let [direction, bytes] = ["direction", "bytes"].map(|name| column(packets, name));
    let going = |way: f64| -> Vec<usize> {
        (0..bytes.len())
            .filter(|&n| direction[n] == way)
            .map(|n| bytes[n] as usize)
            .collect()
    };
    let (syn, acknowledgement, request, object) = (74, 66, 466, 1066);
    assert_eq!(
        going(1.0)[..8],
        [
            syn,
            acknowledgement,
            request,
            acknowledgement,
            syn,
            syn,
            request,
            acknowledgement
        ]
    );
    assert_eq!(going(0.0)[..3], [syn, acknowledgement, object]);
}
