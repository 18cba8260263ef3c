//! Impairments of a [`Path`].

use core::time::Duration;

use proptest::prelude::*;
use sojourn_path::impair::{Jitter, Loss, Shape};
use sojourn_path::{Datagram, Delivery, Event, Impair, Path, Verdict, Way};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn path<T: Clone + Send + 'static>(impair: Impair, seed: u64) -> Path<T> {
    let path = Path::new("1 Gbit/s", "40 ms").and_then(|path| path.impair(Way::Down, impair));
    path.expect("they are accepted").seed(seed).build()
}

/// What arrives of so many packets of 100 bytes, one each `gap`.
fn sent(impair: Impair, packets: u32, gap: Duration, seed: u64) -> (Vec<Delivery<u32>>, Path<u32>) {
    let mut path = path(impair, seed);
    for number in 0..packets {
        path.send(gap * number, Way::Down, Datagram::new(number, 100));
    }
    let mut all = Vec::new();
    while let Some(now) = path.next_event() {
        all.extend(std::iter::from_fn(|| path.poll(now)));
    }
    (all, path)
}

fn delays_ms(arrived: &[Delivery<u32>]) -> Vec<f64> {
    let delay = |out: &Delivery<u32>| (out.at - out.sent).as_secs_f64() * 1e3;
    arrived.iter().map(delay).collect()
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / n).sqrt())
}

#[test]
fn each_packet_is_lost_by_itself() {
    let (arrived, path) = sent(Impair::new().loss(0.01), 100_000, ms(1), 1);
    let lost = path.counts(Way::Down).lost;
    assert_eq!(lost + arrived.len() as u64, 100_000);
    // 1000 are expected; the standard deviation is 31.
    assert!((900..1100).contains(&lost), "{lost}");
    // A packet behind a lost one is lost as often as any other: of 1000 about 10 are.
    let numbers: Vec<u32> = arrived.iter().map(|out| out.payload).collect();
    let twice = numbers
        .windows(2)
        .filter(|pair| pair[1] - pair[0] > 2)
        .count();
    assert!((2..25).contains(&twice), "{twice}");
}

/// Gilbert (1960): with certain losses in the bad state, bursts are 1/leave packets long in the mean, and the share of losses is
/// enter / (enter + leave).
#[test]
fn losses_come_in_bursts() {
    let impair = Impair::new().bursts(0.01, 0.25, 1.0, 0.0);
    let share = impair.loss.map(Loss::share);
    assert!((share.expect("a loss") - 0.01 / 0.26).abs() < 1e-12);
    let (arrived, path) = sent(impair, 200_000, ms(1), 3);
    let lost = path.counts(Way::Down).lost as f64;
    assert!(
        (lost / 200_000.0 / (0.01 / 0.26) - 1.0).abs() < 0.1,
        "{lost}"
    );
    let numbers: Vec<u32> = arrived.iter().map(|out| out.payload).collect();
    let bursts = numbers
        .windows(2)
        .filter(|pair| pair[1] - pair[0] > 1)
        .count() as f64;
    assert!((lost / bursts - 4.0).abs() < 0.25, "{}", lost / bursts);
}

/// Elliott (1963): losses in both states.
#[test]
fn the_good_state_may_lose_packets_as_well() {
    let impair = Impair::new().bursts(0.1, 0.3, 0.5, 0.1);
    let (_, path) = sent(impair, 100_000, ms(1), 3);
    // 1/4 of the time in the bad state: 0.25 · 0.5 + 0.75 · 0.1 = 0.2.
    let share = path.counts(Way::Down).lost as f64 / 100_000.0;
    assert!((share - 0.2).abs() < 0.01, "{share}");
}

/// Packets are so far apart that none is held up by the one before it.
#[test]
fn jitter_has_its_mean_and_its_spread() {
    for (shape, mean, spread, deviation) in [
        (Shape::Normal, ms(0), ms(3), 3.0),
        (Shape::Normal, ms(5), ms(3), 3.0),
        // The standard deviation of a uniform distribution is its half width by the root of 3.
        (Shape::Uniform, ms(5), ms(3), 3.0 / 3.0_f64.sqrt()),
        (Shape::Pareto, ms(5), ms(3), 3.0),
    ] {
        let jitter = Jitter::new(mean.into(), spread.into(), shape);
        let (arrived, _) = sent(Impair::new().jitter_of(jitter), 100_000, ms(200), 1);
        let (is, varies) = moments(&delays_ms(&arrived));
        let expected = 20.0 + mean.as_secs_f64() * 1e3;
        assert!((is - expected).abs() < 0.05, "{shape:?}: {is}");
        // The variance of so heavy a tail settles slowly.
        let within = if shape == Shape::Pareto { 0.3 } else { 0.05 };
        assert!((varies - deviation).abs() < within, "{shape:?}: {varies}");
    }
}

