//! `count`: many entries of `[[traffic]]`, `[[link]]` or `[[class]]`, written once.

use crate::document::{Item, Node, Table};
use crate::error::ReadError;

/// The most entries that one may stand for.
const MOST: i128 = 10_000;
/// The sections whose entries may have a count.
const SECTIONS: [&str; 3] = ["link", "class", "traffic"];
/// In texts of a counted entry: its number, from 1.
const NUMBER: &str = "{i}";

/// Whether an entry of the file has a `count`.
pub(crate) fn counts(root: &Node) -> bool {
    let Item::Table(sections) = &root.item else {
        return false;
    };
    let counted = |section| match sections.get(section).map(|node| &node.item) {
        Some(Item::Array(entries)) => entries.iter().any(has_count),
        _ => false,
    };
    SECTIONS.into_iter().any(counted)
}

/// The file with every entry that has a `count` in place of as many entries. Each has its number for `{i}` in its
/// texts, and at the end of its name if that has none. Traffic has a `total`: the name without a number.
///
/// # Errors
/// A count is not a whole number from 1 to 10,000, or a text has other braces than `{i}`.
pub(crate) fn expanded(file: &str, mut root: Node) -> Result<Node, ReadError> {
    let Item::Table(Table(sections)) = &mut root.item else {
        return Ok(root);
    };
    for (section, node) in sections {
        let Item::Array(entries) = &mut node.item else {
            continue;
        };
        if !SECTIONS.contains(&section.as_str()) {
            continue;
        }
        let mut all = Vec::with_capacity(entries.len());
        for (index, entry) in std::mem::take(entries).into_iter().enumerate() {
            let path = format!("{section}.{index}");
            all.extend(copies(file, &path, entry, section == "traffic")?);
        }
        *entries = all;
    }
    Ok(root)
}

/// A path or a message with the numbers of entries as they are in the file, from one with those after counting.
pub(crate) fn as_written(root: &Node, text: &str) -> String {
    let Item::Table(sections) = &root.item else {
        return text.to_owned();
    };
    SECTIONS.into_iter().fold(text.to_owned(), |text, section| {
        let Some(Item::Array(entries)) = sections.get(section).map(|node| &node.item) else {
            return text;
        };
        let marker = format!("{section}.");
        let mut parts = text.split(&marker);
        let before = parts.next().unwrap_or_default().to_owned();
        parts.fold(before, |text, part| {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            let number = &part[..part.len() - rest.len()];
            match number.parse() {
                Ok(counted) => format!("{text}{marker}{}{rest}", written(entries, counted)),
                Err(_) => format!("{text}{marker}{part}"),
            }
        })
    })
}

/// The entry of the file that stands for the one with this number after counting.
fn written(entries: &[Node], counted: usize) -> usize {
    let mut before = 0;
    for (index, entry) in entries.iter().enumerate() {
        before += match &entry.item {
            Item::Table(table) if has_count(entry) => {
                match table.get("count").map(|node| &node.item) {
                    Some(Item::Integer(copies)) => usize::try_from(*copies).unwrap_or(1),
                    _ => 1,
                }
            }
            _ => 1,
        };
        if counted < before {
            return index;
        }
    }
    counted
}

fn has_count(entry: &Node) -> bool {
    matches!(&entry.item, Item::Table(table) if table.get("count").is_some() && !sends_files(table))
}

/// Traffic of this kind has a count of files.
fn sends_files(table: &Table) -> bool {
    matches!(table.get("kind").map(|node| &node.item), Some(Item::Text(kind)) if kind == "files")
}

fn copies(
    file: &str,
    path: &str,
    mut entry: Node,
    is_traffic: bool,
) -> Result<Vec<Node>, ReadError> {
    let Item::Table(table) = &mut entry.item else {
        return Ok(vec![entry]);
    };
    if sends_files(table) {
        return Ok(vec![entry]);
    }
    let Some(count) = table.remove("count") else {
        return Ok(vec![entry]);
    };
    let copies = match count.item {
        Item::Integer(copies) if (1..=MOST).contains(&copies) => copies,
        item => {
            let what = format!("got {item}; must be a whole number from 1 to {MOST}");
            return Err(ReadError::new(
                file,
                count.origin,
                &format!("{path}.count"),
                what,
            ));
        }
    };
    for (key, node) in &table.0 {
        refuse_other_braces(file, &format!("{path}.{key}"), node)?;
    }
    let text = |key| match table.get(key).map(|node| &node.item) {
        Some(Item::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let name = text("name").or_else(|| text("kind")).unwrap_or_default();
    let of_each = match name.contains(NUMBER) {
        true => name.clone(),
        false => format!("{name}-{NUMBER}"),
    };
    let put = |table: &mut Table, key: &str, text: String| {
        let value = Node {
            item: Item::Text(text),
            origin: count.origin.clone(),
        };
        match table.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, node)) => node.item = value.item,
            None => table.0.push((key.into(), value)),
        }
    };
    put(table, "name", of_each);
    if is_traffic && table.get("total").is_none() {
        let plain = name.replace(NUMBER, "");
        put(table, "total", plain.trim_matches(['-', ' ']).into());
    }
    Ok((1..=copies)
        .map(|number| numbered(entry.clone(), &number.to_string()))
        .collect())
}

/// # Errors
/// A text of a counted entry has braces with something else than the number.
fn refuse_other_braces(file: &str, path: &str, node: &Node) -> Result<(), ReadError> {
    match &node.item {
        Item::Text(text) if text.replace(NUMBER, "").contains(['{', '}']) => {
            let what = format!("got {}; {NUMBER} is what stands for the number", node.item);
            Err(ReadError::new(file, node.origin.clone(), path, what))
        }
        Item::Array(items) => (items.iter().enumerate()).try_for_each(|(index, item)| {
            refuse_other_braces(file, &format!("{path}.{index}"), item)
        }),
        Item::Table(table) => (table.0.iter()).try_for_each(|(key, value)| {
            refuse_other_braces(file, &format!("{path}.{key}"), value)
        }),
        _ => Ok(()),
    }
}

/// A value with the number in all its texts.
fn numbered(mut node: Node, number: &str) -> Node {
    node.item = match node.item {
        Item::Text(text) => Item::Text(text.replace(NUMBER, number)),
        Item::Array(items) => {
            Item::Array((items.into_iter().map(|item| numbered(item, number))).collect())
        }
        Item::Table(Table(entries)) => {
            let numbered = |(key, value)| (key, numbered(value, number));
            Item::Table(Table(entries.into_iter().map(numbered).collect()))
        }
        other => other,
    };
    node
}
