//! Decisions of Linux's own mac80211, replayed: at every request of the kernel's driver our queues must choose the same
//! queue of the same station, and give the same frame of it.
//!
//! `validation/wifi_kernel.py` records them (`docs/results/wifi-kernel.md`). A trace has lines of a name and its values
//! (`kernel`, `stations`, `limit`, `memory`, `aql`, `fairness`, and `flow` with a port and its hash; with A-MSDU `amsdu`, by station
//! the most bytes and packets, and `amsdu-tid`, by user priority the most bytes, 0 for no limit), an empty line, and the events. An event is a letter, the nanoseconds since the one before, and:
//!
//! | letter | event | values |
//! | --- | --- | --- |
//! | A | a packet enters mac80211 | station, port, number, bytes as Ethernet, DS field |
//! | P | the driver asks for a queue of a category | its station, or 0 for none; its user priority, or one of the category |
//! | F | the driver gets a frame of it | port, number, ECN field, bytes, estimate of its airtime in µs |
//! | M | a further packet of this frame, an A-MSDU | port, number, ECN field |
//! | E | it gets no further frame of it | |
//! | R | the queue's turn is over | |
//! | D | a transmission has left the air | station, frames, airtime in µs, user priority |

extern crate std;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use std::io::Read;

use sojourn_aqm::{Datagram, DropReason, Ecn, Environment, FlowKey};
use sojourn_units::{Duration, Time};

use super::{Amsdu, FqSettings, Frame, Mac80211, PRIORITIES, Peer, Settings, queue_of};
use crate::access::{PriorityMap, UserPriority};
use crate::phy::{Dsss, Guard, Ht, Mode, Ofdm, Preamble, Width};

/// The kernel's estimate of a frame's airtime, in µs, before a station's first transmission has told the rate. (With a driver
/// whose rates mac80211 controls, it knows the rate from the start.)
const UNKNOWN: u32 = 0;

/// A packet with its port and number.
type Packet = Datagram<(u32, u32)>;

fn named(packet: &Packet) -> String {
    let (port, number) = packet.payload;
    format!("{port}/{number} with ECN {}", packet.ecn.bits())
}

/// A rate as a trace names it.
fn mode(name: &str) -> Mode {
    match name.strip_prefix("mcs") {
        Some(index) => {
            let index: u8 = index.parse().expect("an index");
            let ht = Ht::new(index % 8, index / 8 + 1, Width::Mhz20, Guard::Long);
            Mode::Ht(ht.expect("exists"))
        }
        None => {
            let mbps: f64 = name.parse().expect("a rate");
            let bps = (mbps * 1e6) as u64;
            let dsss = Dsss::ALL.iter().find(|dsss| dsss.rate().as_bps() == bps);
            let ofdm = Ofdm::ALL.iter().find(|ofdm| ofdm.rate().as_bps() == bps);
            match (dsss, ofdm) {
                (Some(&dsss), _) => Mode::Dsss(dsss, Preamble::Long),
                (_, Some(&ofdm)) => Mode::Ofdm(ofdm),
                _ => panic!("no rate: {name}"),
            }
        }
    }
}

/// A-MSDUs without a limit.
const ANY: Amsdu = Amsdu {
    bytes: u32::MAX,
    packets: u32::MAX,
};

/// The limits of a station's A-MSDUs as a trace has them.
fn limits(text: &str) -> Amsdu {
    let (bytes, packets) = text.split_once(',').expect("bytes and packets");
    let number = |text: &str| text.parse().expect("a number");
    Amsdu {
        bytes: number(bytes),
        packets: number(packets),
    }
}

/// How a replay went.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    arrivals: usize,
    /// Choices of a queue, and frames or their absence.
    decisions: usize,
    wrong: usize,
    estimates: usize,
    wrong_estimates: usize,
    /// Frames that the kernel has marked, and packets that it has dropped.
    marked: usize,
    dropped: usize,
    dropped_by_codel: usize,
    /// What is queued at the end: packets, and frames.
    waiting: usize,
    waiting_frames: usize,
    /// Packets that are not the first of their frame.
    joined: usize,
    first: Option<String>,
}

