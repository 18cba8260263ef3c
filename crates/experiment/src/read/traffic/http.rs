//! Requests and responses: web browsing, video.

use super::forms::{Ladder, SizesForm};
use super::{Read, TrafficKind};
use crate::error::ReadError;
use crate::forms::{Bytes, Decimal, Maybe, Span, Whole};
use crate::keys::{Keys, keys};
use crate::model::{Browsing, Kind, Pages, Tcp, Video, Web};
use crate::section::Section;

pub(super) static WEB: TrafficKind = TrafficKind {
    name: "web",
    doc: "Web browsing: pages one after another, with their load times; if connections is given, the PackMime-HTTP model.",
    keys: || [PackMimeKeys::keys(), Pages::keys(), Tcp::keys()].concat(),
    read: Read::Group(web),
    two_way: false,
};

keys! {
    /// The keys of the PackMime-HTTP model.
    struct PackMimeKeys {
        /// New connections per second of each flow by the PackMime-HTTP model, which has its own sizes.
        connections: Option<f64> = Maybe(Decimal { above: 0.0, to: 10_000.0 }), Words("pages one after another");
    }
}

keys! {
    Pages {
        /// Objects per page, the document included.
        objects = Whole { from: 1, to: 10_000 }, Is("110");
        /// Size of each object: one size, a list or a distribution, as for files.
        sizes as "size" = SizesForm, Is("27 kB");
        /// Most connections that fetch a page; they are persistent.
        parallel = Whole { from: 1, to: 256 }, Is("6");
        /// Size of a request.
        request = Bytes { from: 1, to: 1_000_000 }, Is("400 B");
        /// Mean time from the end of one page to the start of the next, exponentially distributed.
        think = Span::Any, Is("1 s");
    }
}

fn web(section: &Section<'_>) -> Result<Kind, ReadError> {
    let given = || {
        Pages::names()
            .into_iter()
            .find_map(|key| section.given(key))
    };
    let browsing = match PackMimeKeys::read(section)?.connections {
        Some(rate) => match given() {
            Some(key) => {
                return Err(key.refuse(
                    "left out: connections selects the PackMime model, which has its own",
                ));
            }
            None => Browsing::PackMime(rate),
        },
        None => Browsing::Pages(Pages::read(section)?),
    };
    Ok(Kind::Web(Web {
        browsing,
        tcp: Tcp::read(section)?,
    }))
}

pub(super) fn write_web(web: &Web, table: &mut serde_json::Value) {
    match &web.browsing {
        Browsing::Pages(pages) => pages.write(table),
        Browsing::PackMime(rate) => {
            let connections = Some(*rate);
            PackMimeKeys { connections }.write(table);
        }
    }
}

pub(super) static VIDEO: TrafficKind = TrafficKind {
    name: "video",
    doc: "Adaptive video over HTTP (as DASH): media rates chosen by throughput; rate, stalls and switches are results.",
    keys: Video::keys,
    read: Read::Group(|section| Video::read(section).map(Kind::Video)),
    two_way: false,
};

keys! {
    Video {
        /// Media time of a segment.
        segment = Span::AboveZero, Is("4 s");
        /// The available media rates, in increasing order.
        ladder = Ladder, Is(LADDER);
        /// Most media time that the player buffers; at least a segment.
        buffer = Span::AboveZero, Is("30 s");
    }
    with tcp: Tcp
    ; check check_video
}

const LADDER: &str = r#"["235 kbit/s", "375 kbit/s", "560 kbit/s", "750 kbit/s", "1050 kbit/s", "1750 kbit/s", "2350 kbit/s", "3 Mbit/s", "4300 kbit/s", "5800 kbit/s"]"#;

fn check_video(video: &Video, section: &Section<'_>) -> Result<(), ReadError> {
    let (segment, buffer) = (video.segment, video.buffer);
    let given = section.given("buffer").or(section.given("segment"));
    match given {
        Some(given) if buffer < segment => Err(given.error(format!(
            "a buffer of \"{buffer}\" cannot hold a segment of \"{segment}\""
        ))),
        _ => Ok(()),
    }
}
