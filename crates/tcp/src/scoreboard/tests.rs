use super::*;

const MSS: u32 = 1000;

/// A scoreboard of `count` segments sent one millisecond apart.
fn scoreboard(count: u32) -> Scoreboard {
    let mut scoreboard = Scoreboard::new(MSS as u16, false);
    for n in 0..count {
        scoreboard.push(Seq(n * MSS), MSS, Time::from_millis(u64::from(n)), None);
    }
    scoreboard
}

fn block(from: u32, to: u32) -> SackBlock {
    SackBlock {
        start: Seq(from * MSS),
        end: Seq(to * MSS),
    }
}

fn acked_at(now_ms: u64) -> Acked {
    Acked {
        now: Time::from_millis(now_ms),
        ..Acked::default()
    }
}

fn sack(scoreboard: &mut Scoreboard, blocks: &[SackBlock], now_ms: u64) -> Acked {
    let mut acked = acked_at(now_ms);
    let mut all = [SackBlock::NONE; MAX_SACK_BLOCKS];
    all[..blocks.len()].copy_from_slice(blocks);
    scoreboard.sack(all, blocks.len(), &mut acked);
    acked
}

fn acknowledge(scoreboard: &mut Scoreboard, upto: u32, now_ms: u64) -> Acked {
    let mut acked = acked_at(now_ms);
    let sacked_before = scoreboard.highest_sacked();
    scoreboard.acknowledge(Seq(upto * MSS), sacked_before, &mut acked);
    acked
}

#[test]
fn in_flight_excludes_sacked_and_lost_segments_and_counts_retransmissions() {
    // RFC 6675 §4, SetPipe, in segments.
    let mut scoreboard = scoreboard(10);
    assert_eq!(scoreboard.in_flight(), 10);
    sack(&mut scoreboard, &[block(3, 6)], 103);
    assert_eq!(scoreboard.in_flight(), 7);
    let losses = scoreboard.detect_losses(Time::from_millis(110), Duration::ZERO);
    assert_eq!(losses.segments, 3); // 0, 1, 2 were sent before 5
    assert_eq!(scoreboard.in_flight(), 4);
    assert_eq!(scoreboard.next_lost(), Some((Seq(0), MSS)));
    scoreboard.mark_resent(Time::from_millis(110), None);
    assert_eq!(scoreboard.in_flight(), 5);
    assert_eq!(scoreboard.next_lost(), Some((Seq(MSS), MSS)));
}

#[test]
fn a_block_seen_before_is_not_counted_twice() {
    let mut scoreboard = scoreboard(10);
    assert_eq!(sack(&mut scoreboard, &[block(3, 6)], 103).sacked, 3);
    assert_eq!(sack(&mut scoreboard, &[block(3, 7)], 104).sacked, 1);
    assert_eq!(
        sack(&mut scoreboard, &[block(2, 8), block(9, 10)], 105).sacked,
        3
    );
    assert_eq!(scoreboard.sacked(), 7);
}

#[test]
fn a_segment_within_the_reordering_window_is_not_judged_yet() {
    // RFC 8985 §6.2: lost if sent before the delivered one and RACK.rtt + reo_wnd has passed.
    let mut scoreboard = scoreboard(4);
    sack(&mut scoreboard, &[block(3, 4)], 103); // sent at 3 ms: RTT 100 ms
    let losses = scoreboard.detect_losses(Time::from_millis(103), Duration::from_millis(2));
    assert_eq!(losses.segments, 2); // overdue since 102 (segment 0) and 103 ms (segment 1)
    assert_eq!(losses.judge_in, Some(Duration::from_millis(1)));
}

#[test]
fn a_retransmission_that_is_overdue_is_lost_again() {
    let mut scoreboard = scoreboard(6);
    sack(&mut scoreboard, &[block(1, 2)], 101);
    assert_eq!(
        scoreboard
            .detect_losses(Time::from_millis(101), Duration::ZERO)
            .segments,
        1
    );
    scoreboard.next_lost().expect("segment 0 is lost");
    scoreboard.mark_resent(Time::from_millis(101), None);
    // A segment sent after the retransmission is delivered 100 ms later.
    scoreboard.push(Seq(6 * MSS), MSS, Time::from_millis(102), None);
    sack(&mut scoreboard, &[block(6, 7), block(1, 6)], 202);
    let losses = scoreboard.detect_losses(Time::from_millis(202), Duration::ZERO);
    assert_eq!((losses.segments, losses.resent), (1, true));
    assert_eq!(scoreboard.next_lost(), Some((Seq(0), MSS)));
}

