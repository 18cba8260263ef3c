//! Recorded tables: columns of numbers.

use sojourn_units::Hop;

/// A recorded table: named columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The columns in order.
    pub columns: Vec<(&'static str, Column)>,
}

/// A column of numbers.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Column {
    U8(Vec<u8>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F64(Vec<f64>),
}

impl Table {
    /// This table followed by the rows of another with the same columns.
    pub fn stacked(mut self, other: Self) -> Self {
        for ((_, column), (_, more)) in self.columns.iter_mut().zip(other.columns) {
            match (column, more) {
                (Column::U8(column), Column::U8(more)) => column.extend(more),
                (Column::U32(column), Column::U32(more)) => column.extend(more),
                (Column::U64(column), Column::U64(more)) => column.extend(more),
                (Column::F64(column), Column::F64(more)) => column.extend(more),
                _ => unreachable!("tables of one kind have columns of the same types"),
            }
        }
        self
    }
}

/// The columns that identify the queue of `rows` rows: `link`, its number in the file, and `direction`, 0 down, 1 up.
pub fn place_columns(queue: Hop, rows: usize) -> Vec<(&'static str, Column)> {
    vec![
        ("link", Column::U8(vec![queue.link as u8; rows])),
        ("direction", Column::U8(vec![queue.way as u8; rows])),
    ]
}
