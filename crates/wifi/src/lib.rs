//! 802.11 as a shared medium: an access point and its stations, whose frames contend for the air. No clock and no I/O: time
//! only ever arrives as `now`, packets as values of the caller's own type.
#![no_std]
extern crate alloc;

pub mod access;
pub mod aggregate;
pub mod airtime;
mod backoff;
mod block_ack;
pub mod cell;
mod channel;
mod contention;
mod exchange;
pub mod frames;
pub mod medium;
pub mod observer;
mod packet;
pub mod phy;
pub mod queues;
mod random;
mod rate_control;
mod session;

pub use access::Access;
pub use aggregate::{Aggregation, Framing};
pub use airtime::Airtime;
pub use cell::{Cell, Protection, Station, modes};
pub use channel::Fading;
pub use medium::{Departed, Medium};
pub use observer::{Loss, Node, Observer, Transmitted, Use};
pub use packet::Packet;
pub use queues::Queueing;
pub use rate_control::RateControl;
