//! `[[class]]`: classes of HTB on `[link]`, above the disciplines.

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use sojourn_path::htb::MOST_LEVELS;
use sojourn_units::Rate;

use super::routes::NodeName;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::forms::{Maybe, Speed, Whole};
use crate::keys::{TableOf, keys};
use crate::model::{Class, Share, Traffic};
use crate::names::Names;
use crate::section::Section;

keys! {
    /// The keys of a class.
    struct ClassKeys {
        /// Name of the class, for parent and for the class of traffic.
        name: String = NodeName, Required;
        /// As many classes: name-1, name-2 and so on; {i} in any text of the entry stands for the number.
        count: Option<u32> = Maybe(Whole { from: 1, to: 10_000 }), Words("a single class");
        /// The class above it, which stands before it in the file.
        parent: Option<String> = Maybe(NodeName), Words("the link");
        /// What the class may always send at (tc-htb(8)).
        rate: Rate = Speed, Required;
        /// The most it may send at: above its rate it borrows what the class above has to spare.
        ceil: Option<Rate> = Maybe(Speed), Words("its rate: it does not borrow");
        /// Rate and ceil in the reverse direction.
        up: Option<UpKeys> = Maybe(UP), Words("as forward");
    }
    ; check check
}

keys! {
    /// The keys of a class in the reverse direction.
    struct UpKeys {
        /// What the class may always send at.
        rate: Rate = Speed, Required;
        /// The most it may send at.
        ceil: Option<Rate> = Maybe(Speed), Words("its rate: it does not borrow");
    }
    ; check check_up
}

const CLASS: TableOf<ClassKeys> = TableOf::new("[[class]]", "a table with a name and a rate");
const UP: TableOf<UpKeys> = TableOf::new("class.up", "a table like { rate = \"1 Mbit/s\" }");

/// The most classes: as many as a device of Linux can have, with one for the link.
const MOST: usize = 20_000;

fn check(class: &ClassKeys, section: &Section<'_>) -> Result<(), ReadError> {
    check_ceil(class.rate, class.ceil, section)
}

fn check_up(up: &UpKeys, section: &Section<'_>) -> Result<(), ReadError> {
    check_ceil(up.rate, up.ceil, section)
}

fn check_ceil(rate: Rate, ceil: Option<Rate>, section: &Section<'_>) -> Result<(), ReadError> {
    match (ceil, section.given("ceil")) {
        (Some(ceil), Some(given)) if ceil < rate => {
            Err(given.refuse(format!("at least the rate (\"{rate}\")")))
        }
        _ => Ok(()),
    }
}

const fn share(rate: Rate, ceil: Option<Rate>) -> Share {
    match ceil {
        Some(ceil) => Share { rate, ceil },
        None => Share { rate, ceil: rate },
    }
}

/// All classes, parents first.
pub(crate) struct ClassesForm;

impl Form for ClassesForm {
    type Out = Vec<Class>;

    fn read(&self, entry: &Entry<'_>) -> Result<Vec<Class>, ReadError> {
        let entries = entry.items().filter(|entries| !entries.is_empty());
        let entries = entries.ok_or_else(|| entry.refuse(self.accepts()))?;
        if entries.len() > MOST {
            return Err(entry.refuse(format!("at most {MOST} tables [[class]]")));
        }
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut levels: Vec<usize> = Vec::new();
        let mut classes: Vec<Class> = Vec::with_capacity(entries.len());
        for (number, entry) in entries.iter().enumerate() {
            let keys = CLASS.read(entry)?;
            let parent = match &keys.parent {
                None => None,
                Some(name) => match numbers.get(name) {
                    Some(parent) => Some(*parent),
                    None => {
                        return Err(entry
                            .at("parent")
                            .refuse("the name of a class that stands before it in the file"));
                    }
                },
            };
            let level = parent.map_or(1, |parent| levels[parent] + 1);
            if level > MOST_LEVELS {
                let most = format!("a class with less above it: at most {MOST_LEVELS} levels");
                return Err(entry.at("parent").refuse(most));
            }
            levels.push(level);
            if let Some(twin) = numbers.insert(keys.name.clone(), number) {
                return Err(entry.at("name").error(format!(
                    "class.{twin} is called \"{}\" as well; give each a name of its own",
                    keys.name
                )));
            }
            classes.push(Class {
                name: keys.name,
                parent,
                down: share(keys.rate, keys.ceil),
                up: keys.up.map(|up| share(up.rate, up.ceil)),
            });
        }
        Ok(classes)
    }

    fn write(&self, classes: &Vec<Class>) -> Json {
        let of = |class: &Class| {
            CLASS.write(&ClassKeys {
                name: class.name.clone(),
                count: None,
                parent: class.parent.map(|parent| classes[parent].name.clone()),
                rate: class.down.rate,
                ceil: Some(class.down.ceil),
                up: class.up.map(|up| UpKeys {
                    rate: up.rate,
                    ceil: Some(up.ceil),
                }),
            })
        };
        classes.iter().map(of).collect()
    }

    fn accepts(&self) -> String {
        "tables [[class]], each with a name and a rate".into()
    }

    fn schema(&self, names: &Names) -> Json {
        let class = CLASS.schema(names);
        json!({"type": "array", "minItems": 1, "maxItems": MOST, "items": class})
    }
}

/// The classes by name, and those of hosts so far.
pub(super) struct Classes<'a> {
    numbers: HashMap<&'a str, usize>,
    has_children: Vec<bool>,
    of_hosts: HashMap<String, String>,
}

impl<'a> Classes<'a> {
    pub fn new(classes: &'a [Class]) -> Self {
        let mut has_children = vec![false; classes.len()];
        for parent in classes.iter().filter_map(|class| class.parent) {
            has_children[parent] = true;
        }
        let names = classes.iter().enumerate();
        Self {
            numbers: names
                .map(|(number, class)| (class.name.as_str(), number))
                .collect(),
            has_children,
            of_hosts: HashMap::new(),
        }
    }

    /// Checks the class of an entry.
    ///
    /// # Errors
    /// There is none without children of that name, an entry has none although there are classes, or traffic of the same host
    /// has another one.
    pub fn check(&mut self, entry: &Entry<'_>, traffic: &Traffic) -> Result<(), ReadError> {
        let given = entry.at("class");
        let Some(name) = &traffic.class else {
            return match self.numbers.is_empty() {
                true => Ok(()),
                false => {
                    Err(entry.error("has no class; must have one, as all packets of the link"))
                }
            };
        };
        if self.numbers.is_empty() {
            return Err(given.refuse("left out: the file has no [[class]]"));
        }
        let is_leaf = |number: &usize| !self.has_children[*number];
        match self.numbers.get(name.as_str()) {
            Some(number) if is_leaf(number) => {}
            Some(_) => return Err(given.refuse("a class without classes below it")),
            None => {
                let leaves = self.numbers.iter().filter(|(_, number)| is_leaf(number));
                let mut known: Vec<&str> = leaves.map(|(name, _)| *name).collect();
                known.sort_unstable();
                return Err(given.unknown(known));
            }
        }
        if let Some(host) = &traffic.host {
            let known = self.of_hosts.entry(host.clone()).or_insert(name.clone());
            if known != name {
                return Err(given.error(format!(
                    "its host \"{host}\" has traffic of class \"{known}\"; must be one class for a host"
                )));
            }
        }
        Ok(())
    }
}
