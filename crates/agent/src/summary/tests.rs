use super::*;

fn row(entered_ms: u64, settled_ms: u64, fate: Fate) -> PacketRow {
    PacketRow {
        entered_ns: entered_ms * 1_000_000,
        settled_ns: settled_ms * 1_000_000,
        flow: 0,
        bytes: 1000,
        queue: 0,
        returning: false,
        fate,
    }
}

/// Of 1 to 10 the 5th is the smallest that half do not exceed, the 1st that a tenth, the 10th that 95 % do not.
#[test]
fn a_quantile_is_the_smallest_value_that_the_share_does_not_exceed() {
    let values: Vec<u64> = (1..=10).collect();
    let at = |q| quantile(&values, q);
    assert_eq!(
        [at(0.0), at(0.1), at(0.5), at(0.95), at(1.0)],
        [Some(1), Some(1), Some(5), Some(10), Some(10)]
    );
    assert_eq!(quantile::<u64>(&[], 0.5), None);
}

#[test]
fn drops_without_a_reason_take_it_from_the_counters() {
    let counted = |dropped, overflow| Counters {
        dropped,
        overflow,
        ..Counters::default()
    };
    let rows = || {
        vec![
            row(0, 50, Fate::Dropped),
            row(0, 10, Fate::Dropped),
            row(0, 5, Fate::Delivered),
        ]
    };
    let fates = |counted| {
        let mut rows = rows();
        attribute_drops(&mut rows, 0, counted);
        rows.iter().map(|row| row.fate).collect::<Vec<_>>()
    };
    let (aqm, overflow) = (Fate::DroppedAqm, Fate::DroppedOverflow);
    assert_eq!(fates(counted(2, 0)), [aqm, aqm, Fate::Delivered]);
    assert_eq!(fates(counted(2, 2)), [overflow, overflow, Fate::Delivered]);
    // One of each: the packet that waited longer was in the fuller queue.
    assert_eq!(fates(counted(2, 1)), [overflow, aqm, Fate::Delivered]);
}

/// Bins of 10 ms: one packet from 5 to 25 ms waits over the ends of bins 0 and 1 and leaves in bin 2.
#[test]
fn a_packet_is_backlog_at_the_end_of_every_bin_that_it_waits_through() {
    let bins = bins(
        &[row(5, 25, Fate::Delivered), row(12, 14, Fate::DroppedAqm)],
        0,
        10_000_000,
        3,
    );
    let backlog: Vec<u64> = bins.iter().map(|bin| bin.backlog_packets).collect();
    assert_eq!(backlog, [1, 1, 0]);
    assert_eq!((bins[2].packets, bins[2].longest_ns), (1, 20_000_000));
    assert_eq!((bins[1].packets, bins[1].backlog_bytes), (0, 1000));
}

/// In bins of 100 ms: 10 and 20 ms in the first, 5 ms at the very end of the third.
#[test]
fn round_trips_are_averaged_by_bin() {
    let samples = [
        (1_000_000, 10_000),
        (90_000_000, 20_000),
        (300_000_000, 5000),
    ];
    let means = mean_rtts_ms(&samples, Duration::from_millis(100), 3);
    assert_eq!((means[0], means[2]), (15.0, 5.0));
    assert!(means[1].is_nan());
}