#[test]
fn a_delay_is_never_negative() {
    let (arrived, _) = sent(Impair::new().jitter("100 ms"), 10_000, ms(1000), 1);
    let delays = delays_ms(&arrived);
    // P(20 + 100 z < 0) = 0.42.
    let cut = delays.iter().filter(|delay| **delay == 0.0).count();
    assert!((4000..4400).contains(&cut), "{cut}");
}

#[test]
fn jitter_does_not_reorder_packets_but_reordering_does() {
    let (arrived, _) = sent(Impair::new().jitter("3 ms"), 10_000, us(100), 1);
    assert!(arrived.is_sorted_by_key(|out| out.payload));
    let (arrived, _) = sent(Impair::new().reorder(0.01, "5 ms"), 10_000, us(100), 1);
    let early: Vec<_> = arrived
        .iter()
        .filter(|out| out.at - out.sent == ms(15))
        .collect();
    assert!((70..130).contains(&early.len()), "{}", early.len());
    // 5 ms are 50 packets, which they overtake, but for those among them that overtake as well.
    let place = |number: u32| arrived.iter().position(|out| out.payload == number);
    for out in early
        .iter()
        .filter(|out| out.payload > 100 && out.payload < 9000)
    {
        let ahead = place(out.payload).map(|place| out.payload as usize - place);
        assert!(
            ahead.is_some_and(|ahead| (44..=50).contains(&ahead)),
            "{ahead:?}"
        );
    }
    // All others stay in order.
    let others = arrived.iter().filter(|out| out.at - out.sent > ms(15));
    assert!(others.is_sorted_by_key(|out| out.payload));
}

#[test]
fn a_copy_arrives_right_behind_its_packet() {
    let (arrived, mut path) = sent(Impair::new().duplicate(0.1), 10_000, ms(1), 1);
    let twins = arrived.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    let counts = path.counts(Way::Down);
    assert_eq!(counts.duplicated, twins);
    assert_eq!(counts.sent + twins, counts.delivered);
    assert!((900..1100).contains(&twins), "{twins}");
    let told = |event: &Event| event.verdict == Verdict::Duplicated;
    assert_eq!(path.verdicts().filter(told).count() as u64, twins);
}

#[test]
fn a_damaged_packet_is_lost_at_its_receiver_or_delivered_as_such() {
    let corrupt = Impair::new().corrupt(0.1);
    let (arrived, mut path) = sent(corrupt.clone(), 10_000, ms(1), 1);
    let lost: Vec<Event> = path
        .verdicts()
        .filter(|event| event.verdict == Verdict::Lost)
        .collect();
    assert_eq!(lost.len() + arrived.len(), 10_000);
    assert!((900..1100).contains(&lost.len()), "{}", lost.len());
    // It has travelled: it is lost 20 ms after it was sent.
    assert!(
        lost.iter()
            .all(|event| event.at == ms(event.number) + ms(20))
    );
    assert!(arrived.iter().all(|out| !out.damaged));
    let (arrived, _) = sent(corrupt.deliver_damaged(), 10_000, ms(1), 1);
    let damaged: Vec<u64> = arrived
        .iter()
        .filter(|out| out.damaged)
        .map(|out| out.number)
        .collect();
    assert_eq!(
        damaged,
        lost.iter().map(|event| event.number).collect::<Vec<_>>()
    );
    assert_eq!(arrived.len(), 10_000);
}

#[test]
fn the_delay_follows_its_trace_and_packets_stay_in_order() {
    let trace = [(ms(0), ms(10)), (ms(100), ms(50)), (ms(200), ms(20))];
    let (arrived, _) = sent(Impair::new().delays(trace), 30, ms(10), 1);
    let expected = (0..30).map(|n| match n * 10 {
        sent @ ..100 => sent + 10,
        sent @ ..200 => sent + 50,
        // The last packet of 50 ms arrives at 240 ms.
        sent => (sent + 20).max(240),
    });
    let at: Vec<Duration> = arrived.iter().map(|out| out.at).collect();
    assert_eq!(at, expected.map(ms).collect::<Vec<_>>());
}

#[test]
fn each_impairment_draws_from_a_stream_of_its_own() {
    let lost = |impair: Impair| {
        let (_, mut path) = sent(impair, 5000, ms(1), 5);
        let lost = path
            .verdicts()
            .filter(|event| event.verdict == Verdict::Lost);
        lost.map(|event| event.number).collect::<Vec<_>>()
    };
    let alone = lost(Impair::new().loss(0.02));
    assert!(!alone.is_empty());
    let more = Impair::new()
        .loss(0.02)
        .jitter("1 ms")
        .duplicate(0.1)
        .reorder(0.1, "1 ms");
    assert_eq!(lost(more), alone);
}

