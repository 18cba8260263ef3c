//! An algorithm in Rust for use in Python classes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_aqm::{Aqm, Catalogue, Qdisc, Settings, Verdict};
use sojourn_experiment::unknown_key;
use sojourn_units::{Rate, Time};

use super::keys::value_of;
use super::views::{PacketView, QueueView};
use crate::errors::ExperimentError;

/// An algorithm in Rust, with the methods of a user-defined class: ``algorithm("pie", target="20 ms")``.
#[pyclass(frozen, module = "sojourn")]
pub struct Algorithm(Mutex<Box<dyn Qdisc<PacketView> + Send>>);

impl Algorithm {
    fn discipline(&self) -> MutexGuard<'_, Box<dyn Qdisc<PacketView> + Send>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, call: impl FnOnce(&mut dyn Aqm<PacketView>) -> T) -> PyResult<T> {
        let mut discipline = self.discipline();
        // Checked on construction.
        let aqm = discipline
            .aqm()
            .ok_or_else(|| PyRuntimeError::new_err("has no algorithm"))?;
        Ok(call(aqm))
    }
}

fn time(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9).round() as u64)
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Mark => "mark",
        Verdict::Drop(_) => "drop",
    }
}

#[pymethods]
impl Algorithm {
    #[new]
    #[pyo3(signature = (name, /, *, mtu = 1514, rate = 10_000_000, **settings))]
    fn new(
        name: &str,
        mtu: u32,
        rate: u64,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let refuse = |what: String| ExperimentError::new_err(format!("algorithm: {what}"));
        let catalogue = Catalogue::<PacketView>::new();
        let discipline = catalogue
            .get(name)
            .ok_or_else(|| refuse(format!("got \"{name}\"; see sojourn list aqm")))?;
        let rate =
            Rate::from_bps(rate).ok_or_else(|| refuse("rate: got 0; must be above 0".into()))?;
        let mut given = Settings::new(rate, mtu);
        for (key, value) in settings.into_iter().flatten() {
            let key: String = key.extract()?;
            let value = match (discipline.key(&key), key.as_str()) {
                (Some(key), _) => value_of(&key, &value)
                    .map_err(|error| refuse(format!("{name}: {}", error.value(value.py()))))?,
                (None, "ecn") => sojourn_units::Value::Flag(value.extract()?),
                _ => {
                    let keys = discipline.keys();
                    let known = keys.iter().map(|key| key.name);
                    let what = unknown_key(&key, std::iter::once("ecn").chain(known), name);
                    return Err(refuse(format!("{key}: {what}")));
                }
            };
            given.values.push((key, value));
        }
        let mut built = discipline
            .build(&given)
            .map_err(|error| refuse(format!("{name}: {error}")))?;
        if built.aqm().is_none() {
            return Err(refuse(format!(
                "got \"{name}\", which is not an algorithm for one queue, as pie, red and codel are"
            )));
        }
        Ok(Self(Mutex::new(built)))
    }

    /// Decides about an arrival: "pass", "mark" or "drop".
    fn enqueue(&self, packet: PacketView, queue: &QueueView, now: f64) -> PyResult<&'static str> {
        let mut env = queue.chance.get().environment();
        self.with(|aqm| word(aqm.on_enqueue(&packet, queue.backlog, time(now), &mut env)))
    }

    /// Decides about the packet at the head: "pass", "mark" or "drop".
    fn dequeue(&self, packet: PacketView, queue: &QueueView, now: f64) -> PyResult<&'static str> {
        let mut env = queue.chance.get().environment();
        self.with(|aqm| word(aqm.on_dequeue(&packet, queue.backlog, time(now), &mut env)))
    }

    /// Runs the algorithm's periodic update.
    fn update(&self, queue: &QueueView, now: f64) -> PyResult<()> {
        self.with(|aqm| aqm.on_timer(queue.backlog, time(now)))
    }

    /// Notifies the algorithm of an arrival for which there was no room.
    fn overflow(&self, queue: &QueueView, now: f64) -> PyResult<()> {
        self.with(|aqm| aqm.on_overflow(queue.backlog, time(now)))
    }

    /// Notifies the algorithm that a packet was requested from the empty queue.
    #[pyo3(signature = (_queue, now, /))]
    fn empty(&self, _queue: &QueueView, now: f64) -> PyResult<()> {
        self.with(|aqm| aqm.on_empty(time(now)))
    }

    /// Its variables, with the names of its defining document.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = PyDict::new(py);
        let mut variables = Vec::new();
        self.with(|aqm| aqm.state(&mut |name, value| variables.push((name, value))))?;
        for (name, value) in variables {
            state.set_item(name, value)?;
        }
        Ok(state)
    }
}
