//! `from`, `to` and `via`: the routes of traffic.

use serde_json::{Value as Json, json};

use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::model::{Link, Route};
use crate::names::Names;
use crate::topology::{self, NoRoute};

/// The name of a node or a link; valid in a dotted key.
pub(crate) struct NodeName;

impl Form for NodeName {
    type Out = String;

    fn read(&self, entry: &Entry<'_>) -> Result<String, ReadError> {
        let fits = |text: &&str| {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.chars().all(word)
                && text.len() <= 40
        };
        let text = entry.text().filter(fits);
        text.map(str::to_string)
            .ok_or_else(|| entry.refuse(self.accepts()))
    }

    fn write(&self, name: &String) -> Json {
        name.as_str().into()
    }

    fn accepts(&self) -> String {
        "a name like \"gateway\": a letter, then letters, digits, _ or -, 40 at most".into()
    }

    fn schema(&self, _: &Names) -> Json {
        json!({"type": "string", "pattern": r"^[A-Za-z]([A-Za-z0-9_-]|\{i\}){0,39}$"})
    }
}

/// The intermediate nodes of a route.
pub(crate) struct Via;

impl Form for Via {
    type Out = Vec<String>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<String>, ReadError> {
        let nodes = entry.items().filter(|nodes| !nodes.is_empty());
        let nodes = nodes.ok_or_else(|| entry.refuse(self.accepts()))?;
        nodes.iter().map(|node| NodeName.read(node)).collect()
    }

    fn write(&self, nodes: &Vec<String>) -> Json {
        nodes.as_slice().into()
    }

    fn accepts(&self) -> String {
        "an array of nodes like [\"gateway\"]".into()
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"type": "array", "minItems": 1, "items": NodeName.schema(names)})
    }
}

/// The route over the nodes that the entry at `group` names.
///
/// # Errors
/// A node is missing, unknown or unreachable; or nodes are named but the file has only `[link]`.
pub(super) fn resolve(
    group: &Entry<'_>,
    links: &[Link],
    nodes: Vec<String>,
) -> Result<Route, ReadError> {
    let given = |key: &str| Some(group.at(key)).filter(|entry| entry.path != group.path);
    let ends = ["from", "to"];
    if links[0].nodes.is_none() {
        return match ends.into_iter().chain(["via"]).find_map(given) {
            None => Ok(Route::of_one_link()),
            Some(entry) => Err(entry.error(format!(
                "got {}; must be left out with [link], as it has no nodes; links with nodes are [[link]]",
                entry.node.item
            ))),
        };
    }
    if let Some(missing) = ends.into_iter().find(|end| given(end).is_none()) {
        let quoted = topology::names(links)
            .into_iter()
            .map(|name| format!("\"{name}\""));
        let known = quoted.collect::<Vec<_>>().join(", ");
        return Err(group.error(format!(
            "{missing} is missing; must be one of the nodes {known}"
        )));
    }
    match topology::route(links, &nodes) {
        Ok(route) => Ok(route),
        Err(NoRoute::UnknownNode(node)) => {
            let end = ends.into_iter().filter_map(given);
            let named = |entry: &Entry<'_>| entry.text() == Some(&node);
            let via = given("via").and_then(|via| via.items()).unwrap_or_default();
            let entry = end.chain(via).find(named);
            Err(entry
                .unwrap_or_else(|| group.clone())
                .unknown(topology::names(links)))
        }
        Err(NoRoute::Apart(from, to)) if from == to => Err(group.error(format!(
            "goes from \"{from}\" to itself; must go to another node"
        ))),
        Err(NoRoute::Apart(from, to)) => Err(group.error(format!(
            "no links lead from \"{from}\" to \"{to}\"; must go between nodes that links join"
        ))),
        Err(NoRoute::Twice(link)) => Err(group.error(format!(
            "its route passes the link \"{link}\" twice; must pass each at most once"
        ))),
    }
}
