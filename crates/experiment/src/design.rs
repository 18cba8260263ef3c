//! `[sweep] design`: cells sampled from ranges, instead of all combinations of values.
//!
//! A file names the ranges. The Python package samples them when it plans the runs, and adds the values of the cells, in
//! order, as `sweep.points`. The points then define the cells: reading the file with them needs no sampling.

use serde_json::{Value as Json, json};

use crate::axis::Axis;
use crate::document::{Item, Node, Table, path_segment};
use crate::error::{Origin, ReadError};
use crate::unknown::unknown_key;

/// The designs: Sobol' sequences, arranged by Saltelli's method for sensitivity indices, and Latin hypercubes.
const KINDS: [&str; 2] = ["sobol", "latin_hypercube"];
/// The most samples of a design.
const MOST_SAMPLES: i128 = 100_000;

/// The design that a file asks for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Design {
    kind: String,
    samples: i128,
    seed: i128,
    origin: Origin,
    /// The ranges of keys. A key without a range takes each of its listed values equally often.
    ranges: Vec<(String, Range)>,
}

/// A range of values of the same unit.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Range {
    from: f64,
    to: f64,
    unit: String,
    is_log: bool,
    is_whole: bool,
}

impl Design {
    /// Removes the keys of a design from `[sweep]`. Returns `None` if `[sweep]` has no `design`.
    ///
    /// # Errors
    /// A key is missing or wrong.
    pub fn take(file: &str, sweep: &mut Table) -> Result<Option<Self>, ReadError> {
        let Some(design) = sweep.remove("design") else {
            return Ok(None);
        };
        let kind = match &design.item {
            Item::Text(text) if KINDS.contains(&text.as_str()) => text.clone(),
            other => {
                let what = format!("got {other}; must be \"{}\"", KINDS.join("\" or \""));
                return Err(ReadError::new(file, design.origin, "sweep.design", what));
            }
        };
        let mut whole = |name: &str, least: i128, most: i128| match sweep.remove(name) {
            None => Ok(None),
            Some(Node {
                item: Item::Integer(number),
                ..
            }) if (least..=most).contains(&number) => Ok(Some(number)),
            Some(node) => {
                let what = format!(
                    "got {}; must be a whole number from {least} to {most}",
                    node.item
                );
                let path = format!("sweep.{name}");
                Err(ReadError::new(file, node.origin, &path, what))
            }
        };
        let samples = whole("samples", 2, MOST_SAMPLES)?;
        let seed = whole("seed", 0, u32::MAX.into())?.unwrap_or(1);
        let Some(samples) = samples else {
            let what = "not given; must be the number of samples of the design";
            return Err(ReadError::new(file, design.origin, "sweep.samples", what));
        };
        if kind == "sobol" && samples.count_ones() != 1 {
            let what =
                format!("got {samples}; must be a power of two for \"sobol\", such as 64 or 256");
            return Err(ReadError::new(file, design.origin, "sweep.samples", what));
        }
        Ok(Some(Self {
            kind,
            samples,
            seed,
            origin: design.origin,
            ranges: Vec::new(),
        }))
    }

    /// Adds the range of a key. Returns its two ends as an axis, so that they are checked like values.
    ///
    /// # Errors
    /// The ends are not numbers of the same unit in increasing order, or the scale is wrong.
    pub fn add(&mut self, file: &str, key: &str, node: Node) -> Result<Axis, ReadError> {
        let path = format!("sweep.{}", path_segment(key));
        let refuse =
            |origin: &Origin, what: String| Err(ReadError::new(file, origin.clone(), &path, what));
        let Item::Table(mut table) = node.item else {
            return refuse(&node.origin, "must be a range".into());
        };
        let (Some(from), Some(to)) = (table.remove("from"), table.remove("to")) else {
            return refuse(&node.origin, "must have from and to".into());
        };
        let is_log = match table.remove("scale").map(|scale| scale.item) {
            None => false,
            Some(Item::Text(text)) if text == "log" || text == "linear" => text == "log",
            Some(other) => {
                let what = format!("scale: got {other}; must be \"linear\" or \"log\"");
                return refuse(&node.origin, what);
            }
        };
        if let Some((name, other)) = table.0.first() {
            let path = format!("{path}.{}", path_segment(name));
            let what = unknown_key(name, ["from", "to", "scale"], "a range");
            return Err(ReadError::new(file, other.origin.clone(), &path, what));
        }
        let (Some((low, unit)), Some((high, same))) = (number(&from.item), number(&to.item)) else {
            let what = format!(
                "got {} to {}; must be numbers of the same unit",
                from.item, to.item
            );
            return refuse(&node.origin, what);
        };
        if unit != same || !high.is_finite() || low >= high || (is_log && low <= 0.0) {
            let above = if is_log { "above 0 and " } else { "" };
            let what = format!(
                "got {} to {}; must have the same unit, and from be {above}below to",
                from.item, to.item
            );
            return refuse(&node.origin, what);
        }
        // Flows, packets and bytes are whole numbers.
        let countable = ["", "packet", "packets", "B", "byte", "bytes"].contains(&unit.trim());
        let is_whole = countable && low.fract() == 0.0 && high.fract() == 0.0 && !is_float(&from);
        self.ranges.push((
            key.into(),
            Range {
                from: low,
                to: high,
                unit: unit.into(),
                is_log,
                is_whole,
            },
        ));
        Ok(Axis {
            key: key.into(),
            values: vec![from.clone(), to.clone()],
        })
    }

