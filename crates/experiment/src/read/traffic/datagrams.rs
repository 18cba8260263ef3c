//! Traffic without a connection: constant rate, telephony, games, echo requests.

use sojourn_units::{Duration, Rate};

use super::{Read, TrafficKind};
use crate::error::ReadError;
use crate::forms::{Bytes, Maybe, Span, Speed, Whole, Word};
use crate::keys::{Keys, keys};
use crate::model::{Call, Cbr, Codec, EchoProtocol, EcnField, Kind, Ping, Voip};
use crate::section::Section;

/// The largest payload that the IPv4 and UDP headers leave room for: 65535 - 20 - 8.
pub(super) const PAYLOAD: Bytes<u32> = Bytes {
    from: 1,
    to: 65_507,
};

keys! {
    /// The key of senders with a timer.
    struct Timer {
        /// Each sending is late by a uniformly random time up to this one; the period does not drift. 0 s: exact periods, so
        /// that senders with the same period stay in phase (Floyd and Jacobson 1992).
        jitter: Option<Duration> = Maybe(Span::Any), Words("the time of a full packet in the slowest queue on the way there, at most the period; 0 s for onoff with exponential times");
    }
}

pub(super) static CBR: TrafficKind = TrafficKind {
    name: "cbr",
    doc: "UDP at a constant rate.",
    keys: || [Cbr::keys(), Timer::keys()].concat(),
    read: Read::Group(|section| Cbr::read(section).map(Kind::Cbr)),
    two_way: false,
};

keys! {
    Cbr {
        /// Rate of the payload.
        rate = Speed, Required;
        /// Payload of a packet; on the link 28 bytes (UDP, IPv4) and link.overhead more.
        packet = PAYLOAD, Is("1448 B");
        /// Largest IP packet; a longer datagram is sent in fragments (RFC 791) and is lost if any of them is.
        mtu = Maybe(MTU), Words("unlimited");
        /// ECN field of the packets (RFC 3168; ect1: as L4S traffic, RFC 9331). The sender does not respond to marks.
        ecn = ECN, Is("not-ect");
    }
}

const ECN: Word<EcnField> = Word(&[
    ("not-ect", EcnField::NotEct),
    ("ect0", EcnField::Ect0),
    ("ect1", EcnField::Ect1),
]);

/// The smallest MTU that RFC 791 §3.2 allows is 68 bytes.
const MTU: Bytes<u32> = Bytes {
    from: 68,
    to: 65_535,
};

pub(super) static PING: TrafficKind = TrafficKind {
    name: "ping",
    doc: "Echo requests; their RTTs are a result.",
    keys: || [Ping::keys(), Timer::keys()].concat(),
    read: Read::Group(|section| Ping::read(section).map(Kind::Ping)),
    two_way: false,
};

keys! {
    Ping {
        /// Time between requests.
        interval = Span::AboveZero, Is("1 s");
        /// Protocol of requests and replies.
        protocol = PROTOCOL, Is("icmp");
        /// Payload of a request and of its reply; on the link 28 bytes (ICMP or UDP, IPv4) and link.overhead more.
        packet = PAYLOAD, Is("56 B");
    }
}

const PROTOCOL: Word<EchoProtocol> =
    Word(&[("icmp", EchoProtocol::Icmp), ("udp", EchoProtocol::Udp)]);

pub(super) static VOIP: TrafficKind = TrafficKind {
    name: "voip",
    doc: "Telephony over RTP; delay, jitter, loss and the opinion score of the E-model (ITU-T G.107), by mean delay and loss, are results.",
    keys: || [VoipKeys::keys(), Timer::keys()].concat(),
    read: Read::Group(|section| VoipKeys::read(section).map(|keys| Kind::Voip(keys.into()))),
    two_way: false,
};

keys! {
    /// The keys of telephony.
    struct VoipKeys {
        /// The codec, which sets the packets and the rating; g711_plc is G.711 with loss concealment.
        codec: Codec = CODEC, Is("g711");
        /// Payload of a packet with its RTP header.
        packet: Option<u32> = Maybe(PAYLOAD), Words("the codec's, 172 B for g711");
        /// Time between packets.
        interval: Option<Duration> = Maybe(Span::AboveZero), Words("the codec's, 20 ms for g711");
    }
}

const CODEC: Word<Codec> = Word(&[
    (Codec::G711.name(), Codec::G711),
    (Codec::G711Plc.name(), Codec::G711Plc),
    (Codec::G729a.name(), Codec::G729a),
    (Codec::G7231.name(), Codec::G7231),
    (Codec::GsmEfr.name(), Codec::GsmEfr),
]);

impl From<VoipKeys> for Voip {
    fn from(keys: VoipKeys) -> Self {
        Self {
            codec: keys.codec,
            packet: keys.packet.unwrap_or(keys.codec.packet()),
            interval: keys.interval.unwrap_or(keys.codec.interval()),
        }
    }
}

impl From<&Voip> for VoipKeys {
    fn from(voip: &Voip) -> Self {
        Self {
            codec: voip.codec,
            packet: Some(voip.packet),
            interval: Some(voip.interval),
        }
    }
}

pub(super) static GAME: TrafficKind = TrafficKind {
    name: "game",
    doc: "A first-person game over UDP: states of the server go down, moves of the player up (Färber 2002).",
    keys: Timer::keys,
    read: Read::Group(|_| Ok(Kind::Game)),
    two_way: true,
};

pub(super) static CALL: TrafficKind = TrafficKind {
    name: "call",
    doc: "A video call over UDP whose rate adapts by Google Congestion Control (draft-ietf-rmcat-gcc-02); its frames and freezes are results.",
    keys: || [CallKeys::keys(), Timer::keys()].concat(),
    read: Read::Group(|section| CallKeys::read(section).map(|keys| Kind::Call(keys.into()))),
    two_way: true,
};

keys! {
    /// The keys of a video call.
    struct CallKeys {
        /// Media rate at first.
        first_rate: Rate = Speed, Is("300 kbit/s");
        /// The lowest media rate.
        least_rate: Rate = Speed, Is("50 kbit/s");
        /// The highest media rate.
        most_rate: Rate = Speed, Is("2500 kbit/s");
        /// Frames a second.
        frames: u32 = Whole { from: 1, to: 240 }, Is("30");
    }
    ; check check_call
}

fn check_call(call: &CallKeys, section: &Section<'_>) -> Result<(), ReadError> {
    let is_between = (call.least_rate..=call.most_rate).contains(&call.first_rate);
    let mut keys = ["first_rate", "most_rate", "least_rate"].into_iter();
    match keys.find_map(|key| section.given(key)) {
        Some(given) if !is_between => Err(given.error(format!(
            "first_rate is \"{}\"; must be from least_rate (\"{}\") to most_rate (\"{}\")",
            call.first_rate, call.least_rate, call.most_rate
        ))),
        _ => Ok(()),
    }
}

impl From<CallKeys> for Call {
    fn from(keys: CallKeys) -> Self {
        Self {
            first_rate: keys.first_rate,
            rates: (keys.least_rate, keys.most_rate),
            frames: keys.frames,
        }
    }
}

impl From<&Call> for CallKeys {
    fn from(call: &Call) -> Self {
        Self {
            first_rate: call.first_rate,
            least_rate: call.rates.0,
            most_rate: call.rates.1,
            frames: call.frames,
        }
    }
}
