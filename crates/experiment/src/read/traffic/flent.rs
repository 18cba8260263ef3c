//! Tests as Flent defines them (Høiland-Jørgensen et al. 2017): bulk TCP with probes beside it, made of other kinds.

use sojourn_units::Duration;

use super::forms::Rtts;
use super::{Read, SEVERAL, Times, TrafficKind};
use crate::error::ReadError;
use crate::form::{AnyKey, Default, Key};
use crate::forms::Span;
use crate::model::{Direction, EchoProtocol, Kind, Ping, Route, Tcp, Traffic};
use crate::read::tcp;
use crate::section::Section;

/// Code points: best effort, background, class selector 5, expedited forwarding.
const BE: u8 = 0;
const BK: u8 = 8;
const CS5: u8 = 40;
const EF: u8 = 46;

pub(super) static RRUL: TrafficKind = TrafficKind {
    name: "rrul",
    doc: "Flent's real-time response under load: a bulk TCP flow each way in CS0, CS1, CS5 and EF, a ping, and UDP probes in CS0, CS1 and EF.",
    keys: &[SEVERAL, &[&RTT], PROBE_KEYS, tcp::KEYS],
    read: Read::Groups(|section, times| rrul(section, times, [BE, BK, CS5, EF], [BE, BK, EF])),
};

pub(super) static RRUL_BE: TrafficKind = TrafficKind {
    name: "rrul_be",
    doc: "As rrul, everything best effort.",
    keys: &[SEVERAL, &[&RTT], PROBE_KEYS, tcp::KEYS],
    read: Read::Groups(|section, times| rrul(section, times, [BE; 4], [BE; 3])),
};

pub(super) static RTT_FAIR: TrafficKind = TrafficKind {
    name: "rtt_fair",
    doc: "Flent's RTT fairness: a bulk TCP flow each way to four hosts, two in CS0 and two in CS1, and a ping to each.",
    keys: &[SEVERAL, &[&FOUR], PROBE_KEYS, tcp::KEYS],
    read: Read::Groups(|section, times| {
        rtt_fair(section, times, &FOUR, &[BE, BE, BK, BK], Direction::Both)
    }),
};

pub(super) static RTT_FAIR4BE: TrafficKind = TrafficKind {
    name: "rtt_fair4be",
    doc: "As rtt_fair, everything best effort.",
    keys: &[SEVERAL, &[&FOUR], PROBE_KEYS, tcp::KEYS],
    read: Read::Groups(|section, times| rtt_fair(section, times, &FOUR, &[], Direction::Both)),
};

pub(super) static RTT_FAIR6BE: TrafficKind = TrafficKind {
    name: "rtt_fair6be",
    doc: "As rtt_fair4be, to six hosts.",
    keys: &[SEVERAL, &[&SIX], PROBE_KEYS, tcp::KEYS],
    read: Read::Groups(|section, times| rtt_fair(section, times, &SIX, &[], Direction::Both)),
};

pub(super) static RTT_FAIR_UP: TrafficKind = TrafficKind {
    name: "rtt_fair_up",
    doc: "As rtt_fair4be, upload only.",
    keys: &[SEVERAL, &[&FOUR], PROBE_KEYS, tcp::KEYS],
    read: Read::Groups(|section, times| rtt_fair(section, times, &FOUR, &[], Direction::Up)),
};

pub(super) static RTT_FAIR_VAR: TrafficKind = TrafficKind {
    name: "rtt_fair_var",
    doc: "As rtt_fair4be, to any number of hosts, and either way alone if direction says so.",
    keys: &[
        SEVERAL,
        &[&ANY, &super::DIRECTION_OF_BOTH],
        PROBE_KEYS,
        tcp::KEYS,
    ],
    read: Read::Groups(|section, times| {
        let direction = section.get(&super::DIRECTION_OF_BOTH)?;
        rtt_fair(section, times, &ANY, &[], direction)
    }),
};

