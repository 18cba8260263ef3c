//! What was recorded, as tables.

use sojourn_experiment::derived::QueuePlace;
use sojourn_experiment::model::Hop;
use sojourn_measure::result::{Column, Table};
use sojourn_units::Duration;

use crate::disciplines::{Counters, counters};
use crate::job::Job;
use crate::recording::{Fate, FlowFigures, PacketRow, QueueFigures};

/// A row per packet.
pub fn packet_table(places: &[QueuePlace<'_>], packets: &[PacketRow]) -> Table {
    let at = |of: fn(Hop) -> u8| {
        let values = packets
            .iter()
            .map(|row| of(places[usize::from(row.queue)].hop));
        Column::U8(values.collect())
    };
    let bytes = |of: fn(&PacketRow) -> u8| Column::U8(packets.iter().map(of).collect());
    let words = |of: fn(&PacketRow) -> u32| Column::U32(packets.iter().map(of).collect());
    let longs = |of: fn(&PacketRow) -> u64| Column::U64(packets.iter().map(of).collect());
    Table {
        columns: vec![
            ("link", at(|hop| hop.link as u8)),
            ("direction", at(|hop| hop.way as u8)),
            ("time_ns", longs(|row| row.settled_ns)),
            ("sojourn_ns", longs(PacketRow::sojourn_ns)),
            ("flow", words(|row| row.flow)),
            ("bytes", words(|row| row.bytes)),
            ("returning", bytes(|row| u8::from(row.returning))),
            ("fate", bytes(fate)),
        ],
    }
}

/// The numbers of the `fate` column.
const fn fate(row: &PacketRow) -> u8 {
    match row.fate {
        Fate::Delivered => 0,
        Fate::Marked => 1,
        Fate::DroppedAqm => 2,
        Fate::DroppedOverflow => 3,
        Fate::Dropped => 4,
    }
}

/// One bin of one queue.
#[derive(Clone, Copy, Default)]
struct Bin {
    packets: u64,
    sum_ns: u64,
    longest_ns: u64,
    backlog_packets: u64,
    backlog_bytes: u64,
}

/// The bins of one queue. The backlog at a bin's end is what had entered by then and was not settled.
fn bins(packets: &[PacketRow], queue: usize, width_ns: u64, count: usize) -> Vec<Bin> {
    let mut bins = vec![Bin::default(); count];
    for row in packets.iter().filter(|row| usize::from(row.queue) == queue) {
        let (from, to) = (row.entered_ns / width_ns, row.settled_ns / width_ns);
        for bin in bins.iter_mut().take(to as usize).skip(from as usize) {
            bin.backlog_packets += 1;
            bin.backlog_bytes += u64::from(row.bytes);
        }
        if let (true, Some(bin)) = (row.is_delivered(), bins.get_mut(to as usize)) {
            bin.packets += 1;
            bin.sum_ns += row.sojourn_ns();
            bin.longest_ns = bin.longest_ns.max(row.sojourn_ns());
        }
    }
    bins
}

/// A row per queue and bin.
pub fn queue_series(
    job: &Job,
    places: &[QueuePlace<'_>],
    width: Duration,
    packets: &[PacketRow],
    queues: &[QueueFigures],
) -> Table {
    let count = (job.duration_ns / width.as_nanos()) as usize;
    let each: Vec<(usize, Vec<Bin>, Vec<Counters>)> = job
        .bottlenecks
        .iter()
        .zip(queues)
        .enumerate()
        .map(|(index, (of, figures))| {
            let counted = figures
                .series
                .iter()
                .map(|shown| counters(&of.aqm, &of.leaf, shown).unwrap_or_default());
            (
                index,
                bins(packets, index, width.as_nanos(), count),
                counted.collect(),
            )
        })
        .collect();
    // A row per bin and queue, as the simulator has them.
    let rows: Vec<(f64, usize, Bin, Counters)> = (0..count)
        .flat_map(|bin| {
            let time_s = width.as_secs_f64() * bin as f64;
            each.iter().map(move |(index, bins, counted)| {
                (
                    time_s,
                    *index,
                    bins[bin],
                    counted.get(bin).copied().unwrap_or_default(),
                )
            })
        })
        .collect();
    let at = |of: fn(Hop) -> u8| Column::U8(rows.iter().map(|row| of(places[row.1].hop)).collect());
    let floats =
        |of: fn(&(f64, usize, Bin, Counters)) -> f64| Column::F64(rows.iter().map(of).collect());
    let longs =
        |of: fn(&(f64, usize, Bin, Counters)) -> u64| Column::U64(rows.iter().map(of).collect());
    Table {
        columns: vec![
            ("time_s", floats(|row| row.0)),
            ("link", at(|hop| hop.link as u8)),
            ("direction", at(|hop| hop.way as u8)),
            ("packets", longs(|row| row.2.packets)),
            (
                "sojourn_mean_ms",
                floats(|row| row.2.sum_ns as f64 / row.2.packets as f64 / 1e6),
            ),
            (
                "sojourn_max_ms",
                floats(|row| row.2.longest_ns as f64 / 1e6),
            ),
            ("backlog_packets", longs(|row| row.2.backlog_packets)),
            ("backlog_bytes", longs(|row| row.2.backlog_bytes)),
            ("dropped", longs(|row| row.3.dropped)),
            ("marked", longs(|row| row.3.marked)),
            (
                "probability",
                floats(|row| row.3.probability.unwrap_or(f64::NAN)),
            ),
        ],
    }
}

/// A row per flow and bin.
pub fn flow_series(width: Duration, flows: &[FlowFigures]) -> Table {
    let count = flows
        .iter()
        .map(|flow| flow.series.len())
        .max()
        .unwrap_or(0);
    let mut table: (Vec<f64>, Vec<u32>, Vec<f64>, Vec<f64>) = Default::default();
    let mut rtt_ms = Vec::new();
    let means: Vec<Vec<f64>> = flows
        .iter()
        .map(|flow| mean_rtts_ms(&flow.round_trips, width, count))
        .collect();
    for bin in 0..count {
        for (number, flow) in flows.iter().enumerate() {
            let Some((received, window)) = flow.series.get(bin) else {
                continue;
            };
            rtt_ms.push(means[number].get(bin).copied().unwrap_or(f64::NAN));
            let before = bin.checked_sub(1).map_or(0, |before| flow.series[before].0);
            table.0.push(width.as_secs_f64() * bin as f64);
            table.1.push(number as u32);
            table
                .2
                .push((received - before) as f64 * 8.0 / width.as_secs_f64());
            table.3.push(window.map_or(f64::NAN, f64::from));
        }
    }
    Table {
        columns: vec![
            ("time_s", Column::F64(table.0)),
            ("flow", Column::U32(table.1)),
            ("goodput_bps", Column::F64(table.2)),
            ("cwnd_segments", Column::F64(table.3)),
            ("rtt_ms", Column::F64(rtt_ms)),
        ],
    }
}

/// The mean of the round-trip times in each bin; NaN where there are none. A sample at a bin's end is the bin's.
fn mean_rtts_ms(round_trips: &[(u64, u32)], width: Duration, count: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); count];
    for (at_ns, rtt_us) in round_trips {
        let bin = at_ns.saturating_sub(1) / width.as_nanos();
        if let Some((sum, n)) = sums.get_mut(bin as usize) {
            *sum += f64::from(*rtt_us) / 1e3;
            *n += 1.0;
        }
    }
    sums.iter().map(|(sum, n)| sum / n).collect()
}

/// Every round-trip time, flow by flow.
pub fn rtts(flows: &[FlowFigures]) -> Table {
    let rows: Vec<(u64, u32, u64)> = flows
        .iter()
        .zip(0..)
        .flat_map(|(flow, number)| {
            let of =
                move |(at_ns, rtt_us): &(u64, u32)| (*at_ns, number, u64::from(*rtt_us) * 1000);
            flow.round_trips.iter().map(of)
        })
        .collect();
    Table {
        columns: vec![
            (
                "time_ns",
                Column::U64(rows.iter().map(|row| row.0).collect()),
            ),
            ("flow", Column::U32(rows.iter().map(|row| row.1).collect())),
            (
                "rtt_ns",
                Column::U64(rows.iter().map(|row| row.2).collect()),
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

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
}
