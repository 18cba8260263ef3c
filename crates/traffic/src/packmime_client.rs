//! Browsing by the PackMime-HTTP model: connections open at their rate, whatever the state of earlier ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::packmime::{Exchange, PackMime};
use sojourn_units::Time;

use crate::application::{Application, Connections, Id, Identity, Meter, Side};
use crate::http::{Exchanges, Progress};

/// The clients and servers of one PackMime cloud.
pub struct Browser {
    model: PackMime,
    stop: Time,
    /// When the next connection opens.
    next: Time,
    /// Other events that are due; of simultaneous ones, the one added first.
    due: BinaryHeap<Reverse<(Time, u64, u32, Step)>>,
    noted: u64,
    exchanges: Exchanges,
    /// The remaining exchanges of each connection; the current one is the last element.
    to_come: BTreeMap<u32, Vec<Exchange>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The server has its response ready.
    Respond,
    /// The client sends its next request.
    Request,
}

impl Browser {
    /// A cloud with `rate` new connections per second.
    pub fn new(identity: &Identity, rate: f64, seed: u64) -> Self {
        let mut model = PackMime::new(rate, seed, &format!("flow/{}", identity.flow));
        Self {
            next: identity.start + model.gap(),
            model,
            stop: identity.stop,
            due: BinaryHeap::new(),
            noted: 0,
            exchanges: Exchanges::default(),
            to_come: BTreeMap::new(),
        }
    }

    fn note(&mut self, due: Time, id: Id, step: Step) {
        self.due.push(Reverse((due, self.noted, id.0, step)));
        self.noted += 1;
    }

    fn request(&mut self, id: Id, now: Time, connections: &mut dyn Connections) {
        if let Some(exchange) = self.to_come.get(&id.0).and_then(|left| left.last()) {
            self.exchanges
                .request(connections, id, exchange.request, now);
        }
    }

    fn respond(&mut self, id: Id, connections: &mut dyn Connections) {
        let Some(left) = self.to_come.get_mut(&id.0) else {
            return;
        };
        if let Some(exchange) = left.pop() {
            self.exchanges.respond(connections, id, exchange.response);
        }
        if left.is_empty() {
            connections.close(id, Side::Sending);
        }
    }
}

impl Application for Browser {
    fn next_timer(&self) -> Option<Time> {
        let step = self.due.peek().map(|Reverse((due, ..))| *due);
        let connection = Some(self.next).filter(|next| *next < self.stop);
        [step, connection].into_iter().flatten().min()
    }

    fn on_timer(&mut self, now: Time, connections: &mut dyn Connections, _: &mut dyn Meter) {
        while self.next <= now && self.next < self.stop {
            let id = connections.open(Side::Receiving);
            let mut exchanges = self.model.connection();
            exchanges.reverse(); // the next one is the last
            self.to_come.insert(id.0, exchanges);
            self.request(id, now, connections);
            self.next += self.model.gap();
        }
        while let Some(&Reverse((due, _, id, step))) = self.due.peek() {
            if due > now {
                break;
            }
            self.due.pop();
            match step {
                Step::Respond => self.respond(Id(id), connections),
                Step::Request if now < self.stop => self.request(Id(id), now, connections),
                Step::Request => connections.close(Id(id), Side::Receiving),
            }
        }
    }

    fn on_arrival(
        &mut self,
        id: Id,
        side: Side,
        now: Time,
        connections: &mut dyn Connections,
        meter: &mut dyn Meter,
    ) {
        let next = |left: &BTreeMap<u32, Vec<Exchange>>| {
            left.get(&id.0).and_then(|left| left.last().copied())
        };
        match self.exchanges.on_arrival(connections, id, side, now) {
            Some(Progress::Asked) => {
                if let Some(exchange) = next(&self.to_come) {
                    self.note(now + exchange.delay, id, Step::Respond);
                }
            }
            Some(Progress::Answered(after)) => {
                meter.completed(after, now);
                if let Some(exchange) = next(&self.to_come) {
                    self.note(now + exchange.pause, id, Step::Request);
                }
            }
            None => {}
        }
    }

    fn on_end(&mut self, id: Id, _now: Time, _: &mut dyn Connections, _: &mut dyn Meter) {
        self.exchanges.on_end(id);
        self.to_come.remove(&id.0);
    }
}
