//! The simulator's network: its probes and captures, and how hosts send over it.

use std::collections::BTreeMap;

use sojourn_aqm::{DropReason, Packet};
use sojourn_experiment::cells::{self, Cell};
use sojourn_measure::probe::{QueueProbe, Reason};
use sojourn_path::{Observer, Route};
use sojourn_units::{Duration, Hop, Time, cold_path};

use crate::capture::{Capture, Stage};
use crate::packet::{Kind, Packets, SimPacket};

/// Links, delay lines, Wi-Fi cells and routes, observed by [`Watch`].
pub type Network = sojourn_path::Network<SimPacket, Watch, Cell<SimPacket>>;

/// Observes packets: queue probes and the capture. Holds the packet pool too.
pub struct Watch {
    /// One probe per queue.
    pub probes: Vec<QueueProbe>,
    /// The pool of packets for reuse.
    pub packets: Packets,
    /// The packet capture, if enabled.
    pub capture: Option<Box<Capture>>,
    /// What the impairments of wires did, by their numbers.
    pub impaired: Vec<ImpairedPackets>,
    /// Datagrams and echoes lost for any reason, by flow, as far as a flow has lost one.
    pub lost: Vec<Lost>,
    /// Flows whose data a station sends, with the number of its queue.
    pub stations: BTreeMap<u32, usize>,
    /// What has left these stations: flow and connection of each segment with data.
    pub left: Vec<(u32, u32)>,
    /// Packets are noted one by one when hosts send them: for the capture, and to number them.
    pub notes_sent: bool,
    /// Packets that were sent, if they are noted; wraps around.
    pub sent: u32,
}

/// The lost datagrams of a flow, or its lost echo requests and replies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    /// How many.
    pub count: u64,
    /// The number of the latest datagram, of which more fragments may follow.
    latest: Option<u32>,
}

/// Packets that a wire has lost or copied, over the whole run.
#[derive(Clone, Copy, Debug)]
pub struct ImpairedPackets {
    /// The direction of the link.
    pub hop: Hop,
    /// Lost, damaged ones included.
    pub lost: u64,
    /// Copied.
    pub duplicated: u64,
}

impl Watch {
    /// Records a packet in the capture, if there is one.
    #[cold]
    pub fn capture(&mut self, stage: Stage, packet: &SimPacket, now: Time) {
        if let Some(capture) = &mut self.capture {
            capture.note(stage, packet, now);
        }
    }

    /// Notes that a host sends a packet.
    #[cold]
    fn note_sent(&mut self, packet: &mut SimPacket, now: Time) {
        packet.serial = self.sent;
        self.sent = self.sent.wrapping_add(1);
        self.capture(Stage::Sent, packet, now);
    }

    /// Notes that a packet has left a queue, or is lost.
    fn note_left(&mut self, queue: usize, packet: &SimPacket) {
        let is_data = packet.kind == Kind::Segment && packet.segment.len > 0;
        if is_data && !self.stations.is_empty() && self.stations.get(&packet.flow) == Some(&queue) {
            self.left.push((packet.flow, packet.connection));
        }
    }

    /// Takes back a packet that was dropped or lost.
    pub fn discard(&mut self, packet: SimPacket) {
        // Datagrams that return are the reports of a call.
        let counts = match packet.kind {
            Kind::Segment => false,
            Kind::Datagram => !packet.returning,
            _ => true,
        };
        if counts && !packet.is_copy() {
            let flow = packet.flow as usize;
            if self.lost.len() <= flow {
                self.lost.resize(flow + 1, Lost::default());
            }
            let lost = &mut self.lost[flow];
            let number = (packet.kind == Kind::Datagram).then_some(packet.number);
            // Fragments of one datagram are one loss.
            if number.is_none() || lost.latest != number {
                lost.count += 1;
                lost.latest = number;
            }
        }
        self.packets.give_back_lost(packet);
    }
}

impl Observer<SimPacket> for Watch {
    #[inline(always)]
    fn on_arrival(&mut self, link: usize, packet: &SimPacket, now: Time) {
        self.probes[link].on_arrival(packet, now);
    }

