//! What happens to packets on a link's wire: loss, jitter, reordering, duplication, corruption, delays that change.

use serde_json::{Value as Json, json};
use sojourn_path::impair::{Jitter, Loss, Reorder, Shape};
use sojourn_units::{Duration, Kind};

use super::schedule::steps;
use crate::document::Item;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::forms::{Maybe, Span, Text, Word, kind_schema};
use crate::keys::{Keys, TableOf, keys, table_schema};
use crate::model::{Impaired, Link};
use crate::names::Names;
use crate::section::Section;

keys! {
    Impaired {
        /// Share of packets that the wire loses behind the queue, each by itself: "0.1 %" or 0.001; or bursts of losses:
        /// { enter = 0.01, leave = 0.3, bad = 1.0, good = 0.0 }. Both directions, unless up has its own.
        loss = Maybe(LossForm), Words("none");
        /// Standard deviation of the delay, normal and cut at 0; or { mean, spread, shape = "normal" | "uniform" | "pareto" }.
        /// Packets stay in order.
        jitter = Maybe(JitterForm), Words("none");
        /// Share of packets that overtake by the jitter, or { share = 0.001, by = "5 ms" }. They arrive by so much sooner, at
        /// once if that is more than the delay, so that an RTT can be less than the base RTT.
        reorder = Maybe(ReorderForm), Words("packets stay in order");
        /// Share of packets that arrive twice.
        duplicate = Maybe(Share), Words("none");
        /// Share of packets that arrive damaged: the receiver drops them.
        corrupt = Maybe(Share), Words("none");
    }
    ; check check
}

fn check(impaired: &mut Impaired, section: &Section<'_>) -> Result<(), ReadError> {
    let by_jitter = |how: &Reorder| how.by.is_none() && how.share > 0.0;
    match (section.given("reorder"), impaired.jitter) {
        (Some(given), None) if impaired.reorder.as_ref().is_some_and(by_jitter) => Err(given
            .error("says not by how much packets overtake: must have jitter beside it, or be like { share = 0.001, by = \"5 ms\" }")),
        _ => Ok(()),
    }
}

/// A share of packets: `"0.1 %"` or a number.
struct Share;

impl Form for Share {
    type Out = f64;

    fn read(&self, entry: &Entry<'_>) -> Result<f64, ReadError> {
        let percent = entry.text().and_then(|text| text.trim().strip_suffix('%'));
        let share = match percent {
            Some(number) => number
                .trim_end()
                .parse()
                .ok()
                .map(|share: f64| share / 100.0),
            None => match entry.quantity(Kind::Probability) {
                Ok(sojourn_units::Value::Number(share)) => Some(share),
                _ => None,
            },
        };
        share
            .filter(|share| (0.0..=1.0).contains(share))
            .ok_or_else(|| entry.refuse(self.accepts()))
    }

    fn write(&self, share: &f64) -> Json {
        (*share).into()
    }

    fn accepts(&self) -> String {
        "a share like \"0.1 %\" or 0.001".into()
    }

    fn schema(&self, _: &Names) -> Json {
        json!({
            "anyOf": [
                kind_schema(Kind::Probability),
                {"type": "string", "pattern": r"^(\d+\.?\d*|\.\d+) *%$"},
            ],
        })
    }
}

keys! {
    /// The keys of losses in bursts: a chain of two states, which may change before each packet.
    struct BurstKeys {
        /// Probability that the good state becomes bad.
        enter: f64 = Share, Required;
        /// Probability that the bad state becomes good: bursts are 1/leave packets long in the mean.
        leave: f64 = Share, Required;
        /// Probability of a loss in the bad state.
        bad: f64 = Share, Is("1.0");
        /// Probability of a loss in the good state.
        good: f64 = Share, Is("0.0");
    }
}

keys! {
    /// The keys of jitter.
    struct JitterKeys {
        /// What is added to the delay in the mean.
        mean: Duration = Span::Any, Is("0 ms");
        /// Standard deviation; of a uniform distribution, half its width.
        spread: Duration = Span::Any, Required;
        /// Distribution: normal, uniform, or Pareto's with an exponent of 3.
        shape: Shape = Word(SHAPES), Is("normal");
    }
}

keys! {
    /// The keys of reordering.
    struct ReorderKeys {
        /// Share of packets that overtake.
        share: f64 = Share, Required;
        /// How much earlier they arrive than with the mean delay.
        by: Option<Duration> = Maybe(Span::Any), Words("the jitter's spread");
    }
}

