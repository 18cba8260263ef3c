use super::*;

/// A packet of flow 0 in the first queue.
fn row(entered_ms: u64, settled_ms: u64, fate: Fate) -> PacketRow {
    PacketRow {
        entered_ns: entered_ms * 1_000_000,
        settled_ns: settled_ms * 1_000_000,
        air_us: 0,
        flow: 0,
        bytes: 1000,
        queue: 0,
        returning: false,
        fate,
        refused: false,
    }
}

#[test]
fn drops_without_a_reason_get_that_of_the_counters_if_these_have_only_one() {
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
    // One of each: it is not known which is which, and not guessed.
    assert_eq!(
        fates(counted(2, 1)),
        [Fate::Dropped, Fate::Dropped, Fate::Delivered]
    );
}
