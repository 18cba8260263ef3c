//! The JSON Schema of the experiment file, for editors.

use serde_json::Value as Json;

use crate::form::Form;
use crate::names::Names;
use crate::read::File;

/// The JSON Schema (draft 2020-12) of the experiment file with these names. It states keys, types, units, ranges of
/// bare numbers and defaults. Only [`read`](crate::read) checks rules between keys; and the schema reports a key that
/// only a sweep provides as missing.
pub fn schema(names: &Names) -> Json {
    let mut schema = File.schema(names);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Sojourn experiment".into();
    schema
}
