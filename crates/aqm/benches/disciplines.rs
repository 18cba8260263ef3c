//! Nanoseconds per packet, enqueue and dequeue together, for every discipline in the catalogue.
//!
//! `cargo bench -p sojourn-aqm --bench disciplines -- [NAME …]` prints a row per discipline, the minimum of several
//! runs: calm and busy as in `load`, with 1 flow and with 1000. Red (15 packets by default) and sfb with one flow (25)
//! drop part of the calm load, which costs them more arrivals per packet.
//!
//! Goals, calm, on one core of a machine of 2020: pfifo at most 15 ns, CoDel and PIE at most 25 ns, and FQ-CoDel with
//! 1000 flows at most 60 ns.

mod load;

use std::time::Instant;

use load::{Load, Steady};
use sojourn_aqm::{Catalogue, Datagram, Discipline};

const PACKETS: u64 = 20_000;
const REPEATS: usize = 50;

/// Nanoseconds per packet fetched: the minimum of several runs after a first one, which is the run least disturbed by
/// other work on the machine.
fn measure(discipline: &Discipline<Datagram<u64>>, load: Load) -> f64 {
    let mut steady = Steady::new(discipline, load);
    steady.run(PACKETS);
    let run = || {
        let begin = Instant::now();
        steady.run(PACKETS);
        begin.elapsed().as_secs_f64() * 1e9 / PACKETS as f64
    };
    std::iter::repeat_with(run)
        .take(REPEATS)
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    println!("ns per packet        calm, 1   calm, 1000      busy, 1   busy, 1000 flows");
    for discipline in Catalogue::<Datagram<u64>>::new().iter() {
        if !names.is_empty() && !names.iter().any(|name| name == discipline.name) {
            continue;
        }
        let loads = [
            Load::calm(1),
            Load::calm(1000),
            Load::busy(1),
            Load::busy(1000),
        ];
        let [a, b, c, d] = loads.map(|load| measure(discipline, load));
        let name = discipline.name;
        println!("{name:<16} {a:>11.1} {b:>12.1} {c:>12.1} {d:>12.1}");
    }
}
