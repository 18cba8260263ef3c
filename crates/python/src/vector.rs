//! Many runs at once for a controller that learns: acted on and observed together, on several threads.

use std::sync::Mutex;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use sojourn_sim::{Action, Catalogue, Session, Space};
use sojourn_units::{Duration, Time};

use crate::errors::{ExperimentError, failed_algorithm, failed_run};
use crate::own;
use crate::run_spec::RunSpec;

/// Runs in step: every one is advanced by the same interval.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Vector {
    lanes: Mutex<Vec<Lane>>,
    space: Space,
    actions: Vec<Action>,
    interval: Duration,
    threads: usize,
}

/// One of the runs.
struct Lane {
    session: Session,
    failure: own::Failure,
    catalogue: Catalogue,
    /// What went wrong in its last step.
    refused: Option<String>,
}

impl Lane {
    fn new(spec: &RunSpec) -> PyResult<Self> {
        let failure = own::Failure::default();
        let catalogue = own::catalogue(&failure);
        let built = Session::new(spec.inner.clone(), &catalogue);
        let session = built.map_err(|error| match failure.take() {
            Some(raised) => failed_algorithm(raised),
            None => failed_run(&error),
        })?;
        Ok(Self {
            session,
            failure,
            catalogue,
            refused: None,
        })
    }

    fn step(&mut self, actions: &[Action], values: &[f64], interval: Duration, seen: &mut [f64]) {
        for (action, value) in actions.iter().zip(values) {
            if let Err(error) = self.session.act(action, *value, &self.catalogue) {
                self.refused.get_or_insert(error.to_string());
            }
        }
        let until: Time = self.session.now().saturating_add(interval);
        self.session.step(until);
        self.session.observe_into(seen);
    }
}

type Observed<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<bool>>);

#[pymethods]
impl Vector {
    /// `keys`: what the columns of actions set; `interval_s`: the simulated seconds of a step.
    #[new]
    fn py_new(
        specs: Vec<PyRef<'_, RunSpec>>,
        keys: Vec<String>,
        interval_s: f64,
        threads: usize,
    ) -> PyResult<Self> {
        let lanes: PyResult<Vec<Lane>> = specs.iter().map(|spec| Lane::new(spec)).collect();
        let lanes = lanes?;
        let first = lanes
            .first()
            .ok_or_else(|| ExperimentError::new_err("vector: needs a run"))?;
        let space = first.session.space(&first.catalogue).clone();
        let action = |key: &String| {
            let known = space.actions.iter().find(|action| action.key == *key);
            known.cloned().ok_or_else(|| {
                let known: Vec<&str> = space.actions.iter().map(|action| &*action.key).collect();
                let known = known.join(", ");
                ExperimentError::new_err(format!("act: got \"{key}\"; must be one of {known}"))
            })
        };
        Ok(Self {
            actions: keys.iter().map(action).collect::<PyResult<_>>()?,
            interval: Duration::from_secs_f64(interval_s),
            threads: threads.max(1),
            space,
            lanes: Mutex::new(lanes),
        })
    }

    /// As `Session.space`.
    fn space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        crate::session::space_dict(py, &self.space)
    }

    /// Puts another run in the place of one, at its beginning.
    fn reset(&self, index: usize, spec: &RunSpec) -> PyResult<()> {
        let lane = Lane::new(spec)?;
        if lane.session.observed().len() != self.space.observations.len() {
            let what = "reset: the run has other queues or flows; every cell of the sweep must have the same";
            return Err(ExperimentError::new_err(what));
        }
        let mut lanes = self.lanes.lock().expect("no step has panicked");
        let slot = lanes
            .get_mut(index)
            .ok_or_else(|| ExperimentError::new_err(format!("reset: there is no run {index}")))?;
        *slot = lane;
        Ok(())
    }

    /// Sets the keys of every run to a row of `values`, advances it by the interval, and observes it: a row of numbers per
    /// run, and whether it has ended.
    fn step<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Observed<'py>> {
        let width = self.space.observations.len();
        let keys = self.actions.len();
        let mut lanes = self.lanes.lock().expect("no step has panicked");
        let count = lanes.len();
        if values.as_array().dim() != (count, keys) {
            let what = format!(
                "step: got actions of shape {:?}; must be {:?}",
                values.as_array().dim(),
                (count, keys)
            );
            return Err(ExperimentError::new_err(what));
        }
        let values: Vec<f64> = values.as_array().iter().copied().collect();
        let mut seen = vec![0.0; count * width];
        let each = count.div_ceil(self.threads);
        let lanes = &mut *lanes;
        py.detach(|| {
            std::thread::scope(|scope| {
                let parts = lanes
                    .chunks_mut(each)
                    .zip(seen.chunks_mut(each * width.max(1)))
                    .enumerate();
                // The last part on this thread, so that a single one starts no other.
                for (part, (lanes, seen)) in parts {
                    let values = &values[part * each * keys..];
                    let mut work = move || {
                        for (number, lane) in lanes.iter_mut().enumerate() {
                            let own = &values[number * keys..(number + 1) * keys];
                            let row = &mut seen[number * width..(number + 1) * width];
                            lane.step(&self.actions, own, self.interval, row);
                        }
                    };
                    if (part + 1) * each >= count {
                        work();
                    } else {
                        scope.spawn(work);
                    }
                }
            });
        });
        // Of every run, so that none is raised by a later step.
        let raised: Vec<_> = lanes
            .iter()
            .filter_map(|lane| lane.failure.take())
            .collect();
        let refused: Vec<_> = (lanes.iter_mut())
            .filter_map(|lane| lane.refused.take())
            .collect();
        if let Some(raised) = raised.into_iter().next() {
            return Err(failed_algorithm(raised));
        }
        if let Some(refused) = refused.into_iter().next() {
            return Err(ExperimentError::new_err(refused));
        }
        let ended: Vec<bool> = lanes
            .iter()
            .map(|lane| lane.session.is_finished())
            .collect();
        let seen = seen.into_pyarray(py).reshape([count, width])?;
        Ok((seen, ended.into_pyarray(py)))
    }
}
