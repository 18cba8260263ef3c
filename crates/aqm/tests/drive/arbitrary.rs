//! Derives a discipline's settings and its traffic from arbitrary bytes of the fuzzer or of a property test.

use sojourn_aqm::{AckView, Catalogue, Datagram, Discipline, Ecn, Limit, Settings, policy};
use sojourn_units::{Duration, Kind, Rate, TextFile, Value};

use crate::drive::{Drive, Step};

/// The disciplines by their main component; each family has a fuzz target.
pub const FAMILIES: &[(&str, &[&str])] = &[
    (
        "fifo",
        &["pfifo", "bfifo", "pfifo_head_drop", "pfifo_fast", "sfq"],
    ),
    (
        "red",
        &[
            "red", "ared", "choke", "blue", "policer", "policy", "sfb", "sfq_red", "sfq_ared",
        ],
    ),
    (
        "pie",
        &[
            "pie",
            "docsis_pie",
            "madpie",
            "pi2",
            "fq_pie",
            "sfq_pie",
            "sfq_madpie",
        ],
    ),
    ("codel", &["codel", "cobalt"]),
    (
        "fq",
        &["fq", "fq_codel", "fq_nocodel", "fq_pie", "hhf", "sfq"],
    ),
    ("cake", &["cake"]),
    ("dualpi2", &["dualpi2"]),
];

/// Bytes beyond the end are zero.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn next(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// One of `choices`.
    fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.next()) % choices.len()]
    }

    /// A number of up to `bits` bits of any magnitude, mostly with 8 significant bits.
    fn magnitude(&mut self, bits: u8) -> u64 {
        let mantissa = u64::from(self.next());
        let shift = self.next() % bits.saturating_sub(7).max(1);
        match self.next() % 16 {
            0 => (mantissa << shift).saturating_sub(1),
            1 => (1_u128 << bits).wrapping_sub(1) as u64,
            _ => mantissa << shift,
        }
    }
}

/// Drives arbitrary traffic through a member of a family with arbitrary settings. Settings that the discipline refuses
/// are skipped.
///
/// # Errors
/// The discipline, its settings and the invariant that was violated.
pub fn drive(family: &str, data: &[u8]) -> Result<(), String> {
    let names = FAMILIES.iter().find(|(name, _)| *name == family);
    let (_, names) = names.ok_or_else(|| format!("no family {family}"))?;
    let mut bytes = Bytes(data);
    let name = bytes.choose(names);
    let catalogue = Catalogue::<Datagram<u64>>::new();
    let discipline = catalogue.get(name).ok_or_else(|| format!("no {name}"))?;
    let settings = settings(discipline, &mut bytes);
    let Ok(mut qdisc) = discipline.build(&settings) else {
        return Ok(());
    };
    let steps = steps(&mut bytes);
    Drive::new(qdisc.as_mut(), most(name, &settings))
        .play(&steps)
        .map(drop)
        .map_err(|error| format!("{name} {settings:?}: {error}"))
}

/// The limit of a discipline. In Linux each of pfifo_fast's three bands may hold the limit.
fn most(name: &str, settings: &Settings) -> Option<Limit> {
    let times = if name == "pfifo_fast" { 3 } else { 1 };
    settings.limit.map(|limit| match limit {
        Limit::Packets(packets) => Limit::Packets(packets * times),
        Limit::Bytes(bytes) => Limit::Bytes(bytes * times),
    })
}

fn settings(discipline: &Discipline<Datagram<u64>>, bytes: &mut Bytes<'_>) -> Settings {
    let rate = Rate::from_bps(bytes.magnitude(40).max(1)).unwrap_or(Rate::from_mbps(10));
    let mut settings = Settings::new(rate, bytes.choose(&[1514, 1514, 590, 9014, 65_549]));
    settings.limit = match bytes.next() % 4 {
        0 => None,
        1 => Some(Limit::Bytes(bytes.magnitude(24).max(1))),
        _ => Some(Limit::Packets(bytes.magnitude(12).max(1))),
    };
    settings
        .values
        .push(("ecn".into(), Value::Flag(bytes.next() % 2 == 1)));
    for key in discipline.keys() {
        if key.name != "ecn" && bytes.next() % 3 == 0 {
            settings
                .values
                .push((key.name.into(), value(key.kind, bytes)));
        }
    }
    settings
}

