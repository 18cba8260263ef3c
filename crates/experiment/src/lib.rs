//! The experiment file: what may stand in it, checked and with every default filled in.
//!
//! [`read`] turns a file into a [`Plan`]: one [`Cell`] per combination of swept values, each with a
//! typed [`Experiment`]. Whatever is wrong with the file is one [`ReadError`], one line long.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`model`] | the result: what every backend runs from |
//! | `document` | the file as a tree in which every value knows its line; values put in by dotted key |
//! | `form`, `forms` | what a key accepts, declared once: its reading, messages, schema and resolved form derive from it |
//! | `section` | a table being read: keys, defaults, unknown keys |
//! | `read/` | one file per section of the experiment file, and the checks across sections |
//! | `input` | files that a user names, bounded in size |
//! | `sweep` | the cartesian product of the swept values |
//! | [`schema()`] | the JSON Schema of the file, from the same keys that are read |
//! | [`measured`] | what is measured in a run |
//! | [`derived`] | what every backend works out alike: flows with their instants, limits |
//! | [`topology`] | links, nodes, and the routes of traffic over them |
//! | [`wifi`] | what makes a link a cell of Wi-Fi |
//! | `written` | quantities as one would write them |
//! | [`resolved()`] | an experiment written out again with every default |
//! | [`RunSpec`] | one run as a value with a hash |

mod axes;
pub mod derived;
mod document;
mod error;
mod form;
mod forms;
mod input;
pub mod measured;
pub mod model;
mod names;
mod plan;
mod read;
mod resolved;
mod run_spec;
mod schema;
mod section;
mod suggest;
mod sweep;
pub mod topology;
pub mod wifi;
mod written;

pub use error::ReadError;
pub use model::Experiment;
pub use names::{DisciplineKeys, KeySpec, Names};
pub use plan::{Cell, Plan, Source, read, read_file};
pub use read::{TrafficSummary, traffic_kinds};
pub use resolved::{InUse, Values, resolved, resolved_with};
pub use run_spec::{RESULTS_VERSION, RunSpec, run_hash, sha256};
pub use schema::schema;
pub use sweep::Sweep;
