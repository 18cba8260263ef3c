//! A table of the file: refuses unknown keys, reads values and defaults.

use crate::document::{Item, Table, parse_value};
use crate::entry::Entry;
use crate::error::{Origin, ReadError};
use crate::form::{Default, Form, Key};
use crate::unknown::unknown_key;

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

    /// Refuses unknown keys: all but those in `known`. Messages call the table `name`.
    ///
    /// # Errors
    /// The table has an unknown key.
    pub fn refuse_unknown_keys(
        self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ReadError> {
        let known: Vec<&str> = known.into_iter().collect();
        let mut entries = self.table.0.iter();
        match entries.find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(Self { known, ..self }),
            Some((key, node)) => {
                let given = self.entry.below(node, key);
                Err(given.error(unknown_key(key, known, name)))
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
