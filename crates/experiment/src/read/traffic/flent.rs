//! Flent's tests (Høiland-Jørgensen et al. 2017): bulk TCP with probes, composed of other kinds.

use sojourn_units::Duration;

use super::datagrams::Timer;
use super::forms::Rtts;
use super::{DIRECTION, Read, Times, TrafficKind};
use crate::error::ReadError;
use crate::form::AnyKey;
use crate::forms::{Span, Whole};
use crate::keys::{Keys, keys};
use crate::model::{Direction, EchoProtocol, Kind, Outcome, Ping, Route, Tcp, Traffic};
use crate::section::Section;

/// Code points: best effort, background, class selector 5, expedited forwarding.
const BE: u8 = 0;
const BK: u8 = 8;
const CS5: u8 = 40;
const EF: u8 = 46;

pub(super) static RRUL: TrafficKind = TrafficKind {
    name: "rrul",
    doc: "Flent's real-time response under load: a bulk TCP flow each way in CS0, CS1, CS5 and EF, a ping, and UDP probes in CS0, CS1 and EF.",
    keys: keys_of::<OneRtt>,
    read: Read::Groups(|section, times| rrul(section, times, [BE, BK, CS5, EF], [BE, BK, EF])),
    two_way: false,
};

pub(super) static RRUL_BE: TrafficKind = TrafficKind {
    name: "rrul_be",
    doc: "As rrul, everything best effort.",
    keys: keys_of::<OneRtt>,
    read: Read::Groups(|section, times| rrul(section, times, [BE; 4], [BE; 3])),
    two_way: false,
};

pub(super) static RTT_FAIR: TrafficKind = TrafficKind {
    name: "rtt_fair",
    doc: "Flent's RTT fairness: a bulk TCP flow each way to four hosts, two in CS0 and two in CS1, and a ping to each.",
    keys: keys_of::<FourHosts>,
    read: Read::Groups(|section, times| {
        rtt_fair(
            section,
            times,
            FourHosts::read(section)?.rtt,
            &[BE, BE, BK, BK],
            Direction::Both,
        )
    }),
    two_way: false,
};

pub(super) static RTT_FAIR4BE: TrafficKind = TrafficKind {
    name: "rtt_fair4be",
    doc: "As rtt_fair, everything best effort.",
    keys: keys_of::<FourHosts>,
    read: Read::Groups(|section, times| {
        rtt_fair(
            section,
            times,
            FourHosts::read(section)?.rtt,
            &[],
            Direction::Both,
        )
    }),
    two_way: false,
};

pub(super) static RTT_FAIR6BE: TrafficKind = TrafficKind {
    name: "rtt_fair6be",
    doc: "As rtt_fair4be, to six hosts.",
    keys: keys_of::<SixHosts>,
    read: Read::Groups(|section, times| {
        rtt_fair(
            section,
            times,
            SixHosts::read(section)?.rtt,
            &[],
            Direction::Both,
        )
    }),
    two_way: false,
};

pub(super) static RTT_FAIR_UP: TrafficKind = TrafficKind {
    name: "rtt_fair_up",
    doc: "As rtt_fair4be, upload only.",
    keys: keys_of::<FourHosts>,
    read: Read::Groups(|section, times| {
        rtt_fair(
            section,
            times,
            FourHosts::read(section)?.rtt,
            &[],
            Direction::Up,
        )
    }),
    two_way: false,
};

pub(super) static RTT_FAIR_VAR: TrafficKind = TrafficKind {
    name: "rtt_fair_var",
    doc: "As rtt_fair4be, to any number of hosts; with direction = \"down\" or \"up\" in that direction only.",
    keys: keys_of::<AnyHosts>,
    read: Read::Groups(|section, times| {
        let AnyHosts { rtt, direction } = AnyHosts::read(section)?;
        rtt_fair(section, times, rtt, &[], direction)
    }),
    two_way: false,
};

pub(super) static SPEED_TEST: TrafficKind = TrafficKind {
    name: "speed_test",
    doc: "A speed test in a browser: pings on an idle line, then several TCP flows down, then as many up, each beside pings. Its groups are ping idle, download, ping down, upload and ping up.",
    keys: || [Load::keys(), Timer::keys(), TestKeys::keys()].concat(),
    read: Read::Groups(speed_test),
    two_way: false,
};

keys! {
    /// The keys of a speed test beside those of every test.
    struct Load {
        /// Base RTT of all flows: everything but queueing.
        rtt: Duration = Span::AboveZero, Required;
        /// TCP flows at a time.
        flows: u32 = Whole { from: 1, to: 1000 }, Is("4");
        /// How long each direction is tested.
        load: Duration = Span::AboveZero, Is("10 s");
    }
}

/// The flows down begin after the idle time, those up when these have ended.
fn speed_test(section: &Section<'_>, times: Times) -> Result<Vec<Traffic>, ReadError> {
    let test = Test::read(section, times)?;
    let Load { rtt, flows, load } = Load::read(section)?;
    let idle = test.keys.idle;
    let (first, last) = test.times.start;
    let phase = |name: &str, group: Traffic, after: Duration, lasts: Duration| Traffic {
        name: Some(name.to_string()),
        start: (first + after, last + after),
        stop: group.stop.min(last + after + lasts),
        ..group
    };
    let way = |name, direction, after| {
        let group = test.bulk(rtt, BE, direction);
        phase(name, Traffic { flows, ..group }, after, load)
    };
    let probe = |name, after, lasts| {
        let group = test.probe(rtt, BE, EchoProtocol::Icmp);
        phase(name, group, after, lasts)
    };
    let before = (idle > Duration::ZERO).then(|| probe("ping idle", Duration::ZERO, idle));
    let loaded = [
        way("download", Direction::Down, idle),
        probe("ping down", idle, load),
        way("upload", Direction::Up, idle + load),
        probe("ping up", idle + load, load),
    ];
    Ok(before.into_iter().chain(loaded).collect())
}

