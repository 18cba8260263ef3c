//! The settings from which a discipline is built, and the values that are in use.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use sojourn_units::{Duration, Rate, Value};

use crate::key::{Key, SettingError};
use crate::limit::Limit;
use crate::parameter::Parameter;

/// The settings from which a discipline is built. They are read through [`Parameters`](crate::Parameters) and record
/// the values in use.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The rate of the link at the start, for disciplines that need one (ARED).
    pub rate: Rate,
    /// A full frame on this link, in bytes.
    pub mtu: u32,
    /// The most that the discipline may hold; `None` for its own default.
    pub limit: Option<Limit>,
    /// How long before the start the discipline was set up; 0 unless a caller sets it. PIE's timer in Linux runs since then.
    pub age: Duration,
    /// The keys given, each once.
    pub values: Vec<(String, Value)>,
    in_use: RefCell<Vec<(String, Value)>>,
}

impl Settings {
    /// Settings with no key given.
    pub const fn new(rate: Rate, mtu: u32) -> Self {
        Self {
            rate,
            mtu,
            limit: None,
            age: Duration::ZERO,
            values: Vec::new(),
            in_use: RefCell::new(Vec::new()),
        }
    }

    /// The value given for `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    /// The values in use, by key, of a discipline built from these settings. A key is missing if its feature is off or
    /// the variant does not have it.
    pub fn in_use(&self) -> Vec<(String, Value)> {
        self.in_use.borrow().clone()
    }

    /// Records the value in use of `name`; `None` if it has none.
    pub fn note(&self, name: &str, value: Option<Value>) {
        let mut in_use = self.in_use.borrow_mut();
        in_use.retain(|(key, _)| key != name);
        in_use.extend(value.map(|value| (name.to_string(), value)));
    }

    /// The limit given, or `default`.
    pub fn limit_or(&self, default: Limit) -> Limit {
        let limit = self.limit.unwrap_or(default);
        self.note("limit", limit.value(Limit::KIND));
        limit
    }

    /// The value given for `ecn`, or `default`.
    ///
    /// # Errors
    /// The value is not a flag.
    pub fn ecn_or(&self, default: bool) -> Result<bool, SettingError> {
        let ecn = self.given("ecn", default)?;
        self.note("ecn", Some(Value::Flag(ecn)));
        Ok(ecn)
    }

    /// The variant given, or `default`.
    ///
    /// # Errors
    /// There is no variant of this name.
    pub fn variant_or<T: Parameter>(&self, default: T) -> Result<T, SettingError> {
        self.given("variant", default)
    }

    fn given<T: Parameter>(&self, name: &'static str, default: T) -> Result<T, SettingError> {
        let Some(value) = self.get(name) else {
            return Ok(default);
        };
        T::of(value).ok_or_else(|| Key::of::<T>(name, "").refuse(value))
    }
}
