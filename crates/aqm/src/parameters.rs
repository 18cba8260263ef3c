//! Parameters as values: a discipline declares a struct once, and its keys, their help and their reading follow.
//!
//! [`parameters!`](crate::parameters!) declares the struct, [`choice!`](crate::choice!) an enum whose values are words.
//! Defaults are values of the struct, one per variant where there are variants:
//!
//! ```
//! use sojourn_aqm::{Parameters, Settings, parameters};
//! use sojourn_units::{Duration, Rate, Value};
//!
//! parameters! {
//!     /// The parameters of an example.
//!     pub struct Config {
//!         /// delay to hold
//!         pub target: Duration,
//!         /// probability of a drop above it
//!         pub chance: f64 as Probability,
//!     }
//! }
//! const DEFAULT: Config = Config { target: Duration::from_millis(5), chance: 0.1 };
//!
//! let keys = DEFAULT.keys();
//! assert_eq!((keys[0].name, &*keys[0].default, keys[0].doc), ("target", "5 ms", "delay to hold"));
//!
//! let mut settings = Settings::new(Rate::from_mbps(10), 1514);
//! settings.values.push(("chance".into(), Value::Number(0.2)));
//! let config = DEFAULT.given(&settings).expect("a probability");
//! assert_eq!(config, Config { chance: 0.2, ..DEFAULT });
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sojourn_units::{Duration, Rate};
pub use sojourn_units::{Kind, Value};

use crate::discipline::{Key, SettingError};
use crate::qdisc::Limit;
use crate::settings::Settings;

/// A type that a parameter can have.
pub trait Parameter: Sized {
    /// What its key accepts, unless the declaration says otherwise.
    const KIND: Kind;

    /// Reads a value; `None` if it is of another type. Packets count as full frames of `mtu` bytes where bytes are asked
    /// for.
    fn of(value: &Value, mtu: u32) -> Option<Self>;

    /// The value as of `kind`; `None`: the parameter has none.
    fn value(&self, kind: Kind) -> Option<Value>;
}

/// A parameter of whatever type, in its struct.
pub trait Slot {
    /// Sets it; false if the value is of another type.
    fn set(&mut self, value: &Value, mtu: u32) -> bool;

    /// [`Parameter::value`].
    fn value(&self, kind: Kind) -> Option<Value>;
}

impl<T: Parameter> Slot for T {
    fn set(&mut self, value: &Value, mtu: u32) -> bool {
        T::of(value, mtu).map(|read| *self = read).is_some()
    }

    fn value(&self, kind: Kind) -> Option<Value> {
        Parameter::value(self, kind)
    }
}

/// A struct of parameters. Implemented by [`parameters!`](crate::parameters!).
pub trait Parameters: Copy {
    /// Shows every parameter with its key, in the order of the declaration. The key's default is empty unless it was
    /// declared in words.
    fn visit(&mut self, see: &mut dyn FnMut(Key, &mut dyn Slot));

    /// These parameters with what `settings` give in place of the defaults. Their values count as in use.
    ///
    /// # Errors
    /// A value is not what its key accepts.
    fn given(mut self, settings: &Settings) -> Result<Self, SettingError> {
        let mut outcome = Ok(());
        self.visit(&mut |key, slot| {
            if let Some(value) = settings.get(key.name)
                && !(key.kind.admits(value) && slot.set(value, settings.mtu))
            {
                outcome = Err(key.refuse(value));
            }
        });
        outcome?;
        self.note(settings);
        Ok(self)
    }

    /// Notes these values as those in use: again, where some follow from others.
    fn note(mut self, settings: &Settings) {
        self.visit(&mut |key, slot| settings.note(key.name, slot.value(key.kind)));
    }

    /// Notes that none of these has a value.
    fn forget(mut self, settings: &Settings) {
        self.visit(&mut |key, _| settings.note(key.name, None));
    }

    /// The keys, with these parameters as defaults.
    fn keys(self) -> Vec<Key> {
        Self::keys_by_variant(&[("", self)])
    }

    /// The keys. `defaults` are the parameters of each variant by its name, the default variant's first.
    fn keys_by_variant(defaults: &[(&str, Self)]) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        let mut texts: Vec<Vec<String>> = Vec::new();
        for (_, mut parameters) in defaults.iter().copied() {
            let mut number = 0;
            parameters.visit(&mut |key, slot| {
                if number == keys.len() {
                    texts.push(Vec::new());
                    keys.push(key.clone());
                }
                texts[number].push(slot.value(key.kind).map_or("none".into(), |v| written(&v)));
                number += 1;
            });
        }
        for (key, texts) in keys.iter_mut().zip(&texts) {
            if key.default.is_empty() {
                let others = if key.name == "variant" {
                    1
                } else {
                    texts.len()
                };
                key.default = by_variant(defaults, &texts[..others]).into();
            }
        }
        keys
    }
}

