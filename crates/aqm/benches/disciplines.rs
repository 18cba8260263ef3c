//! Nanoseconds per packet, enqueue and dequeue together, for every discipline in the catalogue.
//!
//! `cargo bench -p sojourn-aqm [NAME …]` prints one line per discipline:
//!
//! - calm: 50 packets queued, sojourn times of 60 us, of 1 flow and of 1000; only red (15 packets by default) and
//!   sfb with one flow (25) refuse part of that, which costs them more arrivals per packet
//! - busy: 200 packets queued, sojourn times above 100 ms, so that every algorithm acts all the time; of 1
//!   flow and of 1000. What is dropped is replaced at once and its cost counted.
//!
//! Goals: pfifo at most 15 ns, CoDel and PIE at most 25 ns, calm, on one core of a machine of 2020.

#[path = "../src/test_packet.rs"]
mod test_packet;

use std::hint::black_box;
use std::time::Instant;

use sojourn_aqm::{Catalogue, Discipline, Environment, Settings};
use sojourn_units::{Duration, Rate, Time};
use test_packet::{TestPacket, flow_key};

const PACKETS: u64 = 200_000;
const REPEATS: usize = 7;

struct Load {
    level: u64,
    per_packet: Duration,
    flows: u64,
}

/// Nanoseconds per packet fetched, the median of some runs after a first one.
fn measure(discipline: &Discipline<TestPacket>, load: &Load) -> f64 {
    let mut qdisc = (discipline.build)(&Settings::new(Rate::from_mbps(10_000), 1514))
        .expect("defaults are valid");
    let mut env = Environment::new(1);
    let mut now = Time::ZERO;
    let mut id = 0;
    let mut run = || {
        let begin = Instant::now();
        for _ in 0..PACKETS {
            // Disciplines that drop every arrival must not keep us here.
            for _ in 0..4 {
                if qdisc.packets() >= load.level {
                    break;
                }
                id += 1;
                let packet = TestPacket {
                    flow: flow_key((id % load.flows) as u32),
                    ..TestPacket::new(id)
                };
                qdisc.enqueue(packet, now, &mut env);
            }
            now += load.per_packet;
            if qdisc.next_timer().is_some_and(|due| due <= now) {
                qdisc.on_timer(now, &mut env);
            }
            black_box(qdisc.dequeue(now, &mut env));
            if env.has_dropped() {
                env.take_dropped();
            }
        }
        begin.elapsed().as_secs_f64() * 1e9 / PACKETS as f64
    };
    run();
    let mut runs: Vec<f64> = (0..REPEATS).map(|_| run()).collect();
    runs.sort_by(f64::total_cmp);
    runs[REPEATS / 2]
}

fn main() {
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let calm = |flows| Load {
        level: 50,
        per_packet: Duration::from_nanos(1_200),
        flows,
    };
    let busy = |flows| Load {
        level: 200,
        per_packet: Duration::from_micros(1_200),
        flows,
    };
    println!("ns per packet        calm, 1   calm, 1000      busy, 1   busy, 1000 flows");
    for discipline in Catalogue::<TestPacket>::new().iter() {
        if !names.is_empty() && !names.iter().any(|name| name == discipline.name) {
            continue;
        }
        let [a, b, c, d] =
            [calm(1), calm(1000), busy(1), busy(1000)].map(|load| measure(discipline, &load));
        println!(
            "{:<16} {a:>11.1} {b:>12.1} {c:>12.1} {d:>12.1}",
            discipline.name
        );
    }
}
