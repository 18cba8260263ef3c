//! Two endpoints over a network that loses, duplicates, delays, reorders and marks packets. In every case the bytes
//! arrive, the connection ends, and no window is exceeded.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;

use proptest::prelude::*;
use sojourn_tcp::cc::{Algorithm, Catalogue};
use sojourn_tcp::config::{Abe, Clock, Kernel, Recovery};
use sojourn_tcp::segment::Flags;
use sojourn_tcp::seq::Seq;
use sojourn_tcp::{Arrival, Config, Endpoint, Segment};
use sojourn_units::{Duration, Time};

/// What the network does to one packet. The list of fates applies to the packets in order and then repeats.
#[derive(Clone, Copy)]
struct Fate {
    /// Copies that arrive: none, one or two.
    copies: usize,
    /// One-way delay of each copy, in milliseconds.
    delays: [u64; 2],
    mark: bool,
}

/// The delays of the copies that arrive, in brackets; `!` if marked.
impl fmt::Debug for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.mark { "!" } else { "" };
        write!(f, "{:?}{mark}", &self.delays[..self.copies])
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    let copies = prop_oneof![2 => Just(0_usize), 12 => Just(1), 1 => Just(2)];
    let delay = || prop_oneof![6 => Just(10_u64), 2 => 10_u64..30, 1 => 10_u64..400];
    (copies, delay(), delay(), prop::bool::weighted(0.1)).prop_map(
        |(copies, first, second, mark)| Fate {
            copies,
            delays: [first, second],
            mark,
        },
    )
}

#[derive(Clone)]
struct Trial {
    config: Config,
    algorithm: Named,
    iss: [u32; 2],
    bytes: [u64; 2],
    /// Pauses in milliseconds that the first end makes between writes of equal size.
    pauses: Vec<u64>,
    fates: Vec<Fate>,
}

/// On one line, whatever the form asked for.
impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            config,
            algorithm,
            iss,
            bytes,
            pauses,
            fates,
        } = self;
        let fates: Vec<String> = fates.iter().map(|fate| format!("{fate:?}")).collect();
        write!(
            f,
            "{algorithm:?}, {config:?}, iss {iss:?}, bytes {bytes:?}, pauses {pauses:?}, fates {}",
            fates.join(" ")
        )
    }
}

/// An algorithm, shown by its name.
#[derive(Clone)]
struct Named(Algorithm);

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

fn trial() -> impl Strategy<Value = Trial> {
    let config = (
        prop_oneof![Just(64_u16), Just(536), Just(1448)],
        prop_oneof![Just(1_u32), Just(3), Just(10)],
        any::<[bool; 7]>(),
        prop_oneof![Just(200_u32), Just(1000), Just(4000), Just(1 << 30)],
    )
        .prop_map(
            |(mss, initial_window, [ecn, accecn, newest, abe, sack, exact, rack], max_window)| {
                Config {
                    mss,
                    initial_window,
                    ecn,
                    accecn,
                    kernel: if newest { Kernel::V7_3 } else { Kernel::V6_1 },
                    abe: if abe { Abe::Keeps(0.7) } else { Abe::Off },
                    sack,
                    recovery: if rack {
                        Recovery::Rack
                    } else {
                        Recovery::Rfc6675
                    },
                    max_window,
                    clock: if exact { Clock::Exact } else { Clock::Jiffies },
                    ..Config::default()
                }
            },
        );
    let iss = prop_oneof![any::<u32>(), (u32::MAX - 100_000)..=u32::MAX];
    (
        config,
        prop::sample::select(
            Catalogue::new()
                .iter()
                .cloned()
                .map(Named)
                .collect::<Vec<_>>(),
        ),
        [iss.clone(), iss],
        (0_u64..150_000, prop_oneof![Just(0_u64), 0_u64..20_000]),
        prop::collection::vec(prop_oneof![Just(1_u64), 1_u64..100, 100_u64..3000], 0..4),
        prop::collection::vec(fate(), 1..60),
    )
        .prop_map(|(config, algorithm, iss, bytes, pauses, mut fates)| {
            // Let some packets through in every list: a connection cannot end in a network that drops everything.
            let through = Fate {
                copies: 1,
                delays: [10, 10],
                mark: false,
            };
            fates.extend([through; 5]);
            // With segments of 64 bytes, send fewer of them.
            let bytes = [bytes.0, bytes.1].map(|bytes| bytes / (1448 / u64::from(config.mss)));
            Trial {
                config,
                algorithm,
                iss,
                bytes,
                pauses,
                fates,
            }
        })
}

/// A segment in flight: when it arrives, its order of sending, the receiving end, and its index in `segments`.
type Flight = Reverse<(Time, u64, usize, usize)>;

struct World {
    ends: [Endpoint; 2],
    segments: Vec<(Segment, Arrival)>,
    flights: BinaryHeap<Flight>,
    /// What the first end is still to write, and when.
    writes: VecDeque<(Time, u64)>,
    fates: Vec<Fate>,
    sent: u64,
    /// The right edge of the window that each end has been offered by what it received.
    edges: [Option<Seq>; 2],
    mss: u32,
}

