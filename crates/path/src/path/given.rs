//! Quantities as texts or as values, and the error about them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt;

use sojourn_aqm::SettingError;
use sojourn_units::{Duration, Kind, Rate, Value};

/// What a [`crate::Path`] is built from is wrong: which key, and what is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PathError {
    /// The key at fault: `rate`, `rtt`, `aqm` or a key of the discipline.
    pub key: Cow<'static, str>,
    /// What is wrong and what is accepted.
    pub message: String,
}

impl PathError {
    pub(crate) fn new(key: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
        }
    }
}

impl From<SettingError> for PathError {
    fn from(error: SettingError) -> Self {
        Self::new(error.key, error.message)
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl core::error::Error for PathError {}

/// A quantity as an argument: a text with a unit, as in an experiment file (`"20 Mbit/s"`, `"40 ms"`), a [`Rate`], or a
/// duration of this library or of the standard library.
pub trait Given<Q>: sealed::Sealed {
    /// The quantity; `key` is named in the error.
    #[doc(hidden)]
    fn value(self, key: &'static str) -> Result<Q, PathError>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for super::Rate {}
    impl Sealed for super::Duration {}
    impl Sealed for core::time::Duration {}
}

fn parse(kind: Kind, text: &str, key: &'static str) -> Result<Value, PathError> {
    kind.parse(text)
        .map_err(|error| PathError::new(key, format!("got \"{text}\"; {error}")))
}

impl Given<Rate> for &str {
    fn value(self, key: &'static str) -> Result<Rate, PathError> {
        match parse(Kind::Rate, self, key)? {
            Value::Rate(rate) => Ok(rate),
            _ => unreachable!("a kind parses as its value"),
        }
    }
}

impl Given<Duration> for &str {
    fn value(self, key: &'static str) -> Result<Duration, PathError> {
        match parse(Kind::Duration, self, key)? {
            Value::Duration(span) => Ok(span),
            _ => unreachable!("a kind parses as its value"),
        }
    }
}

impl Given<Rate> for Rate {
    fn value(self, _: &'static str) -> Result<Rate, PathError> {
        Ok(self)
    }
}

impl Given<Duration> for Duration {
    fn value(self, _: &'static str) -> Result<Duration, PathError> {
        Ok(self)
    }
}

impl Given<Duration> for core::time::Duration {
    fn value(self, _: &'static str) -> Result<Duration, PathError> {
        Ok(self.into())
    }
}
