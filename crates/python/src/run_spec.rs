//! One run as a value, and its monitor.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use serde_json::Value as Json;
use sojourn_experiment::{InUse, hashed, parts, sha256};
use sojourn_sim::Session;
use sojourn_units::{Duration, Time};

use crate::errors::{Cancelled, ExperimentError, failed_algorithm, failed_run, wrong_input};
use crate::own;
use crate::run::Run;

/// Events between two reads of the monitor.
const EVENTS_PER_REPORT: u64 = 1 << 14;

/// One run: an experiment, one of its arms, and a seed. It can be pickled, compared and used as a key of a dict.
#[pyclass(frozen, module = "sojourn._core")]
pub struct RunSpec {
    /// The run, as the experiment crate represents it.
    pub inner: sojourn_experiment::RunSpec,
    /// The values that the disciplines of all arms use for their keys, if known.
    in_use: Option<Arc<InUse>>,
    /// What the texts of the arm's runs have in common, once one is requested.
    common: Arc<Common>,
    /// Its document as text, and the hash of that, once requested.
    written: OnceLock<(String, String)>,
}

/// The document of a run as text, and what its hash is of: each before and behind the seed, in which the runs of an arm
/// differ.
pub type Common = OnceLock<[(String, String); 2]>;

impl RunSpec {
    /// A run for Python.
    pub fn new(inner: sojourn_experiment::RunSpec) -> Self {
        Self::of_arm(inner, None, Arc::default())
    }

    /// A run of an arm, with the values that the disciplines of all arms use for their keys.
    pub const fn of_arm(
        inner: sojourn_experiment::RunSpec,
        in_use: Option<Arc<InUse>>,
        common: Arc<Common>,
    ) -> Self {
        Self {
            inner,
            in_use,
            common,
            written: OnceLock::new(),
        }
    }

    /// Its document as text, and the hash of that.
    pub fn written(&self) -> PyResult<&(String, String)> {
        if let Some(written) = self.written.get() {
            return Ok(written);
        }
        let own = own::digests(&self.inner);
        // The source of an algorithm in Python may be another by now.
        let alone = Common::new();
        let common = if own.is_empty() {
            &*self.common
        } else {
            &alone
        };
        let common = match common.get() {
            Some(parts) => parts,
            None => {
                let mut document = self.document_json()?;
                if !own.is_empty() {
                    document["own"] = own.into();
                }
                let texts = [document.to_string(), hashed(document).to_string()];
                // The keys of the document are sorted: no other seed is before that of the run.
                let seed = format!("\"seed\":{}", self.inner.seed);
                let parts = texts.map(|text| {
                    let (before, behind) = text.split_once(&seed).expect("a run has a seed");
                    (format!("{before}\"seed\":"), behind.to_owned())
                });
                common.get_or_init(|| parts)
            }
        };
        let [document, hashed] = common
            .each_ref()
            .map(|(before, behind)| format!("{before}{}{behind}", self.inner.seed));
        Ok(self.written.get_or_init(|| (document, sha256(&hashed))))
    }

    fn document_json(&self) -> PyResult<Json> {
        match &self.in_use {
            Some(in_use) => {
                let arm = in_use.queues.get(self.inner.queue).cloned();
                Ok(self.inner.document(&InUse {
                    queues: arm.into_iter().collect(),
                    links: in_use.links.clone(),
                }))
            }
            None => {
                let failure = own::Failure::default();
                let document = sojourn_sim::document(&self.inner, &own::catalogue(&failure));
                document.map_err(|error| match failure.take() {
                    Some(raised) => failed_algorithm(raised),
                    None => failed_run(&error),
                })
            }
        }
    }

    /// Runs it in the simulator, without Python unless it has algorithms of Python.
    fn made(&self, monitor: &Monitor) -> PyResult<Run> {
        let failure = own::Failure::default();
        let began = Instant::now();
        let mut session =
            Session::new(self.inner.clone(), &own::catalogue(&failure)).map_err(|error| {
                failure
                    .take()
                    .map_or_else(|| failed_run(&error), failed_algorithm)
            })?;
        while !session.is_finished() && !failure.has_happened() {
            if monitor.cancelled() {
                return Err(Cancelled::new_err("cancelled"));
            }
            session.advance(session.end(), EVENTS_PER_REPORT);
            monitor.report_at(session.now());
        }
        if let Some(raised) = failure.take() {
            return Err(failed_algorithm(raised));
        }
        let mut result = session.finish();
        result.wall_s = began.elapsed().as_secs_f64();
        Run::new(result, self.set_json())
    }

    /// The swept keys and their values.
    pub fn set_json(&self) -> Json {
        self.inner.set_json()
    }
}

