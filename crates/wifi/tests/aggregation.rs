//! A-MPDU efficiency against its closed form, airtime fairness, retransmissions, categories and rate control.

mod cell;

use cell::{FULL, Packet, Seen, goodput, mode, packet, ring, saturate, station, wide_mode};
use sojourn_units::{Duration, Time, Way};
use sojourn_wifi::phy::{Band, Guard, Mode, Standard, Width};
use sojourn_wifi::queues::mac80211::{Amsdu, FqSettings, Settings};
use sojourn_wifi::{
    Aggregation, Cell, Framing, Medium, PriorityMap, Queueing, RateControl, Station, modes,
};

fn plain(standard: Standard, aggregation: Aggregation) -> Cell {
    let cell = Cell::in_band(standard, Band::Ghz5);
    Cell {
        aggregation,
        framing: Framing {
            ccmp: false,
            ..cell.framing
        },
        ..cell
    }
}

/// The downlink goodput of a single station in Mbit/s, and its frames per transmission.
fn alone(cell: &Cell, mode: Mode, seconds: u64) -> (f64, f64) {
    let mut medium = Medium::new(cell.clone(), ring_of(400), vec![station(mode)]);
    let mut seen = Seen::default();
    let until = Time::from_secs(seconds);
    let received = saturate(
        &mut medium,
        &[(0, Way::Down, 300, FULL, 0)],
        until,
        &mut seen,
    );
    (
        goodput(&received, until) / 1e6,
        seen.frames as f64 / seen.transmissions as f64,
    )
}

fn ring_of(packets: u64) -> Queueing<Packet> {
    Queueing::Ring {
        qdisc: cell::drop_tail(1000),
        packets,
    }
}

#[test]
fn goodput_without_aggregation_agrees_with_the_arithmetic() {
    // 802.11n, 5 GHz, MCS 7: 1538 bytes take 36 + 192 µs; SIFS 16, ACK at 24 Mbit/s 28. AIFS 16 + 3 · 9 = 43, back-off 7.5
    // slots: 67.5. 12000 bits in 382.5 µs: 31.37 Mbit/s.
    let cell = plain(Standard::N, Aggregation::NONE);
    let (mbps, frames) = alone(&cell, mode(&cell, 65_000), 10);
    assert!((mbps / (12_000.0 / 382.5) - 1.0).abs() < 0.003, "{mbps}");
    assert_eq!(frames, 1.0);
    // 802.11ac, 80 MHz, MCS 9, two streams: 1542 bytes: 12336 + 28 bits, 4 symbols: 44 + 16 µs; SIFS 16, ACK 28.
    // 43 + 67.5 + 60 + 44 = 214.5.
    let cell = plain(Standard::Ac, Aggregation::NONE);
    let mode = wide_mode(&cell, 780_000, Width::Mhz80, 2, Guard::Long);
    let (mbps, _) = alone(&cell, mode, 10);
    assert!((mbps / (12_000.0 / 214.5) - 1.0).abs() < 0.003, "{mbps}");
}

#[test]
fn aggregates_have_the_efficiency_of_the_closed_form() {
    // n subframes of 1544 bytes (4 + 1538 + 2, the last without its 2), one preamble, one BlockAck of 32 bytes at 24 Mbit/s:
    // 32 µs. R = n · 12000 / (AIFS 43 + back-off 67.5 + 36 or 40 + 4 · ceil((16 + 8 · (1544 n - 2) + 6) / N_DBPS) + 16 + 32).
    let cases = [
        (Standard::N, 65_000, Width::Mhz20, 1, 260.0, 36.0),
        (Standard::N, 270_000, Width::Mhz40, 2, 1080.0, 40.0),
        (Standard::Ac, 780_000, Width::Mhz80, 2, 3120.0, 44.0),
    ];
    for (standard, kbps, width, streams, bits, preamble) in cases {
        for n in [2_u16, 8, 16, 32, 42] {
            let cell = plain(
                standard,
                Aggregation {
                    frames: n,
                    ..Aggregation::most(standard)
                },
            );
            let mode = wide_mode(&cell, kbps, width, streams, Guard::Long);
            let length = 8.0 * (1544.0 * f64::from(n) - 2.0);
            let tails = if bits > 2160.0 { 12.0 } else { 6.0 };
            let data = 4.0 * ((16.0 + length + tails) / bits).ceil();
            if preamble + data > 5484.0 {
                continue;
            }
            let expected = f64::from(n) * 12_000.0 / (43.0 + 67.5 + preamble + data + 16.0 + 32.0);
            let (mbps, frames) = alone(&cell, mode, 5);
            assert!((frames - f64::from(n)).abs() < 0.1, "{frames} for {n}");
            assert!(
                (mbps / expected - 1.0).abs() < 0.01,
                "{standard:?} {n}: {mbps} for {expected}"
            );
        }
    }
}

