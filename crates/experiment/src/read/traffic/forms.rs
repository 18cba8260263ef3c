//! Forms of values that only traffic keys use.

use serde_json::{Value as Json, json};
use sojourn_units::{Duration, Kind as Unit, Rate, Value};

use crate::document::Item;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::{AnyKey, Form};
use crate::forms::{Bytes, Decimal, Span, Speed, Word, kind_schema};
use crate::keys::{Keys, keys, names_of, table_schema, written_table};
use crate::model::Sizes;
use crate::names::Names;
use crate::section::Section;
use sojourn_traffic::sizes::LARGEST;

/// An instant, or a range of instants: `"0..1 s"`, `"500 ms..1 s"`.
pub(super) struct Starts;

impl Form for Starts {
    type Out = (Duration, Duration);

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        let Some((first, last)) = entry.text().and_then(|text| text.split_once("..")) else {
            return Span::Any.read(entry).map(|instant| (instant, instant));
        };
        // A first end without a unit has the unit of the last.
        let first = first.trim();
        let plain = |c: char| c.is_ascii_digit() || c == '.';
        let with_unit = match first.chars().all(plain) {
            true => format!("{first}{}", last.trim().trim_start_matches(plain)),
            false => first.to_string(),
        };
        match (Unit::Duration.parse(&with_unit), Unit::Duration.parse(last)) {
            (Ok(Value::Duration(first)), Ok(Value::Duration(last))) if first <= last => {
                Ok((first, last))
            }
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, (first, last): &Self::Out) -> Json {
        match first == last {
            true => first.to_string().into(),
            false => format!("{first}..{last}").into(),
        }
    }

    fn accepts(&self) -> String {
        "a time like \"5 ms\" (ns, us, ms, s, min) or a range like \"0..1 s\"".into()
    }

    fn schema(&self, _: &Names) -> Json {
        let range = json!({"type": "string", "pattern": r"^[\d.]+ *[a-zµ]*\.\.[ \d.]+ *(ns|us|µs|ms|s|min)$"});
        json!({"anyOf": [kind_schema(Unit::Duration), range]})
    }
}

/// One size, an array of sizes, or a distribution.
pub(super) struct SizesForm;

/// From one byte to a terabyte.
const ONE_SIZE: Bytes<u64> = Bytes {
    from: 1,
    to: LARGEST,
};

keys! {
    /// Uniform sizes.
    struct Uniform {
        /// The smallest size.
        min: u64 = ONE_SIZE, Required;
        /// The largest size.
        max: u64 = ONE_SIZE, Required;
    }
    ; check check_uniform
}
keys! {
    /// Exponentially distributed sizes.
    struct Exponential {
        /// Mean size.
        mean: u64 = ONE_SIZE, Required;
    }
}
keys! {
    /// Pareto-distributed sizes.
    struct Pareto {
        /// Mean size.
        mean: u64 = ONE_SIZE, Required;
        /// Exponent of the tail: the lower, the heavier.
        shape: f64 = Decimal { above: 1.0, to: 100.0 }, Required;
    }
}
keys! {
    /// Lognormally distributed sizes.
    struct Lognormal {
        /// Median size.
        median: u64 = ONE_SIZE, Required;
        /// Standard deviation of the size's natural logarithm.
        sigma: f64 = Decimal { above: 0.0, to: 10.0 }, Required;
    }
}
keys! {
    /// The keys of every distribution.
    struct Distributed {
        /// How sizes are distributed.
        distribution: &'static Distribution = DistributionForm, Required;
    }
}

fn check_uniform(sizes: &Uniform, section: &Section<'_>) -> Result<(), ReadError> {
    match section.given("max") {
        Some(given) if sizes.max < sizes.min => {
            let least = crate::written::bytes(sizes.min);
            Err(given.refuse(format!("at least min (\"{least}\")")))
        }
        _ => Ok(()),
    }
}

