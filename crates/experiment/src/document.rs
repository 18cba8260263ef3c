//! An experiment file as a tree. Every value knows its origin, for messages.

use std::fmt;

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Origin, Place, ReadError};

/// A value and its origin.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Node {
    pub item: Item,
    pub origin: Origin,
}

/// A TOML value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Item {
    Text(String),
    Integer(i128),
    /// With its digits as written: a word such as 6.10 is not the number 6.1.
    Float(f64, Box<str>),
    Flag(bool),
    /// No key accepts a date; kept for the error message.
    Date(String),
    Array(Vec<Node>),
    Table(Table),
}

/// Keys and values in the order of the file.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Table(pub Vec<(String, Node)>);

impl Table {
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, node)| node)
    }

    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let index = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(index).1)
    }

    /// The node at `key`; creates an empty table with this origin if there is none.
    fn entry(&mut self, key: &str, origin: &Origin) -> &mut Node {
        let index = match self.0.iter().position(|(name, _)| name == key) {
            Some(index) => index,
            None => {
                let empty = Node {
                    item: Item::Table(Table::default()),
                    origin: origin.clone(),
                };
                self.0.push((key.into(), empty));
                self.0.len() - 1
            }
        };
        &mut self.0[index].1
    }
}

/// Parses TOML text; the root is a table. `file` is the name used in messages.
pub(crate) fn parse(file: &str, text: &str) -> Result<Node, ReadError> {
    let lines = Lines::of(text);
    let root = DeTable::parse(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        match error.span().map(|span| lines.origin(span.start)) {
            Some(Origin::Text(place)) => {
                let given = shortened(text.lines().nth(place.line - 1).unwrap_or_default().trim());
                let what = format!("got `{given}`; not TOML: {message}");
                ReadError::new(file, Origin::Text(place), "", what)
            }
            _ => ReadError::new(file, Origin::File, "", format!("not TOML: {message}")),
        }
    })?;
    Ok(Node {
        item: Item::Table(table(root.get_ref(), &|at| lines.origin(at))),
        origin: Origin::File,
    })
}

/// A tree from JSON; its values have no line numbers.
pub(crate) fn from_json(json: &Json) -> Node {
    let item = match json {
        Json::Null => Item::Text(String::new()),
        Json::Bool(flag) => Item::Flag(*flag),
        Json::Number(number) => match number.as_i128() {
            Some(integer) => Item::Integer(integer),
            None => Item::Float(
                number.as_f64().unwrap_or(f64::NAN),
                number.to_string().into(),
            ),
        },
        Json::String(text) => Item::Text(text.clone()),
        Json::Array(items) => Item::Array(items.iter().map(from_json).collect()),
        Json::Object(entries) => {
            let entries = entries.iter();
            Item::Table(Table(
                entries
                    .map(|(key, value)| (key.clone(), from_json(value)))
                    .collect(),
            ))
        }
    };
    Node {
        item,
        origin: Origin::File,
    }
}

/// The value of an override or a default: TOML if it parses as TOML, otherwise the text itself, so that `10 ms` needs
/// no quotes.
pub(crate) fn parse_value(text: &str, origin: Origin) -> Node {
    let text = text.trim();
    match DeValue::parse(text) {
        Ok(value) if !value.get_ref().is_datetime() => {
            node(&value, origin.clone(), &|_| origin.clone())
        }
        _ => Node {
            item: Item::Text(text.into()),
            origin,
        },
    }
}

/// The start offset of each line of a text.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let mark = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(mark).chain(after_breaks).collect())
    }

    fn origin(&self, offset: usize) -> Origin {
        let line = self.0.partition_point(|begin| *begin <= offset);
        let column = offset - self.0[line - 1] + 1;
        Origin::Text(Place { line, column })
    }
}

fn table(from: &DeTable<'_>, origin: &dyn Fn(usize) -> Origin) -> Table {
    let mut entries: Vec<_> = from.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter().map(|(key, value)| {
        let at_key = origin(key.span().start);
        (key.get_ref().to_string(), node(value, at_key, origin))
    });
    Table(entries.collect())
}

