//! A sweep too large for memory, whose cells are read one by one, on demand; and the design of a sweep whose cells are
//! yet to be sampled.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::error::{Origin, ReadError};
use crate::model::Experiment;
use crate::names::Names;
use crate::plan::{Cell, Layout, Source, text_of};
use crate::run_spec::RunSpec;

/// The runs of a file. Only as many cells are read as are needed to count the runs and to find most mistakes: the first
/// cell and, for every swept key, each of its values with the first values of the others. A mistake in a combination of
/// values is found when its cell is read.
#[derive(Clone, Debug)]
pub struct Sweep {
    layout: Layout,
    cells: u64,
    seeds: u64,
    arms: u64,
}

impl Sweep {
    /// Reads a text; see [`crate::read`].
    ///
    /// # Errors
    /// As [`crate::read`]; or a swept key changes the number of runs per cell.
    pub fn read(
        source: Source<'_>,
        overrides: &[(String, String)],
        names: &Names,
    ) -> Result<Self, ReadError> {
        let layout = Layout::read(source, overrides, names)?;
        layout.refuse_unsampled()?;
        for axis in &layout.axes.each {
            if ["queue", "experiment.repeat"].contains(&axis.key.as_str()) {
                let what =
                    "must not be swept here: every combination must have the same number of runs";
                let origin = axis.values[0].origin.clone();
                return Err(ReadError::new(
                    &layout.file,
                    origin,
                    &axis.key,
                    what.to_owned(),
                ));
            }
        }
        let mut sweep = Self {
            cells: layout.axes.cells(),
            layout,
            seeds: 1,
            arms: 1,
        };
        let first = sweep.cell(0)?.experiment;
        sweep.seeds = first.repeat.into();
        sweep.arms = first.queues.len() as u64;
        let runs = u128::from(sweep.cells) * u128::from(sweep.seeds * sweep.arms);
        if runs > u128::from(u64::MAX) {
            let what = "asks for more runs than can be counted".to_owned();
            return Err(ReadError::new(&sweep.layout.file, Origin::File, "", what));
        }
        for cell in sweep.edges() {
            sweep.cell(cell)?;
        }
        Ok(sweep)
    }

    /// As [`Sweep::read`], from a path.
    ///
    /// # Errors
    /// As [`Sweep::read`]; or the file cannot be read or is not UTF-8.
    pub fn read_file(
        path: &Path,
        overrides: &[(String, String)],
        names: &Names,
    ) -> Result<Self, ReadError> {
        let (name, text) = text_of(path)?;
        let source = Source {
            name: &name,
            text: &text,
        };
        Self::read(source, overrides, names)
    }

    /// The number of runs.
    pub const fn runs(&self) -> u64 {
        self.cells * self.seeds * self.arms
    }

    /// The number of combinations of swept values.
    pub const fn cells(&self) -> u64 {
        self.cells
    }

    /// The number of runs per combination.
    pub const fn runs_per_cell(&self) -> u64 {
        self.seeds * self.arms
    }

    /// The swept keys and their values.
    pub fn axes(&self) -> Vec<(String, Vec<Json>)> {
        self.layout.axes.json()
    }

    /// Reads a cell by its number.
    ///
    /// # Errors
    /// Its combination of values is invalid.
    pub fn cell(&self, number: u64) -> Result<Cell, ReadError> {
        self.layout.read_cell(number, &self.layout.context())
    }

    /// A run of a cell by its number: seeds, then arms, as in [`crate::Plan::specs`].
    pub fn run_of(&self, cell: &Cell, number: u64) -> RunSpec {
        RunSpec {
            experiment: Arc::clone(&cell.experiment),
            queue: (number % self.arms) as usize,
            seed: cell.experiment.seed.wrapping_add(number / self.arms),
            set: cell.set.clone(),
        }
    }

    /// As [`crate::Plan::refuse`].
    pub fn refuse(
        &self,
        cell: u64,
        key: &str,
        must: &str,
        is_refused: impl Fn(&Experiment) -> bool,
    ) -> ReadError {
        self.layout.refuse(cell, key, must, is_refused)
    }

    /// Cells that together have every value or, for a design, the smallest and the largest value of every key. The
    /// first cell is one of them.
    pub fn edges(&self) -> Vec<u64> {
        self.layout.axes.edges()
    }
}

/// The design that a file asks for, as JSON: `kind`, `samples`, `seed` and `keys`, each with its `key` and either
/// `values` or `from`, `to`, `unit` (the text after a number), `log` and `whole`. Null if the file has a grid, or the
/// points of its design. Overrides are as for [`read`](crate::read).
///
/// # Errors
/// As for [`read`](crate::read). The ends of ranges are checked like values of a sweep.
pub fn design(
    path: &Path,
    overrides: &[(String, String)],
    names: &Names,
) -> Result<Json, ReadError> {
    let (name, text) = text_of(path)?;
    let source = Source {
        name: &name,
        text: &text,
    };
    let layout = Layout::read(source, overrides, names)?;
    let Some(design) = layout.axes.unsampled() else {
        return Ok(Json::Null);
    };
    let context = layout.context();
    for cell in layout.axes.edges() {
        layout.read_cell(cell, &context)?;
    }
    Ok(design.json(&layout.axes.each))
}
