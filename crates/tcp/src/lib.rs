//! TCP as a pure state machine: segments and time in, segments and timers out. No sockets, no clock.
//!
//! | module | what is there |
//! | --- | --- |
//! | [`seq`], [`segment`] | sequence numbers; the header fields that matter |
//! | [`ecn`] | ECN negotiation and feedback |
//! | [`config`] | the options of an endpoint |
//! | `rtt` | round-trip times and the retransmission timeout (RFC 6298) |
//! | `scoreboard` | segments in flight, SACKed and lost (RFC 6675, RFC 8985) |
//! | [`cc`] | congestion controls behind one trait |
//! | `sender` | what to send and when: transmission, recovery, timers |
//! | `receiver` | reassembly and when to acknowledge |
//! | `endpoint` | one end of a connection: handshake, both halves, close |

pub mod cc;
pub mod config;
pub mod ecn;
mod endpoint;
mod receiver;
mod rtt;
mod scoreboard;
pub mod segment;
mod sender;
pub mod seq;

pub use config::Config;
pub use ecn::Arrival;
pub use endpoint::{Endpoint, Transmit};
pub use scoreboard::{LossCause, Lost};
pub use segment::Segment;
pub use sender::{Alike, Sender, UNLIMITED};

/// The timestamp clock (RFC 7323 §5.4): milliseconds, never 0, which means "no timestamp".
pub(crate) fn timestamp(now: sojourn_units::Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32 | 0x8000_0000
}
