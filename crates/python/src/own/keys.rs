//! Constructor parameters as keys of a discipline, and conversion of values.
//!
//! A parameter has the kind of its default: `"5 ms"` makes it a time, `"10 Mbit/s"` a rate, `"83 packets"` a size,
//! `"1514 B"` bytes; numbers and flags keep their type. Python code receives times in seconds, rates in bits per
//! second, sizes in bytes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use sojourn_aqm::{Key, Settings};
use sojourn_units::{Duration, Kind, Rate, Value};

/// Keys that every discipline has besides its own.
const RESERVED: [&str; 3] = ["aqm", "label", "limit"];

/// A constructor parameter.
pub enum Parameter {
    /// A key with its default.
    Key(Key, Value),
    /// A full frame on the link, in bytes.
    Mtu,
    /// The link's rate at the start.
    Rate,
}

impl Parameter {
    /// A parameter with its name and default. What it allocates lives as long as the process.
    ///
    /// # Errors
    /// The name is not free, or the default is missing or of an unknown kind.
    pub fn new(name: &str, default: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(default) = default else {
            return match name {
                "mtu" => Ok(Self::Mtu),
                "rate" => Ok(Self::Rate),
                _ => Err(PyValueError::new_err(format!(
                    "parameter {name}: got no default; only mtu and rate, which the link gives, may have none"
                ))),
            };
        };
        if RESERVED.contains(&name) {
            return Err(PyValueError::new_err(format!(
                "parameter {name}: every queue has a key of this name; choose another"
            )));
        }
        let text = if default.is_instance_of::<PyBool>() {
            default.extract::<bool>()?.to_string()
        } else {
            default.str()?.to_string()
        };
        let (kind, value) = kind_of(default, &text).ok_or_else(|| {
            PyValueError::new_err(format!(
                "parameter {name}: got default {}; must be a number, a flag or a quantity like \"5 ms\", \
                 \"10 Mbit/s\", \"83 packets\" or \"1514 B\"",
                default.repr().map_or_else(|_| text.clone(), |repr| repr.to_string())
            ))
        })?;
        let key = Key {
            name: String::leak(name.into()),
            kind,
            default: text.into(),
            doc: "parameter of the class",
        };
        Ok(Self::Key(key, value))
    }

    /// Adds the parameter to the arguments of a constructor, with its value from the settings or its default.
    pub fn pass(&self, settings: &Settings, arguments: &Bound<'_, PyDict>) -> PyResult<()> {
        match self {
            Self::Mtu => arguments.set_item("mtu", settings.mtu),
            Self::Rate => arguments.set_item("rate", settings.rate.as_bps()),
            Self::Key(key, default) => {
                let value = settings.get(key.name).unwrap_or(default);
                settings.note(key.name, Some(value.clone()));
                match value {
                    Value::Duration(span) => arguments.set_item(key.name, span.as_secs_f64()),
                    Value::Rate(rate) => arguments.set_item(key.name, rate.as_bps()),
                    Value::Bytes(bytes) => arguments.set_item(key.name, bytes),
                    Value::Packets(packets) => {
                        arguments.set_item(key.name, packets.saturating_mul(settings.mtu.into()))
                    }
                    Value::Number(number) => arguments.set_item(key.name, number),
                    Value::Count(count) => arguments.set_item(key.name, count),
                    Value::Flag(flag) => arguments.set_item(key.name, flag),
                    Value::Word(word) => arguments.set_item(key.name, word),
                    Value::File(file) => arguments.set_item(key.name, &*file.text),
                }
            }
        }
    }
}

fn kind_of(default: &Bound<'_, PyAny>, text: &str) -> Option<(Kind, Value)> {
    let kinds: &[Kind] = if default.is_instance_of::<PyBool>() {
        &[Kind::Flag]
    } else if default.is_instance_of::<PyInt>() {
        &[Kind::Count, Kind::Number]
    } else if default.is_instance_of::<PyFloat>() {
        &[Kind::Number]
    } else if default.is_instance_of::<PyString>() {
        &[Kind::Duration, Kind::Rate, Kind::Bytes, Kind::Size]
    } else {
        &[]
    };
    kinds
        .iter()
        .find_map(|&kind| kind.parse(text).ok().map(|value| (kind, value)))
}

/// The value that Python code gives for a key: text as in an experiment file, or a number in the units of the module's
/// description.
///
/// # Errors
/// It is not of the key's kind.
pub fn value_of(key: &Key, given: &Bound<'_, PyAny>) -> PyResult<Value> {
    let number = |low: f64| given.extract::<f64>().ok().filter(|number| *number >= low);
    let value = if let Ok(text) = given.extract::<String>() {
        key.kind.parse(&text).ok()
    } else if given.is_instance_of::<PyBool>() {
        given.extract().ok().map(Value::Flag)
    } else {
        match key.kind {
            Kind::Duration => number(0.0).map(|s| Value::Duration(Duration::from_secs_f64(s))),
            Kind::Rate => number(1.0)
                .and_then(|bps| Rate::from_bps(bps as u64))
                .map(Value::Rate),
            Kind::Bytes | Kind::Size => number(0.0).map(|bytes| Value::Bytes(bytes as u64)),
            Kind::Count => given.extract().ok().map(Value::Count),
            Kind::Number | Kind::Probability => number(f64::MIN).map(Value::Number),
            Kind::Packets => given.extract().ok().map(Value::Packets),
            Kind::Choice(_) => number(f64::MIN).and_then(|word| key.kind.from_number(word).ok()),
            Kind::Flag | Kind::File => None,
        }
    };
    value.filter(|value| key.kind.admits(value)).ok_or_else(|| {
        PyValueError::new_err(format!(
            "{}: got {given}; must be {}",
            key.name,
            key.kind.accepts()
        ))
    })
}
