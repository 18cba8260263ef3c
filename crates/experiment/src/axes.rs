//! `[sweep]`: dotted keys. Each has a list of values, or a range from which a design takes samples. Its combinations are
//! run in every `[[case]]`.

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::axis::Axis;
use crate::cases::{self, Case};
use crate::design::{self, Design};
use crate::document::{Item, Node, overlap, overridden, path_segment};
use crate::error::{Origin, ReadError};

/// The swept keys, and how their values combine into cells.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Axes {
    pub each: Vec<Axis>,
    cells: Cells,
    cases: Vec<Case>,
}

#[derive(Clone, PartialEq, Debug)]
enum Cells {
    /// Every combination of values.
    All,
    /// The first cell has the first value of each key, the second cell the second value, and so on: the samples of a
    /// design.
    InStep,
    /// No cells yet: the values are those from which the design takes its samples.
    Unsampled(Design),
}

/// Removes the sweep and the cases from a file. Keys keep the order of the file. `link.rate` without quotes, which TOML reads as
/// tables, means the same as `"link.rate"`. A key that an override sets is not swept.
///
/// # Errors
/// The sweep is not a table; a key has no array of different values, or occurs twice; or the design is wrong.
pub(crate) fn take(
    file: &str,
    root: &mut Node,
    overrides: &[(String, String)],
) -> Result<Axes, ReadError> {
    let mut axes = swept(file, root, overrides)?;
    axes.cases = cases::take(file, root, overrides, &axes.each)?;
    Ok(axes)
}

fn swept(file: &str, root: &mut Node, overrides: &[(String, String)]) -> Result<Axes, ReadError> {
    let mut axes = Axes {
        each: Vec::new(),
        cells: Cells::All,
        cases: Vec::new(),
    };
    let sweep = match &mut root.item {
        Item::Table(table) => table.remove("sweep"),
        _ => None,
    };
    let Some(mut sweep) = sweep else {
        return Ok(axes);
    };
    let Item::Table(table) = &mut sweep.item else {
        let what = format!("got {}; must be a table [sweep] of dotted keys", sweep.item);
        return Err(ReadError::new(file, sweep.origin, "sweep", what));
    };
    let mut design = Design::take(file, table)?;
    let points = design.is_some().then(|| table.remove("points")).flatten();
    collect(file, "", sweep, &mut axes.each, &mut design)?;
    for (index, axis) in axes.each.iter().enumerate() {
        let twin = |other: &&Axis| overlap(root, &axis.key, &other.key);
        if let Some(twin) = axes.each[..index].iter().find(twin) {
            let what = format!("sets what sweep.{} sets; must be one of both", twin.key);
            let path = format!("sweep.{}", path_segment(&axis.key));
            return Err(ReadError::new(
                file,
                axis.values[0].origin.clone(),
                &path,
                what,
            ));
        }
    }
    let mut each = Vec::new();
    for axis in axes.each {
        if !overridden(file, root, &axis.key, "sweep", overrides)? {
            each.push(axis);
        }
    }
    axes.each = each;
    match (design, points) {
        (Some(design), _) if axes.each.is_empty() => return Err(design.without_keys(file)),
        (Some(design), Some(points)) => {
            design.put(file, &mut axes.each, points)?;
            axes.cells = Cells::InStep;
        }
        (Some(design), None) => axes.cells = Cells::Unsampled(design),
        (None, _) => {}
    }
    Ok(axes)
}

