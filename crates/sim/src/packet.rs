//! A simulated packet: its contents, and what a queue may read from it.

use std::ops::{Deref, DerefMut};

use sojourn_aqm::packet::AckView;
use sojourn_aqm::{Ecn, FlowKey, Packet};
use sojourn_measure::probe;
use sojourn_tcp::segment::{Flags, SackBlock};
use sojourn_tcp::{Alike, Segment};
use sojourn_traffic::Side;
use sojourn_units::Time;

/// What a packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A TCP segment.
    Segment,
    /// A datagram.
    Datagram,
    /// An echo request or its reply, over ICMP.
    Echo,
    /// An echo request or its reply, over UDP.
    UdpEcho,
}

/// The flow and the connection of a packet, and its direction.
#[derive(Clone, Copy, Debug)]
pub struct Membership {
    /// The flow number, over all groups.
    pub flow: u32,
    /// The addresses of the data sender and of the receiver.
    pub hosts: [u32; 2],
    /// The connection number within the flow; each connection has its own port.
    pub connection: u32,
    /// The DiffServ code point.
    pub dscp: u8,
    /// True on the way back to the data sender.
    pub returning: bool,
}

/// A simulated packet. Its contents stay in place from sender to receiver; queues and delay lines move one pointer.
/// Copying the contents field by field just after writing them would cost more than all queue operations.
#[derive(Clone, Debug)]
pub struct SimPacket(Box<Contents>);

/// The contents and bookkeeping of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Contents {
    /// When it entered its current or last queue; before the first queue, when it was sent.
    pub enqueued: Time,
    /// When the datagram or the echo request was sent.
    pub sent_at: Time,
    /// The flow number, over all groups.
    pub flow: u32,
    /// The connection number within the flow.
    pub connection: u32,
    /// Bytes on the link.
    pub bytes: u32,
    /// The index of its next hop in the network's table.
    hop: u32,
    /// A datagram's number within its flow; wraps around.
    pub number: u32,
    /// The number of the packet in the run, if it was noted when it was sent.
    pub serial: u32,
    /// The addresses of the data sender and of the receiver.
    pub hosts: [u32; 2],
    /// What it carries.
    pub kind: Kind,
    /// The DiffServ code point.
    pub dscp: u8,
    /// True on the way back to the data sender.
    pub returning: bool,
    /// The ECN field.
    pub ecn: Ecn,
    /// The last inner queue that held it, in a discipline that has several.
    pub inner_queue: u8,
    /// The impairment that damaged it, plus 1; 0 for none.
    damaged: u16,
    /// In a Wi-Fi cell: its destination or source station.
    station: u16,
    /// The segments that follow it, if the packet is a burst.
    followers: Alike,
    /// The segment, valid if `kind` is [`Kind::Segment`].
    pub segment: Segment,
}

/// IP protocol numbers.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

impl SimPacket {
    /// An empty packet.
    #[cold]
    fn blank() -> Self {
        Self(Box::new(Contents {
            enqueued: Time::ZERO,
            sent_at: Time::ZERO,
            flow: 0,
            connection: 0,
            bytes: 0,
            hop: 0,
            number: 0,
            serial: 0,
            hosts: [0; 2],
            kind: Kind::Datagram,
            dscp: 0,
            returning: false,
            ecn: Ecn::NotEct,
            inner_queue: 0,
            damaged: 0,
            station: 0,
            followers: Alike::NONE,
            segment: Segment::default(),
        }))
    }

    /// Sets the header fields of a packet sent `now` that takes `bytes` on the link.
    pub fn address(&mut self, of: Membership, kind: Kind, bytes: u32, ecn: Ecn, now: Time) {
        self.enqueued = now;
        self.flow = of.flow;
        self.connection = of.connection;
        self.bytes = bytes;
        self.hosts = of.hosts;
        self.kind = kind;
        self.dscp = of.dscp;
        self.returning = of.returning;
        self.ecn = ecn;
    }

    /// Becomes a burst: these segments follow.
    pub fn begin_burst(&mut self, followers: Alike) {
        self.followers = followers;
    }

    /// The next packet of a burst, in place of the first.
    #[inline(always)]
    pub fn advance(&mut self) {
        let contents = &mut *self.0;
        contents.followers.advance(&mut contents.segment);
    }

    /// A copy, as a wire that duplicates makes it. TCP takes it as another segment; other receivers count a packet once.
    pub fn copied(&self) -> Self {
        let mut copy = self.clone();
        if copy.kind != Kind::Segment {
            copy.sent_at = Time::MAX;
        }
        copy
    }

    /// True for a copy of a packet that is not of TCP.
    pub fn is_copy(&self) -> bool {
        self.sent_at == Time::MAX
    }