struct Replay {
    queues: Mac80211<Packet>,
    env: Environment<Packet>,
    frame: FqSettings,
    modes: Vec<Mode>,
    /// Whether the kernel has heard yet at which rate a station's frames were sent.
    knows: Vec<bool>,
    /// AQL's estimates of the frames in the device, by queue.
    held: Vec<VecDeque<u32>>,
    priorities: PriorityMap,
    /// The queue whose turn it is.
    chosen: Option<Peer>,
    /// The further packets of the last frame, of which the kernel's are not known yet.
    more: VecDeque<Packet>,
    outcome: Outcome,
}

impl Replay {
    fn check(&mut self, line: usize, kernel: String, ours: String) {
        self.outcome.decisions += 1;
        if kernel != ours {
            self.outcome.wrong += 1;
            let first = || format!("line {line}: the kernel {kernel}, ours {ours}");
            self.outcome.first.get_or_insert_with(first);
        }
    }

    fn event(&mut self, line: usize, kind: &str, values: &[u32], now: Time) {
        if kind != "M" && !self.more.is_empty() {
            let ours = format!("has {} more packets in the frame", self.more.len());
            self.more.clear();
            self.check(line, "has no more".into(), ours);
        }
        match (kind, values) {
            ("A", &[station, port, number, bytes, field]) => {
                self.outcome.arrivals += 1;
                let key = FlowKey {
                    source: port,
                    ..FlowKey::default()
                };
                let packet = Datagram::new((port, number), bytes)
                    .with_ecn(Ecn::from_bits(field as u8 & 3))
                    .with_flow(key);
                let priority = self.priorities.priority(field as u8 >> 2);
                let peer = (station as usize - 1, priority);
                self.queues.enqueue(packet, peer, now, &mut self.env);
            }
            ("P", &[station, priority]) => {
                let priority = UserPriority::new(priority as u8);
                let access = priority.access();
                let ours = self.queues.next_peer(access, |_| true, |_| false);
                let kernels = (station as usize).checked_sub(1).map(|at| (at, priority));
                let choice = |chosen: Option<Peer>| match chosen {
                    Some((at, priority)) => format!("chooses {}/{}", at + 1, priority.number()),
                    None => format!("chooses none in {access:?}"),
                };
                self.check(line, choice(kernels), choice(ours));
                self.chosen = kernels;
            }
            ("F", &[port, number, field, bytes, estimate]) => {
                let kernel = format!("sends {port}/{number} with ECN {field}, {bytes} B");
                self.outcome.marked += usize::from(field == 3);
                let ours = match self.dequeue(now) {
                    Some(taken) => {
                        self.outcome.estimates += 1;
                        self.outcome.wrong_estimates += usize::from(taken.estimate != estimate);
                        let bytes = self.frame.frame(taken.bytes);
                        self.more = taken.more.into();
                        format!("sends {}, {bytes} B", named(&taken.packet))
                    }
                    None => "sends nothing".into(),
                };
                self.check(line, kernel, ours);
            }
            ("M", &[port, number, field]) => {
                self.outcome.joined += 1;
                self.outcome.marked += usize::from(field == 3);
                let kernel = format!("with {port}/{number} with ECN {field}");
                let ours = match self.more.pop_front() {
                    Some(packet) => format!("with {}", named(&packet)),
                    None => "has no more".into(),
                };
                self.check(line, kernel, ours);
            }
            ("E", []) => {
                let ours = match self.dequeue(now) {
                    Some(taken) => format!("sends {}", named(&taken.packet)),
                    None => "sends nothing".into(),
                };
                self.check(line, "sends nothing".into(), ours);
            }
            ("R", []) => {
                let peer = self.chosen.take().expect("a queue was chosen");
                self.queues.end_turn(peer, false, now);
            }
            ("D", &[station, frames, airtime, priority]) => {
                let at = station as usize - 1;
                let peer = (at, UserPriority::new(priority as u8));
                let airtime = Duration::from_micros(u64::from(airtime));
                let rate = self.modes[at].rate().as_bps();
                self.queues.note_rate(at, rate);
                self.queues.charge(peer, airtime, false, now);
                for _ in 0..frames {
                    if let Some(estimate) = self.held[queue_of(peer)].pop_front() {
                        self.queues.release(peer, estimate);
                    }
                }
                self.knows[at] = true;
            }
            _ => panic!("line {line}: no event: {kind} {values:?}"),
        }
    }

