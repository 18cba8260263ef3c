//! Applications that use a network, without sockets and without a clock.
//!
//! An [`Application`] is called with the time and with the data that has arrived; it opens, writes to and closes
//! connections. [`Datagrams`] tells when each datagram of a flow is due. Every backend uses both.
//!
//! | module | what is there |
//! | --- | --- |
//! | `kind`, `direction` | [`Kind`]: the kinds of traffic, with their options; [`Direction`]: down or up |
//! | `application` | [`Application`] and its interfaces: connections, a meter |
//! | `over_tcp` | which application each kind has |
//! | `bulk`, `files`, `onoff` | transfers over TCP |
//! | `pages`, `packmime_client`, `video` | browsing page by page and by the PackMime model, adaptive video |
//! | `http` | requests and responses over connections |
//! | `datagrams` | one-way datagrams: constant rate, telephony, on-off, games |
//! | [`gcc`] | the rate of a video call |
//! | `alternation`, `jitter` | on and off times; timers that are late |
//! | [`packmime`], [`game`] | models of web and game traffic |
//! | [`sizes`], `codec` | sizes of files; speech codecs |
//! | [`streams`] | a random stream per purpose |

mod alternation;
mod application;
mod bulk;
mod codec;
mod datagrams;
mod direction;
mod files;
pub mod game;
pub mod gcc;
mod http;
mod jitter;
mod kind;
mod onoff;
mod over_tcp;
pub mod packmime;
mod packmime_client;
mod pages;
pub mod sizes;
pub mod streams;
mod video;

#[cfg(test)]
mod tests;

pub use application::{Application, Connections, Id, Identity, Meter, Side, UNLIMITED};
pub use codec::Codec;
pub use datagrams::Datagrams;
pub use direction::Direction;
pub use jitter::Jitter;
pub use kind::{
    Abe, Browsing, CALL_PACKET, Call, Cbr, EXCHANGE_BYTES, EchoProtocol, EcnField, Files, Kind,
    OPENS_AHEAD, OnOff, Pace, Pages, Ping, Recovery, Tcp, Times, Transport, Video, Voip, Web,
};
pub use over_tcp::over_tcp;
pub use sizes::Sizes;
