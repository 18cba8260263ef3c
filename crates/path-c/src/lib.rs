//! The C ABI of [`Path`](::sojourn_path::Path): a link with a queue discipline between two ends, around packets of the caller's own.
//!
//! There is no clock, no thread and no callback: the caller says what time it is and polls. No memory changes its owner: texts
//! and structs belong to the caller, payloads stay with the caller under a number of its own. Every struct begins with its size,
//! so that later versions may append fields. The header `include/sojournpath.h` is written from this crate.
#![expect(non_camel_case_types, reason = "the names of the C header")]

mod options;
mod path;
mod records;

pub use options::sojourn_options;
pub use path::{
    sojourn_abi_version, sojourn_path, sojourn_path_counts, sojourn_path_error, sojourn_path_event,
    sojourn_path_free, sojourn_path_new, sojourn_path_next_event, sojourn_path_poll,
    sojourn_path_send, sojourn_path_set_delay, sojourn_path_set_rate,
};
pub use records::{sojourn_counts, sojourn_delivery, sojourn_event, sojourn_packet};

/// The version of the ABI: it changes when a program has to be compiled again.
pub const SOJOURN_ABI_VERSION: u32 = 1;

/// Nothing is due until a packet is sent.
pub const SOJOURN_NEVER: u64 = u64::MAX;

/// The direction over the link under test.
pub const SOJOURN_DOWN: u8 = 0;
/// The way back.
pub const SOJOURN_UP: u8 = 1;

/// Not ECN-capable.
pub const SOJOURN_NOT_ECT: u8 = 0;
/// ECT(1), for L4S.
pub const SOJOURN_ECT1: u8 = 1;
/// ECT(0).
pub const SOJOURN_ECT0: u8 = 2;
/// Congestion experienced.
pub const SOJOURN_CE: u8 = 3;

/// The packet came to the link's queue.
pub const SOJOURN_ARRIVED: u8 = 0;
/// The packet leaves the queue with a mark that it came without.
pub const SOJOURN_MARKED: u8 = 1;
/// The discipline dropped the packet.
pub const SOJOURN_DROPPED: u8 = 2;
/// The packet left the queue.
pub const SOJOURN_LEFT: u8 = 3;
/// The packet was lost in propagation.
pub const SOJOURN_LOST: u8 = 4;
/// A copy of the packet was made in propagation.
pub const SOJOURN_DUPLICATED: u8 = 5;

/// Dropped by the algorithm.
pub const SOJOURN_DROPPED_AQM: u8 = 0;
/// Dropped for lack of room.
pub const SOJOURN_DROPPED_OVERFLOW: u8 = 1;
