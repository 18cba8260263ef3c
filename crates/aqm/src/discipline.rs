//! A discipline that can be asked for by name: its keys, and how one is built from settings.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sojourn_units::{Kind, Value};

use crate::parameters::{Parameter, written};
use crate::qdisc::Qdisc;
use crate::settings::Settings;

/// A key of a discipline, as `tc` or the defining document names it.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// The name in an experiment file.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// Its default as one would write it; where it depends on other settings, in words.
    pub default: Cow<'static, str>,
    /// What it does, in one line.
    pub doc: &'static str,
}

impl Key {
    /// The key of a parameter of type `T`, whose default is still to be filled in.
    pub fn of<T: Parameter>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            kind: T::KIND,
            default: "".into(),
            doc: doc.trim_ascii_start(),
        }
    }

    /// The same, but of another kind.
    pub fn accepting(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The same with a default, in words.
    pub fn by_default(self, words: &'static str) -> Self {
        Self {
            default: words.into(),
            ..self
        }
    }

    /// Why it does not take a value.
    pub(crate) fn refuse(&self, value: &Value) -> SettingError {
        let message = format!("got {}; must be {}", written(value), self.kind.accepts());
        SettingError::new(self.name, message)
    }
}

/// Settings that a discipline does not have, that cannot go together or are out of range.
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
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl core::error::Error for SettingError {}

/// A discipline, or why its settings are refused.
pub type Built<P> = Result<Box<dyn Qdisc<P> + Send>, SettingError>;

/// What makes a discipline from settings whose keys are known to be its own.
pub type Make<P> = Box<dyn Fn(&Settings) -> Built<P> + Send + Sync>;

/// What lists a discipline's keys. They are put together when they are asked for.
pub type Keys = Box<dyn Fn() -> Vec<Key> + Send + Sync>;

/// A discipline that can be asked for by name.
pub struct Discipline<P> {
    /// Its name, as in `tc` where `tc` has it.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The document that defines it.
    pub source: &'static str,
    /// Its keys besides `limit` and `ecn`.
    pub keys: Keys,
    /// Makes one; to be called through [`Discipline::build`].
    pub make: Make<P>,
}

impl<P> Discipline<P> {
    /// The key called `name`, if the discipline has it.
    pub fn key(&self, name: &str) -> Option<Key> {
        self.keys().into_iter().find(|key| key.name == name)
    }

    /// Its keys besides `limit` and `ecn`.
    pub fn keys(&self) -> Vec<Key> {
        (self.keys)()
    }

    /// Builds one.
    ///
    /// # Errors
    /// A key is not one of the discipline's, or its value is refused.
    pub fn build(&self, settings: &Settings) -> Built<P> {
        let known = self.keys();
        let is_known = |name: &str| name == "ecn" || known.iter().any(|key| key.name == name);
        match settings.values.iter().find(|(name, _)| !is_known(name)) {
            Some((name, _)) => {
                let message = format!("{} has no such key", self.name);
                Err(SettingError::new(name.clone(), message))
            }
            None => (self.make)(settings),
        }
    }
}
