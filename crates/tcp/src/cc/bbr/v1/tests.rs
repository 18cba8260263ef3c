//! BBR on a path of 100 segments per second and 100 ms, step by step.

use super::*;
use crate::seq::Seq;

const RTT: Duration = Duration::from_millis(100);

fn ack(now_ms: u64, rtt: Duration) -> AckEvent {
    AckEvent {
        now: Time::from_millis(now_ms),
        delivered: 1,
        acked: 1,
        marks: 0,
        rtt: Some(rtt),
        una: Seq(1),
        next: Seq(2),
    }
}

/// A sample of 100 segments per second; the segment was sent with `prior` delivered, of `total` now.
fn sample(prior: u64, total: u64, in_flight: u32) -> Sample {
    Sample {
        rate: Some(RateSample {
            delivered: 10,
            interval: RTT,
            prior_delivered: prior,
            ..RateSample::default()
        }),
        total_delivered: total,
        prior_in_flight: in_flight + 1,
        in_flight,
        smoothed_rtt: Some(RTT),
        mss: 1250,
        ..Sample::default()
    }
}

/// `count` rounds of ten acknowledgements each, from round `first` on, at a constant rate.
fn rounds(bbr: &mut Bbr, window: &mut Window, first: u64, count: u64, in_flight: u32) {
    for n in 10 * first..10 * (first + count) {
        bbr.on_sample(
            &ack(n * 10, RTT),
            &sample(n.saturating_sub(10), n, in_flight),
            window,
        );
    }
}

/// BBRHighGain times the bandwidth, 1 % less: 1 Mbit/s · 2.887 · 0.99.
#[test]
fn startup_paces_at_the_high_gain() {
    let mut bbr = Bbr::new(1250);
    let mut window = Window::new(10);
    bbr.on_sample(&ack(100, RTT), &sample(0, 10, 10), &mut window);
    let bps = bbr.pacing_rate().expect("a rate").as_bps();
    assert!((2_850_000..2_862_000).contains(&bps), "{bps}");
    assert_eq!(window.cwnd, 11); // slow start: one per segment delivered
}

/// draft §4.3.2.2: three rounds without a quarter more; then DRAIN until the path holds one product.
#[test]
fn a_bandwidth_that_stands_still_for_three_rounds_ends_startup() {
    let mut bbr = Bbr::new(1250);
    let mut window = Window::new(10);
    rounds(&mut bbr, &mut window, 1, 3, 30);
    assert_eq!(bbr.mode, Mode::Startup);
    rounds(&mut bbr, &mut window, 4, 1, 30);
    assert_eq!(bbr.mode, Mode::Drain);
    rounds(&mut bbr, &mut window, 5, 1, 10);
    assert!(matches!(bbr.mode, Mode::ProbeBandwidth(_)));
}

/// 100 per second times 100 ms are 10, twice that 20; three bursts of one segment (below 1.2 Mbit/s), rounded up to
/// even: 24, plus the allowance for aggregation.
#[test]
fn the_window_is_twice_the_product() {
    let bbr = Bbr {
        min_rtt: Some(RTT),
        ..Bbr::new(1250)
    };
    let product = product(bandwidth(10, RTT), bbr.min_rtt, CWND_GAIN);
    assert_eq!(product, 20);
    assert_eq!(bbr.with_quantum(product), 24);
}