fn node(from: &Spanned<DeValue<'_>>, at: Origin, origin: &dyn Fn(usize) -> Origin) -> Node {
    let item = match from.get_ref() {
        DeValue::String(text) => Item::Text(text.to_string()),
        // Integers beyond 128 bits are out of range for every key.
        DeValue::Integer(digits) => match i128::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(integer) => Item::Integer(integer),
            Err(_) => Item::Float(f64::INFINITY, digits.as_str().into()),
        },
        DeValue::Float(digits) => Item::Float(
            digits.as_str().parse().unwrap_or(f64::NAN),
            digits.as_str().into(),
        ),
        DeValue::Boolean(flag) => Item::Flag(*flag),
        DeValue::Datetime(date) => Item::Date(date.to_string()),
        DeValue::Array(items) => Item::Array(
            items
                .iter()
                .map(|item| node(item, origin(item.span().start), origin))
                .collect(),
        ),
        DeValue::Table(entries) => Item::Table(table(entries, origin)),
    };
    Node { item, origin: at }
}

/// A key without the quotes around it.
fn unquoted(key: &str) -> &str {
    let within = |quote: char| key.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(key)
}

/// The index of an array's entry, given a segment of a dotted key: its number from 0, or the value of its `name`.
pub(crate) fn index_in(items: &[Node], segment: &str) -> Option<usize> {
    match segment.parse() {
        Ok(number) => (number < items.len()).then_some(number),
        Err(_) => items.iter().position(|item| name_of(item) == Some(segment)),
    }
}

/// Whether two dotted keys set the same value, or one sets a part of what the other sets. Entries of arrays may be named by
/// number in one and by `name` in the other.
pub(crate) fn overlap(root: &Node, one: &str, other: &str) -> bool {
    let (one, other) = (by_number(root, one), by_number(root, other));
    one.iter().zip(&other).all(|(one, other)| one == other)
}

/// Whether there is a value at a dotted key.
pub(crate) fn has(root: &Node, key: &str) -> bool {
    let mut segments = key.split('.');
    let found = segments.try_fold(root, |here, segment| match &here.item {
        Item::Table(table) => table.get(segment),
        Item::Array(items) => items.get(index_in(items, segment)?),
        _ => None,
    });
    found.is_some()
}

/// Whether an override, which `root` has already, sets what a swept key, or that of a case, sets. One that sets a table
/// without the key leaves it to the sweep.
///
/// # Errors
/// An override sets a part of it, which the values of the key would replace.
pub(crate) fn overridden(
    file: &str,
    root: &Node,
    key: &str,
    by: &str,
    overrides: &[(String, String)],
) -> Result<bool, ReadError> {
    let mut same = overrides.iter().filter(|(set, _)| overlap(root, key, set));
    let part = same
        .clone()
        .find(|(set, _)| set.split('.').count() > key.split('.').count());
    if let Some((set, text)) = part {
        let origin = Origin::Set {
            key: path_segment(set),
            text: text.clone(),
        };
        let what = format!("{by} sets all of {key}; must be {key} as a whole");
        return Err(ReadError::new(file, origin, "", what));
    }
    Ok(same.next().is_some() && has(root, key))
}

/// The segments of a dotted key, with the numbers of entries in place of their names.
fn by_number(root: &Node, key: &str) -> Vec<String> {
    let mut here = Some(root);
    let segments = key.split('.').map(|segment| {
        let (next, segment) = match here.map(|node| &node.item) {
            Some(Item::Table(table)) => (table.get(segment), segment.to_owned()),
            Some(Item::Array(items)) => match index_in(items, segment) {
                Some(index) => (items.get(index), index.to_string()),
                None => (None, segment.to_owned()),
            },
            _ => (None, segment.to_owned()),
        };
        here = next;
        segment
    });
    segments.collect()
}

/// The `name` of an entry of an array, if it has one.
fn name_of(entry: &Node) -> Option<&str> {
    let Item::Table(table) = &entry.item else {
        return None;
    };
    match &table.get("name")?.item {
        Item::Text(name) => Some(name),
        _ => None,
    }
}

/// The most segments of a dotted key; the format needs five. The limit bounds the recursion over trees.
const DEEPEST: usize = 16;

