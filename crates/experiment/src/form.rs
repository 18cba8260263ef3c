//! What a key accepts, stated once: the reader, the messages and the schema all use the same [`Key`].

use serde_json::{Value as Json, json};

use crate::document::{Item, parse_value};
use crate::error::{Origin, ReadError};
use crate::names::Names;
use crate::section::Entry;

/// A way of writing a value.
pub(crate) trait Form {
    /// What it is read as.
    type Out;

    /// Reads the value at `entry`.
    ///
    /// # Errors
    /// The value is not of this form or out of its range.
    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError>;

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

/// What holds if a key is not given.
pub(crate) enum Default {
    /// It has to be given.
    Required,
    /// This value, as one would write it.
    Is(&'static str),
    /// What the words say; the reader sees that nothing was given.
    Words(&'static str),
}

/// A key whatever its form.
pub(crate) trait AnyKey: Sync {
    fn name(&self) -> &'static str;
    fn required(&self) -> bool;
    fn schema(&self, names: &Names) -> Json;
}

impl<F: Form + Sync> AnyKey for Key<F> {
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
