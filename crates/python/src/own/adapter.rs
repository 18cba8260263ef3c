//! An object of a Python class as an [`Aqm`].

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
#[cfg(unix)]
use sojourn_agent::decision::Occasion;
use sojourn_aqm::{Algorithm, Aqm, Backlog, Environment, Packet, Verdict};
use sojourn_units::{Duration, Time};

use super::views::{Chance, PacketView, QueueView};

/// The first exception that Python code raised in a run. The driver of the run then stops it.
#[derive(Clone, Default)]
pub struct Failure(Arc<Mutex<Option<PyErr>>>);

impl Failure {
    /// Takes the exception.
    pub fn take(&self) -> Option<PyErr> {
        self.slot().take()
    }

    /// Records an exception, if it is the first.
    pub fn note(&self, error: PyErr) {
        self.slot().get_or_insert(error);
    }

    /// True if there was an exception.
    pub fn has_happened(&self) -> bool {
        self.slot().is_some()
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bound methods of the class. All are optional, except that it needs `enqueue` or `dequeue`.
struct Methods {
    enqueue: Option<Py<PyAny>>,
    dequeue: Option<Py<PyAny>>,
    update: Option<Py<PyAny>>,
    overflow: Option<Py<PyAny>>,
    empty: Option<Py<PyAny>>,
    state: Option<Py<PyAny>>,
}

/// An algorithm written in Python. After its first exception it lets every packet pass.
pub struct PythonAqm {
    object: Py<PyAny>,
    methods: Methods,
    marks: bool,
    chance: Py<Chance>,
    next_update: Option<Time>,
    failure: Failure,
}

impl PythonAqm {
    /// The algorithm of `object`. With `marks`, a verdict of "mark" marks ECN-capable packets.
    ///
    /// # Errors
    /// It has neither `enqueue` nor `dequeue`, or its `update_interval` is not a time.
    pub fn new(object: &Bound<'_, PyAny>, marks: bool, failure: Failure) -> PyResult<Self> {
        let method = |name| -> PyResult<Option<Py<PyAny>>> {
            Ok(object.getattr_opt(name)?.map(Bound::unbind))
        };
        let methods = Methods {
            enqueue: method("enqueue")?,
            dequeue: method("dequeue")?,
            update: method("update")?,
            overflow: method("overflow")?,
            empty: method("empty")?,
            state: method("state")?,
        };
        if methods.enqueue.is_none() && methods.dequeue.is_none() {
            return Err(PyValueError::new_err(
                "the class has neither enqueue nor dequeue; it needs at least one",
            ));
        }
        let mut aqm = Self {
            object: object.clone().unbind(),
            methods,
            marks,
            chance: Py::new(object.py(), Chance::new())?,
            next_update: None,
            failure,
        };
        if aqm.methods.update.is_some() {
            aqm.schedule(object.py(), Time::ZERO)?;
        }
        Ok(aqm)
    }

    /// The occasions at which the class wants to be asked.
    #[cfg(unix)]
    pub fn occasions(&self) -> Vec<Occasion> {
        let methods = &self.methods;
        let has = [
            (&methods.enqueue, Occasion::Enqueue),
            (&methods.dequeue, Occasion::Dequeue),
            (&methods.overflow, Occasion::Overflow),
            (&methods.empty, Occasion::Empty),
            (&methods.update, Occasion::Timer),
            (&methods.state, Occasion::State),
        ];
        let has = has.into_iter().filter(|(method, _)| method.is_some());
        has.map(|(_, occasion)| occasion).collect()
    }

    fn schedule(&mut self, py: Python<'_>, now: Time) -> PyResult<()> {
        let interval = self.object.bind(py).getattr_opt("update_interval")?;
        let seconds = interval.and_then(|interval| interval.extract::<f64>().ok());
        let seconds = seconds.filter(|seconds| (1e-6..1e9).contains(seconds));
        let seconds = seconds.ok_or_else(|| {
            PyValueError::new_err(
                "update_interval: a class with update needs this attribute, in seconds, at least 1e-6",
            )
        })?;
        self.next_update = Some(now.saturating_add(Duration::from_secs_f64(seconds)));
        Ok(())
    }

    fn queue(&self, py: Python<'_>, backlog: Backlog) -> QueueView {
        QueueView {
            backlog,
            chance: self.chance.clone_ref(py),
        }
    }

    fn decide<P: Packet>(
        &self,
        (name, method): (&str, Option<&Py<PyAny>>),
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        let Some(method) = method.filter(|_| !self.failure.has_happened()) else {
            return Verdict::Pass;
        };
        let verdict = Python::attach(|py| {
            self.chance.get().environment().swap_random(env);
            let queue = self.queue(py, backlog);
            let answer = method.call1(py, (PacketView::of(packet), queue, now.as_secs_f64()));
            self.chance.get().environment().swap_random(env);
            verdict(answer?.bind(py), method.bind(py), name)
        });
        match verdict {
            Ok(Verdict::Mark) if !(self.marks && packet.ecn().is_capable()) => Verdict::DROP,
            Ok(verdict) => verdict,
            Err(error) => {
                self.failure.note(error);
                Verdict::Pass
            }
        }
    }

    fn notify(&self, method: Option<&Py<PyAny>>, backlog: Backlog, now: Time) {
        if let Some(method) = method.filter(|_| !self.failure.has_happened()) {
            let done =
                Python::attach(|py| method.call1(py, (self.queue(py, backlog), now.as_secs_f64())));
            if let Err(error) = done {
                self.failure.note(error);
            }
        }
    }
}

/// The error for what a method returned: "MyAqm.enqueue returned 1; must be … (my_aqm.py:12)".
pub fn wrong_answer(
    method: &Bound<'_, PyAny>,
    name: &str,
    answer: &dyn std::fmt::Debug,
    must: &str,
) -> PyErr {
    let mut shown = format!("{answer:?}");
    if let Some((end, _)) = shown.char_indices().nth(LONGEST_ANSWER) {
        shown.replace_range(end.., "…");
    }
    let of = method
        .getattr("__self__")
        .and_then(|of| of.get_type().name());
    let called = of.map_or(name.into(), |class| format!("{class}.{name}"));
    let place = place(method).unwrap_or_default();
    PyValueError::new_err(format!("{called} returned {shown}; must be {must}{place}"))
}

/// Where a method begins; not every callable has such a place.
fn place(method: &Bound<'_, PyAny>) -> PyResult<String> {
    let code = method.getattr("__code__")?;
    let (file, line) = (
        code.getattr("co_filename")?,
        code.getattr("co_firstlineno")?,
    );
    Ok(format!(" ({file}:{line})"))
}

/// The characters of a returned value that a message shows.
const LONGEST_ANSWER: usize = 80;

fn verdict(answer: &Bound<'_, PyAny>, method: &Bound<'_, PyAny>, name: &str) -> PyResult<Verdict> {
    if answer.is_none() {
        return Ok(Verdict::Pass);
    }
    match answer.extract::<String>().as_deref() {
        Ok("pass") => Ok(Verdict::Pass),
        Ok("mark") => Ok(Verdict::Mark),
        Ok("drop") => Ok(Verdict::DROP),
        _ => {
            let must = "\"pass\", \"mark\", \"drop\" or None";
            Err(wrong_answer(method, name, answer, must))
        }
    }
}

/// The variables that `state` returned.
fn variables(answer: &Bound<'_, PyAny>, method: &Bound<'_, PyAny>) -> PyResult<Vec<(String, f64)>> {
    let must = "a dict of numbers by name, as {\"probability\": 0.1}";
    let wrong = || wrong_answer(method, "state", answer, must);
    let dict = answer.cast::<PyDict>().map_err(|_| wrong())?;
    dict.iter()
        .map(|(name, value)| {
            let name: String = name.extract().map_err(|_| wrong())?;
            if SERIES_COLUMNS.contains(&name.as_str()) {
                let must = "another name: the series has this column already";
                return Err(wrong_answer(method, "state", &name, must));
            }
            let number = value.extract::<f64>().map_err(|_| wrong())?;
            Ok((name, number))
        })
        .collect()
}

impl<P: Packet> Aqm<P> for PythonAqm {
    fn on_enqueue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        self.decide(
            ("enqueue", self.methods.enqueue.as_ref()),
            packet,
            backlog,
            now,
            env,
        )
    }

    fn on_dequeue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        self.decide(
            ("dequeue", self.methods.dequeue.as_ref()),
            packet,
            backlog,
            now,
            env,
        )
    }
}