#[test]
fn an_amsdu_saves_headers() {
    // Two MSDUs of 1508 with 14 each, the first padded: 1524 + 1522 + 30 = 3076 bytes in one MPDU of at most 3839.
    let cell = plain(
        Standard::N,
        Aggregation {
            frames: 1,
            amsdu_bytes: 3839,
            ..Aggregation::most(Standard::N)
        },
    );
    // MCS 7: 24608 + 22 bits are 95 symbols: 36 + 380; ACK 28. Two packets in 43 + 67.5 + 416 + 16 + 28 = 570.5 µs.
    let (mbps, _) = alone(&cell, mode(&cell, 65_000), 10);
    assert!((mbps / (24_000.0 / 570.5) - 1.0).abs() < 0.003, "{mbps}");
}

/// The downlink goodput of a single station below mac80211's queues with A-MSDU, in Mbit/s, and the packets of a frame.
fn amsdu_alone(cell: &Cell, kbps: u64, amsdu: Option<Amsdu>, bytes: u32) -> (f64, f64) {
    let mut settings = Settings::of_kernel(7, 3);
    settings.fq = FqSettings {
        amsdu,
        // CoDel leaves the load alone.
        codel: (Duration::from_secs(100), Duration::from_secs(100)),
        ..settings.fq
    };
    let queueing = Queueing::Mac80211(settings);
    let station = station(mode(cell, kbps));
    let mut medium = Medium::new(cell.clone(), queueing, vec![station]);
    let mut seen = Seen::default();
    let until = Time::from_secs(5);
    let load = [(0, Way::Down, 1000, bytes, 0)];
    let received = saturate(&mut medium, &load, until, &mut seen);
    (
        goodput(&received, until) / 1e6,
        received.len() as f64 / seen.frames as f64,
    )
}

#[test]
fn an_amsdu_of_mac80211_has_the_goodput_of_the_closed_form() {
    let one = Aggregation {
        frames: 1,
        ..Aggregation::most(Standard::N)
    };
    let limit = |bytes| Some(Amsdu { bytes, packets: 64 });
    // As above: two packets of 1514 bytes.
    let (mbps, packets) = amsdu_alone(&plain(Standard::N, one), 65_000, limit(3839), FULL);
    assert!((mbps / (24_000.0 / 570.5) - 1.0).abs() < 0.003, "{mbps}");
    assert!((packets - 2.0).abs() < 0.01, "{packets}");
    // 214 bytes: subframes of 14 + 208, padded to 224; 224 n - 2 + 26 bytes, up to 3839 - 214: 16 and another. 17 have 3836
    // with the FCS: 30688 + 22 bits, 119 symbols, 36 + 476 µs. 43 + 67.5 + 512 + 16 + 28 = 666.5 µs.
    let (mbps, packets) = amsdu_alone(&plain(Standard::N, one), 65_000, limit(3839), 214);
    assert!((packets - 17.0).abs() < 0.05, "{packets}");
    assert!(
        (mbps / (17.0 * 1600.0 / 666.5) - 1.0).abs() < 0.005,
        "{mbps}"
    );
    // Alone each takes 36 + 4 · ceil((8 · 238 + 22) / 260) = 68 µs: 1600 bits in 222.5 µs.
    let (mbps, packets) = amsdu_alone(&plain(Standard::N, one), 65_000, None, 214);
    assert!((packets - 1.0).abs() < 0.001, "{packets}");
    assert!((mbps / (1600.0 / 222.5) - 1.0).abs() < 0.003, "{mbps}");
}

