//! The keys of disciplines, and the errors about them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt;

use sojourn_units::{Kind, Value};

use crate::parameter::{Parameter, written};

/// A key of a discipline, with the name used by `tc` or the defining document.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// The name in an experiment file.
    pub name: &'static str,
    /// The kind of value that it accepts.
    pub kind: Kind,
    /// Its default as written in a file; in words if it depends on other settings.
    pub default: Cow<'static, str>,
    /// What it does, in one line.
    pub doc: &'static str,
}

impl Key {
    /// The key of a parameter of type `T`, without a default.
    pub fn of<T: Parameter>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            kind: T::KIND,
            default: "".into(),
            doc: doc.trim_ascii_start(),
        }
    }

    /// The same key with another kind.
    pub fn accepting(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The same key with a default in words.
    pub fn by_default(self, words: &'static str) -> Self {
        Self {
            default: words.into(),
            ..self
        }
    }

    /// The error for a value that it does not accept.
    pub(crate) fn refuse(&self, value: &Value) -> SettingError {
        let message = format!("got {}; must be {}", written(value), self.kind.accepts());
        SettingError::new(self.name, message)
    }
}

/// An error about settings: an unknown key, conflicting keys, or a value out of range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingError {
    /// The key at fault.
    pub key: Cow<'static, str>,
    /// What is wrong and what is accepted: `must be above 0 and below interval ("100 ms")`.
    pub message: String,
}

impl SettingError {
    /// An error at `key`.
    pub fn new(key: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }

    /// The error that the discipline cannot be changed while it runs.
    pub fn unchangeable() -> Self {
        Self::new("aqm", "this discipline cannot be changed while it runs")
    }

    /// The error that this parameter cannot be changed while the discipline runs.
    pub fn fixed(key: &'static str) -> Self {
        Self::new(key, "cannot be changed while the discipline runs")
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl core::error::Error for SettingError {}