impl World {
    fn new(trial: &Trial) -> Self {
        let iss = trial.iss.map(Seq);
        let mut ends = [
            Endpoint::connect(trial.config.clone(), &trial.algorithm.0, iss[0]),
            Endpoint::listen(trial.config.clone(), &trial.algorithm.0, iss[1]),
        ];
        ends[1].write(trial.bytes[1]);
        ends[1].close();
        let piece = trial.bytes[0] / (trial.pauses.len() as u64 + 1);
        let mut at = Time::ZERO;
        let mut writes = VecDeque::new();
        for pause in &trial.pauses {
            writes.push_back((at, piece));
            at += Duration::from_millis(*pause);
        }
        writes.push_back((at, trial.bytes[0] - piece * trial.pauses.len() as u64));
        Self {
            ends,
            segments: Vec::new(),
            flights: BinaryHeap::new(),
            writes,
            fates: trial.fates.clone(),
            sent: 0,
            edges: [None; 2],
            mss: u32::from(trial.config.mss),
        }
    }

    /// Lets an end send everything that it may. After a timer the first segment may be a probe, which is sent whatever
    /// the congestion window (RFC 8985 §7.3, RFC 9293 §3.8.6.1), as is the last segment with its FIN (Linux).
    fn transmit(&mut self, from: usize, after_timer: bool, now: Time) -> Result<(), TestCaseError> {
        let mut burst = 0;
        loop {
            let sender = self.ends[from].sender();
            let (next, in_flight) = (sender.next_seq(), sender.in_flight());
            let Some(transmit) = self.ends[from].poll(now) else {
                break;
            };
            burst += 1;
            prop_assert!(burst < 100_000, "it sends without end");
            let segment = transmit.segment;
            let is_new = segment.len > 0 && segment.seq == next;
            if is_new && self.ends[from].is_established() {
                let cwnd = self.ends[from].sender().cwnd();
                prop_assert!(
                    in_flight < cwnd
                        || (after_timer && burst == 1)
                        || segment.flags.contains(Flags::FIN),
                    "{in_flight} in flight, window {cwnd}"
                );
                prop_assert!(u32::from(segment.len) <= self.mss);
                prop_assert!(segment.header_bytes() <= 20 + 60, "{segment:?}");
                let edge = self.edges[from].unwrap_or(segment.end());
                prop_assert!(!segment.end().after(edge), "beyond the receive window");
            }
            let fate = self.fates[self.sent as usize % self.fates.len()];
            let ecn = match (transmit.ecn_capable, fate.mark) {
                (true, true) => Arrival::Ce,
                (true, false) => Arrival::Ect0,
                (false, _) => Arrival::NotEct,
            };
            for delay in &fate.delays[..fate.copies] {
                let arrival = now + Duration::from_millis(*delay);
                self.flights
                    .push(Reverse((arrival, self.sent, 1 - from, self.segments.len())));
            }
            self.segments.push((segment, ecn));
            self.sent += 1;
        }
        Ok(())
    }

    fn arrive(&mut self, to: usize, segment: usize, now: Time) {
        let (segment, ecn) = self.segments[segment];
        if segment.flags.contains(sojourn_tcp::segment::Flags::ACK) {
            let offer = segment.ack + segment.window;
            self.edges[to] = Some(self.edges[to].map_or(offer, |edge| edge.max(offer)));
        }
        self.ends[to].on_segment(&segment, ecn, now);
    }

    /// Writes the data that is due. Closes after the last piece.
    fn write(&mut self, now: Time) {
        while let Some(&(_, bytes)) = self.writes.front().filter(|(at, _)| *at <= now) {
            self.writes.pop_front();
            self.ends[0].write(bytes);
            if self.writes.is_empty() {
                self.ends[0].close();
            }
        }
    }

    /// Runs until both ends are closed. Returns false if no event is left or `limit` has passed.
    fn run(&mut self, limit: Time) -> Result<bool, TestCaseError> {
        let mut now = Time::ZERO;
        let mut after_timer = false;
        for _ in 0..2_000_000 {
            self.write(now);
            self.transmit(0, after_timer, now)?;
            self.transmit(1, after_timer, now)?;
            if self.ends.iter().all(Endpoint::is_closed) {
                return Ok(true);
            }
            let flight = self.flights.peek().map(|Reverse((at, ..))| *at);
            let timers = self.ends.iter().filter_map(Endpoint::next_timer).min();
            let write = self.writes.front().map(|(at, _)| *at);
            let Some(at) = [flight, timers, write].into_iter().flatten().min() else {
                return Ok(false);
            };
            if at > limit {
                return Ok(false);
            }
            now = now.max(at);
            after_timer = flight != Some(at);
            if !after_timer {
                if let Some(Reverse((_, _, to, segment))) = self.flights.pop() {
                    self.arrive(to, segment, now);
                }
            } else {
                for end in &mut self.ends {
                    if end.next_timer().is_some_and(|due| due <= now) {
                        end.on_timer(now);
                        prop_assert!(
                            end.next_timer().is_none_or(|due| due > now),
                            "a timer did not move"
                        );
                    }
                }
            }
        }
        Ok(false)
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        max_shrink_iters: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_the_network_does_the_bytes_arrive_and_the_connection_ends(trial in trial()) {
        let mut world = World::new(&trial);
        // At most 750 segments of 200 bytes, one per window. A list of fates of which five let a packet through can
        // cost each segment several timeouts of up to two minutes.
        let closed = world.run(Time::from_secs(750 * 10 * 120))?;
        if world.ends.iter().any(Endpoint::has_failed) {
            return Ok(()); // the handshake was given up: seven SYNs were lost
        }
        for (end, bytes) in [(0, trial.bytes[1]), (1, trial.bytes[0])] {
            prop_assert_eq!(world.ends[end].received(), bytes, "end {} of {:?}", end, trial.algorithm);
        }
        prop_assert!(closed, "still open: {:?}", trial.algorithm);
    }
}
