//! One-way transfers: bulk, files, on-off.

use sojourn_units::{Duration, Rate};

use super::datagrams::{PAYLOAD, Timer};
use super::forms::SizesForm;
use super::{Read, TrafficKind};
use crate::error::ReadError;
use crate::forms::{Bytes, Decimal, Maybe, Span, Speed, Whole, Word};
use crate::keys::{Keys, keys};
use crate::model::{Files, Kind, OnOff, Pace, Sizes, Tcp, Times, Transport};
use crate::section::Section;

pub(super) static BULK: TrafficKind = TrafficKind {
    name: "bulk",
    doc: "TCP that always has more to send. It connects two round trips before its start, or before the run; then 8 bytes come before its data, if the initial window has two segments or more.",
    keys: Tcp::keys,
    read: Read::Group(|section| Tcp::read(section).map(Kind::Bulk)),
    two_way: false,
};

pub(super) static FILES: TrafficKind = TrafficKind {
    name: "files",
    doc: "Files, each on a TCP connection of its own: one after another, or as they arrive.",
    keys: FilesKeys::keys,
    read: Read::Group(|section| FilesKeys::read(section).map(|keys| Kind::Files(keys.into()))),
    two_way: false,
};

keys! {
    /// The keys of files.
    struct FilesKeys {
        /// Size of each file: one size, a list from which sizes are drawn uniformly, or a distribution: { distribution
        /// = "pareto", mean = "50 kB", shape = 1.5 }, exponential (mean), lognormal (median, sigma) or uniform (min,
        /// max).
        size: Sizes = SizesForm, Required;
        /// Files per flow.
        count: Option<u64> = Maybe(Whole { from: 1, to: 1_000_000_000 }), Words("as many as fit until the stop");
        /// Mean time from the end of one file to the start of the next, exponentially distributed.
        think: Option<Duration> = Maybe(Span::Any), Is("0 s");
        /// Files per second and flow as a Poisson process, whether or not earlier files have finished; excludes think.
        arrivals: Option<f64> = Maybe(Decimal { above: 0.0, to: 100_000.0 }), Words("each file follows the one before");
    }
    with tcp: Tcp
    ; check check_files
}

fn check_files(files: &FilesKeys, section: &Section<'_>) -> Result<(), ReadError> {
    match (files.arrivals, section.given("think")) {
        (Some(_), Some(think)) => {
            Err(think.refuse("left out: with arrivals no file waits for another"))
        }
        _ => Ok(()),
    }
}

impl From<FilesKeys> for Files {
    fn from(keys: FilesKeys) -> Self {
        Self {
            sizes: keys.size,
            count: keys.count,
            pace: match keys.arrivals {
                Some(arrivals) => Pace::Arrivals(arrivals),
                None => Pace::Think(keys.think.unwrap_or(Duration::ZERO)),
            },
            tcp: keys.tcp,
        }
    }
}

impl From<&Files> for FilesKeys {
    fn from(files: &Files) -> Self {
        let (think, arrivals) = match files.pace {
            Pace::Think(think) => (Some(think), None),
            Pace::Arrivals(arrivals) => (None, Some(arrivals)),
        };
        Self {
            size: files.sizes.clone(),
            count: files.count,
            think,
            arrivals,
            tcp: files.tcp.clone(),
        }
    }
}

pub(super) static ONOFF: TrafficKind = TrafficKind {
    name: "onoff",
    doc: "UDP or TCP that sends at times and is silent at others.",
    keys: || [OnOffKeys::keys(), Timer::keys(), Tcp::keys()].concat(),
    read: Read::Group(onoff),
    two_way: false,
};

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Protocol {
    Udp,
    Tcp,
}

keys! {
    /// The keys of on-off traffic besides those of TCP.
    struct OnOffKeys {
        /// Transport protocol; the options of TCP need tcp.
        transport: Protocol = TRANSPORT, Is("udp");
        /// Rate of the payload while on; with tcp the rate at which the application writes to one connection.
        rate: Option<Rate> = Maybe(Speed), Words("udp needs a rate; without one, tcp opens a connection for each on time and always has data to send");
        /// Payload of a datagram, or size of a write of the application.
        packet: u32 = PAYLOAD, Is("1448 B");
        /// Send buffer of an application that writes at a rate: the most unacknowledged bytes; a write that does not
        /// fit is lost.
        send_buffer: Option<u64> = Maybe(Bytes { from: 64, to: 1_000_000_000_000 }), Words("unlimited");
        /// Mean duration of an on time.
        on: Duration = Span::AboveZero, Is("1 s");
        /// Mean duration of an off time; 0 s: always on.
        off: Duration = Span::Any, Is("1 s");
        /// Distribution of the on and off times.
        times: Times = TIMES, Is("exponential");
    }
}

const TRANSPORT: Word<Protocol> = Word(&[("udp", Protocol::Udp), ("tcp", Protocol::Tcp)]);
const TIMES: Word<Times> = Word(&[("exponential", Times::Exponential), ("fixed", Times::Fixed)]);

fn onoff(section: &Section<'_>) -> Result<Kind, ReadError> {
    let keys = OnOffKeys::read(section)?;
    let transport = match (keys.transport, keys.rate) {
        (Protocol::Tcp, rate) => Transport::Tcp(Tcp::read(section)?, rate),
        (Protocol::Udp, None) => return Err(section.missing("rate", &Speed)),
        (Protocol::Udp, Some(rate)) => {
            let option = Tcp::names().into_iter().find_map(|key| section.given(key));
            match option {
                Some(option) => return Err(option.refuse("left out: needs transport = \"tcp\"")),
                None => Transport::Udp(rate),
            }
        }
    };
    let packet = keys.packet;
    if let (Some(bytes), Some(given)) = (keys.send_buffer, section.given("send_buffer")) {
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
        send_buffer: keys.send_buffer,
        on: keys.on,
        off: keys.off,
        times: keys.times,
    }))
}

impl From<&OnOff> for OnOffKeys {
    fn from(onoff: &OnOff) -> Self {
        let (transport, rate) = match &onoff.transport {
            Transport::Udp(rate) => (Protocol::Udp, Some(*rate)),
            Transport::Tcp(_, rate) => (Protocol::Tcp, *rate),
        };
        Self {
            transport,
            rate,
            packet: onoff.packet,
            send_buffer: onoff.send_buffer,
            on: onoff.on,
            off: onoff.off,
            times: onoff.times,
        }
    }
}