/// `15 ms; linux, 2013: 20 ms`: the first text, then those that differ with their variants.
fn by_variant<T>(variants: &[(&str, T)], texts: &[String]) -> String {
    let mut told: Vec<&String> = Vec::new();
    let mut line = String::new();
    for text in texts {
        if told.contains(&text) {
            continue;
        }
        if !told.is_empty() {
            let same = variants.iter().zip(texts).filter(|(_, of)| *of == text);
            let names: Vec<&str> = same.map(|((name, _), _)| *name).collect();
            line += &format!("; {}: ", names.join(", "));
        }
        line += text;
        told.push(text);
    }
    line
}

/// A value as one would write it in an experiment file.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::Duration(span) => span.to_string(),
        Value::Rate(rate) => rate.to_string(),
        Value::Bytes(bytes) => {
            let units = [("MiB", 1 << 20), ("MB", 1_000_000), ("kB", 1_000)];
            let unit = units
                .iter()
                .find(|(_, size)| *bytes > 0 && bytes.is_multiple_of(*size));
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
    }
}

impl Parameter for Duration {
    const KIND: Kind = Kind::Duration;

    fn of(value: &Value, _mtu: u32) -> Option<Self> {
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

    fn of(value: &Value, _mtu: u32) -> Option<Self> {
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

    fn of(value: &Value, _mtu: u32) -> Option<Self> {
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

    fn of(value: &Value, _mtu: u32) -> Option<Self> {
        match value {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn value(&self, _kind: Kind) -> Option<Value> {
        Some(Value::Number(*self))
    }
}

/// A count, or with `as Bytes` an amount of data.
impl Parameter for u64 {
    const KIND: Kind = Kind::Count;

    fn of(value: &Value, mtu: u32) -> Option<Self> {
        match value {
            Value::Count(number) | Value::Bytes(number) => Some(*number),
            Value::Packets(packets) => Some(packets.saturating_mul(Self::from(mtu))),
            _ => None,
        }
    }

    fn value(&self, kind: Kind) -> Option<Value> {
        Some(match kind {
            Kind::Bytes => Value::Bytes(*self),
            _ => Value::Count(*self),
        })
    }
}

impl Parameter for Limit {
    const KIND: Kind = Kind::Size;

    fn of(value: &Value, _mtu: u32) -> Option<Self> {
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

/// `None`: what it sets is off, or follows from other parameters.
impl<T: Parameter> Parameter for Option<T> {
    const KIND: Kind = T::KIND;

    fn of(value: &Value, mtu: u32) -> Option<Self> {
        T::of(value, mtu).map(Some)
    }

    fn value(&self, kind: Kind) -> Option<Value> {
        self.as_ref().and_then(|inner| inner.value(kind))
    }
}

/// Declares a struct of [`Parameters`](crate::Parameters). Every field is a key of its own name, and its doc comment, in
/// one sentence, is the key's help. After the type may stand `as KIND`, a [`Kind`](sojourn_units::Kind) that is not the
/// type's own, and `= "WORDS"` for a default that is no constant. Fields behind `besides` are no keys.
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field_vis:vis $field:ident : $type:ty $(as $kind:ident)? $(= $words:literal)?,
            )*
        }
        $(besides {
            $( $(#[$other_meta:meta])* $other_vis:vis $other:ident : $other_type:ty, )*
        })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        $vis struct $name {
            $( $(#[doc = $doc])+ $field_vis $field: $type, )*
            $( $( $(#[$other_meta])* $other_vis $other: $other_type, )* )?
        }

        impl $crate::Parameters for $name {
            fn visit(&mut self, see: &mut dyn FnMut($crate::Key, &mut dyn $crate::parameters::Slot)) {
                $(
                    let key = $crate::Key::of::<$type>(stringify!($field), concat!($($doc),+))
                        $( .accepting($crate::parameters::Kind::$kind) )?
                        $( .by_default($words) )?;
                    see(key, &mut self.$field);
                )*
            }
        }
    };
}

/// Declares an enum whose values are the words that a key accepts; it is a [`Parameter`](crate::Parameter).
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
            const KIND: $crate::parameters::Kind = $crate::parameters::Kind::Choice(&[$( $word ),+]);

            fn of(value: &$crate::parameters::Value, _mtu: u32) -> Option<Self> {
                match value {
                    $( $crate::parameters::Value::Word(word) if word == $word => Some(Self::$value), )+
                    _ => None,
                }
            }

            fn value(&self, _kind: $crate::parameters::Kind) -> Option<$crate::parameters::Value> {
                let word = match self {
                    $( Self::$value => $word, )+
                };
                Some($crate::parameters::Value::Word(word.into()))
            }
        }
    };
}
