//! The keys of a table, declared once with [`keys!`]. Reader, messages, schema and resolved form derive from the
//! declaration.

use std::marker::PhantomData;

use serde_json::{Value as Json, json};

use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::{AnyKey, Form, Key};
use crate::names::Names;
use crate::section::Section;

/// A key that is a field of `S`.
pub(crate) struct FieldKey<S, F: Form> {
    pub key: Key<F>,
    pub field: fn(&S) -> &F::Out,
}

/// A key that is a field of `S`, whatever its form.
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

/// A struct whose fields are the keys of a table. [`keys!`] implements it.
pub(crate) trait Keys: Sized {
    /// Its keys, in the order in which messages list them.
    fn keys() -> Vec<&'static dyn AnyKey>;

    /// Reads the values from a table whose keys are known.
    ///
    /// # Errors
    /// As for each key; or the values contradict each other.
    fn read(section: &Section<'_>) -> Result<Self, ReadError>;

    /// Writes the values into a table.
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

/// Declares the keys of a table: for an existing struct, `keys! { Tcp { … } }`, or for a new one whose fields have
/// types, `keys! { struct PageKeys { … } }`. Each key is a field:
///
/// ```text
/// /// Initial window in segments (RFC 6928).
/// initial_window = Whole { from: 1, to: 1000 }, Is("10");
/// ```
///
/// The doc comment is the key's help, in the schema and on the docs page. Then come the form, whose value has the
/// field's type, and the default. `as "name"` after the field gives the key another name. `with FIELD: STRUCT` adds the
/// keys of another struct. `check FUNCTION` checks the values together, and may complete them.
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
        $crate::keys::keys! {
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
            use $crate::form::{Default::{Is, Required, Words}, Key};
            use $crate::keys::{AnyField, FieldKey, Keys};

            const FIELDS: &[&dyn AnyField<$name>] = &[
                $( &FieldKey {
                    key: Key {
                        name: $crate::keys::key_name!($field $($key)?),
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
                    #[allow(unused_mut, reason = "not every table has a check, which may complete the values")]
                    let mut read = Self {
                        $( $field: section.get(&Key {
                            name: $crate::keys::key_name!($field $($key)?),
                            form: $form,
                            default: $default,
                            doc: "",
                        })?, )*
                        $( $part: Keys::read(section)?, )?
                    };
                    $( $check(&mut read, section)?; )?
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

/// The name of a key: the explicit one, or the field's.
macro_rules! key_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

pub(crate) use {key_name, keys};

/// A table with exactly the keys of `T`.
pub(crate) struct TableOf<T> {
    /// The table's name in messages.
    name: &'static str,
    accepts: &'static str,
    of: PhantomData<fn() -> T>,
}

impl<T> TableOf<T> {
    /// A table with this name in messages; `accepts` follows "must be".
    pub const fn new(name: &'static str, accepts: &'static str) -> Self {
        let of = PhantomData;
        Self { name, accepts, of }
    }
}

impl<T: Keys> Form for TableOf<T> {
    type Out = T;

    fn read(&self, entry: &Entry<'_>) -> Result<T, ReadError> {
        T::read(&Section::open(entry, self)?.refuse_unknown_keys(self.name, T::names())?)
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

/// The schema of a table with exactly these keys.
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