fn value(kind: Kind, bytes: &mut Bytes<'_>) -> Value {
    match kind {
        Kind::Duration => Value::Duration(span(bytes)),
        Kind::Rate => {
            Value::Rate(Rate::from_bps(bytes.magnitude(48).max(1)).unwrap_or(Rate::from_mbps(1)))
        }
        Kind::Bytes => Value::Bytes(bytes.magnitude(40)),
        Kind::Size if bytes.next() % 2 == 0 => Value::Packets(bytes.magnitude(20)),
        Kind::Size => Value::Bytes(bytes.magnitude(40)),
        Kind::Probability => Value::Number(f64::from(bytes.next()) / 255.0),
        Kind::Number => {
            let sign = f64::from(bytes.next() % 4) - 1.0;
            Value::Number(sign * bytes.magnitude(40) as f64 / 1024.0)
        }
        Kind::Count => Value::Count(bytes.magnitude(18)),
        Kind::Packets => Value::Packets(bytes.magnitude(18)),
        Kind::Flag => Value::Flag(bytes.next() % 2 == 1),
        Kind::Choice(words) => Value::Word(bytes.choose(words).into()),
        Kind::File => Value::File(weights(bytes)),
    }
}

/// Weights of a policy, mostly a network.
fn weights(bytes: &mut Bytes<'_>) -> TextFile {
    let number = |bytes: &mut Bytes<'_>| {
        let sign = f64::from(bytes.next() % 3) - 1.0;
        sign * bytes.magnitude(30) as f64 / 256.0
    };
    let inputs = policy::INPUTS.map(|name| format!("\"{name}\"")).join(",");
    let row = policy::INPUTS.map(|_| number(bytes).to_string()).join(",");
    let span = span(bytes).to_string();
    let mut text = format!(
        r#"{{"interval": "{span}", "inputs": [{inputs}], "output": [{}, 0, {}],
        "layers": [{{"weights": [[{row}]], "bias": [{}]}}, {{"weights": [[{}], [0.5], [-1]], "bias": [0, 1, 2]}}]}}"#,
        number(bytes),
        number(bytes),
        number(bytes),
        number(bytes),
    );
    if bytes.next() % 16 == 1 {
        text.truncate(usize::from(bytes.next()) % text.len());
    }
    TextFile {
        name: "weights.json".into(),
        text: text.into(),
    }
}

fn span(bytes: &mut Bytes<'_>) -> Duration {
    Duration::from_nanos(bytes.magnitude(64))
}

/// Traffic until the bytes run out: trains of packets of few or many flows, trains of departures, and pauses from a
/// nanosecond to a century.
fn steps(bytes: &mut Bytes<'_>) -> Vec<Step> {
    let mut steps = Vec::new();
    let all_ce = bytes.next() % 8 == 0;
    while !bytes.is_empty() && steps.len() < 4096 {
        let op = bytes.next();
        match op % 8 {
            0..=3 => {
                let packet = packet(bytes, all_ce);
                steps.extend((0..=op / 32).map(|_| packet));
            }
            4 | 5 => steps.extend((0..=op / 32).map(|_| Step::Dequeue)),
            6 => steps.push(Step::Wait(Duration::from_micros(
                u64::from(bytes.next()) * 100,
            ))),
            _ => steps.push(Step::Wait(span(bytes))),
        }
    }
    steps
}

fn packet(bytes: &mut Bytes<'_>, all_ce: bool) -> Step {
    let shape = bytes.next();
    let number = u32::from(bytes.next());
    let ecn = match shape % 4 {
        _ if all_ce => Ecn::Ce,
        0 => Ecn::NotEct,
        1 => Ecn::Ect0,
        2 => Ecn::Ect1,
        _ => Ecn::Ce,
    };
    let (size, ack) = match shape / 4 % 8 {
        0 => (0, None),
        1 => (65_535, None),
        2 => (number * 4096, None),
        3 => {
            let ack = AckView {
                ack: number << (shape / 32),
                sacked_bytes: number,
                must_keep: number % 16 == 0,
            };
            (66, Some(ack))
        }
        4 => (number + 1, None),
        _ => (1514, None),
    };
    Step::Enqueue {
        bytes: size,
        flow: if shape >= 128 { number } else { number % 4 },
        ecn,
        dscp: (number % 64) as u8,
        ack,
    }
}
