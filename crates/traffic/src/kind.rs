//! The kinds of traffic, each with its options.

use serde::{Deserialize, Serialize};
use sojourn_units::{Duration, Rate};

use crate::codec::Codec;
use crate::game;
use crate::sizes::Sizes;
use crate::streams::Stream;

/// The kind of traffic of a flow, with its options.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// TCP with data without end.
    Bulk(Tcp),
    /// UDP at a constant rate.
    Cbr(Cbr),
    /// Echo requests.
    Ping(Ping),
    /// File transfers, each on a connection of its own.
    Files(Files),
    /// TCP or UDP that alternates between sending and silence.
    OnOff(OnOff),
    /// Telephony over RTP.
    Voip(Voip),
    /// The datagrams of a first-person game.
    Game,
    /// One direction of a video call whose rate adapts.
    Call(Call),
    /// Browsing.
    Web(Web),
    /// Adaptive video over HTTP.
    Video(Video),
}

/// Bytes of the exchange before bulk data, whose acknowledgement starts the data: it gives the congestion control a round-trip
/// time before the flow has a queue of its own. The segment is as long as a SYN, as it has timestamps, too.
pub const EXCHANGE_BYTES: usize = 8;

/// Round trips before its start at which a flow with an exchange connects. After one, the handshake's last acknowledgement
/// would leave together with the exchange, and use up a new flow's turn in CAKE.
pub const OPENS_AHEAD: u64 = 2;

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
            Self::Cbr(_) | Self::Ping(_) | Self::Voip(_) | Self::Game | Self::Call(_) => None,
        }
    }

    /// True if an [exchange](EXCHANGE_BYTES) comes before the data: with bulk data, unless the initial window is one segment,
    /// which the exchange would fill and so double.
    pub const fn exchanges_first(&self) -> bool {
        matches!(self, Self::Bulk(tcp) if tcp.initial_window > 1)
    }

    /// Payload bytes of the largest datagram; `None` if it runs over TCP.
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
            Self::Call(_) => Some(CALL_PACKET),
            Self::Bulk(_) | Self::Files(_) | Self::Web(_) | Self::Video(_) => None,
        }
    }

    /// The ECN field of its datagrams; TCP decides for each packet.
    pub const fn datagram_ecn(&self) -> EcnField {
        match self {
            Self::Cbr(cbr) => cbr.ecn,
            _ => EcnField::NotEct,
        }
    }

    /// The usual time between sendings of a sender with a timer; `None` if nothing is sent by a timer.
    pub fn interval(&self) -> Option<Duration> {
        match self {
            Self::Cbr(cbr) => Some(cbr.rate.tx_time(cbr.packet.into())),
            Self::Ping(ping) => Some(ping.interval),
            Self::Voip(voip) => Some(voip.interval),
            Self::Game => Some(game::INTERVAL),
            Self::Call(call) => Some(call.frame()),
            Self::OnOff(onoff) => match &onoff.transport {
                Transport::Udp(rate) | Transport::Tcp(_, Some(rate)) => {
                    Some(rate.tx_time(onoff.packet.into()))
                }
                Transport::Tcp(_, None) => Some(onoff.on + onoff.off),
            },
            Self::Bulk(_) | Self::Files(_) | Self::Web(_) | Self::Video(_) => None,
        }
    }

    /// True if the times of its sendings are not random, so that they may stay in phase with those of others.
    pub fn is_periodic(&self) -> bool {
        match self {
            Self::OnOff(onoff) => onoff.times == Times::Fixed || onoff.off.is_zero(),
            _ => self.interval().is_some(),
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
            Self::Call(_) => "call",
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
    /// Negotiate AccECN (RFC 9768). Default no.
    pub accecn: bool,
    /// A retransmitted SYN does not request ECN. Default yes.
    pub ecn_fallback: bool,
    /// What a loss-based congestion control keeps of its window on a loss; `None` for its own share.
    pub beta: Option<f64>,
    /// Alternative backoff with ECN (RFC 8511). Default no.
    pub abe: Abe,
    /// Prague treats short paths as if they were longer. Default yes.
    pub rtt_independence: bool,
    /// Selective acknowledgements. Default yes.
    pub sack: bool,
    /// Loss recovery. Default as Linux.
    pub recovery: Recovery,
    /// The minimum retransmission timeout. Default 200 ms.
    pub min_rto: Duration,
    /// Linux's quick acknowledgements. Default yes.
    pub quickack: bool,
    /// Segments per delayed acknowledgement. Default 2.
    pub ack_every: u32,
    /// Segments leave in bursts, as with segmentation offload. Default yes.
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

impl Default for Tcp {
    fn default() -> Self {
        Self {
            congestion_control: "cubic".into(),
            ecn: false,
            accecn: false,
            ecn_fallback: true,
            beta: None,
            abe: Abe::Off,
            rtt_independence: true,
            sack: true,
            recovery: Recovery::Rack,
            min_rto: Duration::from_millis(200),
            quickack: true,
            ack_every: 2,
            gso: true,
            small_queues: true,
            initial_window: 10,
            mss: 1448,
            window: None,
        }
    }
}

/// Alternative backoff with ECN (RFC 8511): what is kept of the window on a mark.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub enum Abe {
    /// As much as on a loss.
    #[default]
    Off,
    /// What RFC 8511 recommends.
    Recommended,
    /// Another share.
    Keeps(f64),
}

/// Loss detection and recovery of a TCP sender.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Recovery {
    /// Linux's recovery, with RACK-TLP (RFC 8985).
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
    /// Payload bytes of a packet; on the link, 28 bytes (UDP, IP) and the link's overhead are added.
    pub packet: u32,
    /// Largest IP packet; longer datagrams are sent in fragments. `None` for no limit.
    pub mtu: Option<u32>,
    /// The ECN field of its packets. Default Not-ECT.
    pub ecn: EcnField,
}

