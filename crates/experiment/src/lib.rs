//! The experiment file: its keys, its checks and its defaults.
//!
//! [`read`] turns a file into a [`Plan`]: one [`Cell`] per combination of swept values, each with a
//! typed [`Experiment`]. Any mistake in the file is one [`ReadError`] of one line.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`model`] | the result of reading: the input of every backend |
//! | `document` | the file as a tree in which every value knows its line; sets values by dotted key |
//! | `keys` | each key is declared once; its reader, messages, schema and resolved form derive from that |
//! | `form`, `forms` | the forms of values: times, rates, choices and so on |
//! | `section`, `entry` | a table and a value of the file: refuse unknown keys and wrong values, read the others |
//! | `unknown` | messages about unknown keys and names |
//! | `context` | the names and trace files that a reader needs besides the text |
//! | `read/` | one file per section of the experiment file, and the checks across sections |
//! | [`npz`] | archives of `numpy.savez` |
//! | `input` | reads files of bounded size that a user names |
//! | `axes`, `axis`, `design` | `[sweep]`: the combinations of values, or the ranges from which cells are sampled |
//! | `cases`, `counted` | `[[case]]`: keys that are set together; `count`: many entries written once |
//! | `plan`, `sweep` | from the file to its runs, all at once or cell by cell |
//! | [`schema()`] | the JSON Schema of the file, from the same declarations |
//! | [`measured`] | what a run measures |
//! | [`derived`] | values derived alike for every backend: flows with their start times, limits |
//! | [`network`] | links and routes as parts of a network of `sojourn-path` |
//! | [`cells`] | Wi-Fi cells as parts of such a network |
//! | [`change`] | keys that change while a run goes on |
//! | [`parts`] | the queues and flows of a run, described |
//! | `queue` | a queue: its discipline and its capacity |
//! | [`topology`] | links, nodes, and the routes of traffic over them |
//! | [`wifi`] | the settings of a Wi-Fi cell |
//! | `written` | formats quantities as in a file |
//! | [`resolved()`] | writes an experiment with the defaults of keys that are not given |
//! | `effort` | estimates what a run costs |
//! | [`notes()`] | what the user of an experiment may overlook |
//! | [`RunSpec`] | one run as a value that can be stored and hashed |

mod axes;
mod axis;
mod cases;
pub mod cells;
pub mod change;
mod context;
mod counted;
pub mod derived;
mod design;
mod document;
mod effort;
mod entry;
mod error;
mod form;
mod forms;
mod input;
mod keys;
pub mod measured;
pub mod model;
mod names;
pub mod network;
mod notes;
pub mod npz;
pub mod parts;
mod plan;
mod queue;
mod read;
mod resolved;
mod run_spec;
mod schema;
mod section;
mod sweep;
pub mod topology;
mod unknown;
pub mod wifi;
mod written;

pub use error::{Place, ReadError};
pub use model::Experiment;
pub use names::{DisciplineKeys, KeySpec, Names};
pub use notes::notes;
pub use plan::{Cell, Plan, Source, read, read_file};
pub use read::{LOSS_BASED, TrafficSummary, traffic_kinds};
pub use resolved::{InUse, Values, resolved, resolved_with};
pub use run_spec::{RESULTS_VERSION, RunSpec, hashed, sha256, summary_json};
pub use schema::schema;
pub use sweep::{Sweep, design};
pub use unknown::unknown_key;
