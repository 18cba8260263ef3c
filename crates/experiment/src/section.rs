//! Reads a table: values by form, defaults, unknown keys.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sojourn_units::{Duration, Kind, Rate, Trace, TraceError, Value};

use crate::document::{Item, Node, Table, parse_value, path_segment, place_in};
use crate::error::{Origin, ReadError};
use crate::form::{Default, Form, Key};
use crate::input;
use crate::names::Names;
use crate::suggest::suggestion;
use crate::written;

/// The longest duration in a file: 10^6 s, over eleven days. Sums of a few cannot overflow.
pub(crate) const LONGEST: Duration = Duration::from_secs(1_000_000);
const FASTEST: Rate = Rate::from_mbps(1_000_000);
/// The largest trace file: three minutes at 1 Gbit/s, one line per packet.
const LARGEST_TRACE: u64 = 100_000_000;
const MOST_BYTES: u64 = 1_000_000_000_000;
const MOST_PACKETS: u64 = 1_000_000_000;

/// What a reader needs besides the file's text.
pub(crate) struct Context<'a> {
    /// The file's name for messages.
    pub file: &'a str,
    pub names: &'a Names,
    /// Traces by path; each is read once, however many cells use it.
    traces: RefCell<HashMap<PathBuf, Trace>>,
}

impl<'a> Context<'a> {
    pub fn new(file: &'a str, names: &'a Names) -> Self {
        Self {
            file,
            names,
            traces: RefCell::default(),
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
    /// What is wrong, to follow `got "name"; `.
    pub fn trace(&self, name: &str, origin: &Origin) -> Result<Trace, String> {
        let folder = match origin {
            Origin::Set { .. } => None,
            _ => Path::new(self.file).parent(),
        };
        let path = folder.unwrap_or(Path::new("")).join(name);
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
}

/// Whether a text begins with a number that has an exponent or more digits than any quantity needs.
fn is_outsized(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let digits = text.len() - rest.len();
    let has_exponent = rest.strip_prefix(['e', 'E']).is_some_and(|exponent| {
        exponent
            .trim_start_matches(['+', '-'])
            .starts_with(|c: char| c.is_ascii_digit())
    });
    digits > 15 || (digits > 0 && has_exponent)
}

/// A value in the file and its dotted path.
#[derive(Clone)]
pub(crate) struct Entry<'a> {
    pub node: &'a Node,
    pub path: String,
    pub context: &'a Context<'a>,
}

impl<'a> Entry<'a> {
    pub fn root(node: &'a Node, context: &'a Context<'a>) -> Self {
        Self {
            node,
            path: String::new(),
            context,
        }
    }

    /// An error at this value.
    pub fn error(&self, what: impl Into<String>) -> ReadError {
        let origin = self.node.origin.clone();
        ReadError::new(self.context.file, origin, &self.path, what)
    }

    /// The error for a value that is not accepted: `got …; must be …`.
    pub fn refuse(&self, accepts: impl std::fmt::Display) -> ReadError {
        let note = match &self.node.item {
            Item::Text(text) if is_outsized(text) => {
                ", its number written with at most 15 digits and without an exponent"
            }
            _ => "",
        };
        self.error(format!("got {}; must be {accepts}{note}", self.node.item))
    }

    /// The error for an unknown name, with the nearest known one.
    pub fn unknown<'n>(&self, known: impl IntoIterator<Item = &'n str>) -> ReadError {
        let given = match &self.node.item {
            Item::Text(text) => text,
            _ => "",
        };
        self.error(format!(
            "got {}; {}",
            self.node.item,
            suggestion(given, known, "")
        ))
    }

    /// The text of this value, if it is text. In an override, which has no quotes, a number or flag counts as text
    /// where text is expected.
    pub fn text(&self) -> Option<&'a str> {
        match (&self.node.item, &self.node.origin) {
            (Item::Text(text), _) => Some(text),
            (Item::Integer(_) | Item::Float(_) | Item::Flag(_), Origin::Set { text, .. }) => {
                Some(text.trim())
            }
            _ => None,
        }
    }

    /// The entries of an array.
    pub fn items(&self) -> Option<Vec<Self>> {
        let Item::Array(items) = &self.node.item else {
            return None;
        };
        let entries = items.iter().enumerate();
        Some(
            entries
                .map(|(index, node)| self.below(node, &index.to_string()))
                .collect(),
        )
    }

    /// The value at a dotted path below this one, or its nearest ancestor in the file.
    pub fn at(&self, path: &str) -> Self {
        let mut here = self.clone();
        for segment in path.split('.') {
            let node = match &here.node.item {
                Item::Table(table) => table.get(segment),
                Item::Array(items) => place_in(items, segment).map(|place| &items[place]),
                _ => None,
            };
            match node {
                Some(node) => here = here.below(node, segment),
                None => break,
            }
        }
        here
    }

