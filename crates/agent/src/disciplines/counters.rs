//! The counters of a discipline in `tc -s qdisc show`.

use super::{Overflow, row};

/// The counters of a discipline in `tc -s`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Counters {
    /// Drops for any reason.
    pub dropped: u64,
    /// Drops for lack of room.
    pub overflow: u64,
    /// Marks; `None` if it does not count them, or `tc` does not show them.
    pub marked: Option<u64>,
    /// Packets in the queue.
    pub backlog_packets: u64,
    /// The drop probability, if it has one.
    pub probability: Option<f64>,
}

/// Reads the counters of the qdisc with handle `leaf` (`10:`) from the output of `tc -s qdisc show`.
pub fn counters(aqm: &str, leaf: &str, shown: &str) -> Option<Counters> {
    let row = row(aqm)?;
    let head = format!(" {leaf} ");
    let own = shown
        .split("qdisc ")
        .find(|text| text.lines().next().is_some_and(|line| line.contains(&head)))?;
    let own = own.split_once('\n').map_or("", |(_, rest)| rest);
    let sum = |names: &[&str]| {
        names
            .iter()
            .map(|name| numbers_after(own, name))
            .sum::<u64>()
    };
    let dropped = first_after(own, "dropped")? as u64;
    Some(Counters {
        dropped,
        overflow: match row.overflow {
            Overflow::All => dropped,
            Overflow::Counted(names) => sum(names).min(dropped),
            Overflow::AllBut(names) => dropped.saturating_sub(sum(names)),
        },
        marked: (!row.marked.is_empty()).then(|| sum(row.marked)),
        backlog_packets: packets_in_backlog(own).unwrap_or(0),
        probability: first_after(own, "prob"),
    })
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "(),".contains(c))
        .filter(|token| !token.is_empty())
}

/// The number after the first `name`.
fn first_after(text: &str, name: &str) -> Option<f64> {
    let mut rest = tokens(text).skip_while(|token| *token != name).skip(1);
    rest.next()?.parse().ok()
}

/// The sum of all whole numbers directly after the first `name`: CAKE has a column per tin.
fn numbers_after(text: &str, name: &str) -> u64 {
    let rest = tokens(text).skip_while(|token| *token != name).skip(1);
    rest.map_while(|token| token.parse::<u64>().ok()).sum()
}

fn packets_in_backlog(text: &str) -> Option<u64> {
    let mut rest = tokens(text).skip_while(|token| *token != "backlog").skip(2);
    rest.next()?.strip_suffix('p')?.parse().ok()
}
