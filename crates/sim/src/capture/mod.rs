//! A capture of the bottleneck, as `tcpdump` would make it on both sides of the router.
//!
//! Interface `down` has what leaves the bottleneck's discipline in that direction, marks included; interface `up` the
//! same of the reverse direction, or, where that has no queue, every packet when it is sent. Packets that the
//! bottleneck drops never get here.

mod frame;

use sojourn_experiment::pcapng;
use sojourn_units::Time;

use crate::packet::SimPacket;

/// The interfaces, by index of the link.
const INTERFACES: [&str; 2] = ["down", "up"];
/// The interface of packets that pass no queue.
pub const UNQUEUED: usize = 1;

/// A pcapng file that grows with every packet.
pub struct Capture {
    file: Vec<u8>,
    frame: Vec<u8>,
    link: LinkFacts,
}

/// What a header holds and a simulated packet does not.
#[derive(Clone, Debug)]
pub struct LinkFacts {
    /// Bytes of a packet on the link that are not IP.
    pub overhead: u32,
    /// Payload bytes of a full segment, by traffic group.
    pub mss: Vec<u16>,
}

impl Capture {
    /// A capture without packets.
    pub fn new(link: LinkFacts) -> Self {
        Self {
            file: pcapng::head(&INTERFACES),
            frame: Vec::new(),
            link,
        }
    }

    /// A packet passes.
    pub fn note(&mut self, interface: usize, packet: &SimPacket, now: Time) {
        self.frame.clear();
        let length = frame::write(&mut self.frame, packet, &self.link);
        pcapng::packet(&mut self.file, interface as u32, now, &self.frame, length);
    }

    /// The file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.file
    }
}