    fn dequeue(&mut self, now: Time) -> Option<Frame<Packet>> {
        let peer = self.chosen.expect("a queue was chosen");
        let mode = self.modes[peer.0];
        let mut taken = self
            .queues
            .dequeue(peer, mode, |_| true, now, &mut self.env, |_| {})?;
        if let Some(aql) = self.queues.aql.as_mut().filter(|_| !self.knows[peer.0]) {
            aql.release(queue_of(peer), taken.estimate);
            taken.estimate = UNKNOWN;
            aql.hold(queue_of(peer), taken.estimate);
        }
        self.held[queue_of(peer)].push_back(taken.estimate);
        Some(taken)
    }
}

/// Replays a trace through the queues of a kernel version.
fn replay(trace: &[u8], kernel: (u32, u32)) -> Outcome {
    let mut text = String::new();
    flate2::read::GzDecoder::new(trace)
        .read_to_string(&mut text)
        .expect("a compressed text");
    let mut lines = (1..).zip(text.lines());
    let mut settings = Settings::of_kernel(kernel.0, kernel.1);
    let mut modes = Vec::new();
    let mut hashes = BTreeMap::new();
    let (mut amsdu, mut most_of_priority) = (Vec::new(), [u32::MAX; PRIORITIES]);
    for (_, line) in lines.by_ref().take_while(|(_, line)| !line.is_empty()) {
        let (name, values) = line.split_once(' ').expect("a name and values");
        let numbers = || values.split(' ').map(|value| value.parse::<u64>());
        match name {
            "stations" => modes.extend(values.split(' ').map(mode)),
            "limit" => settings.fq.packets = values.parse().expect("packets"),
            "memory" => settings.fq.memory = values.parse().expect("bytes"),
            "aql" if values == "0" => settings.aql = None,
            "fairness" if values == "0" => settings.airtime_quantum = None,
            "amsdu" => {
                settings.fq.amsdu = Some(ANY);
                amsdu.extend(values.split(' ').map(limits));
            }
            "amsdu-tid" => {
                for (number, bytes) in (0..).zip(numbers()) {
                    let most = bytes.expect("bytes").checked_sub(1);
                    most_of_priority[UserPriority::new(number).index()] =
                        most.map_or(u32::MAX, |less| less as u32 + 1);
                }
            }
            "flow" => {
                let numbers: Vec<u64> = numbers().collect::<Result<_, _>>().expect("numbers");
                hashes.insert(numbers[0] as u32, numbers[1] as u32);
            }
            _ => {}
        }
    }
    let stations = modes.len();
    let mut queues = Mac80211::new(settings, None, stations);
    queues.hash_as(hashes);
    for (station, limits) in amsdu.into_iter().enumerate() {
        for priority in UserPriority::ALL {
            let bytes = limits.bytes.min(most_of_priority[priority.index()]);
            queues.limit_amsdu_of(queue_of((station, priority)), Amsdu { bytes, ..limits });
        }
    }
    let mut replay = Replay {
        queues,
        frame: settings.fq,
        env: Environment::new(1),
        knows: vec![false; stations],
        held: vec![VecDeque::new(); PRIORITIES * stations],
        priorities: PriorityMap::of_kernel(kernel.0, kernel.1),
        modes,
        chosen: None,
        more: VecDeque::new(),
        outcome: Outcome::default(),
    };
    let mut now = Time::ZERO;
    for (number, line) in lines {
        let mut words = line.split(' ');
        let kind = words.next().unwrap_or_default();
        let values = words.map(|word| word.parse::<u64>());
        let values: Vec<u64> = values.collect::<Result<_, _>>().expect("numbers");
        now += Duration::from_nanos(values[0]);
        let values: Vec<u32> = values[1..].iter().map(|&value| value as u32).collect();
        replay.event(number, kind, &values, now);
    }
    let outcome = &mut replay.outcome;
    for (_, why) in replay.env.take_dropped() {
        outcome.dropped += 1;
        outcome.dropped_by_codel += usize::from(why == DropReason::Aqm);
    }
    outcome.waiting = replay.queues.packets() as usize;
    outcome.waiting_frames = replay.queues.frames() as usize;
    replay.outcome
}

