//! Applications over a test network: data written at one end arrives at the other at a fixed rate.

use std::collections::BTreeMap;

use super::*;
use sojourn_units::{Duration, Rate, Time};

const SECOND: Time = Time::from_secs(1);
/// A byte per millisecond.
const SLOW: Rate = Rate::from_bps(8000).unwrap();

/// Every connection has the full rate.
struct Network {
    rate: Rate,
    now: Time,
    opened: Vec<(Time, Side)>,
    closed: Vec<(Time, Id)>,
    received: BTreeMap<(Id, bool), u64>,
    /// When bytes arrive at an end.
    coming: Vec<(Time, Id, Side, u64)>,
    /// Which connection was written to, and how many had been opened before.
    writes: Vec<(Id, usize)>,
}

impl Connections for Network {
    fn open(&mut self, opener: Side) -> Id {
        self.opened.push((self.now, opener));
        Id(self.opened.len() as u32 - 1)
    }

    fn write(&mut self, id: Id, side: Side, bytes: u64) {
        self.writes.push((id, self.opened.len()));
        if bytes != UNLIMITED {
            let to = match side {
                Side::Sending => Side::Receiving,
                Side::Receiving => Side::Sending,
            };
            self.coming
                .push((self.now + self.rate.tx_time(bytes), id, to, bytes));
        }
    }

    fn buffered(&mut self, id: Id, side: Side) -> u64 {
        let unacknowledged = |(_, of, to, bytes): &(Time, Id, Side, u64)| {
            if *of == id && *to != side { *bytes } else { 0 }
        };
        self.coming.iter().map(unacknowledged).sum()
    }

    fn close(&mut self, id: Id, _: Side) {
        self.closed.push((self.now, id));
    }

    fn received(&mut self, id: Id, side: Side) -> u64 {
        *self
            .received
            .entry((id, side == Side::Sending))
            .or_default()
    }
}

#[derive(Default)]
struct Heard {
    completions: Vec<Duration>,
    pages: Vec<Duration>,
    startup: Option<Duration>,
    segments: Vec<(Rate, Duration)>,
}

impl Meter for Heard {
    fn completed(&mut self, after: Duration, _: Time) {
        self.completions.push(after);
    }
    fn page_loaded(&mut self, after: Duration, _: Time) {
        self.pages.push(after);
    }
    fn playing_began(&mut self, after: Duration) {
        self.startup = Some(after);
    }
    fn segment(&mut self, rate: Rate, stalled: Duration) {
        self.segments.push((rate, stalled));
    }
}

fn identity(stop_s: u64) -> Identity {
    Identity {
        flow: 0,
        direction: Direction::Down,
        start: Time::from_nanos(0),
        stop: Time::from_secs(stop_s),
        jitter: Duration::ZERO,
    }
}

fn tcp() -> Tcp {
    Tcp {
        congestion_control: "reno".into(),
        ..Tcp::default()
    }
}

/// Runs a flow of a kind until its stop.
fn run(kind: &Kind, rate: Rate, stop_s: u64) -> (Network, Heard) {
    let mut application = over_tcp(&identity(stop_s), kind, 1).unwrap();
    let mut network = Network {
        rate,
        now: Time::from_nanos(0),
        opened: Vec::new(),
        closed: Vec::new(),
        received: BTreeMap::new(),
        coming: Vec::new(),
        writes: Vec::new(),
    };
    let mut heard = Heard::default();
    let mut ended = 0;
    loop {
        let arrival = (0..network.coming.len()).min_by_key(|at| network.coming[*at].0);
        let arrives = arrival.map_or(Time::MAX, |at| network.coming[at].0);
        let timer = application.next_timer().unwrap_or(Time::MAX);
        network.now = arrives.min(timer);
        if network.now > Time::from_secs(stop_s) {
            return (network, heard);
        }
        let now = network.now;
        if let Some(at) = arrival.filter(|_| arrives <= timer) {
            let (_, id, side, bytes) = network.coming.remove(at);
            *network
                .received
                .entry((id, side == Side::Sending))
                .or_default() += bytes;
            application.on_arrival(id, side, now, &mut network, &mut heard);
        } else {
            application.on_timer(now, &mut network, &mut heard);
        }
        // A connection has ended when nothing of it is in transit.
        while let Some((_, id)) = network.closed.get(ended).copied() {
            if network.coming.iter().any(|(_, of, ..)| *of == id) {
                break;
            }
            ended += 1;
            application.on_end(id, now, &mut network, &mut heard);
        }
    }
}

/// 1000 bytes of document at 8 kbit/s take 1 s, its request of 125 bytes an eighth. Then two connections share three
/// objects: 1.125 s for two of them, as long again for the third.
#[test]
fn a_page_is_its_document_and_then_its_objects_in_parallel() {
    let pages = Pages {
        objects: 4,
        sizes: Sizes::OneOf(vec![1000]),
        parallel: 2,
        request: 125,
        think: Duration::ZERO,
    };
    let kind = Kind::Web(Web {
        tcp: tcp(),
        browsing: Browsing::Pages(pages),
    });
    let (network, heard) = run(&kind, SLOW, 10);
    let page = Duration::from_millis(3 * 1125);
    assert_eq!(heard.pages, [page; 2]);
    // The next page begins at once, on its own connections.
    let opened: Vec<u64> = network
        .opened
        .iter()
        .map(|(at, _)| at.as_nanos() / 1_000_000)
        .collect();
    assert_eq!(opened, [0, 1125, 3375, 4500, 6750, 7875]);
    assert!(
        network
            .opened
            .iter()
            .all(|(_, side)| *side == Side::Receiving)
    );
}

