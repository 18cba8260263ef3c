//! The types that a parameter can have, with reading and writing of their values.

use alloc::format;
use alloc::string::{String, ToString};

use sojourn_units::{Duration, Rate};
pub use sojourn_units::{Kind, Value};

use crate::limit::Limit;

/// A type that a parameter can have.
pub trait Parameter: Sized {
    /// The kind of value that its key accepts, unless the declaration states another.
    const KIND: Kind;

    /// Converts a value; `None` if it has another type.
    fn of(value: &Value) -> Option<Self>;

    /// The value in the given kind; `None` if the parameter has no value.
    fn value(&self, kind: Kind) -> Option<Value>;
}

/// A parameter of any type, as a field of its struct.
pub trait Slot {
    /// Sets it; returns false if the value has another type.
    fn set(&mut self, value: &Value) -> bool;

    /// [`Parameter::value`].
    fn value(&self, kind: Kind) -> Option<Value>;
}

impl<T: Parameter> Slot for T {
    fn set(&mut self, value: &Value) -> bool {
        T::of(value).map(|read| *self = read).is_some()
    }

    fn value(&self, kind: Kind) -> Option<Value> {
        Parameter::value(self, kind)
    }
}

/// A value as written in an experiment file.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::Duration(span) => span.to_string(),
        Value::Rate(rate) => rate.to_string(),
        Value::Bytes(bytes) => {
            let units = [("MiB", 1 << 20), ("MB", 1_000_000), ("kB", 1_000)];
            let unit = units
                .iter()
                .find(|(_, size)| *bytes > 0 && bytes % size == 0);
            unit.map_or_else(
                || format!("{bytes} B"),
                |(unit, size)| format!("{} {unit}", bytes / size),
            )
        }
        Value::Packets(packets) => format!("{packets} packets"),
        Value::Number(number) => number.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Word(word) => word.clone(),
        Value::File(file) => file.name.clone(),
    }
}

impl Parameter for Duration {
    const KIND: Kind = Kind::Duration;

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Duration(span) => Some(*span),
            _ => None,
        }
    }

    fn value(&self, _kind: Kind) -> Option<Value> {
        Some(Value::Duration(*self))
    }
}

impl Parameter for Rate {
    const KIND: Kind = Kind::Rate;

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Rate(rate) => Some(*rate),
            _ => None,
        }
    }

    fn value(&self, _kind: Kind) -> Option<Value> {
        Some(Value::Rate(*self))
    }
}

impl Parameter for bool {
    const KIND: Kind = Kind::Flag;

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    fn value(&self, _kind: Kind) -> Option<Value> {
        Some(Value::Flag(*self))
    }
}

/// A number, or with `as Probability` one from 0 to 1.
impl Parameter for f64 {
    const KIND: Kind = Kind::Number;

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn value(&self, _kind: Kind) -> Option<Value> {
        Some(Value::Number(*self))
    }
}

/// A count, or with `as Bytes` or `as Packets` an amount of data or a number of packets.
impl Parameter for u64 {
    const KIND: Kind = Kind::Count;

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Count(number) | Value::Bytes(number) | Value::Packets(number) => Some(*number),
            _ => None,
        }
    }

    fn value(&self, kind: Kind) -> Option<Value> {
        Some(match kind {
            Kind::Bytes => Value::Bytes(*self),
            Kind::Packets => Value::Packets(*self),
            _ => Value::Count(*self),
        })
    }
}

impl Parameter for Limit {
    const KIND: Kind = Kind::Size;

    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Packets(packets) => Some(Self::Packets(*packets)),
            Value::Bytes(bytes) => Some(Self::Bytes(*bytes)),
            _ => None,
        }
    }

    fn value(&self, _kind: Kind) -> Option<Value> {
        Some(match self {
            Self::Packets(packets) => Value::Packets(*packets),
            Self::Bytes(bytes) => Value::Bytes(*bytes),
        })
    }
}

/// `None`: the feature is off, or the value follows from other parameters.
impl<T: Parameter> Parameter for Option<T> {
    const KIND: Kind = T::KIND;

    fn of(value: &Value) -> Option<Self> {
        T::of(value).map(Some)
    }

    fn value(&self, kind: Kind) -> Option<Value> {
        self.as_ref().and_then(|inner| inner.value(kind))
    }
}

/// Declares an enum whose values are the words that a key accepts. It implements [`Parameter`](crate::Parameter).
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$value_meta:meta])* $value:ident = $word:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis enum $name {
            $( $(#[$value_meta])* $value, )+
        }

        impl $name {
            /// All values with their words.
            $vis const ALL: &'static [(&'static str, Self)] = &[$( ($word, Self::$value) ),+];
        }

        impl $crate::Parameter for $name {
            const KIND: $crate::parameter::Kind = $crate::parameter::Kind::Choice(&[$( $word ),+]);

            fn of(value: &$crate::parameter::Value) -> Option<Self> {
                match value {
                    $( $crate::parameter::Value::Word(word) if word == $word => Some(Self::$value), )+
                    _ => None,
                }
            }

            fn value(&self, _kind: $crate::parameter::Kind) -> Option<$crate::parameter::Value> {
                let word = match self {
                    $( Self::$value => $word, )+
                };
                Some($crate::parameter::Value::Word(word.into()))
            }
        }
    };
}
