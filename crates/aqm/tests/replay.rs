//! Disciplines against recordings of a real Linux 6.1 queue, packet by packet.
//!
//! `data/NAME.txt.gz` holds every enqueue and dequeue of a run over an HTB class of 10 Mbit/s, all frames of
//! 1514 bytes: `codel-*` under `codel`, `pie-udp` under `pie`, `pie-cubic4` under `pie target 20ms
//! tupdate 30ms`. A packet refused on arrival left no row.

use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use sojourn_aqm::pie::{self, Pie};
use sojourn_aqm::replay::{self, Event, Recorded};
use sojourn_aqm::{Catalogue, Settings};
use sojourn_units::{Duration, Kind, Rate, Time, Value};

const FRAME: u32 = 1514;

fn recording(name: &str) -> Vec<Event> {
    let path = format!("{}/tests/data/{name}.txt.gz", env!("CARGO_MANIFEST_DIR"));
    BufReader::new(GzDecoder::new(File::open(path).unwrap()))
        .lines()
        .map(|line| {
            let line = line.unwrap();
            let mut fields = line.split_ascii_whitespace();
            let kind = fields.next().unwrap();
            let mut number = || fields.next().unwrap().parse().unwrap();
            let (id, t_us) = (number(), number());
            match kind {
                "E" => Event::Enqueue {
                    id,
                    t_us,
                    bytes: FRAME,
                },
                "D" => Event::Dequeue { id, t_us },
                other => panic!("row {other}"),
            }
        })
        .collect()
}

fn settings(keys: &[(&str, Value)]) -> Settings {
    let mut settings = Settings::new(Rate::from_mbps(10), FRAME);
    settings.values = keys
        .iter()
        .map(|(key, value)| ((*key).into(), value.clone()))
        .collect();
    settings
}

fn replayed(name: &str, aqm: &str, keys: &[(&str, Value)]) -> replay::Outcome {
    let catalogue = Catalogue::<Recorded>::new();
    let mut qdisc = (catalogue.get(aqm).unwrap().build)(&settings(keys)).unwrap();
    replay::replay(qdisc.as_mut(), recording(name), 1)
}

#[test]
fn codel_drops_what_linux_dropped_under_an_unresponsive_flow() {
    let linux = Kind::Choice(&["linux"]).parse("linux").unwrap();
    let outcome = replayed("codel-udp12m", "codel", &[("variant", linux)]);
    assert!(outcome.agree, "{outcome:?}");
    assert_eq!(
        (outcome.dropped_recorded, outcome.dropped_ours),
        (1338, 1338)
    );
}

#[test]
fn codel_drops_what_linux_dropped_under_four_cubic_flows() {
    let linux = Kind::Choice(&["linux"]).parse("linux").unwrap();
    let outcome = replayed("codel-cubic4", "codel", &[("variant", linux)]);
    assert!(outcome.agree, "{outcome:?}");
    assert_eq!((outcome.dropped_recorded, outcome.dropped_ours), (110, 110));
}

#[test]
fn a_drop_tail_queue_departs_from_a_codel_recording_at_its_first_drop() {
    let outcome = replayed("codel-cubic4", "pfifo", &[]);
    assert!(!outcome.agree);
    assert_eq!(outcome.dropped_ours, 0);
    let divergence = outcome.first_divergence.unwrap();
    assert_eq!(divergence.got, Some(divergence.expected - 1));
}
