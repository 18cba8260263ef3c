//! The quantities of the field as types, and the strings they are written as.
//!
//! - [`Time`], [`Duration`]: an instant and a span, whole nanoseconds
//! - [`Rate`]: bits per second, never zero
//! - [`Capacity`]: what a link can carry over time; [`Carried`]: how much of that was used
//! - [`Hop`]: a direction of a link, by its number and [`Way`]
//! - [`Value`], [`Kind`]: a quantity as an experiment file gives it, and what a key accepts
//!
//! Every room shares these; nothing here knows about queues, packets or files.
#![no_std]
extern crate alloc;

mod capacity;
mod carried;
mod hint;
mod hop;
mod rate;
mod time;
mod value;

pub use capacity::{Capacity, Instants, OPPORTUNITY_BYTES, Trace, TraceError};
pub use carried::Carried;
pub use hint::cold_path;
pub use hop::{Hop, Way};
pub use rate::Rate;
pub use time::{Duration, Time};
pub use value::{Kind, UnitError, Value};
