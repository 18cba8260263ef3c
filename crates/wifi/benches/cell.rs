//! The time per transmission and per packet, by the number of stations: `cargo bench -p sojourn-wifi`. It asserts nothing.

#[path = "../tests/cell/mod.rs"]
mod cell;

use std::time::Instant;

use cell::{FULL, Seen, ring, saturate, station};
use sojourn_units::{Time, Way};
use sojourn_wifi::phy::{Guard, Standard, Width};
use sojourn_wifi::{Cell, Medium, modes};

fn main() {
    for standard in [Standard::G, Standard::N] {
        for way in [Way::Up, Way::Down] {
            for stations in [1, 2, 5, 10, 20, 50] {
                let mode = *modes(standard, Width::Mhz20, 1, Guard::Long)
                    .last()
                    .expect("modes");
                let all = (0..stations).map(|_| station(mode)).collect();
                let mut medium = Medium::new(Cell::new(standard), ring(), all);
                let loads: Vec<_> = (0..stations)
                    .map(|number| (number, way, 40, FULL, 0))
                    .collect();
                let mut seen = Seen::default();
                let begin = Instant::now();
                let received = saturate(&mut medium, &loads, Time::from_secs(100), &mut seen);
                let nanos = begin.elapsed().as_nanos() as f64;
                println!(
                    "{standard:?} {way:?} {stations:2} stations: {:6.0} ns per transmission, {:6.0} per packet",
                    nanos / seen.transmissions as f64,
                    nanos / received.len() as f64
                );
            }
        }
    }
}