fn collect(
    file: &str,
    key: &str,
    node: Node,
    axes: &mut Vec<Axis>,
    design: &mut Option<Design>,
) -> Result<(), ReadError> {
    let refuse = |origin: &Origin, what: String| {
        let path = format!("sweep.{}", path_segment(key));
        Err(ReadError::new(file, origin.clone(), &path, what))
    };
    let values = match node.item {
        Item::Table(ref table) if design::is_range(table) => {
            let Some(design) = design else {
                let what = "a range needs a design: must be an array of the values to run, or \
                            [sweep] have design = \"sobol\" or \"latin_hypercube\"";
                return refuse(&node.origin, what.into());
            };
            if axes.iter().any(|axis| axis.key == key) {
                return refuse(&node.origin, "given twice".into());
            }
            axes.push(design.add(file, key, node)?);
            return Ok(());
        }
        Item::Table(table) => {
            for (name, node) in table.0 {
                let below = match key {
                    "" => name,
                    _ => format!("{key}.{name}"),
                };
                collect(file, &below, node, axes, design)?;
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

impl Axes {
    /// The number of cells.
    pub fn cells(&self) -> u64 {
        self.per_case()
            .saturating_mul(self.cases.len().max(1) as u64)
    }

    /// The number of combinations of swept values.
    fn per_case(&self) -> u64 {
        let counts = self.each.iter().map(|axis| axis.values.len() as u64);
        match self.cells {
            Cells::InStep => counts.min().unwrap_or(1),
            _ => counts.fold(1, u64::saturating_mul),
        }
    }

    /// The keys and their values, as JSON: `case` with the labels, then the swept ones.
    pub fn json(&self) -> Vec<(String, Vec<Json>)> {
        let labels = self.cases.iter().map(|case| case.label.item.to_json());
        let cases = (!self.cases.is_empty()).then(|| (cases::KEY.into(), labels.collect()));
        let swept = self.each.iter().map(|axis| (axis.key.clone(), axis.json()));
        cases.into_iter().chain(swept).collect()
    }

    /// What the values of a cell set: dotted keys, with those of its case in place of its label.
    pub fn set<'a>(&'a self, values: &[(&'a str, &'a Node)]) -> Vec<(&'a str, Node)> {
        let mut set = Vec::new();
        for (key, value) in values {
            let labelled = |case: &&Case| *key == cases::KEY && case.label.item == value.item;
            match self.cases.iter().find(labelled) {
                Some(case) => {
                    set.extend((case.set.iter()).map(|(key, node)| (key.as_str(), node.clone())))
                }
                None => set.push((key, (*value).clone().into_swept(&path_segment(key)))),
            }
        }
        set
    }

    /// The values of a cell: the label of its case, and the swept ones. In combinations the last key changes fastest.
    pub fn cell(&self, index: u64) -> Vec<(&str, &Node)> {
        let per_case = self.per_case();
        let case = self.cases.get((index / per_case) as usize);
        let mut rest = index % per_case;
        let mut values: Vec<(&str, &Node)> = self
            .each
            .iter()
            .rev()
            .map(|axis| {
                let count = axis.values.len() as u64;
                let value = &axis.values[(rest % count) as usize];
                if self.cells != Cells::InStep {
                    rest /= count;
                }
                (axis.key.as_str(), value)
            })
            .collect();
        values.extend(case.map(|case| (cases::KEY, &case.label)));
        values.reverse();
        values
    }

    /// The first cell, and the cells that differ from it in one value. For a design: the cells with the smallest and
    /// the largest value of each key.
    pub fn edges(&self) -> Vec<u64> {
        let mut edges = self.edges_of_case();
        edges.extend((1..self.cases.len() as u64).map(|case| case * self.per_case()));
        edges
    }

    fn edges_of_case(&self) -> Vec<u64> {
        let mut edges = vec![0];
        if self.cells == Cells::InStep {
            for axis in &self.each {
                edges.extend(extremes(&axis.values));
            }
            edges.sort_unstable();
            edges.dedup();
            return edges;
        }
        let mut stride = 1;
        for axis in self.each.iter().rev() {
            let values = axis.values.len() as u64;
            edges.extend((1..values).map(|value| value * stride));
            stride *= values;
        }
        edges
    }

    /// The design, unless it has been sampled.
    pub fn unsampled(&self) -> Option<&Design> {
        match &self.cells {
            Cells::Unsampled(design) => Some(design),
            _ => None,
        }
    }
}

/// The indices of the smallest and the largest number. For values that are not numbers: the first index of each.
fn extremes(values: &[Node]) -> Vec<u64> {
    let numbers: Option<Vec<f64>> = values
        .iter()
        .map(|value| Some(design::number(&value.item)?.0))
        .collect();
    let mut indices: Vec<usize> = (0..values.len()).collect();
    match numbers {
        Some(numbers) => {
            indices.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b]));
            indices.drain(1..indices.len().saturating_sub(1).max(1));
        }
        None => {
            let mut seen = HashSet::new();
            indices.retain(|index| seen.insert(values[*index].item.to_json().to_string()));
        }
    }
    indices.into_iter().map(|index| index as u64).collect()
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
