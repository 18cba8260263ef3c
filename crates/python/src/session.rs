//! One run that Python drives step by step.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use numpy::PyReadwriteArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sojourn_experiment::derived;
use sojourn_sim::{FlowSample, QueueSample, Space};
use sojourn_units::{Duration, Kind, Value};

use crate::errors::{ExperimentError, RunError, failed_algorithm, failed_run};
use crate::own;
use crate::run::Run;
use crate::run_spec::RunSpec;

/// Events between two checks for Ctrl-C.
const EVENTS_PER_CHECK: u64 = 1 << 16;

/// One run in progress.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Session {
    /// `None` once it has finished.
    inner: Mutex<Option<sojourn_sim::Session>>,
    failure: own::Failure,
    /// The names of the queues, in the order of observations.
    queues: Vec<String>,
    end_s: f64,
    /// Wall time so far, in nanoseconds.
    wall_ns: AtomicU64,
    set_json: serde_json::Value,
}

type Guard<'a> = MutexGuard<'a, Option<sojourn_sim::Session>>;

impl Session {
    fn lock(&self) -> Guard<'_> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, act: impl FnOnce(&mut sojourn_sim::Session) -> T) -> PyResult<T> {
        let mut guard = self.lock();
        let session = guard.as_mut();
        let session = session.ok_or_else(|| RunError::new_err("the session has finished"))?;
        Ok(act(session))
    }

    fn spent(&self, since: Instant) {
        let nanos = since.elapsed().as_nanos() as u64;
        self.wall_ns.fetch_add(nanos, Ordering::Relaxed);
    }

    fn raised(&self) -> PyResult<()> {
        self.failure
            .take()
            .map_or(Ok(()), |raised| Err(failed_algorithm(raised)))
    }
}

#[pymethods]
impl Session {
    #[new]
    fn py_new(spec: &RunSpec) -> PyResult<Self> {
        let began = Instant::now();
        let failure = own::Failure::default();
        let built = sojourn_sim::Session::new(spec.inner.clone(), &own::catalogue(&failure));
        let inner = built.map_err(|error| match failure.take() {
            Some(raised) => failed_algorithm(raised),
            None => failed_run(&error),
        })?;
        let experiment = &spec.inner.experiment;
        let egresses = derived::queues(experiment, spec.inner.queue);
        let named = egresses.iter().map(derived::Egress::name);
        Ok(Self {
            end_s: inner.end().as_secs_f64(),
            inner: Mutex::new(Some(inner)),
            queues: named.collect(),
            wall_ns: AtomicU64::new(began.elapsed().as_nanos() as u64),
            set_json: spec.set_json(),
            failure,
        })
    }

    /// The simulated seconds so far.
    #[getter]
    fn now_s(&self) -> f64 {
        let now = self.lock().as_ref().map(sojourn_sim::Session::now);
        now.map_or(self.end_s, |now| now.as_secs_f64())
    }

    /// The end of the run in simulated seconds.
    #[getter]
    const fn end_s(&self) -> f64 {
        self.end_s
    }

    /// True if the run has reached its end.
    #[getter]
    fn finished(&self) -> bool {
        let guard = self.lock();
        guard.as_ref().is_none_or(sojourn_sim::Session::is_finished)
    }

    /// Continues for a span of simulated time, as text with a unit or in seconds, or to the end. Other threads
    /// continue meanwhile.
    fn step(&self, py: Python<'_>, span: &Bound<'_, PyAny>) -> PyResult<()> {
        let span = span_of(span)?;
        let until = self.with(|session| session.now().saturating_add(span).min(session.end()))?;
        loop {
            let now = py.detach(|| {
                self.with(|session| {
                    let began = Instant::now();
                    session.advance(until, EVENTS_PER_CHECK);
                    self.spent(began);
                    session.now()
                })
            });
            self.raised()?;
            py.check_signals()?;
            if now? >= until {
                return Ok(());
            }
        }
    }

