//! Echo requests at a fixed interval, answered at once (RFC 792; over UDP, RFC 862).

use sojourn_aqm::Ecn;
use sojourn_experiment::derived::UDP_HEADERS;
use sojourn_experiment::model::{EchoProtocol, Kind, Ping as Config};
use sojourn_traffic::Jitter;
use sojourn_units::Time;

use super::Identity;
use crate::network::{self, Network};
use crate::packet::{self, SimPacket};
use sojourn_measure::meter::Meter;

/// A flow of echo requests and their replies.
pub struct Ping {
    identity: Identity,
    config: Config,
    /// When the next request is due by the interval, and when it is sent.
    due: Time,
    next: Time,
    jitter: Jitter,
    meter: Box<Meter>,
}

impl Ping {
    /// A new flow; `None` if the kind is another.
    pub fn new(identity: Identity, kind: &Kind, seed: u64) -> Option<Self> {
        let Kind::Ping(config) = kind else {
            return None;
        };
        let mut jitter = Jitter::new(identity.jitter, identity.flow, seed);
        Some(Self {
            config: config.clone(),
            due: identity.start,
            next: jitter.late(identity.start),
            jitter,
            meter: Box::new(Meter::new(&identity.measures)),
            identity,
        })
    }

    /// When the next request is due.
    pub fn next_timer(&self) -> Option<Time> {
        (self.next < self.identity.stop).then_some(self.next)
    }

    /// Sends the request that is due.
    pub fn on_timer(&mut self, now: Time, network: &mut Network) {
        while self.next_timer().is_some_and(|due| due <= now) {
            self.due += self.config.interval;
            self.next = self.jitter.late(self.due);
            self.meter.record_departure();
            self.meter.sent += u64::from(self.config.packet);
            self.send(now, false, now, network);
        }
    }

    /// Handles a request or a reply.
    pub fn on_packet(&mut self, packet: &SimPacket, now: Time, network: &mut Network) {
        if packet.is_copy() {
            return;
        }
        if packet.returning {
            self.meter.record_echo(now - packet.sent_at, now);
        } else {
            self.meter.received += u64::from(self.config.packet);
            self.send(packet.sent_at, true, now, network);
        }
    }

    /// Sends a request, or the reply to the request sent at `sent_at`.
    fn send(&self, sent_at: Time, returning: bool, now: Time, network: &mut Network) {
        let kind = match self.config.protocol {
            EchoProtocol::Icmp => packet::Kind::Echo,
            EchoProtocol::Udp => packet::Kind::UdpEcho,
        };
        // ICMP and UDP headers have the same length.
        let bytes = self.config.packet + UDP_HEADERS + self.identity.overhead;
        let mut packet = network.observer.packets.take();
        packet.address(
            self.identity.membership(0, returning),
            kind,
            bytes,
            Ecn::NotEct,
            now,
        );
        packet.sent_at = sent_at;
        let route = self.identity.routes[usize::from(returning)];
        network::send(network, packet, route, now);
    }

    /// The flow's meter, alone.
    pub fn into_meter(self) -> Box<Meter> {
        self.meter
    }

    /// The flow's meter.
    pub const fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }
}