impl Node {
    /// Sets the value at a dotted key and creates missing tables; a table replaces a value that is none, as for `link.rate.trace`
    /// where the file has a fixed rate. Everything after `sweep.` is one key, with or without quotes.
    ///
    /// # Errors
    /// The key leads to an array entry that does not exist.
    pub fn set(&mut self, key: &str, value: Self) -> Result<(), String> {
        let segments: Vec<&str> = match key.strip_prefix("sweep.") {
            Some(swept) => vec!["sweep", unquoted(swept)],
            None => key.split('.').collect(),
        };
        let is_none = |segment: &&str| segment.is_empty() || segment.contains(['"', '\'']);
        if segments.len() > DEEPEST || segments.iter().any(is_none) {
            return Err(
                "not a dotted key such as link.rate, queue.0.target or sweep.link.rate".into(),
            );
        }
        let mut here = self;
        for (depth, segment) in segments.iter().enumerate() {
            if !matches!(here.item, Item::Table(_) | Item::Array(_)) {
                here.item = Item::Table(Table::default());
                here.origin = value.origin.clone();
            }
            here = match &mut here.item {
                Item::Table(table) => table.entry(segment, &value.origin),
                Item::Array(items) => match index_in(items, segment) {
                    Some(index) => &mut items[index],
                    None => {
                        let (holder, count) = (segments[..depth].join("."), items.len());
                        let names: Vec<&str> = items.iter().filter_map(name_of).collect();
                        let named = match names.join(", ") {
                            names if names.is_empty() => names,
                            names => format!(" or called {names}"),
                        };
                        return Err(format!(
                            "{holder} has no entry {segment:?}; it has {count}, counted from 0{named}"
                        ));
                    }
                },
                _ => unreachable!("a value of another kind has become a table"),
            };
        }
        *here = value;
        Ok(())
    }

    /// This value and all below it, with the sweep over `key` as their origin.
    pub fn into_swept(mut self, key: &str) -> Self {
        if let Origin::Text(at) = self.origin {
            let key = key.into();
            self.origin = Origin::Sweep { at, key };
        }
        self.item = match self.item {
            Item::Array(items) => {
                Item::Array(items.into_iter().map(|node| node.into_swept(key)).collect())
            }
            Item::Table(Table(entries)) => Item::Table(Table(
                entries
                    .into_iter()
                    .map(|(name, node)| (name, node.into_swept(key)))
                    .collect(),
            )),
            scalar => scalar,
        };
        self
    }
}

impl Item {
    /// The value as JSON; text stays text, numbers stay numbers.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Text(text) | Self::Date(text) => text.as_str().into(),
            Self::Integer(integer) => match i64::try_from(*integer) {
                Ok(integer) => integer.into(),
                Err(_) => (*integer as f64).into(),
            },
            Self::Float(float, _) => (*float).into(),
            Self::Flag(flag) => (*flag).into(),
            Self::Array(items) => items.iter().map(|node| node.item.to_json()).collect(),
            Self::Table(Table(entries)) => entries
                .iter()
                .map(|(key, node)| (key.clone(), node.item.to_json()))
                .collect(),
        }
    }
}

/// The value as shown in messages: on one line and shortened.
impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{}\"", shortened(text)),
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Float(_, digits) => f.write_str(&shortened(digits)),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Date(date) => write!(f, "the date {date}"),
            Self::Array(items) if items.is_empty() => f.write_str("an empty array"),
            Self::Array(_) => f.write_str("an array"),
            Self::Table(_) => f.write_str("a table"),
        }
    }
}

