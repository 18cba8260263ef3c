//! The classes registered as algorithms, and the catalogue that includes them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use sojourn_agent::decision::Foreign;
#[cfg(unix)]
use sojourn_agent::decision::Seen;
use sojourn_aqm::{Discipline, Key, Limit, Make, Packet, SettingError, Settings, Single};
use sojourn_experiment::{DisciplineKeys, Names, RunSpec};
use sojourn_sim::Catalogue;
use sojourn_tcp::cc;
use sojourn_units::Value;

use super::adapter::{Failure, PythonAqm};
use super::control::{self, Argument};
use super::keys::Parameter;
use crate::errors::ExperimentError;

/// What a registered class is, with the parameters of its constructor.
enum What {
    Aqm(Vec<Parameter>),
    CongestionControl(Vec<Argument>),
}

impl What {
    const fn noun(&self) -> &'static str {
        match self {
            Self::Aqm(_) => "discipline",
            Self::CongestionControl(_) => "congestion control",
        }
    }

    /// True if both are disciplines, or both are congestion controls.
    fn is_as(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The parameters of a constructor: names and defaults, a tuple of none or one.
type Signature<'py> = Vec<(String, Vec<Bound<'py, PyAny>>)>;

/// A registered class.
struct Registered {
    what: What,
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    class: Py<PyType>,
    digest: String,
}

static REGISTRY: Mutex<Vec<Arc<Registered>>> = Mutex::new(Vec::new());

fn registry() -> MutexGuard<'static, Vec<Arc<Registered>>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a class as a discipline, replacing any earlier one of that name. The digest identifies the source.
#[pyfunction]
pub fn register_aqm(
    name: &str,
    class_: Bound<'_, PyType>,
    summary: &str,
    parameters: Signature<'_>,
    digest: String,
) -> PyResult<()> {
    let parameters = parameters
        .iter()
        .map(|(name, default)| Parameter::new(name, default.first()))
        .collect::<PyResult<_>>()
        .map_err(|error| {
            refuse(
                "register_aqm",
                &format!("{name}: {}", error.value(class_.py())),
            )
        })?;
    register(
        "register_aqm",
        What::Aqm(parameters),
        name,
        class_,
        summary,
        digest,
    )
}

/// Registers a class as a congestion control, replacing any earlier one of that name. The digest identifies the source.
#[pyfunction]
pub fn register_congestion_control(
    name: &str,
    class_: Bound<'_, PyType>,
    summary: &str,
    parameters: Signature<'_>,
    digest: String,
) -> PyResult<()> {
    const CALLER: &str = "register_congestion_control";
    let named = |error: PyErr| refuse(CALLER, &format!("{name}: {}", error.value(class_.py())));
    control::check(&class_).map_err(named)?;
    let required = parameters.iter().filter(|(_, default)| default.is_empty());
    let arguments = required
        .map(|(name, _)| Argument::new(name))
        .collect::<PyResult<_>>()
        .map_err(named)?;
    register(
        CALLER,
        What::CongestionControl(arguments),
        name,
        class_,
        summary,
        digest,
    )
}

fn refuse(caller: &str, what: &str) -> PyErr {
    ExperimentError::new_err(format!("{caller}: {what}"))
}

fn register(
    caller: &str,
    what: What,
    name: &str,
    class_: Bound<'_, PyType>,
    summary: &str,
    digest: String,
) -> PyResult<()> {
    let refuse = |what: &str| refuse(caller, what);
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(word) {
        return Err(refuse(&format!(
            "got name \"{name}\"; must be lower-case letters, digits and underscores, a letter first"
        )));
    }
    let built_in = sojourn_sim::catalogue();
    let is_taken = match what {
        What::Aqm(_) => built_in.disciplines.get(name).is_some(),
        What::CongestionControl(_) => built_in.congestion_controls.get(name).is_some(),
    };
    if is_taken {
        let noun = what.noun();
        return Err(refuse(&format!(
            "got name \"{name}\"; Sojourn has a {noun} of this name, choose another"
        )));
    }
    let mut registry = registry();
    // A run's document names the classes that it uses.
    if let Some(known) = registry
        .iter()
        .find(|known| known.name == name && !known.what.is_as(&what))
    {
        let noun = known.what.noun();
        return Err(refuse(&format!(
            "got name \"{name}\"; a {noun} is registered under this name, choose another"
        )));
    }
    let registered = Registered {
        name: String::leak(name.into()),
        summary: String::leak(summary.into()),
        source: String::leak(class_.fully_qualified_name()?.to_string()),
        what,
        class: class_.unbind(),
        digest,
    };
    registry.retain(|known| known.name != name);
    registry.push(Arc::new(registered));
    Ok(())
}

/// Removes the class registered under a name; runs in progress keep it.
#[pyfunction]
pub fn unregister_aqm(name: &str) -> PyResult<()> {
    unregister("unregister_aqm", name, |what| matches!(what, What::Aqm(_)))
}

/// Removes the class registered under a name; runs in progress keep it.
#[pyfunction]
pub fn unregister_congestion_control(name: &str) -> PyResult<()> {
    unregister("unregister_congestion_control", name, |what| {
        matches!(what, What::CongestionControl(_))
    })
}

fn unregister(caller: &str, name: &str, is_meant: fn(&What) -> bool) -> PyResult<()> {
    let mut registry = registry();
    let before = registry.len();
    registry.retain(|known| known.name != name || !is_meant(&known.what));
    if registry.len() == before {
        return Err(refuse(
            caller,
            &format!("got \"{name}\"; no class is registered under this name"),
        ));
    }
    Ok(())
}

