//! `[sweep]`: dotted keys, each with an array of values.

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::document::{Item, Node, path_segment};
use crate::error::{Origin, ReadError};

/// A swept key and its values, at least one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axis {
    pub key: String,
    pub values: Vec<Node>,
}

/// Removes the sweep from a file and returns its axes, in the order of the file. `link.rate` without quotes, which TOML
/// reads as nested tables, means the same as `"link.rate"`.
///
/// # Errors
/// The sweep is not a table; a key has no array of distinct values; or a key appears twice.
pub(crate) fn take(file: &str, root: &mut Node) -> Result<Vec<Axis>, ReadError> {
    let mut axes = Vec::new();
    let sweep = match &mut root.item {
        Item::Table(table) => table.remove("sweep"),
        _ => None,
    };
    if let Some(sweep) = sweep {
        if !matches!(sweep.item, Item::Table(_)) {
            let what = format!("got {}; must be a table [sweep] of dotted keys", sweep.item);
            return Err(ReadError::new(file, sweep.origin, "sweep", what));
        }
        collect(file, "", sweep, &mut axes)?;
    }
    Ok(axes)
}

fn collect(file: &str, key: &str, node: Node, axes: &mut Vec<Axis>) -> Result<(), ReadError> {
    let refuse = |origin: &Origin, what: String| {
        let path = format!("sweep.{}", path_segment(key));
        Err(ReadError::new(file, origin.clone(), &path, what))
    };
    let values = match node.item {
        Item::Table(table) => {
            for (name, node) in table.0 {
                let below = match key {
                    "" => name,
                    _ => format!("{key}.{name}"),
                };
                collect(file, &below, node, axes)?;
            }
            return Ok(());
        }
        Item::Array(values) if !values.is_empty() => values,
        other => {
            let what = format!("got {other}; must be an array of the values to run");
            return refuse(&node.origin, what);
        }
    };
    if key == "sweep" || key.starts_with("sweep.") {
        return refuse(&node.origin, "a sweep cannot be swept".into());
    }
    let mut seen = HashSet::new();
    for value in &values {
        if !seen.insert(value.item.to_json().to_string()) {
            return refuse(
                &value.origin,
                format!("got {} twice; must be different values", value.item),
            );
        }
    }
    match axes.iter_mut().find(|axis| axis.key == key) {
        // An override replaces the values of a key that the file sweeps, even under the other spelling.
        Some(axis) if matches!(node.origin, Origin::Set { .. }) => axis.values = values,
        Some(_) => return refuse(&node.origin, "given twice".into()),
        None => axes.push(Axis {
            key: key.into(),
            values,
        }),
    }
    Ok(())
}

/// The number of combinations.
pub(crate) fn combinations(axes: &[Axis]) -> u64 {
    axes.iter().fold(1, |product, axis| {
        product.saturating_mul(axis.values.len() as u64)
    })
}

/// The values of combination `index`; the last key changes fastest.
pub(crate) fn combination(axes: &[Axis], index: u64) -> Vec<(&str, &Node)> {
    let mut rest = index;
    let mut values: Vec<(&str, &Node)> = axes
        .iter()
        .rev()
        .map(|axis| {
            let count = axis.values.len() as u64;
            let value = &axis.values[(rest % count) as usize];
            rest /= count;
            (axis.key.as_str(), value)
        })
        .collect();
    values.reverse();
    values
}

/// The values of a combination as JSON, by key.
pub(crate) fn as_json(values: &[(&str, &Node)]) -> Vec<(String, Json)> {
    values
        .iter()
        .map(|(key, node)| ((*key).to_string(), node.item.to_json()))
        .collect()
}

/// The values of a combination, as shown in messages.
pub(crate) fn as_text(values: &[(&str, &Node)]) -> String {
    let values = values
        .iter()
        .map(|(key, node)| format!("{} = {}", path_segment(key), node.item));
    values.collect::<Vec<_>>().join(", ")
}
