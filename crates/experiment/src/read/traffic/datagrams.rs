//! Traffic without a connection: constant rate, telephony, games, echo requests.

use super::{ONE_WAY, Read, TWO_WAY, TrafficKind};
use crate::form::{Default, Key};
use crate::forms::{Bytes, Span, Speed, Word};
use crate::model::{Cbr, Codec, EchoProtocol, Kind, Ping, Voip};

/// The most that IPv4 and UDP leave: 65535 - 20 - 8.
pub(super) const PAYLOAD: Bytes = Bytes {
    from: 1,
    to: 65_507,
};

pub(super) static CBR: TrafficKind = TrafficKind {
    name: "cbr",
    doc: "UDP at a constant rate.",
    keys: &[ONE_WAY, &[&RATE, &PACKET, &MTU]],
    read: Read::Group {
        kind: |section| {
            Ok(Kind::Cbr(Cbr {
                rate: section.get(&RATE)?,
                packet: section.get(&PACKET)? as u32,
                mtu: section.find(&MTU)?.map(|bytes| bytes as u32),
            }))
        },
        two_way: false,
    },
};

static RATE: Key<Speed> = Key {
    name: "rate",
    form: Speed,
    default: Default::Required,
    doc: "Rate of the payload.",
};
static PACKET: Key<Bytes> = Key {
    name: "packet",
    form: PAYLOAD,
    default: Default::Is("1448 B"),
    doc: "Payload of a packet; on the link 28 bytes (UDP, IPv4) and link.overhead more.",
};

static MTU: Key<Bytes> = Key {
    name: "mtu",
    form: Bytes {
        from: 68, // RFC 791 §3.2
        to: 65_535,
    },
    default: Default::Words("none is too long"),
    doc: "Largest IP packet; a datagram that is longer goes in fragments (RFC 791) and is lost with any of them.",
};

pub(super) static PING: TrafficKind = TrafficKind {
    name: "ping",
    doc: "Echo requests; their RTTs are a result.",
    keys: &[ONE_WAY, &[&INTERVAL, &PROTOCOL, &ECHO_PACKET]],
    read: Read::Group {
        kind: |section| {
            Ok(Kind::Ping(Ping {
                interval: section.get(&INTERVAL)?,
                protocol: section.get(&PROTOCOL)?,
                packet: section.get(&ECHO_PACKET)? as u32,
            }))
        },
        two_way: false,
    },
};

static INTERVAL: Key<Span> = Key {
    name: "interval",
    form: Span::AboveZero,
    default: Default::Is("1 s"),
    doc: "Time between requests.",
};
static PROTOCOL: Key<Word<EchoProtocol>> = Key {
    name: "protocol",
    form: Word(&[("icmp", EchoProtocol::Icmp), ("udp", EchoProtocol::Udp)]),
    default: Default::Is("icmp"),
    doc: "What carries requests and replies.",
};
static ECHO_PACKET: Key<Bytes> = Key {
    name: "packet",
    form: PAYLOAD,
    default: Default::Is("56 B"),
    doc: "Payload of a request and of its reply; on the link 28 bytes (ICMP or UDP, IPv4) and link.overhead more.",
};

pub(super) static VOIP: TrafficKind = TrafficKind {
    name: "voip",
    doc: "Telephony over RTP; delay, jitter, loss and the opinion score of the E-model (ITU-T G.107) are results.",
    keys: &[ONE_WAY, &[&CODEC, &FRAME, &SPACING]],
    read: Read::Group {
        kind: |section| {
            let codec = section.get(&CODEC)?;
            Ok(Kind::Voip(Voip {
                codec,
                packet: section
                    .find(&FRAME)?
                    .map_or(codec.packet(), |bytes| bytes as u32),
                interval: section.find(&SPACING)?.unwrap_or(codec.interval()),
            }))
        },
        two_way: false,
    },
};

static CODEC: Key<Word<Codec>> = Key {
    name: "codec",
    form: Word(&[
        (Codec::G711.name(), Codec::G711),
        (Codec::G711Plc.name(), Codec::G711Plc),
        (Codec::G729a.name(), Codec::G729a),
        (Codec::G7231.name(), Codec::G7231),
        (Codec::GsmEfr.name(), Codec::GsmEfr),
    ]),
    default: Default::Is("g711"),
    doc: "The codec: packets and rating; g711_plc is G.711 with loss concealment.",
};
static FRAME: Key<Bytes> = Key {
    name: "packet",
    form: PAYLOAD,
    default: Default::Words("the codec's, 172 B for g711"),
    doc: "Payload of a packet with its RTP header.",
};
static SPACING: Key<Span> = Key {
    name: "interval",
    form: Span::AboveZero,
    default: Default::Words("the codec's, 20 ms for g711"),
    doc: "Time between packets.",
};

pub(super) static GAME: TrafficKind = TrafficKind {
    name: "game",
    doc: "A first-person game over UDP: states of the server go down, moves of the player up (Färber 2002).",
    keys: &[TWO_WAY],
    read: Read::Group {
        kind: |_| Ok(Kind::Game),
        two_way: true,
    },
};
