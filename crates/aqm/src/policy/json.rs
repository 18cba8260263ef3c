//! JSON as far as a file of weights needs it: tables, lists, numbers and plain texts.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What a file may nest.
const DEEPEST: u32 = 8;

/// A value of JSON.
pub enum Json {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// A table.
    Table(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text that is one value; `None` if it is not.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let value = value(&mut rest, 0)?;
        rest.trim_ascii_start().is_empty().then_some(value)
    }

    /// The value of a key; `None` if this is no table, or has no such key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Table(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The entries, if this is a list.
    pub fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(entries) => Some(entries),
            _ => None,
        }
    }

    /// The text, if this is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The numbers, if this is a list of nothing else.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        self.list()?.iter().map(Self::number).collect()
    }
}

/// Takes a character, after blanks, off the rest.
fn take(rest: &mut &str, wanted: char) -> Option<()> {
    *rest = rest.trim_ascii_start().strip_prefix(wanted)?;
    Some(())
}

fn value(rest: &mut &str, depth: u32) -> Option<Json> {
    *rest = rest.trim_ascii_start();
    match rest.chars().next()? {
        '{' if depth < DEEPEST => {
            let entry = |rest: &mut &str| {
                let key = text(rest)?;
                take(rest, ':')?;
                Some((key, value(rest, depth + 1)?))
            };
            entries(rest, '{', '}', entry).map(Json::Table)
        }
        '[' if depth < DEEPEST => {
            entries(rest, '[', ']', |rest| value(rest, depth + 1)).map(Json::List)
        }
        '"' => text(rest).map(Json::Text),
        _ => {
            let is_part = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (number, after) = rest.split_at(end);
            *rest = after;
            let number: f64 = number.parse().ok()?;
            number.is_finite().then_some(Json::Number(number))
        }
    }
}

/// What stands between two brackets, with commas between.
fn entries<T>(
    rest: &mut &str,
    open: char,
    close: char,
    entry: impl Fn(&mut &str) -> Option<T>,
) -> Option<Vec<T>> {
    take(rest, open)?;
    let mut entries = Vec::new();
    if take(rest, close).is_some() {
        return Some(entries);
    }
    loop {
        entries.push(entry(rest)?);
        if take(rest, ',').is_none() {
            return take(rest, close).map(|()| entries);
        }
    }
}

/// A text without escapes.
fn text(rest: &mut &str) -> Option<String> {
    take(rest, '"')?;
    let (text, after) = rest.split_once('"')?;
    *rest = after;
    (!text.contains('\\')).then(|| text.to_string())
}