keys! {
    /// The key for one base RTT.
    struct OneRtt {
        /// Base RTT of all flows: everything but queueing.
        rtt: Duration = Span::AboveZero, Required;
    }
}
keys! {
    /// The key for four base RTTs.
    struct FourHosts {
        /// Base RTTs to the hosts.
        rtt: Vec<Duration> = Rtts { hosts: Some(4) }, Required;
    }
}
keys! {
    /// The key for six base RTTs.
    struct SixHosts {
        /// Base RTTs to the hosts.
        rtt: Vec<Duration> = Rtts { hosts: Some(6) }, Required;
    }
}
keys! {
    /// The keys for any number of base RTTs.
    struct AnyHosts {
        /// Base RTTs to the hosts.
        rtt: Vec<Duration> = Rtts { hosts: None }, Required;
        /// Direction of the data; both: the same flows in each direction.
        direction: Direction = DIRECTION, Is("both");
    }
}
keys! {
    /// The keys that all groups of a test share.
    struct TestKeys {
        /// Time between the requests of a probe (Flent's step).
        interval: Duration = Span::AboveZero, Is("200 ms");
        /// How long the probes run before the load starts (Flent's delay).
        idle: Duration = Span::Any, Is("5 s");
    }
    with tcp: Tcp
}

/// The keys of a test whose RTTs are declared by `R`.
fn keys_of<R: Keys>() -> Vec<&'static dyn AnyKey> {
    [R::keys(), Timer::keys(), TestKeys::keys()].concat()
}

/// The payload of a UDP probe: Flent's netperf sends one byte and waits for one.
const UDP_PROBE: u32 = 1;
/// The payload of an echo request, as `ping` sends it.
const ICMP_PROBE: u32 = 56;

/// A test whose groups are being built.
struct Test {
    keys: TestKeys,
    timer: Timer,
    times: Times,
}

impl Test {
    fn read(section: &Section<'_>, times: Times) -> Result<Self, ReadError> {
        let keys = TestKeys::read(section)?;
        let timer = Timer::read(section)?;
        Ok(Self { keys, timer, times })
    }

    fn bulk(&self, rtt: Duration, dscp: u8, direction: Direction) -> Traffic {
        let (first, last) = self.times.start;
        Traffic {
            name: None,
            total: None,
            host: None,
            class: None,
            route: Route::default(),
            kind: Kind::Bulk(self.keys.tcp.clone()),
            flows: 1,
            rtt,
            start: (first + self.keys.idle, last + self.keys.idle),
            stop: self.times.end(),
            late_stop: None,
            direction,
            dscp,
            access: None,
            jitter: None,
            outcome: Outcome::default(),
        }
    }

    fn probe(&self, rtt: Duration, dscp: u8, protocol: EchoProtocol) -> Traffic {
        Traffic {
            name: None,
            total: None,
            host: None,
            class: None,
            route: Route::default(),
            kind: Kind::Ping(Ping {
                interval: self.keys.interval,
                protocol,
                packet: match protocol {
                    EchoProtocol::Icmp => ICMP_PROBE,
                    EchoProtocol::Udp => UDP_PROBE,
                },
            }),
            flows: 1,
            rtt,
            start: self.times.start,
            stop: self.times.end(),
            late_stop: None,
            direction: Direction::Down,
            dscp,
            access: None,
            jitter: self.timer.jitter,
            outcome: Outcome::default(),
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
    let rtt = OneRtt::read(section)?.rtt;
    let load = load.map(|dscp| test.bulk(rtt, dscp, Direction::Both));
    let udp = probes.map(|dscp| test.probe(rtt, dscp, EchoProtocol::Udp));
    let icmp = test.probe(rtt, BE, EchoProtocol::Icmp);
    Ok(load.into_iter().chain([icmp]).chain(udp).collect())
}

/// `code_points` are those of the first hosts; the others use best effort.
fn rtt_fair(
    section: &Section<'_>,
    times: Times,
    rtts: Vec<Duration>,
    code_points: &[u8],
    direction: Direction,
) -> Result<Vec<Traffic>, ReadError> {
    let test = Test::read(section, times)?;
    let code_points = code_points.iter().copied().chain(std::iter::repeat(BE));
    let load = rtts
        .iter()
        .zip(code_points)
        .map(|(rtt, dscp)| test.bulk(*rtt, dscp, direction));
    let pings = rtts
        .iter()
        .map(|rtt| test.probe(*rtt, BE, EchoProtocol::Icmp));
    // The load and the ping of each host, by its number.
    let with_host = |(host, group): (usize, Traffic)| Traffic {
        host: Some(host.to_string()),
        ..group
    };
    let load = load.enumerate().map(with_host);
    Ok(load.chain(pings.enumerate().map(with_host)).collect())
}