    #[inline(always)]
    fn takes_bursts(&self, link: usize) -> bool {
        self.probes[link].takes_bursts()
    }

    #[inline(always)]
    fn on_arrivals(&mut self, link: usize, packet: &SimPacket, count: u32, _now: Time) {
        self.probes[link].on_arrivals(packet, count);
    }

    #[inline(always)]
    fn on_dequeue(&mut self, link: usize, packet: &mut SimPacket, now: Time) {
        self.probes[link].on_departure(packet, now);
    }

    #[inline(always)]
    fn on_pass(&mut self, link: usize, packet: &mut SimPacket, now: Time) {
        self.probes[link].on_pass(packet, now);
    }

    #[inline(always)]
    fn on_departure(&mut self, link: usize, packet: &SimPacket, now: Time) {
        if self.capture.is_some() {
            cold_path();
            self.capture(Stage::Left { queue: link }, packet, now);
        }
    }

    fn on_drop(
        &mut self,
        link: usize,
        packet: SimPacket,
        reason: DropReason,
        queued: Duration,
        now: Time,
    ) {
        self.probes[link].on_drop(&packet, self::reason(reason), queued, now);
        self.discard(packet);
    }

    fn on_loss(&mut self, impairment: usize, packet: SimPacket, _now: Time) {
        self.impaired[impairment].lost += 1;
        self.discard(packet);
    }

    fn on_duplicate(&mut self, impairment: usize, _copy: &SimPacket, _now: Time) {
        self.impaired[impairment].duplicated += 1;
    }

    #[inline(always)]
    fn split(&mut self, burst: &mut SimPacket, count: u32) -> SimPacket {
        self.packets.split(burst, count)
    }
}

impl cells::Watch<SimPacket> for Watch {
    #[inline(always)]
    fn on_arrival(&mut self, queue: usize, packet: &SimPacket, now: Time) {
        self.probes[queue].on_arrival(packet, now);
    }

    #[inline(always)]
    fn on_dequeue(&mut self, queue: usize, packet: &SimPacket, now: Time) {
        self.probes[queue].on_departure(packet, now);
    }

    #[inline(always)]
    fn on_departure(&mut self, queue: usize, packet: &SimPacket, now: Time) {
        self.note_left(queue, packet);
        Observer::on_departure(self, queue, packet, now);
    }

    fn on_drop(
        &mut self,
        queue: usize,
        packet: SimPacket,
        why: DropReason,
        queued: Duration,
        now: Time,
    ) {
        self.note_left(queue, &packet);
        Observer::on_drop(self, queue, packet, why, queued, now);
    }

    fn on_loss(&mut self, queue: usize, packet: SimPacket, now: Time) {
        self.note_left(queue, &packet);
        self.probes[queue].on_loss(&packet, now);
        self.discard(packet);
    }
}

/// A discipline's drop reason as a probe's.
pub const fn reason(reason: DropReason) -> Reason {
    match reason {
        DropReason::Aqm => Reason::Aqm,
        DropReason::Deterministic => Reason::Deterministic,
        DropReason::Overflow => Reason::Overflow,
        // A reason that a later version of the crate may add is its algorithms'.
        _ => Reason::Aqm,
    }
}

/// Sends a packet over a route. Returns when it leaves the host.
#[inline(always)]
pub fn send(network: &mut Network, mut packet: SimPacket, route: Route, now: Time) -> Time {
    if network.observer.notes_sent {
        cold_path();
        network.observer.note_sent(&mut packet, now);
    }
    network.send(packet, route, now)
}

/// As [`send`] of each packet of a burst.
#[inline(always)]
pub fn send_burst(network: &mut Network, mut burst: SimPacket, route: Route, now: Time) -> Time {
    if network.observer.notes_sent {
        cold_path();
        while burst.followers() > 0 {
            let first = network.observer.split(&mut burst, 1);
            send(network, first, route, now);
        }
        return send(network, burst, route, now);
    }
    network.send_burst(burst, route, now)
}
