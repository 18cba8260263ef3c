//! UDP at a constant rate.

use sojourn_experiment::model;
use sojourn_units::{Duration, Time};

use super::{Identity, Meter};
use crate::packet::SimPacket;
use crate::simulation::Network;

/// UDP and IP headers.
const HEADERS: u32 = 28;

/// A flow of datagrams, evenly spaced.
pub struct Cbr {
    identity: Identity,
    payload: u32,
    rate: sojourn_units::Rate,
    number: u64,
    meter: Meter,
}

impl Cbr {
    /// A flow that has not started.
    pub fn new(identity: Identity, config: &model::Cbr) -> Self {
        Self {
            payload: config.packet,
            rate: config.rate,
            number: 0,
            meter: Meter::of_datagrams(identity.warmup),
            identity,
        }
    }

    /// When the next datagram is due. Counted from the start, so that rounding does not add up.
    pub fn next_timer(&self) -> Option<Time> {
        let offset = self.number as u128 * u128::from(self.payload) * 8_000_000_000
            / u128::from(self.rate.as_bps());
        let due = self.identity.start + Duration::from_nanos(offset as u64);
        (due < self.identity.stop).then_some(due)
    }

    /// Sends what is due.
    pub fn on_timer(&mut self, now: Time, network: &mut Network) {
        while self.next_timer().is_some_and(|due| due <= now) {
            let bytes = self.payload + HEADERS + self.identity.overhead;
            let of = self.identity.membership(0, false);
            let packet = SimPacket::datagram(of, self.number as u32, now, bytes);
            self.number += 1;
            self.meter.sent += u64::from(self.payload);
            if let Some((sent, _)) = &mut self.meter.datagrams {
                *sent += 1;
            }
            network.send(&packet, now);
        }
    }

    /// A datagram arrives.
    pub fn on_packet(&mut self, packet: &SimPacket, now: Time) {
        self.meter.received += u64::from(self.payload);
        if let Some((_, arrived)) = &mut self.meter.datagrams {
            *arrived += 1;
        }
        if self.meter.is_steady(now)
            && let Some(delays) = &mut self.meter.one_way
        {
            delays.record(now - packet.sent_at());
        }
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