/// draft §4.3.4.2: 1.25, 0.75, then six rounds at 1.
#[test]
fn the_cycle_probes_drains_and_cruises() {
    let mut bbr = Bbr::new(1250);
    let mut window = Window::new(10);
    rounds(&mut bbr, &mut window, 1, 4, 30);
    rounds(&mut bbr, &mut window, 5, 1, 10);
    bbr.mode = Mode::ProbeBandwidth(0);
    bbr.cycle_start = Time::from_millis(600);
    // 700 ms: an RTT has passed, but the path holds less than 1.25 products (13 + 3 + … = 18): the phase continues.
    bbr.on_sample(&ack(701, RTT), &sample(60, 70, 10), &mut window);
    assert_eq!(bbr.mode, Mode::ProbeBandwidth(0));
    bbr.on_sample(&ack(710, RTT), &sample(60, 71, 20), &mut window);
    assert_eq!(
        (bbr.mode, bbr.pacing_gain()),
        (Mode::ProbeBandwidth(1), 192)
    );
    // The queue is drained as soon as the path holds one product (10 + 3, even: 14).
    bbr.on_sample(&ack(720, RTT), &sample(60, 72, 13), &mut window);
    assert_eq!(
        (bbr.mode, bbr.pacing_gain()),
        (Mode::ProbeBandwidth(2), 256)
    );
}

/// draft §4.3.5: after 10 s without a new minimum the window is four for 200 ms and a round.
#[test]
fn an_old_minimum_rtt_is_probed_for() {
    let mut bbr = Bbr::new(1250);
    let mut window = Window::new(10);
    rounds(&mut bbr, &mut window, 1, 4, 30);
    rounds(&mut bbr, &mut window, 5, 1, 10);
    let slower = RTT + Duration::from_millis(20);
    bbr.on_sample(&ack(10_101, slower), &sample(60, 70, 10), &mut window);
    assert_eq!((bbr.mode, window.cwnd), (Mode::ProbeRtt(None), 4));
    assert_eq!(bbr.min_rtt, Some(slower)); // the old one has expired
    bbr.on_sample(&ack(10_200, RTT), &sample(69, 80, 4), &mut window);
    bbr.on_sample(&ack(10_300, RTT), &sample(80, 90, 4), &mut window);
    assert!(matches!(bbr.mode, Mode::ProbeRtt(Some((_, true)))));
    bbr.on_sample(&ack(10_401, RTT), &sample(90, 100, 4), &mut window);
    assert!(matches!(bbr.mode, Mode::ProbeBandwidth(_)));
    assert!(
        window.cwnd > 10,
        "back to the window from before: {}",
        window.cwnd
    );
}

/// draft §4.2.3.4: on entering recovery the window follows the delivered data; afterwards the prior window is
/// restored.
#[test]
fn recovery_conserves_packets_for_a_round() {
    let mut bbr = Bbr::new(1250);
    let mut window = Window::new(10);
    rounds(&mut bbr, &mut window, 1, 4, 30);
    bbr.on_congestion(Signal::Loss, &window);
    let lossy = Sample {
        lost: 2,
        phase: RecoveryPhase::Recovery,
        ..sample(45, 50, 8)
    };
    bbr.on_sample(&ack(510, RTT), &lossy, &mut window);
    assert_eq!(window.cwnd, 9); // eight in flight and the one delivered
    bbr.on_sample(&ack(520, RTT), &sample(46, 51, 8), &mut window);
    // A round later the prior window (34, of start-up) is restored, which the model now bounds at twice the product.
    assert_eq!(window.cwnd, 24);
}

/// Other flows have filled the path before the first data arrives: the handshake's RTT is the path's, and sets the
/// first rate.
#[test]
fn the_handshake_gives_the_least_rtt() {
    let mut bbr = Bbr::new(1250);
    let mut window = Window::new(10);
    let handshake = AckEvent {
        delivered: 0,
        acked: 0,
        ..ack(100, RTT / 2)
    };
    bbr.on_delivery(&handshake, &mut window);
    assert_eq!(bbr.min_rtt, Some(RTT / 2));
    bbr.on_delivery(&ack(200, RTT), &mut window);
    let slow = Sample {
        rate: None,
        ..sample(0, 1, 9)
    };
    bbr.on_sample(&ack(200, RTT), &slow, &mut window);
    assert_eq!(bbr.min_rtt, Some(RTT / 2));
    // Ten segments of 1250 bytes per 50 ms, times 2.887, 1 % less.
    let bps = bbr.pacing_rate().expect("a rate").as_bps();
    assert!((5_700_000..5_724_000).contains(&bps), "{bps}");
}
