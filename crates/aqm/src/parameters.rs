//! Parameters as values: a discipline declares a struct once, from which its keys, their help and their parsing
//! follow.
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
use alloc::string::String;
use alloc::vec::Vec;

use crate::key::{Key, SettingError};
use crate::parameter::{Slot, written};
use crate::settings::Settings;

/// A struct of parameters, implemented by [`parameters!`](crate::parameters!).
pub trait Parameters: Copy {
    /// Visits every parameter with its key, in the order of the declaration. The key's default is empty unless it was
    /// declared in words.
    fn visit(&mut self, see: &mut dyn FnMut(Key, &mut dyn Slot));

    /// These parameters with the values given in `settings` in place of the defaults. The result is recorded as in
    /// use.
    ///
    /// # Errors
    /// A key does not accept its value.
    fn given(mut self, settings: &Settings) -> Result<Self, SettingError> {
        let mut outcome = Ok(());
        self.visit(&mut |key, slot| {
            if let Some(value) = settings.get(key.name) {
                if !(key.kind.admits(value) && slot.set(value)) {
                    outcome = Err(key.refuse(value));
                }
            }
        });
        outcome?;
        self.note(settings);
        Ok(self)
    }

    /// Records these values as in use; called again if some follow from others.
    fn note(mut self, settings: &Settings) {
        self.visit(&mut |key, slot| settings.note(key.name, slot.value(key.kind)));
    }

    /// Records that none of these parameters has a value.
    fn forget(mut self, settings: &Settings) {
        self.visit(&mut |key, _| settings.note(key.name, None));
    }

    /// The keys, with these parameters as defaults.
    fn keys(self) -> Vec<Key> {
        Self::keys_by_variant(&[("", self)])
    }

    /// The keys. `defaults` holds the parameters of each variant by name, the default variant first.
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

/// `15 ms; linux, 2013: 20 ms`: the first variant's text, then the differing ones with their variants.
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

/// Declares a struct of [`Parameters`](crate::Parameters). Every field is a key of the same name, and its doc comment,
/// one sentence, is the key's help. The type may be followed by `as KIND`, a [`Kind`](sojourn_units::Kind) other than
/// the type's own, and by `= "WORDS"` for a default that is not a constant. Fields after `besides` are no keys.
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
            fn visit(&mut self, see: &mut dyn FnMut($crate::Key, &mut dyn $crate::parameter::Slot)) {
                $(
                    let key = $crate::Key::of::<$type>(stringify!($field), concat!($($doc),+))
                        $( .accepting($crate::parameter::Kind::$kind) )?
                        $( .by_default($words) )?;
                    see(key, &mut self.$field);
                )*
            }
        }
    };
}
