//! Changes of a run under way: of the rates of links, and of the parameters of disciplines.

use sojourn_aqm::{Catalogue, SettingError, Settings};
use sojourn_path::{Medium, Network, Observer, Packet};
use sojourn_units::{Kind, Time, Value};

use crate::RunSpec;
use crate::derived::{self, Owner};
use crate::network::{RunError, discipline, settings};

/// The settings of a run's disciplines, by queue, as they are now.
pub struct Changes(Vec<Settings>);

impl Changes {
    /// Those that the run begins with.
    pub fn of(spec: &RunSpec) -> Self {
        let egresses = derived::queues(&spec.experiment, spec.queue);
        let all = egresses
            .iter()
            .map(|egress| settings(&spec.experiment, egress));
        Self(all.collect())
    }

    /// By queue, in the order of the links.
    pub fn settings(&self) -> &[Settings] {
        &self.0
    }

    /// Changes a key from now on. `queue.KEY` is a key of the arm's discipline, on all links where it is tried;
    /// `link.rate`, `link.up.rate` and `link.home.rate` are link rates; `link.home.queue.KEY` is a key of a link's own
    /// discipline. The value is written as in a file: `"10 ms"`.
    ///
    /// # Errors
    /// [`RunError::Settings`]: there is no such key, its value is refused, or it cannot change during a run. Nothing
    /// has changed then.
    pub fn set<P, O, M>(
        &mut self,
        network: &mut Network<P, O, M>,
        spec: &RunSpec,
        catalogue: &Catalogue<P>,
        (key, value): (&str, &str),
        now: Time,
    ) -> Result<(), RunError>
    where
        P: Packet + Send + 'static,
        O: Observer<P>,
        M: Medium<P, O>,
    {
        let egresses = derived::queues(&spec.experiment, spec.queue);
        let refuse = |message: String| RunError::Settings {
            key: key.to_owned(),
            message,
        };
        let rate_of = egresses
            .iter()
            .position(|egress| key == format!("{}.rate", egress.key()));
        if let Some(link) = rate_of {
            if egresses[link].link.wifi.is_some() {
                return Err(refuse("a Wi-Fi link has no rate".into()));
            }
            let rate = match Kind::Rate.parse(value) {
                Ok(Value::Rate(rate)) => rate,
                _ => {
                    return Err(refuse(format!(
                        "got \"{value}\"; must be {}",
                        Kind::Rate.accepts()
                    )));
                }
            };
            return match network.set_rate(link, rate, now) {
                true => Ok(()),
                false => Err(refuse("a link with a trace has no rate".into())),
            };
        }
        let mut changed = Vec::new();
        for (link, egress) in egresses.iter().enumerate() {
            let prefix = match egress.owner {
                Owner::Comparison => "queue.".to_owned(),
                Owner::ComparisonUp => "queue.up.".to_owned(),
                Owner::Link | Owner::Up => format!("{}.queue.", egress.key()),
            };
            let name = key.strip_prefix(&prefix);
            if let Some(name) = name.filter(|name| !name.starts_with("up.")) {
                if egress.link.wifi.is_some() {
                    return Err(refuse(format!(
                        "{} is Wi-Fi; its disciplines cannot change during a run",
                        egress.link_key()
                    )));
                }
                let discipline = discipline(egress.arm, catalogue)?;
                let settings = self.0[link].with(discipline, name, value);
                let settings = settings.map_err(|error| refuse(error.message))?;
                discipline
                    .build(&settings)
                    .map_err(|error| refuse(error.message))?;
                changed.push((link, settings));
            }
        }
        if changed.is_empty() {
            let wired = egresses.iter().filter(|egress| egress.link.wifi.is_none());
            let rates: Vec<String> = wired
                .map(|egress| format!("{}.rate", egress.key()))
                .collect();
            let known = match rates.as_slice() {
                [] => "none can be set".to_owned(),
                rates => format!(
                    "keys that can be set are queue.KEY and {}",
                    rates.join(", ")
                ),
            };
            return Err(refuse(format!("no such key of a run; {known}")));
        }
        // All these disciplines are of one kind: if the first accepts the settings, so do the others.
        for (link, settings) in changed {
            network
                .change(link, &settings)
                .map_err(|error| refuse(error.message))?;
            self.0[link] = settings;
        }
        Ok(())
    }

    /// Gives a key of a queue's discipline another value, of the kind and in the range that the discipline has accepted before.
    ///
    /// # Errors
    /// The discipline refuses it. Nothing has changed then.
    pub fn replace<P, O, M>(
        &mut self,
        network: &mut Network<P, O, M>,
        queue: usize,
        name: &str,
        value: Value,
    ) -> Result<(), SettingError>
    where
        P: Packet + Send + 'static,
        O: Observer<P>,
        M: Medium<P, O>,
    {
        let settings = &mut self.0[queue];
        let before = put(settings, name, Some(value));
        let changed = network.change(queue, settings);
        if changed.is_err() {
            put(settings, name, before);
        }
        changed
    }
}

/// Gives a key its value, or takes it away; returns the value before.
fn put(settings: &mut Settings, name: &str, value: Option<Value>) -> Option<Value> {
    let values = &mut settings.values;
    let index = values.iter().position(|(known, _)| known == name);
    match (index, value) {
        (Some(index), Some(value)) => Some(std::mem::replace(&mut values[index].1, value)),
        (Some(index), None) => Some(values.remove(index).1),
        (None, value) => {
            values.extend(value.map(|value| (name.to_owned(), value)));
            None
        }
    }
}