keys! {
    /// The keys of a trace of delays.
    struct DelayTraceKeys {
        /// A file with a line per change: the instant in seconds, a comma, and the one-way delay in milliseconds from then on.
        /// The first is at 0. The path is relative to the folder of the experiment file, in --set to the working directory.
        trace: Vec<(Duration, Duration)> = DelayTraceForm, Required;
    }
}

const SHAPES: &[(&str, Shape)] = &[
    ("normal", Shape::Normal),
    ("uniform", Shape::Uniform),
    ("pareto", Shape::Pareto),
];

const BURSTS: TableOf<BurstKeys> =
    TableOf::new("loss", "a table like { enter = 0.01, leave = 0.3 }");
const JITTER: TableOf<JitterKeys> = TableOf::new(
    "jitter",
    "a table like { mean = \"2 ms\", spread = \"3 ms\", shape = \"uniform\" }",
);
const REORDER: TableOf<ReorderKeys> =
    TableOf::new("reorder", "a table like { share = 0.001, by = \"5 ms\" }");

/// A form of one value, or of a table with more.
fn one_or_table(one: Json, table: Json) -> Json {
    json!({"anyOf": [one, table]})
}

struct LossForm;

impl Form for LossForm {
    type Out = Loss;

    fn read(&self, entry: &Entry<'_>) -> Result<Loss, ReadError> {
        match &entry.node.item {
            Item::Table(_) => {
                let BurstKeys {
                    enter,
                    leave,
                    bad,
                    good,
                } = BURSTS.read(entry)?;
                Ok(Loss::Bursts {
                    enter,
                    leave,
                    bad,
                    good,
                })
            }
            _ => match Share.read(entry) {
                Ok(share) => Ok(Loss::Each(share)),
                Err(_) => Err(entry.refuse(self.accepts())),
            },
        }
    }

    fn write(&self, loss: &Loss) -> Json {
        match *loss {
            Loss::Bursts {
                enter,
                leave,
                bad,
                good,
            } => BURSTS.write(&BurstKeys {
                enter,
                leave,
                bad,
                good,
            }),
            loss => Share.write(&loss.share()),
        }
    }

    fn accepts(&self) -> String {
        format!("{}, or {}", Share.accepts(), BURSTS.accepts())
    }

    fn schema(&self, names: &Names) -> Json {
        one_or_table(Share.schema(names), BURSTS.schema(names))
    }
}

struct JitterForm;

impl Form for JitterForm {
    type Out = Jitter;

    fn read(&self, entry: &Entry<'_>) -> Result<Jitter, ReadError> {
        match &entry.node.item {
            Item::Table(_) => {
                let JitterKeys {
                    mean,
                    spread,
                    shape,
                } = JITTER.read(entry)?;
                Ok(Jitter::new(mean, spread, shape))
            }
            Item::Text(_) => Ok(Jitter::new(
                Duration::ZERO,
                Span::Any.read(entry)?,
                Shape::Normal,
            )),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, jitter: &Jitter) -> Json {
        if jitter.mean.is_zero() && jitter.shape == Shape::Normal {
            return Span::Any.write(&jitter.spread);
        }
        JITTER.write(&JitterKeys {
            mean: jitter.mean,
            spread: jitter.spread,
            shape: jitter.shape,
        })
    }

    fn accepts(&self) -> String {
        format!("{}, or {}", Span::Any.accepts(), JITTER.accepts())
    }

    fn schema(&self, names: &Names) -> Json {
        one_or_table(Span::Any.schema(names), JITTER.schema(names))
    }
}

struct ReorderForm;

impl Form for ReorderForm {
    type Out = Reorder;

    fn read(&self, entry: &Entry<'_>) -> Result<Reorder, ReadError> {
        match &entry.node.item {
            Item::Table(_) => {
                let ReorderKeys { share, by } = REORDER.read(entry)?;
                Ok(Reorder::new(share, by))
            }
            _ => match Share.read(entry) {
                Ok(share) => Ok(Reorder::new(share, None)),
                Err(_) => Err(entry.refuse(self.accepts())),
            },
        }
    }

    fn write(&self, reorder: &Reorder) -> Json {
        match reorder.by {
            None => Share.write(&reorder.share),
            by => REORDER.write(&ReorderKeys {
                share: reorder.share,
                by,
            }),
        }
    }

    fn accepts(&self) -> String {
        format!("{}, or {}", Share.accepts(), REORDER.accepts())
    }

    fn schema(&self, names: &Names) -> Json {
        one_or_table(Share.schema(names), REORDER.schema(names))
    }
}

/// The delays of a link: one, or several with their instants.
pub(super) struct Delays(Vec<(Duration, Duration)>);

impl Delays {
    /// The delays of a link.
    pub fn of(link: &Link) -> Self {
        match link.delays.as_slice() {
            [] => Self(vec![(Duration::ZERO, link.delay)]),
            delays => Self(delays.to_vec()),
        }
    }

