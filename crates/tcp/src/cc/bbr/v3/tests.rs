//! BBR3 on a path of 100 segments per second and 100 ms, step by step.

use super::*;
use crate::cc::RateSample;

const RTT: Duration = Duration::from_millis(100);

fn ack(now_ms: u64) -> AckEvent {
    AckEvent {
        now: Time::from_millis(now_ms),
        delivered: 1,
        acked: 1,
        marks: 0,
        rtt: Some(RTT),
        una: Seq(1),
        next: Seq(2),
    }
}

/// A sample of 100 segments per second, the newest sent with `in_flight` in flight and `lost` lost since.
fn sample(total: u64, in_flight: u32, lost: u32) -> Sample {
    Sample {
        rate: Some(RateSample {
            delivered: 10,
            interval: RTT,
            prior_delivered: total.saturating_sub(10),
            in_flight_at_send: in_flight,
            lost,
            app_limited: false,
        }),
        total_delivered: total,
        lost,
        prior_in_flight: in_flight,
        in_flight,
        smoothed_rtt: Some(RTT),
        mss: 1250,
        ..Sample::default()
    }
}

/// A segment that was sent with `in_flight` in flight, and since when `lost` are lost.
fn lost(now_ms: u64, in_flight: u32, lost: u32) -> LostSegment {
    LostSegment {
        now: Time::from_millis(now_ms),
        una: Seq(1),
        delivered: now_ms / 10,
        in_flight_at_send: in_flight,
        lost,
        app_limited: false,
    }
}

/// A BBR3 that has filled the pipe (ten segments) and drained its queue, and its window.
fn settled() -> (Bbr3, Window) {
    let (mut bbr, mut window) = (Bbr3::new(1250), Window::new(10));
    for n in 10..60 {
        bbr.on_sample(&ack(n * 10), &sample(n, 10, 0), &mut window);
    }
    (bbr, window)
}

/// §5.3.1: 4 ln 2 times ten per 100 ms, 1 % less: 100 · 10 000 bit · 2.766 · 0.99.
#[test]
fn startup_paces_at_four_times_the_logarithm_of_two() {
    let (mut bbr, mut window) = (Bbr3::new(1250), Window::new(9));
    bbr.on_sample(&ack(100), &sample(10, 10, 0), &mut window);
    let bps = bbr.pacing_rate().expect("a rate").as_bps();
    assert!((2_735_000..2_745_000).contains(&bps), "{bps}");
}

#[test]
fn a_plateau_ends_startup_and_drain_follows() {
    let (bbr, window) = settled();
    assert!(bbr.full);
    assert!(
        matches!(bbr.mode, Mode::Down | Mode::Cruise),
        "{:?}",
        bbr.mode
    );
    assert!((20..=30).contains(&window.cwnd), "{}", window.cwnd); // twice the product, and the quantum
}

/// §5.5.10.2: 1 of 40 is 2.5 %: what was in flight before that segment becomes the bound, and the probe ends.
#[test]
fn losses_above_two_percent_while_probing_bound_the_data_in_flight() {
    let (mut bbr, window) = settled();
    bbr.mode = Mode::Up;
    bbr.plateau = Plateau::default();
    bbr.probing = true;
    bbr.on_lost(&lost(700, 60, 1), &window); // 1.7 %
    assert_eq!((bbr.mode, bbr.in_flight_long), (Mode::Up, UNBOUNDED));
    bbr.on_lost(&lost(710, 40, 1), &window);
    assert_eq!((bbr.mode, bbr.in_flight_long), (Mode::Down, 39));
}

/// §5.3.3.2: 15 % of 40 are left to others while cruising.
#[test]
fn cruising_leaves_headroom() {
    let (mut bbr, _) = settled();
    bbr.in_flight_long = 40;
    bbr.mode = Mode::Cruise;
    assert_eq!(bbr.bound(), 35); // 40 · 38/256 = 5.9, rounded down
    bbr.mode = Mode::Refill;
    assert_eq!(bbr.bound(), 40);
}

