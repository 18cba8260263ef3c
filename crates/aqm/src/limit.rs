//! How much a queue may hold.

/// How much a queue may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// A number of packets.
    Packets(u64),
    /// A number of bytes, link headers included.
    Bytes(u64),
}

impl Limit {
    /// True if a packet of `bytes` still fits in a queue of `packets` packets and `queued_bytes` bytes.
    pub const fn has_room(self, packets: u64, queued_bytes: u64, bytes: u32) -> bool {
        match self {
            Self::Packets(limit) => packets < limit,
            Self::Bytes(limit) => queued_bytes + bytes as u64 <= limit,
        }
    }

    /// As many of `most` packets of `bytes` as still fit in such a queue, one after the other.
    pub(crate) fn room(self, packets: u64, queued_bytes: u64, bytes: u32, most: u32) -> u32 {
        let room = match self {
            Self::Packets(limit) => limit.saturating_sub(packets),
            Self::Bytes(limit) => limit
                .checked_sub(queued_bytes)
                .map_or(0, |room| room.checked_div(bytes.into()).unwrap_or(u64::MAX)),
        };
        room.min(most.into()) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_room_is_that_of_packets_one_by_one(
            limit in prop_oneof![(0_u64..20).prop_map(Limit::Packets), (0_u64..5000).prop_map(Limit::Bytes)],
            packets in 0_u64..25,
            queued_bytes in 0_u64..6000,
            bytes in 0_u32..1500,
            most in 0_u32..20,
        ) {
            let fits = |n: &u32| {
                let queued_bytes = queued_bytes + u64::from(n * bytes);
                limit.has_room(packets + u64::from(*n), queued_bytes, bytes)
            };
            let fitting = (0..most).take_while(fits).count();
            prop_assert_eq!(limit.room(packets, queued_bytes, bytes, most), fitting as u32);
        }
    }
}