#[pymethods]
impl RunSpec {
    /// Reads a run from its `document`.
    #[staticmethod]
    fn read(document: &str) -> PyResult<Self> {
        let inner = sojourn_experiment::RunSpec::read(document, &own::names())
            .map_err(|error| wrong_input(&error))?;
        let json: Json = serde_json::from_str(document).unwrap_or_default();
        for (name, digest) in own::digests(&inner) {
            if json["own"][&name] != digest {
                let what = format!(
                    "run: own algorithm \"{name}\" is registered here from another source than where the run was written"
                );
                return Err(ExperimentError::new_err(what));
            }
        }
        Ok(Self::new(inner))
    }

    /// The run as JSON, with every default. Equal texts mean equal runs, except for names.
    #[getter]
    fn document(&self) -> PyResult<&str> {
        Ok(&self.written()?.0)
    }

    /// Its queues and flows, described, as JSON.
    #[getter]
    fn parts_json(&self) -> String {
        let (queues, flows) = (parts::queues(&self.inner), parts::flows(&self.inner));
        serde_json::json!({ "queues": queues, "flows": flows }).to_string()
    }

    /// SHA-256, in hexadecimal, of everything that determines the run's results.
    #[getter]
    fn hash(&self) -> PyResult<&str> {
        Ok(&self.written()?.1)
    }

    /// The experiment's name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.experiment.name
    }

    /// The arm's discipline.
    #[getter]
    fn queue(&self) -> &str {
        &self.inner.arm().aqm
    }

    /// The arm's name.
    #[getter]
    fn label(&self) -> &str {
        &self.inner.arm().label
    }

    /// The seed.
    #[getter]
    const fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// The swept keys and their values, as JSON.
    #[getter(set_json)]
    fn py_set_json(&self) -> String {
        self.set_json().to_string()
    }

    /// Simulated duration in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.inner.experiment.duration.as_secs_f64()
    }

    /// What the run costs, to be compared with other runs, for estimates of the time left.
    #[getter]
    fn effort(&self) -> f64 {
        self.inner.effort()
    }

    /// The part of its packets, estimated, that is sent in its first seconds.
    fn progress(&self, seconds: f64) -> f64 {
        self.inner.progress(Duration::from_secs_f64(seconds))
    }

    /// The packets that the traffic sends, estimated, without acknowledgements.
    #[getter]
    fn packets(&self) -> f64 {
        self.inner.packets()
    }

    /// The packets that enter queues, estimated, one per queue and with acknowledgements.
    #[getter]
    fn queued_packets(&self) -> f64 {
        self.inner.queued_packets()
    }

    /// Runs it in the simulator; other threads continue meanwhile.
    fn run(&self, py: Python<'_>, monitor: &Monitor) -> PyResult<Run> {
        py.detach(|| self.made(monitor))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let read = PyType::new::<Self>(py).getattr("read")?;
        (read, (slf.get().document()?,)).into_pyobject(py)
    }

    fn __eq__(&self, other: &Self) -> PyResult<bool> {
        Ok(self.written()?.0 == other.written()?.0)
    }

    fn __hash__(&self) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.written()?.0.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(&self) -> PyResult<String> {
        let hash = &self.written()?.1[..12];
        Ok(format!(
            "<RunSpec {}, seed {}, {hash}>",
            self.label(),
            self.seed()
        ))
    }
}

/// Runs several in the simulator, one after another, and hashes them; returns a result or an error for each. Python
/// hears of them together: a thread that is given back to Python waits for the others.
#[pyfunction]
pub fn run_each(
    py: Python<'_>,
    runs: Vec<(Py<RunSpec>, Py<Monitor>)>,
) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let made: Vec<PyResult<Run>> = py.detach(|| {
        let make = |(spec, monitor): &(Py<RunSpec>, Py<Monitor>)| {
            let made = spec.get().made(monitor.get());
            // Whoever asks for a hash that there cannot be is told then.
            let _ = spec.get().written();
            made
        };
        runs.iter().map(make).collect()
    });
    made.into_iter()
        .map(|made| match made {
            Ok(run) => Ok(Bound::new(py, run)?.into_any()),
            Err(error) => Ok(error.into_value(py).into_bound(py).into_any()),
        })
        .collect()
}

/// Shows the progress of one run to another thread, which can also cancel the run.
#[pyclass(frozen, module = "sojourn._core")]
#[derive(Default)]
pub struct Monitor {
    simulated_ns: AtomicU64,
    cancelled: AtomicBool,
}

impl Monitor {
    fn report_at(&self, now: Time) {
        self.simulated_ns.store(now.as_nanos(), Ordering::Relaxed);
    }
}

#[pymethods]
impl Monitor {
    #[new]
    fn py_new() -> Self {
        Self::default()
    }

    /// The simulated seconds so far.
    #[getter]
    fn simulated_s(&self) -> f64 {
        Time::from_nanos(self.simulated_ns.load(Ordering::Relaxed)).as_secs_f64()
    }

    /// Stops the run soon.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// True if the run was asked to stop.
    #[getter]
    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Sets the simulated seconds so far, for a run that is not made by this module.
    fn report(&self, simulated_s: f64) {
        self.report_at(Time::ZERO + Duration::from_secs_f64(simulated_s));
    }
}
