//! Drops acknowledgements that a later one in the same queue makes redundant (Høiland-Jørgensen, Täht and Morton 2018;
//! tc-cake(8), `ack-filter`).
//!
//! Departures from Linux: only a pure acknowledgement triggers the filter, not one with data; of SACK blocks only the
//! number of bytes is compared.

use crate::choice;
use crate::packet::{AckView, Packet};
use crate::pool::{Pool, Queue};

choice! {
    /// Which acknowledgements are dropped.
    pub enum AckFilter {
        /// None.
        Off = "no-ack-filter",
        /// The oldest redundant one, once there are two besides the arriving one.
        Conservative = "ack-filter",
        /// Also a single one, if the arriving one is directly behind it.
        Aggressive = "ack-filter-aggressive",
    }
}

impl AckFilter {
    /// Removes and returns the acknowledgement that the queue's last packet, which just arrived, makes redundant.
    pub(super) fn take_redundant<P: Packet>(
        self,
        pool: &mut Pool<P>,
        queue: &mut Queue,
    ) -> Option<P> {
        let at = self.redundant(pool, queue)?;
        pool.remove(queue, at)
    }

    fn redundant<P: Packet>(self, pool: &Pool<P>, queue: &Queue) -> Option<u32> {
        if self == Self::Off {
            return None;
        }
        let last = queue.back()?;
        let (flow, newest) = pool
            .get(last)
            .and_then(|packet| Some((packet.flow(), packet.ack()?)))?;
        if newest.must_keep {
            return None;
        }
        let mut oldest = None;
        let mut next = queue.front();
        while let Some(at) = next.filter(|&at| at != last) {
            next = pool.after(at);
            let ack = pool
                .get(at)
                .filter(|packet| packet.flow() == flow)
                .and_then(P::ack);
            match (ack, oldest) {
                // An acknowledgement that must be kept changes the state that earlier ones report.
                (Some(ack), _) if ack.must_keep => oldest = None,
                (Some(ack), None) if covers(newest, ack) => oldest = Some(at),
                (Some(ack), Some(oldest)) if covers(newest, ack) => return Some(oldest),
                _ => {}
            }
        }
        oldest.filter(|&at| self == Self::Aggressive && pool.after(at) == Some(last))
    }
}

/// True if `newer` carries all information of `older`, and more. A plain repetition is a duplicate acknowledgement,
/// which the sender counts.
fn covers(newer: AckView, older: AckView) -> bool {
    let advance = newer.ack.wrapping_sub(older.ack) as i32;
    let sacks_as_much = newer.sacked_bytes >= older.sacked_bytes;
    let says_more = advance > 0 || newer.sacked_bytes > older.sacked_bytes;
    advance >= 0 && sacks_as_much && says_more
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::testing::packet;
    use crate::{Datagram, FlowKey};

    fn ack(id: u64, ack: u32, sacked_bytes: u32) -> Datagram<u64> {
        Datagram {
            ack: Some(AckView {
                ack,
                sacked_bytes,
                must_keep: false,
            }),
            ..packet(1, id)
        }
    }

    fn keep(packet: Datagram<u64>) -> Datagram<u64> {
        let ack = packet.ack.map(|ack| AckView {
            must_keep: true,
            ..ack
        });
        Datagram { ack, ..packet }
    }

    /// The numbers of the packets filtered when these arrive.
    fn filtered(filter: AckFilter, packets: &[Datagram<u64>]) -> Vec<u64> {
        let mut pool = Pool::new();
        let mut queue = Queue::EMPTY;
        let mut taken = Vec::new();
        for &packet in packets {
            pool.push_back(&mut queue, packet);
            taken.extend(
                filter
                    .take_redundant(&mut pool, &mut queue)
                    .map(|packet| packet.payload),
            );
        }
        taken
    }

    #[test]
    fn of_two_redundant_acks_the_older_is_dropped() {
        let acks = [
            ack(0, 1000, 0),
            ack(1, 2000, 0),
            ack(2, 3000, 0),
            ack(3, 4000, 0),
        ];
        assert_eq!(filtered(AckFilter::Conservative, &acks), [0, 1]);
        assert_eq!(filtered(AckFilter::Aggressive, &acks), [0, 1, 2]);
        assert!(filtered(AckFilter::Off, &acks).is_empty());
    }

    #[test]
    fn sequence_numbers_wrap() {
        let acks = [ack(0, u32::MAX - 500, 0), ack(1, 500, 0)];
        assert_eq!(filtered(AckFilter::Aggressive, &acks), [0]);
        let acks = [ack(0, 500, 0), ack(1, u32::MAX - 500, 0)];
        assert!(filtered(AckFilter::Aggressive, &acks).is_empty());
    }

    #[test]
    fn duplicate_acks_and_acks_with_other_information_are_kept() {
        for kept in [
            // A duplicate acknowledgement.
            [ack(0, 1000, 0), ack(1, 1000, 0)],
            // The older one reports more bytes by SACK.
            [ack(0, 1000, 1448), ack(1, 2000, 0)],
            [keep(ack(0, 1000, 0)), ack(1, 2000, 0)],
            [ack(0, 1000, 0), keep(ack(1, 2000, 0))],
            // Data, and another flow's acknowledgement.
            [packet(1, 0), ack(1, 2000, 0)],
            [
                Datagram {
                    flow: FlowKey::numbered(2),
                    ..ack(0, 1000, 0)
                },
                ack(1, 2000, 0),
            ],
        ] {
            assert!(
                filtered(AckFilter::Aggressive, &kept).is_empty(),
                "{kept:?}"
            );
        }
        // More bytes by SACK at the same cumulative number make the older one redundant.
        let acks = [ack(0, 1000, 1448), ack(1, 1000, 2896)];
        assert_eq!(filtered(AckFilter::Aggressive, &acks), [0]);
    }

    #[test]
    fn a_single_redundant_ack_is_dropped_only_if_adjacent() {
        let packets = [ack(0, 1000, 0), packet(1, 1), ack(2, 2000, 0)];
        assert!(filtered(AckFilter::Aggressive, &packets).is_empty());
    }
}