/// §5.5.10.3: a round with losses takes three tenths off the short-term bounds, but not below the delivered data (10).
/// From 40 the result is 28, in 256ths 27.9 and so 27; from 12 it would be 8.
#[test]
fn losses_while_cruising_bound_the_short_term() {
    for (cwnd, bound) in [(40, 27), (12, 10)] {
        let (mut bbr, mut window) = settled();
        bbr.mode = Mode::Cruise;
        window.cwnd = cwnd;
        bbr.on_lost(&lost(700, 10, 1), &window);
        // A round from then on: until a segment is delivered that was sent when 70 were.
        for n in 70..80 {
            bbr.on_sample(&ack(10 * n), &sample(n, 10, 0), &mut window);
            assert_eq!(bbr.in_flight_short, UNBOUNDED, "{n}");
        }
        window.cwnd = cwnd;
        for n in 80..90 {
            bbr.on_sample(&ack(10 * n), &sample(n, 10, 0), &mut window);
        }
        assert_eq!(bbr.in_flight_short, bound, "window {cwnd}");
        assert_eq!(bbr.estimate(), bandwidth(10, RTT)); // the bandwidth was delivered all the same
    }
}

/// §5.3.4: after five seconds without a lower RTT the window is half the product for 200 ms and a round.
#[test]
fn the_path_is_emptied_every_five_seconds() {
    let (mut bbr, mut window) = settled();
    let before = window.cwnd;
    let slower = |now_ms| AckEvent {
        rtt: Some(RTT + Duration::from_millis(10)),
        ..ack(now_ms)
    };
    bbr.on_sample(&slower(5_200), &sample(520, 10, 0), &mut window);
    assert_eq!((bbr.mode, window.cwnd), (Mode::ProbeRtt(None), 5));
    assert_eq!(bbr.min_rtt, Some(RTT)); // believed for ten seconds
    bbr.on_sample(&ack(5_300), &sample(530, 5, 0), &mut window);
    bbr.on_sample(&ack(5_400), &sample(541, 5, 0), &mut window);
    bbr.on_sample(&ack(5_501), &sample(552, 5, 0), &mut window);
    assert_eq!(bbr.mode, Mode::Cruise);
    assert!(window.cwnd >= before.min(20), "{}", window.cwnd);
}

/// §5.5.10.2: by one segment in the first round of a probe, by two in the second.
#[test]
fn a_probe_raises_the_bound_faster_and_faster() {
    let (mut bbr, mut window) = settled();
    window.cwnd = 20;
    window.limiting = true;
    bbr.in_flight_long = 20;
    bbr.up_rounds = 0;
    bbr.steepen(&window);
    bbr.rounds.started = false;
    for _ in 0..20 {
        bbr.raise_bound(&ack(700), &window);
        window.cwnd = bbr.in_flight_long;
    }
    assert_eq!(bbr.in_flight_long, 21);
    bbr.steepen(&window);
    for _ in 0..20 {
        bbr.raise_bound(&ack(800), &window);
        window.cwnd = bbr.in_flight_long;
    }
    assert_eq!(bbr.in_flight_long, 23);
}

/// §5.3.2: with more in flight than the product, DRAIN ends when the fourth round after its own begins.
#[test]
fn drain_ends_after_three_rounds() {
    let (mut bbr, mut window) = settled();
    bbr.mode = Mode::Drain;
    bbr.drain_start = bbr.rounds.count;
    let mut left = None;
    for n in 60..160 {
        bbr.on_sample(&ack(n * 10), &sample(n, 30, 0), &mut window);
        if bbr.mode == Mode::Drain {
            left = Some(bbr.rounds.count - bbr.drain_start);
        }
    }
    assert_eq!(left, Some(3));
    assert_ne!(bbr.mode, Mode::Drain);
}

/// §5.3.2: at the first acknowledgement with no more in flight than the product, 14 with its allowance for bursts, whenever
/// pacing releases the next segment.
#[test]
fn drain_ends_when_the_product_is_in_flight() {
    for (in_flight, drains) in [(15, true), (14, false)] {
        let (mut bbr, mut window) = settled();
        bbr.mode = Mode::Drain;
        bbr.drain_start = bbr.rounds.count;
        let release = Time::from_millis(900);
        let paced = Sample {
            release,
            ..sample(60, in_flight, 0)
        };
        bbr.on_sample(&ack(600), &paced, &mut window);
        assert_eq!(bbr.mode == Mode::Drain, drains);
    }
}

