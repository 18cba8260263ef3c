//! Flows that appear as their packets come: found by addresses, ports and protocol, and measured from the packets alone.
//!
//! The data of a TCP connection is a flow in each direction, with the acknowledgements of the other direction as its returning
//! packets. Datagrams are a flow in each direction; echo requests are one, with the replies as its returning packets.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use sojourn_units::{Time, Way};

use crate::ip::{Carried, Headers, TCP, UDP};
use crate::packet::Frame;

/// What identifies a flow: the end that sends its data, the other end, and the protocol. Echoes have their identifier in place of
/// ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// Where its data comes from.
    pub sender: SocketAddr,
    /// Where it goes.
    pub receiver: SocketAddr,
    /// The protocol above IP.
    pub protocol: u8,
}

/// A flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// What identifies it.
    pub key: Key,
    /// The direction of its data.
    pub way: Way,
    /// The kind of its packets.
    pub kind: Kind,
    /// The DiffServ code point of its first packet.
    pub dscp: u8,
    /// When its first packet came, and its last was delivered.
    pub span: (Time, Time),
    /// Payload bytes sent, without retransmissions.
    pub sent: u64,
    /// Payload bytes delivered, without retransmissions that were not needed.
    pub received: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Datagrams or echo requests that came, and how many were delivered or answered.
    pub packets: (u64, u64),
    /// Times in nanoseconds and round-trip times in microseconds as its sender sees them.
    pub round_trips: Vec<(u64, u32)>,
    /// One-way delays of datagrams, in microseconds.
    pub one_way_us: Vec<u32>,
    /// Payload bytes delivered up to the end of each bin of a series.
    pub series: Vec<u64>,
    tcp: Sequence,
    /// When each echo request that is not answered came, by its number.
    echoes: HashMap<u16, Time>,
}

/// The kinds of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// TCP.
    Tcp,
    /// Echo requests and replies.
    Echo,
    /// UDP and everything else.
    Datagrams,
}

/// The sequence numbers of a direction of a connection.
#[derive(Clone, Debug, Default)]
struct Sequence {
    /// The number behind the highest byte that came; `None` before the first.
    sent: Option<u32>,
    /// Spans of sequence numbers that were delivered, beyond the first gap, in order.
    delivered: Vec<(u32, u32)>,
    /// Up to which number everything was delivered.
    whole: Option<u32>,
    /// The acknowledgement that is waited for to measure the round-trip time, and when its segment came.
    timed: Option<(u32, Time)>,
}

