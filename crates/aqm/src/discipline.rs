//! A discipline that can be asked for by name: its keys, and how one is built from settings.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use crate::key::{Key, SettingError};
use crate::qdisc::Qdisc;
use crate::settings::Settings;

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
