//! Captures packets as `tcpdump` would at the routers or at the hosts. Interface `down` carries downstream packets,
//! `up` upstream ones; with several links every queue has its own interface, such as `home/down`.
//!
//! At a router a packet is captured as it leaves the link's queue: CE marks are visible, dropped packets are not. Where
//! a direction has no queue, its packets are captured as they reach the host next to the router; the base RTT beyond
//! `link.delay` lies between the router and the receivers. The time from a segment to its acknowledgement is then the
//! base RTT plus the queueing delay on the way back. At the sender it is the whole RTT, the bottleneck queue included;
//! at the receiver it is the time that the receiver takes to acknowledge.

mod frame;

use sojourn_experiment::model::CapturePoint;
use sojourn_path::pcapng;
use sojourn_units::Time;

use crate::packet::SimPacket;

/// A point on a packet's path where it can be captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The packet leaves its sender.
    Sent,
    /// The packet leaves the queue of this number.
    Left { queue: usize },
    /// The packet reaches its destination.
    Arrived,
}

/// The capture interfaces of a flow: first for packets from its sending host, then for those that return.
#[derive(Clone, Copy, Debug)]
pub struct Interfaces {
    /// The interface at the hosts, and at the router for packets that meet no queue.
    pub of_hosts: [u32; 2],
    /// Whether there is a queue on the path.
    pub meets_queue: [bool; 2],
}

/// A pcapng file that grows with every captured packet.
pub struct Capture {
    point: CapturePoint,
    file: Vec<u8>,
    frame: Vec<u8>,
    facts: Facts,
}

/// Facts for packet headers that simulated packets do not carry.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Bytes of a packet at the hosts that are not IP.
    pub overhead_at_hosts: u32,
    /// The same for packets that leave a queue, by queue number.
    pub overhead_behind_queues: Vec<u32>,
    /// Payload bytes of a full segment, by flow number.
    pub mss: Vec<u16>,
    /// By flow number.
    pub flows: Vec<Interfaces>,
}

impl Capture {
    /// An empty capture. `interfaces`: one name per queue, then any others.
    pub fn new(point: CapturePoint, interfaces: &[&str], facts: Facts) -> Self {
        Self {
            point,
            file: pcapng::head(interfaces),
            frame: Vec::new(),
            facts,
        }
    }

    /// Captures a packet at `stage` if the capture point sees that stage.
    pub fn note(&mut self, stage: Stage, packet: &SimPacket, now: Time) {
        let interfaces = &self.facts.flows[packet.flow as usize];
        let meets_queue = interfaces.meets_queue[usize::from(packet.returning)];
        let is_seen = match self.point {
            CapturePoint::Router => match stage {
                Stage::Sent => false,
                Stage::Left { .. } => true,
                Stage::Arrived => !meets_queue,
            },
            // The data sender sends packets that do not return, and receives those that do.
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
        let mss = self.facts.mss[packet.flow as usize];
        if !is_seen {
            return;
        }
        self.frame.clear();
        let length = frame::write(&mut self.frame, packet, overhead, mss);
        pcapng::packet(&mut self.file, interface, now, &self.frame, length);
    }

    /// The bytes of the pcapng file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.file
    }
}
