//! Keeps the first send time of each segment until it is acknowledged.

use std::collections::{BTreeMap, VecDeque};

use sojourn_tcp::seq::Seq;
use sojourn_traffic::Id;
use sojourn_units::Time;

/// The segments of a flow's connections that are not cumulatively acknowledged.
#[derive(Default)]
pub struct Unacknowledged {
    connections: BTreeMap<u32, Waiting>,
}

/// The unacknowledged segments of one connection.
struct Waiting {
    /// The sequence number after the last byte sent.
    next: Seq,
    /// In order: the sequence number after each segment, and when it was first sent.
    segments: VecDeque<(Seq, Time)>,
}

impl Unacknowledged {
    /// Notes a segment that ends before `end`. A segment that ends before earlier ones did is a retransmission.
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

    /// Forgets a closed connection.
    pub fn forget(&mut self, id: Id) {
        self.connections.remove(&id.0);
    }

    /// Acknowledges everything before `ack`. Returns the first send times of the newly acknowledged segments.
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

    /// Three segments are sent at 0, 1 and 2 ms; the second is lost and retransmitted at 40 ms. The first
    /// acknowledgement covers only the first segment; the next covers both others, counted from their first send times.
    #[test]
    fn a_segment_is_timed_from_its_first_transmission() {
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