/// A distribution of sizes.
pub(crate) struct Distribution {
    name: &'static str,
    /// The keys besides `distribution`.
    keys: fn() -> Vec<&'static dyn AnyKey>,
    read: fn(&Section<'_>) -> Result<Sizes, ReadError>,
}

static DISTRIBUTIONS: &[Distribution] = &[
    Distribution {
        name: "uniform",
        keys: Uniform::keys,
        read: |section| {
            let Uniform { min, max } = Uniform::read(section)?;
            Ok(Sizes::Uniform { min, max })
        },
    },
    Distribution {
        name: "exponential",
        keys: Exponential::keys,
        read: |section| {
            let Exponential { mean } = Exponential::read(section)?;
            Ok(Sizes::Exponential { mean })
        },
    },
    Distribution {
        name: "pareto",
        keys: Pareto::keys,
        read: |section| {
            let Pareto { mean, shape } = Pareto::read(section)?;
            Ok(Sizes::Pareto { mean, shape })
        },
    },
    Distribution {
        name: "lognormal",
        keys: Lognormal::keys,
        read: |section| {
            let Lognormal { median, sigma } = Lognormal::read(section)?;
            Ok(Sizes::Lognormal { median, sigma })
        },
    },
];

/// The table of a distribution.
fn distributed(name: &str, keys: &impl Keys) -> Json {
    let mut table = written_table(keys);
    table["distribution"] = name.into();
    table
}

impl Form for SizesForm {
    type Out = Sizes;

    fn read(&self, entry: &Entry<'_>) -> Result<Sizes, ReadError> {
        if matches!(entry.node.item, Item::Table(_)) {
            let section = Section::open(entry, self)?;
            let Distributed { distribution } = Distributed::read(&section)?;
            let known = names_of(&(distribution.keys)()).into_iter();
            let known = known.chain(Distributed::names());
            let section = section.refuse_unknown_keys(distribution.name, known)?;
            return (distribution.read)(&section);
        }
        let sizes = match entry.items() {
            Some(sizes) if sizes.is_empty() => return Err(entry.refuse(self.accepts())),
            Some(sizes) => sizes.iter().map(|size| ONE_SIZE.read(size)).collect(),
            None => ONE_SIZE.read(entry).map(|size| vec![size]),
        };
        sizes.map(Sizes::OneOf)
    }

    fn write(&self, sizes: &Sizes) -> Json {
        match sizes {
            Sizes::OneOf(sizes) => sizes.iter().map(|size| ONE_SIZE.write(size)).collect(),
            &Sizes::Uniform { min, max } => distributed("uniform", &Uniform { min, max }),
            &Sizes::Exponential { mean } => distributed("exponential", &Exponential { mean }),
            &Sizes::Pareto { mean, shape } => distributed("pareto", &Pareto { mean, shape }),
            &Sizes::Lognormal { median, sigma } => {
                distributed("lognormal", &Lognormal { median, sigma })
            }
        }
    }

    fn accepts(&self) -> String {
        "a size like \"100 kB\", an array of sizes, or a table with a distribution".into()
    }

    fn schema(&self, names: &Names) -> Json {
        let size = kind_schema(Unit::Bytes);
        let mut forms = vec![
            size.clone(),
            json!({"type": "array", "minItems": 1, "items": size}),
        ];
        forms.extend(DISTRIBUTIONS.iter().map(|distribution| {
            let keys = [Distributed::keys(), (distribution.keys)()].concat();
            let mut schema = table_schema(&keys, names);
            schema["properties"]["distribution"]["const"] = distribution.name.into();
            schema
        }));
        json!({"anyOf": forms})
    }
}

/// The name of a distribution of sizes.
struct DistributionForm;

impl Form for DistributionForm {
    type Out = &'static Distribution;

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        let text = entry.text().ok_or_else(|| entry.refuse(self.accepts()))?;
        let found = DISTRIBUTIONS.iter().find(|known| known.name == text);
        found.ok_or_else(|| entry.unknown(DISTRIBUTIONS.iter().map(|known| known.name)))
    }

    fn write(&self, distribution: &Self::Out) -> Json {
        distribution.name.into()
    }

