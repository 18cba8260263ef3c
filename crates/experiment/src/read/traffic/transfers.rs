//! Transfers without an answer: bulk, files, on-off.

use super::forms::SizesForm;
use super::{ONE_WAY, Read, TrafficKind};
use crate::error::ReadError;
use crate::form::{Default, Key};
use crate::forms::{Bytes, Decimal, Span, Speed, Whole, Word};
use crate::model::{Files, Kind, OnOff, Pace, Times, Transport};
use crate::read::tcp;
use crate::section::Section;

pub(super) static BULK: TrafficKind = TrafficKind {
    name: "bulk",
    doc: "TCP with always more to send.",
    keys: &[ONE_WAY, tcp::KEYS],
    read: Read::Group {
        kind: |section| tcp::read(section).map(Kind::Bulk),
        two_way: false,
    },
};

pub(super) static FILES: TrafficKind = TrafficKind {
    name: "files",
    doc: "Files, each on a TCP connection of its own: one after another, or as they arrive.",
    keys: &[ONE_WAY, &[&SIZE, &COUNT, &THINK, &ARRIVALS], tcp::KEYS],
    read: Read::Group {
        kind: files,
        two_way: false,
    },
};

static SIZE: Key<SizesForm> = Key {
    name: "size",
    form: SizesForm,
    default: Default::Required,
    doc: "Size of a file, or sizes of which each file's is drawn uniformly, or a distribution: { distribution = \"pareto\", mean = \"50 kB\", shape = 1.5 }, exponential (mean), lognormal (median, sigma) or uniform (min, max).",
};
static COUNT: Key<Whole> = Key {
    name: "count",
    form: Whole {
        from: 1,
        to: 1_000_000_000,
    },
    default: Default::Words("as many as fit until the stop"),
    doc: "Files per flow.",
};
static THINK: Key<Span> = Key {
    name: "think",
    form: Span::Any,
    default: Default::Is("0 s"),
    doc: "Mean of the exponentially distributed time from the end of one file to the next.",
};
static ARRIVALS: Key<Decimal> = Key {
    name: "arrivals",
    form: Decimal {
        above: 0.0,
        to: 100_000.0,
    },
    default: Default::Words("a file follows the one before"),
    doc: "Files per second and flow as a Poisson process, whether others are under way or not; without think.",
};

fn files(section: &Section<'_>) -> Result<Kind, ReadError> {
    let pace = match (section.find(&ARRIVALS)?, section.given(THINK.name)) {
        (Some(_), Some(think)) => {
            return Err(think.refuse("left out: with arrivals no file waits for another"));
        }
        (Some(arrivals), None) => Pace::Arrivals(arrivals),
        (None, _) => Pace::Think(section.get(&THINK)?),
    };
    Ok(Kind::Files(Files {
        sizes: section.get(&SIZE)?,
        count: section.find(&COUNT)?,
        pace,
        tcp: tcp::read(section)?,
    }))
}

pub(super) static ONOFF: TrafficKind = TrafficKind {
    name: "onoff",
    doc: "UDP or TCP that sends at times and is silent at others.",
    keys: &[
        ONE_WAY,
        &[
            &TRANSPORT,
            &ON_RATE,
            &PACKET,
            &SEND_BUFFER,
            &ON,
            &OFF,
            &TIMES,
        ],
        tcp::KEYS,
    ],
    read: Read::Group {
        kind: onoff,
        two_way: false,
    },
};

#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Udp,
    Tcp,
}

static TRANSPORT: Key<Word<Protocol>> = Key {
    name: "transport",
    form: Word(&[("udp", Protocol::Udp), ("tcp", Protocol::Tcp)]),
    default: Default::Is("udp"),
    doc: "What it runs over; the options of TCP go with tcp only.",
};
static ON_RATE: Key<Speed> = Key {
    name: "rate",
    form: Speed,
    default: Default::Words(
        "with tcp a connection for each on time, with always more to send; udp needs one",
    ),
    doc: "Rate of the payload while on; with tcp what the application writes to one connection.",
};
static PACKET: Key<Bytes> = Key {
    name: "packet",
    form: super::datagrams::PAYLOAD,
    default: Default::Is("1448 B"),
    doc: "Payload of a datagram, or what the application writes at once.",
};
static SEND_BUFFER: Key<Bytes> = Key {
    name: "send_buffer",
    form: Bytes {
        from: 64,
        to: 1_000_000_000_000,
    },
    default: Default::Words("any number"),
    doc: "Bytes that TCP takes from an application that writes at a rate before they are acknowledged; a write that does not fit is lost.",
};
static ON: Key<Span> = Key {
    name: "on",
    form: Span::AboveZero,
    default: Default::Is("1 s"),
    doc: "How long it is on, on the mean.",
};
static OFF: Key<Span> = Key {
    name: "off",
    form: Span::Any,
    default: Default::Is("1 s"),
    doc: "How long it is off, on the mean; 0 s: never.",
};
static TIMES: Key<Word<Times>> = Key {
    name: "times",
    form: Word(&[("exponential", Times::Exponential), ("fixed", Times::Fixed)]),
    default: Default::Is("exponential"),
    doc: "How these times are distributed.",
};

fn onoff(section: &Section<'_>) -> Result<Kind, ReadError> {
    let rate = section.find(&ON_RATE)?;
    let transport = match (section.get(&TRANSPORT)?, rate) {
        (Protocol::Tcp, rate) => Transport::Tcp(tcp::read(section)?, rate),
        (Protocol::Udp, None) => return Err(section.missing(&ON_RATE)),
        (Protocol::Udp, Some(rate)) => {
            let options = tcp::KEYS.iter().find_map(|key| section.given(key.name()));
            match options {
                Some(option) => return Err(option.refuse("left out: needs transport = \"tcp\"")),
                None => Transport::Udp(rate),
            }
        }
    };
    let packet = section.get(&PACKET)? as u32;
    let send_buffer = section.find(&SEND_BUFFER)?;
    if let (Some(bytes), Some(given)) = (send_buffer, section.given(SEND_BUFFER.name)) {
        if !matches!(transport, Transport::Tcp(_, Some(_))) {
            return Err(given.refuse("left out: needs transport = \"tcp\" and a rate"));
        }
        if bytes < u64::from(packet) {
            return Err(given.refuse(format!("at least a write, packet (\"{packet} B\")")));
        }
    }
    Ok(Kind::OnOff(OnOff {
        transport,
        packet,
        send_buffer,
        on: section.get(&ON)?,
        off: section.get(&OFF)?,
        times: section.get(&TIMES)?,
    }))
}
