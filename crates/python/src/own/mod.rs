//! Algorithms written in Python. They are registered by name and used like those in Rust; they are slower.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`registry`] | the registered classes; the catalogue with them |
//! | [`keys`] | constructor parameters as keys; conversion of values |
//! | [`adapter`] | an object of such a class as an `Aqm` |
//! | [`control`] | an object of such a class as a congestion control |
//! | [`views`] | a packet and a queue for Python |
//! | [`algorithm`] | an algorithm in Rust for use in Python classes |

mod adapter;
mod algorithm;
mod control;
mod keys;
mod registry;
mod views;

pub use adapter::Failure;
#[cfg(unix)]
pub use adapter::PythonAqm;
pub use algorithm::Algorithm;
pub use control::{AckView, SampleView, WindowView};
#[cfg(unix)]
pub use registry::{Built, collecting};
pub use registry::{
    catalogue, digests, disciplines, foreign, names, register_aqm, register_congestion_control,
    unregister_aqm, unregister_congestion_control,
};
pub use views::{PacketView, QueueView};
