//! Echo requests at a fixed interval, answered at once (RFC 792).

use sojourn_experiment::model;
use sojourn_units::{Duration, Time};

use super::{Identity, Meter};
use crate::packet::SimPacket;
use crate::simulation::Network;

/// 56 bytes of payload, ICMP and IP headers.
const IP_BYTES: u32 = 56 + 8 + 20;

/// A flow of echo requests and their replies.
pub struct Ping {
    identity: Identity,
    interval: Duration,
    next: Time,
    meter: Meter,
}

impl Ping {
    /// A flow that has not started.
    pub fn new(identity: Identity, config: &model::Ping) -> Self {
        Self {
            interval: config.interval,
            next: identity.start,
            meter: Meter::of_echoes(identity.warmup),
            identity,
        }
    }

    /// When the next request is due.
    pub fn next_timer(&self) -> Option<Time> {
        (self.next < self.identity.stop).then_some(self.next)
    }

    /// Sends what is due.
    pub fn on_timer(&mut self, now: Time, network: &mut Network) {
        while self.next_timer().is_some_and(|due| due <= now) {
            self.next += self.interval;
            if let Some((sent, _)) = &mut self.meter.datagrams {
                *sent += 1;
            }
            self.meter.sent += 56;
            network.send(&self.packet(now, false), now);
        }
    }

    /// A request or a reply arrives.
    pub fn on_packet(&mut self, packet: &SimPacket, now: Time, network: &mut Network) {
        if !packet.returning {
            self.meter.received += 56;
            return network.send(&self.packet(packet.sent_at(), true), now);
        }
        if let Some((_, answered)) = &mut self.meter.datagrams {
            *answered += 1;
        }
        if self.meter.is_steady(now) {
            self.meter.round_trips.record(now - packet.sent_at());
        }
    }

    fn packet(&self, sent_at: Time, returning: bool) -> SimPacket {
        let of = self.identity.membership(0, returning);
        SimPacket::echo(of, sent_at, IP_BYTES + self.identity.overhead)
    }

    /// What was measured.
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }
    /// What was measured, to be told of instants.
    pub const fn meter_mut(&mut self) -> &mut Meter {
        &mut self.meter
    }
}