    fn accepts(&self) -> String {
        let quoted = DISTRIBUTIONS
            .iter()
            .map(|known| format!("\"{}\"", known.name));
        format!("one of {}", quoted.collect::<Vec<_>>().join(", "))
    }

    fn schema(&self, _: &Names) -> Json {
        json!({"type": "string"})
    }
}

/// A DiffServ code point.
pub(super) struct Dscp;

/// The class selectors (RFC 2474 §4.2.2), assured (RFC 2597 §6) and expedited forwarding (RFC 3246), admitted voice
/// (RFC 5865), lower effort (RFC 8622) and non-queue-building (RFC 9956).
static CODE_POINTS: Word<u8> = Word(&[
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("EF", 46),
    ("VA", 44),
    ("LE", 1),
    ("NQB", 45),
]);

impl Form for Dscp {
    type Out = u8;

    fn read(&self, entry: &Entry<'_>) -> Result<u8, ReadError> {
        match entry.node.item {
            Item::Integer(point @ 0..=63) => Ok(point as u8),
            Item::Text(_) => CODE_POINTS.read(entry),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, point: &u8) -> Json {
        (*point).into()
    }

    fn accepts(&self) -> String {
        "a whole number from 0 to 63 or a name like \"EF\"".into()
    }

    fn schema(&self, names: &Names) -> Json {
        let number = json!({"type": "integer", "minimum": 0, "maximum": 63});
        json!({"anyOf": [number, CODE_POINTS.schema(names)]})
    }
}

/// The media rates of a video, in increasing order.
pub(super) struct Ladder;

impl Form for Ladder {
    type Out = Vec<Rate>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<Rate>, ReadError> {
        let steps = entry.items().filter(|steps| !steps.is_empty());
        let steps = steps.ok_or_else(|| entry.refuse(self.accepts()))?;
        let mut rates: Vec<Rate> = Vec::with_capacity(steps.len());
        for step in &steps {
            let rate = Speed.read(step)?;
            if let Some(below) = rates.last().filter(|below| rate <= **below) {
                return Err(step.refuse(format!("above the rate before it (\"{below}\")")));
            }
            rates.push(rate);
        }
        Ok(rates)
    }

    fn write(&self, rates: &Vec<Rate>) -> Json {
        rates.iter().map(|rate| Speed.write(rate)).collect()
    }

    fn accepts(&self) -> String {
        "an array of rising rates like [\"1 Mbit/s\", \"3 Mbit/s\"]".into()
    }

    fn schema(&self, _: &Names) -> Json {
        json!({"type": "array", "minItems": 1, "items": kind_schema(Unit::Rate)})
    }
}

/// Base RTTs, one per host.
pub(super) struct Rtts {
    /// The required number; `None`: any.
    pub hosts: Option<usize>,
}

impl Form for Rtts {
    type Out = Vec<Duration>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<Duration>, ReadError> {
        let fits = |count: usize| match self.hosts {
            Some(hosts) => count == hosts,
            None => (1..=1000).contains(&count),
        };
        let rtts = entry.items().filter(|rtts| fits(rtts.len()));
        let rtts = rtts.ok_or_else(|| entry.refuse(self.accepts()))?;
        rtts.iter().map(|rtt| Span::AboveZero.read(rtt)).collect()
    }

    fn write(&self, rtts: &Vec<Duration>) -> Json {
        let rtts = rtts.iter();
        rtts.map(|rtt| Span::AboveZero.write(rtt)).collect()
    }

    fn accepts(&self) -> String {
        let how_many = self
            .hosts
            .map_or("1 to 1000".into(), |hosts| hosts.to_string());
        format!("an array of {how_many} base RTTs like [\"10 ms\", \"50 ms\"], one per host")
    }

    fn schema(&self, _: &Names) -> Json {
        json!({
            "type": "array",
            "minItems": self.hosts.unwrap_or(1),
            "maxItems": self.hosts.unwrap_or(1000),
            "items": kind_schema(Unit::Duration),
        })
    }
}
