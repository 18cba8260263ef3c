//! A bottleneck around Python's own packets.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use sojourn_path::{
    Datagram, DropReason, Ecn, FlowKey, Impair, PathBuilder, PathError, Verdict, Way,
};

use crate::errors::ExperimentError;

/// What packets carry: any object.
type Payload = Arc<Py<PyAny>>;

/// Keys and values: texts, numbers and flags.
type Keys<'py> = BTreeMap<String, Bound<'py, PyAny>>;

/// A path between two ends, which the caller's clock drives.
#[pyclass(frozen, module = "sojourn")]
pub struct Path(Mutex<sojourn_path::Path<Payload>>);

impl Path {
    fn lock(&self) -> MutexGuard<'_, sojourn_path::Path<Payload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An instant in seconds, unless it is before an earlier one.
    fn at(&self, now: f64) -> PyResult<(Duration, MutexGuard<'_, sojourn_path::Path<Payload>>)> {
        let path = self.lock();
        let before = path.now();
        let nanos = (now * 1e9).round();
        if !(nanos >= before.as_nanos() as f64 && nanos < 9e18) {
            let before = before.as_secs_f64();
            return Err(refuse(&format!(
                "now: got {now}; must be in seconds, not before {before}"
            )));
        }
        Ok((Duration::from_nanos(nanos as u64).max(before), path))
    }
}

fn refuse(what: &str) -> PyErr {
    ExperimentError::new_err(format!("Path: {what}"))
}

fn told(error: &PathError) -> PyErr {
    refuse(&error.to_string())
}

/// An error of the argument that has the key; the value of `own` is an argument itself.
fn told_of(argument: &str, own: &[(&str, &str)], error: &PathError) -> PyErr {
    let (key, message) = (&error.key, &error.message);
    match own.iter().find(|(known, _)| known == key) {
        Some((_, name)) => refuse(&format!("{name}: {message}")),
        None => refuse(&format!("{argument}: {key}: {message}")),
    }
}

/// A whole number that an argument accepts.
fn within<T: TryFrom<i128>>(
    argument: &str,
    given: impl Into<i128>,
    accepted: RangeInclusive<i128>,
) -> PyResult<T> {
    let given = given.into();
    let number = Some(given).filter(|given| accepted.contains(given));
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| {
            let (least, most) = accepted.into_inner();
            refuse(&format!(
                "{argument}: got {given}; must be from {least} to {most}"
            ))
        })
}

/// A value as an experiment file has it.
fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyBool>() {
        Ok(flag) => Ok(flag.is_true().to_string()),
        Err(_) => Ok(value.str()?.to_string()),
    }
}

fn texts(keys: &Keys<'_>) -> PyResult<Vec<(String, String)>> {
    keys.iter()
        .map(|(key, value)| Ok((key.clone(), text(value)?)))
        .collect()
}

fn way_of(name: &str) -> PyResult<Way> {
    match name {
        "down" => Ok(Way::Down),
        "up" => Ok(Way::Up),
        _ => Err(refuse(&format!(
            "way: got \"{name}\"; must be \"down\" or \"up\""
        ))),
    }
}

const fn word(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "not-ect",
        Ecn::Ect0 => "ect0",
        Ecn::Ect1 => "ect1",
        Ecn::Ce => "ce",
    }
}

fn impaired(
    builder: PathBuilder<Payload>,
    way: Way,
    keys: &Keys<'_>,
) -> PyResult<PathBuilder<Payload>> {
    if keys.is_empty() {
        return Ok(builder);
    }
    let argument = match way {
        Way::Down => "impair",
        Way::Up => "up_impair",
    };
    let mut impair = Impair::new();
    for (key, value) in keys {
        let share = || {
            value.extract::<f64>().map_err(|_| {
                refuse(&format!(
                    "{argument}: {key}: got {value}; must be a number from 0 to 1"
                ))
            })
        };
        impair = match key.as_str() {
            "loss" => impair.loss(share()?),
            "duplicate" => impair.duplicate(share()?),
            "corrupt" => impair.corrupt(share()?),
            "jitter" => impair.jitter(&*text(value)?),
            _ => {
                let known = "loss, jitter, duplicate, corrupt";
                return Err(refuse(&format!(
                    "{argument}: got \"{key}\"; must be one of {known}"
                )));
            }
        };
    }
    let impaired = builder.impair(way, impair);
    impaired.map_err(|error| told_of(argument, &[], &error))
}

