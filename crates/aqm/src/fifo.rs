//! First in, first out: `pfifo` (limit in packets) and `bfifo` (in bytes) drop arrivals that do not fit. They are the
//! baseline for all other disciplines. Source: tc-pfifo(8).
//!
//! `pfifo_head_drop` makes room at the head instead, so that senders learn of the loss sooner.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_units::Time;

use crate::aqm::{Algorithm, Aqm};
use crate::discipline::{Built, Discipline};
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::qdisc::Qdisc;
use crate::settings::Settings;
use crate::single::Single;
use crate::verdict::DropReason;

/// The absence of active queue management.
#[derive(Clone)]
pub struct DropTail;

impl Algorithm for DropTail {
    /// Accepts any change, since it has no parameters of its own.
    fn change(&mut self, _settings: &Settings, _limit: Limit) -> Result<(), SettingError> {
        Ok(())
    }
}

impl<P: Packet> Aqm<P> for DropTail {
    fn passes_arrivals(&self) -> bool {
        true
    }
}

/// `pfifo`.
pub fn pfifo<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "pfifo",
        summary: "drop-tail FIFO, limit in packets",
        source: "tc-pfifo(8)",
        keys: Box::new(Vec::new),
        make: Box::new(|settings| build(settings, Limit::Packets(1000))),
    }
}

/// `bfifo`.
pub fn bfifo<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "bfifo",
        summary: "drop-tail FIFO, limit in bytes",
        source: "tc-bfifo(8)",
        keys: Box::new(Vec::new),
        make: Box::new(|settings| build(settings, Limit::Bytes(1000 * u64::from(settings.mtu)))),
    }
}

/// A FIFO that drops from its head to make room for an arrival.
pub struct HeadDrop<P> {
    limit: Limit,
    queue: VecDeque<P>,
    bytes: u64,
}

impl<P: Packet> HeadDrop<P> {
    /// An empty queue that holds at most `limit`.
    pub const fn new(limit: Limit) -> Self {
        Self {
            limit,
            queue: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<P: Packet> Qdisc<P> for HeadDrop<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        // A packet larger than the limit must not empty the queue.
        if !self.limit.has_room(0, 0, packet.bytes()) {
            return env.drop(packet, DropReason::Overflow);
        }
        while !self
            .limit
            .has_room(self.packets(), self.bytes, packet.bytes())
        {
            let Some(oldest) = self.dequeue(now, env) else {
                break;
            };
            env.drop(oldest, DropReason::Overflow);
        }
        self.bytes += u64::from(packet.bytes());
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, _now: Time, _env: &mut Environment<P>) -> Option<P> {
        let packet = self.queue.pop_front()?;
        self.bytes -= u64::from(packet.bytes());
        Some(packet)
    }

    fn packets(&self) -> u64 {
        self.queue.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// `pfifo_head_drop`.
pub fn pfifo_head_drop<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "pfifo_head_drop",
        summary: "FIFO that makes room by dropping its oldest packet, limit in packets",
        source: "tc-pfifo(8)",
        keys: Box::new(Vec::new),
        make: Box::new(|settings| {
            let limit = settings.limit_or(Limit::Packets(1000));
            Ok(Box::new(HeadDrop::new(limit)))
        }),
    }
}

fn build<P: Packet + Send + 'static>(settings: &Settings, default: Limit) -> Built<P> {
    Ok(Box::new(Single::new(DropTail, settings.limit_or(default))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;

    /// The ids that leave and the ids dropped when five frames arrive at room for three.
    fn five_into_three(qdisc: &mut dyn Qdisc<Datagram<u64>>) -> (Vec<u64>, Vec<u64>) {
        let mut env = Environment::new(0);
        for id in 0..5 {
            qdisc.enqueue(Datagram::new(id, 1514), Time::ZERO, &mut env);
        }
        let dropped = env
            .take_dropped()
            .map(|(packet, _)| packet.payload)
            .collect();
        let left = core::iter::from_fn(|| qdisc.dequeue(Time::ZERO, &mut env))
            .map(|packet| packet.payload)
            .collect();
        (left, dropped)
    }

    #[test]
    fn drop_tail_refuses_the_newest() {
        let kept = (Vec::from([0, 1, 2]), Vec::from([3, 4]));
        for limit in [Limit::Packets(3), Limit::Bytes(3 * 1514)] {
            let mut queue = Single::new(DropTail, limit);
            assert_eq!(five_into_three(&mut queue), kept);
        }
    }

    #[test]
    fn head_drop_drops_the_oldest() {
        let kept = (Vec::from([2, 3, 4]), Vec::from([0, 1]));
        for limit in [Limit::Packets(3), Limit::Bytes(3 * 1514)] {
            assert_eq!(five_into_three(&mut HeadDrop::new(limit)), kept);
        }
    }

    #[test]
    fn a_packet_larger_than_the_limit_does_not_empty_a_head_drop_queue() {
        let mut queue = HeadDrop::new(Limit::Bytes(2000));
        let mut env = Environment::new(0);
        queue.enqueue(Datagram::new(0, 1514), Time::ZERO, &mut env);
        let mut giant = Datagram::new(1, 1514);
        giant.bytes = 2001;
        queue.enqueue(giant, Time::ZERO, &mut env);
        assert_eq!((queue.packets(), env.take_dropped().count()), (1, 1));
    }
}