    /// This value as a quantity of `kind`, within the bounds for all keys.
    pub fn quantity(&self, kind: Kind) -> Result<Value, ReadError> {
        let bare = matches!(
            kind,
            Kind::Probability | Kind::Number | Kind::Count | Kind::Flag
        );
        let value = match &self.node.item {
            Item::Text(text) if !bare => kind.parse(text).ok(),
            Item::Integer(integer) if kind == Kind::Count => {
                u64::try_from(*integer).ok().map(Value::Count)
            }
            Item::Integer(integer) => kind.from_number(*integer as f64).ok(),
            Item::Float(float) => kind.from_number(*float).ok(),
            Item::Flag(flag) => Some(Value::Flag(*flag)).filter(|value| kind.admits(value)),
            _ => None,
        };
        let value = value.ok_or_else(|| self.refuse(kind.accepts()))?;
        let most = match value {
            Value::Duration(span) if span > LONGEST => LONGEST.to_string(),
            Value::Rate(rate) if rate > FASTEST => FASTEST.to_string(),
            Value::Bytes(bytes) if bytes > MOST_BYTES => written::bytes(MOST_BYTES),
            Value::Packets(packets) if packets > MOST_PACKETS => format!("{MOST_PACKETS} packets"),
            _ => return Ok(value),
        };
        Err(self.refuse(format!("at most \"{most}\"")))
    }

    fn below(&self, node: &'a Node, segment: &str) -> Self {
        let segment = path_segment(segment);
        let path = if self.path.is_empty() {
            segment
        } else {
            format!("{}.{segment}", self.path)
        };
        Self {
            node,
            path,
            context: self.context,
        }
    }
}

/// A table and its known keys.
pub(crate) struct Section<'a> {
    entry: Entry<'a>,
    table: &'a Table,
    /// The known keys; empty until they have been set.
    known: Vec<&'a str>,
}

impl<'a> Section<'a> {
    /// Opens the table of `form` at `entry`.
    ///
    /// # Errors
    /// The value is not a table.
    pub fn open(entry: &Entry<'a>, form: &impl Form) -> Result<Self, ReadError> {
        match &entry.node.item {
            Item::Table(table) => Ok(Self {
                entry: entry.clone(),
                table,
                known: Vec::new(),
            }),
            _ => Err(entry.refuse(form.accepts())),
        }
    }

    /// Sets the known keys and refuses others. Messages call the table `name`.
    ///
    /// # Errors
    /// The table has an unknown key.
    pub fn only(
        self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ReadError> {
        let known: Vec<&str> = known.into_iter().collect();
        let other = self
            .table
            .0
            .iter()
            .find(|(key, _)| !known.contains(&key.as_str()));
        match other {
            None => Ok(Self { known, ..self }),
            Some((key, node)) => {
                let suggestion = suggestion(key, known, &format!(" by {name}"));
                Err(self
                    .entry
                    .below(node, key)
                    .error(format!("unknown key; {suggestion}")))
            }
        }
    }

    /// All values, by key.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Entry<'a>)> + '_ {
        let entries = self.table.0.iter();
        entries.map(|(key, node)| (key.as_str(), self.entry.below(node, key)))
    }

    /// The value at `name`, if the file has one.
    ///
    /// # Panics
    /// This table has no key of that name.
    pub fn given(&self, name: &str) -> Option<Entry<'a>> {
        let is_known = self.known.is_empty() || self.known.contains(&name);
        assert!(is_known, "no key is called {name}");
        let node = self.table.get(name)?;
        Some(self.entry.below(node, name))
    }

    /// The value of `key`, or its default.
    ///
    /// # Errors
    /// As the key's form; or the key is not given and has no default.
    pub fn get<F: Form>(&self, key: &Key<F>) -> Result<F::Out, ReadError> {
        if let Some(given) = self.given(key.name) {
            return key.form.read(&given);
        }
        let absent = match key.default {
            Default::Is(text) => parse_value(text, Origin::File),
            Default::Required => return Err(self.missing(key.name, &key.form)),
            Default::Words(_) => {
                let missing = || self.missing(key.name, &key.form);
                return key.form.absent().ok_or_else(missing);
            }
        };
        let default = Entry {
            node: &absent,
            path: self.entry.path.clone(),
            context: self.entry.context,
        };
        key.form.read(&default)
    }

    /// The error for a required key that is missing.
    pub fn missing(&self, name: &str, form: &impl Form) -> ReadError {
        let missing = format!("missing; must be {}", form.accepts());
        self.entry.below(self.entry.node, name).error(missing)
    }
}
