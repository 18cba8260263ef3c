//! Packet captures: the agent records the headers of the packets at the queues as rows, which become a pcapng file.

use sojourn_experiment::derived::is_queued;
use sojourn_experiment::model::{Experiment, Hop, Way};
use sojourn_path::pcapng;
use sojourn_units::Time;

use crate::ports::Port;
use crate::topology;

/// An interface of the capture: its name, and the source and destination Ethernet addresses of its packets.
pub struct Interface {
    /// Its name in the file.
    pub name: String,
    /// The source and destination addresses.
    pub ends: [[u8; 6]; 2],
}

/// The interfaces of the capture, as in the simulator: for `[link]` one per direction, for `[[link]]` one per queue.
pub fn interfaces(experiment: &Experiment) -> Vec<Interface> {
    let links = &experiment.links;
    let interface = |hop: Hop| {
        let back = Hop {
            way: hop.way.reversed(),
            ..hop
        };
        let link = &links[hop.link];
        Interface {
            name: match link.nodes {
                None => hop.way.name().into(),
                Some(_) => format!("{}/{}", link.name, hop.way.name()),
            },
            ends: [hop, back].map(|hop| Port::of(links, hop).mac()),
        }
    };
    let each = (0..links.len()).flat_map(|link| [Way::Down, Way::Up].map(|way| Hop { link, way }));
    each.filter(|hop| links[0].nodes.is_none() || is_queued(links, *hop))
        .map(interface)
        .collect()
}

/// Bytes of a row before the headers: time, length of the packet, interface, length of the headers.
const FIXED: usize = 12;
const TCP: u8 = 6;
/// The header length of UDP and of an echo.
const SHORT_HEADER: usize = 8;
const ETHERTYPE_IPV4: [u8; 2] = [8, 0];

/// Appends a row for an IPv4 packet, given its first bytes, that passed `interface` at a time of the run.
pub fn note(rows: &mut Vec<u8>, at_ns: u64, interface: u8, packet: &[u8]) {
    let Some(headers) = headers(packet) else {
        return;
    };
    rows.extend(at_ns.to_le_bytes());
    rows.extend([packet[3], packet[2], interface, headers.len() as u8]);
    rows.extend(headers);
}

/// The headers of IP and of the protocol above it; `None` if it is not IPv4 or too few bytes are given.
fn headers(packet: &[u8]) -> Option<&[u8]> {
    let first = *packet.first()?;
    let ip = usize::from(first & 15) * 4;
    let carried = match *packet.get(9)? {
        TCP => usize::from(packet.get(ip + 12)? >> 4) * 4,
        _ => SHORT_HEADER,
    };
    packet.get(..ip + carried).filter(|_| first >> 4 == 4)
}

/// The rows as a pcapng file, in order of time.
pub fn pcapng(rows: &[u8], interfaces: &[Interface]) -> Vec<u8> {
    let mut packets = Vec::new();
    let mut rest = rows;
    while let Some((fixed, after)) = rest.split_at_checked(FIXED) {
        let Some((headers, next)) = after.split_at_checked(usize::from(fixed[11])) else {
            break;
        };
        let at_ns = u64::from_le_bytes(std::array::from_fn(|n| fixed[n]));
        packets.push((
            at_ns,
            fixed[10],
            u16::from_le_bytes([fixed[8], fixed[9]]),
            headers,
        ));
        rest = next;
    }
    // A stable sort: packets of the same time keep the order in which they were seen.
    packets.sort_by_key(|packet| packet.0);
    let names: Vec<&str> = interfaces.iter().map(|of| of.name.as_str()).collect();
    let mut file = pcapng::head(&names);
    for (at_ns, interface, length, headers) in packets {
        let [from, to] = interfaces[usize::from(interface)].ends;
        let frame = [&to[..], &from, &ETHERTYPE_IPV4, headers].concat();
        let length = u32::from(length) + topology::ETHERNET;
        pcapng::packet(
            &mut file,
            u32::from(interface),
            Time::from_nanos(at_ns),
            &frame,
            length,
        );
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_end_where_the_payload_begins() {
        let mut packet = vec![0; 128];
        packet[..4].copy_from_slice(&[0x45, 0, 5, 220]);
        packet[9] = TCP;
        packet[20 + 12] = 8 << 4;
        assert_eq!(headers(&packet).map(<[u8]>::len), Some(52));
        packet[9] = 17;
        assert_eq!(headers(&packet).map(<[u8]>::len), Some(28));
        packet[0] = 0x60;
        assert_eq!(headers(&packet), None);
        assert_eq!(headers(&packet[..8]), None);
    }

    #[test]
    fn packets_stand_in_order_of_time_with_their_whole_length() {
        let mut packet = vec![0; 28];
        packet[..4].copy_from_slice(&[0x45, 0, 5, 220]); // 1500 bytes
        packet[9] = 17;
        let mut rows = Vec::new();
        note(&mut rows, 7, 1, &packet);
        note(&mut rows, 5, 0, &packet);
        let interfaces = ["down", "up"].map(|name| Interface {
            name: name.into(),
            ends: [[1; 6], [2; 6]],
        });
        let file = pcapng(&rows, &interfaces);
        let head = pcapng::head(&["down", "up"]).len();
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|n| file[head + at + n]));
        // Type, length, interface, two words of time, captured and original length: 14 bytes of Ethernet more.
        assert_eq!((word(8), word(16), word(20), word(24)), (0, 5, 42, 1514));
        let next = word(4) as usize;
        assert_eq!((word(next + 8), word(next + 16)), (1, 7));
    }
}
