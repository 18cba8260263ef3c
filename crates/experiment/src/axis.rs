//! One swept key.

use serde_json::Value as Json;

use crate::document::Node;

/// A swept key and its values, at least one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    pub key: String,
    pub values: Vec<Node>,
}

impl Axis {
    /// The values as JSON.
    pub fn json(&self) -> Vec<Json> {
        let values = self.values.iter();
        values.map(|value| value.item.to_json()).collect()
    }
}
