//! From an experiment file to its list of runs.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::axes::{self, Axes};
use crate::context::Context;
use crate::counted;
use crate::document::{self, Node, parse_value, path_segment};
use crate::entry::Entry;
use crate::error::{Origin, ReadError};
use crate::form::Form;
use crate::input;
use crate::model::Experiment;
use crate::names::Names;
use crate::read::File;
use crate::run_spec::RunSpec;

/// The most runs of one file: cells × queues × repetitions.
const MOST_RUNS: u64 = 1_000_000;

/// The largest experiment file. Each value becomes a node of a hundred bytes or more.
const MOST_BYTES: u64 = 1_000_000;

/// An experiment file in memory.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file's path, for messages.
    pub name: &'a str,
    /// Its content.
    pub text: &'a str,
}

/// All runs of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// One cell per combination of swept values, in the order of the file; the last key changes fastest. Without a
    /// sweep, a single cell.
    pub cells: Vec<Cell>,
    layout: Layout,
}

/// One combination of swept values.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The experiment of this cell.
    pub experiment: Arc<Experiment>,
    /// The swept keys and their values as written: text as strings, numbers as numbers.
    pub set: Vec<(String, Json)>,
}

impl Cell {
    /// The runs of this cell: for each seed, each arm.
    pub fn specs(&self) -> impl Iterator<Item = RunSpec> + '_ {
        let experiment = &self.experiment;
        let seeds =
            (0..u64::from(experiment.repeat)).map(|repeat| experiment.seed.wrapping_add(repeat));
        seeds.flat_map(move |seed| {
            (0..experiment.queues.len()).map(move |queue| RunSpec {
                experiment: Arc::clone(experiment),
                queue,
                seed,
                set: self.set.clone(),
            })
        })
    }
}

impl Plan {
    /// All runs in the order of results: cells, then seeds, then arms.
    pub fn specs(&self) -> impl Iterator<Item = RunSpec> + '_ {
        self.cells.iter().flat_map(Cell::specs)
    }

    /// The number of runs: cells × queues × repetitions. At most a million.
    pub fn runs(&self) -> u64 {
        self.cells
            .iter()
            .map(|cell| runs_of(&cell.experiment))
            .sum()
    }

    /// An error at a dotted key such as `queue.0.target`, for a check that only the caller can make, such as that of a
    /// discipline's parameters together. `must` says what is accepted: `must be above 0 and below interval ("100 ms")`.
    /// `is_refused` is the same check of another experiment, without some of the swept values: the message names those
    /// that cause the error.
    pub fn refuse(
        &self,
        cell: usize,
        key: &str,
        must: &str,
        is_refused: impl Fn(&Experiment) -> bool,
    ) -> ReadError {
        self.layout.refuse(cell as u64, key, must, is_refused)
    }
}

fn runs_of(experiment: &Experiment) -> u64 {
    experiment.queues.len() as u64 * u64::from(experiment.repeat)
}

/// Reads an experiment file. Each override is a dotted key with a value as in the file, quotes optional; it replaces
/// the file's value, including a swept key's values.
///
/// ```
/// use sojourn_experiment::{DisciplineKeys, Names, Source, read};
///
/// let text = r#"
/// experiment = { duration = "60 s" }
/// link       = { rate = "10 Mbit/s", buffer = "1 bdp" }
/// queue      = [{ aqm = "pfifo" }]
/// traffic    = [{ kind = "bulk", flows = 4, rtt = "100 ms" }]
/// sweep      = { "traffic.0.flows" = [4, 16, 64] }
/// "#;
/// let names = Names {
///     disciplines: vec![DisciplineKeys { name: "pfifo".into(), keys: vec![] }],
///     congestion_controls: vec!["cubic".into()],
/// };
/// let source = Source { name: "load.toml", text };
/// let plan = read(source, &[("link.rate".into(), "5mbit".into())], &names)?;
/// assert_eq!(plan.cells.len(), 3);
///
/// let error = read(source, &[("link.rate".into(), "5 ms".into())], &names).unwrap_err();
/// assert!(error.to_string().starts_with(r#"--set link.rate: got "5 ms"; must be a rate"#));
/// # Ok::<(), sojourn_experiment::ReadError>(())
/// ```
///
/// # Errors
/// The first mistake found: in the TOML, an override, a key, a value, or between values.
pub fn read(
    source: Source<'_>,
    overrides: &[(String, String)],
    names: &Names,
) -> Result<Plan, ReadError> {
    let layout = Layout::read(source, overrides, names)?;
    layout.refuse_unsampled()?;
    let combinations = layout.axes.cells();
    if combinations > MOST_RUNS {
        return Err(too_many(source.name, combinations));
    }
    let context = layout.context();
    let mut cells = Vec::new();
    let mut runs = 0;
    for index in 0..combinations {
        let cell = layout.read_cell(index, &context)?;
        runs += runs_of(&cell.experiment);
        cells.push(cell);
        if runs > MOST_RUNS {
            return Err(too_many(source.name, runs));
        }
    }
    drop(context);
    Ok(Plan { cells, layout })
}

fn too_many(file: &str, runs: u64) -> ReadError {
    let what =
        format!("asks for {runs} runs (sweep × queues × repeat); must be at most {MOST_RUNS}");
    ReadError::new(file, Origin::File, "", what)
}

