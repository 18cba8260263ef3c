//! What a key accepts, declared once: its reading, the messages, the schema and the resolved file derive from it.
//!
//! [`keys!`] declares the keys of a table.

use std::marker::PhantomData;

use serde_json::{Value as Json, json};

use crate::document::{Item, parse_value};
use crate::error::{Origin, ReadError};
use crate::names::Names;
use crate::section::{Entry, Section};

/// A way of writing a value.
pub(crate) trait Form {
    /// What it is read as.
    type Out;

    /// Reads the value at `entry`.
    ///
    /// # Errors
    /// The value is not of this form or out of its range.
    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError>;

    /// What a key of this form has that is not given and has no default value, if it need not be given.
    fn absent(&self) -> Option<Self::Out> {
        None
    }

    /// The value as the file would have it; null leaves the key out.
    fn write(&self, value: &Self::Out) -> Json;

    /// What is accepted, to follow "must be".
    fn accepts(&self) -> String;

    /// The JSON Schema of what is accepted.
    fn schema(&self, names: &Names) -> Json;
}

/// A key of a table.
pub(crate) struct Key<F> {
    pub name: &'static str,
    pub form: F,
    pub default: Default,
    /// What it does, in one line.
    pub doc: &'static str,
}

/// The value of a key that is not given.
pub(crate) enum Default {
    /// There is none: the key must be given.
    Required,
    /// This value, as one would write it.
    Is(&'static str),
    /// These words say it. The form is a [`Maybe`](crate::forms::Maybe), which reads as `None`.
    Words(&'static str),
}

/// A key of any form.
pub(crate) trait AnyKey {
    fn name(&self) -> &'static str;
    fn required(&self) -> bool;
    fn schema(&self, names: &Names) -> Json;
}

impl<F: Form> AnyKey for Key<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn required(&self) -> bool {
        matches!(self.default, Default::Required)
    }

    fn schema(&self, names: &Names) -> Json {
        let schema = self.form.schema(names);
        match self.default {
            Default::Required => described(schema, self.doc, None),
            Default::Is(text) => described(schema, self.doc, Some(text)),
            Default::Words(words) => {
                described(schema, &format!("{} Default: {words}.", self.doc), None)
            }
        }
    }
}

/// The key of a field of `S`.
pub(crate) struct FieldKey<S, F: Form> {
    pub key: Key<F>,
    pub field: fn(&S) -> &F::Out,
}

/// The key of a field of `S`, of any form.
pub(crate) trait AnyField<S> {
    fn key(&self) -> &dyn AnyKey;
    fn write(&self, of: &S) -> Json;
}

impl<S, F: Form> AnyField<S> for FieldKey<S, F> {
    fn key(&self) -> &dyn AnyKey {
        &self.key
    }

    fn write(&self, of: &S) -> Json {
        self.key.form.write((self.field)(of))
    }
}

/// A struct whose fields are keys of a table. [`keys!`] implements it.
pub(crate) trait Keys: Sized {
    /// Its keys, in the order in which messages list them.
    fn keys() -> Vec<&'static dyn AnyKey>;

