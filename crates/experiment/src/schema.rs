//! The JSON Schema of the experiment file, for editors.

use serde_json::Value as Json;

use crate::form::Form;
use crate::names::Names;
use crate::read::File;

/// The JSON Schema (draft 2020-12) of the experiment file with these names. It states keys, types,
/// units, ranges of bare numbers and defaults; what must hold between keys only [`read`](crate::read) checks,
/// and a key that only a sweep gives counts as missing here.
pub fn schema(names: &Names) -> Json {
    let mut schema = File.schema(names);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Sojourn experiment".into();
    schema
}
