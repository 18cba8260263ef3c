//! Real packets through the links and queue disciplines of an experiment, in real time.
//!
//! Packets come from TUN devices or interfaces, pass a network of `sojourn-path`, and leave by others. One thread does all of it. In
//! the network packets have *ideal* times: a thread that wakes up late acts at the instants at which it should have acted, so
//! that queues, drops and marks are those of an ideal link, and only the delivery is late. How late is measured.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`ip`] | the headers of a packet; sets Congestion Experienced |
//! | [`packet`] | a packet on its way, with its bytes |
//! | [`network`] | an experiment's links and routes |
//! | [`watch`] | records the fate of every packet |
//! | [`flows`] | flows that appear as their packets come |
//! | [`lateness`] | how late packets were delivered |
//! | [`gso`] | large frames, cut into packets |
//! | [`port`] | a device: one of the next two |
//! | [`tun`] | a TUN device |
//! | [`wire`] | an interface of the machine, by a packet socket |
//! | [`scheduling`] | asks the kernel for real-time scheduling |
//! | [`datapath`] | the loop: reads, lets the network act, writes, waits |

#[cfg(target_os = "linux")]
pub mod datapath;
pub mod flows;
pub mod gso;
pub mod ip;
pub mod lateness;
pub mod network;
pub mod packet;
#[cfg(target_os = "linux")]
pub mod port;
#[cfg(target_os = "linux")]
pub mod scheduling;
#[cfg(target_os = "linux")]
pub mod tun;
pub mod watch;
#[cfg(target_os = "linux")]
pub mod wire;

#[cfg(target_os = "linux")]
pub use datapath::{Clock, Datapath};
pub use packet::{Frame, Packet};
pub use watch::{Fate, Row};
