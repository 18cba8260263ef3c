//! Datagrams one way: at a constant rate, on and off, telephony, games.

use sojourn_experiment::derived::{self, UDP_HEADERS};
use sojourn_experiment::game;
use sojourn_experiment::model::{Cbr, Direction, Kind, Transport};
use sojourn_experiment::streams::Stream;
use sojourn_units::{Duration, Rate, Time};

use super::alternation::Alternation;
use super::{Identity, Meter};
use crate::packet::SimPacket;
use crate::simulation::Network;

/// A flow of datagrams.
pub struct Datagrams {
    identity: Identity,
    pattern: Pattern,
    /// When the next datagram is due, and its payload.
    next: (Time, u32),
    number: u64,
    /// Largest IP packet.
    mtu: Option<u32>,
    /// Where datagrams come in fragments.
    reassembly: Option<Reassembly>,
    meter: Meter,
}

/// Datagrams of one size that come in fragments.
struct Reassembly {
    payload: u32,
    fragments: usize,
    /// The datagram whose fragments arrive, and how many have.
    number: u32,
    arrived: usize,
}

impl Reassembly {
    /// For datagrams that an MTU does not let through whole.
    fn of(cbr: &Cbr) -> Option<Self> {
        let fragments = derived::fragments(cbr.packet, cbr.mtu).count();
        (fragments > 1).then_some(Self {
            payload: cbr.packet,
            fragments,
            number: 0,
            arrived: 0,
        })
    }

    /// A fragment of datagram `number` arrives: true if it was the last that was missing.
    const fn completes(&mut self, number: u32) -> bool {
        if number != self.number {
            self.number = number;
            self.arrived = 0;
        }
        self.arrived += 1;
        self.arrived == self.fragments
    }
}

/// When datagrams are sent, and how large they are.
enum Pattern {
    /// As many bytes as the rate allows; counted from the start, so that rounding does not add up.
    Rate { rate: Rate, payload: u32 },
    /// Evenly spaced.
    Spaced { interval: Duration, payload: u32 },
    /// At a rate while it is on; `sent` since that began.
    OnOff {
        alternation: Alternation,
        on: (Time, Time),
        rate: Rate,
        payload: u32,
        sent: u64,
    },
    /// A side of a game.
    Game { direction: Direction, draws: Stream },
}

impl Datagrams {
    /// A flow of a kind that has not started; `None` if the kind does not send datagrams one way.
    pub fn new(identity: Identity, kind: &Kind, seed: u64) -> Option<Self> {
        let mut pattern = match kind {
            Kind::Cbr(cbr) => Pattern::Rate {
                rate: cbr.rate,
                payload: cbr.packet,
            },
            Kind::Voip(voip) => Pattern::Spaced {
                interval: voip.interval,
                payload: voip.packet,
            },
            Kind::OnOff(config) => {
                let Transport::Udp(rate) = config.transport else {
                    return None;
                };
                let mut alternation = Alternation::new(&identity, config, seed);
                Pattern::OnOff {
                    on: alternation.next_on(),
                    alternation,
                    rate,
                    payload: config.packet,
                    sent: 0,
                }
            }
            Kind::Game => Pattern::Game {
                direction: identity.direction,
                draws: Stream::new(seed, &format!("flow/{}/game", identity.flow)),
            },
            _ => return None,
        };
        Some(Self {
            next: pattern.next(identity.start, 0, identity.start),
            pattern,
            number: 0,
            mtu: match kind {
                Kind::Cbr(cbr) => cbr.mtu,
                _ => None,
            },
            reassembly: match kind {
                Kind::Cbr(cbr) => Reassembly::of(cbr),
                _ => None,
            },
            meter: Meter::new(&identity, kind),
            identity,
        })
    }

    /// When the next datagram is due.
    pub fn next_timer(&self) -> Option<Time> {
        Some(self.next.0).filter(|due| *due < self.identity.stop)
    }

    /// Sends what is due.
    pub fn on_timer(&mut self, now: Time, network: &mut Network) {
        while let Some(due) = self.next_timer().filter(|due| *due <= now) {
            let payload = self.next.1;
            let of = self.identity.membership(0, false);
            for bytes in derived::fragments(payload, self.mtu) {
                let bytes = bytes + self.identity.overhead;
                let packet = SimPacket::datagram(of, self.number as u32, now, bytes);
                network.send(&packet, now);
            }
            self.number += 1;
            self.next = self.pattern.next(self.identity.start, self.number, due);
            self.meter.sent += u64::from(payload);
            self.meter.record_departure();
        }
    }

    /// A datagram arrives, or a fragment of one: then it is there with the last of them. They come in order, so that one
    /// of another datagram tells that the rest is lost.
    pub fn on_packet(&mut self, packet: &SimPacket, now: Time) {
        let payload = match &mut self.reassembly {
            None => packet.bytes - UDP_HEADERS - self.identity.overhead,
            Some(reassembly) => {
                if !reassembly.completes(packet.number()) {
                    return;
                }
                reassembly.payload
            }
        };
        self.meter.received += u64::from(payload);
        self.meter
            .record_datagram(packet.number(), now - packet.sent_at(), now);
    }

    /// What was measured, up to date.
    pub const fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }
}

impl Pattern {
    /// When datagram `number` of a flow that began at `start` is due, and its payload; the one before was at `last`.
    fn next(&mut self, start: Time, number: u64, last: Time) -> (Time, u32) {
        match self {
            Self::Rate { rate, payload } => {
                let offset = rate.tx_time(number.saturating_mul((*payload).into()));
                (start.saturating_add(offset), *payload)
            }
            Self::Spaced { interval, payload } => (
                start.saturating_add(interval.saturating_mul(number)),
                *payload,
            ),
            Self::OnOff {
                alternation,
                on,
                rate,
                payload,
                sent,
            } => loop {
                let due =
                    on.0.saturating_add(rate.tx_time(sent.saturating_mul((*payload).into())));
                if due < on.1 {
                    *sent += 1;
                    return (due, *payload);
                }
                *on = alternation.next_on();
                *sent = 0;
            },
            Self::Game { direction, draws } => {
                let (gap, payload) = game::next(*direction, draws);
                let due = if number == 0 { start } else { last + gap };
                (due, payload)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 791 §3.2: the second fragment of datagram 1 and the first of 2 are lost, and both datagrams with them.
    #[test]
    fn a_datagram_is_there_with_all_its_fragments() {
        let cbr = Cbr {
            rate: Rate::from_mbps(1),
            packet: 1500,
            mtu: Some(1500),
        };
        let mut reassembly = Reassembly::of(&cbr).expect("1528 bytes do not go through 1500");
        let arrivals = [0, 0, 1, 2, 3, 3];
        let complete = arrivals.map(|number| reassembly.completes(number));
        assert_eq!(complete, [false, true, false, false, false, true]);
    }
}