    /// Reads them from a table whose keys are known.
    ///
    /// # Errors
    /// As each key; or the values do not go together.
    fn read(section: &Section<'_>) -> Result<Self, ReadError>;

    /// Puts their values into a table.
    fn write(&self, table: &mut Json);

    /// The names of the keys.
    fn names() -> Vec<&'static str> {
        names_of(&Self::keys())
    }
}

/// The names of keys.
pub(crate) fn names_of(keys: &[&'static dyn AnyKey]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name()).collect()
}

/// Declares the keys of a table: those of an existing struct, `keys! { Tcp { … } }`, or of a new one, whose fields then
/// have types, `keys! { struct PageKeys { … } }`. Each key is a field:
///
/// ```text
/// /// Initial window in segments (RFC 6928).
/// initial_window = Whole { from: 1, to: 1000 }, Is("10");
/// ```
///
/// The doc comment is the key's help, in the schema and on the docs page. The form says what the key accepts; its value
/// must have the field's type. Then comes the default. `as "name"` behind the field gives the key another name.
/// `with FIELD: STRUCT` adds the keys of another struct. `check FUNCTION` checks the values together.
macro_rules! keys {
    (
        $(#[$meta:meta])*
        struct $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident : $type:ty $(as $key:literal)? = $form:expr, $default:expr; )*
        }
        $(with $part:ident : $part_type:ty)?
        $(; check $check:path)?
    ) => {
        $(#[$meta])*
        pub(crate) struct $name {
            $( $(#[doc = $doc])+ pub $field: $type, )*
            $( pub $part: $part_type, )?
        }
        $crate::form::keys! {
            $name {
                $( $(#[doc = $doc])+ $field $(as $key)? = $form, $default; )*
            }
            $(with $part: $part_type)?
            $(; check $check)?
        }
    };
    (
        $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident $(as $key:literal)? = $form:expr, $default:expr; )*
        }
        $(with $part:ident : $part_type:ty)?
        $(; check $check:path)?
    ) => {
        const _: () = {
            #[allow(unused_imports, reason = "not every table has defaults of every kind")]
            use $crate::form::{AnyField, Default::{Is, Required, Words}, FieldKey, Key, Keys};

            const FIELDS: &[&dyn AnyField<$name>] = &[
                $( &FieldKey {
                    key: Key {
                        name: $crate::form::key_name!($field $($key)?),
                        form: $form,
                        default: $default,
                        doc: concat!($($doc),+).trim_ascii_start(),
                    },
                    field: |table: &$name| &table.$field,
                } ),*
            ];

            impl Keys for $name {
                #[allow(unused_mut, reason = "not every table has the keys of another")]
                fn keys() -> Vec<&'static dyn $crate::form::AnyKey> {
                    let mut keys: Vec<_> = FIELDS.iter().map(|field| field.key()).collect();
                    $( keys.extend(<$part_type>::keys()); )?
                    keys
                }

                fn read(
                    section: &$crate::section::Section<'_>,
                ) -> Result<Self, $crate::error::ReadError> {
                    let read = Self {
                        $( $field: section.get(&Key {
                            name: $crate::form::key_name!($field $($key)?),
                            form: $form,
                            default: $default,
                            doc: "",
                        })?, )*
                        $( $part: Keys::read(section)?, )?
                    };
                    $( $check(&read, section)?; )?
                    Ok(read)
                }

                fn write(&self, table: &mut serde_json::Value) {
                    for field in FIELDS {
                        let value = field.write(self);
                        if !value.is_null() {
                            table[field.key().name()] = value;
                        }
                    }
                    $( self.$part.write(table); )?
                }
            }
        };
    };
}

/// The name of a key: its own, or that of its field.
macro_rules! key_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

pub(crate) use {key_name, keys};

/// A table with the keys of `T` and no others.
pub(crate) struct TableOf<T> {
    /// What messages call it.
    name: &'static str,
    accepts: &'static str,
    of: PhantomData<fn() -> T>,
}

impl<T> TableOf<T> {
    /// The table that messages call `name`; `accepts` follows "must be".
    pub const fn new(name: &'static str, accepts: &'static str) -> Self {
        let of = PhantomData;
        Self { name, accepts, of }
    }
}

impl<T: Keys> Form for TableOf<T> {
    type Out = T;

    fn read(&self, entry: &Entry<'_>) -> Result<T, ReadError> {
        T::read(&Section::open(entry, self)?.only(self.name, T::names())?)
    }

    fn write(&self, value: &T) -> Json {
        written_table(value)
    }

    fn accepts(&self) -> String {
        self.accepts.into()
    }

    fn schema(&self, names: &Names) -> Json {
        table_schema(&T::keys(), names)
    }
}

/// A table with the values of these keys.
pub(crate) fn written_table(keys: &impl Keys) -> Json {
    let mut table = json!({});
    keys.write(&mut table);
    table
}

/// A schema with a description and, if there is one, a default as one would write it.
pub(crate) fn described(mut schema: Json, doc: &str, default: Option<&str>) -> Json {
    schema["description"] = doc.into();
    if let Some(text) = default {
        schema["default"] = default_item(text).to_json();
    }
    schema
}

/// A default as one would write it, as a value.
pub(crate) fn default_item(text: &str) -> Item {
    parse_value(text, Origin::File).item
}

/// The schema of a table with these keys and no others.
pub(crate) fn table_schema(keys: &[&dyn AnyKey], names: &Names) -> Json {
    let properties: serde_json::Map<String, Json> = keys
        .iter()
        .map(|key| (key.name().to_string(), key.schema(names)))
        .collect();
    let required: Vec<&str> = keys
        .iter()
        .filter(|key| key.required())
        .map(|key| key.name())
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
