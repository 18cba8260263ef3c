//! One-way datagrams: constant rate, on-off, telephony, games.

use sojourn_aqm::Ecn;
use sojourn_experiment::derived::{self, UDP_HEADERS};
use sojourn_experiment::model::{Cbr, EcnField, Kind};
use sojourn_units::Time;

use super::Identity;
use crate::network::{self, Network};
use crate::packet::{self, SimPacket};
use sojourn_measure::meter::Meter;

/// A flow of datagrams.
pub struct Datagrams {
    identity: Identity,
    schedule: sojourn_traffic::Datagrams,
    /// Size of the largest IP packet.
    mtu: Option<u32>,
    /// Reassembles datagrams that are sent in fragments.
    reassembly: Option<Reassembly>,
    ecn: Ecn,
    meter: Box<Meter>,
}

/// Reassembly of fragmented datagrams of one size.
struct Reassembly {
    payload: u32,
    fragments: usize,
    /// The datagram now being reassembled, and its fragments so far.
    number: u32,
    arrived: usize,
}

impl Reassembly {
    /// `None` if the datagrams fit the MTU whole.
    fn of(cbr: &Cbr) -> Option<Self> {
        let fragments = derived::fragments(cbr.packet, cbr.mtu).count();
        (fragments > 1).then_some(Self {
            payload: cbr.packet,
            fragments,
            number: 0,
            arrived: 0,
        })
    }

    /// Takes a fragment of datagram `number`. True if it was the last one missing.
    const fn completes(&mut self, number: u32) -> bool {
        if number != self.number {
            self.number = number;
            self.arrived = 0;
        }
        self.arrived += 1;
        self.arrived == self.fragments
    }
}

impl Datagrams {
    /// A new flow; `None` if the kind does not send one-way datagrams.
    pub fn new(identity: Identity, kind: &Kind, seed: u64) -> Option<Self> {
        Some(Self {
            schedule: sojourn_traffic::Datagrams::new(&identity.of_application(), kind, seed)?,
            mtu: match kind {
                Kind::Cbr(cbr) => cbr.mtu,
                _ => None,
            },
            reassembly: match kind {
                Kind::Cbr(cbr) => Reassembly::of(cbr),
                _ => None,
            },
            ecn: match kind.datagram_ecn() {
                EcnField::NotEct => Ecn::NotEct,
                EcnField::Ect0 => Ecn::Ect0,
                EcnField::Ect1 => Ecn::Ect1,
            },
            meter: Box::new(Meter::new(&identity.measures)),
            identity,
        })
    }

    /// When the next datagram is due.
    pub fn next_timer(&self) -> Option<Time> {
        self.schedule.next_due()
    }

    /// Sends the datagrams that are due.
    pub fn on_timer(&mut self, now: Time, network: &mut Network) {
        while let Some((number, payload)) = self.schedule.take_due(now) {
            let of = self.identity.membership(0, false);
            for bytes in derived::fragments(payload, self.mtu) {
                let bytes = bytes + self.identity.overhead;
                let mut packet = network.observer.packets.take();
                packet.address(of, packet::Kind::Datagram, bytes, self.ecn, now);
                packet.number = number as u32;
                packet.sent_at = now;
                network::send(network, packet, self.identity.routes[0], now);
            }
            self.meter.sent += u64::from(payload);
            self.meter.record_departure();
        }
    }

    /// Receives a datagram or a fragment. A fragmented datagram counts when its last fragment arrives. Fragments arrive
    /// in order, so a fragment of another datagram means that the rest is lost.
    pub fn on_packet(&mut self, packet: &SimPacket, now: Time) {
        if packet.is_copy() {
            return;
        }
        let payload = match &mut self.reassembly {
            None => packet.bytes - UDP_HEADERS - self.identity.overhead,
            Some(reassembly) => {
                if !reassembly.completes(packet.number) {
                    return;
                }
                reassembly.payload
            }
        };
        self.meter.received += u64::from(payload);
        self.meter
            .record_datagram(packet.number, now - packet.sent_at, now);
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

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::Rate;

    /// RFC 791 §3.2: the second fragment of datagram 1 and the first of 2 are lost, and both datagrams with them.
    #[test]
    fn a_datagram_arrives_only_with_all_its_fragments() {
        let cbr = Cbr {
            rate: Rate::from_mbps(1),
            packet: 1500,
            mtu: Some(1500),
            ecn: EcnField::NotEct,
        };
        let mut reassembly = Reassembly::of(&cbr).expect("1528 bytes do not go through 1500");
        let arrivals = [0, 0, 1, 2, 3, 3];
        let complete = arrivals.map(|number| reassembly.completes(number));
        assert_eq!(complete, [false, true, false, false, false, true]);
    }
}
