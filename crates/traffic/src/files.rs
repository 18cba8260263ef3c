//! File transfers, each on a connection of its own.

use crate::kind::{self, Pace, exponential};
use crate::sizes::Sizes;
use crate::streams::Stream;
use sojourn_units::{Duration, Time};

use crate::application::{Application, Connections, Id, Identity, Meter, Side};

/// The file transfers of a flow.
pub struct Files {
    sizes: Sizes,
    pace: Pace,
    left: Option<u64>,
    stop: Time,
    draws: Stream,
    /// When the next file begins; `None` if one is under way (closed loop), or if none is left.
    next: Option<Time>,
    under_way: Vec<File>,
}

struct File {
    connection: Id,
    bytes: u64,
    began: Time,
}

impl Files {
    /// A flow of files before its start.
    pub fn new(identity: &Identity, files: &kind::Files, seed: u64) -> Self {
        let mut draws = Stream::new(seed, &format!("flow/{}/files", identity.flow));
        let first = match files.pace {
            Pace::Think(_) => identity.start,
            Pace::Arrivals(rate) => identity.start + gap(rate, &mut draws),
        };
        Self {
            sizes: files.sizes.clone(),
            pace: files.pace,
            left: files.count,
            stop: identity.stop,
            draws,
            next: Some(first).filter(|first| *first < identity.stop),
            under_way: Vec::new(),
        }
    }

    fn schedule(&mut self, next: Time) {
        self.next = (next < self.stop && self.left != Some(0)).then_some(next);
    }
}

/// The time between two events of a Poisson process with `rate` events per second.
fn gap(rate: f64, draws: &mut Stream) -> Duration {
    Duration::from_secs_f64(draws.exponential() / rate)
}

impl Application for Files {
    fn next_timer(&self) -> Option<Time> {
        self.next
    }

    fn on_timer(&mut self, now: Time, connections: &mut dyn Connections, _: &mut dyn Meter) {
        while let Some(due) = self.next.filter(|due| *due <= now) {
            let bytes = self.sizes.draw(&mut self.draws);
            let connection = connections.open(Side::Sending);
            connections.write(connection, Side::Sending, bytes);
            connections.close(connection, Side::Sending);
            self.under_way.push(File {
                connection,
                bytes,
                began: now,
            });
            self.left = self.left.map(|left| left - 1);
            self.next = None;
            if let Pace::Arrivals(rate) = self.pace {
                let gap = gap(rate, &mut self.draws);
                self.schedule(due + gap);
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
        if side == Side::Sending {
            return;
        }
        let complete =
            |file: &File| file.connection == id && connections.received(id, side) >= file.bytes;
        if let Some(at) = self.under_way.iter().position(complete) {
            let file = self.under_way.swap_remove(at);
            meter.completed(now - file.began, now);
        }
    }

    /// In the closed loop the next file begins after a pause.
    fn on_end(&mut self, id: Id, now: Time, _: &mut dyn Connections, _: &mut dyn Meter) {
        self.under_way.retain(|file| file.connection != id);
        if let Pace::Think(think) = self.pace {
            let pause = exponential(think, &mut self.draws);
            self.schedule(now + pause);
        }
    }
}