    /// The segment, if the packet carries one.
    pub fn carried(&self) -> Option<&Segment> {
        (self.kind == Kind::Segment).then_some(&self.segment)
    }

    /// The host that the packet is addressed to.
    pub fn reaches(&self) -> Side {
        if self.returning {
            Side::Sending
        } else {
            Side::Receiving
        }
    }
}

impl probe::Packet for SimPacket {
    fn flow(&self) -> u32 {
        self.flow
    }
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn entered(&self) -> Time {
        self.enqueued
    }
    fn is_returning(&self) -> bool {
        self.returning
    }
    fn is_marked(&self) -> bool {
        self.ecn == Ecn::Ce
    }
    fn inner_queue(&self) -> u8 {
        self.inner_queue
    }
    fn number(&self) -> Option<u32> {
        Some(self.serial)
    }
}

impl Deref for SimPacket {
    type Target = Contents;
    fn deref(&self) -> &Contents {
        &self.0
    }
}

impl DerefMut for SimPacket {
    fn deref_mut(&mut self) -> &mut Contents {
        &mut self.0
    }
}

/// A pool of delivered and dropped packets for reuse.
#[derive(Debug, Default)]
pub struct Packets {
    free: Vec<SimPacket>,
}

impl Packets {
    /// The packet that [`Packets::take`] returns next.
    #[inline(always)]
    pub fn spare(&mut self) -> &mut SimPacket {
        if self.free.is_empty() {
            self.give_back(SimPacket::blank());
        }
        let last = self.free.len() - 1;
        &mut self.free[last]
    }

    /// Takes a packet from the pool. It still has its old contents; the caller overwrites them.
    pub fn take(&mut self) -> SimPacket {
        self.free.pop().unwrap_or_else(SimPacket::blank)
    }

    /// Takes the first `count` packets off a burst that has more.
    #[inline(always)]
    pub fn split(&mut self, burst: &mut SimPacket, count: u32) -> SimPacket {
        let mut first = self.take();
        *first = **burst;
        let rest = &mut *burst.0;
        first.followers = rest.followers.split(&mut rest.segment, count);
        first
    }

    /// Returns a packet that was delivered to the pool.
    pub fn give_back(&mut self, packet: SimPacket) {
        self.free.push(packet);
    }

    /// Returns a packet that was dropped or lost, which may have been damaged before.
    pub fn give_back_lost(&mut self, mut packet: SimPacket) {
        packet.damaged = 0;
        self.free.push(packet);
    }
}

/// The fields of a pure acknowledgement that an ACK filter needs; `None` for any other segment.
fn pure_ack(segment: &Segment) -> Option<AckView> {
    if segment.sequence_len() > 0 || !segment.flags.contains(Flags::ACK) {
        return None;
    }
    let blocks = segment.sack_blocks();
    let lengths = blocks.iter().map(|block| block.end.since(block.start));
    let signals = [Flags::ECE, Flags::CWR, Flags::RST];
    let repeats_old = |block: &SackBlock| !block.end.after(segment.ack);
    Some(AckView {
        ack: segment.ack.0,
        sacked_bytes: lengths.fold(0, u32::saturating_add),
        must_keep: signals.iter().any(|flag| segment.flags.contains(*flag))
            || blocks.first().is_some_and(repeats_old),
    })
}

impl Packet for SimPacket {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn set_inner_queue(&mut self, number: u8) {
        self.inner_queue = number;
    }
    fn enqueued(&self) -> Time {
        self.enqueued
    }
    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }

    fn dscp(&self) -> u8 {
        self.dscp
    }

    #[inline(always)]
    fn followers(&self) -> u32 {
        self.followers.segments
    }

    /// The flows between two hosts differ in their ports.
    fn flow(&self) -> FlowKey {
        let [sending, receiving] = self.hosts;
        // Linux's ephemeral port range; connections of one flow take ports far apart.
        let number = u64::from(self.flow) + 4_507 * u64::from(self.connection);
        let port = 32_768 + (number % 28_232) as u16;
        let (protocol, source_port, destination_port) = match self.kind {
            Kind::Segment => (TCP, port, 5201),
            Kind::Datagram | Kind::UdpEcho => (UDP, port, 5201),
            Kind::Echo => (ICMP, 0, 0),
        };
        if self.returning {
            FlowKey {
                source: receiving,
                destination: sending,
                source_port: destination_port,
                destination_port: source_port,
                protocol,
            }
        } else {
            FlowKey {
                source: sending,
                destination: receiving,
                source_port,
                destination_port,
                protocol,
            }
        }
    }

    /// Made of the same parts as the key, except the hosts: a flow has only two.
    #[inline]
    fn flow_number(&self) -> Option<u64> {
        let connection = u64::from(self.connection);
        let way = u64::from(self.returning) << 34 | (self.kind as u64) << 32;
        (connection < 1 << 28).then_some(connection << 35 | way | u64::from(self.flow))
    }

    fn ack(&self) -> Option<AckView> {
        self.carried().and_then(pure_ack)
    }
}

