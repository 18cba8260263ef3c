//! What applications do with a network, without sockets and without a clock.
//!
//! An [`Application`] is told the time and what has arrived; it opens connections, writes to them and closes them.
//! [`Datagrams`] says when each datagram of a flow is due. Every backend carries out the same.
//!
//! | module | what is there |
//! | --- | --- |
//! | `kind` | [`Kind`]: what a flow does, with its options |
//! | `application` | [`Application`] and what it sees: connections, a meter |
//! | `bulk`, `files`, `onoff` | transfers over TCP |
//! | `pages`, `packmime_client`, `video` | browsing page by page and by the PackMime model, adaptive video |
//! | `http` | requests and responses over connections |
//! | `datagrams` | datagrams one way: constant rate, telephony, on and off, games |
//! | `alternation` | times of being on and off |
//! | [`packmime`], [`game`] | models of web and game traffic |
//! | [`sizes`], `codec` | how large files are; speech codecs |
//! | [`streams`] | a random stream per purpose |

mod alternation;
mod application;
mod bulk;
mod codec;
mod datagrams;
mod files;
pub mod game;
mod http;
mod kind;
mod onoff;
pub mod packmime;
mod packmime_client;
mod pages;
pub mod sizes;
pub mod streams;
mod video;

#[cfg(test)]
mod tests;

pub use application::{Application, Connections, Id, Identity, Meter, Side, UNLIMITED, over_tcp};
pub use codec::Codec;
pub use datagrams::Datagrams;
pub use kind::{
    Browsing, Cbr, Direction, EchoProtocol, Files, Kind, OnOff, Pace, Pages, Ping, Recovery, Tcp,
    Times, Transport, Video, Voip, Web,
};
pub use sizes::Sizes;
