//! A discrete-event simulator of networks with queues: our disciplines, our TCP, integer time.
//!
//! [`run()`] takes a [`RunSpec`](sojourn_experiment::RunSpec), one arm of an experiment and one seed, and gives a
//! [`RunResult`]. The same input gives the same result, bit for bit. A [`Session`] is a run that its caller drives.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`Session`], [`run()`] | one run: driven step by step, or to its end |
//! | `build` | an experiment's arm, built |
//! | [`result`] | what a run gives: the summary's figures and the recorded tables, as on every backend |
//! | [`packet`] | a packet in the simulator |
//! | `simulation` | the event loop: the network acts, or a host's timer |
//! | `network` | what is measured on the network of `sojourn-path`, and how hosts send over it |
//! | `wifi/` | cells of Wi-Fi as places of that network |
//! | `sampler` | the time series |
//! | `traffic/` | what the hosts do: datagrams, echoes, and in `traffic/tcp/` connections with a file per application |
//! | `timers` | the hosts' timers |
//! | `capture/` | the packets' headers as a pcapng file |
//! | `summary` | what a run amounts to |
//!
//! What is done per packet, here and in the rooms below, is laid out for the usual case: branches that are rarely taken
//! say so (`cold_path`, `#[cold]`). Left to itself the compiler jumps over each of them, which makes 181 jumps per packet
//! of 137 (10 Reno flows under PIE).

mod build;
mod capture;
mod names;
mod network;
pub mod packet;
mod sampler;
mod session;
mod simulation;
mod summary;
mod timers;
mod traffic;
mod wifi;

pub use build::{RunError, catalogue, check, document, in_use};
pub use names::{names, names_in};
pub use packet::SimPacket;
pub use session::{Observation, Session, run};
pub use sojourn_measure::result::{self, RunResult};
pub use sojourn_measure::series::{FlowSample, QueueSample};