impl sojourn_path::Packet for SimPacket {
    #[inline(always)]
    fn hop(&self) -> u32 {
        self.hop
    }
    #[inline(always)]
    fn set_hop(&mut self, hop: u32) {
        self.hop = hop;
    }
    fn change_bytes(&mut self, by: i32) {
        self.bytes = self.bytes.saturating_add_signed(by);
    }
    fn set_damaged(&mut self, impairment: u16) -> bool {
        self.damaged = impairment + 1;
        true
    }
    fn damaged(&self) -> Option<u16> {
        self.damaged.checked_sub(1)
    }
}

impl sojourn_wifi::Packet for SimPacket {
    fn station(&self) -> u16 {
        self.station
    }
    fn set_station(&mut self, station: u16) {
        self.station = station;
    }
}

#[cfg(test)]
impl SimPacket {
    /// A packet with this segment, on a link that adds `overhead` bytes to an IP packet.
    pub(crate) fn with_segment(of: Membership, segment: Segment, overhead: u32) -> Self {
        let bytes = segment.header_bytes() + u32::from(segment.len) + overhead;
        let mut packet = Self::blank();
        packet.address(of, Kind::Segment, bytes, Ecn::NotEct, Time::ZERO);
        packet.segment = segment;
        packet
    }

    /// A datagram.
    pub(crate) fn datagram(of: Membership, bytes: u32) -> Self {
        let mut packet = Self::blank();
        packet.address(of, Kind::Datagram, bytes, Ecn::NotEct, Time::ZERO);
        packet
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sojourn_tcp::seq::Seq;

    use super::*;

    const THERE: Membership = Membership {
        flow: 3,
        hosts: [0x0a01_0101, 0x0a02_0101],
        connection: 0,
        dscp: 0,
        returning: false,
    };

    /// Flows and connections of a run: a flow has its hosts.
    fn any_packet() -> impl Strategy<Value = SimPacket> {
        let kind = prop::sample::select(vec![
            Kind::Segment,
            Kind::Datagram,
            Kind::Echo,
            Kind::UdpEcho,
        ]);
        let number = prop_oneof![0_u32..4, any::<u32>()];
        (number.clone(), number, any::<bool>(), kind).prop_map(
            |(flow, connection, returning, kind)| {
                let of = Membership {
                    flow,
                    hosts: [flow, !flow],
                    connection,
                    returning,
                    ..THERE
                };
                let mut packet = SimPacket::blank();
                packet.address(of, kind, 1500, Ecn::NotEct, Time::ZERO);
                packet
            },
        )
    }

    proptest! {
        #[test]
        fn packets_of_different_flows_have_different_numbers(first in any_packet(), second in any_packet()) {
            let numbers = [first.flow_number(), second.flow_number()];
            let are_alike = numbers[0].is_some() && numbers[0] == numbers[1];
            prop_assert!(!are_alike || Packet::flow(&first) == Packet::flow(&second));
        }
    }

    fn carrying(segment: Segment) -> SimPacket {
        SimPacket::with_segment(THERE, segment, 14)
    }

    #[test]
    fn both_directions_of_a_flow_have_distinct_keys() {
        let there = carrying(Segment::default());
        let mut back = carrying(Segment::default());
        back.returning = true;
        assert_eq!(there.flow().source, back.flow().destination);
        assert_eq!(there.flow().source_port, back.flow().destination_port);
        assert_ne!(there.flow(), back.flow());
    }

    #[test]
    fn an_ack_filter_sees_pure_acknowledgements_and_which_must_stay() {
        let data = Segment {
            len: 1448,
            flags: Flags::ACK,
            ..Segment::default()
        };
        assert_eq!(carrying(data).ack(), None);
        let ack = Segment {
            ack: Seq(77),
            flags: Flags::ACK,
            ..Segment::default()
        };
        let seen = carrying(ack).ack().expect("it is a pure acknowledgement");
        assert_eq!((seen.ack, seen.must_keep), (77, false));
        let echo = Segment {
            flags: Flags::ACK.with(Flags::ECE),
            ..ack
        };
        assert!(
            carrying(echo)
                .ack()
                .expect("a pure acknowledgement")
                .must_keep
        );
    }
}
