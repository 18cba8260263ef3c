//! Replays a recorded queue through a discipline.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use sojourn_aqm::replay::{self, Event, Recorded};
use sojourn_aqm::{Limit, Qdisc, Settings};
use sojourn_experiment::model::Buffer;
use sojourn_experiment::{Plan, Source, read};
use sojourn_units::{Duration, Kind, Time, Value};

use crate::errors::{ExperimentError, failed_algorithm, wrong_input};
use crate::own;

/// The most times at which an algorithm's state is sampled.
const MOST_INSTANTS: u64 = 1_000_000;

/// A parsed and checked recording.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Recording(Vec<Event>);

#[pymethods]
impl Recording {
    /// Reads the text of a recording; `name` replaces the file name in messages.
    #[staticmethod]
    fn read(py: Python<'_>, text: &[u8], name: &str) -> PyResult<Self> {
        let refuse = |what: String| ExperimentError::new_err(format!("{name}:{what}"));
        let text =
            std::str::from_utf8(text).map_err(|_| refuse(" not a text file of events".into()))?;
        let events = py.detach(|| replay::read(text)).map_err(|error| {
            let space = if error.line.is_some() { "" } else { " " };
            refuse(format!("{space}{error}"))
        })?;
        Ok(Self(events))
    }

    /// Replays it through a discipline; overrides are its keys with values. Returns the outcome as JSON.
    fn replay(
        &self,
        py: Python<'_>,
        aqm: &str,
        overrides: Vec<(String, String)>,
    ) -> PyResult<String> {
        let arm = Arm::read(aqm, overrides)?;
        let outcome = py.detach(|| {
            let mut qdisc = arm.build()?;
            Ok::<_, PyErr>(replay::replay(qdisc.as_mut(), &self.0, arm.seed))
        })?;
        arm.finish()?;
        let divergence = outcome.first_divergence.map(|divergence| {
            let mut report = json!({
                "event": divergence.event,
                "t_us": divergence.t_us,
                "expected": divergence.expected,
                "got": divergence.got,
            });
            if let Some((recorded, ours)) = divergence.ce {
                report["expected_ce"] = recorded.into();
                report["got_ce"] = ours.into();
            }
            report
        });
        let mut report = json!({
            "enqueued": outcome.enqueued,
            "dequeued": outcome.dequeued,
            "dropped_recorded": outcome.dropped_recorded,
            "dropped_ours": outcome.dropped_ours,
            "agree": outcome.agree,
            "first_divergence": divergence,
        });
        if let Some((recorded, ours)) = outcome.marked {
            report["marked_recorded"] = recorded.into();
            report["marked_ours"] = ours.into();
        }
        Ok(report.to_string())
    }

    /// Shows the recorded queue to a discipline's algorithm. Returns the columns `t_us` and each variable of the algorithm,
    /// with a row at the first event and then one after each interval `every`.
    fn follow<'py>(
        &self,
        py: Python<'py>,
        aqm: &str,
        overrides: Vec<(String, String)>,
        every: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let instants = self.instants(every)?;
        let arm = Arm::read(aqm, overrides)?;
        let mut series: Vec<(&'static str, Vec<f64>)> = Vec::new();
        py.detach(|| {
            let mut qdisc = arm.build()?;
            let algorithm = qdisc.aqm().ok_or_else(|| {
                ExperimentError::new_err(format!(
                    "--follow: \"{aqm}\" is not a single algorithm on one queue, as pie, red and codel are"
                ))
            })?;
            let mut row = 0;
            replay::follow(algorithm, &self.0, &instants, &mut |_, algorithm| {
                algorithm.state(&mut |name, value| note(&mut series, row, name, value));
                row += 1;
                series.iter_mut().for_each(|(_, column)| column.resize(row, f64::NAN));
            });
            Ok::<_, PyErr>(())
        })?;
        arm.finish()?;
        let first_us = self.0[0].time().as_nanos() / 1_000;
        let t_us: Vec<u64> = instants
            .iter()
            .map(|instant| first_us + instant.as_nanos() / 1_000)
            .collect();
        let columns = PyDict::new(py);
        columns.set_item("t_us", t_us.into_pyarray(py))?;
        for (name, column) in series {
            columns.set_item(name, column.into_pyarray(py))?;
        }
        Ok(columns)
    }
}

