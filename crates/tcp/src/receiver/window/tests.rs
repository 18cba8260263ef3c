//! The receive window by hand, and as observed on kernels.

use super::*;
use crate::segment::SackBlock;

const MSS: u32 = 1448;

fn window() -> ReceiveWindow {
    ReceiveWindow::new(&Config::default(), Seq(0))
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// By hand: the first sample is 100 ms; 180 ms raise the RTT by an eighth of 80 ms, to 110; 105 ms apply at once.
#[test]
fn a_round_trip_falls_at_once_and_rises_slowly() {
    let mut window = window();
    let mut millis = |sample| {
        window.take_round_trip(sample);
        window.round_trip().as_millis()
    };
    assert_eq!(millis(100), 100);
    assert_eq!(millis(180), 110);
    assert_eq!(millis(105), 105);
}

/// Observed on a kernel of version 7.3 with a buffer of 6 MiB: the window is half of it at first, less a segment, then
/// 158/256 of it.
#[test]
fn since_6_12_the_window_begins_at_half_of_the_buffer_and_grows_to_the_payloads_share_of_it() {
    for kernel in [Kernel::V6_12, Kernel::V7_3] {
        begins_at_half_of_the_buffer(kernel);
    }
}

fn begins_at_half_of_the_buffer(kernel: Kernel) {
    let config = Config {
        kernel,
        ..Config::default()
    };
    let mut window = ReceiveWindow::new(&config, Seq(0));
    assert_eq!(
        window.offer(Seq(0), Unread::default(), at(0)),
        (3 << 20) - MSS
    );
    let segment = Segment {
        len: MSS as u16,
        ts_ecr: crate::timestamp(at(1)),
        ..Segment::default()
    };
    let none = OutOfOrder::default();
    window.measure(&segment, at(100));
    let growths = (101..1000)
        .take_while(|growing| window.grow(&segment, true, &none, at(*growing)))
        .count();
    assert_eq!(growths, 255, "737282 bytes in steps of 2896");
    assert_eq!(window.limit, 3_883_008);
    // The segment that arrives takes 2344 bytes of memory, so 2344 · 158 / 256 of the window; 6.12 has 3881561 then
    // (tcpi_rcv_ssthresh).
    assert_eq!(window.offered(), 3_883_008 - 1447);
}

/// What a hole kept back takes memory until the end of the instant in which it is filled.
#[test]
fn the_window_does_not_grow_while_what_fills_a_hole_is_not_read() {
    let mut window = window();
    let segment = Segment {
        len: MSS as u16,
        ..Segment::default()
    };
    let none = OutOfOrder::default();
    window.offered = window.limit - 10 * MSS;
    window.note_filled(MSS, Unread::segment(20 * MSS), at(1));
    assert!(!window.grow(&segment, true, &none, at(1)));
    assert!(window.grow(&segment, true, &none, at(2)));
}

/// By hand: 300 segments in a round trip after 100 are a growth by 200 %. Twice the data are 600, in 6.12 with 16 to
/// spare (tcp_rcv_space_adjust; 6.18: tcp_rcvbuf_grow); twice 200 % of that are added.
#[test]
fn the_limit_is_twice_the_data_and_twice_the_growth_of_that() {
    for (kernel, base) in [(Kernel::V6_12, 616), (Kernel::V6_18, 600)] {
        let mut window = of(kernel);
        window.take_round_trip(100);
        window.space = 100 * MSS;
        window.measured_since = at(100);
        window.delivered(Seq(299 * MSS), Seq(300 * MSS), at(200));
        window.read_before(at(201));
        assert_eq!(window.limit, (base + 2 * 2 * base) * MSS);
    }
}

/// Observed on a kernel: a segment takes 2280 bytes, and five times 128 more until half of it exceeds 1448.
#[test]
fn half_of_a_segments_memory_is_its_window() {
    assert_eq!(window().window_per_segment(), 1460);
}

/// Observed on a kernel whose buffer grew to 9346920 bytes, which are 2920 for each of 3201 segments. The first
/// round trip has 46 segments, with the retransmission that filled the hole. The second has 200, with the 146 that
/// had waited behind the hole. The last hole has 13 segments behind it, which are read together with the segment
/// that fills it.
#[test]
fn data_that_waited_behind_a_hole_counts_for_the_next_round_trip() {
    let mut window = window();
    window.take_round_trip(100);
    window.is_first = false; // this is not the first round trip
    window.space = 40 * MSS;
    window.measured_since = at(100);
    window.delivered(Seq(0), Seq(45 * MSS), at(150));
    window.delivered(Seq(45 * MSS), Seq(192 * MSS), at(500));
    window.read_before(at(501));
    assert_eq!(window.space, 46 * MSS);
    assert_eq!(window.limit, 3 << 20);
    window.delivered(Seq(192 * MSS), Seq(232 * MSS), at(599));
    window.delivered(Seq(232 * MSS), Seq(246 * MSS), at(600));
    window.read_before(at(601));
    assert_eq!(window.space, 200 * MSS);
    assert_eq!(window.limit, 3201 * 1460);
}

fn of(kernel: Kernel) -> ReceiveWindow {
    let config = Config {
        kernel,
        tuned_window: 1000 * MSS,
        ..Config::default()
    };
    ReceiveWindow::new(&config, Seq(0))
}

/// tcp_init_buffer_space reserves a segment, until tcp_rcv_space_adjust sets the limit anew.
#[test]
fn a_segment_is_reserved_until_the_limit_is_tuned() {
    let mut window = of(Kernel::V6_1);
    assert_eq!(window.limit_with(0), 999 * MSS);
    window.take_round_trip(100);
    window.delivered(Seq(899 * MSS), Seq(900 * MSS), at(100));
    window.read_before(at(101));
    assert_eq!(window.limit_with(0), window.limit);
    assert!(window.limit > 1000 * MSS);
}

/// Observed on 7.3: a hole was filled 570 segments after the last measurement; 350 behind it were not read yet. 220 count
/// (tcp_rcvbuf_grow: copied=825360 inq=506800, and then space=318560). 6.1 counts all.
#[test]
fn what_is_not_read_yet_is_subtracted_since_6_12() {
    for (kernel, space) in [(Kernel::V6_1, 570), (Kernel::V6_12, 220)] {
        let mut window = of(kernel);
        window.take_round_trip(300);
        window.space = 160 * MSS;
        window.delivered(Seq(569 * MSS), Seq(919 * MSS), at(341));
        // It is read after what else arrives at this instant.
        window.delivered(Seq(919 * MSS), Seq(920 * MSS), at(341));
        window.read_before(at(342));
        assert_eq!(window.space, space * MSS);
    }
}

/// By hand: the first segment arrives at 101 ms and tells 100 ms; what comes exactly 100 ms later is in the measurement
/// that it begins before Linux 7, which has 11 segments then (captures of 6.1 and 6.12, a flow alone on its path).
#[test]
fn the_first_round_trip_has_the_segment_that_comes_at_its_end_before_7() {
    for (kernel, segments) in [
        (Kernel::V6_1, 11),
        (Kernel::V6_12, 11),
        (Kernel::V6_18, 11),
        (Kernel::V7_3, 10),
    ] {
        let mut window = of(kernel);
        window.take_round_trip(100);
        let mut arrives = |n: u32, millis| {
            window.read_before(at(millis));
            window.delivered(Seq(n * MSS), Seq((n + 1) * MSS), at(millis));
        };
        arrives(0, 101);
        for n in 1..10 {
            arrives(n, 101 + u64::from(n));
        }
        arrives(10, 201);
        arrives(11, 202);
        window.read_before(at(203));
        assert_eq!(
            window.measured_from,
            Seq((1 + segments) * MSS),
            "{kernel:?}"
        );
    }
}

/// By hand: twice the 100 segments of a round trip and the 3000 to the end of what is behind a hole are more than 1000. When
/// the next round trip is read, which has 200, and the hole is 2900 long, its growth by 100 % counts, too.
#[test]
fn since_6_16_there_is_room_for_what_is_behind_a_hole() {
    let mut waiting = OutOfOrder::default();
    let last = SackBlock {
        start: Seq(3099 * MSS),
        end: Seq(3100 * MSS),
    };
    waiting.insert(last, 0, MSS);
    for (kernel, segments, later) in [
        (Kernel::V6_12, 1000, 416 + 2 * 416),
        (Kernel::V6_18, 3200, 400 + 2 * 400 + 2900),
    ] {
        let mut window = of(kernel);
        window.take_round_trip(100);
        window.space = 100 * MSS;
        window.measured_since = at(100);
        window.make_room(Seq(100 * MSS), &waiting);
        assert_eq!(window.limit, segments * MSS);
        window.delivered(Seq(199 * MSS), Seq(200 * MSS), at(200));
        window.read_before(at(201));
        assert_eq!(window.limit, later * MSS);
    }
}