/// When the document of a page has come, three further connections open, and only then the first one asks again: the
/// other way round an answer would be on its way before the SYN-ACKs. Five objects make two rounds.
#[test]
fn a_browser_opens_its_connections_before_it_asks_again() {
    let pages = Pages {
        objects: 5,
        sizes: Sizes::OneOf(vec![1000]),
        parallel: 4,
        request: 125,
        think: Duration::from_secs(100),
    };
    let kind = Kind::Web(Web {
        tcp: tcp(),
        browsing: Browsing::Pages(pages),
    });
    let (network, _) = run(&kind, SLOW, 10);
    let asked: Vec<_> = network.writes.iter().take(6).copied().collect();
    // The request and the answer of the document; then the requests of four objects.
    let ids = [0, 0, 1, 2, 3, 0].map(Id);
    let opened = [1, 1, 2, 3, 4, 4];
    assert_eq!(asked, ids.into_iter().zip(opened).collect::<Vec<_>>());
}

/// At 4 Mbit/s, 0.85 of the throughput is 3.4 Mbit/s less the request's share, so the rate is 3 Mbit/s. The first
/// segment is at the lowest rate: 1 Mbit of 1 s and a request of 400 bytes take 250.8 ms.
#[test]
fn a_player_takes_the_rate_that_throughput_allows() {
    let video = Video {
        tcp: tcp(),
        segment: Duration::from_secs(1),
        ladder: [1, 3, 4].map(Rate::from_mbps).into(),
        buffer: Duration::from_secs(5),
    };
    let (network, heard) = run(&Kind::Video(video), Rate::from_mbps(4), 20);
    let rates: Vec<Rate> = heard.segments.iter().map(|(rate, _)| *rate).collect();
    assert_eq!(rates[0], Rate::from_mbps(1));
    assert!(rates[1..].iter().all(|rate| *rate == Rate::from_mbps(3)));
    assert!(heard.segments.iter().all(|(_, stalled)| stalled.is_zero()));
    assert_eq!(heard.startup, Some(Duration::from_micros(250_800)));
    assert_eq!(network.opened.len(), 1);
    // The buffer of 5 s limits it: 20 s of playback, and the buffer's content at the end.
    assert!((23..=25).contains(&rates.len()), "{}", rates.len());
}

fn on_off(transport: Transport) -> Kind {
    Kind::OnOff(OnOff {
        transport,
        packet: 100,
        send_buffer: None,
        on: Duration::from_secs(1),
        off: Duration::from_secs(2),
        times: Times::Fixed,
    })
}

#[test]
fn on_off_tcp_opens_a_connection_per_on_time() {
    let (network, _) = run(&on_off(Transport::Tcp(tcp(), None)), Rate::from_mbps(1), 7);
    let seconds = |times: Vec<Time>| times.iter().map(|at| at.as_secs_f64()).collect::<Vec<_>>();
    let opened = seconds(network.opened.iter().map(|(at, _)| *at).collect());
    let closed = seconds(network.closed.iter().map(|(at, _)| *at).collect());
    assert_eq!((opened, closed), (vec![0.0, 3.0, 6.0], vec![1.0, 4.0, 7.0]));
}

/// 800 bits at 8 kbit/s: every 100 ms, during the first of every 3 s.
#[test]
fn on_off_datagrams_have_their_rate_while_on() {
    let kind = on_off(Transport::Udp(SLOW));
    let mut datagrams = Datagrams::new(&identity(5), &kind, 1).unwrap();
    let mut tenths = Vec::new();
    while let Some(due) = datagrams.next_due() {
        assert_eq!(datagrams.take_due(due), Some((tenths.len() as u64, 100)));
        tenths.push(due.as_nanos() / 100_000_000);
    }
    assert_eq!(tenths, (0..10).chain(30..40).collect::<Vec<u64>>());
}

#[test]
fn datagrams_are_not_taken_before_they_are_due() {
    let cbr = Kind::Cbr(Cbr {
        rate: SLOW,
        packet: 1000,
        mtu: None,
        ecn: EcnField::NotEct,
    });
    let mut datagrams = Datagrams::new(&identity(5), &cbr, 1).unwrap();
    assert_eq!(datagrams.take_due(Time::from_nanos(0)), Some((0, 1000)));
    assert_eq!(datagrams.take_due(Time::from_nanos(999_999_999)), None);
    assert_eq!(datagrams.take_due(SECOND), Some((1, 1000)));
}

/// Ten connections per second for 50 s, each with at least one exchange; all are answered and closed except the last
/// ones.
#[test]
fn a_cloud_answers_all_requests_and_closes_its_connections() {
    let kind = Kind::Web(Web {
        tcp: tcp(),
        browsing: Browsing::PackMime(10.0),
    });
    let (network, heard) = run(&kind, Rate::from_mbps(1000), 50);
    let opened = network.opened.len();
    assert!((350..650).contains(&opened), "{opened}");
    assert!(heard.completions.len() > opened * 9 / 10);
    assert!(network.closed.len() > opened * 8 / 10);
}
