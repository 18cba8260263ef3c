//! A discipline under a steady load, to be counted by callgrind, and the memory that it takes.
//!
//! - `steady run NAME calm|busy FLOWS PACKETS`: so many packets; the difference of two lengths is the cost of the packets
//!   between them
//! - `steady names`: all disciplines
//! - `steady state`: a row per discipline: bytes allocated once a packet has passed, and bytes per queue or `-`

#[path = "../benches/load/mod.rs"]
mod load;

use load::{Load, Steady, settings};
use sojourn_aqm::{Catalogue, Datagram, Discipline, Environment, FlowKey};
use sojourn_units::{Time, Value};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let catalogue = Catalogue::<Datagram<u64>>::new();
    match words[..] {
        ["names"] => catalogue.iter().for_each(|d| println!("{}", d.name)),
        ["state"] => catalogue.iter().for_each(state),
        ["run", name, load @ ("calm" | "busy"), flows, packets] => {
            let discipline = catalogue.get(name).expect("a discipline");
            let number = |text: &str| text.parse().expect("a number");
            let load = match load {
                "calm" => Load::calm(number(flows)),
                _ => Load::busy(number(flows)),
            };
            Steady::new(discipline, load).run(number(packets));
        }
        _ => eprintln!(
            "usage: steady names | steady state | steady run NAME calm|busy FLOWS PACKETS"
        ),
    }
}

/// Bytes that are allocated for a discipline, with one setting besides the defaults, once a packet has passed: some have their
/// queues only then.
fn allocated(discipline: &Discipline<Datagram<u64>>, setting: Option<(&str, Value)>) -> i64 {
    let mut settings = settings();
    let setting = setting.map(|(key, value)| (key.into(), value));
    settings.values.extend(setting);
    let mut environment = Environment::new(1);
    let mut built = None;
    let measured = allocation_counter::measure(|| {
        let mut qdisc = discipline.build(&settings).expect("defaults are valid");
        let packet = Datagram::new(1, 1514).with_flow(FlowKey::numbered(1));
        qdisc.enqueue(packet, Time::ZERO, &mut environment);
        let _ = qdisc.dequeue(Time::ZERO, &mut environment);
        built = Some(qdisc);
    });
    measured.bytes_current
}

fn state(discipline: &Discipline<Datagram<u64>>) {
    let with = |key, value| allocated(discipline, Some((key, value)));
    let word = |word: &str| Value::Word(word.into());
    // Twice as many queues, or three tins of 1024 instead of one, and what one of those that are more takes.
    let per_queue = if discipline.key("divisor").is_some() {
        Some((with("divisor", Value::Count(2048)) - with("divisor", Value::Count(1024))) / 1024)
    } else if discipline.key("flows").is_some() {
        Some((with("flows", Value::Count(2048)) - with("flows", Value::Count(1024))) / 1024)
    } else if discipline.name == "cake" {
        let (one, three) = (word("besteffort"), word("diffserv3"));
        Some((with("diffserv", three) - with("diffserv", one)) / 2048)
    } else {
        None
    };
    let per_queue = per_queue.map_or("-".into(), |bytes| bytes.to_string());
    println!(
        "{} {} {per_queue}",
        discipline.name,
        allocated(discipline, None)
    );
}
