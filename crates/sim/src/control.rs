//! A run as a controller drives it, by the numbers of its space.

use sojourn_aqm::policy::INPUTS;
use sojourn_aqm::{Key, Limit};
use sojourn_experiment::derived::{self, Owner};
use sojourn_experiment::network::RunError;
use sojourn_measure::interval::Reader;
use sojourn_units::{Capacity, Kind, Value};

use crate::catalogue::Catalogue;
use crate::sampler::{look_at_flows, look_at_queue};
use crate::session::Session;
use crate::space::{Action, Space, Target, is_number};

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