#[pymethods]
impl Path {
    #[new]
    #[pyo3(signature = (
        rate, rtt, *, aqm = "pfifo", keys = None, up = None, up_aqm = None, up_keys = None, impair = None,
        up_impair = None, seed = 1
    ))]
    #[expect(clippy::too_many_arguments, reason = "named arguments of Python")]
    fn py_new(
        rate: &str,
        rtt: &str,
        aqm: &str,
        keys: Option<Keys<'_>>,
        up: Option<&str>,
        up_aqm: Option<&str>,
        up_keys: Option<Keys<'_>>,
        impair: Option<Keys<'_>>,
        up_impair: Option<Keys<'_>>,
        seed: i128,
    ) -> PyResult<Self> {
        let seed = within("seed", seed, 0..=u64::MAX.into())?;
        let mut builder = sojourn_path::Path::new(rate, rtt).map_err(|error| told(&error))?;
        let keys = texts(&keys.unwrap_or_default())?;
        builder = builder
            .aqm(aqm, keys.iter().map(|(key, value)| (&**key, &**value)))
            .map_err(|error| told_of("keys", &[("aqm", "aqm")], &error))?;
        if let Some(rate) = up {
            let keys = texts(&up_keys.unwrap_or_default())?;
            let keys = keys.iter().map(|(key, value)| (&**key, &**value));
            let aqm = up_aqm.unwrap_or("pfifo");
            let own = [("aqm", "up_aqm"), ("up rate", "up")];
            builder = builder
                .up_with(rate, aqm, keys)
                .map_err(|error| told_of("up_keys", &own, &error))?;
        } else if up_aqm.is_some() || up_keys.is_some() {
            let given = if up_aqm.is_some() {
                "up_aqm"
            } else {
                "up_keys"
            };
            return Err(refuse(&format!("{given}: needs up")));
        }
        builder = impaired(builder, Way::Down, &impair.unwrap_or_default())?;
        builder = impaired(builder, Way::Up, &up_impair.unwrap_or_default())?;
        Ok(Self(Mutex::new(builder.seed(seed).build())))
    }

    /// Sends a packet and returns its number, counted from 0.
    #[pyo3(signature = (now, payload, bytes, *, way = "down", ecn = "not-ect", flow = 0, dscp = 0))]
    #[expect(clippy::too_many_arguments, reason = "named arguments of Python")]
    fn send(
        &self,
        now: f64,
        payload: Py<PyAny>,
        bytes: i64,
        way: &str,
        ecn: &str,
        flow: i64,
        dscp: i64,
    ) -> PyResult<u64> {
        let way = way_of(way)?;
        let known = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        let ecn = known
            .into_iter()
            .find(|known| word(*known) == ecn)
            .ok_or_else(|| {
                let must = "must be \"not-ect\", \"ect0\", \"ect1\" or \"ce\"";
                refuse(&format!("ecn: got \"{ecn}\"; {must}"))
            })?;
        let bytes = within("bytes", bytes, 1..=u32::MAX.into())?;
        let flow = within("flow", flow, 0..=u32::MAX.into())?;
        let packet = Datagram::new(Arc::new(payload), bytes);
        let mut packet = packet.with_ecn(ecn).with_flow(FlowKey::numbered(flow));
        packet.dscp = within("dscp", dscp, 0..=63)?;
        let (now, mut path) = self.at(now)?;
        Ok(path.send(now, way, packet))
    }

    /// Handles what is due, and returns a packet that has arrived, or None.
    fn poll(&self, now: f64) -> PyResult<Option<Delivery>> {
        let (now, mut path) = self.at(now)?;
        Ok(path.poll(now).map(|out| Delivery {
            payload: out.payload,
            at_s: out.at.as_secs_f64(),
            sent_s: out.sent.as_secs_f64(),
            sojourn_s: out.sojourn.as_secs_f64(),
            way: out.way.name(),
            number: out.number,
            ecn: word(out.ecn),
            bytes: out.bytes,
            dscp: out.dscp,
        }))
    }

    /// When to poll next, in seconds; None: only after a packet was sent.
    fn next_event(&self) -> Option<f64> {
        self.lock().next_event().map(|at| at.as_secs_f64())
    }

    /// What happened to packets since the last call, oldest first.
    fn verdicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let events: Vec<_> = self.lock().verdicts().collect();
        let dict = |event: &sojourn_path::Event| {
            let dict = PyDict::new(py);
            dict.set_item("at_s", event.at.as_secs_f64())?;
            dict.set_item("way", event.way.name())?;
            dict.set_item("number", event.number)?;
            let verdict = match event.verdict {
                Verdict::Arrived => "arrived",
                Verdict::Marked => "marked",
                Verdict::Dropped { reason } => {
                    let reason = if reason == DropReason::Overflow {
                        "overflow"
                    } else {
                        "aqm"
                    };
                    dict.set_item("reason", reason)?;
                    "dropped"
                }
                Verdict::Left { sojourn } => {
                    dict.set_item("sojourn_s", sojourn.as_secs_f64())?;
                    "left"
                }
                Verdict::Lost => "lost",
                Verdict::Duplicated => "duplicated",
                _ => "other",
            };
            dict.set_item("verdict", verdict)?;
            Ok(dict)
        };
        events.iter().map(dict).collect()
    }

    /// Packets of a direction.
    #[pyo3(signature = (way = "down"))]
    fn counts<'py>(&self, py: Python<'py>, way: &str) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.lock().counts(way_of(way)?);
        let dict = PyDict::new(py);
        dict.set_item("sent", counts.sent)?;
        dict.set_item("delivered", counts.delivered)?;
        dict.set_item("dropped", counts.dropped)?;
        dict.set_item("marked", counts.marked)?;
        dict.set_item("lost", counts.lost)?;
        dict.set_item("duplicated", counts.duplicated)?;
        Ok(dict)
    }

    /// Packets under way.
    #[getter]
    fn packets(&self) -> u64 {
        self.lock().packets()
    }

    /// Sets the rate of a direction's link.
    #[pyo3(signature = (rate, *, way = "down"))]
    fn set_rate(&self, rate: &str, way: &str) -> PyResult<()> {
        let way = way_of(way)?;
        self.lock()
            .set_rate(way, rate)
            .map_err(|error| told(&error))
    }

    /// Sets the propagation there and back.
    fn set_delay(&self, rtt: &str) -> PyResult<()> {
        self.lock().set_delay(rtt).map_err(|error| told(&error))
    }
}

/// A packet that has arrived.
#[pyclass(frozen, module = "sojourn")]
pub struct Delivery {
    /// When it arrived, in seconds.
    #[pyo3(get)]
    at_s: f64,
    /// When it was sent.
    #[pyo3(get)]
    sent_s: f64,
    /// The time that it spent in the link's queue.
    #[pyo3(get)]
    sojourn_s: f64,
    /// Its direction: "down" or "up".
    #[pyo3(get)]
    way: &'static str,
    /// What ``send`` returned for it.
    #[pyo3(get)]
    number: u64,
    /// The ECN field as it arrived.
    #[pyo3(get)]
    ecn: &'static str,
    /// Bytes on the link.
    #[pyo3(get)]
    bytes: u32,
    /// The DiffServ code point.
    #[pyo3(get)]
    dscp: u8,
    payload: Payload,
}

#[pymethods]
impl Delivery {
    /// What it carries.
    #[getter]
    fn payload(&self, py: Python<'_>) -> Py<PyAny> {
        self.payload.clone_ref(py)
    }
}
