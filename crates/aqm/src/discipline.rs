//! A discipline that can be selected by name: its keys, and how it is built from settings.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use crate::key::{Key, SettingError};
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
            Some((name, _)) => {
                let message = format!("{} has no such key", self.name);
                Err(SettingError::new(name.clone(), message))
            }
            None => (self.make)(settings),
        }
    }
}
