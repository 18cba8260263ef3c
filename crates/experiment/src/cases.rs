//! `[[case]]`: set-ups that differ in several keys at once.

use crate::axis::Axis;
use crate::document::{Item, Node, Table, overlap, overridden, path_segment};
use crate::error::ReadError;

/// The key under which a cell has the label of its case.
pub(crate) const KEY: &str = "case";

/// Several keys that are set together.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Case {
    /// Its name, a text.
    pub label: Node,
    /// The dotted keys and their values.
    pub set: Vec<(String, Node)>,
}

/// Removes the cases from a file. A key that an override sets stays as the override says.
///
/// # Errors
/// They are not tables with a label and keys to set, or two have the same label; or a key is swept as well.
pub(crate) fn take(
    file: &str,
    root: &mut Node,
    overrides: &[(String, String)],
    swept: &[Axis],
) -> Result<Vec<Case>, ReadError> {
    let taken = match &mut root.item {
        Item::Table(table) => table.remove(KEY),
        _ => None,
    };
    let Some(node) = taken else {
        return Ok(Vec::new());
    };
    let Item::Array(entries) = node.item else {
        let what = format!(
            "got {}; must be tables [[case]] with a label and set = {{ key = value }}",
            node.item
        );
        return Err(ReadError::new(file, node.origin, KEY, what));
    };
    if entries.is_empty() {
        let what = "got []; must be at least one table [[case]]";
        return Err(ReadError::new(file, node.origin, KEY, what));
    }
    let mut cases: Vec<Case> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let path = format!("{KEY}.{index}");
        let mut case = read(file, &path, entry)?;
        let twin = |other: &Case| other.label.item == case.label.item;
        if let Some(twin) = cases.iter().position(twin) {
            let what = format!(
                "got {}; {KEY}.{twin} has the same; must be different labels",
                case.label.item
            );
            return Err(refuse(file, &case.label, &format!("{path}.label"), what));
        }
        for (key, value) in std::mem::take(&mut case.set) {
            let path = format!("{path}.set.{}", path_segment(&key));
            let refuse = |what: String| Err(refuse(file, &value, &path, what));
            if swept.iter().any(|axis| overlap(root, &axis.key, &key)) {
                return refuse("is swept as well; must be one of both".into());
            }
            if let Some((twin, _)) = case
                .set
                .iter()
                .find(|(known, _)| overlap(root, known, &key))
            {
                return refuse(format!("sets what {twin} sets; must be one of both"));
            }
            if !overridden(file, root, &key, "a case", overrides)? {
                case.set.push((key, value));
            }
        }
        cases.push(case);
    }
    Ok(cases)
}

fn refuse(file: &str, node: &Node, path: &str, what: String) -> ReadError {
    ReadError::new(file, node.origin.clone(), path, what)
}

fn read(file: &str, path: &str, entry: Node) -> Result<Case, ReadError> {
    let wrong = |node: &Node, path: &str, what: &str| {
        Err(refuse(
            file,
            node,
            path,
            format!("got {}; must be {what}", node.item),
        ))
    };
    let table_of_both = "a table with a label and set = { key = value }";
    let Item::Table(Table(keys)) = &entry.item else {
        return wrong(&entry, path, table_of_both);
    };
    let (mut label, mut set) = (None, Vec::new());
    for (key, node) in keys {
        let path = format!("{path}.{key}");
        match (key.as_str(), &node.item) {
            ("label", Item::Text(text)) if !text.trim().is_empty() => label = Some(node.clone()),
            ("label", _) => return wrong(node, &path, "a text"),
            ("set", Item::Table(_)) => collect("", node, &mut set),
            ("set", _) => return wrong(node, &path, "a table of dotted keys and values"),
            _ => {
                let what = "unknown key; accepted by [[case]]: label, set".to_owned();
                return Err(refuse(file, node, &path, what));
            }
        }
    }
    let Some(label) = label else {
        let what = "missing; must be a text".to_owned();
        return Err(refuse(file, &entry, &format!("{path}.label"), what));
    };
    let outside = |(key, _): &&(String, Node)| {
        [KEY, "sweep"].contains(&key.split('.').next().unwrap_or_default())
    };
    if let Some((key, value)) = set.iter().find(outside) {
        let what = "a case cannot set this".to_owned();
        return Err(refuse(
            file,
            value,
            &format!("{path}.set.{}", path_segment(key)),
            what,
        ));
    }
    Ok(Case { label, set })
}

/// The values of a table by dotted key: `link.rate` without quotes, which TOML reads as tables, means the same as
/// `"link.rate"`. A value that is itself a table, such as a trace, needs a key in quotes.
fn collect(key: &str, node: &Node, set: &mut Vec<(String, Node)>) {
    match &node.item {
        Item::Table(Table(entries)) => {
            for (name, node) in entries {
                match key {
                    "" if name.contains('.') => set.push((name.clone(), node.clone())),
                    "" => collect(name, node, set),
                    _ => collect(&format!("{key}.{name}"), node, set),
                }
            }
        }
        _ => set.push((key.into(), node.clone())),
    }
}
