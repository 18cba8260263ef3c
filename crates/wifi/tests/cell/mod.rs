//! A cell for tests: packets, stations, and a driver that keeps the queues from running empty.

#![allow(dead_code, reason = "each test file uses a part of it")]

use sojourn_aqm::fifo::DropTail;
use sojourn_aqm::{Datagram, FlowKey, Limit, Single};
use sojourn_path::link::BoxedQdisc;
use sojourn_units::{Duration, Time, Way};
use sojourn_wifi::phy::{Guard, Mode, Width};
use sojourn_wifi::{
    Cell, Departed, Loss, Medium, Node, Observer, Queueing, RateControl, Station, Transmitted, Use,
    modes,
};

/// An IP packet of 1500 bytes in Ethernet.
pub const FULL: u32 = 1514;

/// A packet with its number.
pub type Packet = Datagram<u64>;

/// A packet of a flow, with its number.
pub fn packet(flow: u32, number: u64, bytes: u32) -> Packet {
    let key = FlowKey {
        source: flow,
        ..FlowKey::default()
    };
    Datagram::new(number, bytes).with_flow(key)
}

pub fn drop_tail(packets: u64) -> BoxedQdisc<Packet> {
    Box::new(Single::new(DropTail, Limit::Packets(packets)))
}

/// Drop-tail with a ring of 64 packets.
pub fn ring() -> Queueing<Packet> {
    Queueing::Ring {
        qdisc: drop_tail(1000),
        packets: 64,
    }
}

/// A station with a fixed mode, whose frames are lost only by collisions.
pub fn station(mode: Mode) -> Station<Packet> {
    Station {
        modes: vec![mode],
        rate_control: RateControl::Fixed(mode),
        snr_db: None,
        fading: None,
        queueing: ring(),
    }
}

/// The mode of the cell's standard with this rate in kbit/s, at 20 MHz with one stream.
pub fn mode(cell: &Cell, kbps: u64) -> Mode {
    wide_mode(cell, kbps, Width::Mhz20, 1, Guard::Long)
}

pub fn wide_mode(cell: &Cell, kbps: u64, width: Width, streams: u8, guard: Guard) -> Mode {
    modes(cell.standard, width, streams, guard)
        .into_iter()
        .find(|mode| mode.rate().as_bps() / 1000 == kbps && mode.streams() == streams)
        .expect("a mode of this rate")
}

/// Counts of what an observer was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub transmissions: u64,
    pub collided: u64,
    pub frames: u64,
    pub lost: u64,
    pub dropped: u64,
    pub arrived: u64,
    pub departed: u64,
    pub log: Vec<Transmitted>,
    pub keep_log: bool,
}

impl Observer<Packet> for Seen {
    fn on_arrival(&mut self, _sender: Node, _packet: &Packet, _now: Time) {
        self.arrived += 1;
    }
    fn on_departure(&mut self, _sender: Node, _packet: &Packet, _now: Time) {
        self.departed += 1;
    }
    fn on_drop(
        &mut self,
        _sender: Node,
        _packet: Packet,
        why: Loss,
        _queued: Duration,
        _now: Time,
    ) {
        match why {
            Loss::Retries | Loss::Late => self.lost += 1,
            Loss::Queue(_) => self.dropped += 1,
        }
    }
    fn on_air(&mut self, transmitted: &Transmitted) {
        self.transmissions += 1;
        self.frames += u64::from(transmitted.frames);
        self.collided += u64::from(transmitted.what == Use::Collision);
        if self.keep_log {
            self.log.push(*transmitted);
        }
    }
}

/// A saturated sender: `(station, way, packets kept queued, bytes, dscp)`.
pub type Load = (u16, Way, u64, u32, u8);

/// Runs a cell with saturated senders. Returns the packets that were received.
pub fn saturate(
    medium: &mut Medium<Packet>,
    loads: &[Load],
    until: Time,
    seen: &mut Seen,
) -> Vec<Departed<Packet>> {
    let mut number = 0;
    let mut received = Vec::new();
    let mut next = |load: usize| {
        number += 1;
        let (_, _, _, bytes, dscp) = loads[load];
        packet(load as u32, number, bytes).with_dscp(dscp)
    };
    for (load, &(station, way, queued, ..)) in loads.iter().enumerate() {
        for _ in 0..queued {
            medium.enqueue(next(load), station, way, Time::ZERO, seen);
        }
    }
    let mut out = vec![0_u64; loads.len()];
    loop {
        let now = medium.next_event();
        if now > until {
            return received;
        }
        let lost = seen.lost + seen.dropped;
        medium.act(now, seen);
        while let Some(departed) = medium.poll() {
            out[departed.packet.flow.source as usize] += 1;
            received.push(departed);
        }
        // Every sender replaces all lost packets, since a lost packet's sender is not known. This is more than enough.
        let lost = seen.lost + seen.dropped - lost;
        for (load, &(station, way, ..)) in loads.iter().enumerate() {
            for _ in 0..core::mem::take(&mut out[load]) + lost {
                medium.enqueue(next(load), station, way, now, seen);
            }
        }
    }
}

/// Goodput in bit/s, with the IP header counted and the Ethernet header not.
pub fn goodput(received: &[Departed<Packet>], until: Time) -> f64 {
    let bits: u64 = received
        .iter()
        .map(|one| u64::from(one.packet.bytes - 14) * 8)
        .sum();
    bits as f64 / until.as_secs_f64()
}
