//! The kinds of traffic, each with its options.

use serde::{Deserialize, Serialize};
use sojourn_units::{Duration, Rate};

use crate::codec::Codec;
use crate::game;
use crate::sizes::Sizes;
use crate::streams::Stream;

/// Which way data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Direction {
    /// Forward.
    Down,
    /// Reverse.
    Up,
    /// That many flows each way.
    Both,
}

/// What a flow does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// TCP with always more to send.
    Bulk(Tcp),
    /// UDP at a constant rate.
    Cbr(Cbr),
    /// Echo requests.
    Ping(Ping),
    /// Files, each on a connection of its own.
    Files(Files),
    /// TCP or UDP that sends at times and is silent at others.
    OnOff(OnOff),
    /// Telephony over RTP.
    Voip(Voip),
    /// The moves and states of a first-person game.
    Game,
    /// Browsing.
    Web(Web),
    /// Adaptive video over HTTP.
    Video(Video),
}

impl Kind {
    /// The TCP options, if it runs over TCP.
    pub const fn tcp(&self) -> Option<&Tcp> {
        match self {
            Self::Bulk(tcp) => Some(tcp),
            Self::Files(files) => Some(&files.tcp),
            Self::OnOff(onoff) => match &onoff.transport {
                Transport::Tcp(tcp, _) => Some(tcp),
                Transport::Udp(_) => None,
            },
            Self::Web(web) => Some(&web.tcp),
            Self::Video(video) => Some(&video.tcp),
            Self::Cbr(_) | Self::Ping(_) | Self::Voip(_) | Self::Game => None,
        }
    }

    /// Payload bytes of the largest datagram that it sends; `None`: it runs over TCP.
    pub const fn largest_datagram(&self) -> Option<u32> {
        match self {
            Self::Cbr(cbr) => Some(cbr.packet),
            Self::Ping(ping) => Some(ping.packet),
            Self::Voip(voip) => Some(voip.packet),
            Self::OnOff(onoff) => match onoff.transport {
                Transport::Udp(_) => Some(onoff.packet),
                Transport::Tcp(..) => None,
            },
            Self::Game => Some(game::MOST_BYTES),
            Self::Bulk(_) | Self::Files(_) | Self::Web(_) | Self::Video(_) => None,
        }
    }

    /// The name in experiment files and results.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bulk(_) => "bulk",
            Self::Cbr(_) => "cbr",
            Self::Ping(_) => "ping",
            Self::Files(_) => "files",
            Self::OnOff(_) => "onoff",
            Self::Voip(_) => "voip",
            Self::Game => "game",
            Self::Web(_) => "web",
            Self::Video(_) => "video",
        }
    }
}

/// The options of a TCP flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tcp {
    /// Congestion control by name. Default `cubic`.
    pub congestion_control: String,
    /// Negotiate ECN (RFC 3168). Default no.
    pub ecn: bool,
    /// A SYN that was lost is sent again without asking for ECN. Default yes.
    pub ecn_fallback: bool,
    /// Alternative backoff with ECN (RFC 8511). Default no.
    pub abe: bool,
    /// Selective acknowledgements. Default yes.
    pub sack: bool,
    /// How losses are found and repaired. Default as Linux.
    pub recovery: Recovery,
    /// The least retransmission timeout. Default 200 ms.
    pub min_rto: Duration,
    /// Linux's quick acknowledgements. Default yes.
    pub quickack: bool,
    /// Segments that one acknowledgement waits for.
    pub ack_every: u32,
    /// Segments leave in pieces, as with segmentation offload. Default yes.
    pub gso: bool,
    /// Linux's TCP small queues. Default yes.
    pub small_queues: bool,
    /// Initial window in segments (RFC 6928). Default 10.
    pub initial_window: u32,
    /// Payload bytes of a full segment. Default 1448 (MTU 1500 with timestamps).
    pub mss: u32,
    /// Largest receive window in bytes; `None`: unlimited.
    pub window: Option<u64>,
}

/// How a TCP sender finds and repairs losses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Recovery {
    /// RACK-TLP (RFC 8985) with all that Linux has.
    #[default]
    Rack,
    /// RFC 6675 alone; without SACK RFC 6582.
    Rfc6675,
}

impl Recovery {
    /// The name in experiment files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rack => "rack",
            Self::Rfc6675 => "rfc6675",
        }
    }
}

