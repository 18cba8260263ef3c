//! Algorithms written in Python: registered by name, built and called as any of ours, only slower.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`registry`] | the registered classes; the catalogue with them |
//! | [`keys`] | constructor parameters as keys; values from one side to the other |
//! | [`adapter`] | an object of such a class as an `Aqm` |
//! | [`views`] | a packet and a queue as Python sees them |
//! | [`algorithm`] | one of our algorithms for Python to build on |

mod adapter;
mod algorithm;
mod keys;
mod registry;
mod views;

pub use adapter::Failure;
pub use algorithm::Algorithm;
pub use registry::{catalogue, digests, names, register_aqm, unregister_aqm};
pub use views::{PacketView, QueueView};
