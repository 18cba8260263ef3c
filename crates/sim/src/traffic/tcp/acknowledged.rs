//! When segments were first sent, until they are acknowledged.

use std::collections::{BTreeMap, VecDeque};

use sojourn_tcp::seq::Seq;
use sojourn_traffic::Id;
use sojourn_units::Time;

/// The segments of a flow's connections that are not cumulatively acknowledged.
#[derive(Default)]
pub struct Unacknowledged {
    connections: BTreeMap<u32, Waiting>,
}

/// Those of one connection.
struct Waiting {
    /// Sequence number after the last that was sent.
    next: Seq,
    /// Sequence numbers after each segment, in order, and when it was first sent.
    segments: VecDeque<(Seq, Time)>,
}

impl Unacknowledged {
    /// A segment is sent that ends before `end`; not the first time if it ends before others did.
    pub fn send(&mut self, id: Id, end: Seq, now: Time) {
        let waiting = self.connections.entry(id.0).or_insert_with(|| Waiting {
            next: end,
            segments: VecDeque::from([(end, now)]),
        });
        if end.after(waiting.next) {
            waiting.next = end;
            waiting.segments.push_back((end, now));
        }
    }

    /// A connection is over.
    pub fn forget(&mut self, id: Id) {
        self.connections.remove(&id.0);
    }

    /// Everything before `ack` is acknowledged: when the segments were sent that were not before.
    pub fn acknowledge(&mut self, id: Id, ack: Seq) -> impl Iterator<Item = Time> + '_ {
        let waiting = self.connections.get_mut(&id.0);
        let count = waiting.as_ref().map_or(0, |waiting| {
            waiting.segments.partition_point(|(end, _)| !end.after(ack))
        });
        waiting
            .into_iter()
            .flat_map(move |waiting| waiting.segments.drain(..count))
            .map(|(_, sent_at)| sent_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three segments sent at 0, 1 and 2 ms; the second is lost and sent again at 40 ms. The acknowledgement of the first
    /// says nothing of the others; the next one covers both, counted from when they were first sent.
    #[test]
    fn a_segment_counts_from_its_first_sending() {
        let (id, at) = (Id(0), Time::from_millis);
        let mut segments = Unacknowledged::default();
        for (end, ms) in [(1000, 0), (2000, 1), (3000, 2), (2000, 40)] {
            segments.send(id, Seq(end), at(ms));
        }
        let mut acknowledge = |ack| segments.acknowledge(id, Seq(ack)).collect::<Vec<_>>();
        assert_eq!(acknowledge(1000), [at(0)]);
        assert_eq!(acknowledge(1000), []);
        assert_eq!(acknowledge(3000), [at(1), at(2)]);
    }
}
