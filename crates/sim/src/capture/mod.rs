//! A capture, as `tcpdump` would make it at the router or at the hosts. Interface `down` has what goes down, `up` what
//! goes up.
//!
//! At the router a packet is seen as it leaves the bottleneck's discipline, marks included, dropped ones not at all. Where a
//! direction has no queue, its packets are seen as they come to the host beside the router: what `link.delay` leaves of
//! the base RTT lies between the router and the receivers. Between a segment and its acknowledgement thus lies the base
//! RTT, and what they wait in queues on the way back. At the sender it is all of the RTT, the bottleneck's queue included; at
//! the receiver the time that it takes to acknowledge.

mod frame;

use sojourn_experiment::model::CapturePoint;
use sojourn_experiment::pcapng;
use sojourn_units::Time;

use crate::packet::SimPacket;

const INTERFACES: [&str; 2] = ["down", "up"];

/// A stage of a packet's way at which it can be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It leaves the host that sends it.
    Sent,
    /// It leaves a bottleneck's discipline.
    Left,
    /// It reaches the host that it is for; whether a bottleneck was on its way.
    Arrived { met_link: bool },
}

/// A pcapng file that grows with every packet.
pub struct Capture {
    point: CapturePoint,
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
    pub fn new(point: CapturePoint, link: LinkFacts) -> Self {
        Self {
            point,
            file: pcapng::head(&INTERFACES),
            frame: Vec::new(),
            link,
        }
    }

    /// A packet is at a stage of its way, in the direction with this index.
    pub fn note(&mut self, stage: Stage, direction: usize, packet: &SimPacket, now: Time) {
        let is_seen = match self.point {
            CapturePoint::Router => {
                matches!(stage, Stage::Left | Stage::Arrived { met_link: false })
            }
            // The sender of data sends what does not return, and gets what does.
            CapturePoint::Sender => match stage {
                Stage::Sent => !packet.returning,
                Stage::Left => false,
                Stage::Arrived { .. } => packet.returning,
            },
            CapturePoint::Receiver => match stage {
                Stage::Sent => packet.returning,
                Stage::Left => false,
                Stage::Arrived { .. } => !packet.returning,
            },
        };
        if !is_seen {
            return;
        }
        self.frame.clear();
        let length = frame::write(&mut self.frame, packet, &self.link);
        pcapng::packet(&mut self.file, direction as u32, now, &self.frame, length);
    }

    /// The file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.file
    }
}
