//! A capture of what arrives over a path, for Wireshark and its like.

use alloc::vec::Vec;

use sojourn_units::{Way, internet_checksum};

use crate::path::Delivery;
use crate::pcapng;

const ETHERTYPE_IPV4: [u8; 2] = [8, 0];
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// A pcapng file of the packets that a [`crate::Path`] delivers, at the instants at which they arrive, with an interface for
/// each direction.
///
/// ```
/// use core::time::Duration;
///
/// use sojourn_path::{Capture, Datagram, Ecn, Path, Way};
///
/// let mut path = Path::new("8 Mbit/s", "20 ms")?.build();
/// let flow = ("10.0.0.1:4433".parse()?, "10.0.0.2:50000".parse()?);
/// path.send(Duration::ZERO, Way::Down, Datagram::new(b"hello", 1000).with_ecn(Ecn::Ect1).with_flow(flow));
/// let mut capture = Capture::new();
/// while let Some(now) = path.next_event() {
///     while let Some(out) = path.poll(now) {
///         capture.add(&out, out.payload);
///     }
/// }
/// let file: Vec<u8> = capture.into_bytes(); // std::fs::write("path.pcapng", file)
/// assert!(file.windows(5).any(|bytes| bytes == b"hello"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A packet is captured as it arrives: with the mark of a queue; lost and dropped packets are missing. Its headers are of
/// Ethernet and IPv4, and of UDP if that is the flow's protocol; another protocol's header is taken for part of the
/// payload. Addresses of IPv6 show as the 32 bits by which [`crate::FlowKey`] knows them.
#[derive(Clone, Debug)]
pub struct Capture(Vec<u8>);

impl Capture {
    /// An empty capture.
    pub fn new() -> Self {
        Self(pcapng::head(&["down", "up"]))
    }

    /// Adds a packet that carries these bytes, at most 65,507; more are left out.
    pub fn add<T>(&mut self, packet: &Delivery<T>, payload: impl AsRef<[u8]>) {
        let is_udp = packet.flow.protocol == UDP;
        let above = if is_udp { UDP_HEADER } else { 0 };
        let payload = payload.as_ref();
        let payload = &payload[..payload.len().min(usize::from(u16::MAX) - IPV4 - UDP_HEADER)];
        let mut frame = Vec::with_capacity(ETHERNET + IPV4 + above + payload.len());
        frame.extend([0; 12]);
        frame.extend(ETHERTYPE_IPV4);
        let length = (IPV4 + above + payload.len()) as u16;
        // RFC 791 section 3.1; DSCP and ECN share a byte (RFC 3168 section 5).
        frame.extend([0x45, packet.dscp << 2 | packet.ecn.bits()]);
        frame.extend(length.to_be_bytes());
        frame.extend((packet.number as u16).to_be_bytes());
        frame.extend([0x40, 0, 64, packet.flow.protocol, 0, 0]);
        frame.extend(packet.flow.source.to_be_bytes());
        frame.extend(packet.flow.destination.to_be_bytes());
        let sum = internet_checksum(&frame[ETHERNET..], 0);
        frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
        if is_udp {
            frame.extend(packet.flow.source_port.to_be_bytes());
            frame.extend(packet.flow.destination_port.to_be_bytes());
            frame.extend((length - IPV4 as u16).to_be_bytes());
            // No checksum (RFC 768).
            frame.extend([0, 0]);
        }
        frame.extend(payload);
        let interface = u32::from(packet.way == Way::Up);
        let whole = frame.len() as u32;
        pcapng::packet(&mut self.0, interface, packet.at.into(), &frame, whole);
    }

    /// The file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl Default for Capture {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use sojourn_aqm::{Datagram, Ecn, FlowKey};

    use super::*;
    use crate::Path;

    #[test]
    fn a_captured_packet_has_the_flow_the_mark_and_the_bytes() {
        let mut path = Path::new("8 Mbit/s", "20 ms").unwrap().build();
        let flow = FlowKey {
            source: 0x0a00_0001,
            destination: 0x0a00_0002,
            source_port: 4433,
            destination_port: 50_000,
            protocol: UDP,
        };
        let sent = Datagram::new([7_u8; 3], 1000)
            .with_flow(flow)
            .with_ecn(Ecn::Ect1)
            .with_dscp(46);
        path.send(Duration::ZERO, Way::Up, sent);
        let out = path.poll(Duration::from_millis(10)).unwrap();
        let mut capture = Capture::new();
        let head = capture.0.len();
        capture.add(&out, out.payload);
        let file = capture.into_bytes();
        // Framing, interface, time, two lengths; then the frame.
        assert_eq!(file[head + 8..head + 12], 1_u32.to_le_bytes());
        assert_eq!(file[head + 16..head + 20], 10_000_000_u32.to_le_bytes());
        let frame = &file[head + 28..head + 28 + ETHERNET + IPV4 + UDP_HEADER + 3];
        let ip = &frame[ETHERNET..];
        assert_eq!((ip[1], ip[3], ip[9]), (46 << 2 | 1, 31, UDP));
        assert_eq!(internet_checksum(&ip[..IPV4], 0), 0);
        assert_eq!(ip[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(ip[20..28], [0x11, 0x51, 0xc3, 0x50, 0, 11, 0, 0]);
        assert_eq!(ip[28..], [7; 3]);
    }
}
