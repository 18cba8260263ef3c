//! Queue disciplines and nothing else: no clock, no I/O, no global state.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`packet`], [`datagram`] | the fields of a packet that a discipline may read and change; a packet that is ready to use |
//! | [`qdisc`], [`limit`] | the [`Qdisc`] trait: enqueue and dequeue; how much a queue may hold |
//! | [`verdict`] | the decision about a packet, the reason for a drop |
//! | [`environment`] | randomness, drops and marks |
//! | [`aqm`] | the [`Aqm`] trait: a decision per packet, for one queue |
//! | [`single`] | one FIFO governed by an [`Aqm`] |
//! | [`fq`] | a queue per flow, each governed by an [`Aqm`] |
//! | [`pool`], [`list`], [`classify`] | the parts of such disciplines: one pool for the packets of many queues, lists
//! without allocation, flows to queues |
//! | [`mod@parameters`], [`parameter`], [`key`] | parameters as values: structs of them, their types, their keys |
//! | [`settings`] | the settings from which a discipline is built |
//! | [`discipline`] | a discipline with its name, its keys and its constructor |
//! | [`catalogue`] | every discipline of this crate |
//! | [`fifo`], [`codel`], … | one algorithm each, to be read beside the document that defines it |
//! | [`replay`] | replays a recorded queue's arrivals and departures through a discipline |
//!
//! An algorithm that governs one queue implements [`Aqm`]. [`single::Single`] makes a discipline of it, and a
//! flow-queueing scheduler can apply it to each queue. A discipline that does more than decide about single packets (a
//! scheduler, a choice among queued packets) implements [`Qdisc`].
#![no_std]
extern crate alloc;

pub mod aqm;
pub mod ared;
pub mod blue;
pub mod cake;
pub mod catalogue;
mod ce_exclude;
pub mod choke;
pub mod classify;
pub mod cobalt;
pub mod codel;
pub mod datagram;
pub mod discipline;
pub mod docsis_pie;
pub mod dualpi2;
pub mod environment;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod hhf;
pub mod key;
pub mod limit;
pub mod list;
pub mod madpie;
pub mod paced_fq;
pub mod packet;
pub mod parameter;
pub mod parameters;
pub mod pfifo_fast;
pub mod pi2;
pub mod pie;
pub mod policer;
pub mod policy;
pub mod pool;
pub mod qdisc;
pub mod red;
pub mod replay;
pub mod settings;
pub mod sfb;
pub mod sfq;
pub mod sfq_aqm;
pub mod single;
#[cfg(test)]
mod testing;
pub mod verdict;

pub use aqm::{Algorithm, Aqm, Backlog};
pub use catalogue::Catalogue;
pub use classify::Hashing;
pub use datagram::Datagram;
pub use discipline::{Built, Discipline, Make};
pub use environment::Environment;
pub use fq::Fair;
pub use key::{Key, SettingError};
pub use limit::Limit;
pub use packet::{AckView, Ecn, FlowKey, Packet};
pub use parameter::Parameter;
pub use parameters::Parameters;
pub use qdisc::{InnerSettings, Qdisc};
pub use settings::Settings;
pub use single::Single;
pub use verdict::{DropReason, Verdict};

/// The README's example is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