/// Text as shown in messages: special characters escaped, long text cut.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown = String::new();
    for (index, c) in text.chars().enumerate() {
        match c {
            _ if index == LONGEST => {
                shown.push('…');
                break;
            }
            c if is_unseen(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a character has no picture of its own but changes how a line is shown: control characters, ends of lines and
/// paragraphs, and those that change the direction of writing (Unicode Standard Annex 9, section 2).
pub(crate) fn is_unseen(one: char) -> bool {
    one.is_control()
        || matches!(one, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A segment of a dotted path: a bare key if possible, otherwise quoted, so that it stays on one line.
pub(crate) fn path_segment(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
    if !key.is_empty() && key.chars().all(bare) {
        key.into()
    } else if key.contains('"') && !key.contains('\'') {
        format!("'{}'", shortened(key))
    } else {
        Item::Text(key.into()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> Node {
        parse("load.toml", text).unwrap()
    }

    fn at<'a>(node: &'a Node, key: &str) -> &'a Node {
        match &node.item {
            Item::Table(table) => table.get(key).unwrap(),
            Item::Array(items) => &items[key.parse::<usize>().unwrap()],
            _ => panic!("{key} of a scalar"),
        }
    }

    #[test]
    fn every_value_knows_its_line() {
        let root = root("a = 1\n\n[link]\nrate = [\n  1,\n  2,\n]\n[[queue]]\nx = 1\n[[queue]]\n");
        let place = |line, column| Origin::Text(Place { line, column });
        assert_eq!(at(&root, "a").origin, place(1, 1));
        assert_eq!(at(&root, "link").origin, place(3, 2));
        let rate = at(at(&root, "link"), "rate");
        assert_eq!(rate.origin, place(4, 1));
        assert_eq!(at(rate, "1").origin, place(6, 3));
        assert_eq!(at(at(&root, "queue"), "0").origin, place(8, 1));
        assert_eq!(at(at(&root, "queue"), "1").origin, place(10, 1));
    }

    #[test]
    fn keys_stay_in_the_order_of_the_file() {
        let Item::Table(table) = root("z = 1\na = 2\nm = 3").item else {
            panic!("the root is a table")
        };
        let keys: Vec<&str> = table.0.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["z", "a", "m"]);
    }

    #[test]
    fn an_override_reads_as_toml_or_as_plain_text() {
        let value = |text| parse_value(text, Origin::File).item;
        assert_eq!(value("10 ms"), Item::Text("10 ms".into()));
        assert_eq!(value("\"10 ms\""), Item::Text("10 ms".into()));
        assert_eq!(value(" 4 "), Item::Integer(4));
        assert_eq!(value("true"), Item::Flag(true));
        assert_eq!(value("2026-01-01"), Item::Text("2026-01-01".into()));
        assert_eq!(value("[4, 16]").to_json(), serde_json::json!([4, 16]));
        assert_eq!(value("1\nb = 2"), Item::Text("1\nb = 2".into()));
        assert_eq!(value(""), Item::Text(String::new()));
    }

    #[test]
    fn a_value_is_set_at_its_dotted_key() {
        let mut root = root("[link]\nrate = 1\n[[queue]]\naqm = 'red'\n");
        let put = |root: &mut Node, key: &str| root.set(key, parse_value("9", Origin::File));
        for key in [
            "link.rate",
            "link.up.rate",
            "queue.0.min",
            "sweep.link.rate",
            "sweep.\"link.rate\"",
        ] {
            put(&mut root, key).unwrap();
        }
        assert_eq!(
            root.item.to_json(),
            serde_json::json!({
                "link": {"rate": 9, "up": {"rate": 9}},
                "queue": [{"aqm": "red", "min": 9}],
                "sweep": {"link.rate": 9},
            })
        );
        put(&mut root, "link.rate.trace").unwrap();
        let rate = at(at(&root, "link"), "rate");
        assert_eq!(rate.item.to_json(), serde_json::json!({"trace": 9}));
        for (key, what) in [
            (
                "queue.1.min",
                "queue has no entry \"1\"; it has 1, counted from 0",
            ),
            (
                "queue.a.min",
                "queue has no entry \"a\"; it has 1, counted from 0",
            ),
            (
                "link..rate",
                "not a dotted key such as link.rate, queue.0.target or sweep.link.rate",
            ),
        ] {
            assert_eq!(put(&mut root, key), Err(what.into()));
        }
    }

    #[test]
    fn a_toml_error_is_one_line() {
        let error = parse("load.toml", "a = 1\nb = \n").unwrap_err();
        assert_eq!(error.line(), Some(2));
        assert_eq!(error.to_string().lines().count(), 1);
        assert!(
            error
                .to_string()
                .starts_with("load.toml:2: got `b =`; not TOML: "),
            "{error}"
        );
    }
}