    /// Replaces the ranges and lists of the axes by the values of the cells.
    ///
    /// # Errors
    /// The points lack a key of the design, have a key that it does not sample, or have different numbers of values.
    pub fn put(&self, file: &str, axes: &mut [Axis], points: Node) -> Result<(), ReadError> {
        let refuse = |what: String| {
            Err(ReadError::new(
                file,
                points.origin.clone(),
                "sweep.points",
                what,
            ))
        };
        let Item::Table(Table(columns)) = points.item else {
            return refuse("must be a table of arrays, one for each key of the design".into());
        };
        let count = columns.len();
        let mut cells = None;
        for (key, node) in columns {
            let Some(axis) = axes.iter_mut().find(|axis| axis.key == key) else {
                return refuse(format!("has {key}, which the design does not sample"));
            };
            let Item::Array(values) = node.item else {
                return refuse(format!("{key} must be an array of values"));
            };
            if values.is_empty() || *cells.get_or_insert(values.len()) != values.len() {
                return refuse(
                    "must have the same number of values for each key, at least one".into(),
                );
            }
            // Messages about a value name the line of its range.
            let origin = axis.values[0].origin.clone();
            axis.values = values
                .into_iter()
                .map(|value| Node {
                    item: value.item,
                    origin: origin.clone(),
                })
                .collect();
        }
        match count == axes.len() {
            true => Ok(()),
            false => refuse("must have the values of each key of the design".into()),
        }
    }

    /// The design with its keys, as JSON; see [`design`](crate::design).
    pub fn json(&self, axes: &[Axis]) -> Json {
        let keys = axes.iter().map(|axis| {
            match self.ranges.iter().find(|(key, _)| *key == axis.key) {
                Some((key, range)) => json!({
                    "key": key, "from": range.from, "to": range.to, "unit": range.unit, "log": range.is_log,
                    "whole": range.is_whole,
                }),
                None => json!({"key": axis.key, "values": axis.json()}),
            }
        });
        json!({
            "kind": self.kind, "samples": self.samples as u64, "seed": self.seed as u64,
            "keys": keys.collect::<Vec<_>>(),
        })
    }

    /// The error for a design without keys to sample.
    pub fn without_keys(&self, file: &str) -> ReadError {
        let what = "needs a key to sample, such as \"link.rate\" = { from = \"1 Mbit/s\", to = \"9 Mbit/s\" }";
        ReadError::new(file, self.origin.clone(), "sweep.design", what)
    }

    /// The error for a design that was not sampled.
    pub fn unsampled(&self, file: &str) -> ReadError {
        let what = format!(
            "got \"{}\"; only sojourn sweep, sojourn run and sojourn.plan sample a design",
            self.kind
        );
        ReadError::new(file, self.origin.clone(), "sweep.design", what)
    }
}

/// True if a table is a range. Otherwise it holds swept keys.
pub(crate) fn is_range(table: &Table) -> bool {
    let is_end = |key: &str| match table.get(key) {
        Some(node) => !matches!(node.item, Item::Array(_) | Item::Table(_)),
        None => false,
    };
    is_end("from") && is_end("to")
}

fn is_float(node: &Node) -> bool {
    matches!(node.item, Item::Float(..))
}

/// A value as a number, and the text after it: its unit.
pub(crate) fn number(item: &Item) -> Option<(f64, &str)> {
    match item {
        Item::Integer(number) => Some((*number as f64, "")),
        Item::Float(number, _) => Some((*number, "")),
        Item::Text(text) => (1..=text.len())
            .rev()
            .filter(|end| text.is_char_boundary(*end))
            .find_map(|end| Some((text[..end].parse().ok()?, &text[end..]))),
        _ => None,
    }
}
