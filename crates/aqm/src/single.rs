//! One FIFO with a limit, governed by an [`Aqm`].

use alloc::collections::VecDeque;

use sojourn_units::Time;

use crate::aqm::{Aqm, Backlog, Verdict};
use crate::environment::{DropReason, Environment};
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::{Packet, ce_bytes};
use crate::qdisc::Qdisc;
use crate::settings::Settings;

/// A FIFO whose [`Aqm`] decides about every packet at arrival and at departure.
///
/// A packet that does not fit is dropped before the algorithm sees it.
pub struct Single<P, A> {
    aqm: A,
    limit: Limit,
    queue: VecDeque<P>,
    bytes: u64,
    ce_bytes: u64,
}

impl<P: Packet, A: Aqm<P>> Single<P, A> {
    /// An empty queue that holds at most `limit`.
    pub fn new(aqm: A, limit: Limit) -> Self {
        Self {
            aqm,
            limit,
            queue: VecDeque::new(),
            bytes: 0,
            ce_bytes: 0,
        }
    }

    /// The algorithm, to read its state.
    pub const fn aqm(&self) -> &A {
        &self.aqm
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.queue.len() as u64,
            bytes: self.bytes,
            ce_bytes: self.ce_bytes,
            qdisc_bytes: self.bytes,
        }
    }
}

impl<P: Packet, A: Aqm<P>> Qdisc<P> for Single<P, A> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        let backlog = self.backlog();
        if !self
            .limit
            .has_room(backlog.packets, backlog.bytes, packet.bytes())
        {
            env.drop(packet, DropReason::Overflow);
            self.aqm.on_overflow(backlog, now);
            return;
        }
        match self.aqm.on_enqueue(&packet, backlog, now, env) {
            Verdict::Drop(reason) => return env.drop(packet, reason),
            Verdict::Mark => env.mark(&mut packet),
            Verdict::Pass => {}
        }
        self.bytes += u64::from(packet.bytes());
        self.ce_bytes += ce_bytes(&packet);
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        while let Some(mut packet) = self.queue.pop_front() {
            self.bytes -= u64::from(packet.bytes());
            self.ce_bytes -= ce_bytes(&packet);
            match self.aqm.on_dequeue(&packet, self.backlog(), now, env) {
                Verdict::Drop(reason) => {
                    env.drop(packet, reason);
                    continue;
                }
                Verdict::Mark => env.mark(&mut packet),
                Verdict::Pass => {}
            }
            if self.queue.is_empty() {
                self.aqm.on_drained(now);
            }
            return Some(packet);
        }
        self.aqm.on_empty(now);
        None
    }

    fn packets(&self) -> u64 {
        self.queue.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn next_timer(&self) -> Option<Time> {
        self.aqm.next_timer()
    }

    fn on_timer(&mut self, now: Time, _env: &mut Environment<P>) {
        self.aqm.on_timer(self.backlog(), now);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.aqm.state(visit);
    }

    fn change(&mut self, settings: &Settings) -> Result<(), SettingError> {
        let limit = settings.limit_or(self.limit);
        self.aqm.change(settings, limit)?;
        self.limit = limit;
        Ok(())
    }

    fn aqm(&mut self) -> Option<&mut dyn Aqm<P>> {
        Some(&mut self.aqm)
    }
}
