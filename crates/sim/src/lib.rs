//! A discrete-event simulator of networks with queues: Sojourn's disciplines and TCP, integer time.
//!
//! [`run()`] takes a [`RunSpec`](sojourn_experiment::RunSpec), one arm of an experiment and one seed, and gives a
//! [`RunResult`]. The same input gives the same result, bit for bit. With a [`Session`] the caller drives the run.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`Session`], [`run()`] | one run: driven step by step, or to its end |
//! | [`Space`] | what a controller may do to a run and sees of it: numbered keys, observations in a fixed layout |
//! | `control` | a run as a controller drives it, by these numbers |
//! | `build` | builds the simulation of one arm of an experiment |
//! | [`lists`] | the names accepted in a file with their descriptions, as JSON |
//! | [`Catalogue`] | the disciplines and congestion controls that it finds by name |
//! | [`result`] | what a run gives: the summary's figures and the recorded tables, as on every backend |
//! | [`packet`] | a packet in the simulator |
//! | [`path_from_toml`] | the link of a file, around packets of one's own |
//! | `simulation` | the event loop: decides whether the network or a host's timer acts next |
//! | `network` | the network of `sojourn-path` with probes and captures; how hosts send over it |
//! | `sampler` | the time series |
//! | `traffic/` | what the hosts do: datagrams, echoes, and in `traffic/tcp/` connections |
//! | `timers` | the hosts' timers |
//! | `capture/` | captures packet headers as a pcapng file |
//! | `summary` | turns a finished simulation into its results |
//!
//! The code that runs per packet, here and in the crates below, is laid out for the common case: rare branches are marked
//! (`cold_path`, `#[cold]`). Otherwise the compiler jumps over each of them.

mod build;
mod capture;
mod catalogue;
mod control;
pub mod lists;
mod names;
mod network;
pub mod packet;
mod path;
mod sampler;
mod session;
mod simulation;
mod space;
mod summary;
mod timers;
mod traffic;

pub use build::{check, check_queues, document, in_use, is_refused, refusal};
pub use catalogue::{Catalogue, catalogue};
pub use names::{names, names_in};
pub use packet::SimPacket;
pub use path::{PathFileError, path_from_toml};
pub use session::{Observation, Session, run};
pub use sojourn_experiment::network::RunError;
pub use sojourn_measure::probe::{Happened, PacketEvent};
pub use sojourn_measure::result::{self, RunResult};
pub use sojourn_measure::series::{FlowSample, QueueSample};
pub use space::{Action, Space};

/// The README's example is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