#[test]
fn only_lost_frames_are_retransmitted() {
    // At an SNR where a fifth of the frames are lost, every packet still arrives, in order. The mean number of transmissions
    // of a frame is 1 / success.
    let cell = plain(Standard::N, Aggregation::ath9k());
    let mode = mode(&cell, 65_000);
    let wanted = 0.8;
    let success = |db: f64| {
        sojourn_wifi::phy::error::success(mode, sojourn_wifi::phy::error::Snr::from_db(db), 1538)
    };
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if success(middle) < wanted {
            low = middle
        } else {
            high = middle
        }
    }
    let noisy = Station {
        snr_db: Some(high),
        ..station(mode)
    };
    let mut medium = Medium::new(cell, ring_of(400), vec![noisy]);
    let mut seen = Seen::default();
    let received = saturate(
        &mut medium,
        &[(0, Way::Down, 300, FULL, 0)],
        Time::from_secs(10),
        &mut seen,
    );
    assert_eq!(seen.lost, 0);
    assert!(
        received
            .windows(2)
            .all(|pair| pair[0].packet.payload < pair[1].packet.payload)
    );
    let sent_each = seen.frames as f64 / received.len() as f64;
    assert!((sent_each * wanted - 1.0).abs() < 0.02, "{sent_each}");
}

#[test]
fn higher_categories_wait_less() {
    // Four stations are saturated, each in another category: voice gets most, background least.
    let cell = Cell::new(Standard::N);
    let mode = mode(&cell, 65_000);
    let mut medium = Medium::new(cell, ring(), (0..4).map(|_| station(mode)).collect());
    let dscp = [8, 0, 34, 48];
    let loads: Vec<_> = (0..4)
        .map(|n| (n, Way::Up, 40, FULL, dscp[usize::from(n)]))
        .collect();
    let received = saturate(
        &mut medium,
        &loads,
        Time::from_secs(5),
        &mut Seen::default(),
    );
    let mut shares = [0_u64; 4];
    for departed in &received {
        shares[PriorityMap::Rfc8325.access(departed.packet.dscp).index()] += 1;
    }
    assert!(
        shares.is_sorted() && shares[3] > 2 * shares[1],
        "{shares:?}"
    );
}

/// Sends 50 Mbit/s of UDP to each of three stations, two fast ones (MCS 15) and a slow one (MCS 0). Returns the goodputs in
/// Mbit/s and the shares of the airtime.
fn three_stations(queueing: Queueing<Packet>) -> ([f64; 3], [f64; 3]) {
    let cell = Cell::new(Standard::N);
    let fast = wide_mode(&cell, 144_444, Width::Mhz20, 2, Guard::Short);
    let slow = wide_mode(&cell, 7_222, Width::Mhz20, 1, Guard::Short);
    shares(cell, [fast, fast, slow].map(station), queueing, 50)
}

/// The goodputs in Mbit/s and the shares of the airtime of stations to each of which `mbit` Mbit/s of UDP are sent.
fn shares<const N: usize>(
    cell: Cell,
    stations: [Station<Packet>; N],
    queueing: Queueing<Packet>,
    mbit: u64,
) -> ([f64; N], [f64; N]) {
    let mut medium = Medium::new(cell, queueing, stations.into());
    let mut bits = [0.0; N];
    let until = Time::from_secs(10);
    let mut seen = Seen::default();
    for number in 0..10 * mbit * 1_000_000 / 12_000 {
        let now = Time::from_nanos(12_000_000 / mbit * number);
        while medium.next_event() <= now {
            medium.act(medium.next_event(), &mut seen);
            while let Some(departed) = medium.poll() {
                bits[usize::from(departed.station)] += 12_000.0;
            }
        }
        for station in 0..N as u16 {
            medium.enqueue(
                packet(station.into(), number, FULL),
                station,
                Way::Down,
                now,
                &mut seen,
            );
        }
    }
    let airtimes =
        std::array::from_fn(|number| medium.airtime().account(number as u16, Way::Down).airtime);
    let total = airtimes
        .iter()
        .fold(Duration::ZERO, |sum, airtime: &Duration| sum + *airtime);
    (
        bits.map(|bits| bits / until.as_secs_f64() / 1e6),
        airtimes.map(|airtime: Duration| airtime.as_secs_f64() / total.as_secs_f64()),
    )
}

