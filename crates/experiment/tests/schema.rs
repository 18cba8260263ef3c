//! The schema is valid and accepts the files that the reader accepts.

mod common;

use boon::{Compiler, Draft, SchemaIndex, Schemas};
use common::{EVERY_KEY, EXAMPLE, names, read_text};
use serde_json::{Value as Json, json};
use sojourn_experiment::{resolved, schema};

struct Validator {
    schemas: Schemas,
    root: SchemaIndex,
}

impl Validator {
    /// Compiling checks the schema against the metaschema of its draft.
    fn new() -> Self {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler
            .add_resource("mem:experiment", schema(&names()))
            .unwrap();
        let root = compiler.compile("mem:experiment", &mut schemas).unwrap();
        Self { schemas, root }
    }

    fn accepts(&self, file: &Json) -> bool {
        self.schemas.validate(file, self.root).is_ok()
    }
}

/// The example as an editor's schema check sees it.
fn example() -> Json {
    let experiment = read_text(EXAMPLE).unwrap().cells.remove(0).experiment;
    let mut file = resolved(&experiment);
    file["queue"][0]["target"] = json!("5 ms");
    file["queue"][0]["variant"] = json!("linux");
    file["sweep"] =
        json!({"link.rate": ["1 Mbit/s", "10 Mbit/s"], "traffic": {"0": {"flows": [4]}}});
    file
}

#[test]
fn a_good_file_is_valid() {
    let validator = Validator::new();
    assert!(validator.accepts(&example()));
    let experiment = read_text(EVERY_KEY).unwrap().cells.remove(0).experiment;
    assert!(validator.accepts(&resolved(&experiment)));
    let mut file = example();
    file["link"]["rate"] = json!([["0 s", "100 Mbit/s"], ["50 s", "10mbit"]]);
    file["link"]["buffer"] = json!("0.5 bdp");
    file["link"]["up"]["queue"] = json!({"aqm": "fq_codel", "flows": 64, "memory_limit": "4 MiB"});
    file["traffic"][0]["start"] = json!("0..1 s");
    file["record"]["series"] = json!("100 ms");
    assert!(validator.accepts(&file));
}

#[test]
fn a_bad_file_is_not_valid() {
    let validator = Validator::new();
    for (pointer, value) in [
        ("/experiment/duration", json!(60)),
        ("/experiment/repeat", json!(0)),
        ("/link/rate", json!("10 ms")),
        ("/link/rate", json!([])),
        ("/link/buffer", json!("150")),
        ("/link/up", json!({})),
        ("/queue", json!([])),
        ("/queue/0/aqm", json!("fq-codel")),
        ("/queue/0/target", json!(5)),
        ("/queue/0/variant", json!("bsd")),
        ("/traffic/0/kind", json!("cbr")),
        ("/traffic/0/flows", json!(100_001)),
        ("/traffic/0/tcp", json!("vegas")),
        ("/traffic/0/start", json!("0..1")),
        ("/sweep/link.rate", json!([])),
    ] {
        let mut file = example();
        *file.pointer_mut(pointer).unwrap() = value.clone();
        assert!(!validator.accepts(&file), "{pointer} = {value}");
    }
    for (table, key) in [
        ("", "lnk"),
        ("/link", "rat"),
        ("/queue/0", "tarjet"),
        ("/traffic/0", "packet"),
    ] {
        let mut file = example();
        file.pointer_mut(table).unwrap()[key] = json!("5 ms");
        assert!(!validator.accepts(&file), "{table}/{key}");
    }
}

#[test]
fn every_key_has_a_description_and_plain_defaults_are_given() {
    fn visit(schema: &Json, path: &str, seen: &mut usize) {
        if let Some(properties) = schema["properties"].as_object() {
            for (key, property) in properties {
                let path = format!("{path}.{key}");
                let described = property["description"]
                    .as_str()
                    .is_some_and(|doc| !doc.is_empty());
                assert!(described || property["const"].is_string(), "{path}");
                *seen += 1;
                visit(property, &path, seen);
            }
        }
        visit_all(&schema["items"], path, seen);
        for form in schema["anyOf"].as_array().into_iter().flatten() {
            visit(form, path, seen);
        }
    }
    fn visit_all(items: &Json, path: &str, seen: &mut usize) {
        match items["oneOf"].as_array().or(items["anyOf"].as_array()) {
            Some(kinds) => kinds.iter().for_each(|kind| visit(kind, path, seen)),
            None if items.is_object() => visit(items, path, seen),
            None => {}
        }
    }
    let schema = schema(&names());
    let mut seen = 0;
    visit(&schema, "", &mut seen);
    assert!(seen > 60, "{seen} keys");
    assert_eq!(
        schema["properties"]["link"]["anyOf"][0]["properties"]["overhead"]["default"],
        "14 B"
    );
    assert_eq!(
        schema["properties"]["experiment"]["properties"]["repeat"]["default"],
        1
    );
    let codel = &schema["properties"]["queue"]["items"]["oneOf"][2]["properties"];
    assert_eq!(codel["aqm"]["const"], "codel");
    assert_eq!(codel["target"]["default"], "5 ms");
}