impl Algorithm for PythonAqm {
    fn on_overflow(&mut self, backlog: Backlog, now: Time) {
        self.notify(self.methods.overflow.as_ref(), backlog, now);
    }

    fn on_empty(&mut self, now: Time) {
        self.notify(self.methods.empty.as_ref(), Backlog::default(), now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.next_update
    }

    fn on_timer(&mut self, backlog: Backlog, now: Time) {
        self.next_update = None;
        self.notify(self.methods.update.as_ref(), backlog, now);
        if !self.failure.has_happened() {
            if let Err(error) = Python::attach(|py| self.schedule(py, now)) {
                self.failure.note(error);
            }
        }
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let Some(state) = &self.methods.state else {
            return;
        };
        let shown = Python::attach(|py| variables(&state.bind(py).call0()?, state.bind(py)));
        match shown {
            Ok(shown) => shown
                .iter()
                .for_each(|(name, value)| visit(lasting(name), *value)),
            Err(error) => self.failure.note(error),
        }
    }
}

/// The columns of the recorded series besides the discipline's variables, and those that identify the run.
const SERIES_COLUMNS: [&str; 12] = [
    "run",
    "label",
    "seed",
    "time_s",
    "direction",
    "packets",
    "sojourn_mean_ms",
    "sojourn_max_ms",
    "backlog_packets",
    "backlog_bytes",
    "dropped",
    "marked",
];

/// A name of a state variable with static lifetime; equal texts yield the same one.
fn lasting(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let lasting: &'static str = String::leak(name.into());
    names.insert(lasting);
    lasting
}
