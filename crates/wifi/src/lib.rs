//! 802.11 as a medium that many queues share: an access point and its stations, whose frames contend for the air. No clock
//! and no I/O: time only ever arrives as `now`, packets as values of the caller's own type.
//!
//! A cell of one station, and a packet from the access point to it:
//!
//! ```
//! use sojourn_aqm::fifo::DropTail;
//! use sojourn_aqm::{Limit, Single};
//! use sojourn_path::NoObserver;
//! use sojourn_units::{Time, Way};
//! use sojourn_wifi::phy::{Guard, Standard, Width};
//! use sojourn_wifi::{Cell, Medium, Queueing, RateControl, Station, modes};
//! # #[derive(Debug)] struct Packet { bytes: u32, enqueued: Time, station: u16 }
//! # impl sojourn_aqm::Packet for Packet {
//! #     fn bytes(&self) -> u32 { self.bytes }
//! #     fn ecn(&self) -> sojourn_aqm::Ecn { sojourn_aqm::Ecn::NotEct }
//! #     fn set_ce(&mut self) {}
//! #     fn enqueued(&self) -> Time { self.enqueued }
//! #     fn set_enqueued(&mut self, now: Time) { self.enqueued = now; }
//! #     fn flow(&self) -> sojourn_aqm::FlowKey { sojourn_aqm::FlowKey::default() }
//! # }
//! # impl sojourn_path::Packet for Packet {
//! #     fn hop(&self) -> u32 { 0 }
//! #     fn set_hop(&mut self, _: u32) {}
//! #     fn change_bytes(&mut self, _: i32) {}
//! # }
//! # impl sojourn_wifi::Packet for Packet {
//! #     fn station(&self) -> u16 { self.station }
//! #     fn set_station(&mut self, station: u16) { self.station = station; }
//! # }
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
//! let packet = Packet { bytes: 1514, enqueued: Time::ZERO, station: 0 };
//! medium.enqueue(packet, 0, Way::Down, Time::from_millis(1), &mut NoObserver);
//! let mut arrived = Vec::new();
//! while medium.next_event() < Time::MAX {
//!     let now = medium.next_event();
//!     medium.act(now, &mut NoObserver);
//!     arrived.extend(std::iter::from_fn(|| medium.poll()).map(|departed| (now, departed.packet.bytes)));
//! }
//! // The medium was idle: no back-off. 1536 bytes take 248 µs, and the signal extension 6.
//! assert_eq!(arrived, [(Time::from_micros(1254), 1514)]);
//! ```
//!
//! | module | what is there |
//! | --- | --- |
//! | [`cell`] | what a cell is built from |
//! | [`medium`] | a cell at work |
//! | [`phy`] | modes, their rates, how long frames take and how likely they are received |
//! | [`frames`], [`aggregate`] | bytes of frames, and how many go into one transmission |
//! | [`access`] | categories and the parameters with which each contends |
//! | `contention`, `backoff` | who wins the medium |
//! | `block_ack`, `session` | sequence numbers, what is sent again, reordering at the receiver |
//! | `rate_control` | which mode a frame is sent in |
//! | [`queues`] | a discipline above a device ring, or mac80211's queues |
//! | [`observer`], [`airtime`], [`timeline`] | what happened, and what the medium was used for |
//!
//! # What is left out
//!
//! All nodes hear each other at once: no hidden nodes, no propagation, no capture. Control frames other than RTS are lost
//! like any others, but nobody sets a NAV wrong. No beacons, association, power saving, multicast, beamforming, or minimum
//! spacing of MPDUs. Block ACK is set up from the start.
//!
//! # How it fits into a network
//!
//! A cell is a [`sojourn_path::Medium`] of a network: a place with a queue per direction and station, which a route names by
//! its stage `Shared(medium, entry)`. Whoever has an observer that tells cells apart implements the trait over [`Medium`]; the
//! simulator's `wifi` does.
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
#[cfg(test)]
mod test_packet;
pub mod timeline;

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
pub use timeline::Timeline;