#[test]
fn airtime_fairness_ends_the_performance_anomaly() {
    // With one FIFO every station gets as many packets, and the slow one most of the airtime. With turns each gets one
    // transmission per turn. With airtime fairness each gets a third of the airtime.
    let (fifo, anomaly) = three_stations(ring_of(64));
    let (in_turns, turns) = three_stations(Queueing::Mac80211(Settings::of_kernel(4, 10)));
    let (after, fair) = three_stations(Queueing::Mac80211(Settings::of_kernel(6, 1)));
    println!("{fifo:?} {anomaly:?}\n{in_turns:?} {turns:?}\n{after:?} {fair:?}");
    assert!(anomaly[2] > 0.7, "{anomaly:?}");
    assert!(turns[2] > 0.37 && turns[2] < anomaly[2], "{turns:?}");
    assert!(
        fair.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.02),
        "{fair:?}"
    );
    let total = |rates: [f64; 3]| rates.iter().sum::<f64>();
    assert!(total(after) > 2.0 * total(fifo), "{fifo:?} {after:?}");
}

/// An aggregate of 802.11ac fills the receiver's window of 64 frames. The device holds the next one all the same, so that two
/// stations need not alternate, with frames lost (at 23 dB MCS 7 loses some) or not.
#[test]
fn two_stations_of_802_11ac_share_the_airtime() {
    for snr_db in [None, Some(23.0)] {
        let cell = Cell::new(Standard::Ac);
        let of = |kbit, streams| Station {
            snr_db,
            ..station(wide_mode(&cell, kbit, Width::Mhz80, streams, Guard::Long))
        };
        let stations = [of(585_000, 2), of(29_250, 1)];
        let queueing = Queueing::Mac80211(Settings::of_kernel(6, 12));
        let (_, fair) = shares(cell, stations, queueing, 400);
        let is_half = |share: &f64| (share - 0.5).abs() < 0.02;
        assert!(fair.iter().all(is_half), "{snr_db:?}: {fair:?}");
    }
}

#[test]
fn rate_control_finds_what_the_signal_carries() {
    // The best fixed mode gives the highest goodput. Ideal comes within 15 % of it, and Minstrel within 30 %.
    for standard in [Standard::G, Standard::N] {
        for db in [12.0, 20.0, 30.0] {
            let cell = Cell::new(standard);
            let all = modes(standard, Width::Mhz20, 1, Guard::Long);
            let with = |rate_control| {
                let station = Station {
                    modes: all.clone(),
                    rate_control,
                    snr_db: Some(db),
                    ..station(all[0])
                };
                let mut medium = Medium::new(cell.clone(), ring_of(400), vec![station]);
                let until = Time::from_secs(5);
                let loads = [(0, Way::Down, 300, FULL, 0)];
                goodput(
                    &saturate(&mut medium, &loads, until, &mut Seen::default()),
                    until,
                ) / 1e6
            };
            let best = all
                .iter()
                .map(|&mode| with(RateControl::Fixed(mode)))
                .fold(0.0, f64::max);
            let (ideal, minstrel) = (with(RateControl::Ideal), with(RateControl::Minstrel));
            println!(
                "{standard:?} {db} dB: best {best:.2} ideal {ideal:.2} minstrel {minstrel:.2}"
            );
            assert!(
                ideal > 0.85 * best,
                "{standard:?} {db} dB: ideal {ideal}, best {best}"
            );
            assert!(
                minstrel > 0.7 * best,
                "{standard:?} {db} dB: minstrel {minstrel}, best {best}"
            );
        }
    }
}

/// Sends packets with these code points in turn, `each` of either, at once to a station, over a ring and by mac80211. Returns
/// the frames of each transmission, and the code points in the order of arrival.
fn aggregates_of(dscps: [u8; 2], each: u64) -> [(Vec<u16>, Vec<u8>); 2] {
    [ring(), Queueing::Mac80211(Settings::of_kernel(7, 2))].map(|queueing| {
        let cell = Cell::new(Standard::N);
        let station = station(mode(&cell, 65_000));
        let mut medium = Medium::new(cell, queueing, vec![station]);
        let mut seen = Seen {
            keep_log: true,
            ..Seen::default()
        };
        for number in 0..2 * each {
            let dscp = dscps[number as usize % 2];
            let packet = packet(dscp.into(), number, 200).with_dscp(dscp);
            medium.enqueue(packet, 0, Way::Down, Time::ZERO, &mut seen);
        }
        medium.act(Time::from_secs(1), &mut seen);
        let arrived = core::iter::from_fn(|| medium.poll());
        let arrived = arrived.map(|departed| departed.packet.dscp).collect();
        let frames = seen.log.iter().map(|sent| sent.frames).collect();
        (frames, arrived)
    })
}

