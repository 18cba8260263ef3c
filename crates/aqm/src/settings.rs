//! The settings that a discipline is built from, and the values that it takes.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use sojourn_units::{Duration, Rate, Value};

use crate::qdisc::Limit;

/// What a discipline is built from. It remembers what it answered, so that the values in use can be told: the defaults
/// stand where they are used and nowhere else.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The rate of the link it serves at the start, for those that need one (ARED).
    pub rate: Rate,
    /// A full frame on this link, in bytes.
    pub mtu: u32,
    /// The most it may hold; `None`: the discipline's own default.
    pub limit: Option<Limit>,
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
            values: Vec::new(),
            in_use: RefCell::new(Vec::new()),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    /// The values that whoever was built from these settings takes, by key. A key that is missing has no value: what it
    /// sets is off, or the variant has no such thing.
    pub fn in_use(&self) -> Vec<(String, Value)> {
        self.in_use.borrow().clone()
    }

    /// Says that `name` has this value, for one that follows from other settings; `None`: it has none.
    pub fn take(&self, name: &str, value: Option<Value>) {
        let mut in_use = self.in_use.borrow_mut();
        in_use.retain(|(key, _)| key != name);
        in_use.extend(value.map(|value| (name.to_string(), value)));
    }

    fn taken<T>(&self, name: &str, value: T, as_value: impl FnOnce(&T) -> Value) -> T {
        self.take(name, Some(as_value(&value)));
        value
    }

    /// The limit given, or `default`.
    pub fn limit_or(&self, default: Limit) -> Limit {
        self.taken(
            "limit",
            self.limit.unwrap_or(default),
            |limit| match limit {
                Limit::Packets(packets) => Value::Packets(*packets),
                Limit::Bytes(bytes) => Value::Bytes(*bytes),
            },
        )
    }

    /// The span given for `name`, or `default`.
    pub fn duration(&self, name: &str, default: Duration) -> Duration {
        let span = match self.get(name) {
            Some(Value::Duration(span)) => *span,
            _ => default,
        };
        self.taken(name, span, |span| Value::Duration(*span))
    }

    /// The number or probability given for `name`, or `default`.
    pub fn number(&self, name: &str, default: f64) -> f64 {
        let number = match self.get(name) {
            Some(Value::Number(number)) => *number,
            _ => default,
        };
        self.taken(name, number, |number| Value::Number(*number))
    }

    /// The whole number given for `name`, or `default`.
    pub fn count(&self, name: &str, default: u64) -> u64 {
        let count = match self.get(name) {
            Some(Value::Count(count)) => *count,
            _ => default,
        };
        self.taken(name, count, |count| Value::Count(*count))
    }

    /// The bytes given for `name`, with packets counted as full frames, or `default`.
    pub fn bytes(&self, name: &str, default: u64) -> u64 {
        let bytes = match self.get(name) {
            Some(Value::Bytes(bytes)) => *bytes,
            Some(Value::Packets(packets)) => packets.saturating_mul(u64::from(self.mtu)),
            _ => default,
        };
        self.taken(name, bytes, |bytes| Value::Bytes(*bytes))
    }

    /// The flag given for `name`, or `default`.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        let flag = match self.get(name) {
            Some(Value::Flag(flag)) => *flag,
            _ => default,
        };
        self.taken(name, flag, |flag| Value::Flag(*flag))
    }

    /// The word given for `name`, or `default`.
    pub fn word<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        let word = match self.get(name) {
            Some(Value::Word(word)) => word,
            _ => default,
        };
        self.taken(name, word, |word| Value::Word((*word).into()))
    }

    /// The rate given for `name`, or `default`.
    pub fn rate(&self, name: &str, default: Rate) -> Rate {
        let rate = match self.get(name) {
            Some(Value::Rate(rate)) => *rate,
            _ => default,
        };
        self.taken(name, rate, |rate| Value::Rate(*rate))
    }

    /// True if the file gave `name`.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}
