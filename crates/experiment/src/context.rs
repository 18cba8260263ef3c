//! The input of a reader besides the file's text: names and trace files.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sojourn_units::{TextFile, Trace, TraceError};

use crate::error::Origin;
use crate::input;
use crate::names::Names;
use crate::npz;

/// The largest trace file: three minutes at 1 Gbit/s, one line per packet.
const LARGEST_TRACE: u64 = 100_000_000;
/// The largest file that a discipline reads.
const LARGEST_FILE: u64 = 10_000_000;

/// The input of a reader besides the file's text.
pub(crate) struct Context<'a> {
    /// The file's name for messages.
    pub file: &'a str,
    pub names: &'a Names,
    /// Traces by path; each is read once, however many cells use it.
    traces: RefCell<HashMap<PathBuf, Trace>>,
    /// Files of disciplines by path, likewise.
    files: RefCell<HashMap<PathBuf, TextFile>>,
}

impl<'a> Context<'a> {
    pub fn new(file: &'a str, names: &'a Names) -> Self {
        Self {
            file,
            names,
            traces: RefCell::default(),
            files: RefCell::default(),
        }
    }

    /// Adds a trace under the name that the experiment uses, so that no file is read.
    pub fn add_trace(&self, trace: Trace) {
        let path = PathBuf::from(&trace.file);
        self.traces.borrow_mut().insert(path, trace);
    }

    /// The trace called `name`. The name is relative to the file's folder or, in an override, to the working directory;
    /// `origin` tells which.
    ///
    /// # Errors
    /// The mistake in words, to follow `got "name"; `.
    pub fn trace(&self, name: &str, origin: &Origin) -> Result<Trace, String> {
        let path = self.path(name, origin);
        if let Some(trace) = self.traces.borrow().get(&path) {
            return Ok(trace.clone());
        }
        let text = input::text(&path, LARGEST_TRACE)
            .map_err(|what| format!("{}: {what}", path.display()))?;
        let trace = Trace::parse(name, &text).map_err(|TraceError { line, got, must }| {
            format!("{}:{line}: got {got}; must be {must}", path.display())
        })?;
        self.traces.borrow_mut().insert(path, trace.clone());
        Ok(trace)
    }

    /// Adds a discipline's file, so that none is read.
    pub fn add_file(&self, file: TextFile) {
        let path = PathBuf::from(&file.name);
        self.files.borrow_mut().insert(path, file);
    }

    /// A discipline's file called `name`, as [`Context::trace`] finds it.
    ///
    /// # Errors
    /// As there.
    pub fn file(&self, name: &str, origin: &Origin) -> Result<TextFile, String> {
        let path = self.path(name, origin);
        if let Some(file) = self.files.borrow().get(&path) {
            return Ok(file.clone());
        }
        let named = |what| format!("{}: {what}", path.display());
        let bytes = input::bytes(&path, LARGEST_FILE).map_err(named)?;
        // A learned network may come in NumPy's format; runs carry it as text.
        let text = if bytes.starts_with(npz::MAGIC) {
            npz::network(&bytes).map_err(named)?.to_string()
        } else {
            input::as_text(bytes).map_err(named)?
        };
        let file = TextFile {
            name: name.into(),
            text: text.into(),
        };
        self.files.borrow_mut().insert(path, file.clone());
        Ok(file)
    }

    /// The path and the text of the file called `name`, as [`Context::trace`] finds it.
    ///
    /// # Errors
    /// As there.
    pub fn text(&self, name: &str, origin: &Origin) -> Result<(String, String), String> {
        let path = self.path(name, origin);
        let shown = path.display().to_string();
        match input::text(&path, LARGEST_TRACE) {
            Ok(text) => Ok((shown, text)),
            Err(what) => Err(format!("{shown}: {what}")),
        }
    }

    fn path(&self, name: &str, origin: &Origin) -> PathBuf {
        let folder = match origin {
            Origin::Set { .. } => None,
            _ => Path::new(self.file).parent(),
        };
        folder.unwrap_or(Path::new("")).join(name)
    }
}