#[test]
fn the_queue_does_not_see_what_is_lost_behind_it() {
    let (_, mut path) = sent(Impair::new().loss(0.5), 1000, ms(1), 1);
    let count = |events: &[Event], wanted: fn(&Verdict) -> bool| {
        events.iter().filter(|event| wanted(&event.verdict)).count()
    };
    let events: Vec<Event> = path.verdicts().collect();
    assert_eq!(
        count(&events, |what| matches!(what, Verdict::Left { .. })),
        1000
    );
    assert_eq!(
        count(&events, |what| matches!(what, Verdict::Dropped { .. })),
        0
    );
}

#[test]
fn a_wrong_argument_is_told_by_its_key() {
    let told = |impair| {
        let path = Path::<()>::new("1 Mbit/s", "1 ms").expect("a path");
        path.impair(Way::Up, impair)
            .expect_err("it is wrong")
            .to_string()
    };
    let new = Impair::new;
    assert_eq!(
        told(new().loss(1.5)),
        "loss: got 1.5; must be a number from 0 to 1"
    );
    assert_eq!(
        told(new().corrupt(f64::NAN)),
        "corrupt: got NaN; must be a number from 0 to 1"
    );
    assert!(told(new().jitter("3")).starts_with("jitter: got \"3\"; must be a time like"));
    assert!(told(new().bursts(0.1, 2.0, 1.0, 0.0)).starts_with("leave: got 2"));
    let back = [(ms(1), ms(1)), (ms(0), ms(1))];
    assert_eq!(
        told(new().delays(back)),
        "delays: must be in the order of their instants"
    );
}

fn impair() -> impl Strategy<Value = Impair> {
    let share = || prop_oneof![Just(0.0), 0.0..0.5_f64];
    let span = || (0_u64..20_000).prop_map(us);
    (
        share(),
        share(),
        share(),
        share(),
        span(),
        span(),
        any::<[bool; 3]>(),
    )
        .prop_map(
            |(loss, duplicate, corrupt, reorder, jitter, by, [bursts, jitters, traced])| {
                let mut impair = Impair::new().duplicate(duplicate).corrupt(corrupt);
                impair = if bursts {
                    impair.bursts(loss, 0.3, 1.0, 0.0)
                } else {
                    impair.loss(loss)
                };
                if jitters {
                    impair = impair.jitter(jitter);
                }
                if reorder > 0.0 {
                    impair = impair.reorder(reorder, by);
                }
                if traced {
                    impair = impair.delays([(ms(0), ms(30)), (ms(20), ms(1)), (ms(50), ms(90))]);
                }
                impair
            },
        )
}

proptest! {
    /// Sent + duplicated = delivered + dropped + lost + under way at every call; the same seed gives the same; without reordering
    /// packets stay in order; and nothing stays behind.
    #[test]
    fn no_packet_is_lost_uncounted(
        impair in impair(),
        sends in proptest::collection::vec((0_u64..3000, 40_u32..2000, any::<bool>()), 1..200),
        seed in any::<u64>(),
    ) {
        let play = || {
            let mut path = Path::<usize>::new("10 Mbit/s", "20 ms")
                .and_then(|path| path.aqm("codel", [("limit", "20 packets")]))
                .and_then(|path| path.up("2 Mbit/s", "pfifo"))
                .and_then(|path| path.impair(Way::Down, impair.clone()))
                .and_then(|path| path.impair(Way::Up, impair.clone()))
                .expect("a path")
                .seed(seed)
                .build();
            let (mut now, mut all) = (Duration::ZERO, Vec::new());
            let balanced = |path: &Path<usize>| {
                let counts = [Way::Down, Way::Up].map(|way| path.counts(way));
                let came: u64 = counts.iter().map(|of| of.sent + of.duplicated).sum();
                let went: u64 = counts.iter().map(|of| of.delivered + of.dropped + of.lost).sum();
                came == went + path.packets()
            };
            for (number, (after, bytes, down)) in sends.iter().enumerate() {
                now += us(*after);
                let way = if *down { Way::Down } else { Way::Up };
                path.send(now, way, Datagram::new(number, *bytes));
                assert!(balanced(&path));
            }
            while let Some(now) = path.next_event() {
                all.extend(std::iter::from_fn(|| path.poll(now)));
                assert!(balanced(&path));
            }
            assert_eq!(path.packets(), 0);
            (all, path.verdicts().collect::<Vec<_>>())
        };
        let outcome = play();
        prop_assert_eq!(&outcome, &play());
        prop_assert!(outcome.0.is_sorted_by_key(|out| out.at));
        for way in [Way::Down, Way::Up] {
            let of = outcome.0.iter().filter(|out| out.way == way);
            prop_assert!(impair.reorder.is_some() || of.is_sorted_by_key(|out| out.payload));
        }
    }
}