/// As [`read`], from a path.
///
/// # Errors
/// As [`read`]; or the file cannot be read or is not UTF-8.
pub fn read_file(
    path: &Path,
    overrides: &[(String, String)],
    names: &Names,
) -> Result<Plan, ReadError> {
    let (name, text) = text_of(path)?;
    let source = Source {
        name: &name,
        text: &text,
    };
    read(source, overrides, names)
}

/// A file's name for messages, and its text.
pub(crate) fn text_of(path: &Path) -> Result<(String, String), ReadError> {
    let name = path.display().to_string();
    let failed = |what: String| ReadError::new(&name, Origin::File, "", what);
    let text = input::text(path, MOST_BYTES).map_err(failed)?;
    Ok((name, text))
}

/// A file with its overrides applied and its sweep removed.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Layout {
    pub file: String,
    names: Names,
    root: Node,
    pub axes: Axes,
}

impl Layout {
    /// Parses a text, applies the overrides, and removes the sweep.
    pub(crate) fn read(
        source: Source<'_>,
        overrides: &[(String, String)],
        names: &Names,
    ) -> Result<Self, ReadError> {
        let file = source.name;
        if source.text.len() as u64 > MOST_BYTES {
            return Err(ReadError::new(
                file,
                Origin::File,
                "",
                input::too_large(MOST_BYTES),
            ));
        }
        let mut root = document::parse(file, source.text)?;
        for (key, text) in overrides {
            let origin = Origin::Set {
                key: path_segment(key),
                text: text.clone(),
            };
            let value = parse_value(text, origin.clone());
            root.set(key, value)
                .map_err(|what| ReadError::new(file, origin, "", what))?;
        }
        let axes = axes::take(file, &mut root, overrides)?;
        Ok(Self {
            file: file.into(),
            names: names.clone(),
            root,
            axes,
        })
    }

    /// What a reader of cells needs besides the layout.
    pub fn context(&self) -> Context<'_> {
        Context::new(&self.file, &self.names)
    }

    /// # Errors
    /// The file has a design that was not sampled.
    pub fn refuse_unsampled(&self) -> Result<(), ReadError> {
        match self.axes.unsampled() {
            Some(design) => Err(design.unsampled(&self.file)),
            None => Ok(()),
        }
    }

    /// Reads the file with the swept values of one cell in their places.
    pub fn read_cell(&self, index: u64, context: &Context<'_>) -> Result<Cell, ReadError> {
        let experiment_of = |root: &Node| {
            let all = self.expanded(root)?;
            let read = File.read(&Entry::root(&all, context));
            read.map_err(|error| error.rewritten(|text| counted::as_written(root, text)))
        };
        let values = self.axes.cell(index);
        let experiment = experiment_of(&self.swept(&values)?).map_err(|error| {
            let cause = self.cause(&values, |root| {
                experiment_of(root).is_err_and(|other| other == error)
            });
            error.within_sweep(&axes::as_text(&cause))
        })?;
        Ok(Cell {
            experiment: Arc::new(experiment),
            set: axes::as_json(&values),
        })
    }

    /// Those of a cell's swept values without which the file does not have the same mistake.
    fn cause<'a>(
        &self,
        values: &[(&'a str, &'a Node)],
        has_it: impl Fn(&Node) -> bool,
    ) -> Vec<(&'a str, &'a Node)> {
        let mut cause = values.to_vec();
        for value in values {
            let mut others = cause.clone();
            others.retain(|other| other.0 != value.0);
            if self.swept(&others).is_ok_and(|root| has_it(&root)) {
                cause = others;
            }
        }
        cause
    }

    /// As [`Plan::refuse`].
    pub fn refuse(
        &self,
        cell: u64,
        key: &str,
        must: &str,
        is_refused: impl Fn(&Experiment) -> bool,
    ) -> ReadError {
        let values = self.axes.cell(cell);
        let written = match self.swept(&values) {
            Ok(root) => root,
            Err(error) => return error,
        };
        let root = match self.expanded(&written) {
            Ok(root) => root,
            Err(error) => return error,
        };
        let context = self.context();
        let nearest = Entry::root(&root, &context).at(key);
        let message = match nearest.path == key {
            _ if must.starts_with("got ") => must.to_owned(),
            true => format!("got {}; {must}", nearest.node.item),
            false => format!("not given; {must}"),
        };
        let cause = self.cause(&values, |root| {
            let expanded = self.expanded(root);
            expanded
                .and_then(|root| File.read(&Entry::root(&root, &context)))
                .is_ok_and(|experiment| is_refused(&experiment))
        });
        let origin = nearest.node.origin.clone();
        let key = counted::as_written(&written, key);
        ReadError::new(&self.file, origin, &key, message).within_sweep(&axes::as_text(&cause))
    }

    /// The file with every entry as often as it counts.
    fn expanded<'n>(&self, root: &'n Node) -> Result<Cow<'n, Node>, ReadError> {
        match counted::counts(root) {
            true => counted::expanded(&self.file, root.clone()).map(Cow::Owned),
            false => Ok(Cow::Borrowed(root)),
        }
    }

    /// The file with swept values applied.
    fn swept(&self, values: &[(&str, &Node)]) -> Result<Node, ReadError> {
        let mut root = self.root.clone();
        for (key, value) in self.axes.set(values) {
            let path = path_segment(key);
            let origin = value.origin.clone();
            root.set(key, value)
                .map_err(|what| ReadError::new(&self.file, origin, &path, what))?;
        }
        Ok(root)
    }
}
