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
}
