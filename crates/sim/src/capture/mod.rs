//! A capture, as `tcpdump` would make it at the routers or at the hosts. Interface `down` has what goes down, `up` what
//! goes up; with several links every queue has an interface of its own, `home/down`.
//!
//! At a router a packet is seen as it leaves the link's queue, marks included, dropped ones not at all. Where a
//! direction has no queue, its packets are seen as they come to the host beside the router: what `link.delay` leaves of
//! the base RTT lies between the router and the receivers. Between a segment and its acknowledgement thus lies the base
//! RTT, and what they wait in queues on the way back. At the sender it is all of the RTT, the bottleneck's queue included; at
//! the receiver the time that it takes to acknowledge.

mod frame;

use sojourn_experiment::model::CapturePoint;
use sojourn_measure::pcapng;
use sojourn_units::Time;

use crate::packet::SimPacket;

/// A stage of a packet's way at which it can be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It leaves the host that sends it.
    Sent,
    /// It leaves a queue, by its number.
    Left { queue: usize },
    /// It reaches the host that it is for.
    Arrived,
}

/// Where the packets of a flow are seen, for what comes from its sending host and for what returns.
#[derive(Clone, Copy, Debug)]
pub struct Interfaces {
    /// The interface of the hosts, and of the routers for what meets no queue.
    pub of_hosts: [u32; 2],
    /// Whether there is a queue on the way.
    pub meets_queue: [bool; 2],
}

/// A pcapng file that grows with every packet.
pub struct Capture {
    point: CapturePoint,
    file: Vec<u8>,
    frame: Vec<u8>,
    facts: Facts,
}

/// What a header holds and a simulated packet does not.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Bytes of a packet that are not IP, at the hosts.
    pub overhead_at_hosts: u32,
    /// The same of a packet that leaves a queue, by the queue's number.
    pub overhead_behind_queues: Vec<u32>,
    /// Payload bytes of a full segment, by traffic group.
    pub mss: Vec<u16>,
    /// By flow.
    pub flows: Vec<Interfaces>,
}

impl Capture {
    /// A capture without packets at interfaces of these names: of every queue, and then of any others.
    pub fn new(point: CapturePoint, interfaces: &[&str], facts: Facts) -> Self {
        Self {
            point,
            file: pcapng::head(interfaces),
            frame: Vec::new(),
            facts,
        }
    }

    /// A packet is at a stage of its way.
    pub fn note(&mut self, stage: Stage, packet: &SimPacket, now: Time) {
        let interfaces = &self.facts.flows[packet.flow as usize];
        let meets_queue = interfaces.meets_queue[usize::from(packet.returning)];
        let is_seen = match self.point {
            CapturePoint::Router => match stage {
                Stage::Sent => false,
                Stage::Left { .. } => true,
                Stage::Arrived => !meets_queue,
            },
            // The sender of data sends what does not return, and gets what does.
            CapturePoint::Sender => match stage {
                Stage::Sent => !packet.returning,
                Stage::Left { .. } => false,
                Stage::Arrived => packet.returning,
            },
            CapturePoint::Receiver => match stage {
                Stage::Sent => packet.returning,
                Stage::Left { .. } => false,
                Stage::Arrived => !packet.returning,
            },
        };
        let (interface, overhead) = match stage {
            Stage::Left { queue } => (queue as u32, self.facts.overhead_behind_queues[queue]),
            Stage::Sent | Stage::Arrived => (
                interfaces.of_hosts[usize::from(packet.returning)],
                self.facts.overhead_at_hosts,
            ),
        };
        let mss = self.facts.mss[usize::from(packet.group)];
        if !is_seen {
            return;
        }
        self.frame.clear();
        let length = frame::write(&mut self.frame, packet, overhead, mss);
        pcapng::packet(&mut self.file, interface, now, &self.frame, length);
    }

    /// The file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.file
    }
}
