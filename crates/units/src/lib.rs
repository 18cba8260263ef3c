//! The quantities of networking as types, and their notation as strings.
//!
//! - [`Time`], [`Duration`]: an instant and a span, whole nanoseconds
//! - [`Rate`]: bits per second, never zero
//! - [`Capacity`]: the capacity of a link over time; [`Carried`]: the share of it that was used
//! - [`Hop`]: a direction of a link, by its number and [`Way`]
//! - [`Value`], [`Kind`]: a quantity of an experiment file, and the kinds of quantities
//! - [`internet_checksum`]: of whatever writes headers
//!
//! Every crate uses this one; it knows nothing about queues, packets or files.
#![no_std]
extern crate alloc;

mod capacity;
mod carried;
mod checksum;
mod hint;
mod hop;
mod rate;
mod time;
mod value;

pub use capacity::{Capacity, Instants, OPPORTUNITY_BYTES, Trace, TraceError};
pub use carried::Carried;
pub use checksum::internet_checksum;
pub use hint::{cold_path, prefetch};
pub use hop::{Hop, Way};
pub use rate::Rate;
pub use time::{Duration, Time};
pub use value::{Kind, TextFile, UnitError, Value, quantity};

/// The README's example is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
