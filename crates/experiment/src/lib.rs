//! The experiment file: what may stand in it, checked and with every default filled in.
//!
//! [`read`] turns a file into a [`Plan`]: one [`Cell`] per combination of swept values, each with a
//! typed [`Experiment`]. Whatever is wrong with the file is one [`ReadError`], one line long.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`model`] | the result: what every backend runs from |
//! | `document` | the file as a tree in which every value knows its line; values put in by dotted key |
//! | `form`, `forms` | what a key accepts: how it is read, named in messages and put in the schema |
//! | `section` | a table being read: keys, defaults, unknown keys |
//! | `read/` | one file per section of the experiment file, and the checks across sections |
//! | `input` | files that a user names, bounded in size |
//! | `sweep` | the cartesian product of the swept values |
//! | [`schema()`] | the JSON Schema of the file, from the same keys that are read |
//! | [`streams`], [`derived`] | what every backend works out alike: random draws, instants, limits |
//! | [`packmime`], [`game`] | models of traffic that every backend draws from alike |
//! | [`applications`] | what uses the network, told the time and what arrived: datagrams, transfers, browsing, video |
//! | [`topology`] | links, nodes, and the routes of traffic over them |
//! | `sizes`, `codec` | parts of the model with a subject of their own: sizes of files, codecs |
//! | [`jitter`], [`emodel`], [`loss_events`] | how steadily datagrams come, how good a call sounds, who loses with whom |
//! | [`result`], [`groups`], [`distribution`] | what a run gives, on every backend; flows together; what a quantile is |
//! | [`pcapng`] | captures of packets, as every backend writes them |
//! | `written` | quantities as one would write them |
//! | [`resolved()`] | an experiment written out again with every default |

pub mod applications;
mod codec;
pub mod derived;
pub mod distribution;
mod document;
pub mod emodel;
mod error;
mod form;
mod forms;
pub mod game;
pub mod groups;
mod input;
pub mod jitter;
pub mod loss_events;
pub mod model;
mod names;
pub mod packmime;
pub mod pcapng;
mod plan;
mod read;
mod resolved;
pub mod result;
mod schema;
mod section;
mod sizes;
pub mod streams;
mod suggest;
mod sweep;
pub mod topology;
mod written;

pub use error::ReadError;
pub use model::Experiment;
pub use names::{DisciplineKeys, KeySpec, Names};
pub use plan::{Cell, Plan, Source, read, read_file};
pub use read::{TrafficSummary, traffic_kinds};
pub use resolved::{InUse, Values, resolved, resolved_with};
pub use schema::schema;
