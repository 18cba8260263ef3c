//! Single exchanges, with times worked out by hand; delays of packets; retransmissions.

mod cell;

use cell::{FULL, Packet, Seen, drop_tail, mode, packet, ring, saturate, station};
use sojourn_units::{Duration, Time, Way};
use sojourn_wifi::phy::{Mode, Standard};
use sojourn_wifi::queues::mac80211::{AqlLimits, Settings};
use sojourn_wifi::{
    Aggregation, Cell, Medium, Node, Observer, Queueing, Station, Timeline, Transmitted, Use,
};

fn act_until(medium: &mut Medium<Packet>, until: Time, observer: &mut impl Observer<Packet>) {
    while medium.next_event() <= until && medium.next_event() < Time::MAX {
        medium.act(medium.next_event(), observer);
    }
}

fn logged(medium: &mut Medium<Packet>, entries: &[(u64, u16, Way)]) -> Vec<Transmitted> {
    let mut timeline = Timeline::new(Time::ZERO, Time::MAX);
    for (number, &(micros, station, way)) in entries.iter().enumerate() {
        let now = Time::from_micros(micros);
        // Packets of the same instant arrive before the medium acts.
        let before = now.saturating_sub(Duration::from_nanos(1));
        act_until(medium, before, &mut timeline);
        medium.enqueue(
            packet(0, number as u64, FULL),
            station,
            way,
            now,
            &mut timeline,
        );
    }
    act_until(medium, Time::from_secs(1), &mut timeline);
    timeline.transmitted().to_vec()
}

fn of_g(stations: u16) -> Medium<Packet> {
    let cell = Cell::new(Standard::G);
    let mode = mode(&cell, 54_000);
    Medium::new(cell, ring(), (0..stations).map(|_| station(mode)).collect())
}

#[test]
fn a_frame_is_sent_at_once_if_the_medium_is_idle() {
    let log = logged(&mut of_g(2), &[(1_000, 1, Way::Up)]);
    // 254 µs, SIFS 10, ACK 34.
    let [only] = log[..] else { panic!("{log:?}") };
    assert_eq!(only.node, Node::Station(1));
    assert_eq!(
        (only.start, only.end),
        (Time::from_micros(1_000), Time::from_micros(1_298))
    );
    assert_eq!((only.what, only.received), (Use::Exchange, 1));
}

/// A device has room for two transmissions. What comes while the first is on the air is taken at once, as ath9k does
/// (ath9k_wake_tx_queue), although more of it would fit if it waited.
#[test]
fn a_device_takes_a_frame_while_it_sends() {
    let cell = Cell::new(Standard::N);
    let mode = mode(&cell, 65_000);
    let queueing = Queueing::Mac80211(Settings::of_kernel(6, 12));
    let mut medium = Medium::new(cell, queueing, vec![station(mode)]);
    let mut entries = vec![(1_000, 0, Way::Down)];
    entries.extend([(1_100, 0, Way::Down); 4]);
    let frames: Vec<u16> = logged(&mut medium, &entries)
        .iter()
        .map(|sent| sent.frames)
        .collect();
    assert_eq!(frames, [1, 1, 3]);
}

#[test]
fn a_frame_waits_for_difs_and_a_back_off_if_the_medium_is_busy() {
    for seed in 0..20 {
        let cell = Cell {
            seed,
            ..Cell::new(Standard::G)
        };
        let mode = mode(&cell, 54_000);
        let mut medium = Medium::new(cell, ring(), (0..2).map(|_| station(mode)).collect());
        let log = logged(&mut medium, &[(1_000, 0, Way::Up), (1_100, 1, Way::Up)]);
        let slots = (log[1].start - Time::from_micros(1_298 + 28)).as_nanos();
        assert_eq!(slots % 9_000, 0, "{log:?}");
        assert!(slots / 9_000 <= 15, "{log:?}");
        assert_eq!(log[1].waiting_since, Time::from_micros(1_100));
    }
}

#[test]
fn two_frames_at_the_same_instant_collide_and_are_retransmitted() {
    let log = logged(&mut of_g(2), &[(1_000, 0, Way::Up), (1_000, 1, Way::Up)]);
    assert_eq!(log[0].what, Use::Collision);
    assert_eq!(log[1].what, Use::Collision);
    let exchanges = log.iter().filter(|row| row.what == Use::Exchange).count();
    assert_eq!(exchanges, 2);
    // The first retransmission comes at least a timeout of SIFS 10 + slot 9 + 20 and DIFS 28 after the collision.
    assert!(
        log[2].start >= Time::from_micros(1_254 + 39 + 28),
        "{log:?}"
    );
}

#[test]
fn a_frame_is_dropped_after_the_retry_limit() {
    // Nothing can be received at -20 dB.
    let cell = Cell::new(Standard::G);
    let mode = mode(&cell, 54_000);
    let deaf = Station {
        snr_db: Some(-20.0),
        ..station(mode)
    };
    let mut medium = Medium::new(cell, ring(), vec![deaf]);
    let mut seen = Seen::default();
    medium.enqueue(packet(0, 0, FULL), 0, Way::Down, Time::ZERO, &mut seen);
    act_until(&mut medium, Time::from_secs(1), &mut seen);
    assert_eq!((seen.transmissions, seen.lost, medium.packets()), (7, 1, 0));
}