/// A trace of the folder `tests/data`.
macro_rules! trace {
    ($name:literal) => {
        (
            $name,
            include_bytes!(concat!("../../../tests/data/", $name, ".txt.gz")).as_slice(),
        )
    };
}

const TRACES: [(&str, &[u8]); 25] = [
    trace!("three"),
    trace!("three-turns"),
    trace!("three-deep"),
    trace!("three-no-aql"),
    trace!("three-frames"),
    trace!("codel"),
    trace!("thirty"),
    trace!("bursts"),
    trace!("limit"),
    trace!("collisions"),
    trace!("rates"),
    trace!("categories"),
    trace!("code-points"),
    trace!("priorities"),
    trace!("priorities-all"),
    trace!("priorities-frames"),
    trace!("priorities-collisions"),
    trace!("amsdu"),
    trace!("amsdu-sizes"),
    trace!("amsdu-codel"),
    trace!("amsdu-limit"),
    trace!("amsdu-memory"),
    trace!("amsdu-priorities"),
    trace!("amsdu-collisions"),
    trace!("amsdu-bursts"),
];

#[test]
fn every_decision_is_the_kernels() {
    let outcomes = TRACES.map(|(name, trace)| (name, replay(trace, (7, 2))));
    for (name, outcome) in &outcomes {
        // `validation/wifi_kernel.py` reads this.
        std::println!("{name}: {outcome:?}");
    }
    for (name, outcome) in &outcomes {
        let wrong = (outcome.wrong, outcome.wrong_estimates);
        assert_eq!(wrong, (0, 0), "{name}: {outcome:?}");
    }
    let sum = |of: fn(&Outcome) -> usize| outcomes.iter().map(|(_, outcome)| of(outcome)).sum();
    let (decisions, dropped, marked, joined): (usize, usize, usize, usize) = (
        sum(|outcome| outcome.decisions),
        sum(|outcome| outcome.dropped),
        sum(|outcome| outcome.marked),
        sum(|outcome| outcome.joined),
    );
    assert!(decisions > 50_000 && dropped > 5_000 && marked > 500 && joined > 10_000);
}

#[test]
fn another_kernels_rules_are_seen_to_differ() {
    // Linux 5.13 has neither the limit per category nor the places of stations that owe airtime.
    let differing = TRACES
        .iter()
        .filter(|(_, trace)| replay(trace, (5, 13)).wrong > 0);
    assert!(differing.count() > 5);
}

/// More traces, in a folder: `validation/wifi_kernel.py` makes them at random.
#[test]
#[ignore = "needs SOJOURN_TRACES, a folder of traces"]
fn every_decision_of_a_folder_is_the_kernels() {
    let folder = std::env::var_os("SOJOURN_TRACES").expect("a folder");
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        let trace = std::fs::read(&path).expect("readable");
        let name = path.file_stem().unwrap_or_default().display();
        std::println!("{name}: {:?}", replay(&trace, (7, 2)));
    }
}
