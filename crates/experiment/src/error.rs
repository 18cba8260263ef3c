//! The error for a mistake in a file: one line.

use std::fmt;

/// A place in a text: a line, and a byte of the line; both counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The byte.
    pub column: usize,
}

/// The origin of a value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Origin {
    /// The file as a whole, without a line.
    File,
    /// A place in the file.
    Text(Place),
    /// A value of the sweep over `key`, at this place in the file.
    Sweep { at: Place, key: String },
    /// An override: `key` set to `text`.
    Set { key: String, text: String },
}

/// Why a file cannot be run: one line with the place, the key, the value and what is accepted:
/// `load.toml:14: queue.0.target: got "200 ms"; must be below "100 ms"`. For a mistake in an override, `--set` takes
/// the place of the file.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadError {
    file: String,
    origin: Origin,
    path: String,
    what: String,
}

impl ReadError {
    /// An error at the value that the dotted `path` names, present or missing; an empty path means the file.
    pub(crate) fn new(file: &str, origin: Origin, path: &str, what: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            origin,
            path: path.into(),
            what: what.into(),
        }
    }

    /// Where the mistake is in the file, if it has a place: where the key begins, or a value in an array.
    pub const fn place(&self) -> Option<Place> {
        match &self.origin {
            Origin::Text(at) | Origin::Sweep { at, .. } => Some(*at),
            Origin::File | Origin::Set { .. } => None,
        }
    }

    /// The line of the file, counted from 1, if the mistake has one.
    pub fn line(&self) -> Option<usize> {
        self.place().map(|at| at.line)
    }

    /// This error with another path and message, made from its own.
    pub(crate) fn rewritten(mut self, rewrite: impl Fn(&str) -> String) -> Self {
        self.path = rewrite(&self.path);
        self.what = rewrite(&self.what);
        self
    }

    /// This error with the swept values that caused it, if any, unless it names them already.
    pub(crate) fn within_sweep(mut self, values: &str) -> Self {
        if !values.is_empty() && matches!(self.origin, Origin::File | Origin::Text(_)) {
            self.what = format!("{} (in the sweep, with {values})", self.what);
        }
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = match &self.origin {
            Origin::File => {
                write!(f, "{}: ", self.file)?;
                ""
            }
            Origin::Text(at) => {
                write!(f, "{}:{}: ", self.file, at.line)?;
                ""
            }
            Origin::Sweep { at, key } => {
                write!(f, "{}:{}: sweep.{key}: ", self.file, at.line)?;
                key
            }
            Origin::Set { key, .. } => {
                write!(f, "--set {key}: ")?;
                key
            }
        };
        if !self.path.is_empty() && self.path != named {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ReadError {}
