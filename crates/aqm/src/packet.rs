//! The fields of a packet that a discipline may read and change.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use sojourn_units::Time;

/// The ECN field of the IP header (RFC 3168 §5, RFC 9331 for ECT(1)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable: the only signal is a drop.
    #[default]
    NotEct,
    /// ECN-capable, classic semantics.
    Ect0,
    /// ECN-capable, L4S semantics.
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// The field as in the header: the two lowest bits of the byte that it shares with DSCP.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    /// The field from the header's byte; other bits are ignored.
    pub const fn from_bits(byte: u8) -> Self {
        match byte & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// True if congestion can be signalled by marking (a packet already marked counts).
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Identifies a flow. Disciplines hash it; host fairness uses its parts. It is made from a pair of socket addresses, IPv4 or
/// IPv6, or from parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FlowKey {
    /// Sending host: an IPv4 address, or 32 bits of a hash of an IPv6 address.
    pub source: u32,
    /// Receiving host, likewise.
    pub destination: u32,
    /// Sender's port; 0 for protocols without ports.
    pub source_port: u16,
    /// Receiver's port; 0 for protocols without ports.
    pub destination_port: u16,
    /// IP protocol number: 6 TCP, 17 UDP, 1 ICMP.
    pub protocol: u8,
}

impl FlowKey {
    /// The key of a flow that is known by a number only. Each number has hosts of its own, so that fairness between hosts is
    /// fairness between flows.
    pub const fn numbered(number: u32) -> Self {
        Self {
            source: number.wrapping_add(1000),
            destination: number.wrapping_add(5000),
            source_port: 1,
            destination_port: 2,
            protocol: 6,
        }
    }

    /// A well-mixed 32-bit hash of all parts. Different values of `salt` give independent hashes.
    pub fn hash(&self, salt: u64) -> u32 {
        mix(
            (u64::from(self.source) << 32 | u64::from(self.destination))
                ^ mix(
                    u64::from(self.source_port) << 24
                        | u64::from(self.destination_port) << 8
                        | u64::from(self.protocol),
                    salt,
                ),
            salt,
        ) as u32
    }
}

/// `192.0.2.1:443 > 198.51.100.2:50000 UDP`; of an IPv6 host, the bits of its hash in the form of an address.
impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [source, destination] = [self.source, self.destination].map(Ipv4Addr::from_bits);
        let (from, to) = (self.source_port, self.destination_port);
        write!(f, "{source}:{from} > {destination}:{to} ")?;
        match self.protocol {
            1 => f.write_str("ICMP"),
            6 => f.write_str("TCP"),
            17 => f.write_str("UDP"),
            other => write!(f, "protocol {other}"),
        }
    }
}

/// The key of a flow of UDP from the first address to the second; for another protocol, set [`FlowKey::protocol`]. An IPv6
/// address is hashed to 32 bits: two hosts are taken for one with a probability of 2^-32. Addresses mapped from IPv4 are
/// those of IPv4.
impl From<(SocketAddr, SocketAddr)> for FlowKey {
    fn from((source, destination): (SocketAddr, SocketAddr)) -> Self {
        Self {
            source: host(source.ip()),
            destination: host(destination.ip()),
            source_port: source.port(),
            destination_port: destination.port(),
            protocol: 17,
        }
    }
}

