//! The results of a run.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{Element as Number, IntoPyArray};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Serialize;
use serde_json::Value as Json;
use sojourn_experiment::summary_json;
use sojourn_sim::RunResult;
use sojourn_sim::result::{Column, Table};

/// The results of one run.
#[pyclass(frozen, module = "sojourn._core")]
pub struct Run {
    summary_json: String,
    /// Recorded tables that have not been taken yet; `None` if not recorded.
    tables: Mutex<BTreeMap<&'static str, Option<Table>>>,
    /// The capture and the qlogs, until they are taken.
    files: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Run {
    /// A run's results; `set` holds the swept values of its cell.
    pub fn new<T: Serialize + AsMut<RunResult>>(mut run: T, set: Json) -> PyResult<Self> {
        let result = run.as_mut();
        let capture = result.capture.take();
        let capture = capture.map(|file| ("capture_*.pcapng".to_owned(), file));
        let qlogs = std::mem::take(&mut result.qlogs).into_iter();
        let qlogs = qlogs.map(|(flow, file)| (format!("qlog_*_flow_{flow}.sqlog"), file));
        let files = capture.into_iter().chain(qlogs).collect();
        let tables = BTreeMap::from([
            ("packets", result.packets.take()),
            ("medium", result.medium.take()),
            ("queue_series", result.queue_series.take()),
            ("flow_series", result.flow_series.take()),
            ("rtts", result.rtts.take()),
            ("completions", result.completions.take()),
            ("histogram", result.histogram.take()),
        ]);
        let summary_json =
            summary_json(&run, &set).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Self {
            summary_json,
            tables: Mutex::new(tables),
            files: Mutex::new(files),
        })
    }
}

#[pymethods]
impl Run {
    /// One element of `runs` in summary.json.
    #[getter]
    fn summary_json(&self) -> &str {
        &self.summary_json
    }

    /// Takes the packet capture and the flows' qlogs, only once, by their names in a folder of results, where `*` stands
    /// for the run.
    fn files<'py>(&self, py: Python<'py>) -> BTreeMap<String, Bound<'py, PyBytes>> {
        let files = std::mem::take(&mut *locked(&self.files)).into_iter();
        files
            .map(|(name, file)| (name, PyBytes::new(py, &file)))
            .collect()
    }

    /// Takes the columns of `packets`, `queue_series`, `flow_series`, `rtts`, `medium`, `completions` or `histogram` as
    /// NumPy arrays, without a copy and therefore only once; `None` if the table was not recorded.
    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let table = {
            let mut tables = locked(&self.tables);
            tables.remove(name).ok_or_else(|| {
                PyValueError::new_err(format!("no table \"{name}\", or it was already taken"))
            })?
        };
        table.map(|table| columns(py, table)).transpose()
    }
}

/// The content of a lock. A poisoned lock means that another thread panicked; its content is still consistent.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn columns(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in table.columns {
        dict.set_item(name, array(py, column))?;
    }
    Ok(dict)
}

fn array(py: Python<'_>, column: Column) -> Bound<'_, PyAny> {
    fn of<T: Number>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyAny> {
        values.into_pyarray(py).into_any()
    }
    match column {
        Column::U8(values) => of(py, values),
        Column::U32(values) => of(py, values),
        Column::U64(values) => of(py, values),
        Column::F64(values) => of(py, values),
    }
}
