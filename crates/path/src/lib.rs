//! What lies between hosts: links with queue disciplines, propagation delays and the routes over them. No clock and no
//! I/O: time only ever arrives as `now`, packets as values of the caller's own type.
//!
//! Two ends and a bottleneck between them are a [`Path`]. What has more links, routes and hosts is a [`Network`], on which
//! `Path` stands: a network of one link at 8 Mbit/s, drop-tail and 10 ms of propagation, and a packet on its way:
//!
//! ```
//! use sojourn_aqm::fifo::DropTail;
//! use sojourn_aqm::{Datagram, Limit, Single};
//! use sojourn_path::{Builder, LinkConfig, NoObserver, Stage};
//! use sojourn_units::{Duration, Rate, Time};
//!
//! let qdisc = Single::new(DropTail, Limit::Packets(1000));
//! let mut builder = Builder::new();
//! let link = builder.add_link(Box::new(qdisc), LinkConfig::of_rate(Rate::from_mbps(8)));
//! let route = builder.add_route(&[Stage::Link(link), Stage::Delay(Duration::from_millis(10))]);
//! let mut network = builder.build(NoObserver);
//!
//! for _ in 0..3 {
//!     network.send(Datagram::new("hello", 1000), route, Time::ZERO);
//! }
//! // The bucket holds 1600 bytes, so that two leave at once; 1000 bytes take 1 ms, and the last waits for 400 of them.
//! let mut arrived = Vec::new();
//! while let Some(now) = network.next_event() {
//!     while let Some(packet) = network.poll(now) {
//!         arrived.push((now, packet.bytes));
//!     }
//! }
//! assert_eq!(arrived, [10_000, 10_000, 10_400].map(|us| (Time::from_micros(us), 1000)));
//! ```
//!
//! | module | what is there |
//! | --- | --- |
//! | [`path`] | a path between two ends, ready to use: where to begin |
//! | `drive` | the loop around a path and two endpoints: [`Endpoint`], [`Path::drive`] |
//! | [`network`] | links, delay lines and routes together: where a packet's next hop is chosen |
//! | [`observer`] | who sees packets on their way |
//! | [`builder`] | a network from links and the stages of routes |
//! | [`link`] | one direction of a link: a discipline, a device queue and a shaper |
//! | `grants` | requests and grants of a cable modem |
//! | [`htb`] | classes that borrow from each other, above disciplines |
//! | [`medium`] | a medium that several queues share |
//! | [`impair`] | loss, jitter, reordering, duplication, corruption |
//! | [`random`] | streams of random numbers |
//! | [`shaper`] | decides when a link may send |
//! | [`delay_line`] | propagation |
//! | `qlog` | what happened to packets, as a qlog |
//! | `capture`, [`pcapng`] | what arrives over a path, as a file for Wireshark |
//! | `event_queue` | which part acts next |
//! | `network::lookahead` | links in a row, which a packet passes at once |
//! | `network::bursts`, `link::bursts` | packets that a host sends together, as one object |
#![no_std]
extern crate alloc;

pub mod builder;
mod capture;
pub mod delay_line;
mod drive;
mod event_queue;
mod grants;
pub mod htb;
pub mod impair;
pub mod link;
pub mod medium;
pub mod network;
pub mod observer;
pub mod path;
pub mod pcapng;
mod qlog;
pub mod random;
pub mod shaper;
mod wire;

pub use builder::{Builder, Stage};
pub use capture::Capture;
pub use drive::Endpoint;
pub use impair::Impair;
pub use link::{Link, LinkConfig};
pub use medium::{Medium, NoMedium};
pub use network::{EventSource, Hosts, Network, Packet, Route};
pub use observer::{NoObserver, Observer};
pub use path::{Carried, Delivery, Event, Part, Path, PathBuilder, PathError, Verdict};
pub use qlog::Qlog;
pub use sojourn_aqm::{Datagram, DropReason, Ecn, FlowKey};
pub use sojourn_units::Way;

/// The README's examples are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