static RTT: Key<Span> = Key {
    name: "rtt",
    form: Span::AboveZero,
    default: Default::Required,
    doc: "Base RTT of all flows: everything but the queue.",
};
const fn rtts(hosts: Option<usize>) -> Key<Rtts> {
    Key {
        name: "rtt",
        form: Rtts { hosts },
        default: Default::Required,
        doc: "Base RTTs to the hosts.",
    }
}
static FOUR: Key<Rtts> = rtts(Some(4));
static SIX: Key<Rtts> = rtts(Some(6));
static ANY: Key<Rtts> = rtts(None);

static INTERVAL: Key<Span> = Key {
    name: "interval",
    form: Span::AboveZero,
    default: Default::Is("200 ms"),
    doc: "Time between the requests of a probe (Flent's step).",
};
static IDLE: Key<Span> = Key {
    name: "idle",
    form: Span::Any,
    default: Default::Is("5 s"),
    doc: "How long the probes run before the load starts (Flent's delay).",
};
static PROBE_KEYS: &[&dyn AnyKey] = &[&INTERVAL, &IDLE];

/// The payload of a UDP probe: Flent's netperf sends a byte and waits for one.
const UDP_PROBE: u32 = 1;
/// The payload of an echo request, as `ping` sends it.
const ICMP_PROBE: u32 = 56;

/// What the groups of a test share.
struct Test {
    tcp: Tcp,
    interval: Duration,
    idle: Duration,
    times: Times,
}

impl Test {
    fn read(section: &Section<'_>, times: Times) -> Result<Self, ReadError> {
        Ok(Self {
            tcp: tcp::read(section)?,
            interval: section.get(&INTERVAL)?,
            idle: section.get(&IDLE)?,
            times,
        })
    }

    fn bulk(&self, rtt: Duration, dscp: u8, direction: Direction) -> Traffic {
        let (first, last) = self.times.start;
        Traffic {
            name: None,
            route: Route::default(),
            kind: Kind::Bulk(self.tcp.clone()),
            flows: 1,
            rtt,
            start: (first + self.idle, last + self.idle),
            stop: self.times.stop,
            direction,
            dscp,
            access: None,
        }
    }

    fn probe(&self, rtt: Duration, dscp: u8, protocol: EchoProtocol) -> Traffic {
        Traffic {
            name: None,
            route: Route::default(),
            kind: Kind::Ping(Ping {
                interval: self.interval,
                protocol,
                packet: match protocol {
                    EchoProtocol::Icmp => ICMP_PROBE,
                    EchoProtocol::Udp => UDP_PROBE,
                },
            }),
            flows: 1,
            rtt,
            start: self.times.start,
            stop: self.times.stop,
            direction: Direction::Down,
            dscp,
            access: None,
        }
    }
}

fn rrul(
    section: &Section<'_>,
    times: Times,
    load: [u8; 4],
    probes: [u8; 3],
) -> Result<Vec<Traffic>, ReadError> {
    let test = Test::read(section, times)?;
    let rtt = section.get(&RTT)?;
    let load = load.map(|dscp| test.bulk(rtt, dscp, Direction::Both));
    let udp = probes.map(|dscp| test.probe(rtt, dscp, EchoProtocol::Udp));
    let icmp = test.probe(rtt, BE, EchoProtocol::Icmp);
    Ok(load.into_iter().chain([icmp]).chain(udp).collect())
}

/// Marks are best effort where `marks` has none.
fn rtt_fair(
    section: &Section<'_>,
    times: Times,
    rtts: &Key<Rtts>,
    marks: &[u8],
    direction: Direction,
) -> Result<Vec<Traffic>, ReadError> {
    let test = Test::read(section, times)?;
    let rtts = section.get(rtts)?;
    let marks = marks.iter().copied().chain(std::iter::repeat(BE));
    let load = rtts
        .iter()
        .zip(marks)
        .map(|(rtt, dscp)| test.bulk(*rtt, dscp, direction));
    let pings = rtts
        .iter()
        .map(|rtt| test.probe(*rtt, BE, EchoProtocol::Icmp));
    Ok(load.chain(pings).collect())
}