    /// The least of them.
    pub fn least(&self) -> Duration {
        let delays = self.0.iter().map(|(_, delay)| *delay);
        delays.min().unwrap_or(Duration::ZERO)
    }

    /// The delays with their instants, if there are several.
    pub fn steps(self) -> Vec<(Duration, Duration)> {
        if self.0.len() > 1 { self.0 } else { Vec::new() }
    }
}

/// A delay, a schedule of delays or a trace of them. A trace is written as a schedule.
pub(super) struct DelayForm;

impl Form for DelayForm {
    type Out = Delays;

    fn read(&self, entry: &Entry<'_>) -> Result<Delays, ReadError> {
        match &entry.node.item {
            Item::Table(_) => {
                let section = Section::open(entry, self)?
                    .refuse_unknown_keys("a trace", DelayTraceKeys::names())?;
                DelayTraceKeys::read(&section).map(|keys| Delays(keys.trace))
            }
            Item::Array(_) => {
                let pair = "a pair of times like [\"50 s\", \"80 ms\"]";
                steps(entry, &self.accepts(), pair, |delay| Span::Any.read(delay)).map(Delays)
            }
            _ => Ok(Delays(vec![(Duration::ZERO, Span::Any.read(entry)?)])),
        }
    }

    fn write(&self, delays: &Delays) -> Json {
        match delays.0.as_slice() {
            [(_, delay)] => Span::Any.write(delay),
            steps => steps
                .iter()
                .map(|(from, delay)| json!([Span::Any.write(from), Span::Any.write(delay)]))
                .collect(),
        }
    }

    fn accepts(&self) -> String {
        format!(
            "{}, a schedule like [[\"0 s\", \"20 ms\"]], or {{ trace = \"file\" }}",
            Span::Any.accepts()
        )
    }

    fn schema(&self, names: &Names) -> Json {
        json!({
            "anyOf": [
                kind_schema(Kind::Duration),
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "array",
                        "prefixItems": [kind_schema(Kind::Duration), kind_schema(Kind::Duration)],
                        "minItems": 2,
                        "maxItems": 2,
                    },
                },
                table_schema(&DelayTraceKeys::keys(), names),
            ],
        })
    }
}

/// The name of a file with delays.
struct DelayTraceForm;

impl Form for DelayTraceForm {
    type Out = Vec<(Duration, Duration)>;

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        let name = Text.read(entry)?;
        let delays = entry.context.text(&name, &entry.node.origin);
        let delays = delays.and_then(|(path, text)| {
            parse(&text).map_err(|(line, what)| format!("{path}:{line}: {what}"))
        });
        delays.map_err(|what| entry.error(format!("got {}; {what}", entry.node.item)))
    }

    fn write(&self, _: &Self::Out) -> Json {
        Json::Null
    }

    fn accepts(&self) -> String {
        "the path of a file with a line \"seconds,milliseconds\" per change".into()
    }

    fn schema(&self, names: &Names) -> Json {
        Text.schema(names)
    }
}

/// The delays of a file, or the line with an error and what is wrong there.
fn parse(text: &str) -> Result<Vec<(Duration, Duration)>, (usize, String)> {
    let mut delays: Vec<(Duration, Duration)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        // The first line may name the columns.
        let is_header = number == 1 && line.starts_with(|c: char| c.is_alphabetic());
        if line.is_empty() || line.starts_with('#') || is_header {
            continue;
        }
        let wrong = |must: &str| (number, format!("got \"{line}\"; must be {must}"));
        let value = |text: &str, unit: f64| {
            let value = text.trim().parse::<f64>().ok();
            let value = value.filter(|value| (0.0..1e6).contains(value));
            value.map(|value| Duration::from_secs_f64(value * unit))
        };
        let pair = line.split_once(',');
        let pair = pair.and_then(|(at, delay)| Some((value(at, 1.0)?, value(delay, 1e-3)?)));
        let Some((at, delay)) = pair else {
            return Err(wrong("seconds and milliseconds like 1.5,20"));
        };
        match delays.last() {
            None if !at.is_zero() => return Err(wrong("at 0 s, the first instant of a trace")),
            Some((last, _)) if at <= *last => return Err(wrong("after the line before it")),
            _ => delays.push((at, delay)),
        }
    }
    if delays.is_empty() {
        return Err((1, "must have a line like 0,20".into()));
    }
    Ok(delays)
}