/// §5.5.10.2: losses count when they are judged. An acknowledgement that comes late, of a segment since whose sending all was
/// judged lost, ends no probe.
#[test]
fn late_acknowledgements_do_not_end_a_probe() {
    let (mut bbr, mut window) = settled();
    (bbr.mode, bbr.probing) = (Mode::Up, true);
    bbr.plateau = Plateau::default();
    bbr.on_sample(&ack(700), &sample(70, 40, 30), &mut window);
    assert_eq!((bbr.mode, bbr.in_flight_long), (Mode::Up, UNBOUNDED));
}

/// §5.3.4.3: in PROBE_RTT, and in no other state.
#[test]
fn samples_of_probe_rtt_do_not_count() {
    let (mut bbr, mut window) = settled();
    assert!(!bbr.limits_itself());
    bbr.on_sample(&ack(6000), &sample(60, 10, 0), &mut window);
    assert!(matches!(bbr.mode, Mode::ProbeRtt(_)));
    assert!(bbr.limits_itself());
}

/// §5.5.11.2: a probe that needless losses ended begins again by REFILL, and the bounds are at least those before.
#[test]
fn a_needless_recovery_gives_back_the_bounds_and_the_probe() {
    let (mut bbr, mut window) = settled();
    (bbr.mode, bbr.probing, bbr.in_flight_long) = (Mode::Up, true, 60);
    bbr.plateau = Plateau::default();
    bbr.on_congestion(Signal::Loss, &window);
    bbr.on_lost(&lost(700, 40, 5), &window);
    bbr.on_sample(&ack(700), &sample(70, 40, 5), &mut window);
    assert_eq!((bbr.mode, bbr.in_flight_long), (Mode::Down, 39));
    bbr.on_lost(&lost(700, 40, 6), &window);
    for n in 71..90 {
        bbr.on_sample(&ack(10 * n), &sample(n, 10, 1), &mut window);
    }
    assert_ne!(bbr.in_flight_short, UNBOUNDED);
    bbr.on_undo(&window, 30);
    assert_eq!((bbr.mode, bbr.in_flight_long), (Mode::Refill, 60));
    assert_eq!(
        (bbr.bandwidth_short, bbr.in_flight_short),
        (Bandwidth::MAX, UNBOUNDED)
    );
}

/// §5.5.11.2, StartProbeBW_REFILL: the round of REFILL ends with a segment that is sent after the recovery proved needless.
#[test]
fn refill_after_a_needless_recovery_lasts_a_round() {
    let (mut bbr, mut window) = settled();
    (bbr.mode, bbr.probing) = (Mode::Up, true);
    bbr.on_congestion(Signal::Timeout, &window);
    bbr.on_lost(&lost(590, 40, 40), &window);
    assert_eq!(bbr.mode, Mode::Down);
    // The acknowledgement of an original, when 59 were delivered; the newest was sent at that time.
    for (total, sent_at, mode) in [
        (69, 59, Mode::Refill),
        (78, 68, Mode::Refill),
        (79, 69, Mode::Up),
    ] {
        let arrived = AckEvent {
            delivered: total as u32 - bbr.delivered as u32,
            ..ack(total * 10)
        };
        bbr.on_delivery(&arrived, &mut window);
        if total == 69 {
            bbr.on_undo(&window, 30);
        }
        let mut sample = sample(total, 10, 0);
        if let Some(rate) = &mut sample.rate {
            rate.prior_delivered = sent_at;
        }
        bbr.on_sample(&arrived, &sample, &mut window);
        assert_eq!(bbr.mode, mode, "{total}");
    }
}

/// §5.5.11.2: STARTUP that needless losses ended goes on.
#[test]
fn a_needless_recovery_gives_back_startup() {
    let (mut bbr, mut window) = (Bbr3::new(1250), Window::new(10));
    bbr.on_sample(&ack(100), &sample(10, 10, 0), &mut window);
    bbr.on_congestion(Signal::Loss, &window);
    for n in 11..60 {
        let lossy = Sample {
            phase: RecoveryPhase::Recovery,
            ..sample(n, 10, 1)
        };
        bbr.on_sample(&ack(n * 10), &lossy, &mut window);
        if bbr.full {
            break;
        }
    }
    assert!(bbr.full && bbr.plateau.reached);
    assert_ne!(bbr.mode, Mode::Startup);
    bbr.on_undo(&window, 30);
    assert!(!bbr.full);
    assert_eq!(bbr.mode, Mode::Startup);
}