/// Where all goes well, nobody asks from where on to judge and to resend. These indices are wrapping counters, too.
#[test]
fn no_index_is_left_far_behind_while_all_goes_well() {
    let mut scoreboard = scoreboard(1);
    for n in 0..5_000 {
        scoreboard.push(Seq((1 + n) * MSS), MSS, Time::ZERO, None);
        let acked = scoreboard.acknowledge_clean(Seq((1 + n) * MSS), Time::ZERO);
        assert_eq!(acked.expect("a segment").segments, 1);
        for index in [scoreboard.judged, scoreboard.resend_from] {
            let behind = scoreboard.first.wrapping_sub(index) as usize;
            assert!(behind <= 2 * scoreboard.ring.len());
        }
    }
    assert!(5_000 > 4 * scoreboard.ring.len(), "some turns");
}

#[test]
fn an_ack_gives_the_first_and_last_send_times_of_originals() {
    let mut scoreboard = scoreboard(5);
    let acked = acknowledge(&mut scoreboard, 3, 103);
    assert_eq!((acked.delivered, acked.cumulative), (3, 3));
    assert_eq!(acked.ack_times, Some((Time::ZERO, Time::from_millis(2))));
    assert!(!acked.resent_acked);
}

#[test]
fn an_ack_within_a_segment_trims_it() {
    let mut scoreboard = scoreboard(2);
    let mut acked = acked_at(100);
    scoreboard.acknowledge(Seq(400), None, &mut acked);
    assert_eq!(acked.cumulative, 0);
    assert_eq!(scoreboard.outstanding(), 2);
    let mut acked = acked_at(101);
    scoreboard.acknowledge(Seq(1000), None, &mut acked);
    assert_eq!(acked.cumulative, 1);
}

#[test]
fn a_timeout_marks_all_but_the_sacked_segments_lost() {
    let mut scoreboard = scoreboard(5);
    sack(&mut scoreboard, &[block(2, 3)], 102);
    scoreboard.mark_all_lost(Time::from_secs(1), scoreboard.rack_rtt(), false);
    assert_eq!(
        (
            scoreboard.lost(),
            scoreboard.sacked(),
            scoreboard.in_flight()
        ),
        (4, 1, 0)
    );
    let mut resent = Vec::new();
    while let Some((seq, _)) = scoreboard.next_lost() {
        resent.push(seq.0 / MSS);
        scoreboard.mark_resent(Time::from_secs(1), None);
    }
    assert_eq!(resent, [0, 1, 3, 4]);
}

#[test]
fn the_ring_grows_without_losing_anything() {
    let mut scoreboard = scoreboard(1000);
    sack(&mut scoreboard, &[block(500, 1000)], 1100);
    assert_eq!(scoreboard.sacked(), 500);
    assert_eq!(acknowledge(&mut scoreboard, 1000, 1200).cumulative, 1000);
    assert!(scoreboard.is_empty());
    assert_eq!(
        (
            scoreboard.in_flight(),
            scoreboard.sacked(),
            scoreboard.lost()
        ),
        (0, 0, 0)
    );
}

#[test]
fn an_overtaken_segment_is_reordering() {
    let mut scoreboard = scoreboard(10);
    sack(&mut scoreboard, &[block(5, 6)], 105);
    assert_eq!(acknowledge(&mut scoreboard, 2, 106).reordering, 5);
}

/// The blocks of an acknowledgement report segments beyond its cumulative part.
#[test]
fn a_segment_acknowledged_together_with_blocks_above_it_is_not_reordering() {
    let mut scoreboard = scoreboard(10);
    let mut acked = sack(&mut scoreboard, &[block(3, 4)], 103);
    scoreboard.acknowledge(Seq(2 * MSS), None, &mut acked);
    assert_eq!((acked.delivered, acked.reordering), (3, 0));
}

proptest::proptest! {
    /// What is noted of segments that SACK reports together is what each apart leaves.
    #[test]
    fn segments_that_are_reported_together_leave_what_each_leaves(
        earlier in (0_u32..30, 1_u32..8),
        window_ms in 0_u64..60,
        resent in 0_u32..6,
        (from, count) in (0_u32..30, 1_u32..12),
        recovery_point in 0_u32..40,
    ) {
        let before = || {
            let mut scoreboard = scoreboard(40);
            sack(&mut scoreboard, &[block(earlier.0, earlier.0 + earlier.1)], 130);
            scoreboard.detect_losses(Time::from_millis(140), Duration::from_millis(window_ms));
            for _ in 0..resent {
                if scoreboard.next_lost().is_some() {
                    scoreboard.mark_resent(Time::from_millis(140), None);
                }
            }
            let acked = Acked {
                recovery_point: Seq(recovery_point * MSS),
                min_rtt: Duration::from_millis(50),
                ..acked_at(160)
            };
            (scoreboard, acked)
        };
        let (mut together, mut acked) = before();
        together.sack_range(Seq(from * MSS), Seq((from + count) * MSS), &mut acked);
        let (mut apart, mut of_each) = before();
        for index in from..(from + count).min(40) {
            if !apart.at(index).sacked {
                apart.note_sacked(index, &mut of_each);
            }
        }
        proptest::prop_assert_eq!(
            format!("{together:?} {acked:?}"),
            format!("{apart:?} {of_each:?}")
        );
    }
}
