//! The recorded table of a medium: a row per transmission.

use sojourn_measure::result::{Column, Table};
use sojourn_wifi::{Node, Transmitted, Use};

use super::Cell;

impl<P> Cell<P> {
    /// The table of the link with this number; `None` if it was not recorded.
    pub fn medium_table(&self, link: usize) -> Option<Table> {
        let rows = self.counts.transmitted.as_ref()?;
        let u8s = |of: fn(&Transmitted) -> u8| Column::U8(rows.iter().map(of).collect());
        let u32s = |of: fn(&Transmitted) -> u32| Column::U32(rows.iter().map(of).collect());
        let u64s = |of: fn(&Transmitted) -> u64| Column::U64(rows.iter().map(of).collect());
        let columns = vec![
            ("link", Column::U8(vec![link as u8; rows.len()])),
            ("sender", u32s(|row| sender(row.node))),
            ("station", u32s(|row| u32::from(row.station) + 1)),
            ("access", u8s(|row| row.access.index() as u8)),
            ("outcome", u8s(|row| outcome(row.what))),
            ("waiting_since_ns", u64s(|row| row.waiting_since.as_nanos())),
            ("start_ns", u64s(|row| row.start.as_nanos())),
            ("end_ns", u64s(|row| row.end.as_nanos())),
            ("rate_bps", u64s(|row| row.mode.rate().as_bps())),
            ("frames", u32s(|row| row.frames.into())),
            ("received", u32s(|row| row.received.into())),
            ("tries", u8s(|row| row.tries)),
        ];
        Some(Table { columns })
    }
}

/// The access point is 0, the stations follow from 1 on.
const fn sender(node: Node) -> u32 {
    match node {
        Node::AccessPoint => 0,
        Node::Station(number) => number as u32 + 1,
    }
}

const fn outcome(what: Use) -> u8 {
    match what {
        Use::Exchange => 0,
        Use::Unanswered => 1,
        Use::Collision => 2,
    }
}