/// The registered disciplines that a run uses, as another process reads them in its document.
pub fn foreign(spec: &RunSpec) -> Vec<Foreign> {
    let used = digests(spec);
    let is_used = |discipline: &&DisciplineKeys| used.contains_key(&discipline.name);
    let names = names();
    let disciplines = names.disciplines.iter().filter(is_used);
    // Only built-in disciplines have keys of other kinds.
    disciplines.filter_map(Foreign::new).collect()
}

/// The built-in disciplines and the registered ones. Their exceptions are recorded in `failure`.
pub fn disciplines<P: Packet + Send + 'static>(failure: &Failure) -> sojourn_aqm::Catalogue<P> {
    let mut catalogue = sojourn_aqm::Catalogue::new();
    for registered in registered_disciplines() {
        let (known, failure) = (Arc::clone(&registered), failure.clone());
        let make = move |settings: &Settings| build(&known, settings, &failure);
        catalogue.add(discipline(registered, Box::new(make)));
    }
    catalogue
}

/// Algorithms in the order in which their queues were built.
#[cfg(unix)]
#[derive(Clone, Default)]
pub struct Built(Arc<Mutex<Vec<PythonAqm>>>);

#[cfg(unix)]
impl Built {
    /// Takes them.
    pub fn take(&self) -> Vec<PythonAqm> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// As [`disciplines`], but the algorithms of registered ones are kept aside, not in their queues.
#[cfg(unix)]
pub fn collecting(failure: &Failure, built: &Built) -> sojourn_aqm::Catalogue<Seen> {
    let mut catalogue = sojourn_aqm::Catalogue::new();
    for registered in registered_disciplines() {
        let (known, failure, built) = (Arc::clone(&registered), failure.clone(), built.clone());
        let make = move |settings: &Settings| -> sojourn_aqm::Built<Seen> {
            let aqm = algorithm(&known, settings, &failure)?;
            built
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(aqm);
            let empty = sojourn_aqm::Catalogue::new();
            let fifo = empty.get("pfifo").ok_or_else(SettingError::unchangeable)?;
            fifo.build(&Settings::new(settings.rate, settings.mtu))
        };
        catalogue.add(discipline(registered, Box::new(make)));
    }
    catalogue
}

fn registered_disciplines() -> Vec<Arc<Registered>> {
    let registry = registry();
    let disciplines = registry
        .iter()
        .filter(|known| matches!(known.what, What::Aqm(_)));
    disciplines.map(Arc::clone).collect()
}

/// All built-in algorithms and the registered ones. Their exceptions are recorded in `failure`.
pub fn catalogue(failure: &Failure) -> Catalogue {
    let mut congestion_controls = cc::Catalogue::new();
    for registered in registry().iter() {
        if let What::CongestionControl(_) = registered.what {
            congestion_controls.add(congestion_control(Arc::clone(registered), failure.clone()));
        }
    }
    Catalogue {
        disciplines: disciplines(failure),
        congestion_controls,
    }
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
        .chain(
            spec.experiment
                .traffic
                .iter()
                .filter_map(|traffic| Some(&*traffic.kind.tcp()?.congestion_control)),
        )
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

fn discipline<P>(registered: Arc<Registered>, make: Make<P>) -> Discipline<P> {
    Discipline {
        name: registered.name,
        summary: registered.summary,
        source: registered.source,
        keys: {
            let registered = Arc::clone(&registered);
            Box::new(move || keys(&registered))
        },
        make,
    }
}

fn congestion_control(registered: Arc<Registered>, failure: Failure) -> cc::Algorithm {
    let Registered {
        name,
        summary,
        source,
        ..
    } = *registered;
    cc::Algorithm::new(name, summary, source, move |config| {
        let What::CongestionControl(arguments) = &registered.what else {
            unreachable!("it is one")
        };
        control::build(name, &registered.class, arguments, config, &failure)
    })
}

/// The parameters of a discipline.
fn parameters(registered: &Registered) -> &[Parameter] {
    match &registered.what {
        What::Aqm(parameters) => parameters,
        What::CongestionControl(_) => &[],
    }
}

fn keys(registered: &Registered) -> Vec<Key> {
    let keys = parameters(registered).iter();
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
) -> sojourn_aqm::Built<P> {
    let limit = settings.limit_or(Limit::Packets(1000));
    Ok(Box::new(Single::new(
        algorithm(registered, settings, failure)?,
        limit,
    )))
}

/// An object of the class.
fn algorithm(
    registered: &Registered,
    settings: &Settings,
    failure: &Failure,
) -> Result<PythonAqm, SettingError> {
    let ecn_by_default = parameters(registered).iter().any(|parameter| {
        matches!(parameter, Parameter::Key(key, Value::Flag(true)) if key.name == "ecn")
    });
    let marks = settings.ecn_or(ecn_by_default)?;
    let aqm = Python::attach(|py| {
        let arguments = PyDict::new(py);
        for parameter in parameters(registered) {
            parameter.pass(settings, &arguments)?;
        }
        let object = registered.class.bind(py).call((), Some(&arguments))?;
        PythonAqm::new(&object, marks, failure.clone())
    });
    aqm.map_err(|error| {
        let message = format!("cannot be built: {error}");
        if Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
            failure.note(error);
        }
        SettingError::new("aqm", message)
    })
}
