//! A discipline that can be selected by name: its keys, and how it is built from settings.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_units::{Kind, Value};

use crate::key::{Key, SettingError};
use crate::limit::Limit;
use crate::qdisc::Qdisc;
use crate::settings::Settings;

/// A discipline that was built, or the error in its settings.
pub type Built<P> = Result<Box<dyn Qdisc<P> + Send>, SettingError>;

/// Builds a discipline. The caller has checked that it knows all keys of the settings.
pub type Make<P> = Box<dyn Fn(&Settings) -> Built<P> + Send + Sync>;

/// Lists a discipline's keys.
pub type Keys = Box<dyn Fn() -> Vec<Key> + Send + Sync>;

/// A discipline that can be selected by name.
pub struct Discipline<P> {
    /// Its name, as in `tc` where `tc` has it.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The document that defines it.
    pub source: &'static str,
    /// Its keys besides `limit` and `ecn`.
    pub keys: Keys,
    /// Builds one. Call it through [`Discipline::build`].
    pub make: Make<P>,
}

impl<P> Discipline<P> {
    /// The key called `name`, if the discipline has one.
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
    /// A key does not belong to the discipline, or does not accept its value.
    pub fn build(&self, settings: &Settings) -> Built<P> {
        let known = self.keys();
        let is_known = |name: &str| name == "ecn" || known.iter().any(|key| key.name == name);
        match settings.values.iter().find(|(name, _)| !is_known(name)) {
            Some((name, _)) => Err(self.unknown(name)),
            None => (self.make)(settings),
        }
    }

    /// The error that there is no key of this name.
    fn unknown(&self, name: &str) -> SettingError {
        let keys = self.keys();
        let all = ["limit", "ecn"].into_iter();
        let all: Vec<&str> = all.chain(keys.iter().map(|key| key.name)).collect();
        let message = format!("{} has no such key; it has {}", self.name, all.join(", "));
        SettingError::new(String::from(name), message)
    }
}

impl Settings {
    /// Adds a key, `limit` included, with its value as written in a file.
    ///
    /// # Errors
    /// The discipline has no such key, or the key does not accept the value.
    pub fn with<P>(
        &self,
        discipline: &Discipline<P>,
        name: &str,
        value: &str,
    ) -> Result<Self, SettingError> {
        let mut settings = self.clone();
        if name == "limit" {
            settings.limit = match Kind::Size.parse(value) {
                Ok(Value::Packets(packets)) if packets > 0 => Some(Limit::Packets(packets)),
                Ok(Value::Bytes(bytes)) if bytes > 0 => Some(Limit::Bytes(bytes)),
                _ => {
                    let accepts = format!("{} above 0", Kind::Size.accepts());
                    let message = format!("got \"{value}\"; must be {accepts}");
                    return Err(SettingError::new(String::from(name), message));
                }
            };
            return Ok(settings);
        }
        let kind = match discipline.key(name) {
            Some(key) => key.kind,
            None if name == "ecn" => Kind::Flag,
            None => return Err(discipline.unknown(name)),
        };
        let given = kind.parse(value).map_err(|_| refused(name, value, kind))?;
        settings.values.retain(|(known, _)| known != name);
        settings.values.push((name.into(), given));
        Ok(settings)
    }
}

fn refused(name: &str, value: &str, kind: Kind) -> SettingError {
    let message = format!("got \"{value}\"; must be {}", kind.accepts());
    SettingError::new(String::from(name), message)
}
