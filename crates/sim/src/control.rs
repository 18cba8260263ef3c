//! A run as a controller drives it: numbered keys to act on, and observations in a fixed layout.

use sojourn_aqm::policy::INPUTS;
use sojourn_aqm::{Discipline, Key, Limit, Settings};
use sojourn_experiment::derived::{self, Owner};
use sojourn_experiment::network::RunError;
use sojourn_measure::series::Reader;
use sojourn_units::{Capacity, Duration, Kind, Rate, Value};

use crate::catalogue::Catalogue;
use crate::packet::SimPacket;
use crate::sampler::{look_at_flows, look_at_queue};
use crate::session::Session;

/// A key that a controller may set, with its unit.
#[derive(Clone, PartialEq, Debug)]
pub struct Action {
    /// As for [`Session::set`]: `queue.target`, `link.rate`.
    pub key: String,
    /// The unit of its numbers: `ms`, `bit/s`, `packets`, `bytes`, or `1` for bare numbers.
    pub unit: &'static str,
    /// The least and the largest number that is accepted.
    pub range: (f64, f64),
    kind: Kind,
    target: Target,
}

/// What an action changes.
#[derive(Clone, PartialEq, Debug)]
enum Target {
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

/// The numbers of a queue in an observation: those that a policy's network may have as inputs, without its own probability.
const OF_QUEUE: &[&str] = INPUTS.split_at(INPUTS.len() - 1).0;
/// The numbers of a flow.
const OF_FLOW: [&str; 3] = ["goodput_bps", "cwnd_segments", "rtt_ms"];

impl Session {
    /// The keys that can be set and the layout of observations; the same all through the run. A discipline's keys are those
    /// that it lets change while it runs.
    pub fn space(&self, catalogue: &Catalogue) -> &Space {
        self.space.get_or_init(|| self.space_of(catalogue))
    }

    fn space_of(&self, catalogue: &Catalogue) -> Space {
        let spec = self.spec();
        let egresses = derived::queues(&spec.experiment, spec.queue);
        let mut actions: Vec<Action> = Vec::new();
        let queues = egresses.iter().zip(self.changes.settings()).enumerate();
        for (queue, (egress, settings)) in queues {
            if egress.link.wifi.is_some() {
                continue;
            }
            if matches!(egress.capacity, Capacity::Steps(_)) {
                let key = format!("{}.rate", egress.key());
                actions.push(Action::new(key, Kind::Rate, Target::Rate(queue)));
            }
            let prefix = match egress.owner {
                Owner::Comparison => "queue".to_owned(),
                Owner::ComparisonUp => "queue.up".to_owned(),
                Owner::Link | Owner::Up => format!("{}.queue", egress.key()),
            };
            let Some(discipline) = catalogue.disciplines.get(&egress.arm.aqm) else {
                continue;
            };
            let limit = format!("{prefix}.limit");
            if actions.iter().all(|known| known.key != limit) {
                let in_bytes = matches!(settings.limit, Some(Limit::Bytes(_)));
                let kind = if in_bytes { Kind::Bytes } else { Kind::Size };
                let action = Action::new(limit, kind, Target::Limit);
                actions.extend(action.accepted("limit", discipline, settings));
            }
            for Key { name, kind, .. } in discipline.keys() {
                let key = format!("{prefix}.{name}");
                let known = actions.iter_mut().find(|known| known.key == key);
                if let Some(Action {
                    target: Target::Key(_, queues),
                    ..
                }) = known
                {
                    queues.push(queue);
                } else if is_number(kind) {
                    let action = Action::new(key, kind, Target::Key(name, vec![queue]));
                    actions.extend(action.accepted(name, discipline, settings));
                }
            }
        }
        Space {
            actions,
            observations: self.observed(),
        }
    }

    /// [`Space::observations`], without the work that the ranges of actions take.
    pub fn observed(&self) -> Vec<String> {
        let spec = self.spec();
        let egresses = derived::queues(&spec.experiment, spec.queue);
        let queues = egresses.iter().flat_map(|egress| {
            let name = egress.name();
            OF_QUEUE
                .iter()
                .map(move |number| format!("{name}.{number}"))
        });
        let flows = derived::flows(&spec.experiment, spec.seed);
        let flows =
            flows.flat_map(|flow| OF_FLOW.map(|number| format!("flow.{}.{number}", flow.number)));
        queues.chain(flows).collect()
    }

    /// Sets a key by its action, to a number in its unit. Whole numbers are rounded.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn act(
        &mut self,
        action: &Action,
        value: f64,
        catalogue: &Catalogue,
    ) -> Result<(), RunError> {
        // The range has been tried: in it nothing but the value is new.
        match (&action.target, action.value(value)) {
            (Target::Rate(queue), Some(Value::Rate(rate))) => {
                self.simulation.network.set_rate(*queue, rate, self.now);
                Ok(())
            }
            (Target::Key(name, queues), Some(value)) => {
                for &queue in queues {
                    let network = &mut self.simulation.network;
                    let changed = self.changes.replace(network, queue, name, value.clone());
                    changed.map_err(|error| RunError::Settings {
                        key: action.key.clone(),
                        message: error.message,
                    })?;
                }
                Ok(())
            }
            _ => self.set(&action.key, &action.written(value), catalogue),
        }
    }

    /// Fills an observation in the layout of [`Space::observations`]. A number that is not known, such as the sojourn
    /// time where no packet left, is zero. Utilisation and backlog in time are those at the link's rate at the start.
    ///
    /// # Panics
    /// `numbers` is too short.
    pub fn observe_into(&mut self, numbers: &mut [f64]) {
        let span = self.now - std::mem::replace(&mut self.observed, self.now);
        let mut at = 0;
        let mut put = |number: f64| {
            numbers[at] = if number.is_finite() { number } else { 0.0 };
            at += 1;
        };
        let simulation = &mut self.simulation;
        let queues = self
            .counted
            .iter_mut()
            .zip(self.changes.settings())
            .enumerate();
        for (number, (before, settings)) in queues {
            let queue = look_at_queue(&mut simulation.network, number, self.now, Reader::Caller);
            let recent = queue.recent;
            let rate = settings.rate.as_bps() as f64 / 1e9;
            put(recent.packets as f64);
            put(recent.sum as f64 / recent.packets as f64 / 1e6);
            put(recent.longest as f64 / 1e6);
            put(queue.backlog_packets as f64);
            put(queue.backlog_bytes as f64);
            put((queue.dropped - before.0) as f64);
            put((queue.marked - before.1) as f64);
            put((recent.bytes as f64 * 8.0 / rate / span.as_nanos() as f64).min(1.0));
            put(queue.backlog_bytes as f64 * 8.0 / rate / 1e6);
            *before = (queue.dropped, queue.marked);
        }
        let sources = &mut simulation.hosts.sources;
        for flow in look_at_flows(sources, self.now, span, Reader::Caller) {
            put(flow.goodput_bps);
            put(flow.cwnd);
            put(flow.rtt_ms);
        }
    }
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

const fn is_number(kind: Kind) -> bool {
    !matches!(kind, Kind::Flag | Kind::Choice(_) | Kind::File)
}

impl Action {
    fn new(key: String, kind: Kind, target: Target) -> Self {
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
    fn accepted(
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
    fn value(&self, number: f64) -> Option<Value> {
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
    fn written(&self, value: f64) -> String {
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