/// True if sequence number `a` is beyond `b`.
const fn beyond(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Sequence {
    /// Notes that a segment came; returns its bytes that are new, and whether it was sent before.
    fn send(&mut self, seq: u32, length: u32, now: Time) -> (u64, bool) {
        let end = seq.wrapping_add(length);
        let highest = *self.sent.get_or_insert(seq);
        self.whole.get_or_insert(seq);
        if beyond(end, highest) {
            self.sent = Some(end);
            if self.timed.is_none() {
                self.timed = Some((end, now));
            }
        }
        let again = beyond(highest, seq);
        if again {
            // An acknowledgement would be that of either transmission (Karn's algorithm).
            self.timed = None;
        }
        let new = end.wrapping_sub(if again { highest } else { seq });
        (if beyond(end, highest) { new.into() } else { 0 }, again)
    }

    /// Notes that a segment was delivered; returns its bytes that had not been delivered before.
    fn deliver(&mut self, seq: u32, length: u32) -> u64 {
        let (mut begin, end) = (seq, seq.wrapping_add(length));
        let whole = *self.whole.get_or_insert(seq);
        if beyond(whole, begin) {
            begin = whole;
        }
        if !beyond(end, begin) {
            return 0;
        }
        // The usual case: in order, nothing is missing.
        if begin == whole && self.delivered.is_empty() {
            self.whole = Some(end);
            return end.wrapping_sub(begin).into();
        }
        let mut new = u64::from(end.wrapping_sub(begin));
        let mut merged = (begin, end);
        self.delivered.retain(|(left, right)| {
            let apart = beyond(*left, merged.1) || beyond(merged.0, *right);
            if !apart {
                let first = if beyond(*left, begin) { *left } else { begin };
                let last = if beyond(end, *right) { *right } else { end };
                if beyond(last, first) {
                    new -= u64::from(last.wrapping_sub(first));
                }
                if beyond(merged.0, *left) {
                    merged.0 = *left;
                }
                if beyond(*right, merged.1) {
                    merged.1 = *right;
                }
            }
            apart
        });
        if merged.0 == whole {
            self.whole = Some(merged.1);
        } else {
            self.delivered.push(merged);
        }
        new
    }

    /// Notes that an acknowledgement was delivered; returns when the segment came that is timed by it.
    fn acknowledge(&mut self, ack: u32) -> Option<Time> {
        let (end, came) = self.timed.filter(|(end, _)| !beyond(*end, ack))?;
        debug_assert!(!beyond(end, ack));
        self.timed = None;
        Some(came)
    }
}

/// The flow of a packet, the kind of its packets, and whether it returns to the sender of the flow's data.
fn classify(headers: &Headers) -> (Key, Kind, bool) {
    let (from, to) = (headers.source, headers.destination);
    let (returning, kind) = match headers.carried {
        Carried::Segment { payload, syn, .. } => (payload == 0 && !syn, Kind::Tcp),
        Carried::Echo { reply, .. } => (reply, Kind::Echo),
        Carried::Datagram { .. } => (false, Kind::Datagrams),
    };
    let (sender, receiver) = if returning { (to, from) } else { (from, to) };
    let port = |address: SocketAddr| match headers.carried {
        Carried::Echo { identifier, .. } => SocketAddr::new(address.ip(), identifier),
        _ => address,
    };
    let key = Key {
        sender: port(sender),
        receiver: port(receiver),
        protocol: headers.protocol,
    };
    (key, kind, returning)
}

/// All flows that have appeared.
#[derive(Debug, Default)]
pub struct Flows {
    numbers: HashMap<Key, u32>,
    /// In the order of their first packets.
    pub all: Vec<Flow>,
    /// Bins of the series that have ended.
    bins: usize,
}

/// A span in whole microseconds.
fn micros(from: Time, to: Time) -> u32 {
    let nanos = to.saturating_since(from).as_nanos();
    u32::try_from(nanos / 1000).unwrap_or(u32::MAX)
}

/// The most flows; packets of others belong to the last.
const MOST_FLOWS: usize = 1_000_000;

impl Flows {
    /// The flow of a packet that came on its way, and whether it returns to the sender of the flow's data. Counts it.
    pub fn came(&mut self, headers: &Headers, way: Way, now: Time) -> (u32, bool) {
        let (key, kind, returning) = classify(headers);
        let data_way = if returning { way.reversed() } else { way };
        let number = self.number(key, kind, data_way, headers.dscp, now);
        let flow = &mut self.all[number as usize];
        match headers.carried {
            Carried::Segment {
                seq, payload, syn, ..
            } => {
                if syn {
                    // A connection that takes the ports of another begins anew.
                    flow.tcp = Sequence::default();
                } else if payload > 0 {
                    let (new, again) = flow.tcp.send(seq, payload, now);
                    flow.sent += new;
                    flow.retransmits += u64::from(again);
                }
            }
            Carried::Echo {
                reply: false,
                sequence,
                payload,
                ..
            } => {
                flow.sent += u64::from(payload);
                flow.packets.0 += 1;
                flow.echoes.insert(sequence, now);
            }
            Carried::Echo { reply: true, .. } => {}
            Carried::Datagram { payload } => {
                flow.sent += u64::from(payload);
                flow.packets.0 += 1;
            }
        }
        (number, returning)
    }

    /// The flow of a packet that came before, and whether it returns.
    pub fn known(&self, headers: &Headers) -> Option<(u32, bool)> {
        let (key, _, returning) = classify(headers);
        Some((*self.numbers.get(&key)?, returning))
    }

    fn number(&mut self, key: Key, kind: Kind, way: Way, dscp: u8, now: Time) -> u32 {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        if self.all.len() == MOST_FLOWS {
            return MOST_FLOWS as u32 - 1;
        }
        self.all.push(Flow {
            key,
            way,
            kind,
            dscp,
            span: (now, now),
            sent: 0,
            received: 0,
            retransmits: 0,
            packets: (0, 0),
            round_trips: Vec::new(),
            one_way_us: Vec::new(),
            series: vec![0; self.bins],
            tcp: Sequence::default(),
            echoes: HashMap::new(),
        });
        let number = self.all.len() as u32 - 1;
        self.numbers.insert(key, number);
        number
    }

    /// Ends a bin of the series.
    pub fn end_bin(&mut self) {
        self.bins += 1;
        for flow in &mut self.all {
            flow.series.push(flow.received);
        }
    }

    /// Counts a packet that was delivered.
    pub fn delivered(&mut self, frame: &Frame, now: Time) {
        let flow = &mut self.all[frame.flow as usize];
        let key = flow.key;
        flow.span.1 = now;
        match frame.carried {
            Carried::Segment {
                seq, payload, ack, ..
            } => {
                if payload > 0 {
                    flow.received += flow.tcp.deliver(seq, payload);
                }
                // A pure acknowledgement returns to its flow's sender; one with data is that of the opposite flow.
                let acknowledged = match frame.returning {
                    true => Some(frame.flow),
                    false => self.numbers.get(&key.reversed()).copied(),
                };
                if let (Some(number), Some(ack)) = (acknowledged, ack) {
                    let flow = &mut self.all[number as usize];
                    if let Some(came) = flow.tcp.acknowledge(ack) {
                        flow.round_trips.push((now.as_nanos(), micros(came, now)));
                    }
                }
            }
            Carried::Echo {
                reply,
                sequence,
                payload,
                ..
            } => {
                let came = reply.then(|| flow.echoes.remove(&sequence)).flatten();
                if let Some(came) = came {
                    flow.received += u64::from(payload);
                    flow.packets.1 += 1;
                    flow.round_trips.push((now.as_nanos(), micros(came, now)));
                }
            }
            Carried::Datagram { payload } => {
                flow.received += u64::from(payload);
                flow.packets.1 += 1;
                flow.one_way_us.push(micros(frame.sent, now));
            }
        }
    }
}

impl Key {
    const fn reversed(self) -> Self {
        Self {
            sender: self.receiver,
            receiver: self.sender,
            ..self
        }
    }

    /// The protocol and the port of the service, as in `tcp 443`: the port of the end that is not at `program`; without one, the
    /// lower port, since clients have high ones (RFC 6335, section 6).
    pub fn service(&self, program: Option<IpAddr>) -> String {
        let is_senders = program.map_or(self.sender.port() < self.receiver.port(), |program| {
            self.sender.ip() != program
        });
        let end = if is_senders {
            self.sender
        } else {
            self.receiver
        };
        match self.protocol {
            TCP => format!("tcp {}", end.port()),
            UDP => format!("udp {}", end.port()),
            1 | 58 if self.sender.port() != 0 || self.receiver.port() != 0 => "ping".into(),
            1 | 58 => "icmp".into(),
            other => format!("protocol {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_aqm::Ecn;

    const MS: fn(u64) -> Time = Time::from_millis;

    fn headers(from: &str, to: &str, protocol: u8, carried: Carried) -> Headers {
        Headers {
            source: from.parse().expect("an address"),
            destination: to.parse().expect("an address"),
            protocol,
            dscp: 0,
            ecn: Ecn::NotEct,
            carried,
        }
    }

    fn segment(seq: u32, payload: u32, ack: u32) -> Carried {
        Carried::Segment {
            seq,
            payload,
            syn: false,
            ack: Some(ack),
            pure: None,
        }
    }

    fn frame(carried: Carried, (flow, returning): (u32, bool), sent: Time) -> Frame {
        Frame {
            bytes: [].into(),
            link: Default::default(),
            checksum: None,
            carried,
            sent,
            flow,
            returning,
            port: 0,
            captured: false,
        }
    }

    const SERVER: &str = "10.0.0.1:443";
    const CLIENT: &str = "10.0.0.2:50000";

    /// Two segments of 1000 bytes; the acknowledgement of the first is delivered 30 ms after it came.
    #[test]
    fn the_two_directions_of_a_connection_are_two_flows() {
        let mut flows = Flows::default();
        let data = headers(SERVER, CLIENT, TCP, segment(1, 1000, 7));
        let of = flows.came(&data, Way::Down, MS(10));
        assert_eq!(of, (0, false));
        flows.delivered(&frame(data.carried, of, MS(10)), MS(20));
        let ack = headers(CLIENT, SERVER, TCP, segment(7, 0, 1001));
        let back = flows.came(&ack, Way::Up, MS(20));
        assert_eq!(back, (0, true));
        flows.delivered(&frame(ack.carried, back, MS(20)), MS(40));
        let request = headers(CLIENT, SERVER, TCP, segment(7, 100, 1001));
        assert_eq!(flows.came(&request, Way::Up, MS(50)), (1, false));
        let [down, up] = &flows.all[..] else {
            panic!("{flows:?}")
        };
        assert_eq!(
            (down.way, down.sent, down.received),
            (Way::Down, 1000, 1000)
        );
        assert_eq!(down.round_trips, [(40_000_000, 30_000)]);
        assert_eq!((up.way, up.sent, up.received), (Way::Up, 100, 0));
        for program in ["10.0.0.2".parse().ok(), None] {
            assert_eq!(down.key.service(program), "tcp 443");
            assert_eq!(up.key.service(program), "tcp 443");
        }
    }

    /// Bytes 0 to 299 in three segments across the end of the numbers; the second is lost, and the third is delivered twice.
    #[test]
    fn bytes_count_once_however_often_they_are_sent() {
        let base = u32::MAX - 120;
        let at = |n: u32| base.wrapping_add(n);
        let mut sequence = Sequence::default();
        assert_eq!(sequence.send(at(0), 100, MS(1)), (100, false));
        assert_eq!(sequence.send(at(100), 100, MS(1)), (100, false));
        assert_eq!(sequence.send(at(200), 100, MS(1)), (100, false));
        assert_eq!(sequence.deliver(at(0), 100), 100);
        assert_eq!(sequence.deliver(at(200), 100), 100);
        assert_eq!(sequence.deliver(at(200), 100), 0);
        assert_eq!(sequence.send(at(100), 100, MS(9)), (0, true));
        assert_eq!(sequence.send(at(250), 100, MS(9)), (50, true));
        assert_eq!(sequence.deliver(at(50), 200), 100);
        assert_eq!(sequence.deliver(at(250), 100), 50);
        assert_eq!(
            (sequence.whole, sequence.delivered.len()),
            (Some(at(350)), 0)
        );
    }

    #[test]
    fn a_segment_that_was_sent_again_is_not_timed() {
        let mut sequence = Sequence::default();
        sequence.send(0, 100, MS(1));
        sequence.send(0, 100, MS(300));
        assert_eq!(sequence.acknowledge(100), None);
        sequence.send(100, 100, MS(400));
        assert_eq!(sequence.acknowledge(150), None);
        assert_eq!(sequence.acknowledge(200), Some(MS(400)));
    }

    #[test]
    fn echoes_and_datagrams_are_counted_by_packet() {
        let mut flows = Flows::default();
        let echo = |reply, sequence| Carried::Echo {
            reply,
            identifier: 9,
            sequence,
            payload: 56,
        };
        for sequence in [1, 2] {
            let request = headers("10.0.0.2:0", "10.0.0.1:0", 1, echo(false, sequence));
            assert_eq!(flows.came(&request, Way::Up, MS(1)), (0, false));
        }
        let reply = headers("10.0.0.1:0", "10.0.0.2:0", 1, echo(true, 2));
        let of = flows.came(&reply, Way::Down, MS(5));
        assert_eq!(of, (0, true));
        flows.delivered(&frame(reply.carried, of, MS(5)), MS(8));
        let datagram = headers(SERVER, CLIENT, UDP, Carried::Datagram { payload: 172 });
        let of = flows.came(&datagram, Way::Down, MS(10));
        flows.delivered(&frame(datagram.carried, of, MS(10)), MS(25));
        assert_eq!(flows.all[0].key.service(None), "ping");
        // An error, such as that of a port where nobody listens.
        let error = headers(
            "10.0.0.1:0",
            "10.0.0.2:0",
            1,
            Carried::Datagram { payload: 28 },
        );
        flows.came(&error, Way::Down, MS(30));
        assert_eq!(flows.all[2].key.service(None), "icmp");
        assert_eq!((flows.all[0].packets, flows.all[0].received), ((2, 1), 56));
        assert_eq!(flows.all[0].round_trips, [(8_000_000, 7000)]);
        assert_eq!(
            (flows.all[1].packets, &flows.all[1].one_way_us[..]),
            ((1, 1), &[15_000][..])
        );
    }
}