    /// The state of the queues and flows, and the events since the last call.
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let seen = self.with(sojourn_sim::Session::observe)?;
        self.raised()?;
        let queues = PyDict::new(py);
        for (name, queue) in self.queues.iter().zip(&seen.queues) {
            queues.set_item(name, queue_dict(py, queue)?)?;
        }
        let flows: PyResult<Vec<_>> = seen.flows.iter().map(|flow| flow_dict(py, flow)).collect();
        let observation = PyDict::new(py);
        observation.set_item("since_s", seen.since.as_secs_f64())?;
        observation.set_item("now_s", seen.now.as_secs_f64())?;
        observation.set_item("queues", queues)?;
        observation.set_item("flows", flows?)?;
        Ok(observation)
    }

    /// The keys that can be set by number, each with its unit and range, and the names of an observation's numbers.
    fn space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let catalogue = own::catalogue(&self.failure);
        let space = self.with(|session| session.space(&catalogue).clone())?;
        // A discipline that was asked for its ranges may have failed.
        self.failure.take();
        space_dict(py, &space)
    }

    /// Sets the key with this number in `space` to a number in its unit.
    fn act(&self, index: i64, value: f64) -> PyResult<()> {
        let catalogue = own::catalogue(&self.failure);
        let acted = self.with(|session| {
            let space = session.space(&catalogue);
            let index = usize::try_from(index).ok();
            let action = index.and_then(|index| space.actions.get(index)).cloned();
            action.map(|action| session.act(&action, value, &catalogue))
        })?;
        self.raised()?;
        let acted = acted.ok_or_else(|| {
            ExperimentError::new_err(format!("act: got {index}; no key has this number"))
        })?;
        acted.map_err(|error| ExperimentError::new_err(error.to_string()))
    }

    /// Fills an array of float64 with an observation, in the order of `space`.
    fn observe_into(&self, numbers: &Bound<'_, PyAny>) -> PyResult<()> {
        let needed = self.with(|session| session.observed().len())?;
        let refused = |got: String| {
            let what = format!(
                "observe_into: got {got}; must be an array of {needed} float64 side by side"
            );
            ExperimentError::new_err(what)
        };
        let of_type = || numbers.get_type().to_string();
        let mut array: PyReadwriteArray1<'_, f64> =
            numbers.extract().map_err(|_| refused(of_type()))?;
        let numbers = array.as_slice_mut().map_err(|_| refused("gaps".into()))?;
        if numbers.len() < needed {
            return Err(refused(format!("{}", numbers.len())));
        }
        self.with(|session| session.observe_into(numbers))?;
        self.raised()
    }

    /// Sets a key to another value from now on.
    fn set(&self, key: &str, value: &str) -> PyResult<()> {
        let catalogue = own::catalogue(&self.failure);
        let set = self.with(|session| session.set(key, value, &catalogue))?;
        self.raised()?;
        set.map_err(|error| ExperimentError::new_err(error.to_string()))
    }

    /// Runs to the end if necessary, and returns the results. The session is then finished.
    fn finish(&self, py: Python<'_>) -> PyResult<Run> {
        self.step(py, self.end_s.into_pyobject(py)?.as_any())?;
        let session = self.lock().take();
        let session = session.ok_or_else(|| RunError::new_err("the session has finished"))?;
        let began = Instant::now();
        let mut result = py.detach(|| session.finish());
        self.spent(began);
        result.wall_s = self.wall_ns.load(Ordering::Relaxed) as f64 / 1e9;
        self.raised()?;
        Run::new(result, self.set_json.clone())
    }
}

/// A span of time: text with a unit, or seconds.
fn span_of(given: &Bound<'_, PyAny>) -> PyResult<Duration> {
    if let Ok(text) = given.extract::<String>() {
        if let Ok(Value::Duration(span)) = Kind::Duration.parse(&text) {
            return Ok(span);
        }
    } else if let Ok(seconds) = given.extract::<f64>() {
        if (0.0..1e9).contains(&seconds) {
            return Ok(Duration::from_secs_f64(seconds));
        }
    }
    let accepts = Kind::Duration.accepts();
    let what = format!("step: got {}; must be {accepts}, or seconds", given.repr()?);
    Err(ExperimentError::new_err(what))
}

/// A space for Python: `actions`, dictionaries of `key`, `unit`, `low`, `high`; `observations`, names.
pub fn space_dict<'py>(py: Python<'py>, space: &Space) -> PyResult<Bound<'py, PyDict>> {
    let actions = PyList::empty(py);
    for action in &space.actions {
        let dict = PyDict::new(py);
        dict.set_item("key", &action.key)?;
        dict.set_item("unit", action.unit)?;
        dict.set_item("low", action.range.0)?;
        dict.set_item("high", action.range.1)?;
        actions.append(dict)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("actions", actions)?;
    dict.set_item("observations", &space.observations)?;
    Ok(dict)
}

fn queue_dict<'py>(py: Python<'py>, queue: &QueueSample) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let recent = &queue.recent;
    dict.set_item("packets", recent.packets)?;
    dict.set_item(
        "sojourn_mean_ms",
        recent.sum as f64 / recent.packets as f64 / 1e6,
    )?;
    dict.set_item("sojourn_max_ms", recent.longest as f64 / 1e6)?;
    dict.set_item("backlog_packets", queue.backlog_packets)?;
    dict.set_item("backlog_bytes", queue.backlog_bytes)?;
    dict.set_item("dropped", queue.dropped)?;
    dict.set_item("marked", queue.marked)?;
    let state = PyDict::new(py);
    for (name, value) in &queue.state {
        state.set_item(name, value)?;
    }
    dict.set_item("state", state)?;
    Ok(dict)
}

fn flow_dict<'py>(py: Python<'py>, flow: &FlowSample) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("goodput_bps", flow.goodput_bps)?;
    dict.set_item("cwnd_segments", flow.cwnd)?;
    dict.set_item("ssthresh_segments", flow.ssthresh)?;
    dict.set_item("pacing_bps", flow.pacing_bps)?;
    dict.set_item("state", flow.state)?;
    dict.set_item("rtt_ms", flow.rtt_ms)?;
    Ok(dict)
}
