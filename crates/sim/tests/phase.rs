//! Phases of timers: senders with the same period are mixed by jitter (Floyd and Jacobson 1992), and a queue's timer is in step
//! with none.

mod common;

use common::{flow, text};
use sojourn_experiment::{Source, network, read};
use sojourn_sim::{catalogue, names};
use sojourn_units::Duration;

/// The goodput of two senders in Mbit/s.
fn shares(link: &str, of_first: &str, of_second: &str) -> [f64; 2] {
    let run = text(&format!(
        "experiment = {{ duration = '20 s', warmup = '2 s' }}
        {link}
        [[queue]]
        aqm = 'pfifo'
        [[traffic]]
        kind = 'cbr'
        {of_first}
        [[traffic]]
        kind = 'cbr'
        {of_second}"
    ))
    .remove(0);
    [0, 1].map(|at| flow(&run, at).goodput_bps / 1e6)
}

const WIRED: &str = "link = { rate = '10 Mbit/s', buffer = '100 packets' }";
const EACH: &str = "rate = '8 Mbit/s'\nrtt = '20 ms'";

/// A drop-tail queue drops whoever comes second to a free place. Senders in phase are always the same.
#[test]
fn equal_senders_share_a_drop_tail_queue_equally() {
    for of_second in ["", "packet = '1440 B'"] {
        let second = format!("{EACH}\n{of_second}");
        let [a, b] = shares(WIRED, EACH, &second);
        assert!((a / b - 1.0).abs() < 0.1, "{a} and {b} Mbit/s");
    }
}

#[test]
fn without_jitter_they_stay_in_phase() {
    let exact = format!("{EACH}\njitter = '0 s'");
    let [a, b] = shares(WIRED, &exact, &exact);
    assert!(a > 7.9 && b < 1.8, "{a} and {b} Mbit/s");
}

/// Heusse et al., "Performance anomaly of 802.11b", 2003: both get the same rate, which the slow station sets.
#[test]
fn a_slow_station_slows_the_fast_one_down() {
    let cell = "[[link]]
        name = 'wifi'
        kind = 'wifi'
        standard = '802.11g'
        from = 'ap'
        to = ['fast', 'slow']
        station = { fast = { rate = '54 Mbit/s' }, slow = { rate = '6 Mbit/s' } }
        queueing = 'qdisc'";
    let to =
        |station: &str| format!("rate = '40 Mbit/s'\nrtt = '10 ms'\nfrom = 'ap'\nto = '{station}'");
    let [fast, slow] = shares(cell, &to("fast"), &to("slow"));
    assert!((fast / slow - 1.0).abs() < 0.1, "{fast} and {slow} Mbit/s");
}

/// Linux's PIE updates every 20 ms by default, at ticks of 4 ms: five phases.
#[test]
fn each_seed_has_its_own_phase_of_the_timer_of_linux_pie() {
    let text = "experiment = { duration = '10 s' }
        link = { rate = '10 Mbit/s' }
        queue = [{ aqm = 'pie', variant = 'linux' }]
        traffic = [{ kind = 'bulk', rtt = '20 ms' }]";
    let name = "test.toml";
    let plan = read(Source { name, text }, &[], &names()).unwrap();
    let spec = plan.specs().next().unwrap();
    let catalogue = catalogue();
    let first_update = |seed| {
        let links = network::links(&spec.experiment, 0, seed, &catalogue.disciplines).unwrap();
        links[0].0.next_timer().unwrap().as_nanos() / Duration::from_millis(4).as_nanos()
    };
    let phases: Vec<u64> = (1..=40).map(first_update).collect();
    assert_eq!(phases, (1..=40).map(first_update).collect::<Vec<_>>());
    for ticks in 1..=5 {
        let times = phases.iter().filter(|phase| **phase == ticks).count();
        assert!((2..=16).contains(&times), "{ticks} ticks: {times} of 40");
    }
}
