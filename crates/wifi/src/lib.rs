//! 802.11 as a medium that many queues share: an access point and its stations, whose frames contend for the air. There is
//! no clock and no I/O: the caller passes the time as `now`, and packets of its own type.
//!
//! The example sends a packet from the access point to the only station of a cell:
//!
//! ```
//! use sojourn_aqm::fifo::DropTail;
//! use sojourn_aqm::{Datagram, Limit, Single};
//! use sojourn_path::NoObserver;
//! use sojourn_units::{Time, Way};
//! use sojourn_wifi::phy::{Guard, Standard, Width};
//! use sojourn_wifi::{Cell, Medium, Queueing, RateControl, Station, modes};
//!
//! let fifo = || Queueing::Ring {
//!     qdisc: Box::new(Single::new(DropTail, Limit::Packets(1000))),
//!     packets: 64,
//! };
//! let modes = modes(Standard::G, Width::Mhz20, 1, Guard::Long);
//! let laptop = Station {
//!     rate_control: RateControl::Fixed(modes[7]), // 54 Mbit/s
//!     modes,
//!     snr_db: None,
//!     fading: None,
//!     queueing: fifo(),
//! };
//! let mut medium = Medium::new(Cell::new(Standard::G), fifo(), vec![laptop]);
//!
//! let packet = Datagram::new("hello", 1514);
//! medium.enqueue(packet, 0, Way::Down, Time::from_millis(1), &mut NoObserver);
//! let mut arrived = Vec::new();
//! while medium.next_event() < Time::MAX {
//!     let now = medium.next_event();
//!     medium.act(now, &mut NoObserver);
//!     arrived.extend(std::iter::from_fn(|| medium.poll()).map(|departed| (now, departed.packet.bytes)));
//! }
//! // The medium was idle, so there is no back-off. 1536 bytes take 248 µs, and the signal extension takes 6 µs.
//! assert_eq!(arrived, [(Time::from_micros(1254), 1514)]);
//! ```
//!
//! | module | what is there |
//! | --- | --- |
//! | [`cell`] | the settings of a cell and its stations |
//! | [`medium`] | the cell while it runs: exchanges, aggregation of frames, acknowledgements, retransmissions |
//! | [`phy`] | modes, their rates, how long frames take and how likely they are received |
//! | `channel` | a station's signal-to-noise ratio, fading, and losses |
//! | [`frames`], [`aggregate`] | sizes of frames, and limits of aggregation |
//! | `exchange` | the durations of an exchange: protection, data, answer |
//! | [`access`] | access categories and their contention parameters |
//! | `contention_window` | CW, which doubles after a failure |
//! | `backoff` | the back-off counters, and who wins the medium |
//! | `block_ack`, `session` | sequence numbers, retransmissions, reordering at the receiver |
//! | `rate_control` | the mode of each frame |
//! | [`queues`] | a discipline above a device ring, or mac80211's queues |
//! | [`observer`], [`airtime`], [`timeline`] | what happened, and what the medium was used for |
//!
//! # What is left out
//!
//! All nodes hear each other at once: there are no hidden nodes, no propagation delay and no capture. Control frames can be
//! lost, but no node sets a wrong NAV. There are no beacons, no association, power saving, multicast or beamforming, and no
//! minimum spacing of MPDUs. Block Ack agreements exist from the start.
//!
//! # How it fits into a network
//!
//! A cell is a [`sojourn_path::Medium`] of a network, with a queue per direction and station. A route names it by the stage
//! `Shared(medium, entry)`. The simulator's module `wifi` implements the trait over [`Medium`], with an observer that tells
//! cells apart.
#![no_std]
extern crate alloc;

pub mod access;
pub mod aggregate;
pub mod airtime;
mod backoff;
mod block_ack;
pub mod cell;
mod channel;
mod contention_window;
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
pub mod timeline;

pub use access::{Access, PriorityMap, UserPriority};
pub use aggregate::{Aggregation, Framing};
pub use airtime::Airtime;
pub use cell::{Cell, Protection, Station, modes};
pub use channel::Fading;
pub use medium::{Departed, Medium};
pub use observer::{Loss, Node, Observer, Transmitted, Use};
pub use packet::Packet;
pub use queues::Queueing;
pub use rate_control::RateControl;
pub use timeline::Timeline;
