//! A form of value and a key of that form: how values are read, written and described.

use serde_json::Value as Json;

use crate::document::{Item, parse_value};
use crate::entry::Entry;
use crate::error::{Origin, ReadError};
use crate::names::Names;

/// A form of value: how it is read, written and described.
pub(crate) trait Form {
    /// The type that it reads as.
    type Out;

    /// Reads the value at `entry`.
    ///
    /// # Errors
    /// The value is not of this form or out of range.
    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError>;

    /// The value of an optional key without a default, if it is absent. `None`: the key is required.
    fn absent(&self) -> Option<Self::Out> {
        None
    }

    /// The value as in the file; null omits the key.
    fn write(&self, value: &Self::Out) -> Json;

    /// What is accepted, to follow "must be".
    fn accepts(&self) -> String;

    /// The JSON Schema of the accepted values.
    fn schema(&self, names: &Names) -> Json;
}

/// A key of a table.
pub(crate) struct Key<F> {
    pub name: &'static str,
    pub form: F,
    pub default: Default,
    /// The key's help, in one line.
    pub doc: &'static str,
}

/// The default of a key.
pub(crate) enum Default {
    /// No default: the key is required.
    Required,
    /// This value, written as in a file.
    Is(&'static str),
    /// A default described in words. The form is a [`Maybe`](crate::forms::Maybe), which reads as `None`.
    Words(&'static str),
}

/// A key, whatever its form.
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

/// A schema with a description and, if given, a default written as in a file.
pub(crate) fn described(mut schema: Json, doc: &str, default: Option<&str>) -> Json {
    schema["description"] = doc.into();
    if let Some(text) = default {
        schema["default"] = default_item(text).to_json();
    }
    schema
}

/// Parses a default written as in a file.
pub(crate) fn default_item(text: &str) -> Item {
    parse_value(text, Origin::File).item
}