#[test]
fn an_aggregate_has_one_user_priority() {
    // IEEE 802.11-2020 §9.7.3. DF and AF21 are best effort both, of user priority 0 and 3 (RFC 8325, section 4.2.8).
    for (frames, arrived) in aggregates_of([0, 18], 8) {
        assert_eq!(frames.iter().sum::<u16>(), 16);
        let mut before = 0;
        for frames in frames {
            let all = &arrived[before..before + usize::from(frames)];
            assert!(all.iter().all(|dscp| *dscp == all[0]), "{arrived:?}");
            before += all.len();
        }
    }
    // DF and AF11 have user priority 0: an aggregate has both.
    let [(frames, arrived), _] = aggregates_of([0, 10], 8);
    assert_eq!(frames, [16]);
    assert_eq!(arrived, [0, 10].repeat(8));
}

#[test]
fn a_missing_frame_holds_back_only_its_user_priority() {
    // Block Ack has a window and a reordering buffer per TID (§10.25.2): while the receiver waits for a frame of one, the
    // frames of the other go up. With one user priority for both flows each waits for the other's frames.
    let bytes = 1514;
    let cell = Cell {
        aggregate_retry_limit: 200,
        ..Cell::new(Standard::N)
    };
    let mode = mode(&cell, 65_000);
    let success = |db: f64| {
        let snr = sojourn_wifi::phy::error::Snr::from_db(db);
        sojourn_wifi::phy::error::success(mode, snr, bytes)
    };
    let mut steps = (0..400).map(|step| f64::from(step) / 10.0);
    let snr_db = steps.find(|&db| success(db) > 0.5);
    let swaps = |dscp: u8| {
        let noisy = Station {
            snr_db,
            ..station(mode)
        };
        let mut medium = Medium::new(cell.clone(), ring(), vec![noisy]);
        let loads = [
            (0, Way::Down, 30, bytes, 0),
            (0, Way::Down, 30, bytes, dscp),
        ];
        let until = Time::from_secs(2);
        let received = saturate(&mut medium, &loads, until, &mut Seen::default());
        for load in 0..2 {
            let of_load = received
                .iter()
                .filter(|departed| departed.packet.flow.source == load);
            assert!(of_load.is_sorted_by_key(|departed| departed.packet.payload));
        }
        received
            .windows(2)
            .filter(|pair| pair[0].packet.payload > pair[1].packet.payload)
            .count()
    };
    assert_eq!(swaps(10), 0, "all in one order");
    assert!(swaps(18) > 100);
}

#[test]
fn a_station_with_both_user_priorities_of_a_category_gets_twice_the_airtime() {
    // Each of its queues in the kernel's order brings it a quantum (`ieee80211_next_txq`), as a Linux 7.2.13 shows in the
    // trace `priorities`. Turns of one transmission each are by queue, too.
    let share = |settings: Settings, dscp: u8| {
        let cell = Cell::new(Standard::N);
        let mode = mode(&cell, 65_000);
        let stations = vec![station(mode), station(mode)];
        let mut medium = Medium::new(cell, Queueing::Mac80211(settings), stations);
        let loads = [
            (0, Way::Down, 200, FULL, 0),
            (0, Way::Down, 200, FULL, dscp),
            (1, Way::Down, 200, FULL, 0),
        ];
        let until = Time::from_secs(4);
        let received = saturate(&mut medium, &loads, until, &mut Seen::default());
        let first = received.iter().filter(|departed| departed.station == 0);
        first.count() as f64 / received.len() as f64
    };
    for (kernel, fair) in [((7, 2), true), ((4, 12), true), ((7, 2), false)] {
        let mut settings = Settings::of_kernel(kernel.0, kernel.1);
        if !fair {
            settings.airtime_quantum = None;
        }
        let shares = [10, 18].map(|dscp| share(settings, dscp));
        assert!((shares[0] - 0.5).abs() < 0.02, "{kernel:?}: {shares:?}");
        assert!(
            (shares[1] - 2.0 / 3.0).abs() < 0.02,
            "{kernel:?}: {shares:?}"
        );
    }
}