/// An address in 32 bits.
fn host(address: IpAddr) -> u32 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            mix(bits as u64, mix((bits >> 64) as u64, 0)) as u32
        }
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014) over `value` and `salt`. The high half is folded into the low
/// one, so that every bit of the result depends on every bit of the input.
pub(crate) const fn mix(value: u64, salt: u64) -> u64 {
    let mut z = value
        .wrapping_add(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A pure TCP acknowledgement as an ACK filter sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckView {
    /// Cumulative acknowledgement number.
    pub ack: u32,
    /// Bytes beyond `ack` that its SACK blocks report.
    pub sacked_bytes: u32,
    /// True if it carries information that must not be lost (ECE, CWR, SYN, FIN, RST, D-SACK …).
    pub must_keep: bool,
}

/// A packet in a queue: simulated, real bytes in a buffer, or a row of a recording.
pub trait Packet {
    /// Bytes that the packet occupies on the link, link header included.
    fn bytes(&self) -> u32;
    /// The ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets the ECN field to [`Ecn::Ce`]. Only called on ECN-capable packets.
    fn set_ce(&mut self);
    /// When the packet entered the queue, as set by [`Packet::set_enqueued`].
    fn enqueued(&self) -> Time;
    /// Sets the time of arrival at the queue. The discipline calls it once, before anything else.
    fn set_enqueued(&mut self, now: Time);
    /// The flow that the packet belongs to.
    fn flow(&self) -> FlowKey;
    /// The number of the packet's flow, if it knows one; packets of other flows have other numbers. Disciplines remember the hash
    /// of a flow by it, and need not hash [`Packet::flow`] again. It changes no result.
    fn flow_number(&self) -> Option<u64> {
        None
    }
    /// The queue that the flow's hash selects, if it is known: in a recording. Disciplines that hash flows use it, modulo
    /// their number of queues.
    fn bucket(&self) -> Option<u32> {
        None
    }
    /// The DiffServ code point, 0 to 63.
    fn dscp(&self) -> u8 {
        0
    }
    /// Sets the inner queue that the packet leaves or is dropped from, as an index into
    /// [`crate::Qdisc::inner_queues`]. Used only for measurements; an implementation may ignore it.
    fn set_inner_queue(&mut self, _number: u8) {}
    /// `Some` if the packet is a pure TCP acknowledgement.
    fn ack(&self) -> Option<AckView> {
        None
    }
    /// How many packets follow it in the same object, of a burst: see [`crate::Qdisc::takes_bursts`].
    fn followers(&self) -> u32 {
        0
    }
}

/// The packet's bytes if it carries CE, otherwise zero.
pub(crate) fn ce_bytes(packet: &impl Packet) -> u64 {
    if packet.ecn() == Ecn::Ce {
        u64::from(packet.bytes())
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::string::ToString;
    use core::net::Ipv6Addr;

    use super::*;

    fn between(source: &str, destination: &str) -> FlowKey {
        let parse = |text: &str| text.parse::<SocketAddr>().expect("an address");
        FlowKey::from((parse(source), parse(destination)))
    }

    #[test]
    fn the_addresses_of_a_datagram_are_its_flow() {
        let key = between("10.1.0.2:50000", "192.0.2.1:443");
        let expected = FlowKey {
            source: 0x0a01_0002,
            destination: 0xc000_0201,
            source_port: 50_000,
            destination_port: 443,
            protocol: 17,
        };
        assert_eq!(key, expected);
        assert_eq!(key.to_string(), "10.1.0.2:50000 > 192.0.2.1:443 UDP");
        let sctp = FlowKey {
            protocol: 132,
            ..key
        };
        assert!(sctp.to_string().ends_with(":443 protocol 132"));
        assert_eq!(
            between("[::ffff:10.1.0.2]:50000", "[::ffff:192.0.2.1]:443"),
            expected
        );
    }

    #[test]
    fn flows_of_ipv6_differ_in_every_part_of_their_addresses() {
        let to = |source: &str| between(source, "[2001:db8::1]:443");
        let keys = [
            to("[2001:db8::2]:50000"),
            to("[2001:db8::3]:50000"),
            to("[2001:db8::2]:50001"),
            to("[2001:db9::2]:50000"),
            between("[2001:db8::1]:443", "[2001:db8::2]:50000"),
        ];
        for (number, key) in keys.iter().enumerate() {
            assert!(!keys[..number].contains(key), "{key:?}");
        }
        // 1000 hosts of one prefix: a collision is expected in one of 8600 such sets.
        let hosts = (0..1000_u128).map(|n| host(Ipv6Addr::from(0x2001_0db8 << 96 | n).into()));
        assert_eq!(hosts.collect::<BTreeSet<u32>>().len(), 1000);
    }
}