/// Constant bit rate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cbr {
    /// Rate of payload bits.
    pub rate: Rate,
    /// Payload bytes of a packet; on the link + 28 (UDP, IP) + the link's overhead.
    pub packet: u32,
    /// Largest IP packet; longer datagrams go in fragments. `None`: none is too long.
    pub mtu: Option<u32>,
}

/// Echo requests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ping {
    /// Time between requests. Default 1 s.
    pub interval: Duration,
    /// What carries them. Default ICMP.
    pub protocol: EchoProtocol,
    /// Payload bytes of a request and of its reply; on the link + 28 (ICMP or UDP, IP) + the link's overhead.
    /// Default 56.
    pub packet: u32,
}

/// What carries echo requests and replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EchoProtocol {
    /// ICMP (RFC 792).
    Icmp,
    /// UDP (RFC 862).
    Udp,
}

/// Finite transfers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Files {
    /// The transport.
    pub tcp: Tcp,
    /// Sizes in bytes; each file's is drawn from these.
    pub sizes: Sizes,
    /// Files per flow; `None`: until the stop.
    pub count: Option<u64>,
    /// When the next file begins.
    pub pace: Pace,
}

/// When the next of a flow's files begins.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Pace {
    /// After the one before, and an exponentially distributed pause with this mean (closed loop).
    Think(Duration),
    /// So many a second as a Poisson process, whether others are under way or not (open loop).
    Arrivals(f64),
}

/// Traffic that is on and off in turn, beginning with on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OnOff {
    /// What it sends while it is on.
    pub transport: Transport,
    /// Payload bytes of a datagram, or of what the application writes to a rate-limited TCP at once.
    pub packet: u32,
    /// Bytes that a rate-limited TCP takes before they are acknowledged; `None`: any number.
    pub send_buffer: Option<u64>,
    /// How long it is on, on the mean.
    pub on: Duration,
    /// How long it is off, on the mean; zero: never.
    pub off: Duration,
    /// How these times are distributed.
    pub times: Times,
}

/// What on-off traffic runs over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Transport {
    /// UDP at this rate of payload.
    Udp(Rate),
    /// TCP: with a rate, one connection to which the application writes at that rate; without, a connection for
    /// each time that is on, with always more to send.
    Tcp(Tcp, Option<Rate>),
}

/// How the times of on-off traffic are distributed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Times {
    /// Exponentially, about the mean.
    Exponential,
    /// They are all the same.
    Fixed,
}

impl Times {
    /// A time with this mean.
    pub fn draw(self, mean: Duration, stream: &mut Stream) -> Duration {
        match self {
            Self::Exponential => exponential(mean, stream),
            Self::Fixed => mean,
        }
    }
}

/// An exponentially distributed time with this mean.
pub fn exponential(mean: Duration, stream: &mut Stream) -> Duration {
    Duration::from_secs_f64(mean.as_secs_f64() * stream.exponential())
}

/// Telephony: a packet per frame.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Voip {
    /// The codec, for the rating.
    pub codec: Codec,
    /// Payload bytes of a packet: the frames with their RTP header (12); on the link + 28 (UDP, IP) + the link's
    /// overhead.
    pub packet: u32,
    /// Time between packets.
    pub interval: Duration,
}

/// Browsing. Requests go against the direction of the flow, responses along it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Web {
    /// The transport.
    pub tcp: Tcp,
    /// What is asked for, and when.
    pub browsing: Browsing,
}

/// What a browser asks for, and when.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Browsing {
    /// The PackMime-HTTP model: so many new connections a second.
    PackMime(f64),
    /// Pages one after another.
    Pages(Pages),
}

/// Pages one after another: a document, then the objects that it names.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pages {
    /// Objects of a page, the document included.
    pub objects: u32,
    /// Sizes of objects in bytes; each one's is drawn from these.
    pub sizes: Sizes,
    /// Connections over which a page's objects are fetched, at most.
    pub parallel: u32,
    /// Bytes of a request.
    pub request: u64,
    /// Mean of the exponentially distributed time from the end of one page to the next; zero: at once.
    pub think: Duration,
}

/// Adaptive video over HTTP (DASH): segments, each at a rate chosen by the throughput of those before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Video {
    /// The transport.
    pub tcp: Tcp,
    /// Media time of a segment.
    pub segment: Duration,
    /// The media rates that there are, rising.
    pub ladder: Vec<Rate>,
    /// Media time that the player holds at most.
    pub buffer: Duration,
}
