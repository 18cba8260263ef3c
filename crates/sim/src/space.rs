//! What a controller may do to a run and sees of it: numbered keys with their ranges, the layout of observations.

use sojourn_aqm::{Discipline, Settings};
use sojourn_units::{Duration, Kind, Rate, Value};

use crate::packet::SimPacket;

/// A key that a controller may set, with its unit.
#[derive(Clone, PartialEq, Debug)]
pub struct Action {
    /// As for [`Session::set`](crate::Session::set): `queue.target`, `link.rate`.
    pub key: String,
    /// The unit of its numbers: `ms`, `bit/s`, `packets`, `bytes`, or `1` for bare numbers.
    pub unit: &'static str,
    /// The least and the largest number that is accepted.
    pub range: (f64, f64),
    kind: Kind,
    pub(crate) target: Target,
}

/// What an action changes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Target {
    /// The rate of a queue's link.
    Rate(usize),
    /// A key of the disciplines of these queues.
    Key(&'static str, Vec<usize>),
    /// The limit of the disciplines of these queues, which is none of their keys.
    Limit,
}

/// What a controller may do and sees.
#[derive(Clone, PartialEq, Debug)]
pub struct Space {
    /// The keys, by their numbers.
    pub actions: Vec<Action>,
    /// The names of the numbers of an observation, in their order: `down.sojourn_mean_ms`, `flow.0.goodput_bps`.
    pub observations: Vec<String>,
}

/// A value as a number in the unit of [`Action::unit`].
fn number_of(value: &Value) -> Option<f64> {
    match *value {
        Value::Duration(span) => Some(span.as_millis_f64()),
        Value::Rate(rate) => Some(rate.as_bps() as f64),
        Value::Bytes(count) | Value::Packets(count) | Value::Count(count) => Some(count as f64),
        Value::Number(number) => Some(number),
        Value::Flag(_) | Value::Word(_) | Value::File(_) => None,
    }
}

pub(crate) const fn is_number(kind: Kind) -> bool {
    !matches!(kind, Kind::Flag | Kind::Choice(_) | Kind::File)
}

impl Action {
    pub(crate) fn new(key: String, kind: Kind, target: Target) -> Self {
        let (unit, range) = match kind {
            Kind::Duration => ("ms", (0.001, 10_000.0)),
            Kind::Rate => ("bit/s", (1e3, 1e12)),
            Kind::Bytes => ("bytes", (1.0, 1e9)),
            Kind::Packets | Kind::Size => ("packets", (1.0, 1e6)),
            Kind::Probability => ("1", (0.0, 1.0)),
            Kind::Count => ("1", (0.0, 1e6)),
            Kind::Number | Kind::Flag | Kind::Choice(_) | Kind::File => ("1", (-1e9, 1e9)),
        };
        Self {
            key,
            unit,
            range,
            kind,
            target,
        }
    }

    /// The action with the range that the discipline accepts while it runs, around the value in use; `None` if it lets the
    /// key not change.
    pub(crate) fn accepted(
        mut self,
        name: &str,
        discipline: &Discipline<SimPacket>,
        settings: &Settings,
    ) -> Option<Self> {
        let mut running = discipline.build(settings).ok()?;
        let mut accepts = |number: f64| {
            let settings = settings.with(discipline, name, &self.written(number));
            settings.is_ok_and(|settings| {
                discipline.build(&settings).is_ok() && running.change(&settings).is_ok()
            })
        };
        let in_use = settings
            .in_use()
            .into_iter()
            .find(|(key, _)| key == name)
            .and_then(|(_, value)| number_of(&value));
        let (low, high) = self.range;
        let start = [in_use.unwrap_or(low), low, high, f64::midpoint(low, high)];
        let start = start.into_iter().find(|&number| accepts(number))?;
        let is_whole = !matches!(self.kind, Kind::Duration | Kind::Probability | Kind::Number);
        let mut furthest = |end: f64| {
            let (mut accepted, mut refused) = (start, end);
            if accepts(end) {
                return end;
            }
            for _ in 0..60 {
                let middle = f64::midpoint(accepted, refused);
                let middle = if is_whole { middle.round() } else { middle };
                *(if accepts(middle) {
                    &mut accepted
                } else {
                    &mut refused
                }) = middle;
            }
            let rounded = (accepted * 1e6).round() / 1e6;
            if accepts(rounded) { rounded } else { accepted }
        };
        let (low, high) = (furthest(low), furthest(high));
        self.range = (low, high);
        (low < high).then_some(self)
    }

    /// A number of the range as a value.
    pub(crate) fn value(&self, number: f64) -> Option<Value> {
        let (low, high) = self.range;
        if !(low..=high).contains(&number) {
            return None;
        }
        let whole = number.round() as u64;
        match self.kind {
            Kind::Duration => {
                let nanos = (number * 1e6).round() as u64;
                Some(Value::Duration(Duration::from_nanos(nanos)))
            }
            Kind::Rate => Rate::from_bps(whole).map(Value::Rate),
            Kind::Bytes => Some(Value::Bytes(whole)),
            Kind::Packets | Kind::Size => Some(Value::Packets(whole)),
            Kind::Count => Some(Value::Count(whole)),
            Kind::Probability | Kind::Number => Some(Value::Number(number)),
            Kind::Flag | Kind::Choice(_) | Kind::File => None,
        }
    }

    /// A number as a file has it.
    pub(crate) fn written(&self, value: f64) -> String {
        match self.kind {
            Kind::Duration => format!("{value:.6} ms"),
            Kind::Rate => format!("{value:.0} bit/s"),
            Kind::Bytes => format!("{value:.0} B"),
            Kind::Packets | Kind::Size => format!("{value:.0} packets"),
            Kind::Count => format!("{value:.0}"),
            Kind::Probability | Kind::Number | Kind::Flag | Kind::Choice(_) | Kind::File => {
                format!("{value:.9}")
            }
        }
    }
}