/// Adds a value to its column at `row`. Earlier rows of a new column are NaN.
fn note(series: &mut Vec<(&'static str, Vec<f64>)>, row: usize, name: &'static str, value: f64) {
    let index = series.iter().position(|(known, _)| *known == name);
    let index = index.unwrap_or_else(|| {
        series.push((name, Vec::new()));
        series.len() - 1
    });
    let column = &mut series[index].1;
    column.resize(row, f64::NAN);
    column.push(value);
}

impl Recording {
    fn instants(&self, every: &str) -> PyResult<Vec<Time>> {
        let refuse = |must: String| {
            ExperimentError::new_err(format!("--follow: got \"{every}\"; must be {must}"))
        };
        let Ok(Value::Duration(step)) = Kind::Duration.parse(every) else {
            return Err(refuse(Kind::Duration.accepts()));
        };
        let length = replay::length(&self.0);
        let least = Duration::from_micros(length.as_micros().div_ceil(MOST_INSTANTS).max(1));
        if step < least {
            return Err(refuse(format!("at least \"{least}\" for this recording")));
        }
        let count = length.as_nanos() / step.as_nanos();
        Ok((0..=count)
            .map(|k| Time::ZERO + step.saturating_mul(k))
            .collect())
    }
}

/// A discipline with its parameters, parsed like a queue of an experiment.
struct Arm {
    plan: Plan,
    limit: Option<Limit>,
    seed: u64,
    failure: own::Failure,
}

/// An experiment without its queue.
const FRAME: &str = "\
[experiment]
duration = \"1 s\"
[link]
rate = \"10 Mbit/s\"
[[traffic]]
kind = \"ping\"
rtt = \"100 ms\"
[[queue]]
";

impl Arm {
    /// Reads the queue. A key without a dot belongs to the queue.
    fn read(aqm: &str, overrides: Vec<(String, String)>) -> PyResult<Self> {
        let names = own::names();
        let name = [("queue.0.aqm".into(), aqm.into())];
        let overrides: Vec<(String, String)> = overrides
            .into_iter()
            .map(|(key, value)| match key.contains('.') {
                true => (key, value),
                false => (format!("queue.0.{key}"), value),
            })
            .chain(name)
            .collect();
        let text = FRAME;
        let plan = read(
            Source {
                name: "replay",
                text,
            },
            &overrides,
            &names,
        )
        .map_err(|error| wrong_input(&error))?;
        let experiment = &plan.cells[0].experiment;
        let arm = &experiment.queues[0];
        let limit = match arm.limit.or(experiment.links[0].buffer) {
            None => None,
            Some(Buffer::Packets(packets)) => Some(Limit::Packets(packets)),
            Some(Buffer::Bytes(bytes)) => Some(Limit::Bytes(bytes)),
            Some(Buffer::Bdp(_) | Buffer::Time(_)) => {
                let must = "must be in packets or bytes: a recording has no rate and no base RTT";
                return Err(wrong_input(
                    &plan.refuse(0, "queue.0.limit", must, |_| true),
                ));
            }
        };
        let seed = experiment.seed;
        Ok(Self {
            plan,
            limit,
            seed,
            failure: own::Failure::default(),
        })
    }

    fn build(&self) -> PyResult<Box<dyn Qdisc<Recorded> + Send>> {
        let catalogue = own::disciplines::<Recorded>(&self.failure);
        let experiment = &self.plan.cells[0].experiment;
        let arm = &experiment.queues[0];
        let name = &arm.aqm;
        let discipline = catalogue.get(name).ok_or_else(|| {
            ExperimentError::new_err(format!("--aqm: got \"{name}\"; see sojourn list aqm"))
        })?;
        let link = &experiment.links[0];
        let mut settings = Settings::new(link.rate.nominal(), 1500 + link.overhead);
        settings.limit = self.limit;
        settings.values.clone_from(&arm.settings);
        discipline.build(&settings).map_err(|error| {
            let key = format!("queue.0.{}", error.key);
            wrong_input(&self.plan.refuse(0, &key, &error.message, |_| true))
        })
    }

    /// Reports the failure of an algorithm in Python.
    ///
    /// # Errors
    /// The algorithm raised an exception.
    fn finish(&self) -> PyResult<()> {
        self.failure
            .take()
            .map_or(Ok(()), |error| Err(failed_algorithm(error)))
    }
}