/// What a sender writes into the ECN field (RFC 3168 §5; ECT(1) is RFC 9331's).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum EcnField {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
}

impl EcnField {
    /// The two bits in the IP header.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect0 => 0b10,
            Self::Ect1 => 0b01,
        }
    }
}

/// Echo requests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ping {
    /// Time between requests. Default 1 s.
    pub interval: Duration,
    /// The protocol. Default ICMP.
    pub protocol: EchoProtocol,
    /// Payload bytes of a request and of its reply; on the link, 28 bytes (ICMP or UDP, IP) and the link's overhead
    /// are added. Default 56.
    pub packet: u32,
}

/// The protocol of echo requests and replies.
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
    /// The distribution of sizes in bytes.
    pub sizes: Sizes,
    /// Files per flow; `None` if they continue until the stop.
    pub count: Option<u64>,
    /// When the next file begins.
    pub pace: Pace,
}

/// When the next file of a flow begins.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Pace {
    /// After the previous one and an exponentially distributed pause with this mean (closed loop).
    Think(Duration),
    /// This many per second as a Poisson process, even if others are in progress (open loop).
    Arrivals(f64),
}

/// On-off traffic, beginning with on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OnOff {
    /// The transport protocol.
    pub transport: Transport,
    /// Payload bytes of a datagram, or of one write by the application to a rate-limited TCP.
    pub packet: u32,
    /// Bytes in the send buffer of a rate-limited TCP; `None` for no limit.
    pub send_buffer: Option<u64>,
    /// Mean on time.
    pub on: Duration,
    /// Mean off time; zero for none.
    pub off: Duration,
    /// The distribution of these times.
    pub times: Times,
}

/// The transport protocol of on-off traffic.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Transport {
    /// UDP with this payload rate.
    Udp(Rate),
    /// TCP. With a rate, one connection to which the application writes at that rate; without, a connection with data
    /// without end for each on time.
    Tcp(Tcp, Option<Rate>),
}

/// The distribution of on and off times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Times {
    /// Exponential with the given mean.
    Exponential,
    /// Constant.
    Fixed,
}

impl Times {
    /// Draws a time with this mean.
    pub fn draw(self, mean: Duration, stream: &mut Stream) -> Duration {
        match self {
            Self::Exponential => exponential(mean, stream),
            Self::Fixed => mean,
        }
    }
}

/// Draws an exponentially distributed time with this mean.
pub fn exponential(mean: Duration, stream: &mut Stream) -> Duration {
    Duration::from_secs_f64(mean.as_secs_f64() * stream.exponential())
}

/// Telephony: a packet per frame.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Voip {
    /// The codec, for the rating.
    pub codec: Codec,
    /// Payload bytes of a packet: the frames with their RTP header (12); on the link, 28 bytes (UDP, IP) and the
    /// link's overhead are added.
    pub packet: u32,
    /// Time between packets.
    pub interval: Duration,
}

/// One direction of a video call, at a rate of Google Congestion Control; see [`crate::gcc`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The media rate at which it begins.
    pub first_rate: Rate,
    /// The lowest and the highest media rate.
    pub rates: (Rate, Rate),
    /// Frames a second.
    pub frames: u32,
}

/// Payload bytes of a full packet of a call, its RTP header included.
pub const CALL_PACKET: u32 = 1200;

impl Call {
    /// Time between two frames.
    pub fn frame(&self) -> Duration {
        Duration::from_nanos(1_000_000_000 / u64::from(self.frames.max(1)))
    }
}

/// Browsing. Requests are sent against the direction of the flow, responses along it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Web {
    /// The transport.
    pub tcp: Tcp,
    /// The requests and their timing.
    pub browsing: Browsing,
}

/// The requests of a browser and their timing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Browsing {
    /// The PackMime-HTTP model with this many new connections per second.
    PackMime(f64),
    /// One page after another.
    Pages(Pages),
}

/// One page after another: a document, then the objects of its page.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pages {
    /// Objects of a page, including the document.
    pub objects: u32,
    /// The distribution of object sizes in bytes.
    pub sizes: Sizes,
    /// The maximum number of connections that fetch a page's objects.
    pub parallel: u32,
    /// Bytes of a request.
    pub request: u64,
    /// Mean of the exponentially distributed pause between the end of a page and the next; zero for none.
    pub think: Duration,
}

/// Adaptive video over HTTP (DASH): segments whose media rate follows the throughput of the previous ones.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Video {
    /// The transport.
    pub tcp: Tcp,
    /// Media time of a segment.
    pub segment: Duration,
    /// The available media rates, in increasing order.
    pub ladder: Vec<Rate>,
    /// The most media time in the player's buffer.
    pub buffer: Duration,
}
