//! A value of the file with its dotted path: read as text or as a quantity, or refused with a message.

use sojourn_units::{Duration, Kind, Rate, Value};

use crate::context::Context;
use crate::document::{Item, Node, index_in, path_segment};
use crate::error::{Origin, ReadError};
use crate::unknown::suggestion;
use crate::written;

/// The longest duration in a file: 10^6 s, over eleven days. Sums of a few cannot overflow.
const LONGEST: Duration = Duration::from_secs(1_000_000);
const FASTEST: Rate = Rate::from_mbps(1_000_000);
const MOST_BYTES: u64 = 1_000_000_000_000;
const MOST_PACKETS: u64 = 1_000_000_000;

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
            (Item::Integer(_) | Item::Float(..) | Item::Flag(_), Origin::Set { text, .. }) => {
                Some(text.trim())
            }
            _ => None,
        }
    }

    /// As [`Entry::text`], of a word that may look like a number: `kernel = 7.3`.
    pub fn word(&self) -> Option<String> {
        match &self.node.item {
            Item::Integer(number) => Some(number.to_string()),
            Item::Float(_, digits) => Some(digits.to_string()),
            _ => self.text().map(str::to_owned),
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

    /// The value at a dotted path below this one. If the file does not have it: its nearest ancestor in the file.
    pub fn at(&self, path: &str) -> Self {
        let mut here = self.clone();
        for segment in path.split('.') {
            let node = match &here.node.item {
                Item::Table(table) => table.get(segment),
                Item::Array(items) => index_in(items, segment).map(|index| &items[index]),
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
            Item::Text(name) if kind == Kind::File => {
                let file = self.context.file(name, &self.node.origin);
                let file = file.map_err(|what| self.error(format!("got \"{name}\"; {what}")))?;
                Some(Value::File(file))
            }
            Item::Text(text) if !bare => kind.parse(text).ok(),
            Item::Integer(integer) if kind == Kind::Count => {
                u64::try_from(*integer).ok().map(Value::Count)
            }
            Item::Integer(integer) => kind.from_number(*integer as f64).ok(),
            Item::Float(float, _) => kind.from_number(*float).ok(),
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

    /// The value `node` at this name or index below this one.
    pub fn below(&self, node: &'a Node, segment: &str) -> Self {
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
