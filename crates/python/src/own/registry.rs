//! The classes registered as algorithms, and the catalogue that includes them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use sojourn_aqm::{
    Built, Catalogue, Discipline, Key, Limit, Packet, SettingError, Settings, Single,
};
use sojourn_experiment::{Names, RunSpec};
use sojourn_units::Value;

use super::adapter::{Failure, PythonAqm};
use super::keys::Parameter;
use crate::errors::ExperimentError;

/// A registered class.
struct Registered {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    parameters: Vec<Parameter>,
    class: Py<PyType>,
    digest: String,
}

static REGISTRY: Mutex<Vec<Arc<Registered>>> = Mutex::new(Vec::new());

fn registry() -> MutexGuard<'static, Vec<Arc<Registered>>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a class under a name, replacing any earlier one of that name. Parameters are names and defaults (a tuple
/// of none or one); the digest identifies the source.
#[pyfunction]
pub fn register_aqm(
    name: &str,
    class_: Bound<'_, PyType>,
    summary: &str,
    parameters: Vec<(String, Vec<Bound<'_, PyAny>>)>,
    digest: String,
) -> PyResult<()> {
    let refuse = |what: String| ExperimentError::new_err(format!("register_aqm: {what}"));
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(word) {
        return Err(refuse(format!(
            "got name \"{name}\"; must be lower-case letters, digits and underscores, a letter first"
        )));
    }
    if sojourn_sim::catalogue().get(name).is_some() {
        return Err(refuse(format!(
            "got name \"{name}\"; Sojourn has a discipline of this name, choose another"
        )));
    }
    let parameters: Vec<Parameter> = parameters
        .iter()
        .map(|(name, default)| Parameter::new(name, default.first()))
        .collect::<PyResult<_>>()
        .map_err(|error| refuse(format!("{name}: {}", error.value(class_.py()))))?;
    let registered = Registered {
        name: String::leak(name.into()),
        summary: String::leak(summary.into()),
        source: String::leak(class_.fully_qualified_name()?.to_string()),
        parameters,
        class: class_.unbind(),
        digest,
    };
    let mut registry = registry();
    registry.retain(|known| known.name != name);
    registry.push(Arc::new(registered));
    Ok(())
}

/// Removes the class registered under a name; runs in progress keep it.
#[pyfunction]
pub fn unregister_aqm(name: &str) -> PyResult<()> {
    let mut registry = registry();
    let before = registry.len();
    registry.retain(|known| known.name != name);
    if registry.len() == before {
        let what =
            format!("unregister_aqm: got \"{name}\"; no class is registered under this name");
        return Err(ExperimentError::new_err(what));
    }
    Ok(())
}

/// The built-in disciplines and the registered ones. Their exceptions are recorded in `failure`.
pub fn catalogue<P: Packet + Send + 'static>(failure: &Failure) -> Catalogue<P> {
    let mut catalogue = Catalogue::new();
    for registered in registry().iter() {
        catalogue.add(discipline(Arc::clone(registered), failure.clone()));
    }
    catalogue
}

/// The registered classes that a run uses, each with the digest of its source.
pub fn digests(spec: &RunSpec) -> serde_json::Map<String, serde_json::Value> {
    let links = spec.experiment.links.iter();
    let of_links = links.flat_map(|link| {
        [
            link.queue.as_ref(),
            link.up.as_ref().and_then(|up| up.queue.as_ref()),
        ]
    });
    let named: Vec<&str> = of_links
        .chain([Some(spec.arm())])
        .flatten()
        .map(|queue| &*queue.aqm)
        .collect();
    let registry = registry();
    let found = registry.iter().filter(|known| named.contains(&known.name));
    found
        .map(|known| (known.name.into(), known.digest.as_str().into()))
        .collect()
}

/// The names accepted in a file.
pub fn names() -> Names {
    sojourn_sim::names_in(&catalogue(&Failure::default()))
}

fn discipline<P: Packet + Send + 'static>(
    registered: Arc<Registered>,
    failure: Failure,
) -> Discipline<P> {
    Discipline {
        name: registered.name,
        summary: registered.summary,
        source: registered.source,
        keys: {
            let registered = Arc::clone(&registered);
            Box::new(move || keys(&registered))
        },
        make: Box::new(move |settings| build(&registered, settings, &failure)),
    }
}

fn keys(registered: &Registered) -> Vec<Key> {
    let keys = registered.parameters.iter();
    keys.filter_map(|parameter| match parameter {
        Parameter::Key(key, _) => Some(key.clone()),
        Parameter::Mtu | Parameter::Rate => None,
    })
    .collect()
}

fn build<P: Packet + Send + 'static>(
    registered: &Registered,
    settings: &Settings,
    failure: &Failure,
) -> Built<P> {
    let limit = settings.limit_or(Limit::Packets(1000));
    let ecn_by_default = registered.parameters.iter().any(|parameter| {
        matches!(parameter, Parameter::Key(key, Value::Flag(true)) if key.name == "ecn")
    });
    let marks = settings.ecn_or(ecn_by_default)?;
    let aqm = Python::attach(|py| {
        let arguments = PyDict::new(py);
        for parameter in &registered.parameters {
            parameter.pass(settings, &arguments)?;
        }
        let object = registered.class.bind(py).call((), Some(&arguments))?;
        PythonAqm::new(&object, marks, failure.clone())
    });
    let aqm = aqm.map_err(|error| {
        let message = format!("cannot be built: {error}");
        if Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
            failure.note(error);
        }
        SettingError::new("aqm", message)
    })?;
    Ok(Box::new(Single::new(aqm, limit)))
}
