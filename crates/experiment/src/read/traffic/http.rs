//! Requests and responses: web browsing, video.

use super::forms::{Ladder, SizesForm};
use super::{ONE_WAY, Read, TrafficKind};
use crate::error::ReadError;
use crate::form::{AnyKey, Default, Key};
use crate::forms::{Bytes, Decimal, Span, Whole};
use crate::model::{Browsing, Kind, Pages, Video, Web};
use crate::read::tcp;
use crate::section::Section;

pub(super) static WEB: TrafficKind = TrafficKind {
    name: "web",
    doc: "Web browsing: pages one after another with their load times, or with connections the PackMime-HTTP model.",
    keys: &[ONE_WAY, &[&CONNECTIONS], PAGE_KEYS, tcp::KEYS],
    read: Read::Group {
        kind: web,
        two_way: false,
    },
};

static CONNECTIONS: Key<Decimal> = Key {
    name: "connections",
    form: Decimal {
        above: 0.0,
        to: 10_000.0,
    },
    default: Default::Words("pages one after another"),
    doc: "New connections per second of each flow, by the PackMime-HTTP model, which has sizes of its own.",
};
static OBJECTS: Key<Whole> = Key {
    name: "objects",
    form: Whole {
        from: 1,
        to: 10_000,
    },
    default: Default::Is("110"),
    doc: "Objects of a page: the document, then what it names.",
};
static SIZE: Key<SizesForm> = Key {
    name: "size",
    form: SizesForm,
    default: Default::Is("27 kB"),
    doc: "Size of an object, sizes of which each one's is drawn, or a distribution as of files.",
};
static PARALLEL: Key<Whole> = Key {
    name: "parallel",
    form: Whole { from: 1, to: 256 },
    default: Default::Is("6"),
    doc: "Connections over which a page is fetched, at most; they persist from object to object.",
};
static REQUEST: Key<Bytes> = Key {
    name: "request",
    form: Bytes {
        from: 1,
        to: 1_000_000,
    },
    default: Default::Is("400 B"),
    doc: "Size of a request.",
};
static THINK: Key<Span> = Key {
    name: "think",
    form: Span::Any,
    default: Default::Is("1 s"),
    doc: "Mean of the exponentially distributed time from the end of one page to the next.",
};
static PAGE_KEYS: &[&dyn AnyKey] = &[&OBJECTS, &SIZE, &PARALLEL, &REQUEST, &THINK];

fn web(section: &Section<'_>) -> Result<Kind, ReadError> {
    let browsing = match section.find(&CONNECTIONS)? {
        Some(rate) => match PAGE_KEYS.iter().find_map(|key| section.given(key.name())) {
            Some(key) => {
                return Err(key.refuse("left out: with connections the model has its own"));
            }
            None => Browsing::PackMime(rate),
        },
        None => Browsing::Pages(Pages {
            objects: section.get(&OBJECTS)? as u32,
            sizes: section.get(&SIZE)?,
            parallel: section.get(&PARALLEL)? as u32,
            request: section.get(&REQUEST)?,
            think: section.get(&THINK)?,
        }),
    };
    Ok(Kind::Web(Web {
        browsing,
        tcp: tcp::read(section)?,
    }))
}

pub(super) static VIDEO: TrafficKind = TrafficKind {
    name: "video",
    doc: "Adaptive video over HTTP (as DASH): media rates chosen by throughput; rate, stalls and switches are results.",
    keys: &[ONE_WAY, &[&SEGMENT, &LADDER, &BUFFER], tcp::KEYS],
    read: Read::Group {
        kind: video,
        two_way: false,
    },
};

static SEGMENT: Key<Span> = Key {
    name: "segment",
    form: Span::AboveZero,
    default: Default::Is("4 s"),
    doc: "Media time of a segment.",
};
static LADDER: Key<Ladder> = Key {
    name: "ladder",
    form: Ladder,
    default: Default::Is(
        r#"["235 kbit/s", "375 kbit/s", "560 kbit/s", "750 kbit/s", "1050 kbit/s", "1750 kbit/s", "2350 kbit/s", "3 Mbit/s", "4300 kbit/s", "5800 kbit/s"]"#,
    ),
    doc: "The media rates that there are, rising.",
};
static BUFFER: Key<Span> = Key {
    name: "buffer",
    form: Span::AboveZero,
    default: Default::Is("30 s"),
    doc: "Media time that the player holds at most; at least a segment.",
};

fn video(section: &Section<'_>) -> Result<Kind, ReadError> {
    let (segment, buffer) = (section.get(&SEGMENT)?, section.get(&BUFFER)?);
    if buffer < segment {
        let given = section.given(BUFFER.name).or(section.given(SEGMENT.name));
        let error = |entry: crate::section::Entry<'_>| {
            entry.error(format!(
                "a buffer of \"{buffer}\" cannot hold a segment of \"{segment}\""
            ))
        };
        if let Some(entry) = given {
            return Err(error(entry));
        }
    }
    Ok(Kind::Video(Video {
        segment,
        buffer,
        ladder: section.get(&LADDER)?,
        tcp: tcp::read(section)?,
    }))
}