#[test]
fn exchanges_fill_a_txop_a_sifs_apart() {
    // A video frame at MCS 7 takes 36 + 6 + 192 µs, SIFS 10 and ACK 28 + 6: 278 µs. Ten of them with nine SIFS between them
    // take 2870 µs and fit in 3008 µs. An eleventh would end at 3158 µs.
    let cell = Cell {
        aggregation: Aggregation::NONE,
        framing: sojourn_wifi::Framing {
            ccmp: false,
            ..Cell::new(Standard::N).framing
        },
        ..Cell::new(Standard::N)
    };
    let mode = mode(&cell, 65_000);
    let mut medium = Medium::new(cell, ring(), vec![station(mode)]);
    let mut seen = Seen {
        keep_log: true,
        ..Seen::default()
    };
    saturate(
        &mut medium,
        &[(0, Way::Up, 50, FULL, 34)],
        Time::from_millis(100),
        &mut seen,
    );
    let gaps = seen.log.windows(2).map(|pair| pair[1].start - pair[0].end);
    let bursts: Vec<usize> = gaps
        .collect::<Vec<_>>()
        .split(|gap| *gap > Duration::from_micros(10))
        .map(|within| within.len() + 1)
        .collect();
    assert!(
        bursts[1..bursts.len() - 1]
            .iter()
            .all(|&frames| frames == 10),
        "{bursts:?}"
    );
}

/// The delays of pings to station 1 while the access point is overloaded with packets for station 0.
fn ping_delays(queueing: Queueing<Packet>, slow: Mode, cell: Cell) -> Vec<Duration> {
    let mut medium = Medium::new(cell, queueing, vec![station(slow), station(slow)]);
    let mut seen = Seen::default();
    let mut delays = Vec::new();
    for number in 0..20_000_u64 {
        // The load is 24 Mbit/s, and a ping is sent every 100 ms.
        let now = Time::from_micros(500 * number);
        while medium.next_event() <= now {
            let now = medium.next_event();
            medium.act(now, &mut seen);
            while let Some(departed) = medium.poll() {
                if departed.station == 1 {
                    delays.push(now - Time::from_micros(500 * departed.packet.payload));
                }
            }
        }
        medium.enqueue(packet(0, number, FULL), 0, Way::Down, now, &mut seen);
        if number % 200 == 0 {
            medium.enqueue(packet(1, number, 100), 1, Way::Down, now, &mut seen);
        }
    }
    delays
}

#[test]
fn a_quiet_station_waits_less_with_mac80211_than_with_a_fifo() {
    let cell = Cell::new(Standard::N);
    let mode = mode(&cell, 13_000);
    let mean = |delays: Vec<Duration>| {
        let count = delays.len() as f64;
        delays
            .iter()
            .map(|delay| delay.as_millis_f64())
            .sum::<f64>()
            / count
    };
    let fifo = Queueing::Ring {
        qdisc: drop_tail(1000),
        packets: 64,
    };
    let fifo = mean(ping_delays(fifo, mode, cell.clone()));
    let linux = Queueing::Mac80211(Settings::of_kernel(6, 1));
    let linux = mean(ping_delays(linux, mode, cell.clone()));
    // 1064 packets of 1500 bytes at about 11 Mbit/s take more than a second. With mac80211 a ping waits for one transmission
    // on the air and one that is ready, of 4 ms each: about 10 ms at most.
    assert!(fifo > 700.0, "{fifo}");
    assert!(linux < 12.0, "{linux}");
}

#[test]
fn another_discipline_can_replace_fq_codel_in_mac80211() {
    let cell = Cell::new(Standard::N);
    let mode = mode(&cell, 13_000);
    let settings = Settings::of_kernel(6, 1);
    let pie = Queueing::PerStation(
        settings,
        Box::new(|| {
            let discipline = sojourn_aqm::pie::pie::<Packet>();
            let settings = sojourn_aqm::Settings::new(sojourn_units::Rate::from_mbps(10), 1514);
            discipline.build(&settings).expect("defaults")
        }),
    );
    let delays = ping_delays(pie, mode, cell);
    assert!(delays.len() > 90, "{}", delays.len());
    assert!(
        delays
            .iter()
            .all(|delay| *delay < Duration::from_millis(30))
    );
}

#[test]
fn airtime_limits_do_not_hold_back_retransmissions() {
    // AQL's estimate for a single packet of 20000 bytes at MCS 0, 4092 µs, is above every limit. About half of the frames are
    // lost.
    let cell = Cell::new(Standard::N);
    let mode = mode(&cell, 6_500);
    let success = |db: f64| {
        let snr = sojourn_wifi::phy::error::Snr::from_db(db);
        sojourn_wifi::phy::error::success(mode, snr, 20_000)
    };
    let steps = (0..400).map(|step| f64::from(step) / 10.0 - 10.0);
    let noisy = Station {
        snr_db: steps.into_iter().find(|&db| success(db) > 0.4),
        ..station(mode)
    };
    let limit = Duration::from_millis(4);
    let linux = Queueing::Mac80211(Settings {
        aql: Some(AqlLimits {
            low: limit,
            high: limit,
            ..AqlLimits::LINUX
        }),
        ..Settings::of_kernel(6, 1)
    });
    let mut medium = Medium::new(cell, linux, vec![noisy]);
    let mut seen = Seen::default();
    for number in 0..50 {
        medium.enqueue(
            packet(0, number, 20_000),
            0,
            Way::Down,
            Time::ZERO,
            &mut seen,
        );
    }
    act_until(&mut medium, Time::from_secs(100), &mut seen);
    let received = core::iter::from_fn(|| medium.poll()).count() as u64;
    assert_eq!((medium.packets(), received), (0, seen.departed));
    assert!(
        seen.transmissions > seen.departed + 10,
        "many were retransmitted: {seen:?}"
    );
    assert_eq!(seen.departed + seen.dropped, 50);
}
